"""Stream documents and records from files, folders, URLs, the hub and standard input."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, Unpack, get_args

from kotha.errors import CorpusError, UsageError
from kotha.text.choices import Errors, check_choice
from kotha.text.corpus.formats import Record, RecordReader
from kotha.text.corpus.hub import hub_download
from kotha.text.corpus.problems import CorpusProblem, ProblemReporter, Unreadable
from kotha.text.corpus.problems import OnProblem as OnProblem
from kotha.text.corpus.remote import open_remote
from kotha.text.corpus.sources import Source, list_sources
from kotha.text.corpus.streams import TextBytes, decompress, file_chunks

MAX_DOCUMENT_BYTES = 16 << 20

OnBytes = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Document:
    """One text; ``position`` is its first line in ``source``, or its row in a parquet file, counted from 1."""

    text: str
    source: str
    position: int


class ReadOptions(TypedDict, total=False):
    """Options of ``read_documents`` and similar functions, other than paths and fields."""

    errors: Errors
    on_problem: OnProblem | None
    on_bytes: OnBytes | None
    max_document_bytes: int


def read_documents(
    paths: Sequence[str | Path | Source], *, field: str = "text", **options: Unpack[ReadOptions]
) -> Iterator[Document]:
    """Read documents one by one from files, folders, globs, ``-`` (stdin, txt) and ``hf:owner/name[:split[:config]]``.

    URLs (``https://``, ``s3://``, ``gs://``, ``hdfs://``) are streamed, not downloaded first; see ``remote.py``.

    For an invalid document, ``errors="stop"`` raises a CorpusError and ``errors="skip"`` omits the document.
    ``on_problem`` is called for each invalid document, and for each file of a folder that cannot be read. ``on_bytes``
    is called with the number of bytes read since the last call; the total is the sum of the sizes from
    ``list_sources``. Documents without text are omitted.
    """
    records = read_records(paths, (field,), **options)
    return (Document(text, name, at) for name, ((text,), at) in records if text and not text.isspace())


def read_records(
    paths: Sequence[str | Path | Source],
    fields: tuple[str, ...],
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
    on_bytes: OnBytes | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
) -> Iterator[tuple[str, Record]]:
    """Return an iterator over each record's selected fields, with the record's source; values may be blank.

    The arguments are checked and the files are listed immediately, so a wrong name fails early; files are read lazily.
    """
    check_choice("errors", errors, get_args(Errors))
    if not all(fields):
        raise UsageError("the field name is empty; name the field that contains the text, such as 'text'")
    sources = list_sources(paths, errors=errors, on_problem=on_problem)
    for source in sources:
        if source.format == "txt" and len(fields) > 1:
            raise UsageError(
                "{name}: a txt file has no fields; use csv, tsv, jsonl or parquet for pairs", name=source.name
            )

    def records() -> Iterator[tuple[str, Record]]:
        for source in sources:
            complaints = ProblemReporter(source.name, errors, on_problem)
            reader = RecordReader(source.format, fields, max_document_bytes, complaints)
            try:
                with _open(source) as file:
                    if source.format == "parquet":
                        found = reader.parquet(file, source.size or 0, on_bytes)
                    else:
                        found = reader.read(TextBytes(decompress(file_chunks(file, on_bytes), source.compression)))
                    for record in found:
                        yield source.name, record
            except (OSError, Unreadable) as error:
                complaints.pass_over(error)

    return records()


def read_first(source: Source) -> dict[str, Any]:
    """Return the first record of jsonl, or the header of csv or tsv as keys; the file may be compressed."""
    try:
        with _open(source) as file:
            stream = TextBytes(decompress(file_chunks(file), source.compression))
            return RecordReader(source.format, (), MAX_DOCUMENT_BYTES, ProblemReporter(source.name, "skip")).first(
                stream
            )
    except Unreadable as error:
        raise CorpusError("{problem}; fix the input", problem=CorpusProblem(source.name, error.reason)) from error


def field_names(path: str | Path) -> list[str]:
    """Return the field names in the first record of a csv, tsv or jsonl file, which may be compressed.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text("text,label\\nx,1\\n")
    ...     field_names(file)
    ['text', 'label']
    """
    [source] = list_sources([path])
    return [name for name, value in read_first(source).items() if isinstance(value, str | int)]


def _open(source: Source) -> AbstractContextManager[BinaryIO]:
    """Open a source for reading its stored bytes: a file, standard input, the hub or a URL."""
    if source.path == "-":
        return nullcontext(sys.stdin.buffer)
    if source.repository is not None:
        return hub_download(source.repository, source.path, "dataset").open("rb")
    return open_remote(source.path) if source.is_remote else Path(source.path).open("rb")
