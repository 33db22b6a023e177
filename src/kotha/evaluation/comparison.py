"""Several models in one table, and what may be set side by side.

Perplexity is per token: a tokenizer that cuts a word in two makes two easier guesses of it, and looks better for it. So
perplexities stand in the table only where all models share one tokenizer and were measured on one text; bits per byte
and per character are of the text itself, and compare across tokenizers. They too need the same text, and the table says
so where it was not, or where nobody can tell any more.

A best one is named only where that is fair and no chance: no model has learned from the text, and the difference to the
next, summed over documents, is twice its standard error at least (a paired test: both read the same documents).
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kotha.artifacts.run_folder import RunFolder, figure, mapping, words
from kotha.errors import KothaError
from kotha.evaluation.perplexity import FIGURES, Familiarity, Nats, TextScore, perplexity
from kotha.evaluation.result import Measurement
from kotha.i18n.message import Message, Plural, Text
from kotha.model.config import config_from_dict
from kotha.model.parameters import count_parameters
from kotha.report.single_file import report_page
from kotha.report.table import Table
from kotha.text.shards import Dataset

# The same documents, normalized by two tokenizers, differ by less than this share of their bytes.
_SAME_BYTES = 0.01
_WORD_TASK = "next-token"
_ABOUT = [*map(Message, ("run", "model", "parameters", "tokenizer", "steps", "tokens", "best step"))]
# Standard errors that a difference must have, and documents from which on one can be worked out.
_ERRORS, _FEWEST_DOCUMENTS = 2.0, 10


@dataclass(frozen=True)
class Measured:
    """The text that a model was measured on, as far as it is known."""

    documents: int
    bytes: int

    def same_as(self, other: "Measured") -> bool:
        """Whether it is one text; two tokenizers may normalize a few letters of it differently."""
        return self.documents == other.documents and abs(self.bytes - other.bytes) <= _SAME_BYTES * self.bytes


@dataclass(frozen=True)
class Row:
    """One model: what it is, how long it learned, how well it does."""

    name: str
    model: str
    parameters: int | None
    task: str | None = None
    tokenizer: str | None = None
    measured: Measured | None = None
    steps: int | None = None
    tokens: int | None = None
    best_step: int | None = None
    bits_per_byte: float | None = None
    bits_per_character: float | None = None
    perplexity: float | None = None
    seen: Familiarity | None = None  # whether it has learned from the text; None where that cannot be told


# What a reason says; {names} are those it is about, {count} how many of them there are.
_SAID = {
    "tokenizers": "Perplexity is omitted: the models use {count} different tokenizers ({names}), and perplexity is per "
    "token. Splitting a word into two tokens makes each of them easier to predict. Bits per byte and per "
    "character measure the text itself and can be compared.",
    "texts": "The models were evaluated on {count} different texts, so bits per byte and per character cannot be "
    "compared either; evaluate all models on one text.",
    "lost": "It is not known which text {names} was evaluated on (the data folder is gone); evaluate all models on "
    "one text.",
    "tasks": "Perplexity is omitted: it is defined for next-token prediction, and these models were trained "
    "on {names}.",
    "trainings": "No best model is named: training metrics do not show how much of a difference is chance; "
    "evaluate all models on one text.",
    "learned": "No best model is named: {names} saw this text, or part of it, in training.",
    "untold": "No best model is named: it is not known whether {names} saw this text in training.",
    "few": "No best model is named: {count} documents are too few to tell a difference from chance.",
    "chance": "No best model is named: the difference between {first} and {second} is within chance.",
}


@dataclass(frozen=True)
class Reason:
    """Why something is left out, or no best one named: by its kind, so that it can be said in any language."""

    kind: str
    names: tuple[str, ...] = ()
    count: int = 0

    @property
    def message(self) -> Message:
        """The reason in words."""
        two = zip(("first", "second"), self.names, strict=False)
        return Message(_SAID[self.kind], names=self.names, count=self.count, **dict(two))


@dataclass(frozen=True)
class Comparison(Measurement):
    """The table, and what must be said about it."""

    rows: list[Row]
    best: str | None  # the model that predicts the text best; None where nobody should say so
    text: str | None  # what all were measured on; None where each has the figures of its own training
    reasons: list[Reason]  # what is left out of the table, and why no best one is named

    def _repr_html_(self) -> str:
        return comparison_table(self).html()


def reached(run: Path) -> dict[str, Any]:
    """How far a run has come, finished or not, and the figures of its best model."""
    folder = RunFolder(run)
    best = folder.best() or {}
    last: dict[str, Any] = next((row for row in reversed(folder.metrics()) if "validation" not in row), {})
    return {**best, "best_step": best.get("step"), "steps": last.get("step"), "tokens": last.get("tokens")}


def row_of_run(name: str, config: dict[str, Any], summary: dict[str, Any], data: Path | None = None) -> Row:
    """A row from the files of a run folder, or a model's config alone; ``data`` is the data folder, if it exists."""
    training = figure(summary, "loss_nats")
    found = ((key, figure(summary, key)) for key in ("steps", "tokens", "best_step"))
    counts: dict[str, Any] = {key: None if value is None else int(value) for key, value in found}
    return Row(
        name,
        *_describe(config.get("model")),
        task=words(config, "task"),
        tokenizer=words(mapping(config, "data"), "tokenizer"),
        measured=None if data is None else validation_of(data),
        bits_per_byte=figure(summary, "bits_per_byte"),
        bits_per_character=figure(summary, "bits_per_character"),
        perplexity=None if training is None else perplexity(training),
        **counts,
    )


def row_of_score(row: Row, score: TextScore) -> Row:
    """A row with the figures of a fresh measurement in place of the training's own."""
    fresh = {name: getattr(score, name) for name in ("seen", "tokenizer", *FIGURES)}
    return replace(row, task=_WORD_TASK, measured=Measured(score.documents, score.bytes), **fresh)


def compare(rows: Sequence[Row], nats: Sequence[Nats] | None = None, text: str | None = None) -> Comparison:
    """Keep what may be set side by side, and say why the rest is left out.

    ``nats`` are those of each document of the ``text``, model by model, where all were measured on it.
    """
    texts: list[Measured] = []  # that differ
    for row in rows:
        if row.measured is not None and not any(row.measured.same_as(each) for each in texts):
            texts.append(row.measured)
    tokenizers = tuple(dict.fromkeys((row.tokenizer or "unknown")[:8] for row in rows))
    lost = tuple(row.name for row in rows if row.measured is None)
    tasks = tuple(sorted({str(row.task) for row in rows}))
    there = (
        (len(tokenizers) > 1, Reason("tokenizers", tokenizers, len(tokenizers))),
        (len(texts) > 1, Reason("texts", count=len(texts))),
        (bool(lost) and len(rows) > 1, Reason("lost", lost)),
        (tasks not in ((), (_WORD_TASK,)), Reason("tasks", tasks)),
    )
    reasons = [reason for is_there, reason in there if is_there]
    if reasons:
        rows = [replace(row, perplexity=None) for row in rows]
    best = _best(rows, nats) if len(rows) > 1 else None
    if isinstance(best, Reason):
        return Comparison(list(rows), None, text, [*reasons, best])
    return Comparison(list(rows), best, text, reasons)


def _best(rows: Sequence[Row], nats: Sequence[Nats] | None) -> str | Reason:
    """The best model, or why none is named."""
    if nats is None:
        return Reason("trainings")
    if learned := tuple(row.name for row in rows if row.seen is not None and row.seen.trained):
        return Reason("learned", learned)
    if untold := tuple(row.name for row in rows if row.seen is None):
        return Reason("untold", untold)
    first, second = sorted(range(len(rows)), key=lambda place: float(nats[place].sum()))[:2]
    if len(nats[first]) != len(nats[second]) or len(nats[first]) < _FEWEST_DOCUMENTS:
        return Reason("few", count=len(nats[first]))
    differences = nats[second] - nats[first]
    if differences.sum() <= _ERRORS * differences.std(ddof=1) * math.sqrt(len(differences)):
        return Reason("chance", (rows[first].name, rows[second].name))
    return rows[first].name


def validation_of(data: Path) -> Measured | None:
    """What the validation split of a data folder holds."""
    with suppress(KothaError):
        info = Dataset(data, verify=False)["validation"].info
        return Measured(info.documents, info.bytes)
    return None


def _describe(model: Any) -> tuple[str, int | None]:
    if not isinstance(model, dict):
        return "?", None
    words = f"{model.get('family', '?')} {model.get('n_layers', '?')}x{model.get('d_model', '?')}"
    with suppress(KothaError, KeyError, TypeError, ValueError):  # a config of another version
        return words, count_parameters(config_from_dict(model)).total
    return words, None


def comparison_table(found: Comparison) -> Table:
    """Models side by side; the figures of the best are marked where a best one may be named."""
    shown = [key for key in FIGURES if any(getattr(row, key) is not None for row in found.rows)]
    measured = found.text is not None
    header: list[Text] = [*_ABOUT, *([Message("this text")] if measured else []), *(FIGURES[key] for key in shown)]
    cells: list[list[Text]] = []
    marks = {}
    for row in found.rows:
        parameters, *learned = (
            "—" if value is None else f"{value:,}" for value in (row.parameters, row.steps, row.tokens, row.best_step)
        )
        seen = Message("not known") if row.seen is None else row.seen.verdict
        about = [row.name, row.model, parameters, (row.tokenizer or "—")[:8], *learned, *([seen] if measured else [])]
        if row.name == found.best:
            marks = {(len(cells), column): "best" for column in range(len(about), len(header))}
        cells.append([*about, *(_figure(getattr(row, key)) for key in shown)])
    remarks = [reason.message for reason in found.reasons]
    on = "{n} model, evaluated on {text}", "{n} models, evaluated on {text}"
    if not measured:
        on = "{n} model, by its own training metrics", "{n} models, by their own training metrics"
    return Table(Plural(*on, n=len(found.rows), text=found.text), header, cells, remarks, marks)


def _figure(value: float | None) -> str:
    return "—" if value is None else f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"


def comparison_page(found: Comparison) -> str:
    """One offline page as HTML, drawn as the studio draws it: the fair table, and what must be said about it."""
    return report_page("compare", "Models side by side", found.to_dict(), made_by="kotha compare")
