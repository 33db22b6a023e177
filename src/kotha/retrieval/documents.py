"""Documents to be indexed: what the corpus readers read, and md, html and pdf beside them.

In txt, md, html and pdf a paragraph is a document, short ones joined with what follows; in jsonl, csv, tsv and parquet
a record is.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import CorpusError
from kotha.i18n.message import Message
from kotha.retrieval.paragraphs import READERS, read_paragraphs
from kotha.retrieval.passages import LETTERS, Excerpt, check_letters, gather
from kotha.storage.status import is_file, is_folder
from kotha.text.corpus.documents import OnBytes, OnProblem, Reading, read_documents
from kotha.text.corpus.problems import Complaints, CorpusProblem, Errors, shown
from kotha.text.corpus.sources import kind_of, list_sources

_KNOWN = [".txt", ".jsonl", ".csv", ".tsv", ".parquet", *READERS]


@dataclass(frozen=True)
class Indexing:
    """How documents are read and cut."""

    letters: int = LETTERS  # of a passage at most
    field: str = "text"  # of a record, that holds the text
    errors: Errors = "stop"  # what happens to a document that cannot be read

    def __post_init__(self) -> None:
        check_letters(self.letters)


@dataclass
class Listed:
    """The files behind what was named, and what could not be looked into."""

    files: list[Path]
    unseen: dict[Path, str]  # and why

    def may_hide(self, source: Path) -> bool:
        """Whether a file that is not listed may be there all the same."""
        return not self.unseen.keys().isdisjoint((source, *source.parents))


def list_files(paths: Sequence[str | os.PathLike[str]], on_problem: OnProblem | None = None) -> Listed:
    """The files behind paths, folders and globs, each once; other kinds in a folder are told of."""
    found: dict[Path, None] = {}
    unseen: dict[Path, str] = {}
    for path in paths:
        place = Path(path).expanduser()
        if is_folder(place):
            inside = list(_readable(place, unseen, on_problem))
            if not inside and (why := unseen.get(place.resolve())):
                raise CorpusError("{place}: cannot be opened ({why})", place=shown(place), why=why)
            if not inside:
                raise CorpusError(
                    "{place}: no file to read in this folder; known: {known}", place=shown(place), known=_KNOWN
                )
            found |= dict.fromkeys(file.resolve() for file in inside)
        elif place.suffix.lower() in READERS and is_file(place):
            found[place.resolve()] = None
        else:
            for source in list_sources([os.fspath(path)], on_problem=on_problem):
                if source.repository is not None or source.is_remote or source.path == "-":
                    raise CorpusError(
                        "{path}: an index keeps files of this machine; save it as one", path=shown(os.fspath(path))
                    )
                found[Path(source.path).resolve()] = None
    return Listed(list(found), unseen)


def read_file(
    file: Path, how: Indexing, on_problem: OnProblem | None = None, on_bytes: OnBytes | None = None
) -> Iterator[Excerpt]:
    """The documents of one file, in their order."""
    if file.suffix.lower() not in READERS:
        kind, _ = kind_of(file.name)
        place = "row" if kind == "parquet" else "line"
        reading: Reading = {"errors": how.errors, "on_problem": on_problem, "on_bytes": on_bytes}
        records = read_documents([file], field=how.field, **reading)
        found = (Excerpt(each.text, str(file), f"{place} {each.position}") for each in records)
        return gather(found, how.letters) if kind == "txt" else found
    complaints = Complaints(shown(file), how.errors, on_problem)
    return gather((Excerpt(text, str(file), place) for text, place in read_paragraphs(file, complaints)), how.letters)


def _is_known(name: str) -> bool:
    try:
        return Path(name).suffix.lower() in READERS or kind_of(name) is not None
    except ValueError:
        return False


def _readable(folder: Path, unseen: dict[Path, str], on_problem: OnProblem | None) -> Iterator[Path]:
    def pass_over(error: OSError) -> None:
        if isinstance(error, FileNotFoundError):  # it was taken away while we looked
            return
        why = error.strerror or type(error).__name__
        unseen[Path(error.filename).resolve()] = why
        if on_problem is not None:
            on_problem(
                CorpusProblem(
                    shown(error.filename), Message("passed over: cannot be opened ({why})", why=why), unread=True
                )
            )

    for place, folders, names in os.walk(folder, onerror=pass_over):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            file = Path(place, name)
            try:
                why = _why_passed_over(file)
            except OSError as error:
                pass_over(error)
                continue
            if why is None:
                yield file
            elif on_problem is not None:
                on_problem(CorpusProblem(shown(file), why))


def _why_passed_over(file: Path) -> Message | None:
    if file.name.startswith("."):
        return Message("passed over: hidden")
    if not _is_known(file.name):
        return Message("passed over: unknown ending")
    return None if is_file(file) else Message("passed over: not a regular file")
