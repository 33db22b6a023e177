"""A judging session for human evaluation: a folder with blind pairs of continuations and the judgements of each judge.

::

    JUDGING/pairs.json            prompts, the text of each model, and the order within each pair
    JUDGING/judgements/NAME.json  the judgements of one judge; the judging page saves the same file

Every pair of models is compared on every prompt. The order of the two texts in a pair is randomized once; the order of
the pairs is random too, and depends on the judge's name. Each judgement is saved before the next pair is shown, so a
judge can stop and resume. Judges can work at the same time, because each has a separate file. Pairs of equal texts are
not shown.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kotha.errors import DataError, KothaError, UsageError
from kotha.evaluation.judge.results import CHOICES, BlindPair, Choice, JudgingResult, judging_result
from kotha.generation.engine import Engine
from kotha.generation.request import Request, Result
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message, OnProgress
from kotha.report.built import words
from kotha.report.page import page_language
from kotha.report.single_file import report_page
from kotha.storage.atomic import atomic_directory, atomic_write, write_page
from kotha.storage.json_files import as_json, read_table
from kotha.storage.output_paths import checked_path
from kotha.storage.status import exists, is_directory, is_file, matching
from kotha.text.tokenizer.chat import Turn

PAIRS, JUDGEMENTS = "pairs.json", "judgements"
_FORMAT, JUDGEMENTS_FORMAT, _VERSION = "kotha-judging", "kotha-judgements", 1
_MOST_BYTES = 1 << 28


@dataclass
class JudgingSession:
    """A judging session in a folder."""

    path: Path
    models: tuple[str, ...]
    pairs: tuple[BlindPair, ...]
    same: int = 0  # number of pairs with equal texts, which are not in ``pairs``
    about: dict[str, Any] = field(default_factory=dict)  # sampling settings used for the continuations

    @classmethod
    def start(
        cls,
        path: Path,
        prompts: Sequence[str],
        written: Mapping[str, Sequence[str]],
        seed: int = 0,
        about: Mapping[str, Any] | None = None,
    ) -> "JudgingSession":
        """Create the folder from the continuations of each model, one per prompt."""
        models = tuple(written)
        if len(models) < 2 or not prompts:
            raise UsageError("a judging session needs at least two models and one prompt")
        chance = np.random.default_rng(seed)
        pairs = []
        for number, prompt in enumerate(prompts):
            for one, other in itertools.combinations(models, 2):
                left, right = (one, other) if chance.random() < 0.5 else (other, one)
                texts = written[left][number], written[right][number]
                # The id does not reveal which model wrote which text.
                name = f"{number}-{_digest(as_json(sorted((prompt, *texts))))[:12]}"
                pairs.append(BlindPair(name, prompt, *texts, (left, right)))
        n_all = len(pairs)
        pairs = [pair for pair in pairs if pair.left != pair.right]
        if not pairs:
            raise DataError("all models wrote the same text for every prompt, so there is nothing to judge")
        made = cls(path, models, tuple(pairs), n_all - len(pairs), dict(about or {}))
        meta = {"format": _FORMAT, "format_version": _VERSION, "models": models, "same": made.same, "about": made.about}
        with atomic_directory(checked_path(path), lambda _: False) as partial:
            atomic_write(partial / PAIRS, as_json({**meta, "pairs": made._as_dicts}, indent=1) + "\n")
            (partial / JUDGEMENTS).mkdir()
        return made

    @classmethod
    def open(cls, path: Path) -> "JudgingSession":
        """Open an existing session."""
        file = path / PAIRS
        if not is_file(file):
            raise KothaError(
                "{path} is not a judging session: {pairs} is missing; create a session from models and prompts",
                path=path,
                pairs=PAIRS,
            )
        values = read_table(file, most_bytes=_MOST_BYTES)
        try:
            if (values["format"], values["format_version"]) != (_FORMAT, _VERSION):
                raise ValueError("unsupported format or version")
            pairs = tuple(map(BlindPair.read, values["pairs"]))
            models = tuple(map(str, values["models"]))
            if len(set(models)) < len(models):
                raise ValueError("duplicate model name")
            if not {name for pair in pairs for name in pair.models} <= set(models):
                raise ValueError("a pair names an unknown model")
            return cls(path, models, pairs, int(values["same"]), dict(values["about"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise KothaError(
                "{file} is not a judging session that this version of Kotha can read: {error}", file=file, error=error
            ) from error

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the pairs; each file of judgements contains the fingerprint of its session."""
        return _digest(as_json(self._as_dicts))[:16]

    @property
    def _as_dicts(self) -> list[dict[str, Any]]:
        return [asdict(pair) for pair in self.pairs]

    # -- judging ----------------------------------------------------------------------------------------------------

    def said_by(self, judge: str) -> dict[str, Choice]:
        """Return the judgements of a judge so far, by pair id."""
        file = self._file(judge)
        return self._read(file)[1] if is_file(file) else {}

    def left_for(self, judge: str) -> list[BlindPair]:
        """Return the pairs that a judge has not judged yet, in the order for that judge."""
        judged = self.said_by(judge)
        seed = int(_digest(f"{self.fingerprint} {judge}")[:16], 16)
        order = np.random.default_rng(seed).permutation(len(self.pairs))
        return [self.pairs[index] for index in order if self.pairs[index].id not in judged]

    def record(self, judge: str, pair: str, choice: Choice) -> None:
        """Save a judgement; it replaces an earlier one on the same pair."""
        self._write(judge, {**self.said_by(judge), pair: choice})

    def collect(self, file: Path) -> tuple[str, int]:
        """Merge a file saved by the judging page; return the judge's name and the number of judgements in it."""
        judge, choices = self._read(file)
        self._write(judge, {**self.said_by(judge), **choices})
        return judge, len(choices)

    def judgements(self) -> dict[str, dict[str, Choice]]:
        """Return the judgements of each judge, by pair id."""
        return dict(map(self._read, matching(self.path / JUDGEMENTS, "*.json")))

    def result(self) -> JudgingResult:
        """Compute the results so far."""
        judgements = self.judgements()
        if not any(judgements.values()):
            raise DataError("no judgements in {path} yet", path=self.path)
        return judging_result(self.models, self.pairs, judgements, self.same)

    def page(self, path: Path) -> Path:
        """Write the offline page for judges who do not have Kotha."""
        write_page(path, judging_page(self))
        return path

    # -- files ------------------------------------------------------------------------------------------------------

    def _file(self, judge: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", judge)[:40]
        if not judge.strip():
            raise UsageError("the judge's name is empty; give a name")
        if plain != judge:  # two names must not share a file
            plain += "-" + _digest(judge)[:8]
        return self.path / JUDGEMENTS / f"{plain}.json"

    def _write(self, judge: str, choices: Mapping[str, Choice]) -> None:
        values = {"format": JUDGEMENTS_FORMAT, "pairs": self.fingerprint, "judge": judge, "judgements": dict(choices)}
        atomic_write(self._file(judge), as_json(values, indent=1) + "\n")

    def _read(self, file: Path) -> tuple[str, dict[str, Choice]]:
        values = read_table(file, most_bytes=_MOST_BYTES)
        judge, choices, known = values.get("judge"), values.get("judgements"), values.get("format") == JUDGEMENTS_FORMAT
        if known and values.get("pairs") != self.fingerprint:
            raise KothaError(
                "{file} contains judgements of pairs that are not in {path}; it belongs to another judging session",
                file=file,
                path=self.path,
            )
        ids = {pair.id for pair in self.pairs}
        if not (known and isinstance(judge, str) and isinstance(choices, dict) and choices.keys() <= ids) or not all(
            choice in CHOICES for choice in choices.values()
        ):
            raise KothaError(
                "{file} is not a file of judgements; give the file that was saved from this session's judging page",
                file=file,
            )
        return judge, choices

    def __repr__(self) -> str:
        counts = f"{len(self.models)} models, {len(self.pairs)} pairs, {len(self.judgements())} judges"
        return f"JudgingSession({str(self.path)!r}: {counts})"


def judging_page(judging: JudgingSession) -> str:
    """Return an offline HTML page with all pairs, which saves the judgements as a file.

    The page contains the texts and the pair ids, but not the models that wrote the texts.
    """
    pairs = [{name: getattr(pair, name) for name in ("id", "prompt", "left", "right")} for pair in judging.pairs]
    data = {"format": JUDGEMENTS_FORMAT, "pairs_fingerprint": judging.fingerprint, "pairs": pairs}
    return report_page("judge", words("reports")["title.judge"][page_language()], data, made_by="kotha judge")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- continuations to judge --------------------------------------------------------------------------------------------


def read_prompts(path: Path) -> list[str]:
    """Read prompts from a file: one per line, or the field prompt, instruction, question or text in a .jsonl file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_text("নদীর ধারে\\n\\nমা\\n")
    ...     read_prompts(file)
    ['নদীর ধারে', 'মা']
    """
    if not exists(path) or is_directory(path):
        raise DataError("{path} is not a file; give a file with one prompt per line", path=path)
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        prompts = [_of_row(line) for line in lines] if path.suffix == ".jsonl" else lines
    except (UnicodeDecodeError, ValueError, KeyError, TypeError, StopIteration) as error:
        raise DataError(
            "{path} has no readable prompts: {error}; write one per line, or use .jsonl with a prompt field",
            path=path,
            error=error,
        ) from error
    if not prompts:
        raise DataError("{path} has no prompts; write one per line", path=path)
    return list(dict.fromkeys(prompts))


def _of_row(line: str) -> str:
    row = json.loads(line)
    if isinstance(row, str):
        return row
    return str(next(row[name] for name in ("prompt", "instruction", "question", "text") if name in row))


def write_continuations(
    names: Sequence[str],
    opened: Callable[[str], Engine],
    prompts: Sequence[str],
    tokens: int,
    settings: SamplingSettings,
    on_progress: OnProgress | None = None,
) -> dict[str, list[str]]:
    """Generate a continuation of each prompt with each model; only one model is in memory at a time.

    Each prompt has its own seed. A chat model is given the prompt as a user turn.
    """
    written: dict[str, list[str]] = {}
    for name in names:
        engine = opened(name)
        tokenizer = engine.tokenizer
        starts: Sequence[str | tuple[int, ...]] = prompts
        if tokenizer is not None and engine.chat is not None:
            starts = [tuple(engine.chat.prompt(tokenizer, [Turn("user", prompt)])) for prompt in prompts]
        numbers = [
            engine.submit(Request(prompt=start, tokens=tokens, settings=replace(settings, seed=settings.seed + number)))
            for number, start in enumerate(starts)
        ]
        results: dict[int, Result] = {}
        while engine.busy:
            results |= {event.number: event.result for event in engine.step() if event.result is not None}
            if on_progress is not None:
                done = len(written) * len(prompts) + len(results)
                on_progress(Message("writing"), done, len(names) * len(prompts))
        written[name] = [results[number].text.strip() for number in numbers]
    return written
