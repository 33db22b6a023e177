"""The report of a run: one offline page with its curves, its samples and its settings.

It is a function of the files in a run folder, so it can be made again at any time, from a run that is still going, was
stopped, or is older than some of the figures: what is not there is left out.
"""

from pathlib import Path
from typing import Any

from kotha.artifacts.run_folder import RunFolder, figure, mapping
from kotha.errors import CheckpointError
from kotha.i18n.message import Message, Text
from kotha.report.document import Block, Columns, Folded, Heading, Quote, Report, Settings
from kotha.storage.atomic import atomic_write
from kotha.training.reporting.curves import charts, loss_chart
from kotha.training.reporting.findings import Record, lead, title

REPORT = "report.html"
_SHOWN_SAMPLES = 3


def write_report(folder: Path) -> Path:
    """Write the report of a run into its folder, and say where it is."""
    atomic_write(folder / REPORT, report_document(read_record(folder)).html())
    return folder / REPORT


def read_record(folder: Path) -> Record:
    """The files of a run folder, read."""
    run = RunFolder(folder)
    record = Record(run.about() if run.exists else {}, run.metrics(), run.summary() or {})
    if not record.config and not record.metrics:
        raise CheckpointError(
            "{folder} holds no run to report on; give the folder that a training wrote", folder=folder
        )
    return record


def report_document(record: Record) -> Report:
    """The report as data."""
    samples = [row for row in record.evaluations if isinstance(row.get("sample"), str) and row["sample"].strip()]
    chart = loss_chart(record)
    first: list[Block] = [Heading(Message("Loss")), chart] if chart else []
    blocks: list[Block] = [Columns([first, *([_samples(samples)] if samples else [])])]
    if measured := charts(record, "validation"):
        of_text = bool(record.line("validation", "bits_per_byte"))
        blocks.append(Heading(Message("On text it has not seen") if of_text else Message("On unseen examples")))
        blocks.append(Columns([[each] for each in measured]))
    if health := charts(record, "health"):
        blocks += [Heading(Message("How the training went")), Columns([[each] for each in health])]
    blocks += _settings(record.config, record.summary)
    made = "Made by Kotha from the files of the run folder: config.json, metrics.jsonl, summary.json."
    return Report(title(record.config), lead(record), blocks, [Message(made)])


# -- sections ------------------------------------------------------------------------------------------------------


def _samples(rows: list[dict[str, Any]]) -> list[Block]:
    """What the model wrote along the way: some to see, the rest folded."""
    count = min(_SHOWN_SAMPLES, len(rows))
    shown = {round(place * (len(rows) - 1) / max(1, count - 1)) for place in range(count)}
    blocks: list[Block] = [Heading(Message("What it wrote on the way"))]
    blocks += [_story(row) for place, row in enumerate(rows) if place in shown]
    rest = [_story(row) for place, row in enumerate(rows) if place not in shown]
    return [*blocks, Folded(Message("The other samples ({n})", n=len(rest)), rest)] if rest else blocks


def _story(row: dict[str, Any]) -> Quote:
    bits, step = figure(row, "validation", "bits_per_byte"), row["step"]
    label = Message("step {step:,}", step=step)
    if bits is not None:
        label = Message("step {step:,} · {bits:.3f} bits per byte", step=step, bits=bits)
    return Quote(row["sample"].strip(), label)


def _settings(config: dict[str, Any], summary: dict[str, Any]) -> list[Block]:
    """Everything else that the folder says, for who wants to do it again."""
    about = {**mapping(config, "machine"), **mapping(config, "versions"), "data": mapping(config, "data")}
    sections = [
        (Message("Machine, versions and data"), about),
        (Message("All settings of the model"), mapping(config, "model")),
        (Message("All settings of the training"), mapping(config, "training")),
        (Message("The summary"), summary),
    ]
    folded = [(name, pairs) for name, values in sections if (pairs := _pairs(values))]
    settings: list[Block] = [Folded(name, [Settings(pairs)]) for name, pairs in folded]
    return [Heading(Message("Settings")), *settings] if settings else []


def _pairs(values: dict[str, Any]) -> list[tuple[str, Text]]:
    """Names and values as words; what has parts is spread out."""
    pairs: list[tuple[str, Text]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            pairs += _pairs({f"{name} {key}": part for key, part in value.items()})
        else:
            pairs.append((name, _word(value)))
    return pairs


def _word(value: Any) -> Text:
    if isinstance(value, bool):
        return Message("yes") if value else Message("no")
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    if isinstance(value, list | tuple) and value:
        return Message("{values}", values=[_word(each) for each in value])
    return Message("none") if value is None or value in ([], ()) else str(value)
