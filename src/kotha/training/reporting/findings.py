"""What the files of a run folder say, as figures and in plain words.

Any part may be missing, because a run may be older than a figure, or not finished: such a figure is None, and its
sentence is left out.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kotha.artifacts.run_folder import figure, mapping
from kotha.errors import KothaError
from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.numbers import Count, Duration
from kotha.model.config import config_from_dict
from kotha.model.parameters import count_parameters
from kotha.report.chart import Point


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
        """The rows of evaluations."""
        return [row for row in self.metrics if mapping(row, "validation") and figure(row, "step") is not None]

    @cached_property
    def best(self) -> dict[str, Any] | None:
        """The evaluation that was kept: the one the summary names, or else that of least loss."""
        named = [row for row in self.evaluations if row["step"] == self.summary.get("best_step")]
        measured = [row for row in self.evaluations if figure(row, "validation", "loss_nats") is not None]
        least = min(measured, key=lambda row: float(row["validation"]["loss_nats"]), default=None)
        return named[0] if named else least

    def line(self, *keys: str) -> list[Point]:
        """A figure over the steps, from whichever rows have it."""
        rows = self.evaluations if keys[0] == "validation" else self.steps
        points = [(float(row["step"]), figure(row, *keys)) for row in rows]
        return points if any(value is not None for _, value in points) else []


def title(config: dict[str, Any]) -> Text:
    """The model in a few words."""
    model = mapping(config, "model")
    parts: list[Text] = [str(model["family"]).upper() if model.get("family") else Message("A training run")]
    layers, width = figure(model, "n_layers"), figure(model, "d_model")
    parts += [Plural("{n} layer", "{n:,} layers", n=int(layers))] if layers else []
    parts += [Message("width {width:g}", width=width)] if width else []
    with suppress(KothaError, KeyError, TypeError, ValueError):  # a config of another version has a shorter title
        parts.append(Message("{n} parameters", n=Count(count_parameters(config_from_dict(model)).total)))
    return Message("{parts}", parts=parts)


def lead(record: Record) -> list[Text]:
    """What came out, in plain words."""
    last = record.steps[-1] if record.steps else {}
    reached = {**last, "steps": last.get("step"), **record.summary}  # an unfinished run has no summary
    steps, tokens, seconds = (figure(reached, key) for key in ("steps", "tokens", "seconds"))
    planned, corpus = figure(record.config, "training", "steps"), figure(record.config, "data", "train_tokens")
    done: list[Text] = [Plural("{n} step", "{n:,} steps", n=int(steps))] if steps else []
    done += [Message("{n} tokens", n=Count(tokens))] if tokens else []
    done += [Message("{n:.2g} times through its text", n=tokens / corpus)] if tokens and corpus else []
    done += [Message("{time}", time=Duration(seconds))] if seconds else []
    words: list[Text] = [Message("Trained for {done}.", done=done) if done else Message("Nothing is learned yet.")]
    if steps and planned and steps < planned:
        stopped = Message("It was stopped early: {n:,.0f} steps were planned.", n=planned)
        words.append(
            stopped if record.summary else Message("It is not finished: {n:,.0f} steps were planned.", n=planned)
        )
    if record.best:
        reached_then = result(record.best["validation"])
        words.append(Message("At its best, step {step:,}, {result}.", step=record.best["step"], result=reached_then))
    return words


def result(validation: dict[str, Any]) -> Message:
    """One evaluation as the end of a sentence."""
    per_byte, per_character = figure(validation, "bits_per_byte"), figure(validation, "bits_per_character")
    accuracy, majority = figure(validation, "accuracy"), figure(validation, "majority")
    if accuracy is not None:
        told = "it answers {share:.1%} of unseen examples rightly"
        if majority is not None:
            told = (
                "it answers {share:.1%} of unseen examples rightly (always giving the most frequent answer: "
                "{usual:.1%})"
            )
        return Message(told, share=accuracy, usual=majority)
    if per_byte is not None:
        told = "it needs {bits:.3f} bits per byte of unseen text"
        if per_character is not None:
            told = "it needs {bits:.3f} bits per byte of unseen text, {character:.3f} per character"
        return Message(told, bits=per_byte, character=per_character)
    loss = figure(validation, "loss_nats")
    told = "its loss was not a number" if loss is None else "its loss on unseen text is {loss:.3f} nats per token"
    return Message(told, loss=loss)
