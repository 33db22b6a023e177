"""From what the user names (files, folders, globs, ``-``, addresses, hub data sets) to the files to read, in order."""

import glob
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import CorpusError, UsageError, closest, nearest
from kotha.i18n.message import Message, Option, Text
from kotha.storage.status import is_folder, is_link, is_there
from kotha.text.corpus.hub import Hub, choose_files, parse_hub_name
from kotha.text.corpus.problems import Complaints, CorpusProblem, Errors, Unreadable, shown, unopened
from kotha.text.corpus.remote import is_remote, list_remote, local_path, scheme_of, told_address

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
    on_problem: Callable[[CorpusProblem], None] | None = None,
    hub: Hub | None = None,
) -> list[Source]:
    """The files behind what the user named, in a fixed order, each once.

    Folders are walked in sorted order; hidden files, symlinked folders and unknown endings in them are passed over,
    and ``on_problem`` hears of each. A name that stands for nothing at all is always a CorpusError.
    """
    if format is not None and format not in FORMATS:
        raise UsageError(
            "{format} is not a format{nearest}", format=Option("format", format), nearest=nearest(format, FORMATS)
        )
    if isinstance(paths, str | Path):
        raise UsageError("{paths} is one path; give a list of them", paths=Option("paths", str(paths)))
    found: dict[tuple[str | None, str], Source] = {}
    for path in paths:
        if isinstance(path, Source):
            sources: Iterable[Source] = [path]
        elif str(path).startswith("hf:"):
            sources = _hub_sources(str(path), format, hub or Hub())
        elif is_remote(path) and scheme_of(str(path)) != "file":
            complaints = Complaints(shown(told_address(str(path))), errors, on_problem)
            sources = _remote_sources(str(path), format, complaints)
        else:
            place = local_path(str(path)) if is_remote(path) else path
            sources = _named(place, format, Complaints(shown(place), errors, on_problem))
        for source in sources:
            as_named = source.repository or source.is_remote or source.path == "-"
            key = source.path if as_named else os.path.realpath(source.path)
            found.setdefault((source.repository, key), source)
    return list(found.values())


def _named(path: str | Path, format: str | None, complaints: Complaints) -> Iterator[Source]:
    if str(path) == "-":
        yield Source("-", format or "txt", None, None)
        return
    path = Path(path).expanduser()
    try:
        if glob.has_magic(str(path)) and not is_there(path):
            found = sorted(map(Path, glob.iglob(str(path), recursive=True)))  # noqa: PTH207 - Path.glob wants a root
            yield from _several(found, format, complaints, Message("no file matches this glob"))
        elif is_folder(path):
            yield from _several([path], format, complaints, Message("no file to read in this folder"))
        else:
            yield _file(path, format, may_be_pipe=format is not None)
    except FileNotFoundError as error:
        raise _not_there(path) from error
    except (OSError, ValueError) as error:
        raise CorpusError("{path}: {why}", path=shown(path), why=_reason(error)) from error


def _several(paths: list[Path], format: str | None, complaints: Complaints, none: Message) -> Iterator[Source]:
    """The files among these and within the folders among these; at least one, or a CorpusError that says ``none``."""
    count = passed_over = 0
    for path in (file for start in paths for file in _walk(start, complaints)):
        try:
            if path.name.startswith("."):
                raise Unreadable(Message("hidden"))
            if is_folder(path):
                raise Unreadable(Message("a symlinked folder"))
            source = _file(path, format, may_be_pipe=False)
        except ValueError as error:
            passed_over += 1
            complaints.note(CorpusProblem(shown(path), Message("passed over: {why}", why=_reason(error))))
        except OSError as error:
            Complaints(shown(path), complaints.errors, complaints.note).report_unopened(error)
        else:
            count += 1
            yield source
    if not count:
        more = Message(" ({n} passed over as hidden or of an unknown ending)", n=passed_over) if passed_over else ""
        raise CorpusError(
            "{source}: {none}{more}; {known}", source=complaints.source, none=none, more=more, known=_KNOWN
        )


def _walk(start: Path, complaints: Complaints) -> Iterator[Path]:
    """The files at or under a path, sorted; hidden and symlinked folders stand for themselves and are not entered."""
    if not is_folder(start):
        yield start
        return

    def unreadable(error: OSError) -> None:
        Complaints(shown(error.filename), complaints.errors, complaints.note).report_unopened(error)

    for folder, folders, files in os.walk(start, onerror=unreadable):
        left_out = [name for name in folders if name.startswith(".") or is_link(Path(folder, name))]
        folders[:] = sorted(set(folders) - set(left_out))
        yield from (Path(folder, name) for name in sorted(files + left_out))


def _file(path: Path, format: str | None, *, may_be_pipe: bool) -> Source:
    status = path.stat()
    kind, compression = kind_of(path.name, format)
    if not (stat.S_ISREG(status.st_mode) or may_be_pipe):
        raise Unreadable(Message("not a regular file; to read a pipe, name it and its format"))
    return Source(str(path), kind, compression, status.st_size)


def _reason(error: OSError | ValueError) -> Text:
    if isinstance(error, OSError):
        return unopened(error)
    return error.reason if isinstance(error, Unreadable) else str(error)


def _not_there(path: Path) -> CorpusError:
    try:
        likely = closest(path.name, [other.name for other in path.parent.iterdir()])
    except OSError:
        folder = shown(path.parent)
        return CorpusError("{path} does not exist, nor does the folder {folder}", path=shown(path), folder=folder)
    if likely is None:
        return CorpusError("{path} does not exist", path=shown(path))
    return CorpusError("{path} does not exist; did you mean {likely!r}?", path=shown(path), likely=likely)


def _remote_sources(url: str, format: str | None, complaints: Complaints) -> Iterator[Source]:
    """The files behind an address; among several, those of an unknown ending are passed over."""
    try:
        found = list_remote(url)
    except FileNotFoundError as error:
        raise CorpusError("{path} does not exist", path=complaints.source) from error
    except OSError as error:
        raise CorpusError("{source}: {why}", source=complaints.source, why=_reason(error)) from error
    alone = [address for address, _ in found] == [url]
    count = 0
    for address, size in found:
        name = told_address(address)
        try:
            if name.rpartition("/")[2].startswith("."):
                raise Unreadable(Message("hidden"))
            kind, compression = kind_of(name, format)
        except ValueError as error:
            if alone:
                raise CorpusError("{name}: {why}", name=shown(name), why=_reason(error)) from error
            complaints.note(CorpusProblem(shown(name), Message("passed over: {why}", why=_reason(error))))
        else:
            count += 1
            yield Source(address, kind, compression, size)
    if not count:
        raise CorpusError("{source}: no file to read there; {known}", source=complaints.source, known=_KNOWN)


def _hub_sources(name: str, format: str | None, hub: Hub) -> list[Source]:
    repository, split, config = parse_hub_name(name)
    found: dict[str, Source] = {}
    for path, size in hub.files(repository):
        with suppress(ValueError):  # a file that is no text
            kind, compression = kind_of(path)
            found[path] = Source(path, format or kind, compression, size, repository)
    return [found[path] for path in choose_files(name, sorted(found), split, config)]
