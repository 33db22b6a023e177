"""Scores and comparisons as tables: one making for the terminal, a page and a notebook."""

from typing import TYPE_CHECKING

from kotha.i18n.message import Message, Plural, Text
from kotha.report.table import Table

if TYPE_CHECKING:
    from kotha.evaluation.baselines import Baseline
    from kotha.evaluation.comparison import Comparison
    from kotha.evaluation.perplexity import TextScore

_FIGURES = {
    "bits_per_byte": Message("bits per byte"),
    "bits_per_character": Message("bits per character"),
    "perplexity": Message("perplexity"),
}
_ABOUT = [
    *(Message("run"), Message("model"), Message("parameters"), Message("tokenizer"), Message("steps")),
    *(Message("tokens"), Message("best step")),
]

_ANSWERS = ("New", "Held out", "Seen in training", "That cannot be told")


def score_table(score: "TextScore", name: str = "model") -> Table:
    """A model's score on a text, what counting reaches on it, and how both were measured."""
    beside = score.baselines
    cells = [[name, *_figures(score)], *([row.name, *_figures(row)] for row in (beside.rows if beside else ()))]
    verdict: Text = Message("that cannot be told") if score.seen is None else score.seen.verdict
    remarks: list[Text] = [
        Message(
            "{tokens} of {documents} ({bytes:,} bytes, {characters:,} characters); context {context}, stride {stride}; "
            "tokenizer {tokenizer}",
            tokens=Plural("{n} token", "{n:,} tokens", n=score.tokens),
            documents=Plural("{n} document", "{n:,} documents", n=score.documents),
            bytes=score.bytes,
            characters=score.characters,
            context=score.context,
            stride=score.stride,
            tokenizer=score.tokenizer,
        ),
        Message("Has this model learned from the text? {answer}.", answer=_as_answer(verdict)),
    ]
    if score.unknown:
        remarks.append(
            Message(
                "{n:,} tokens are unknown to the tokenizer: what they hide was not measured, so bits per byte and per "
                "character are too low",
                n=score.unknown,
            )
        )
    if beside is not None and beside.counted_tokens < beside.all_tokens:
        some, of_all = beside.counted_tokens, beside.all_tokens
        remarks.append(Message("n-grams counted in the first {n:,} of {all:,} tokens", n=some, all=of_all))
    header: list[Text] = ["", Message("nats per token"), _FIGURES["perplexity"], *list(_FIGURES.values())[:2]]
    return Table(score.text, header, cells, remarks)


def comparison_table(found: "Comparison") -> Table:
    """Models side by side; the figures of the best are marked where a best one may be named."""
    shown = [key for key in _FIGURES if any(getattr(row, key) is not None for row in found.rows)]
    cells: list[list[Text]] = []
    marks = {}
    for row in found.rows:
        learned = [_count(value) for value in (row.steps, row.tokens, row.best_step)]
        was = [] if found.text is None else [Message("not known") if row.seen is None else row.seen.verdict]
        about = [row.name, row.model, _count(row.parameters), (row.tokenizer or "—")[:8], *learned, *was]
        if row.name == found.best:
            marks = {(len(cells), column): "best" for column in range(len(about), len(about) + len(shown))}
        cells.append([*about, *(_figure(getattr(row, key)) for key in shown)])
    remarks = [*found.remarks, *([found.undecided] if found.undecided else [])]
    header = [*_ABOUT, *([] if found.text is None else [Message("this text")]), *(_FIGURES[key] for key in shown)]
    one, many = "{n} model, by what each training measured", "{n} models side by side, by what each training measured"
    title = Plural(one, many, n=len(found.rows))
    if found.text is not None:
        title = Plural("{n} model, on {text}", "{n} models side by side, on {text}", n=len(found.rows), text=found.text)
    return Table(title, header, cells, remarks, marks)


def _as_answer(verdict: Text) -> Text:
    """A verdict as it begins a sentence."""
    template = verdict if isinstance(verdict, str) else verdict.template
    return next((Message(each) for each in _ANSWERS if each.lower() == template.lower()), verdict)


def _figures(row: "TextScore | Baseline") -> list[str]:
    wide = f"{row.perplexity:,.1f}" if row.perplexity < 1e6 else f"{row.perplexity:.2e}"
    return [f"{row.loss_nats:.4f}", wide, f"{row.bits_per_byte:.4f}", f"{row.bits_per_character:.4f}"]


def _count(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
