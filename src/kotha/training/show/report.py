"""The report of a run: one offline page with its curves, its samples and its settings.

It is a function of the files in a run folder, so it can be made again at any time, from a run that is still going, was
stopped, or is older than some of the figures: what is not there is left out.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kotha.artifacts.run_folder import RunFolder, figure, mapping
from kotha.errors import CheckpointError
from kotha.i18n.wording import duration, page_voice, size
from kotha.report.page import Page
from kotha.storage.atomic import write_whole
from kotha.training.show.curves import health_charts, loss_chart, validation_charts
from kotha.training.show.findings import Record, lead, remark, result, title

REPORT = "report.html"
_SHOWN_SAMPLES = 3


def write_report(folder: Path) -> Path:
    """Write the report of a run into its folder, and say where it is."""
    record = read_record(folder)
    write_whole(folder / REPORT, report_page(record.config, list(record.metrics), record.summary))
    return folder / REPORT


def read_record(folder: Path) -> Record:
    """The files of a run folder, read."""
    run = RunFolder(folder)
    record = Record(run.about() if run.exists else {}, run.metrics(), run.summary() or {})
    if not record.config and not record.metrics:
        raise CheckpointError("{path} holds no run to report on; give the folder that a training wrote", path=folder)
    return record


def report_page(config: dict[str, Any], metrics: list[dict[str, Any]], summary: dict[str, Any]) -> str:
    """The report as HTML, from what the run folder's files hold."""
    record = Record(config, metrics, summary)
    page = Page(title(config), lead(record))
    samples = [row for row in record.evaluations if isinstance(row.get("sample"), str) and row["sample"].strip()]
    with page.box("columns"):
        with page.box("column"):
            if found := loss_chart(record):
                page.heading("Loss")
                page.figure(*found)
            if note := remark(record):
                page.note(note)
        if samples:
            with page.box("column"):
                _add_samples(page, samples)
    if measured := validation_charts(record):
        page.heading("On text it has not seen" if record.line("validation", "bits_per_byte") else "On unseen examples")
        page.figures(measured)
    if record.averaged:
        count, reached = record.averaged["average_of"], result(record.averaged["validation"])
        page.paragraph(f"With the mean of the weights of the last {count} checkpoints, {reached}.")
    if charts := health_charts(record):
        page.heading("How the training went")
        page.figures(charts)
    _add_predictions(page, record)
    _add_settings(page, config, summary)
    return page.html("Made by Kotha from the files of the run folder: config.json, metrics.jsonl, summary.json.")


# -- sections ------------------------------------------------------------------------------------------------------


def _add_samples(page: Page, rows: list[dict[str, Any]]) -> None:
    """What the model wrote along the way: some to see, the rest folded."""
    count = min(_SHOWN_SAMPLES, len(rows))
    shown = {round(place * (len(rows) - 1) / max(1, count - 1)) for place in range(count)}
    page.heading("What it wrote on the way")
    _add_stories(page, (row for place, row in enumerate(rows) if place in shown))
    if len(rows) > len(shown):
        with page.folded(f"The other samples ({len(rows) - len(shown)})"):
            _add_stories(page, (row for place, row in enumerate(rows) if place not in shown))


def _add_stories(page: Page, rows: Iterable[dict[str, Any]]) -> None:
    for row in rows:
        bits = figure(row, "validation", "bits_per_byte")
        page.story(
            row["sample"].strip(), f"step {row['step']:,}" + ("" if bits is None else f" · {bits:.3f} bits per byte")
        )


def _add_predictions(page: Page, record: Record) -> None:
    """What was promised before the run, beside what was measured."""
    predicted = mapping(record.config, "predicted")
    parts = mapping(predicted, "memory_bytes")
    memory = {name: amount for name in parts if (amount := figure(parts, name)) is not None}
    measured = [figure(record.summary, "peak_memory_bytes"), *(amount for _, amount in record.line("memory_bytes"))]
    used = max((amount for amount in measured if amount), default=None)
    rows = [[name.replace("_", " "), size(amount), "", ""] for name, amount in memory.items() if name != "total"]
    if total := memory.get("total"):
        rows.append(["memory in all", size(total), *_compared(used, total, size)])
    if seconds := figure(predicted, "seconds"):
        rows.append(["time", duration(seconds), *_compared(figure(record.summary, "seconds"), seconds, duration)])
    if not rows:
        return
    page.heading("Predicted and measured")
    page.table(["", "predicted", "measured", "ratio"], rows, {}, labels=[0, 1, 2])
    if used and str(record.summary.get("device", "")).startswith("cpu"):
        page.paragraph("On a CPU the memory measured is that of the whole process, Python and torch included.")


def _compared(measured: float | None, predicted: float, words: Callable[[float], str]) -> list[str]:
    return ["", ""] if measured is None else [words(measured), f"{measured / predicted:.2f}"]


def _add_settings(page: Page, config: dict[str, Any], summary: dict[str, Any]) -> None:
    """Everything else that the folder says, for who wants to do it again."""
    about: dict[str, Any] = {name: summary[name] for name in ("device", "precision") if name in summary}
    about |= {**mapping(config, "machine"), **mapping(config, "versions")}
    about |= {f"data {name}": value for name, value in mapping(config, "data").items()}
    if about:
        page.heading("Machine, versions and data")
        page.settings(_pairs(about))
    sections = {"All settings of the model": mapping(config, "model")}
    sections |= {"All settings of the training": mapping(config, "training"), "The summary": summary}
    if any(sections.values()):
        page.heading("Settings")
    for name, values in sections.items():
        if values:
            with page.folded(name):
                page.settings(_pairs(values))


def _pairs(values: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and values as words; what has parts is spread out."""
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, dict):
            pairs += _pairs({f"{name} {key}": part for key, part in value.items()})
        else:
            pairs.append((name, _word(value)))
    return pairs


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return page_voice().cell("yes" if value else "no")
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
    if isinstance(value, list | tuple) and value:
        return ", ".join(map(_word, value))
    return page_voice().cell("none") if value is None or value in ([], ()) else str(value)
