"""The whole pipeline on the built-in corpus: stories, a tokenizer, shards, training, generation and inspection.

The demo begins with samples from the bundled model. Each step does its work and returns text and tables, which the
caller prints; the caller also shows the progress.
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
from kotha.training.request import TrainRequest
from kotha.training.train_run import train_run

TRAIN, HELD_OUT = "stories.jsonl", "held-out.jsonl"
# Marker file of a demo folder; a new demo replaces the contents of a folder only if it contains this file.
MARK = ".kotha-demo"
# Training documents per held-out document.
_TRAINED_PER_HELD_OUT = 20
# Conservative sampling, because the model is trained for only a few minutes.
_WRITING: dict[str, Any] = {"temperature": 0.3, "top_k": 10, "repetition_penalty": None}
_TOKENS, _SAMPLE_TOKENS = 150, 40
# Number of tokens generated for the attention and lens pages.
_INSPECTED_TOKENS = 12
# Prompts for the bundled model.
_OPENINGS = ("আমি", "নদীর ধারে")
# Longer than a title; a prompt that is only a title looks like the end of a text.
_PROMPT_WORDS = 8


class DemoStep(NamedTuple):
    """A step: its name, its description, its work, and the status shown while it runs."""

    name: Message
    about: Message
    work: Callable[[], list[Text | Table]]
    meanwhile: Message | None = None


class Demonstration:
    """A demo whose files are in one folder."""

    def __init__(self, out: Path, documents: int, vocab_size: int, minutes: float, seed: int) -> None:
        if documents < 100:
            template = "{option} is too few to train a tokenizer; use at least 100"
            raise UsageError(template, option=Option("documents", documents))
        self._request = TrainRequest(minutes=minutes, changes={"seed": TrainConfig(seed=seed).seed})
        if not is_directory(out):
            check_folder_place(out, lambda _: False)
        found = names_in(out) if is_directory(out) else []
        if found and MARK not in found:
            template = "{out} contains {found} and is not a demo folder; choose a new or empty folder"
            raise KothaError(template, out=out, found=found[0])
        self.out, self._documents, self._vocab_size = out, documents, vocab_size
        self._seed = seed
        self.listeners: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}

    def steps(self) -> list[DemoStep]:
        """Return the steps, in order."""
        works = [self._sample_bundled, self._stories, self._tokenizer, self._cut]
        works += [self.train, self._write, self._look]
        return [
            DemoStep(Message(name), Message(about), work, meanwhile and Message(meanwhile))
            for work, (name, about, meanwhile) in zip(works, TEXTS["steps"], strict=True)
        ]

    def report(self, commands: list[tuple[Message, str]]) -> Path:
        """Write the page that links to all results, with the commands to try next."""
        self.record = read_record(self.out / "run")
        atomic_write(self.out / "report.html", demo_page(self, str(self.out), commands))
        return self.out / "report.html"

    def _sample_bundled(self) -> list[Text | Table]:
        texts = load().generate(list(_OPENINGS), tokens=_SAMPLE_TOKENS, seed=self._seed)
        return [*map(_quoted, texts), Message("Now your own model, trained from scratch:")]

    def _stories(self) -> list[Text | Table]:
        """Write training and held-out stories, from the same grammar with different seeds."""
        counts = {TRAIN: self._documents, HELD_OUT: max(10, self._documents // _TRAINED_PER_HELD_OUT)}
        atomic_write(self.out / MARK, "")
        found = []
        for turn, (name, count) in enumerate(counts.items()):
            making.write_stories(self.out / name, count, seed=2 * self._seed + turn, **self.listeners)
            with (self.out / name).open(encoding="utf-8") as lines:
                found.append([Story(**json.loads(line)) for line in lines])
        self.written, self.held_out = found
        self.prompts = [_beginning(_first(self.held_out, kind)) for kind in ("story", "news", "entry")]
        size = sum(len(document.text.encode()) for document in self.written)
        summary = Message(
            "{documents:,} documents, {size:,} bytes; {held_out:,} more are held out.",
            documents=self._documents,
            size=size,
            held_out=counts[HELD_OUT],
        )
        return [Message("The first story:\n"), _quoted(_first(self.written, "story")), summary]

    def _tokenizer(self) -> list[Text | Table]:
        folder = self.out / "tokenizer"
        self.tokenizer = making.train_tokenizer(
            self.out / TRAIN, vocab_size=self._vocab_size, out=folder, overwrite=True
        )
        pieces = "│".join(token.text for token in view(self.tokenizer, sample_of(self.written)))
        return [Message("{n:,} pieces. One sentence, tokenized:", n=self.tokenizer.vocab_size), pieces]

    def _cut(self) -> list[Text | Table]:
        options: dict[str, Any] = {"validation": self.out / HELD_OUT, "overwrite": True, **self.listeners}
        self.shards = making.prepare(self.out / TRAIN, self.tokenizer, self.out / "data", **options)
        return [making.prepared_table(self.shards)]

    def train(self) -> list[Text | Table]:
        """Train the model, save a sample from before the first step, and evaluate on all held-out texts."""
        data, run = Dataset(self.out / "data"), self.out / "run"
        self.floor = floor_bits_per_byte(self.held_out)
        shutil.rmtree(run, ignore_errors=True)

        def sample(model: Any) -> str:
            return write(model, data.tokenizer, self.prompts[0], tokens=_SAMPLE_TOKENS, **_WRITING)

        def begin(training: Any) -> None:
            self.before = sample(training.model)

        options: dict[str, Any] = {"floors": {"bits_per_byte": self.floor}, **self.listeners}
        found = self.summary = train_run(data, RunFolder(run), self._request, sampler=sample, on_ready=begin, **options)
        if found["stopped"]:
            return []
        self.model = load(run)
        # To save time, the evaluations during training used only some of the texts.
        self.score = self.model.evaluate(data.path, baselines=data.path)
        return [
            Message(
                "{steps:,} steps, {tokens:,} tokens in {minutes:.1f} minutes. On all {texts:,} held-out "
                "texts: {bits:.3f} bits per byte ({character_bits:.3f} per character). The entropy of the "
                "grammar, a lower bound for every model, is {floor:.3f}.",
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
        """Write the inspection pages that the report links to."""
        text = self.prompts[0]
        self.model.attention(text, generate=_INSPECTED_TOKENS).save(self.out / "attention.html")
        self.model.flow(text).save(self.out / "flow.html")
        self.model.lens(text, generate=_INSPECTED_TOKENS).save(self.out / "lens.html")
        self.model.heads().save(self.out / "heads.html")
        return [", ".join(address for address, *_ in PAGES)]


def _quoted(text: str) -> str:
    """Indent a text from the corpus or from the model."""
    return indent(text, "  ") + "\n"


def _first(documents: list[Story], kind: str) -> str:
    return next(document.text for document in documents if document.kind == kind)


def _beginning(text: str) -> str:
    """Return the first words of a text, with line breaks."""
    found = re.match(rf"(\S+\s+){{{_PROMPT_WORDS - 1}}}\S+", text)
    return found[0] if found else text
