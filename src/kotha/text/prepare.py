"""Prepare a data folder from documents: split, clean, encode and write.

The files are read twice. The first pass counts documents, marks duplicates, and draws the validation documents with a
seed. The second pass encodes the documents with a worker pool, in reading order, so the result does not depend on the
number or location of workers. Memory holds only the validation documents (up to a maximum number), one byte and one
hash per document, and a few batches in flight.

A training document that contains most of a validation document is excluded and counted as leaked. If the only
validation document makes up most of the text, such as a book without blank lines, only its end is held out.
"""

import heapq
import os
import re
import shutil
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

import kotha
from kotha.errors import CorpusError, DataError, UsageError
from kotha.i18n.message import Message, OnProgress, Option
from kotha.i18n.short_repr import ShortRepr
from kotha.storage.atomic import atomic_directory
from kotha.text.choices import Errors, check_choice
from kotha.text.clean.duplicates import Duplicates, mark_duplicates
from kotha.text.clean.language import main_language
from kotha.text.clean.leakage import DEFAULT_THRESHOLD, LeakIndex
from kotha.text.clean.shingles import GOLDEN, mix
from kotha.text.corpus.documents import read_documents
from kotha.text.corpus.problems import CorpusProblem
from kotha.text.corpus.sources import list_sources
from kotha.text.encoding import EncodedDocument, encode_documents
from kotha.text.held_out import end_token
from kotha.text.parallel import check_workers, worker_pool
from kotha.text.parallel.local import WorkerPool
from kotha.text.shards import DTYPES, SplitWriter, dtype_for, is_data_folder, write_description
from kotha.text.tokenizer.prompt import unframed
from kotha.text.tokenizer.tokenizer import Tokenizer

TRAIN, VALIDATION = _SPLITS = "train", "validation"
_STDIN_FILE = "stdin.txt"
# Smaller inputs are encoded in this process: starting workers would take longer.
_SMALL_BYTES = 4 << 20
# Samples from which the language of a corpus is detected.
_SAMPLE_CHARACTERS, _MOST_SAMPLES = 400, 400
# The end of a line or of a sentence.
_BREAKS = re.compile(r"\n|[।॥.?!…][”’\"']?\s")


@dataclass(frozen=True)
class PrepareOptions:
    """Options of ``prepare``."""

    validation: float | str | Path = 0.05  # share of documents to hold out, or a file with held-out documents
    seed: int = 0  # random seed for drawing the held-out documents
    field: str = "text"  # field or column that contains the text
    errors: Errors = "stop"  # how to handle a document that cannot be read: stop or skip
    duplicates: Duplicates = "exact"
    """Which duplicates to remove: none (keep), equal documents (exact), or also similar ones (near)."""
    leak_threshold: float | None = DEFAULT_THRESHOLD
    """Exclude training documents that contain at least this share of a validation document; None disables the check."""
    max_validation_documents: int = 10_000
    """Maximum number of validation documents drawn by share; more would not improve the evaluation."""
    workers: int | None = None  # encoding processes (default: one per core; for a small corpus, this process)
    on: str | None = None  # where workers run: None for this machine, or a Ray cluster: ray, ray://HOST:PORT
    overwrite: bool = False  # whether to replace an existing data folder

    def __post_init__(self) -> None:
        if isinstance(self.validation, float | int) and not 0 <= self.validation < 1:
            raise UsageError(
                "{validation} must be at least 0 and below 1, such as 0.05, or the path of a file",
                validation=Option("validation", self.validation),
            )
        check_choice("duplicates", self.duplicates, get_args(Duplicates))
        check_workers(self.on, self.workers)


@dataclass(repr=False)
class PrepareReport(ShortRepr):
    """The numbers of documents, tokens and bytes written, and of documents excluded."""

    train_documents: int = 0
    validation_documents: int = 0
    train_tokens: int = 0
    validation_tokens: int = 0
    train_bytes: int = 0
    validation_bytes: int = 0
    leaked: int = 0
    duplicates: int = 0
    problems: int = 0
    cut: bool = False  # whether only the end of a document is held out, because the document is most of the text
    language: str = ""  # the language of most of the text, as an ISO 639 code; empty if undetermined
    tokenizer: str = ""
    path: str = ""  # the data folder

    def __fspath__(self) -> str:
        return self.path


def prepare(
    paths: Sequence[str | Path],
    tokenizer: Tokenizer,
    out: str | Path,
    options: PrepareOptions | None = None,
    *,
    on_progress: OnProgress | None = None,
    on_problem: Callable[[CorpusProblem], None] | None = None,
) -> PrepareReport:
    """Create a data folder at ``out`` from the documents at ``paths``; if this fails, no folder is created."""
    options = options or PrepareOptions()
    eos = end_token(tokenizer)
    tokenizer = unframed(tokenizer)  # shards contain no special tokens other than end-of-text
    report = PrepareReport(tokenizer=tokenizer.fingerprint, path=str(out))

    def count_problem(problem: CorpusProblem) -> None:
        report.problems += 1
        if on_problem is not None:
            on_problem(problem)

    with atomic_directory(Path(out), lambda old: options.overwrite and is_data_folder(old)) as folder:
        job = _Job(_spool_stdin(paths, folder), tokenizer, options, on_progress, count_problem)
        with ExitStack() as stack:
            pool = stack.enter_context(worker_pool(options.on, options.workers, job.workers))
            job.survey(pool)
            writers = {name: stack.enter_context(SplitWriter(folder, name, job.dtype, eos)) for name in _SPLITS}
            encoded = stack.enter_context(closing(job.encoded(pool)))
            for document in encoded:
                if document.leaked and document.label == TRAIN:
                    report.leaked += 1
                elif len(document.ids):
                    writers[document.label].add(document.ids, document.n_bytes, document.n_characters)
            infos = {name: writer.close() for name, writer in writers.items()}
        (folder / _STDIN_FILE).unlink(missing_ok=True)
        for name, info in infos.items():
            for figure in ("documents", "tokens", "bytes"):
                setattr(report, f"{name}_{figure}", getattr(info, figure))
        report.duplicates, report.cut = job.kept.count(0), job.cut is not None
        report.language = main_language(job.samples) or ""
        if not report.train_documents:
            raise CorpusError("no training documents are left; lower the validation share, or relax the leak check")
        write_description(folder, tokenizer, infos, job.made_by(report))
    return report


class _Job:
    """One run of ``prepare``: both passes over the files and the state they share."""

    def __init__(
        self,
        paths: Sequence[str | Path],
        tokenizer: Tokenizer,
        options: PrepareOptions,
        on_progress: OnProgress | None,
        on_problem: Callable[[CorpusProblem], None],
    ) -> None:
        self.tokenizer, self.options = tokenizer, options
        self.dtype = dtype_for(tokenizer.vocab_size)
        self._on_progress, self._on_problem = on_progress, on_problem
        self._sources = list_sources(paths, errors=options.errors, on_problem=on_problem)
        self._total = sum(source.size or 0 for source in self._sources)
        self.workers = (self._total > _SMALL_BYTES and os.cpu_count()) or 1  # local
        self.kept = bytearray()  # one per document, set by survey(): 1 to keep it, 0 for a duplicate
        self.held_out: dict[int, str] = {}  # validation documents by index; negative if from a separate file
        self.samples: list[str] = []  # the beginnings of documents spread over the corpus, to detect its language
        self.cut: int | None = None  # where the held-out part starts, if only the end of one document is held out

    def made_by(self, report: PrepareReport) -> dict[str, Any]:
        """Return the folder's ``made_by`` entry, which has only values that are equal in every run."""
        return {
            "kotha": kotha.__version__,
            "sources": [Path(source.name).name for source in self._sources],
            "seed": self.options.seed,
            "validation": str(self.options.validation),
            "leaked": report.leaked,
            "duplicates": report.duplicates,
            "problems": report.problems,
            "language": report.language or None,
        }

    def survey(self, pool: WorkerPool) -> None:
        """First pass: count documents, mark duplicates, and draw the validation documents."""
        requested, share = self.options.validation, 0.0
        if isinstance(requested, float | int):
            share = requested
        else:
            held_out = read_documents([requested], field=self.options.field, errors=self.options.errors)
            self.held_out = {-1 - index: document.text for index, document in enumerate(held_out)}
            if self.options.duplicates == "keep":
                return
        drawn: list[tuple[int, int, str]] = []  # a heap with the largest priority at the top
        n_characters = 0
        texts = self._read(Message("surveying"), self._on_problem)
        for index, (text, is_new) in enumerate(mark_duplicates(texts, self.options.duplicates, pool)):
            self.kept.append(is_new)
            if is_new and share > 0:
                push = heapq.heappush if len(drawn) < self.options.max_validation_documents else heapq.heappushpop
                push(drawn, (-_priority(self.options.seed, index), index, text))
                n_characters += len(text)
        if drawn:
            documents = sum(self.kept)
            wanted = max(round(share * documents), int(documents > 1))  # at least one document if there are two
            drawn.sort(key=lambda entry: -entry[0])
            self.held_out = {index: text for _, index, text in drawn[:wanted]}
            _, index, text = drawn[0]
            if wanted <= 1 and 2 * len(text) > n_characters:
                self.cut = end_of(text, share)
                if self.cut is not None:
                    self.held_out = {index: text[self.cut :]}

    def encoded(self, pool: WorkerPool) -> Generator[EncodedDocument]:
        """Second pass: encode every kept document and yield it with its split."""
        leaks = None
        if self.options.leak_threshold is not None and self.held_out:
            texts = [self.tokenizer.normalize(text) for text in self.held_out.values()]
            leaks = LeakIndex(texts, self.options.leak_threshold)
        return encode_documents(self._assigned(), self.tokenizer, DTYPES[self.dtype], leaks, pool)

    def _assigned(self) -> Iterator[tuple[str, str]]:
        """Yield (split, text) for every kept document, in reading order."""
        for index, text in self.held_out.items():
            if index < 0:  # from a separate file
                yield VALIDATION, text
        count, surveyed, every = 0, len(self.kept), 1
        on_problem = None if surveyed else self._on_problem  # the first pass has already reported all problems
        for index, text in enumerate(self._read(Message("encoding"), on_problem)):
            if index % every == 0:
                self.samples.append(text[:_SAMPLE_CHARACTERS])
                if len(self.samples) > _MOST_SAMPLES:
                    self.samples, every = self.samples[::2], 2 * every
            count += 1
            if count > surveyed > 0:
                break
            if self.cut is not None and index in self.held_out:
                yield TRAIN, text[: self.cut]
                yield VALIDATION, text[self.cut :]
            elif not surveyed or self.kept[index]:
                yield (VALIDATION if index in self.held_out else TRAIN), text
        if surveyed and count != surveyed:
            raise DataError(
                "the files changed between the two passes; run again when no other process is writing to them"
            )

    def _read(self, stage: Message, on_problem: Callable[[CorpusProblem], None] | None) -> Iterator[str]:
        done = 0

        def advance(n_bytes: int) -> None:
            nonlocal done
            done += n_bytes
            if self._on_progress is not None:
                self._on_progress(stage, done, self._total)

        advance(0)  # show progress before the first block of a large file is read
        documents = read_documents(
            self._sources, field=self.options.field, errors=self.options.errors, on_problem=on_problem, on_bytes=advance
        )
        return (document.text for document in documents)


def end_of(text: str, share: float) -> int | None:
    """Return where the last ``share`` of a text starts, at a line or sentence start; None for a single sentence.

    >>> text = "রাত হলো। চাঁদ উঠল। সবাই ঘুমাল।"
    >>> text[end_of(text, 0.05) :]
    'সবাই ঘুমাল।'
    """
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())  # neither part may consist of only white space
    starts = (found.end() for found in _BREAKS.finditer(text) if first < found.end() < last)
    wanted = (1 - share) * len(text)
    return min(starts, key=lambda start: abs(start - wanted), default=None)


def _priority(seed: int, index: int) -> int:
    """Return a random 64-bit number for a document: number ``index`` of the SplitMix64 stream seeded with ``seed``."""
    step = np.array([GOLDEN], np.uint64)
    start = mix(step * np.uint64((seed + 1) % 2**64))
    return int(mix(start + step * np.uint64(index + 1))[0])


def _spool_stdin(paths: Sequence[str | Path], folder: Path) -> list[str | Path]:
    """Copy standard input, if it is among the paths, to a file, because the input is read twice."""
    if "-" not in paths:
        return list(paths)
    with (folder / _STDIN_FILE).open("xb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return [folder / _STDIN_FILE if path == "-" else path for path in paths]
