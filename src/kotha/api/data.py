"""From text to a data folder: the built-in stories, a look into a corpus, tokenizers, shards."""

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from kotha.api import Place, listed
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
from kotha.text.corpus.sources import list_sources
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
    """So many documents of the built-in corpus; the same seed gives the same ones."""
    if documents < 1:
        raise UsageError("{option} is too few; use at least 1", option=Option("documents", documents))
    return itertools.islice(endless(seed, kinds=tuple(kinds) or None), documents)


@checked()
def write_stories(
    out: Place,
    documents: int = 1000,
    *,
    seed: int = 0,
    kinds: Iterable[str] = (),
    on_progress: OnProgress | None = None,
) -> Path:
    """Write the built-in corpus: original Bangla stories, news and encyclopaedia entries; .jsonl or .txt.

    The same seed gives the same documents, and ``kinds`` chooses among story, news and entry. A .jsonl line also holds
    the kind and the log-probability of the text: the floor that no model can beat on average.

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
    out: Place, stories: int = 200, *, seed: int = 0, per_story: int = 3, whole: bool = False
) -> tuple[Path, int]:
    """Write questions about built-in stories with their answers, a .jsonl line each; where, and how many.

    A line has an ``instruction`` (a paragraph of a story, or with ``whole`` all of it, then a question), its
    ``answer``, the number of the ``story`` and the ``kind`` of question. They are for ``finetune_instruct``.

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


@checked()
def inspect_corpus(
    paths: Place | Iterable[Place],
    *,
    field: str = "text",
    language: str = "bn",
    errors: Errors = "skip",
    on_progress: OnProgress | None = None,
    on_problem: OnProblem | None = None,
) -> CorpusReport:
    """Read a corpus once, and say what is in it: sizes, duplicates, language, scripts, what is broken."""
    sources, done = list_sources(listed(paths), errors=errors), 0
    total = sum(source.size or 0 for source in sources)

    def read(n_bytes: int) -> None:
        nonlocal done
        done += n_bytes
        if on_progress is not None:
            on_progress(Message("reading"), done, total)

    how: Any = {"errors": errors, "on_problem": on_problem, "on_bytes": read}
    return inspect_documents(listed(paths), field=field, language=language, **how)


def cards_table(cards: Sequence[card.Card]) -> Table:
    """A row for each tokenizer."""
    header, title = [title for _, title in card.COLUMNS], Message("on {n:,} words", n=cards[0].words)
    return Table(title, header, [card.cells(each) for each in cards], marks=card.marks(cards))


def compare_tokenizers(
    tokenizers: Sequence[str],
    text: Place | Iterable[Place],
    *,
    caution: bool = True,
    field: str = "text",
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> View[list[card.Card]]:
    """Measure tokenizers (files, folders or hub names) on a text: tokens a word, bytes a token, cuts, round trip.

    With ``caution`` a BPE of the same size with GPT-2's pattern stands beside them, trained on the text itself, which
    flatters it.
    """
    source = listed(text)
    found = read_documents(source, field=field, errors=errors, on_problem=on_problem)
    documents = [document.text for document in found]
    if not documents:
        raise UsageError("{text}: no documents found", text=Option("text", " ".join(source)))
    loaded = {name: import_tokenizer(name) for name in tokenizers}
    if caution:
        size = max(tokenizer.vocab_size for tokenizer in loaded.values())
        loaded["GPT-2 pattern (a caution)"] = card.train_gpt2_style(documents, size)
    cards = [card.measure(name, tokenizer, documents) for name, tokenizer in loaded.items()]
    sample, first = " ".join(documents[0].split()[:60]), cards[0]
    told = {**vars(first), "compared_with": [vars(other) for other in cards[1:]]}
    page = partial(cards_page, cards, loaded, sample, ", ".join(source))
    return View("Tokenizers side by side", cards, page, lambda: told)


def cut(tokenizer: str, text: str) -> dict[str, Any]:
    """How a text is cut by a tokenizer: its tokens, and the text that they make."""
    loaded = import_tokenizer(tokenizer)
    tokens = view_tokens(loaded, text)
    return {"tokens": [vars(token) for token in tokens], "text": loaded.decode(token.id for token in tokens)}


def keep_tokenizer(source: str, out: Place, *, extra_ids: int | None = None, overwrite: bool = False) -> Tokenizer:
    """Import a tokenizer from another library, and save it as tokenizer.json."""
    check_free(Path(out), overwrite)
    tokenizer = import_tokenizer(source, extra_ids=extra_ids)
    tokenizer.save(Path(out))
    return tokenizer


@checked(train_pieces)
def train_tokenizer(
    paths: Place | Iterable[Place],
    *,
    kind: str = "unigram",
    vocab_size: int = 8192,
    out: Place | None = None,
    overwrite: bool = False,
    field: str = "text",
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
    workers: int | None = None,
    on: str | None = None,
    **more: Any,
) -> Tokenizer:
    """Train a tokenizer on files, folders or globs; with ``out`` also save it, with ``overwrite`` over another.

    ``kind`` is unigram, bpe, wordpiece or char; ``more`` is ``split`` (for bpe), ``level`` (for char) or ``rules`` of
    normalization. Its pieces are whole letters: no vowel sign is cut from its consonant. So many ``workers`` count the
    text, by default one, or with ``on="ray"`` those of a cluster; the pieces are the same.

    >>> tokenizer = kotha.train_tokenizer("stories.jsonl", vocab_size=600)
    >>> tokenizer.decode(tokenizer.encode("নদীর ধারে"))
    'নদীর ধারে'
    """
    place = None if out is None else checked_path(out)
    if place is not None:
        check_free(place, overwrite)
    check_workers(on, workers)
    documents = read_documents(listed(paths), field=field, errors=errors, on_problem=on_problem)
    with worker_pool(on, workers) as pool:
        tokenizer = train_pieces((document.text for document in documents), kind, vocab_size, pool=pool, **more)
    if place is not None:
        tokenizer.save(place)
    return tokenizer


@checked(PrepareOptions)
def prepare(
    paths: Place | Iterable[Place],
    tokenizer: Tokenizer | Place,
    out: Place,
    *,
    on_progress: OnProgress | None = None,
    on_problem: OnProblem | None = None,
    **options: Any,
) -> PrepareReport:
    """Turn documents into a data folder at ``out``: split, cleaned, encoded, each file known by its hash.

    ``tokenizer`` is one, or the path of one. ``options`` are those of ``PrepareOptions``: ``validation`` (a share of
    the documents, or a file), ``seed``, ``field``, ``errors``, ``duplicates``, ``workers``, ``on``, ``overwrite`` …
    What comes back says what was written and left out, and can be given wherever the folder is asked for.

    >>> data = kotha.prepare("stories.jsonl", "tokenizer", "more-data", validation=0.1)
    >>> data.train_documents, data.validation_documents
    (54, 6)
    """
    ready = tokenizer if isinstance(tokenizer, Tokenizer) else import_tokenizer(os.fspath(tokenizer))
    chosen = PrepareOptions(**options)
    return prepare_folder(listed(paths), ready, Path(out), chosen, on_progress=on_progress, on_problem=on_problem)


def prepared_table(report: PrepareReport, title: str = "") -> Table:
    """What was written of a data folder, and what was left out."""
    counts = {"documents": Message("documents"), "tokens": Message("tokens"), "bytes": Message("bytes")}
    rows: list[list[Text]] = [
        [label, *(f"{getattr(report, f'{split}_{name}'):,}" for split in ("train", "validation"))]
        for name, label in counts.items()
    ]
    left_out = (
        Message("{n:,} duplicates", n=report.duplicates),
        Message("{n:,} near-copies of validation documents", n=report.leaked),
        Message("{n:,} unreadable", n=report.problems),
    )
    told = [each for each in left_out if each.values["n"]] or Message("nothing")
    return Table(title, ["", Message("train"), Message("validation")], rows, [Message("removed: {what}", what=told)])
