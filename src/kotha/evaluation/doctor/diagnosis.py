"""Diagnose a run from its training curve, with advice; a pure function of its config and metrics.

The signs are defined in ``curve.py``, and the texts for each kind of finding in ``advice.json`` (their translations are
in ``i18n/bn``). A healthy run has no findings. The workshop asks students to make the same diagnosis: in question 7b
(what does a training loss of 2.61 with a validation loss of 4.08 tell you?) and in 12b (what could be done when the
validation loss has stalled while the training loss still falls?).
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
from kotha.i18n.numbers import LANGUAGES, Language
from kotha.report.single_file import training_page
from kotha.text.held_out import tokens_of
from kotha.text.shards import Dataset

# The number of training tokens that are searched for copies of validation documents.
_SEARCHED = 50_000_000
_NOTICES = ("empty", "plateau", "mismatch-validation")

# Only the first sign found in each group is reported; later ones are weaker forms of it.
_Group = tuple[Callable[[Curve], Symptoms | None], ...]
_BROKEN: _Group = (signs.not_a_number, signs.learning_rate_too_high)
_LEARNED: _Group = (signs.untrained, signs.read_too_little, signs.no_better_than_counting)
_HELD_OUT: _Group = (signs.mismatch_validation, signs.memorising, signs.plateau)
_LEAKS: _Group = (signs.leak_below_floor, signs.leak)


@dataclass(frozen=True)
class DataFacts:
    """Facts that can only be read from the data folder."""

    unknown_share: float  # share of unknown tokens in the validation text
    copied_share: float  # share of validation documents that are also in the training split, word for word


@dataclass(frozen=True)
class Finding:
    """One finding, with its evidence and advice."""

    kind: str
    severity: Literal["alarm", "notice"]
    evidence: Symptoms
    words: Message  # what the curve shows
    advice: tuple[Message, ...]  # what to try

    def to_dict(self) -> dict[str, Any]:
        """Return the finding for JSON, with its texts by language."""
        advice = {each: [translate(message, each) for message in self.advice] for each in LANGUAGES}
        found = {"kind": self.kind, "severity": self.severity, "evidence": self.evidence}
        return {**found, "words": _by_language(self.words), "advice": advice}


@dataclass(frozen=True)
class Diagnosis:
    """The diagnosis of a run, most severe finding first."""

    findings: list[Finding]
    healthy: Message | None  # None if there are findings
    looked_at_data: bool  # if False, copies and unknown tokens were not checked
    curve: Curve

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis for JSON, without the curve."""
        healthy = None if self.healthy is None else _by_language(self.healthy)
        findings = [each.to_dict() for each in self.findings]
        return {"findings": findings, "healthy": healthy, "looked_at_data": self.looked_at_data}


def examine(
    config: dict[str, Any],
    metrics: Sequence[dict[str, Any]],
    dataset: Dataset | None = None,
    references: dict[str, float] | None = None,
) -> Diagnosis:
    """Diagnose a run from its metrics, and from its data if given; ``references`` are additional baseline losses."""
    facts = None if dataset is None else look_at(dataset)
    curve = read_curve(config, metrics, references)
    findings = diagnose(curve, facts)
    healthy = reassure(None if curve.best is None else curve.best.loss, curve.references)
    return Diagnosis(findings, None if findings else healthy, facts is not None, curve)


def diagnose(curve: Curve, data: DataFacts | None = None) -> list[Finding]:
    """Return the findings, most severe first; an empty list if nothing is wrong. ``data`` comes from `look_at`."""
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
    """Measure the share of unknown tokens, and of validation documents with copies in the training data."""
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
    texts = advice()[kind]
    seen, *tries = (Message(each, **evidence) for each in (texts["seen"], *texts["try"]))
    return Finding(kind, "notice" if kind in _NOTICES else "alarm", evidence, seen, tuple(tries))


@cache
def advice() -> dict[str, Any]:
    """Return the templates for each kind of finding: the observation (``seen``) and the advice (``try``)."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("advice.json").read_text(encoding="utf-8"))
    return found


def reassure(loss: float | None, references: Mapping[str, float]) -> Message:
    """Return the message for a run without findings; ``loss`` is its best validation loss.

    >>> print(reassure(3.0, {"uniform": 9.0, "5-gram": 2.5}))
    No problem found: the loss is falling, on held-out text too. It is below these baselines: uniform.
    """
    if loss is None:
        return Message(
            "No problem found in the training loss. The model was not evaluated on held-out text, so it is unknown how "
            "well it generalizes."
        )
    names = [name for name, nats in references.items() if loss < nats]
    if not names:
        return Message("No problem found: the loss is falling, on held-out text too.")
    return Message(
        "No problem found: the loss is falling, on held-out text too. It is below these baselines: {names}.",
        names=names,
    )


def _by_language(message: Message) -> dict[str, str]:
    return {each: translate(message, each) for each in LANGUAGES}


# -- one offline page ------------------------------------------------------------------------------------------------

_POINTS = 1000  # about as many points as a wide screen can resolve
_DIGITS = 5  # significant digits; a plot shows no more


def doctor_page(
    name: str, config: dict[str, Any], metrics: Sequence[dict[str, Any]], found: Diagnosis, language: Language = "en"
) -> str:
    """Return the page as HTML; ``name`` is the name of the run."""
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
        "counted": curve.has_ngrams,
        **found.to_dict(),
    }
    return training_page("doctor", f"{name}: diagnosis", data, made_by="kotha doctor", language=language)


def _short(value: float | None) -> float | int | None:
    """Round a value to the number of significant digits that a plot shows."""
    if value is None or type(value) is int:
        return value
    return float(f"{value:.{_DIGITS}g}") if value != int(value) else int(value)
