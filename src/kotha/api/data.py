"""From text to a data folder: the built-in corpus, corpus reports, tokenizers and token shards."""

import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kotha.api import AnyPath, listed
from kotha.api.progress import displayed
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import Message, OnProgress, Option, Text
from kotha.inside.view import View
from kotha.report.table import Table
from kotha.report.tokenizer_card import cards_page
from kotha.storage.atomic import atomic_file
from kotha.storage.output_paths import checked_path
from kotha.text.choices import Errors
from kotha.text.clean.duplicates import Duplicates as Duplicates
from kotha.text.corpus.documents import OnProblem, read_documents
from kotha.text.corpus.report import CorpusReport as CorpusReport
from kotha.text.corpus.report import inspect_corpus as inspect_documents
from kotha.text.corpus.sources import Source, list_sources
from kotha.text.parallel import check_workers, worker_pool
from kotha.text.prepare import PrepareOptions, PrepareReport
from kotha.text.prepare import prepare as prepare_folder
from kotha.text.stories.corpus import Story
from kotha.text.stories.corpus import stories as endless
from kotha.text.stories.questions import questions_about
from kotha.text.tokenizer import card
from kotha.text.tokenizer.importers import import_tokenizer as import_tokenizer
from kotha.text.tokenizer.tokenizer import FILE_NAME as FILE_NAME
from kotha.text.tokenizer.tokenizer import Tokenizer, check_free
from kotha.text.tokenizer.trainers import Kind as Kind
from kotha.text.tokenizer.trainers import Level as Level
from kotha.text.tokenizer.trainers import train as train_pieces
from kotha.text.tokenizer.view import view as view_tokens


def built_in_stories(documents: int = 1000, *, seed: int = 0, kinds: Iterable[str] = ()) -> Iterator[Story]:
    """Yield documents from the built-in corpus; the same seed gives the same documents."""
    if documents < 1:
        raise UsageError("{option} is too few; use at least 1", option=Option("documents", documents))
    return itertools.islice(endless(seed, kinds=tuple(kinds) or None), documents)


@displayed
@checked()
def write_stories(
    out: AnyPath,
    documents: int = 1000,
    *,
    seed: int = 0,
    kinds: Iterable[str] = (),
    on_progress: OnProgress | None = None,
) -> Path:
    """Write documents from the built-in corpus (Bangla stories, news and encyclopaedia entries) to .jsonl or .txt.

    The same seed gives the same documents. ``kinds`` selects among story, news and entry. Each .jsonl line also holds
    the document's kind and its log-probability under the grammar; no model can exceed the average of these
    log-probabilities.

    >>> kotha.write_stories("few.txt", documents=3)
    PosixPath('few.txt')
    """
    path, found = Path(out), built_in_stories(documents, seed=seed, kinds=kinds)
    if path.suffix not in (".jsonl", ".txt"):
        raise UsageError("{path}: the file name must end in .jsonl or .txt", path=path)
    with atomic_file(path) as file:
        for count, document in enumerate(found, 1):
            row = {name: getattr(document, name) for name in ("text", "kind", "log_probability")}
            file.write(f"{document.text}\n\n" if path.suffix == ".txt" else _line(row))
            if on_progress is not None and count % 100 == 0:
                on_progress(Message("writing"), count, documents)
    return path


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


@checked()
def write_questions(
    out: AnyPath, stories: int = 200, *, seed: int = 0, per_story: int = 3, whole: bool = False
) -> tuple[Path, int]:
    """Write questions about built-in stories, with answers, to .jsonl; return the path and the number of questions.

    Each line has an ``instruction`` (a paragraph from a story, or the whole story if ``whole`` is set, followed by a
    question), an ``answer``, the number of the ``story`` and the ``kind`` of question. ``finetune_instruct`` reads the
    file.

    >>> kotha.write_questions("questions.jsonl", stories=10)
    (PosixPath('questions.jsonl'), 30)
    """
    path = Path(out)
    for name, value in (("stories", stories), ("per_story", per_story)):
        if value < 1:
            raise UsageError("{option} is too few; use at least 1", option=Option(name, value))
    if path.suffix != ".jsonl":
        raise UsageError("{path}: the file name must end in .jsonl", path=path)
    count = 0
    with atomic_file(path) as file:
        for story in range(stories):
            for each in questions_about(seed, story, per_story=per_story, whole=whole):
                row = {"instruction": each.instruction, "answer": each.answer, "story": story, "kind": each.kind}
                file.write(_line(row))
                count += 1
    return path, count


@displayed
@checked()
def inspect_corpus(
    paths: AnyPath | Iterable[AnyPath],
    *,
    field: str = "text",
    language: str = "bn",
    errors: Errors = "skip",
    on_progress: OnProgress | None = None,
    on_problem: OnProblem | None = None,
) -> CorpusReport:
    """Read a corpus once, and report its size, duplicates, language, scripts and unreadable documents."""
    read = _reading(list_sources(listed(paths), errors=errors), on_progress)
    options: Any = {"errors": errors, "on_problem": on_problem, "on_bytes": read}
    return inspect_documents(listed(paths), field=field, language=language, **options)


def _reading(sources: list[Source], on_progress: OnProgress | None) -> Callable[[int], None]:
    """Return a function that receives the number of bytes read and reports the progress in reading the sources."""
    done, total = 0, sum(source.size or 0 for source in sources)

    def read(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        if on_progress is not None:
            on_progress(Message("reading"), done, total)

    return read


def cards_table(cards: Sequence[card.Card]) -> Table:
    """Return a table with a row for each tokenizer."""
    header, title = [title for _, title in card.COLUMNS], Message("on {n:,} words", n=cards[0].words)
    return Table(title, header, [card.cells(each) for each in cards], marks=card.marks(cards))


def compare_tokenizers(
    tokenizers: Sequence[str],
    text: AnyPath | Iterable[AnyPath],
    *,
    caution: bool = True,
    field: str = "text",
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> View[list[card.Card]]:
    """Compare tokenizers (files, folders or hub names) on a text: tokens per word, bytes per token, round trip.

    If ``caution`` is set, a BPE tokenizer of the same size with GPT-2's split pattern is added for comparison. This
    tokenizer is trained on the text itself, which gives it an advantage.
    """
    paths = listed(text)
    found = read_documents(paths, field=field, errors=errors, on_problem=on_problem)
    documents = [document.text for document in found]
    if not documents:
        raise UsageError("{text}: no documents found", text=Option("text", " ".join(paths)))
    loaded = {name: import_tokenizer(name) for name in tokenizers}
    if caution:
        size = max(tokenizer.vocab_size for tokenizer in loaded.values())
        loaded["GPT-2 pattern (for comparison)"] = card.train_gpt2_style(documents, size)
    cards = [card.measure(name, tokenizer, documents) for name, tokenizer in loaded.items()]
    sample, first = " ".join(documents[0].split()[:60]), cards[0]
    figures = {**vars(first), "compared_with": [vars(other) for other in cards[1:]]}
    page = partial(cards_page, cards, loaded, sample, ", ".join(paths))
    return View("Tokenizers side by side", cards, page, lambda: figures)


def cut(tokenizer: str, text: str) -> dict[str, Any]:
    """Tokenize a text; return the tokens, and the text decoded from them."""
    loaded = import_tokenizer(tokenizer)
    tokens = view_tokens(loaded, text)
    return {"tokens": [vars(token) for token in tokens], "text": loaded.decode(token.id for token in tokens)}


def keep_tokenizer(source: str, out: AnyPath, *, extra_ids: int | None = None, overwrite: bool = False) -> Tokenizer:
    """Import a tokenizer from another library, and save it as tokenizer.json."""
    check_free(Path(out), overwrite)
    tokenizer = import_tokenizer(source, extra_ids=extra_ids)
    tokenizer.save(Path(out))
    return tokenizer


@displayed
@checked(train_pieces)
def train_tokenizer(
    paths: AnyPath | Iterable[AnyPath],
    *,
    kind: str = "unigram",
    vocab_size: int = 8192,
    out: AnyPath | None = None,
    overwrite: bool = False,
    field: str = "text",
    errors: Errors = "stop",
    on_progress: OnProgress | None = None,
    on_problem: OnProblem | None = None,
    workers: int | None = None,
    on: str | None = None,
    **more: Any,
) -> Tokenizer:
    """Train a tokenizer on files, folders or globs; save it to ``out``, if given.

    ``kind`` is unigram, bpe, wordpiece or char. ``more`` are the options ``split`` (for bpe), ``level`` and
    ``specials`` (for char) and ``rules`` (for normalization). ``overwrite`` replaces a saved tokenizer. Pieces are made
    of complete grapheme clusters, so a vowel sign is never split from its consonant. ``workers`` is the number of
    processes that read and count the text (default: 1), and ``on="ray"`` uses a cluster. The result does not depend on
    the number of processes.

    >>> tokenizer = kotha.train_tokenizer("stories.jsonl", vocab_size=600)
    >>> tokenizer.decode(tokenizer.encode("নদীর ধারে"))
    'নদীর ধারে'
    """
    path = None if out is None else checked_path(out)
    if path is not None:
        check_free(path, overwrite)
    check_workers(on, workers)
    sources = list_sources(listed(paths), errors=errors, on_problem=on_problem)
    options: Any = {"errors": errors, "on_problem": on_problem, "on_bytes": _reading(sources, on_progress)}
    documents = read_documents(sources, field=field, **options)
    with worker_pool(on, workers) as pool:
        more |= {"pool": pool, "on_progress": on_progress}
        tokenizer = train_pieces((document.text for document in documents), kind, vocab_size, **more)
    if path is not None:
        tokenizer.save(path)
    return tokenizer


@displayed
@checked(PrepareOptions)
def prepare(
    paths: AnyPath | Iterable[AnyPath],
    tokenizer: Tokenizer | AnyPath,
    out: AnyPath,
    *,
    on_progress: OnProgress | None = None,
    on_problem: OnProblem | None = None,
    **options: Any,
) -> PrepareReport:
    """Write documents to a data folder at ``out``: remove duplicates, split, tokenize, and write token shards.

    ``tokenizer`` is a tokenizer or its path. ``options`` are the fields of ``PrepareOptions``: ``validation`` (a share
    of the documents, or a file), ``seed``, ``field``, ``errors``, ``duplicates``, ``workers``, ``on``, ``overwrite``
    and others. The returned report describes what was written and removed, and can be passed wherever a data folder is
    accepted.

    >>> data = kotha.prepare("stories.jsonl", "tokenizer", "more-data", validation=0.1)
    >>> data.train_documents, data.validation_documents
    (54, 6)
    """
    opened = tokenizer if isinstance(tokenizer, Tokenizer) else import_tokenizer(os.fspath(tokenizer))
    chosen = PrepareOptions(**options)
    return prepare_folder(listed(paths), opened, Path(out), chosen, on_progress=on_progress, on_problem=on_problem)


def prepared_table(report: PrepareReport, title: str = "") -> Table:
    """Return a table of the documents written to a data folder, and of those removed."""
    counts = {"documents": Message("documents"), "tokens": Message("tokens"), "bytes": Message("bytes")}
    rows: list[list[Text]] = [
        [label, *(f"{getattr(report, f'{split}_{name}'):,}" for split in ("train", "validation"))]
        for name, label in counts.items()
    ]
    removals = (
        Message("{n:,} duplicates", n=report.duplicates),
        Message("{n:,} near-duplicates of validation documents", n=report.leaked),
        Message("{n:,} unreadable", n=report.problems),
    )
    removed = [each for each in removals if each.values["n"]] or Message("nothing")
    return Table(title, ["", Message("train"), Message("validation")], rows, [Message("removed: {what}", what=removed)])
