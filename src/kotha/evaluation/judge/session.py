"""A judging: blind pairs of continuations in a folder, and what each judge said of them (human evaluation).

::

    JUDGING/pairs.json            prompts, what each model wrote, and in which order a pair is shown
    JUDGING/judgements/NAME.json  what one judge said; the same file that the page returns

Every two models meet at every prompt. Which of them stands first is drawn once; in which order a judge sees the pairs
is drawn from the judge's name. A judgement is on the disk before the next pair is shown, so whoever stops goes on
later, and judges who work at the same time never write into one file. Two texts that are the same are not asked about.
"""

import hashlib
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kotha.errors import DataError, KothaError, UsageError
from kotha.evaluation.judge.results import CHOICES, BlindPair, Choice, JudgingResult, judging_result
from kotha.report.built import words
from kotha.report.single_file import report_page
from kotha.storage.atomic import atomic_directory, atomic_write, write_page
from kotha.storage.destinations import checked_path
from kotha.storage.json_files import as_json, read_table
from kotha.storage.status import is_file, matching

PAIRS, JUDGEMENTS = "pairs.json", "judgements"
_FORMAT, SAID, _VERSION = "kotha-judging", "kotha-judgements", 1
_MOST_BYTES = 1 << 28


@dataclass
class Judging:
    """The pairs of a folder, and what has been said of them."""

    path: Path
    models: tuple[str, ...]
    pairs: tuple[BlindPair, ...]
    same: int = 0  # pairs that were no pairs: both models wrote the same
    about: dict[str, Any] = field(default_factory=dict)  # how the continuations were written

    @classmethod
    def start(
        cls,
        path: Path,
        prompts: Sequence[str],
        written: Mapping[str, Sequence[str]],
        seed: int = 0,
        about: Mapping[str, Any] | None = None,
    ) -> "Judging":
        """Make the folder, from what each model wrote after each prompt."""
        models = tuple(written)
        if len(models) < 2 or not prompts:
            raise UsageError("a judging needs two models or more, and a prompt at least")
        chance = np.random.default_rng(seed)
        pairs, same = [], 0
        for number, prompt in enumerate(prompts):
            for one, other in itertools.combinations(models, 2):
                left, right = (one, other) if chance.random() < 0.5 else (other, one)
                texts = written[left][number], written[right][number]
                same += texts[0] == texts[1]
                if texts[0] != texts[1]:
                    # Its name says nothing of whose its texts are.
                    digest = hashlib.sha256(as_json(sorted((prompt, *texts))).encode()).hexdigest()[:12]
                    pairs.append(BlindPair(f"{number}-{digest}", prompt, *texts, (left, right)))
        if not pairs:
            raise DataError("all the models wrote the same everywhere, so there is nothing to judge")
        told = {"format": _FORMAT, "format_version": _VERSION, "models": models, "same": same}
        told |= {"about": dict(about or {}), "pairs": [asdict(pair) for pair in pairs]}
        with atomic_directory(checked_path(path), lambda _: False) as partial:
            atomic_write(partial / PAIRS, as_json(told, indent=1) + "\n")
            (partial / JUDGEMENTS).mkdir()
        return cls(path, models, tuple(pairs), same, dict(about or {}))

    @classmethod
    def open(cls, path: Path) -> "Judging":
        """A judging that was begun before."""
        file = path / PAIRS
        if not is_file(file):
            raise KothaError(
                "{path} holds no judging: it has no {pairs}; begin one with models and prompts", path=path, pairs=PAIRS
            )
        values = read_table(file, most_bytes=_MOST_BYTES)
        try:
            if (values["format"], values["format_version"]) != (_FORMAT, _VERSION):
                raise ValueError("it is of another kind, or of another version")
            pairs = tuple(map(BlindPair.read, values["pairs"]))
            models = tuple(map(str, values["models"]))
            if len(set(models)) < len(models):
                raise ValueError("a model is named twice")
            if not {name for pair in pairs for name in pair.models} <= set(models):
                raise ValueError("a pair is by a model that is not among its models")
            return cls(path, models, pairs, int(values["same"]), dict(values["about"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise KothaError("{file} is no judging that this Kotha reads: {error}", file=file, error=error) from error

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same pairs; a judge's file says which ones it is about."""
        return hashlib.sha256(as_json([asdict(pair) for pair in self.pairs]).encode()).hexdigest()[:16]

    # -- judging ----------------------------------------------------------------------------------------------------

    def said_by(self, judge: str) -> dict[str, Choice]:
        """What a judge has said so far, by pair."""
        file = self._file(judge)
        return self._read(file)[1] if is_file(file) else {}

    def left_for(self, judge: str) -> list[BlindPair]:
        """The pairs that a judge has not judged, in that judge's order."""
        said = self.said_by(judge)
        digest = hashlib.sha256(f"{self.fingerprint} {judge}".encode()).digest()
        order = np.random.default_rng(int.from_bytes(digest[:8], "big")).permutation(len(self.pairs))
        return [self.pairs[place] for place in order if self.pairs[place].id not in said]

    def record(self, judge: str, pair: str, choice: Choice) -> None:
        """Keep a judgement; a second one of the same pair takes the place of the first."""
        self._write(judge, {**self.said_by(judge), pair: choice})

    def collect(self, file: Path) -> tuple[str, int]:
        """Take in what a page returned: whose it is, and how many judgements; what was there of that judge stays."""
        judge, said = self._read(file)
        self._write(judge, {**self.said_by(judge), **said})
        return judge, len(said)

    def judgements(self) -> dict[str, dict[str, Choice]]:
        """What each judge said, by pair."""
        found = (self._read(file) for file in matching(self.path / JUDGEMENTS, "*.json"))
        return dict(found)

    def result(self) -> JudgingResult:
        """Who won so far, and how far judges agree."""
        said = self.judgements()
        if not any(said.values()):
            raise DataError("nobody has judged anything in {path} yet", path=self.path)
        return judging_result(self.models, self.pairs, said, self.same)

    def page(self, path: Path) -> Path:
        """Write the page for judges without Kotha."""
        write_page(path, judging_page(self))
        return path

    # -- files ------------------------------------------------------------------------------------------------------

    def _file(self, judge: str) -> Path:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", judge)[:40]
        if not judge.strip():
            raise UsageError("a judge needs a name")
        if plain != judge:  # two names must not become one file
            plain += "-" + hashlib.sha256(judge.encode()).hexdigest()[:8]
        return self.path / JUDGEMENTS / f"{plain}.json"

    def _write(self, judge: str, said: Mapping[str, Choice]) -> None:
        values = {"format": SAID, "pairs": self.fingerprint, "judge": judge, "judgements": dict(said)}
        atomic_write(self._file(judge), as_json(values, indent=1) + "\n")

    def _read(self, file: Path) -> tuple[str, dict[str, Choice]]:
        values = read_table(file, most_bytes=_MOST_BYTES)
        judge, said = values.get("judge"), values.get("judgements")
        if values.get("format") == SAID and values.get("pairs") != self.fingerprint:
            raise KothaError(
                "{file} is about other pairs than {path}; it belongs to another judging", file=file, path=self.path
            )
        known = {(pair.id, choice) for pair in self.pairs for choice in CHOICES}
        if not (
            values.get("format") == SAID
            and isinstance(judge, str)
            and isinstance(said, dict)
            and all(isinstance(choice, str) for choice in said.values())
            and said.items() <= known
        ):
            raise KothaError(
                "{file} holds no judgements; give a file that the page of this judging has returned", file=file
            )
        return judge, said

    def __repr__(self) -> str:
        counts = f"{len(self.models)} models, {len(self.pairs)} pairs, {len(self.judgements())} judges"
        return f"Judging({str(self.path)!r}: {counts})"


def judging_page(judging: Judging) -> str:
    """One offline page with all the pairs, for judges without Kotha: it returns what they said as a file.

    The page knows texts and the names of pairs, and not who wrote what.
    """
    pairs = [{name: getattr(pair, name) for name in ("id", "prompt", "left", "right")} for pair in judging.pairs]
    data = {"format": SAID, "pairs_fingerprint": judging.fingerprint, "pairs": pairs}
    return report_page("judge", words("reports")["title.judge"]["bn"], data, made_by="kotha judge")
