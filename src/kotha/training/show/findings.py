"""What the files of a run folder say, as figures and in plain words.

Any part may be missing, because a run may be older than a figure, or not finished: such a figure is None, and its
sentence is left out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.errors import KothaError
from kotha.i18n.wording import count, counted, duration
from kotha.model.config import config_from_dict
from kotha.model.parameters import count_parameters
from kotha.report.chart import Point

# A validation loss this much above the best is a rise, not noise.
_RISE = 1.01


@dataclass(frozen=True)
class Record:
    """The files of a run folder, read."""

    config: dict[str, Any]
    metrics: Sequence[dict[str, Any]]
    summary: dict[str, Any]

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The rows of steps."""
        return [row for row in self.metrics if "validation" not in row and figure(row, "step") is not None]

    @cached_property
    def evaluations(self) -> list[dict[str, Any]]:
        """The rows of evaluations along the way; the mean of checkpoints at the end is apart."""
        return [row for row in self._validated if not row.get("average_of")]

    @cached_property
    def averaged(self) -> dict[str, Any] | None:
        """The evaluation of the mean of the last checkpoints."""
        return next((row for row in reversed(self._validated) if row.get("average_of")), None)

    @cached_property
    def best(self) -> dict[str, Any] | None:
        """The evaluation that was kept: the one the summary names, or else that of least loss."""
        named = [row for row in self.evaluations if row["step"] == self.summary.get("best_step")]
        measured = [row for row in self.evaluations if figure(row, "validation", "loss_nats") is not None]
        least = min(measured, key=lambda row: float(row["validation"]["loss_nats"]), default=None)
        return named[0] if named else least

    @property
    def _validated(self) -> list[dict[str, Any]]:
        return [row for row in self.metrics if mapping(row, "validation") and figure(row, "step") is not None]

    def line(self, *keys: str) -> list[Point]:
        """A figure over the steps, from whichever rows have it."""
        rows = self.evaluations if keys[0] == "validation" else self.steps
        points = [(float(row["step"]), figure(row, *keys)) for row in rows]
        return points if any(value is not None for _, value in points) else []


def smooth(points: Sequence[Point], share: float = 0.01) -> list[Point]:
    """The median of a point and its neighbours, a share of all points to each side, at some 600 places.

    A single peak does not move a median. Near the start, where curves are steep, fewer neighbours are looked at.

    >>> smooth([(1, 0.0), (2, 3.0), (3, None), (4, 9.0)], share=0.25)
    [(1, 0.0), (2, 1.5), (3, None), (4, 9.0)]
    """
    reach, every = round(share * len(points)), 1 + len(points) // 600
    smoothed: list[Point] = []
    for place in sorted({*range(0, len(points), every), len(points) - 1} if points else ()):
        x, y = points[place]
        near = min(reach, place)
        values = [value for _, value in points[place - near : place + near + 1] if value is not None]
        smoothed.append((x, None if y is None else median(values)))
    return smoothed


def title(config: dict[str, Any]) -> str:
    """The model in a few words."""
    model = mapping(config, "model")
    words = [str(model["family"]).upper()] if model.get("family") else ["A training run"]
    layers, width = figure(model, "n_layers"), figure(model, "d_model")
    words += [counted(int(layers), "layer")] if layers else []
    words += [f"width {width:g}"] if width else []
    with suppress(KothaError, KeyError, TypeError, ValueError):  # a config of another version has a shorter title
        words.append(f"{count(count_parameters(config_from_dict(model)).total)} parameters")
    return ", ".join(words)


def lead(record: Record) -> str:
    """What came out, in plain words."""
    last = record.steps[-1] if record.steps else {}
    reached = {**last, "steps": last.get("step"), **record.summary}  # an unfinished run has no summary
    steps, tokens, seconds = (figure(reached, key) for key in ("steps", "tokens", "seconds"))
    planned, corpus = figure(record.config, "training", "steps"), figure(record.config, "data", "train_tokens")
    done = [counted(int(steps), "step")] if steps else []
    done += [f"{count(tokens)} tokens"] if tokens else []
    done += [f"{tokens / corpus:.2g} times through its text"] if tokens and corpus else []
    done += [duration(seconds)] if seconds else []
    words = [f"Trained for {', '.join(done)}."] if done else ["Nothing is learned yet."]
    if steps and planned and steps < planned:
        state = "It was stopped early" if record.summary else "It is not finished"
        words.append(f"{state}: {planned:,.0f} steps were planned.")
    if record.best:
        words.append(f"At its best, step {record.best['step']:,}, {result(record.best['validation'])}.")
    return " ".join(words)


def result(validation: dict[str, Any]) -> str:
    """One evaluation as the end of a sentence."""
    per_byte, per_character = figure(validation, "bits_per_byte"), figure(validation, "bits_per_character")
    accuracy, majority = figure(validation, "accuracy"), figure(validation, "majority")
    if accuracy is not None:
        usual = "" if majority is None else f" (always giving the most frequent answer: {majority:.1%})"
        return f"it answers {accuracy:.1%} of unseen examples rightly{usual}"
    if per_byte is not None:
        character = "" if per_character is None else f", {per_character:.3f} per character"
        return f"it needs {per_byte:.3f} bits per byte of unseen text{character}"
    loss = figure(validation, "loss_nats")
    return "its loss was not a number" if loss is None else f"its loss on unseen text is {loss:.3f} nats per token"


def remark(record: Record) -> str:
    """Says so when the model went on to learn its training text by heart."""
    validation = [(x, y) for x, y in record.line("validation", "loss_nats") if y is not None]
    if not record.best or not validation:
        return ""
    best, best_loss = record.best["step"], figure(record.best, "validation", "loss_nats")
    end, end_loss = validation[-1]
    training = [(x, y) for x, y in smooth(record.line("loss_nats")) if y is not None]
    before, after = [y for x, y in training if x <= best], [y for x, y in training if x > best]
    if best_loss is None or end_loss < _RISE * best_loss or not before or not after or after[-1] >= before[-1]:
        return ""
    return (
        f"From step {best:,} on it learns its training text by heart: until step {end:,.0f} its loss there falls "
        f"from {before[-1]:.2f} to {after[-1]:.2f}, and on unseen text rises from {best_loss:.2f} to {end_loss:.2f}. "
        "More text, a smaller model, more dropout or fewer steps would help."
    )
