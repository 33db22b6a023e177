"""The whole way on the built-in corpus: stories, a tokenizer, shards, a model that learns, writes and is looked into.

It opens with the model in the box, which writes at once.

Each step does its work and gives what there is to tell of it; who calls it shows that, and how it goes.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any, NamedTuple

from kotha.api import data as making
from kotha.api.demo_page import PAGES, TEXTS, demo_page, sample_of
from kotha.api.model import load
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import KothaError, UsageError
from kotha.generation.plain import write
from kotha.i18n.message import Message, Option, Text
from kotha.report.table import Table
from kotha.storage.atomic import atomic_write
from kotha.storage.output_paths import check_folder_place, names_in
from kotha.storage.status import is_directory
from kotha.text.shards import Dataset
from kotha.text.stories.corpus import Story, floor_bits_per_byte
from kotha.text.tokenizer.view import view
from kotha.training.config import TrainConfig
from kotha.training.reporting.report import read_record
from kotha.training.start import TrainRequest, train_run

TRAIN, HELD_OUT = "stories.jsonl", "held-out.jsonl"
# By this file a demo's folder is known: the next one replaces what is in it, and what is in no other.
MARK = ".kotha-demo"
# One held-out document for so many to learn from.
_LEARNED_PER_HELD_OUT = 20
# How it writes: mostly what it finds likely. A model that has learned for two minutes should not be daring.
_WRITING: dict[str, Any] = {"temperature": 0.3, "top_k": 10, "repetition_penalty": None}
_TOKENS, _TOKENS_ON_THE_WAY = 150, 40
# How many tokens it adds while its attention is watched.
_LOOKED_AT = 12
# What the model in the box goes on with.
_OPENINGS = ("আমি", "নদীর ধারে")
# Past the title, which by itself looks like a text's last sentence.
_PROMPT_WORDS = 8


class DemoStep(NamedTuple):
    """One step: what it is called, what is to be said before, its work, and what goes on meanwhile."""

    name: Message
    about: Message
    work: Callable[[], list[Text | Table]]
    meanwhile: Message | None = None


class Demonstration:
    """All of it, in a folder."""

    def __init__(self, out: Path, documents: int, vocab_size: int, minutes: float, seed: int) -> None:
        if documents < 100:
            told = "{option} is too few to train a tokenizer; use at least 100"
            raise UsageError(told, option=Option("documents", documents))
        self._request = TrainRequest(minutes=minutes, changes={"seed": TrainConfig(seed=seed).seed})
        if not is_directory(out):
            check_folder_place(out, lambda _: False)
        found = names_in(out) if is_directory(out) else []
        if found and MARK not in found:
            told = "{out} holds {found} and is not a demo folder; choose a new or empty folder"
            raise KothaError(told, out=out, found=found[0])
        self.out, self._documents, self._vocab_size = out, documents, vocab_size
        self._seed = seed
        self.listeners: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}

    def steps(self) -> list[DemoStep]:
        """What there is to do, in its order."""
        works = [self._open_box, self._stories, self._tokenizer, self._cut]
        works += [self.train, self._write, self._look]
        return [
            DemoStep(Message(name), Message(about), work, meanwhile and Message(meanwhile))
            for work, (name, about, meanwhile) in zip(works, TEXTS["steps"], strict=True)
        ]

    def report(self, commands: list[tuple[Message, str]]) -> Path:
        """The page that leads to all of it, with what to try next, in words and to copy."""
        self.record = read_record(self.out / "run")
        atomic_write(self.out / "report.html", demo_page(self, str(self.out), commands))
        return self.out / "report.html"

    def _open_box(self) -> list[Text | Table]:
        texts = load().generate(list(_OPENINGS), tokens=_TOKENS_ON_THE_WAY, seed=self._seed)
        return [*map(_quoted, texts), Message("Now a model of your own, trained from scratch:")]

    def _stories(self) -> list[Text | Table]:
        """Stories to learn from, and others that are held out; both from the same grammar, by different seeds."""
        counts = {TRAIN: self._documents, HELD_OUT: max(10, self._documents // _LEARNED_PER_HELD_OUT)}
        atomic_write(self.out / MARK, "")
        found = []
        for turn, (name, count) in enumerate(counts.items()):
            making.write_stories(self.out / name, count, seed=2 * self._seed + turn, **self.listeners)
            with (self.out / name).open(encoding="utf-8") as lines:
                found.append([Story(**json.loads(line)) for line in lines])
        self.written, self.held_out = found
        self.prompts = [_beginning(_first(self.held_out, kind)) for kind in ("story", "news", "entry")]
        size = sum(len(document.text.encode()) for document in self.written)
        told = Message(
            "{documents:,} documents, {size:,} bytes; {held_out:,} more are held out.",
            documents=self._documents,
            size=size,
            held_out=counts[HELD_OUT],
        )
        return [Message("The first story:\n"), _quoted(_first(self.written, "story")), told]

    def _tokenizer(self) -> list[Text | Table]:
        folder = self.out / "tokenizer"
        self.tokenizer = making.train_tokenizer(
            self.out / TRAIN, vocab_size=self._vocab_size, out=folder, overwrite=True
        )
        pieces = "│".join(token.text for token in view(self.tokenizer, sample_of(self.written)))
        return [Message("{n:,} pieces. One sentence, tokenized:", n=self.tokenizer.vocab_size), pieces]

    def _cut(self) -> list[Text | Table]:
        how: dict[str, Any] = {"validation": self.out / HELD_OUT, "overwrite": True, **self.listeners}
        self.shards = making.prepare(self.out / TRAIN, self.tokenizer, self.out / "data", **how)
        return [making.prepared_table(self.shards)]

    def train(self) -> list[Text | Table]:
        """Train, keep what the model wrote before its first step, and measure it on all that was held out."""
        data, run = Dataset(self.out / "data"), self.out / "run"
        self.floor = floor_bits_per_byte(self.held_out)
        shutil.rmtree(run, ignore_errors=True)

        def sample(model: Any) -> str:
            return write(model, data.tokenizer, self.prompts[0], tokens=_TOKENS_ON_THE_WAY, **_WRITING)

        def begin(training: Any) -> None:
            self.before = sample(training.model)

        how: dict[str, Any] = {"floors": {"bits_per_byte": self.floor}, **self.listeners}
        found = self.summary = train_run(data, RunFolder(run), self._request, sampler=sample, on_ready=begin, **how)
        if found["stopped"]:
            return []
        self.model = load(run)
        # While it learned it was measured on a part of them, to lose no time.
        self.score = self.model.evaluate(data.path, baselines=data.path)
        return [
            Message(
                "{steps:,} steps, {tokens:,} tokens in {minutes:.1f} minutes. On all {texts:,} held-out "
                "texts: {bits:.3f} bits per byte ({character_bits:.3f} per character). The grammar's floor, "
                "which no model can beat on average, is {floor:.3f}.",
                steps=found["steps"],
                tokens=found["tokens"],
                minutes=found["seconds"] / 60,
                texts=self.score.documents,
                bits=self.score.bits_per_byte,
                character_bits=self.score.bits_per_character,
                floor=self.floor,
            )
        ]

    def _write(self) -> list[Text | Table]:
        self.texts = self.model.generate(self.prompts, tokens=_TOKENS, **_WRITING)
        return [*map(_quoted, self.texts)]

    def _look(self) -> list[Text | Table]:
        """The pages that the report leads to: what happens in the model as it reads and writes a text."""
        text = self.prompts[0]
        self.model.attention(text, generate=_LOOKED_AT).save(self.out / "attention.html")
        self.model.flow(text).save(self.out / "flow.html")
        self.model.lens(text, generate=_LOOKED_AT).save(self.out / "lens.html")
        self.model.heads().save(self.out / "heads.html")
        return [", ".join(address for address, *_ in PAGES)]


def _quoted(text: str) -> str:
    """A text of the corpus or of the model, set apart."""
    return indent(text, "  ") + "\n"


def _first(documents: list[Story], kind: str) -> str:
    return next(document.text for document in documents if document.kind == kind)


def _beginning(text: str) -> str:
    """The first words of a text, line ends and all."""
    found = re.match(rf"(\S+\s+){{{_PROMPT_WORDS - 1}}}\S+", text)
    return found[0] if found else text
