"""``kotha ask``: a question to an index of documents, answered with citations."""

import os
from dataclasses import asdict
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kotha.cli.flags import InLanguage, Json, flag
from kotha.cli.naming import place
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import print_json, results
from kotha.errors import UsageError
from kotha.i18n.message import Message

if TYPE_CHECKING:
    from kotha.retrieval.hybrid import Hit


def ask(
    run: Annotated[
        str | None,
        flag("A run or model folder, or box, to search by meaning and to answer; left out, words alone.", name="RUN"),
    ] = None,
    question: Annotated[str | None, flag("What to ask of the documents.")] = None,
    /,
    *,
    index: Annotated[str, flag("The index, as `kotha index` made it.")],
    limit: Annotated[int, flag("Passages to find.")] = 5,
    by: Annotated[
        Literal["words", "meaning", "both"] | None, flag("How passages are found; left out, the best way there is.")
    ] = None,
    retrieve_only: Annotated[bool, flag("Show passages and answer nothing.")] = False,
    tokens: Annotated[int, flag("Tokens of an answer at most.")] = 100,
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Find the passages that fit a question, show them with their scores, and answer from them with citations."""
    import kotha

    model, asked = _model_and_question(run, question)
    opened = kotha.Index(index, model)
    if retrieve_only:
        found = opened.search(asked, limit, by)
        if as_json:
            print_json({"question": asked, "by": found.by, "passages": [_as_row(hit) for hit in found.hits]})
            return
        _show(found.hits)
        if not found.hits:
            tell(Message("no passage has a word of the question"))
        return
    reply = opened.ask(asked, limit, by, tokens=tokens)
    if as_json:
        row = {name: value for name, value in asdict(reply).items() if name != "hits"}
        print_json({**row, "passages": [_as_row(hit) for hit in reply.hits]})
        return
    _show(reply.hits)
    results().print(f"\n{reply.answer if reply.found else said(reply.answer)}", markup=False)
    if reply.remark is not None:
        tell(reply.remark)


def _model_and_question(run: str | None, question: str | None) -> tuple[str | None, str]:
    """``RUN QUESTION``, or ``QUESTION`` alone, for which no model is opened."""
    if run is None:
        raise UsageError("ask needs a QUESTION; see kotha ask --help")
    if question is not None:
        return os.fspath(place(run)), question
    if os.path.exists(run):  # noqa: PTH110 - a question may be too long for a path
        raise UsageError("{run} is a model; what is the question? see kotha ask --help", run=run)
    return None, run


def _as_row(hit: "Hit") -> dict[str, Any]:
    """A hit as JSON has it."""
    scores = {"score": hit.score, "words": hit.words, "meaning": hit.meaning}
    return {**asdict(hit.passage), **{name: value for name, value in scores.items() if value is not None}}


def _show(hits: "list[Hit]") -> None:
    console = results()
    for number, hit in enumerate(hits, 1):
        source = os.path.relpath(hit.passage.source)
        console.print(f"[{number}] {hit.score:.3f}  {source}, {said(hit.passage.place)}", markup=False)
        console.print(indent(hit.passage.text, "    "), markup=False)
