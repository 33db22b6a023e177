"""``/api/table`` and ``/api/examples``: inspect an uploaded table, and generate example tables."""

import json
import re
from collections import Counter
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter

from kotha.errors import KothaError
from kotha.i18n.message import Message, OnProgress
from kotha.server.api.requests import WireResponse, route
from kotha.server.errors import by_name, refusing
from kotha.server.jobs.kinds import TwoColumnNames, uploaded_table
from kotha.server.jobs.uploads import FileType
from kotha.server.json_requests import Id, JsonObject, MessageField, WireRequest
from kotha.server.state import State
from kotha.text.corpus.columns import Named
from kotha.text.corpus.documents import OnProblem, field_names
from kotha.text.corpus.labelled import read_labelled
from kotha.text.corpus.pairs import read_text_pairs
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.perturb import romanized
from kotha.text.stories.corpus import Story, stories

router = APIRouter(prefix="/api", tags=["Jobs"])
Use = Literal["classify", "translate"]
ExampleOf = Literal["classify", "translate", "ask"]
ExampleUse = Annotated[ExampleOf, PathParameter(description="Task of the examples.")]
ExampleRows = Annotated[int, Query(ge=20, le=5_000, description="Number of rows, or of documents for ask.")]
ExampleSeed = Annotated[int, Query(ge=0, description="The same seed gives the same table.")]
# Numbers of rows, classes and problems that are reported.
_ROWS, _CLASSES, _PROBLEMS = 5, 50, 5
_LONGEST_SHOWN = 400
_REPORTED = 20  # documents between two reports of progress, where work stops if its client has disconnected
_SENTENCE_END = re.compile("(?<=[।?!]) ")
_SHORTEST, _LONGEST = 12, 60
_KINDS = {"story": "গল্প", "news": "খবর", "entry": "ভুক্তি"}


class TableRequest(WireRequest):
    """An uploaded table and its use."""

    file: Id
    use: Use
    fields: TwoColumnNames | None = None


class TableProblem(WireResponse):
    """A problem with a row."""

    line: int | None
    field: str | None
    reason: MessageField


class TableResponse(WireResponse):
    """The contents of a table, as training would read it."""

    fields: list[str]
    chosen: tuple[str, str]
    count: int
    rows: list[tuple[str, str]]
    classes: dict[str, int]
    broken: int
    problems: list[TableProblem]


class ExampleTable(WireResponse):
    """An example table, as the contents of a file."""

    text: str
    file_type: FileType


@route(router, "/table", TableResponse, reads=True)
def table(state: State, body: TableRequest) -> JsonObject:
    """Return the first rows of a table, its classes, and its problems by line and column."""
    store = state.job_store()
    path = uploaded_table(store, body.file, "file")
    name = store.uploads.name(body.file) or path.name
    with refusing(KothaError, param="file"), by_name({str(path): name}):
        return _summary(path, body.use, body.fields or (None, None))


def _summary(path: Path, use: Use, named: Named) -> JsonObject:
    problems: list[CorpusProblem] = []
    try:
        rows, chosen = _read(path, use, named, problems.append)
    except KothaError as error:
        if not problems:
            raise
        # Every row was skipped because of this problem.
        raise KothaError("{problem}", problem=problems[0]) from error
    fields = field_names(path)
    return {
        "fields": fields if set(chosen) <= set(fields) else list(chosen),  # without a header, columns have numbers
        "chosen": chosen,
        "count": len(rows),
        "rows": [(first[:_LONGEST_SHOWN], second[:_LONGEST_SHOWN]) for first, second in rows[:_ROWS]],
        "classes": dict(Counter(label for _, label in rows).most_common(_CLASSES)) if use == "classify" else {},
        "broken": len(problems),
        "problems": [
            {"line": each.line or each.row, "field": each.field, "reason": each.reason} for each in problems[:_PROBLEMS]
        ],
    }


def _read(path: Path, use: Use, named: Named, on_problem: OnProblem) -> tuple[list[tuple[str, str]], tuple[str, str]]:
    """Return a table's readable rows, and the names of their two columns."""
    if use == "classify":
        texts = read_labelled(path, *named, errors="skip", on_problem=on_problem)
        return list(zip(texts.texts, texts.labels, strict=True)), (texts.text_field, texts.label_field)
    pairs = read_text_pairs(path, *named, errors="skip", on_problem=on_problem)
    return list(zip(pairs.sources, pairs.targets, strict=True)), (pairs.source_field, pairs.target_field)


@route(router, "/examples/{use}", ExampleTable, method="GET", reads=True, shares=True)
def examples(
    _: State, on_progress: OnProgress, use: ExampleUse, rows: ExampleRows = 400, seed: ExampleSeed = 0
) -> ExampleTable:
    """Generate examples from the built-in grammar: labelled texts, sentences in two scripts, or stories to search."""
    documents: list[Story] = []
    for document in islice(stories(seed), rows):
        if len(documents) % _REPORTED == 0:
            on_progress(Message("examples"), len(documents), rows)
        documents.append(document)
    if use == "ask":
        return ExampleTable(text="\n\n".join(each.text for each in documents), file_type="txt")
    # The sentences in a document's first paragraph, which follows the title.
    sentences = [_SENTENCE_END.split(each.text.split("\n")[1]) for each in documents]
    if use == "classify":
        kinds = [_KINDS[each.kind] for each in documents]
        labelled = [{"text": " ".join(some[:2]), "label": kind} for some, kind in zip(sentences, kinds, strict=True)]
        return ExampleTable(
            text="".join(json.dumps(row, ensure_ascii=False) + "\n" for row in labelled), file_type="jsonl"
        )
    short = (each for each in chain(*sentences) if _SHORTEST <= len(each) <= _LONGEST and "“" not in each)
    pairs = (f"{romanized(each)}\t{each}\n" for each in islice(dict.fromkeys(short), rows))
    return ExampleTable(text="latin\tbangla\n" + "".join(pairs), file_type="tsv")
