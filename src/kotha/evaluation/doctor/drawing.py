"""A run's curve, ready to be drawn: its points, thinned out where there are very many, and its looks at unseen text."""

from collections.abc import Sequence
from typing import Any

from kotha.artifacts.run_folder import figure

MEASURED = ("tokens", "seconds", "loss_nats", "learning_rate", "gradient_norm", "tokens_per_second", "memory_bytes")
_EVALUATED = ("loss_nats", "bits_per_byte", "bits_per_character")

Row = dict[str, Any]


def points_of(metrics: Sequence[Row], most: int) -> list[Row]:
    """What was measured at the steps of a run, each figure None where a row has none; about ``most`` rows, or all."""
    learned = [row for row in metrics if "loss_nats" in row and "validation" not in row]
    return [
        {"step": int(row["step"]), **{name: figure(row, name) for name in MEASURED}}
        for row in _thinned([row for row in learned if figure(row, "step") is not None], most)
    ]


def evaluations_of(metrics: Sequence[Row]) -> list[Row]:
    """The looks at unseen text, with what the model wrote then; the mean of checkpoints at the end is no point."""
    seen = [row for row in metrics if figure(row, "validation", "loss_nats") and not row.get("average_of")]
    return [
        {
            "step": int(row["step"]),
            **{name: figure(row, "validation", name) for name in _EVALUATED},
            "sample": row["sample"] if isinstance(row.get("sample"), str) else "",
        }
        for row in seen
        if figure(row, "step") is not None
    ]


def _thinned(rows: list[Row], most: int) -> list[Row]:
    """Of each stretch the lowest and the highest loss, so that no outlier is lost."""
    if len(rows) <= most:
        return rows
    length = -(-len(rows) * 2 // most)
    kept: list[Row] = []
    for start in range(0, len(rows), length):
        stretch = sorted(rows[start : start + length], key=lambda row: figure(row, "loss_nats") or 0.0)
        kept += sorted({row["step"]: row for row in (stretch[0], stretch[-1])}.values(), key=lambda row: row["step"])
    return kept
