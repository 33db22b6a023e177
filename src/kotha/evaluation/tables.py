"""Scores and comparisons as tables: one making for the terminal, a page and a notebook."""

from typing import TYPE_CHECKING

from kotha.i18n.wording import counted
from kotha.report.table import Table

if TYPE_CHECKING:
    from kotha.evaluation.baselines import Baseline
    from kotha.evaluation.comparison import Comparison
    from kotha.evaluation.perplexity import TextScore

_FIGURES = {"bits_per_byte": "bits per byte", "bits_per_character": "bits per character", "perplexity": "perplexity"}
_ABOUT = ["run", "model", "parameters", "tokenizer", "steps", "tokens", "best step"]


def score_table(score: "TextScore", name: str = "model") -> Table:
    """A model's score on a text, what counting reaches on it, and how both were measured."""
    beside = score.baselines
    cells = [[name, *_figures(score)], *([row.name, *_figures(row)] for row in (beside.rows if beside else ()))]
    verdict = "that cannot be told" if score.seen is None else score.seen.verdict
    remarks = [
        f"{counted(score.tokens, 'token')} of {counted(score.documents, 'document')} ({score.bytes:,} bytes, "
        f"{score.characters:,} characters); context {score.context}, stride {score.stride}; "
        f"tokenizer {score.tokenizer}",
        f"Has this model learned from the text? {verdict[0].upper()}{verdict[1:]}.",
    ]
    if score.unknown:
        remarks.append(
            f"{score.unknown:,} tokens are unknown to the tokenizer: what they hide was not measured, so bits per "
            "byte and per character are too low"
        )
    if beside is not None and beside.counted_tokens < beside.all_tokens:
        remarks.append(f"n-grams counted in the first {beside.counted_tokens:,} of {beside.all_tokens:,} tokens")
    header = ["", "nats per token", "perplexity", "bits per byte", "bits per character"]
    return Table(score.text, header, cells, remarks)


def comparison_table(found: "Comparison") -> Table:
    """Models side by side; the figures of the best are marked where a best one may be named."""
    shown = [key for key in _FIGURES if any(getattr(row, key) is not None for row in found.rows)]
    cells: list[list[str]] = []
    marks = {}
    for row in found.rows:
        learned = [_count(value) for value in (row.steps, row.tokens, row.best_step)]
        was = [] if found.text is None else ["not known" if row.seen is None else row.seen.verdict]
        about = [row.name, row.model, _count(row.parameters), (row.tokenizer or "—")[:8], *learned, *was]
        if row.name == found.best:
            marks = {(len(cells), column): "best" for column in range(len(about), len(about) + len(shown))}
        cells.append([*about, *(_figure(getattr(row, key)) for key in shown)])
    remarks = [*found.remarks, *filter(None, [found.undecided])]
    measured = "by what each training measured" if found.text is None else f"on {found.text}"
    header = [*_ABOUT, *([] if found.text is None else ["this text"]), *(_FIGURES[key] for key in shown)]
    beside = " side by side" if len(found.rows) > 1 else ""
    title = f"{counted(len(found.rows), 'model')}{beside}, {measured}"
    return Table(title, header, cells, remarks, marks, [] if found.text is None else [len(_ABOUT)])


def _figures(row: "TextScore | Baseline") -> list[str]:
    wide = f"{row.perplexity:,.1f}" if row.perplexity < 1e6 else f"{row.perplexity:.2e}"
    return [f"{row.loss_nats:.4f}", wide, f"{row.bits_per_byte:.4f}", f"{row.bits_per_character:.4f}"]


def _count(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
