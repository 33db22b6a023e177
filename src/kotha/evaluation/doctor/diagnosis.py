"""What a training curve shows, in plain words, and what to try: a pure function of what a run has logged.

The signs are in ``signs.py`` and the words, in English and Bangla, in ``advice.py``. A healthy run has no findings. The
workshop asks the same of a student: question 7b (training 2.61, validation 4.08: what does that tell you?) and 12b
(validation has stalled while training still falls: what could be done?).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from kotha.evaluation.doctor import signs
from kotha.evaluation.doctor.advice import Symptoms, advise
from kotha.evaluation.doctor.curve import Curve, read_curve
from kotha.evaluation.doctor.signs import Thresholds
from kotha.text.held_out import tokens_of
from kotha.text.shards import Dataset

Severity = Literal["alarm", "notice"]
Sign = Callable[[Curve, Thresholds], Symptoms | None]

# Training tokens that are searched for copies of validation documents.
_SEARCHED = 50_000_000
_NOTICES = ("empty", "plateau", "mismatch-validation")

# In each group the first sign that is there is told; the later ones would say the same less well.
_BROKEN: dict[str, Sign] = {"not-a-number": signs.lost, "learning-rate-too-high": signs.rising}
_GROUPS: list[dict[str, Sign]] = [
    {
        "untrained": signs.untrained,
        "read-too-little": signs.read_too_little,
        "no-better-than-counting": signs.not_beaten,
    },
    {"mismatch-validation": signs.unlike, "memorising": signs.by_heart, "plateau": signs.flat},
]
_LEAKS: dict[str, Sign] = {"leak-below-floor": signs.below_floor, "leak": signs.too_good}
_TOKENIZER: dict[str, Sign] = {"mismatch-tokenizer": signs.foreign}


@dataclass(frozen=True)
class DataFacts:
    """What only the data folder can tell."""

    unknown_share: float  # unknown tokens among those of validation
    copied_share: float  # share of validation documents that also stand in training, word for word


@dataclass(frozen=True)
class Finding:
    """Something that a run shows."""

    kind: str
    severity: Severity
    evidence: Symptoms
    words: dict[str, str]  # what was seen, by language: "en", "bn"
    advice: dict[str, list[str]]  # what to try, by language


def diagnose(
    config: dict[str, Any],
    metrics: Sequence[dict[str, Any]],
    *,
    references: dict[str, float] | None = None,
    data: DataFacts | None = None,
    thresholds: Thresholds | None = None,
) -> list[Finding]:
    """What a run's config and metrics show, gravest first; an empty list when nothing is wrong.

    ``references`` adds losses to those in the config, such as a 5-gram's; ``data`` is what ``look_at`` saw.
    """
    limits = thresholds or Thresholds()
    curve = read_curve(config, metrics, references)
    if not curve.losses and not curve.evaluations and curve.lost is None:
        return [_finding("empty", {})]
    broken = _first(curve, limits, _BROKEN)
    found = [*broken, *_about_data(data, limits), *_first(curve, limits, _TOKENIZER)]
    if not broken:
        found += [each for group in _GROUPS for each in _first(curve, limits, group)]
    if not any(each.kind == "leak-copies" for each in found):
        found += _first(curve, limits, _LEAKS)
    return found


def look_at(data: Dataset) -> DataFacts:
    """What a data folder tells beside its run: unknown tokens, and validation documents that stand in training."""
    held_out = data["validation"]
    line, unknown = tokens_of(held_out), data.tokenizer.special.get("unk")
    n_unknown = 0 if unknown is None else int(np.count_nonzero(line == unknown))
    wanted = {document.tobytes() for document in held_out}
    seen: set[bytes] = set()
    read = 0
    for document in data["train"]:
        seen |= {document.tobytes()} & wanted
        read += len(document)
        if read > _SEARCHED:
            break
    copied = sum(document.tobytes() in seen for document in held_out)
    return DataFacts(n_unknown / max(1, len(line)), copied / max(1, len(held_out)))


def _about_data(data: DataFacts | None, limits: Thresholds) -> list[Finding]:
    if data is None:
        return []
    shares = [("mismatch-unknown", data.unknown_share, limits.unknown_share)]
    shares.append(("leak-copies", data.copied_share, limits.copied_share))
    return [_finding(kind, {"share": 100 * share}) for kind, share, most in shares if share > most]


def _first(curve: Curve, limits: Thresholds, group: dict[str, Sign]) -> list[Finding]:
    for kind, sign in group.items():
        evidence = sign(curve, limits)
        if evidence is not None:
            return [_finding(kind, evidence)]
    return []


def _finding(kind: str, evidence: Symptoms) -> Finding:
    severity: Severity = "notice" if kind in _NOTICES else "alarm"
    return Finding(kind, severity, evidence, *advise(kind, evidence))
