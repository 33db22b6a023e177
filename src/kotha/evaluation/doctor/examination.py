"""One look at a run by the doctor: what was found, or a word that nothing was, and what it was told by."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kotha.evaluation.doctor.advice import reassure
from kotha.evaluation.doctor.curve import Curve, read_curve
from kotha.evaluation.doctor.diagnosis import Finding, diagnose, look_at
from kotha.i18n.numbers import LANGUAGES
from kotha.text.shards import Dataset


@dataclass(frozen=True)
class Examination:
    """What the doctor says of a run, gravest first."""

    findings: list[Finding]
    healthy: dict[str, str] | None  # by language, where there are no findings
    looked_at_data: bool  # without the data, copies and unknown tokens were not looked for
    curve: Curve

    def to_dict(self) -> dict[str, Any]:
        """What is said, ready for JSON."""
        told = [asdict(each) for each in self.findings]
        return {"findings": told, "healthy": self.healthy, "looked_at_data": self.looked_at_data}


def examine(
    config: dict[str, Any],
    metrics: Sequence[dict[str, Any]],
    dataset: Dataset | None = None,
    references: dict[str, float] | None = None,
) -> Examination:
    """Read a run's curve, and its data where they are given; ``references`` are further losses to compare with."""
    facts = None if dataset is None else look_at(dataset)
    findings = diagnose(config, metrics, references=references, data=facts)
    curve = read_curve(config, metrics, references)
    reached = None if curve.best is None else curve.best.loss
    said: dict[str, str] = {each: reassure(reached, curve.references, each) for each in LANGUAGES}
    return Examination(findings, None if findings else said, facts is not None, curve)
