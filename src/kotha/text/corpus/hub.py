"""The Hugging Face hub: files of a repository, and datasets by name, ``hf:owner/name[:split[:config]]``.

The hub stores most datasets as parquet, jsonl or csv files whose names contain split and configuration, such as
``20231101.bn/train-00000-of-00002.parquet``. These files are listed, chosen by name, downloaded one at a time into the
hub's cache, and read like any other file. Datasets that exist only as a loading script cannot be read.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from kotha.errors import CorpusError, InstallCommand, TokenizerError, UsageError, library, nearest
from kotha.i18n.message import Message

_NAME = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(?::(?P<split>[\w.-]*)(?::(?P<config>[^:]+))?)?")
_SPLITS = ("train", "training", "validation", "valid", "dev", "val", "test", "testing", "eval", "evaluation")
# Folder names that are not configurations.
_PLAIN_FOLDERS = {"data", "", *_SPLITS}
_OFFLINE = Message("to work offline, download the files on another machine and pass their folder")

Kind = Literal["dataset", "model"]


def hub_files(repository: str, kind: Kind) -> list[tuple[str, int | None]]:
    """Return the path and size of each file of a repository."""
    with _hub_library(repository, kind) as hub:
        tree = hub.HfApi().list_repo_tree(repository, repo_type=kind, recursive=True)
        return [(item.path, item.size) for item in tree if isinstance(item, hub.RepoFile)]


def hub_download(repository: str, path: str, kind: Kind) -> Path:
    """Return the local path of a file, downloading it to the hub's cache if needed."""
    with _hub_library(repository, kind) as hub:
        return Path(hub.HfApi().hf_hub_download(repository, path, repo_type=kind))


@contextmanager
def _hub_library(repository: str, kind: Kind) -> Iterator[Any]:
    """Yield the huggingface_hub module; its exceptions in the block are raised as a CorpusError or a TokenizerError."""
    error_class = CorpusError if kind == "dataset" else TokenizerError
    hub = library(
        "huggingface_hub",
        Message("the hub needs huggingface_hub; install it with: {command}", command=InstallCommand("hub")),
        error_class,
    )
    try:
        yield hub
    except Exception as error:  # the library raises many exception types
        why = " ".join(str(error).split())[:200] or type(error).__name__
        if type(error).__name__ in ("RepositoryNotFoundError", "GatedRepoError", "HFValidationError"):
            reason = Message("not found locally or on the hub, or it requires a login: {why}", why=why)
        else:
            reason = Message("the hub cannot be reached ({why}); {offline}", why=why, offline=_OFFLINE)
        raise error_class("{name}: {reason}", name=repository, reason=reason) from error


def parse_hub_name(name: str) -> tuple[str, str, str | None]:
    """Split a hub name into dataset, split (default: train) and configuration.

    >>> parse_hub_name("hf:wikimedia/wikipedia:train:20231101.bn")
    ('wikimedia/wikipedia', 'train', '20231101.bn')
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        raise UsageError("{name!r} is not a hub name; use the form hf:owner/name[:split[:config]]", name=name)
    return parts["repository"], parts["split"] or "train", parts["config"]


def choose_files(name: str, files: Sequence[str], split: str, config: str | None) -> list[str]:
    """Return the files of one split and configuration, selected by their names.

    >>> choose_files("hf:a/b", ["data/test-0.parquet", "data/train-0.parquet"], "train", None)
    ['data/train-0.parquet']
    """
    if not files:
        raise CorpusError(
            "{name}: no txt, jsonl, csv, tsv or parquet file in this dataset; {offline}", name=name, offline=_OFFLINE
        )
    folders = ([folder for folder in file.split("/")[:-1] if folder not in _PLAIN_FOLDERS] for file in files)
    configs = {some[-1] for some in folders if some}
    if config is None and len(configs) > 1:
        raise CorpusError(
            "{name} has {n} configurations; choose one as hf:owner/name:{split}:CONFIG: {some}",
            name=name,
            n=len(configs),
            split=split,
            some=sorted(configs)[:8],
        )
    if config is not None:
        files = [file for file in files if config in file.split("/")[:-1]]
        if not files:
            near = nearest(config, configs)
            raise CorpusError("{name} has no configuration {config!r}{nearest}", name=name, config=config, nearest=near)
    splits = {file: _split(file) for file in files}
    if not any(splits.values()):
        return list(files)
    chosen = [file for file in files if splits[file] == split]
    if not chosen:
        near = nearest(split, filter(None, splits.values()))
        raise CorpusError("{name} has no split {split!r}{nearest}", name=name, split=split, nearest=near)
    return chosen


def _split(file: str) -> str:
    """Return the split in the first word of a file name or in one of its folders; empty if there is none."""
    *folders, name = file.split("/")
    words = [re.split(r"[-_.]", name)[0], *reversed(folders)]
    return next((word for word in words if word in _SPLITS), "")
