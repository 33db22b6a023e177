"""``kotha compare``: several runs in one fair table."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kotha.cli.terminal import print_json, progress, results, table
from kotha.errors import UsageError

HEADER = ["run", "model", "parameters", "tokenizer", "steps", "tokens", "best step"]
FIGURES = {"bits_per_byte": "bits per byte", "bits_per_character": "bits per character", "perplexity": "perplexity"}


def compare(
    runs: Annotated[tuple[Path, ...], Parameter(help="Run folders; with --text also model folders.")],
    /,
    *,
    text: Annotated[str | None, Parameter(help="Measure all on this text, instead of what training measured.")] = None,
    device: Annotated[str, Parameter(help="cpu, cuda, or auto; for --text.")] = "auto",
    html: Annotated[Path | None, Parameter(help="Also write the table as a page.")] = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="", help="One JSON object on stdout.")] = False,
) -> None:
    """Compare models across tokenizers: by bits per byte and per character, and by perplexity only where it is fair."""
    from kotha.evaluate.comparison import compare as compare_rows

    found = compare_rows([_row(run, text, device) for run in runs])
    cells, marks = _cells(found.rows)
    header = [*HEADER, *(name for key, name in FIGURES.items() if _shown(found.rows, key))]
    if html is not None:
        _write_page(html, header, cells, marks, found.remarks)
    if as_json:
        print_json(asdict(found))
        return
    console = results()
    console.print(table("", header, cells, marks))
    for remark in found.remarks:
        console.print(remark, markup=False)


def _row(run: Path, text: str | None, device: str) -> Any:
    from kotha.cli.evaluate import open_gpt
    from kotha.evaluate.baselines import find_data
    from kotha.evaluate.comparison import row_of_model, row_of_run, row_of_score
    from kotha.evaluate.held_out import read_held_out
    from kotha.evaluate.perplexity import evaluate_text
    from kotha.runs import run_config

    config = run_config(run)
    if text is None and not config:
        raise UsageError(f"{run} holds no run with figures of its own; give a text to measure on with --text FILE")
    row = row_of_run(str(run), config, _reached(run), find_data(config, run)) if config else None
    if text is None:
        return row
    model, tokenizer = open_gpt(run, device)
    held_out = read_held_out(text, tokenizer)
    with progress() as advance:
        score = evaluate_text(model, held_out, on_progress=lambda _, *much: advance(f"measuring {run.name}", *much))
    return row_of_score(row or row_of_model(str(run), model.config), score)


def _reached(run: Path) -> dict[str, Any]:
    """How far a run has come, finished or not, and the figures of its best model."""
    from kotha.runs import RunFolder

    folder = RunFolder(run)
    best = folder.best() or {}
    last: dict[str, Any] = next((row for row in reversed(folder.metrics()) if "validation" not in row), {})
    return {**best, "best_step": best.get("step"), "steps": last.get("step"), "tokens": last.get("tokens")}


def _cells(rows: list[Any]) -> tuple[list[list[str]], dict[tuple[int, int], str]]:
    """The table as text, with the best figure of each column marked."""
    shown = [key for key in FIGURES if _shown(rows, key)]
    cells = [
        [row.name, row.model, _count(row.parameters), (row.tokenizer or "—")[:8]]
        + [_count(getattr(row, key)) for key in ("steps", "tokens", "best_step")]
        + [_figure(getattr(row, key)) for key in shown]
        for row in rows
    ]
    marks: dict[tuple[int, int], str] = {}
    for column, key in enumerate(shown, len(HEADER)):
        values = [value for row in rows if (value := getattr(row, key)) is not None]
        marks |= {(place, column): "best" for place, row in enumerate(rows) if getattr(row, key) == min(values)}
    return cells, marks if len(rows) > 1 else {}


def _shown(rows: list[Any], key: str) -> bool:
    return any(getattr(row, key) is not None for row in rows)


def _count(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"


def _write_page(path: Path, header: list[str], cells: list[list[str]], marks: Any, remarks: list[str]) -> None:
    from kotha.files import write_whole
    from kotha.page import Page

    page = Page("Models side by side", f"{len(cells)} models, measured on text that they have not seen.")
    page.table(header, cells, marks)
    for remark in remarks:
        page.note(remark)
    write_whole(path, page.html())
