"""From what the user names (files, folders, globs, ``-``, addresses, hub data sets) to the files to read, in order."""

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kotha.errors import CorpusError, UsageError, closest
from kotha.i18n.message import Message, Option, Text
from kotha.text.choices import check_choice
from kotha.text.corpus.hub import choose_files, hub_files, parse_hub_name
from kotha.text.corpus.problems import Complaints, CorpusProblem, Errors, OnProblem, Unreadable, shown, unopened
from kotha.text.corpus.remote import is_remote, list_remote, local_path, scheme_of, told_address

Found = TypeVar("Found", str, Path)

FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")
_ENDINGS = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_COMPRESSIONS = {".gz": "gz", ".zst": "zst"}
_KNOWN = Message("known: {endings}, and all but parquet with .gz or .zst after it", endings=[*_ENDINGS])


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read; ``size`` is its length as stored, None where nobody knows (stdin)."""

    path: str
    format: str
    compression: str | None
    size: int | None
    repository: str | None = None

    @property
    def name(self) -> str:
        """How messages call it."""
        if self.is_remote:
            return shown(told_address(self.path))
        return shown(f"hf:{self.repository}/{self.path}" if self.repository else self.path)

    @property
    def is_remote(self) -> bool:
        """Whether it is read where it lies, elsewhere."""
        return self.repository is None and is_remote(self.path)


def kind_of(name: str, format: str | None = None) -> tuple[str, str | None]:
    """Format and compression by a file's ending; raises Unreadable with the reason when there is none.

    >>> kind_of("news.jsonl.zst"), kind_of("part-00000", format="txt")
    (('jsonl', 'zst'), ('txt', None))
    """
    endings = Path(name.lower()).suffixes or [""]
    compression = _COMPRESSIONS.get(endings[-1])
    ending = endings[-1] if compression is None else "".join(endings[-2:-1])
    kind = format or _ENDINGS.get(ending)
    if kind == "parquet" and compression is not None:
        raise Unreadable(Message("parquet is compressed inside; unpack the file first"))
    if kind is not None:
        return kind, compression
    if ending == ".json":
        raise Unreadable(
            Message(
                "a .json file is one value that would have to be read whole; put one object on each line: jq -c '.[]'"
            )
        )
    raise Unreadable(Message("unknown ending '{ending}'; {known}", ending=shown(ending), known=_KNOWN))


def list_sources(
    paths: Sequence[str | Path | Source],
    *,
    format: str | None = None,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> list[Source]:
    """The files behind what the user named, in a fixed order, each once.

    Folders are walked in sorted order; hidden files, symlinked folders and unknown endings in them are passed over,
    and ``on_problem`` hears of each. A name that stands for nothing at all is always a CorpusError.
    """
    check_choice("format", format or "txt", FORMATS)
    if isinstance(paths, str | Path):
        raise UsageError("{paths} is one path; give a list of them", paths=Option("paths", str(paths)))
    found: dict[tuple[str | None, str], Source] = {}
    for path in paths:
        for source in [path] if isinstance(path, Source) else _sources(str(path), format, errors, on_problem):
            as_named = source.repository or source.is_remote or source.path == "-"
            key = source.path if as_named else os.path.realpath(source.path)
            found.setdefault((source.repository, key), source)
    return list(found.values())


def _sources(path: str, format: str | None, errors: Errors, on_problem: OnProblem | None) -> Iterable[Source]:
    if path == "-":
        return [Source("-", format or "txt", None, None)]
    if path.startswith("hf:"):
        return _hub_sources(path, format)
    complaints = Complaints(shown(told_address(path)), errors, on_problem)
    try:
        if is_remote(path) and scheme_of(path) != "file":
            sizes = dict(list_remote(path))
            look = lambda address: Source(address, *kind_of(told_address(address), format), sizes[address])
            return list(_several(sizes, [*sizes] == [path], look, complaints))
        place = Path(local_path(path) if is_remote(path) else path).expanduser()
        if place.is_dir():
            return list(_several(_walk(place, complaints), False, lambda path: _file(path, format), complaints))
        if glob.has_magic(str(place)) and not place.exists():
            matches = sorted(map(Path, glob.iglob(str(place), recursive=True)))  # noqa: PTH207 - Path.glob wants a root
            files = (file for match in matches for file in _walk(match, complaints))
            return list(_several(files, False, lambda path: _file(path, format), complaints))
        return [_file(place, format, may_be_pipe=format is not None)]
    except FileNotFoundError as error:
        raise _not_there(path, complaints.source) from error
    except (OSError, ValueError) as error:
        raise CorpusError("{path}: {why}", path=complaints.source, why=_reason(error)) from error


def _several(
    files: Iterable[Found], alone: bool, look: Callable[[Found], Source], complaints: Complaints
) -> Iterator[Source]:
    """Those files that can be read, at least one; the others are passed over, unless one was named ``alone``."""
    count = passed_over = 0
    for file in files:
        name = told_address(str(file))
        try:
            if Path(name).name.startswith("."):
                raise Unreadable(Message("hidden"))
            source = look(file)
        except ValueError as error:
            if alone:
                raise
            passed_over += 1
            complaints.note(CorpusProblem(shown(name), Message("passed over: {why}", why=_reason(error))))
        except OSError as error:
            Complaints(shown(name), complaints.errors, complaints.note).report_unopened(error)
        else:
            count += 1
            yield source
    if not count:
        more = Message(" ({n} passed over as hidden or of an unknown ending)", n=passed_over) if passed_over else ""
        raise CorpusError(
            "{source}: no file to read there{more}; {known}", source=complaints.source, more=more, known=_KNOWN
        )


def _walk(start: Path, complaints: Complaints) -> Iterator[Path]:
    """The files at or under a path, sorted; hidden and symlinked folders stand for themselves and are not entered."""
    if not start.is_dir():
        yield start
        return

    def unreadable(error: OSError) -> None:
        Complaints(shown(error.filename), complaints.errors, complaints.note).report_unopened(error)

    for folder, folders, files in os.walk(start, onerror=unreadable):
        left_out = [name for name in folders if name.startswith(".") or Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(left_out))
        yield from (Path(folder, name) for name in sorted(files + left_out))


def _file(path: Path, format: str | None, *, may_be_pipe: bool = False) -> Source:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable(Message("a symlinked folder"))
    kind, compression = kind_of(path.name, format)
    if not (stat.S_ISREG(status.st_mode) or may_be_pipe):
        raise Unreadable(Message("not a regular file; to read a pipe, name it and its format"))
    return Source(str(path), kind, compression, status.st_size)


def _reason(error: OSError | ValueError) -> Text:
    if isinstance(error, OSError):
        return unopened(error)
    return error.reason if isinstance(error, Unreadable) else str(error)


def _not_there(path: str, name: str) -> CorpusError:
    try:
        likely = (
            None if is_remote(path) else closest(Path(path).name, [each.name for each in Path(path).parent.iterdir()])
        )
    except OSError:
        folder = shown(Path(path).parent)
        return CorpusError("{path} does not exist, nor does the folder {folder}", path=name, folder=folder)
    if likely is None:
        return CorpusError("{path} does not exist", path=name)
    return CorpusError("{path} does not exist; did you mean {likely!r}?", path=name, likely=likely)


def _hub_sources(name: str, format: str | None) -> list[Source]:
    repository, split, config = parse_hub_name(name)
    found: dict[str, Source] = {}
    for path, size in hub_files(repository, "dataset"):
        with suppress(ValueError):  # a file that is no text
            kind, compression = kind_of(path)
            found[path] = Source(path, format or kind, compression, size, repository)
    return [found[path] for path in choose_files(name, sorted(found), split, config)]
