"""The curves of a run, each with the sentence or two that a reader needs who has never seen one (``curves.json``).

A curve whose figures are not in the run folder is left out.
"""

import json
from pathlib import Path
from typing import Any, Literal

from kotha.artifacts.run_folder import figure, mapping
from kotha.i18n.message import Message, Text
from kotha.report.document import Curves, DrawnLine
from kotha.training.reporting.findings import Record

_TOLD = json.loads(Path(__file__).with_name("curves.json").read_text(encoding="utf-8"))
_STEP = Message("step")


def loss_chart(record: Record) -> Curves | None:
    """Training and validation loss, and what knowing less would give."""
    training, validation = record.line("loss_nats"), record.line("validation", "loss_nats")
    if not training and not validation:
        return None
    lines = [DrawnLine(Message("training"), training, 2, "smoothed")] if training else []
    lines += [DrawnLine(Message("validation"), validation, 1, "dots")] if validation else []
    values = references(record)
    levels = [(value, _level(name, f"{value:.2f}")) for name, value in values.items()]
    guessed, unit = _TOLD["guessed"].get(str(record.config.get("task", "next-token")), _TOLD["guessed"]["classes"])
    caption: list[Text] = [
        Message("How surprised the model is by each {what}: lower is better.", what=Message(guessed))
    ]
    if training and validation:
        colours = "Orange is the text it learns from (pale: single steps), green is text it never learns from."
        caption.append(Message(colours))
    # What the known references mean; others are shown by their name.
    caption += [Message(words) for name, words in _TOLD["explained"].items() if name in values]
    marker: tuple[float, Text] | None = None
    if record.best and record.best is not record.evaluations[-1]:
        marker = record.best["step"], Message("best: step {step:,}", step=record.best["step"])
    return Curves(Message("Loss"), _STEP, Message(unit), lines, levels, marker, caption, log_y=True)


def references(record: Record) -> dict[str, float]:
    """What the loss is to be compared with, in nats: what knowing less reaches, and below what nothing can get."""
    known = mapping(record.config, "references")
    values = {name: value for name in known if (value := figure(known, name)) is not None}
    floor, best = figure(record.config, "floors", "bits_per_byte"), mapping(record.best or {}, "validation")
    loss, bits = figure(best, "loss_nats"), figure(best, "bits_per_byte")
    if floor is not None and loss and bits:
        values["floor"] = floor * loss / bits
    return values


def charts(record: Record, kind: Literal["validation", "health"]) -> list[Curves]:
    """How good the model is, in units that need no knowledge of its tokenizer; or whether the training went well."""
    found = []
    for told in _TOLD[kind]:
        keys = told["keys"]
        points = record.line(*keys)
        if keys[-1] in ("accuracy", "peak_share"):
            points = [(x, None if y is None or y > 1 else 100 * y) for x, y in points]  # older runs kept larger shares
        if all(y is None for _, y in points):
            continue
        levels, caption = _levels(record, keys[-1], told), told["caption"]
        if levels:
            caption = told["level"]["caption"]
        log, name = "log" in told, Message(told["name"])
        y_name = Message("{what}, log scale", what=name) if log else name
        lines = [DrawnLine(name, points, 1, told["look"])]
        said = [Message(each) for each in caption]
        found.append(Curves(name, _STEP, y_name, lines, levels, None, said, log_y=log, from_zero=not log))
    return found


def _levels(record: Record, key: str, told: dict[str, Any]) -> list[tuple[float, Text]]:
    """What a curve is compared with, where that is known: each drawn as a line across."""
    known = {
        "bits_per_byte": (figure(record.config, "floors", "bits_per_byte"), 1, ".3g"),
        "accuracy": (figure(record.best or {}, "validation", "majority"), 100, ".1%"),
        "gradient_norm": (figure(record.config, "training", "gradient_clip"), 1, "g"),
    }
    value, scale, form = known.get(key, (None, 1, ""))
    return [] if value is None else [(scale * value, _level(told["level"]["name"], format(value, form)))]


def _level(name: str, value: str) -> Message:
    return Message("{name} = {value}", name=Message(name), value=value)
