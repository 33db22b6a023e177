"""Read documents for the index: md, html, pdf, and all formats that the corpus readers support.

In txt, md, html and pdf files a document is a paragraph (short ones are joined with the next); in jsonl, csv, tsv and
parquet files it is a record.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import CorpusError, UsageError
from kotha.i18n.message import Option
from kotha.retrieval.paragraphs import READERS, read_paragraphs
from kotha.retrieval.passages import (
    LONGEST_PASSAGE_LENGTH,
    PASSAGE_LENGTH,
    SHORTEST_PASSAGE_LENGTH,
    Excerpt,
    gather,
)
from kotha.storage.status import is_directory
from kotha.text.choices import Errors
from kotha.text.corpus.documents import OnBytes, OnProblem, ReadOptions, read_documents
from kotha.text.corpus.problems import CorpusProblem, ProblemReporter, shown
from kotha.text.corpus.sources import kind_of, list_sources

_KNOWN = [".txt", ".jsonl", ".csv", ".tsv", ".parquet", *READERS]


@dataclass(frozen=True)
class IndexOptions:
    """Options for reading and splitting documents."""

    passage_length: int = PASSAGE_LENGTH  # maximum characters of a passage
    field: str = "text"  # the record field that holds the text
    errors: Errors = "stop"  # what to do with unreadable documents

    def __post_init__(self) -> None:
        if self.passage_length < SHORTEST_PASSAGE_LENGTH:  # too short to hold a sentence
            raise UsageError(
                "{passage_length} is too short; use at least {fewest} characters ({usual} is typical)",
                passage_length=Option("passage_length", self.passage_length),
                fewest=SHORTEST_PASSAGE_LENGTH,
                usual=PASSAGE_LENGTH,
            )
        if self.passage_length > LONGEST_PASSAGE_LENGTH:
            raise UsageError(
                "{passage_length} is too long; use at most {most:,} characters ({usual} is typical)",
                passage_length=Option("passage_length", self.passage_length),
                most=LONGEST_PASSAGE_LENGTH,
                usual=PASSAGE_LENGTH,
            )


def list_files(paths: Sequence[str | os.PathLike[str]], on_problem: OnProblem | None = None) -> tuple[list[Path], bool]:
    """Return the files that paths, folders and globs refer to, each once, and whether all folders could be read.

    Files of unsupported formats in a folder are reported as problems.
    """
    found: dict[Path, None] = {}
    unread: list[CorpusProblem] = []

    def record(problem: CorpusProblem) -> None:
        if problem.unread:
            unread.append(problem)
        if on_problem is not None:
            on_problem(problem)

    for path in paths:
        is_folder = is_directory(place := Path(path).expanduser())
        errors: Errors = "skip" if is_folder else "stop"
        try:
            sources = list_sources([os.fspath(path)], errors=errors, on_problem=record, others=READERS)
        except CorpusError as error:
            if unread:  # a folder that could not be read is not reported as empty
                raise CorpusError("{problem}", problem=unread[0]) from None
            none = "{place}: no readable file in this folder; supported formats: {known}"
            raise CorpusError(none, place=shown(place), known=_KNOWN) if is_folder else error from None
        for source in sources:
            if source.repository is not None or source.is_remote or source.path == "-":
                raise CorpusError(
                    "{path}: only local files can be indexed; download the file first", path=shown(os.fspath(path))
                )
            found[Path(source.path).resolve()] = None
    return list(found), not unread


def read_file(
    file: Path, how: IndexOptions, on_problem: OnProblem | None = None, on_bytes: OnBytes | None = None
) -> Iterator[Excerpt]:
    """The documents in one file, in order."""
    if file.suffix.lower() not in READERS:
        kind, _ = kind_of(file.name)
        place = "row" if kind == "parquet" else "line"
        reading: ReadOptions = {"errors": how.errors, "on_problem": on_problem, "on_bytes": on_bytes}
        records = read_documents([file], field=how.field, **reading)
        found = (Excerpt(each.text, str(file), f"{place} {each.position}") for each in records)
        return gather(found, how.passage_length) if kind == "txt" else found
    complaints = ProblemReporter(shown(file), how.errors, on_problem)
    return gather(
        (Excerpt(text, str(file), place) for text, place in read_paragraphs(file, complaints)), how.passage_length
    )
