"""A run and the doctor's word on it as one offline page, drawn as the studio's training room draws it."""

from collections.abc import Sequence
from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.evaluation.doctor.curve import MEASURED, evaluations_of, points_of
from kotha.evaluation.doctor.diagnosis import Examination
from kotha.report.single_file import training_page

_POINTS = 1000  # as many as a wide screen can show apart
_DIGITS = 5  # more than anybody reads off a curve


def doctor_page(
    name: str, config: dict[str, Any], metrics: Sequence[dict[str, Any]], found: Examination, language: str = "en"
) -> str:
    """The whole page as HTML; ``name`` is the run's."""
    points = points_of(metrics, _POINTS)
    columns = {key: [_short(point[key]) for point in points] for key in ("step", *MEASURED)}
    data = {
        "name": name,
        "sizes": {key: value for key, value in mapping(config, "model").items() if type(value) is int},
        "steps": figure(config, "training", "steps"),
        "epochs": found.curve.epochs,
        "references": found.curve.references,
        "predicted_seconds": figure(config, "predicted", "seconds"),
        "predicted_bytes": figure(config, "predicted", "memory_bytes", "total"),
        "columns": columns,
        "evaluations": evaluations_of(metrics),
        "counted": any("gram" in each and each != "unigram" for each in found.curve.references),
        **found.to_dict(),
    }
    return training_page("doctor", f"{name}: the doctor's word", data, made_by="kotha doctor", language=language)


def _short(value: float | None) -> float | int | None:
    """A figure with as many digits as are read."""
    if value is None or type(value) is int:
        return value
    return float(f"{value:.{_DIGITS}g}") if value != int(value) else int(value)
