"""Documents to an index, and questions to it: ``kotha index`` and ``kotha ask``."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.language import said
from kotha.cli.model_argument import place
from kotha.cli.options import Field, OnErrors, Paths
from kotha.cli.terminal import Output, Table, listening
from kotha.errors import UsageError
from kotha.i18n.message import Message, Text

if TYPE_CHECKING:
    from kotha.api.index import CitedAnswer, Hit, SearchResult


def index(
    paths: Paths,
    /,
    *,
    out: str,
    model: str | None = None,
    letters: int = 600,
    field: Field = "text",
    errors: OnErrors = "stop",
) -> Output:
    """Cut documents (txt, md, html, pdf, jsonl, csv, tsv, parquet) into passages, and index them for `kotha ask`.

    Args:
        out: The index to make or to bring up to date.
        model: A model whose embeddings are kept too; left out, words alone.
        letters: Letters of a passage at most.
    """
    import kotha

    with listening() as heard:
        report = kotha.Index(out, model).update(paths, letters=letters, field=field, errors=errors, **heard)
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
    return Output(report, Table(out, ["", ""], rows, [Message("documents: {done}", done=done)]))


def ask(
    run: Annotated[str | None, Parameter(name="RUN")] = None,
    question: str | None = None,
    /,
    *,
    index: str,
    limit: int = 5,
    by: Literal["words", "meaning", "both"] | None = None,
    retrieve_only: bool = False,
    tokens: int = 100,
) -> Output:
    """Find the passages that fit a question, show them with their scores, and answer from them with citations.

    Args:
        run: A run or model folder, or box, to search by meaning and to answer; left out, words alone.
        question: What to ask of the documents.
        index: The index, as `kotha index` made it.
        limit: Passages to find.
        by: How passages are found; left out, the best way there is.
        retrieve_only: Show passages and answer nothing.
        tokens: Tokens of an answer at most.
    """
    import kotha

    model, asked = _model_and_question(run, question)
    opened = kotha.Index(index, model)
    found: SearchResult | CitedAnswer
    if retrieve_only:
        found = opened.search(asked, limit, by)
        answer: dict[str, Any] = {"question": asked, "by": found.by}
        shown, remark = [], None if found.hits else Message("no passage contains a word of the question")
    else:
        found = reply = opened.ask(asked, limit, by, tokens=tokens)
        answer = {name: value for name, value in asdict(reply).items() if name != "hits"}
        shown, remark = [f"\n{reply.answer if reply.found else said(reply.answer)}"], reply.remark
    passages = [_as_row(hit) for hit in found.hits]
    return Output({**answer, "passages": passages}, *_lines(found.hits), *shown, remarks=filter(None, [remark]))


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


def _lines(hits: "Sequence[Hit]") -> list[str]:
    return [
        f"[{number}] {hit.score:.3f}  {os.path.relpath(hit.passage.source)}, {said(hit.passage.place)}\n"
        + indent(hit.passage.text, "    ")
        for number, hit in enumerate(hits, 1)
    ]
