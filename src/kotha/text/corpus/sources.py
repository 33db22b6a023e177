"""From what the user names (files, folders, globs, ``-``, addresses, hub data sets) to the files to read, in order."""

import glob
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import CorpusError, UsageError, closest
from kotha.i18n.message import Message, Option
from kotha.text.choices import Errors
from kotha.text.corpus.hub import choose_files, hub_files, parse_hub_name
from kotha.text.corpus.problems import Complaints, CorpusProblem, OnProblem, Unreadable, shown, why
from kotha.text.corpus.remote import is_remote, list_remote, told_address

_ENDINGS = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_COMPRESSIONS = {".gz": "gz", ".zst": "zst"}
_KNOWN = Message("supported: {endings}; all but parquet may also be compressed (.gz, .zst)", endings=[*_ENDINGS])


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


def kind_of(name: str) -> tuple[str, str | None]:
    """Format and compression by a file's ending; raises Unreadable with the reason when there is none.

    >>> kind_of("news.jsonl.zst")
    ('jsonl', 'zst')
    """
    endings = Path(name.lower()).suffixes or [""]
    compression = _COMPRESSIONS.get(endings[-1])
    ending = endings[-1] if compression is None else "".join(endings[-2:-1])
    kind = _ENDINGS.get(ending)
    if kind == "parquet" and compression is not None:
        raise Unreadable(Message("a compressed parquet file cannot be read; decompress it first"))
    if kind is not None:
        return kind, compression
    if ending == ".json":
        whole = "a .json file is one value and cannot be streamed; put one object on each line: jq -c '.[]'"
        raise Unreadable(Message(whole))
    raise Unreadable(Message("unknown file extension '{ending}'; {known}", ending=shown(ending), known=_KNOWN))


def list_sources(
    paths: Sequence[str | Path | Source],
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
    others: Collection[str] = (),
) -> list[Source]:
    """The files behind what the user named, in a fixed order, each once; ``others`` are endings that the caller reads.

    Folders are walked in sorted order; hidden files, symlinked folders and unknown endings in them are passed over,
    and ``on_problem`` hears of each. A name that stands for nothing at all is always a CorpusError.
    """
    if isinstance(paths, str | Path):
        raise UsageError("{paths} is a single path; give a list of paths", paths=Option("paths", str(paths)))
    found: dict[tuple[str | None, str], Source] = {}
    for path in paths:
        for source in [path] if isinstance(path, Source) else _sources(str(path), others, errors, on_problem):
            as_named = source.repository or source.is_remote or source.path == "-"
            key = source.path if as_named else os.path.realpath(source.path)
            found.setdefault((source.repository, key), source)
    return list(found.values())


def _sources(path: str, others: Collection[str], errors: Errors, on_problem: OnProblem | None) -> list[Source]:
    if path == "-":
        return [Source("-", "txt", None, None)]
    if path.startswith("hf:"):
        return _hub_sources(path)
    complaints = Complaints(shown(told_address(path)), errors, on_problem)
    look: Callable[[str], Source]
    try:
        if is_remote(path):
            sizes = list_remote(path)
            names = list(sizes)
            look = lambda name: Source(name, *kind_of(told_address(name)), sizes[name])
        else:
            path = str(Path(path).expanduser())
            names = list(_files_at(path, complaints))
            look = lambda name: _file(Path(name), others)
        return [look(path)] if names == [path] else list(_readable(names, look, complaints))
    except FileNotFoundError as error:
        near = closest(Path(path).name, [each.name for each in Path(path).parent.glob("*")])
        meant = Message("; did you mean {name!r}?", name=near) if near else ""
        raise CorpusError("{path} does not exist{meant}", path=complaints.source, meant=meant) from error
    except (OSError, ValueError) as error:
        raise CorpusError("{path}: {why}", path=complaints.source, why=why(error)) from error


def _readable(names: list[str], look: Callable[[str], Source], complaints: Complaints) -> Iterator[Source]:
    """Those of several files that can be read, at least one; the others are passed over."""
    count = 0
    for name in names:
        about = Complaints(shown(told_address(name)), complaints.errors, complaints.note)
        try:
            if Path(told_address(name)).name.startswith("."):
                raise Unreadable(Message("hidden"))
            source = look(name)
        except ValueError as error:
            complaints.note(CorpusProblem(about.source, Message("skipped: {why}", why=why(error))))
        except OSError as error:
            about.pass_over(error)
        else:
            count += 1
            yield source
    if not count:
        raise CorpusError("{source}: no supported files found; {known}", source=complaints.source, known=_KNOWN)


def _files_at(path: str, complaints: Complaints) -> Iterator[str]:
    """A file itself, those under a folder, or under what a glob matches, sorted.

    Hidden and symlinked folders stand for themselves and are not entered.
    """

    def unreadable(error: OSError) -> None:
        Complaints(shown(error.filename), complaints.errors, complaints.note).pass_over(error)

    if glob.has_magic(path) and not Path(path).exists():
        for match in sorted(glob.iglob(path, recursive=True)):  # noqa: PTH207 - Path.glob wants a root
            yield from _files_at(match, complaints)
    elif not Path(path).is_dir():
        yield path
    for folder, folders, files in os.walk(path, onerror=unreadable) if Path(path).is_dir() else ():
        left_out = [name for name in folders if name.startswith(".") or Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(left_out))
        yield from (str(Path(folder, name)) for name in sorted(files + left_out))


def _file(path: Path, others: Collection[str]) -> Source:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable(Message("a symlinked folder"))
    kind, compression = ("txt", None) if path.suffix.lower() in others else kind_of(path.name)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(Message("not a regular file; to read a pipe, give - for standard input"))
    return Source(str(path), kind, compression, status.st_size)


def _hub_sources(name: str) -> list[Source]:
    repository, split, config = parse_hub_name(name)
    found: dict[str, Source] = {}
    for path, size in hub_files(repository, "dataset"):
        with suppress(ValueError):  # a file that is no text
            kind, compression = kind_of(path)
            found[path] = Source(path, kind, compression, size, repository)
    return [found[path] for path in choose_files(name, sorted(found), split, config)]
