"""What a training curve shows, in plain words, and what to try: a pure function of what a run has logged.

The signs are in ``curve.py``, and for each kind of finding what was seen and what to try in ``advice.json`` (its Bangla
with all other Bangla, in ``i18n/bn``). A healthy run has no findings. The workshop asks the same
of a student: question 7b (training 2.61, validation 4.08: what does that tell you?) and 12b (validation has stalled
while training still falls: what could be done?).
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kotha.artifacts.run_folder import figure, mapping
from kotha.evaluation.doctor import curve as signs
from kotha.evaluation.doctor.curve import MEASURED, Curve, Symptoms, evaluations_of, points_of, read_curve
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message
from kotha.i18n.numbers import LANGUAGES
from kotha.report.single_file import training_page
from kotha.text.held_out import tokens_of
from kotha.text.shards import Dataset

# Training tokens that are searched for copies of validation documents.
_SEARCHED = 50_000_000
_NOTICES = ("empty", "plateau", "mismatch-validation")

# In each group the first sign that is there is told; the later ones would say the same less well.
_Group = tuple[Callable[[Curve], Symptoms | None], ...]
_BROKEN: _Group = (signs.not_a_number, signs.learning_rate_too_high)
_LEARNED: _Group = (signs.untrained, signs.read_too_little, signs.no_better_than_counting)
_HELD_OUT: _Group = (signs.mismatch_validation, signs.memorising, signs.plateau)
_LEAKS: _Group = (signs.leak_below_floor, signs.leak)


@dataclass(frozen=True)
class DataFacts:
    """What only the data folder can tell."""

    unknown_share: float  # unknown tokens among those of validation
    copied_share: float  # share of validation documents that also stand in training, word for word


@dataclass(frozen=True)
class Finding:
    """Something that a run shows."""

    kind: str
    severity: Literal["alarm", "notice"]
    evidence: Symptoms
    words: Message  # what was seen
    advice: tuple[Message, ...]  # what to try

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON: words and advice by language."""
        advice = {each: [translate(message, each) for message in self.advice] for each in LANGUAGES}
        told = {"kind": self.kind, "severity": self.severity, "evidence": self.evidence}
        return {**told, "words": _by_language(self.words), "advice": advice}


@dataclass(frozen=True)
class Examination:
    """What the doctor says of a run, gravest first."""

    findings: list[Finding]
    healthy: Message | None  # where there are no findings
    looked_at_data: bool  # without the data, copies and unknown tokens were not looked for
    curve: Curve

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, but for the curve."""
        healthy = None if self.healthy is None else _by_language(self.healthy)
        told = [each.to_dict() for each in self.findings]
        return {"findings": told, "healthy": healthy, "looked_at_data": self.looked_at_data}


def examine(
    config: dict[str, Any],
    metrics: Sequence[dict[str, Any]],
    dataset: Dataset | None = None,
    references: dict[str, float] | None = None,
) -> Examination:
    """Read a run's curve, and its data where they are given; ``references`` are further losses to compare with."""
    facts = None if dataset is None else look_at(dataset)
    curve = read_curve(config, metrics, references)
    findings = diagnose(curve, facts)
    healthy = reassure(None if curve.best is None else curve.best.loss, curve.references)
    return Examination(findings, None if findings else healthy, facts is not None, curve)


def diagnose(curve: Curve, data: DataFacts | None = None) -> list[Finding]:
    """What a curve shows, gravest first; an empty list when nothing is wrong. ``data`` is what ``look_at`` saw."""
    if not curve.losses and not curve.evaluations and curve.lost is None:
        return [_finding("empty", {})]
    broken = _first(curve, _BROKEN)
    shares = {}
    if data is not None:
        shares = {"mismatch-unknown": (data.unknown_share, signs.UNKNOWN_SHARE)}
        shares["leak-copies"] = data.copied_share, signs.COPIED_SHARE
    proved = [_finding(kind, {"share": 100 * share}) for kind, (share, most) in shares.items() if share > most]
    found = [*broken, *proved, *_first(curve, (signs.mismatch_tokenizer,))]
    if not broken:
        found += _first(curve, _LEARNED) + _first(curve, _HELD_OUT)
    return found if any(each.kind == "leak-copies" for each in proved) else found + _first(curve, _LEAKS)


def look_at(data: Dataset) -> DataFacts:
    """What a data folder tells beside its run: unknown tokens, and validation documents that stand in training."""
    held_out = data["validation"]
    line, unknown = tokens_of(held_out), data.tokenizer.special.get("unk")
    n_unknown = 0 if unknown is None else int(np.count_nonzero(line == unknown))
    wanted = Counter(document.tobytes() for document in held_out)
    copied = read = 0
    for document in data["train"]:
        copied += wanted.pop(document.tobytes(), 0)
        read += len(document)
        if read > _SEARCHED:
            break
    return DataFacts(n_unknown / max(1, len(line)), copied / max(1, len(held_out)))


def _first(curve: Curve, group: _Group) -> list[Finding]:
    for sign in group:
        if (evidence := sign(curve)) is not None:
            return [_finding(sign.__name__.replace("_", "-"), evidence)]
    return []


def _finding(kind: str, evidence: Symptoms) -> Finding:
    said = advice()[kind]
    seen, *tries = (Message(each, **evidence) for each in (said["seen"], *said["try"]))
    return Finding(kind, "notice" if kind in _NOTICES else "alarm", evidence, seen, tuple(tries))


@cache
def advice() -> dict[str, Any]:
    """What is said of each kind of finding: what was ``seen``, and what to ``try``, as templates of the evidence."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("advice.json").read_text(encoding="utf-8"))
    return found


def reassure(loss: float | None, references: Mapping[str, float]) -> Message:
    """What is said where nothing was found: only what was looked at; ``loss`` is the best on unseen text.

    >>> print(reassure(3.0, {"ln V": 9.0, "5-gram": 2.5}))
    No problem found: the loss falls, on held-out text too. It is below these baselines: ln V.
    """
    if loss is None:
        return Message(
            "No problem found in the training loss. Nothing was evaluated on held-out text, so how well the "
            "model generalizes is not known."
        )
    names = [name for name, nats in references.items() if loss < nats]
    if not names:
        return Message("No problem found: the loss falls, on held-out text too.")
    return Message(
        "No problem found: the loss falls, on held-out text too. It is below these baselines: {names}.",
        names=names,
    )


def _by_language(message: Message) -> dict[str, str]:
    return {each: translate(message, each) for each in LANGUAGES}


# -- one offline page ------------------------------------------------------------------------------------------------

_POINTS = 1000  # as many as a wide screen can show apart
_DIGITS = 5  # more than anybody reads off a curve


def doctor_page(
    name: str, config: dict[str, Any], metrics: Sequence[dict[str, Any]], found: Examination, language: str = "en"
) -> str:
    """The whole page as HTML; ``name`` is the run's."""
    points, curve = points_of(metrics, _POINTS), found.curve
    data = {
        "name": name,
        "sizes": {key: value for key, value in mapping(config, "model").items() if type(value) is int},
        "steps": figure(config, "training", "steps"),
        "epochs": curve.epochs,
        "references": curve.references,
        "predicted_seconds": figure(config, "predicted", "seconds"),
        "predicted_bytes": figure(config, "predicted", "memory_bytes", "total"),
        "columns": {key: [_short(point[key]) for point in points] for key in ("step", *MEASURED)},
        "evaluations": evaluations_of(metrics),
        "counted": any("gram" in each and each != "unigram" for each in curve.references),
        **found.to_dict(),
    }
    return training_page("doctor", f"{name}: the doctor's word", data, made_by="kotha doctor", language=language)


def _short(value: float | None) -> float | int | None:
    """A figure with as many digits as are read."""
    if value is None or type(value) is int:
        return value
    return float(f"{value:.{_DIGITS}g}") if value != int(value) else int(value)
