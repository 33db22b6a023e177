"""Documents to an index, and questions to it: ``kotha index`` and ``kotha ask``."""

import os
from dataclasses import asdict
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal

from kotha.cli.flags import Field, InLanguage, Json, OnErrors, Paths, flag
from kotha.cli.naming import place
from kotha.cli.spoken import said, tell
from kotha.cli.terminal import Table, print_json, problems_told, progress, results, show
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.api.index import Hit


def index(
    paths: Paths,
    /,
    *,
    out: Annotated[str, flag("The index to make or to bring up to date: a file, or qdrant:URL/NAME.")],
    model: Annotated[str | None, flag("A model whose embeddings are kept too; left out, words alone.")] = None,
    letters: Annotated[int, flag("Letters of a passage at most.")] = 600,
    field: Field = "text",
    errors: OnErrors = "stop",
    language: InLanguage = "en",
    as_json: Json = False,
) -> None:
    """Cut documents (txt, md, html, pdf, jsonl, csv, tsv, parquet) into passages, and index them for `kotha ask`."""
    import kotha

    with progress() as advance, problems_told() as problems:
        how = {"letters": letters, "field": field, "errors": errors}
        report = kotha.Index(out, model).update(paths, on_progress=advance, on_problem=problems, **how)
    rows: list[list[Text]] = [
        [Message("sources"), f"{report.sources:,}"],
        [Message("documents"), f"{report.documents:,}"],
        [Message("passages"), f"{report.passages:,}"],
    ]
    changes = (
        Message("{n:,} added", n=report.added),
        Message("{n:,} unchanged", n=report.unchanged),
        Message("{n:,} removed", n=report.removed),
    )
    done = [each for each in changes if each.values["n"]] or Message("none")
    show(report, as_json, Table(out, ["", ""], rows, [Message("documents: {done}", done=done)]))


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
