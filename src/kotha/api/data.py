"""From text to a data folder: the built-in stories, a tokenizer, shards."""

import itertools
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kotha.api import Place, listed
from kotha.arguments import checked
from kotha.errors import UsageError
from kotha.i18n.message import Message, OnProgress, Option
from kotha.storage.atomic import whole_file
from kotha.storage.destinations import checked_path
from kotha.text.corpus.documents import OnProblem, read_documents
from kotha.text.corpus.problems import Errors
from kotha.text.parallel import check_workers, worker_pool
from kotha.text.prepare import PrepareOptions, PrepareReport
from kotha.text.prepare import prepare as prepare_folder
from kotha.text.stories.corpus import stories
from kotha.text.stories.questions import questions_about
from kotha.text.tokenizer.importers import import_tokenizer
from kotha.text.tokenizer.tokenizer import Tokenizer, check_free
from kotha.text.tokenizer.trainers import train as train_pieces


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
    path = Path(out)
    if documents < 1:
        raise UsageError("{option}: give at least 1", option=Option("documents", documents))
    if path.suffix not in (".jsonl", ".txt"):
        raise UsageError("{path}: the ending decides the format; use .jsonl or .txt", path=path)
    with whole_file(path) as file:
        for count, document in enumerate(itertools.islice(stories(seed, kinds=tuple(kinds) or None), documents), 1):
            row = {"text": document.text, "kind": document.kind, "log_probability": document.log_probability}
            plain = path.suffix == ".txt"
            file.write(f"{document.text}\n\n" if plain else json.dumps(row, ensure_ascii=False) + "\n")
            if on_progress is not None and count % 100 == 0:
                on_progress(Message("writing"), count, documents)
    return path


@checked()
def write_questions(
    out: Place, stories: int = 200, *, seed: int = 0, per_story: int = 3, whole: bool = False
) -> tuple[Path, int]:
    """Write questions about built-in stories with their answers, a .jsonl line each; where, and how many.

    A line has an ``instruction`` (a paragraph of a story, or with ``whole`` all of it, then a question), its
    ``answer``, the number of the ``story`` and the ``kind`` of question. They are for ``adapt_instruct``.

    >>> kotha.write_questions("questions.jsonl", stories=10)
    (PosixPath('questions.jsonl'), 30)
    """
    path = Path(out)
    for name, value in (("stories", stories), ("per_story", per_story)):
        if value < 1:
            raise UsageError("{option}: give at least 1", option=Option(name, value))
    if path.suffix != ".jsonl":
        raise UsageError("{path}: questions are written as .jsonl; end its name so", path=path)
    count = 0
    with whole_file(path) as file:
        for story in range(stories):
            for each in questions_about(seed, story, per_story=per_story, whole=whole):
                row = {"instruction": each.instruction, "answer": each.answer, "story": story, "kind": each.kind}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                count += 1
    return path, count


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
