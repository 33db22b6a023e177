"""Resolve user input (files, folders, globs, ``-``, URLs, hub datasets) to an ordered list of files."""

import glob
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from kotha.errors import CorpusError, UsageError, closest
from kotha.i18n.message import Message, Option
from kotha.text.choices import Errors
from kotha.text.corpus.hub import choose_files, hub_files, parse_hub_name
from kotha.text.corpus.problems import CorpusProblem, OnProblem, ProblemReporter, Unreadable, shown, why
from kotha.text.corpus.remote import is_remote, list_remote, redacted_address

_ENDINGS = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_COMPRESSIONS = {".gz": "gz", ".zst": "zst"}
_KNOWN = Message("supported: {endings}; all but parquet may also be compressed (.gz, .zst)", endings=[*_ENDINGS])


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read; ``size`` is its stored length, None if unknown (stdin)."""

    path: str
    format: str
    compression: str | None
    size: int | None
    repository: str | None = None

    @property
    def name(self) -> str:
        """The name of the source in messages."""
        if self.is_remote:
            return shown(redacted_address(self.path))
        return shown(f"hf:{self.repository}/{self.path}" if self.repository else self.path)

    @property
    def is_remote(self) -> bool:
        """Whether the file is read from a URL."""
        return self.repository is None and is_remote(self.path)


def kind_of(name: str) -> tuple[str, str | None]:
    """Return the format and compression of a file by its extension; raise Unreadable if it is not supported.

    >>> kind_of("news.jsonl.zst")
    ('jsonl', 'zst')
    """
    suffixes = Path(name.lower()).suffixes or [""]
    compression = _COMPRESSIONS.get(suffixes[-1])
    ending = suffixes[-1] if compression is None else "".join(suffixes[-2:-1])
    kind = _ENDINGS.get(ending)
    if kind == "parquet" and compression is not None:
        raise Unreadable(Message("a compressed parquet file cannot be read; decompress it first"))
    if kind is not None:
        return kind, compression
    if ending == ".json":
        reason = "a .json file is a single value and cannot be streamed; write one object per line: jq -c '.[]'"
        raise Unreadable(Message(reason))
    raise Unreadable(Message("unknown file extension '{ending}'; {known}", ending=shown(ending), known=_KNOWN))


def list_sources(
    paths: Sequence[str | Path | Source],
    *,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
    others: Collection[str] = (),
) -> list[Source]:
    """Return the files that user input refers to, without duplicates, in a fixed order.

    Files with extensions in ``others`` are read as txt.

    Folders are walked in sorted order; hidden files, symlinked folders and files with unknown extensions are skipped
    and reported to ``on_problem``. A name that matches no supported file always raises a CorpusError.
    """
    if isinstance(paths, str | Path):
        raise UsageError("{paths} is a single path; pass a list of paths", paths=Option("paths", str(paths)))
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
    complaints = ProblemReporter(shown(redacted_address(path)), errors, on_problem)
    make_source: Callable[[str], Source]
    try:
        if is_remote(path):
            sizes = list_remote(path)
            names = list(sizes)
            make_source = lambda name: Source(name, *kind_of(redacted_address(name)), sizes[name])
        else:
            path = str(Path(path).expanduser())
            names = list(_files_at(path, complaints))
            make_source = lambda name: _file(Path(name), others)
        return [make_source(path)] if names == [path] else list(_readable(names, make_source, complaints))
    except FileNotFoundError as error:
        near = closest(Path(path).name, [each.name for each in Path(path).parent.glob("*")])
        meant = Message("; did you mean {name!r}?", name=near) if near else Message("; name an existing file or folder")
        raise CorpusError("{path} does not exist{meant}", path=complaints.source, meant=meant) from error
    except (OSError, ValueError) as error:
        raise CorpusError("{path}: {why}", path=complaints.source, why=why(error)) from error


def _readable(names: list[str], make_source: Callable[[str], Source], complaints: ProblemReporter) -> Iterator[Source]:
    """Yield the files that can be read and report the others; raise an error if there are none."""
    count = 0
    for name in names:
        about = ProblemReporter(shown(redacted_address(name)), complaints.errors, complaints.note)
        try:
            if Path(redacted_address(name)).name.startswith("."):
                raise Unreadable(Message("hidden"))
            source = make_source(name)
        except ValueError as error:
            complaints.note(CorpusProblem(about.source, Message("skipped: {why}", why=why(error))))
        except OSError as error:
            about.pass_over(error)
        else:
            count += 1
            yield source
    if not count:
        raise CorpusError("{source}: no supported files found; {known}", source=complaints.source, known=_KNOWN)


def _files_at(path: str, complaints: ProblemReporter, root: str = "") -> Iterator[str]:
    """Yield a file, or all files under a folder or under the matches of a glob, sorted.

    Hidden and symlinked folders are yielded but not entered. A link to a file outside the folder, or outside the part
    of a glob before its first wildcard (``root``), is reported and skipped: the owner of the folder can let it point to
    any file that the reader may open.
    """

    def unreadable(error: OSError) -> None:
        ProblemReporter(shown(error.filename), complaints.errors, complaints.note).pass_over(error)

    if glob.has_magic(path) and not Path(path).exists():
        root = str(Path(*takewhile(lambda part: not glob.has_magic(part), Path(path).parts)))
        for match in sorted(glob.iglob(path, recursive=True)):  # noqa: PTH207 - Path.glob wants a root
            if _is_under(match, root, complaints):
                yield from _files_at(match, complaints, root)
    elif not Path(path).is_dir():
        yield path
    for folder, folders, files in os.walk(path, onerror=unreadable) if Path(path).is_dir() else ():
        not_entered = [name for name in folders if name.startswith(".") or Path(folder, name).is_symlink()]
        folders[:] = sorted(set(folders) - set(not_entered))
        for file in (Path(folder, name) for name in sorted(files + not_entered)):
            if not file.is_symlink() or _is_under(str(file), root or path, complaints):
                yield str(file)


def _is_under(file: str, folder: str, complaints: ProblemReporter) -> bool:
    """Whether a file is in a folder after all links are resolved; report it if not."""
    if Path(os.path.realpath(file)).is_relative_to(os.path.realpath(folder)):
        return True
    why = Message("a symbolic link to a place outside the folder; to read it, name its target")
    complaints.note(CorpusProblem(shown(file), Message("skipped: {why}", why=why)))
    return False


def _file(path: Path, others: Collection[str]) -> Source:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable(Message("a symlinked folder"))
    kind, compression = ("txt", None) if path.suffix.lower() in others else kind_of(path.name)
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(Message("not a regular file; to read from a pipe, use - for standard input"))
    return Source(str(path), kind, compression, status.st_size)


def _hub_sources(name: str) -> list[Source]:
    repository, split, config = parse_hub_name(name)
    found: dict[str, Source] = {}
    for path, size in hub_files(repository, "dataset"):
        with suppress(ValueError):  # not a supported format
            kind, compression = kind_of(path)
            found[path] = Source(path, kind, compression, size, repository)
    return [found[path] for path in choose_files(name, sorted(found), split, config)]
