"""``kotha index`` and ``kotha ask``: index documents, and answer questions from them."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from kotha.cli.language import translate
from kotha.cli.model_argument import model_path
from kotha.cli.options import Field, OnErrors, Paths
from kotha.cli.terminal import Output, Table, corpus_listeners
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
    passage_length: int = 600,
    field: Field = "text",
    errors: OnErrors = "stop",
) -> Output:
    """Split documents into passages, and index them for `kotha ask`.

    Supported formats are txt, md, html, pdf, jsonl, csv, tsv and parquet. The same command updates an existing index:
    unchanged documents are kept, and documents that no longer exist are removed.

    Example: `kotha index texts --out texts.index`

    Args:
        out: Index file to create or update.
        model: Model whose embeddings are stored for semantic search (default: none, keyword search only).
        passage_length: Maximum length of a passage in characters.
    """
    import kotha

    with corpus_listeners() as listeners:
        report = kotha.Index(out, model).update(
            paths, passage_length=passage_length, field=field, errors=errors, **listeners
        )
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
    changed = [each for each in changes if each.values["n"]] or Message("none")
    return Output(report, Table(out, ["", ""], rows, [Message("documents: {done}", done=changed)]))


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
    """Find the passages that match a question, show their scores, and answer from them with citations.

    If the model was fine-tuned to answer questions, it writes the answer; otherwise the answer is the sentence in the
    passages that best matches the question.

    Examples: `kotha ask 'নদীর ধারে কে থাকে?' --index texts.index`, `kotha ask assistant 'নদীর ধারে কে থাকে?' --index
    texts.index`.

    Args:
        run: Run or model folder, or box, for semantic search and for the answer (default: none, keyword search only).
        question: Question to answer from the documents.
        index: Index file created by `kotha index`.
        limit: Number of passages to return.
        by: Search method (default: the best one available).
        retrieve_only: Show the passages without an answer.
        tokens: Maximum number of tokens in the answer.
    """
    import kotha

    model, question = _model_and_question(run, question)
    opened_index = kotha.Index(index, model)
    found: SearchResult | CitedAnswer
    if retrieve_only:
        found = opened_index.search(question, limit, by)
        answer: dict[str, Any] = {"question": question, "by": found.by}
        lines, remark = [], None if found.hits else Message("no passage contains any word of the question")
    else:
        found = reply = opened_index.ask(question, limit, by, tokens=tokens)
        answer = {name: value for name, value in asdict(reply).items() if name != "hits"}
        lines, remark = [f"\n{reply.answer if reply.found else translate(reply.answer)}"], reply.remark
    passages = [_as_row(hit) for hit in found.hits]
    return Output({**answer, "passages": passages}, *_lines(found.hits), *lines, remarks=filter(None, [remark]))


def _model_and_question(run: str | None, question: str | None) -> tuple[str | None, str]:
    """Return the model and the question from ``RUN QUESTION``; the model is None if only ``QUESTION`` is given."""
    if run is None:
        raise UsageError("ask needs a QUESTION; see kotha ask --help")
    if question is not None:
        return os.fspath(model_path(run)), question
    if os.path.exists(run):  # noqa: PTH110 - a question may be too long for a path
        raise UsageError("{run} is a model; add a QUESTION; see kotha ask --help", run=run)
    return None, run


def _as_row(hit: "Hit") -> dict[str, Any]:
    """Convert a hit to JSON."""
    scores = {"score": hit.score, "words": hit.words, "meaning": hit.meaning}
    return {**asdict(hit.passage), **{name: value for name, value in scores.items() if value is not None}}


def _lines(hits: "Sequence[Hit]") -> list[str]:
    return [
        f"[{number}] {hit.score:.3f}  {os.path.relpath(hit.passage.source or '.')}, {translate(hit.passage.place)}\n"
        + indent(hit.passage.text, "    ")
        for number, hit in enumerate(hits, 1)
    ]
