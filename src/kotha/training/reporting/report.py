"""The report of a run: a self-contained page with its curves, samples and settings.

The report depends only on the files in the run folder, so it can be generated at any time, even for an unfinished,
stopped or older run. If a value is missing, its curve or sentence is omitted. Each curve has a caption for beginners
(``curves.json``).
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from kotha.artifacts.run_folder import RunFolder, figure, mapping, reference_losses, stages_of
from kotha.errors import CheckpointError, KothaError
from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.numbers import Count, Duration
from kotha.model.config import config_from_dict
from kotha.model.parameters import count_parameters
from kotha.report.chart import Point
from kotha.report.document import Block, Columns, Curves, DrawnLine, Folded, Heading, Quote, Report, Settings
from kotha.storage.atomic import atomic_write

REPORT = "report.html"
_SHOWN_SAMPLES = 3
_TEXTS = json.loads(Path(__file__).with_name("curves.json").read_text(encoding="utf-8"))
_STEP = Message("step")


@dataclass(frozen=True)
class Record:
    """The contents of a run folder."""

    config: dict[str, Any]
    metrics: Sequence[dict[str, Any]]
    summary: dict[str, Any]

    @cached_property
    def steps(self) -> list[dict[str, Any]]:
        """The rows for training steps."""
        return [row for row in self.metrics if "validation" not in row and figure(row, "step") is not None]

    @cached_property
    def evaluations(self) -> list[dict[str, Any]]:
        """The rows for evaluations."""
        return [row for row in self.metrics if mapping(row, "validation") and figure(row, "step") is not None]

    @cached_property
    def best(self) -> dict[str, Any] | None:
        """The best evaluation: the one named in the summary, or else the one with the lowest loss."""
        named = [row for row in self.evaluations if row["step"] == self.summary.get("best_step")]
        measured = [row for row in self.evaluations if figure(row, "validation", "loss_nats") is not None]
        least = min(measured, key=lambda row: float(row["validation"]["loss_nats"]), default=None)
        return named[0] if named else least

    def line(self, *keys: str) -> list[Point]:
        """Return the values of a metric by step, from the rows that contain it."""
        rows = self.evaluations if keys[0] == "validation" else self.steps
        points = [(float(row["step"]), figure(row, *keys)) for row in rows]
        return points if any(value is not None for _, value in points) else []


def write_report(folder: Path) -> Path:
    """Write the report of a run to its folder and return its path."""
    atomic_write(folder / REPORT, report_document(read_record(folder)).html())
    return folder / REPORT


def read_record(folder: Path) -> Record:
    """Read the files of a run folder."""
    run = RunFolder(folder)
    record = Record(run.about() if run.exists else {}, run.metrics(), run.summary() or {})
    if not record.config and not record.metrics:
        raise CheckpointError("{folder} contains no training run; specify a run folder", folder=folder)
    return record


def report_document(record: Record) -> Report:
    """Return the report as data."""
    samples = [row for row in record.evaluations if isinstance(row.get("sample"), str) and row["sample"].strip()]
    chart = loss_chart(record)
    first: list[Block] = [Heading(Message("Loss")), chart] if chart else []
    blocks: list[Block] = [Columns([first, *([_samples(samples)] if samples else [])])]
    if measured := charts(record, "validation"):
        of_text = bool(record.line("validation", "bits_per_byte"))
        blocks.append(Heading(Message("On held-out text") if of_text else Message("On held-out examples")))
        blocks.append(Columns([[each] for each in measured]))
    if health := charts(record, "health"):
        blocks += [Heading(Message("How training went")), Columns([[each] for each in health])]
    blocks += _stages(record.summary) + _settings(record.config, record.summary)
    footer = "Made by Kotha from the files in the run folder: config.json, metrics.jsonl, summary.json."
    return Report(title(record.config), lead(record), blocks, [Message(footer)])


# -- samples and settings ----------------------------------------------------------------------------------------------


def _samples(rows: list[dict[str, Any]]) -> list[Block]:
    """Return the generated samples; a few are shown, the rest are collapsed."""
    count = min(_SHOWN_SAMPLES, len(rows))
    shown = {round(index * (len(rows) - 1) / max(1, count - 1)) for index in range(count)}
    blocks: list[Block] = [Heading(Message("Samples during training"))]
    blocks += [_sample(row) for index, row in enumerate(rows) if index in shown]
    rest = [_sample(row) for index, row in enumerate(rows) if index not in shown]
    return [*blocks, Folded(Message("Other samples ({n})", n=len(rest)), rest)] if rest else blocks


def _sample(row: dict[str, Any]) -> Quote:
    bits, step = figure(row, "validation", "bits_per_byte"), row["step"]
    label = Message("step {step:,}", step=step)
    if bits is not None:
        label = Message("step {step:,} · {bits:.3f} bits per byte", step=step, bits=bits)
    return Quote(row["sample"].strip(), label)


def _stages(summary: dict[str, Any]) -> list[Block]:
    """Return the teachers and the student of a multi-stage run."""
    rows: list[tuple[str, Text]] = []
    for number, each in enumerate(stages_of(summary), 1):
        bits, seconds = figure(each, "bits_per_byte"), figure(each, "seconds")
        values = {"bits": bits, "time": Duration(seconds or 0)}
        text = Message("{bits:.4f} bits per byte after {time}", **values) if bits is not None else Message("none")
        rows.append((f"{number}. {each.get('role')} {each.get('n_layers')} x {each.get('d_model')}", text))
    return [Heading(Message("Stages")), Settings(rows)] if rows else []


def _settings(config: dict[str, Any], summary: dict[str, Any]) -> list[Block]:
    """Return all other settings needed to repeat the run."""
    about = {**mapping(config, "machine"), **mapping(config, "versions"), "data": mapping(config, "data")}
    sections = [
        (Message("Machine, versions and data"), about),
        (Message("All model settings"), mapping(config, "model")),
        (Message("All training settings"), mapping(config, "training")),
        (Message("The summary"), {name: value for name, value in summary.items() if name != "stages"}),
    ]
    folded = [(name, pairs) for name, values in sections if (pairs := _pairs(values))]
    settings: list[Block] = [Folded(name, [Settings(pairs)]) for name, pairs in folded]
    return [Heading(Message("Settings")), *settings] if settings else []


def _pairs(values: dict[str, Any]) -> list[tuple[str, Text]]:
    """Return names and values as text, with nested values flattened."""
    pairs: list[tuple[str, Text]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            pairs += _pairs({f"{name} {key}": part for key, part in value.items()})
        else:
            pairs.append((name, _value_text(value)))
    return pairs


def _value_text(value: Any) -> Text:
    if isinstance(value, bool):
        return Message("yes") if value else Message("no")
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    if isinstance(value, list | tuple) and value:
        return Message("{values}", values=[_value_text(each) for each in value])
    return Message("none") if value is None or value in ([], ()) else str(value)


# -- text --------------------------------------------------------------------------------------------------------------


def title(config: dict[str, Any]) -> Text:
    """Describe the model in a few words."""
    model = mapping(config, "model")
    parts: list[Text] = [str(model["family"]).upper() if model.get("family") else Message("A training run")]
    layers, width = figure(model, "n_layers"), figure(model, "d_model")
    parts += [Plural("{n} layer", "{n:,} layers", n=int(layers))] if layers else []
    parts += [Message("width {width:g}", width=width)] if width else []
    with suppress(KothaError, KeyError, TypeError, ValueError):  # a config from another version gets a shorter title
        parts.append(Message("{n} parameters", n=Count(count_parameters(config_from_dict(model)).total)))
    return Message("{parts}", parts=parts)


def lead(record: Record) -> list[Text]:
    """Return sentences about the result."""
    last = record.steps[-1] if record.steps else {}
    figures = {**last, "steps": last.get("step"), **record.summary}  # an unfinished run has no summary
    steps, tokens, seconds = (figure(figures, key) for key in ("steps", "tokens", "seconds"))
    planned, corpus = figure(record.config, "training", "steps"), figure(record.config, "data", "train_tokens")
    done: list[Text] = [Plural("{n} step", "{n:,} steps", n=int(steps))] if steps else []
    done += [Message("{n} tokens", n=Count(tokens))] if tokens else []
    done += [Message("{n:.2g} passes over the text", n=tokens / corpus)] if tokens and corpus else []
    done += [Message("{time}", time=Duration(seconds))] if seconds else []
    words: list[Text] = [Message("Trained for {done}.", done=done) if done else Message("No step is complete yet.")]
    if steps and planned and steps < planned:
        stopped = Message("It was stopped early: {n:,.0f} steps were planned.", n=planned)
        words.append(
            stopped if record.summary else Message("It is not finished: {n:,.0f} steps were planned.", n=planned)
        )
    if record.best:
        at_best = result(record.best["validation"])
        words.append(Message("At its best, at step {step:,}, {result}.", step=record.best["step"], result=at_best))
    return words


def result(validation: dict[str, Any]) -> Message:
    """Return the scores of an evaluation as the end of a sentence."""
    per_byte, per_character = figure(validation, "bits_per_byte"), figure(validation, "bits_per_character")
    accuracy, majority = figure(validation, "accuracy"), figure(validation, "majority")
    if accuracy is not None:
        template = "it answers {share:.1%} of held-out examples correctly"
        if majority is not None:
            template = (
                "it answers {share:.1%} of held-out examples correctly (baseline of the most frequent answer: "
                "{usual:.1%})"
            )
        return Message(template, share=accuracy, usual=majority)
    if per_byte is not None:
        template = "its loss on held-out text is {bits:.3f} bits per byte"
        if per_character is not None:
            template = "its loss on held-out text is {bits:.3f} bits per byte, {character:.3f} per character"
        return Message(template, bits=per_byte, character=per_character)
    loss = figure(validation, "loss_nats")
    template = "its loss was NaN" if loss is None else "its loss on held-out text is {loss:.3f} nats per token"
    return Message(template, loss=loss)


# -- curves ------------------------------------------------------------------------------------------------------------


def loss_chart(record: Record) -> Curves | None:
    """Return a chart of training and validation loss, with reference levels."""
    training, validation = record.line("loss_nats"), record.line("validation", "loss_nats")
    if not training and not validation:
        return None
    lines = [DrawnLine(Message("training"), training, 2, "smoothed")] if training else []
    lines += [DrawnLine(Message("validation"), validation, 1, "dots")] if validation else []
    values = references(record)
    levels = [(value, _level(name, f"{value:.2f}")) for name, value in values.items()]
    target, unit = _TEXTS["guessed"].get(str(record.config.get("task", "next-token")), _TEXTS["guessed"]["classes"])
    caption: list[Text] = [
        Message(
            "The average negative log-probability that the model assigns to each {what}; lower is better.",
            what=Message(target),
        )
    ]
    if training and validation:
        colours = "Orange: training text (pale: individual steps). Green: held-out text."
        caption.append(Message(colours))
    # Explanations of the known reference losses; others are shown by name only.
    caption += [Message(words) for name, words in _TEXTS["explained"].items() if name in values]
    marker: tuple[float, Text] | None = None
    if record.best and record.best is not record.evaluations[-1]:
        marker = record.best["step"], Message("best: step {step:,}", step=record.best["step"])
    return Curves(Message("Loss"), _STEP, Message(unit), lines, levels, marker, caption, log_y=True)


def references(record: Record) -> dict[str, float]:
    """Return reference losses in nats: baselines, and the floor that no model can beat."""
    values = reference_losses(record.config)
    floor, best = figure(record.config, "floors", "bits_per_byte"), mapping(record.best or {}, "validation")
    loss, bits = figure(best, "loss_nats"), figure(best, "bits_per_byte")
    if floor is not None and loss and bits:
        values["floor"] = floor * loss / bits
    return values


def charts(record: Record, kind: Literal["validation", "health"]) -> list[Curves]:
    """Return the validation curves (in units that do not depend on the tokenizer), or the curves of training health."""
    found = []
    for curve in _TEXTS[kind]:
        keys = curve["keys"]
        points = record.line(*keys)
        if keys[-1] in ("accuracy", "peak_share"):
            points = [
                (x, None if y is None or y > 1 else 100 * y) for x, y in points
            ]  # older runs recorded shares above 1
        if all(y is None for _, y in points):
            continue
        levels, caption = _levels(record, keys[-1], curve), curve["caption"]
        if levels:
            caption = curve["level"]["caption"]
        log, name = "log" in curve, Message(curve["name"])
        y_name = Message("{what}, log scale", what=name) if log else name
        lines = [DrawnLine(name, points, 1, curve["look"])]
        captions = [Message(each) for each in caption]
        found.append(Curves(name, _STEP, y_name, lines, levels, None, captions, log_y=log, from_zero=not log))
    return found


def _levels(record: Record, key: str, curve: dict[str, Any]) -> list[tuple[float, Text]]:
    """Return the reference level of a curve, if known, drawn as a horizontal line."""
    known = {
        "bits_per_byte": (figure(record.config, "floors", "bits_per_byte"), 1, ".3g"),
        "accuracy": (figure(record.best or {}, "validation", "majority"), 100, ".1%"),
        "gradient_norm": (figure(record.config, "training", "gradient_clip"), 1, "g"),
    }
    value, scale, form = known.get(key, (None, 1, ""))
    return [] if value is None else [(scale * value, _level(curve["level"]["name"], format(value, form)))]


def _level(name: str, value: str) -> Message:
    return Message("{name} = {value}", name=Message(name), value=value)
