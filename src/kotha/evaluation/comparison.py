"""Compare models in one table that shows only comparable scores.

Perplexity is computed per token, and a tokenizer that splits a word in two makes each half easier to predict, which
lowers the perplexity. The table therefore contains perplexity only if all models have the same tokenizer and were
evaluated on the same text. Bits per byte and per character are independent of the tokenizer, but they also require the
same text; the table has a remark if the texts differ or are unknown.

A best model is named only if no model was trained on the text and its lead is significant: the difference from the next
model, summed over documents, must be at least twice its standard error. The comparison is a paired test, because both
models are evaluated on the same documents.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kotha.artifacts.run_folder import RunFolder, figure, mapping, words
from kotha.errors import KothaError
from kotha.evaluation.perplexity import FIGURES, Contamination, Nats, TextScore, perplexity
from kotha.evaluation.result import Measurement
from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.short_repr import ShortRepr
from kotha.model.config import config_from_dict
from kotha.model.parameters import count_parameters
from kotha.report.single_file import report_page
from kotha.report.table import Table
from kotha.text.shards import Dataset

# Two texts are considered the same if their sizes differ by at most this share, because tokenizers may normalize
# differently.
_SAME_BYTES = 0.01
_WORD_TASK = "next-token"
_ABOUT = [*map(Message, ("run", "model", "parameters", "tokenizer", "steps", "tokens", "best step"))]
# The number of standard errors that a difference must reach, and the minimum number of documents to estimate it from.
_ERRORS, _FEWEST_DOCUMENTS = 2.0, 10


@dataclass(frozen=True, repr=False)
class MeasuredText(ShortRepr):
    """The size of the text that a model was evaluated on."""

    documents: int
    bytes: int

    def same_as(self, other: "MeasuredText") -> bool:
        """Return whether this is the same text; two tokenizers may normalize a few characters differently."""
        return self.documents == other.documents and abs(self.bytes - other.bytes) <= _SAME_BYTES * self.bytes


@dataclass(frozen=True, repr=False)
class Row(ShortRepr):
    """One row of the table: the properties of a model, the length of its training, and its scores."""

    name: str
    model: str
    parameters: int | None
    task: str | None = None
    tokenizer: str | None = None
    measured: MeasuredText | None = None
    steps: int | None = None
    tokens: int | None = None
    best_step: int | None = None
    bits_per_byte: float | None = None
    bits_per_character: float | None = None
    perplexity: float | None = None
    changed: int = 0  # documents that its tokens do not reproduce, so that part of the text is not measured
    seen: Contamination | None = None  # whether the text was part of its training data; None if unknown


# The message for each kind of remark; {names} are the affected models or tokenizers, and {count} is their number.
_REASONS = {
    "tokenizers": "Perplexity is omitted: the models use {count} different tokenizers ({names}), and perplexity is per "
    "token. Splitting a word into two tokens makes each of them easier to predict. Bits per byte and per "
    "character measure the text itself and can be compared.",
    "texts": "The models were evaluated on {count} different texts, so bits per byte and per character cannot be "
    "compared either; evaluate all models on one text.",
    "changed": "Bits per byte and per character of {names} are omitted: the tokenizer loses part of this text (unknown "
    "words, spaces or line breaks), and a model does not pay for what its tokenizer loses. Compare it only with models "
    "that have the same tokenizer.",
    "lost": "The text that was used to evaluate {names} is unknown, because the data folder no longer exists; "
    "evaluate all models on the same text.",
    "tasks": "Perplexity is omitted: it is defined for next-token prediction, and these models were trained "
    "on {names}.",
    "trainings": "No model is declared the best: training metrics cannot show whether a difference is significant; "
    "evaluate all models on one text.",
    "learned": "No model is declared the best: this text, or part of it, was in the training data of {names}.",
    "untold": "No model is declared the best: it is unknown whether this text was in the training data of {names}.",
    "few": "No model is declared the best: {count} documents are too few to tell a difference from chance.",
    "chance": "No model is declared the best: the difference between {first} and {second} is not significant.",
}


@dataclass(frozen=True, repr=False)
class ComparisonRemark(ShortRepr):
    """The reason why a score is omitted or no best model is named; ``kind`` identifies the message."""

    kind: str
    names: tuple[str, ...] = ()
    count: int = 0

    @property
    def message(self) -> Message:
        """Return the reason as a message."""
        two = zip(("first", "second"), self.names, strict=False)
        return Message(_REASONS[self.kind], names=self.names, count=self.count, **dict(two))


@dataclass(frozen=True, repr=False)
class Comparison(Measurement):
    """The rows of the table, and remarks on the scores that it omits."""

    rows: list[Row]
    best: str | None  # name of the best model; None if no model is named, for one of the ``reasons``
    text: str | None  # the common text; None if the scores were measured during the training of each model
    reasons: list[ComparisonRemark]  # why scores are omitted, and why no best model is named

    def _repr_html_(self) -> str:
        return comparison_table(self).html()


def reached(run: Path) -> dict[str, Any]:
    """Return the progress of a run, finished or not, and the scores of its best model."""
    folder = RunFolder(run)
    best = folder.best() or {}
    last: dict[str, Any] = next((row for row in reversed(folder.metrics()) if "validation" not in row), {})
    return {**best, "best_step": best.get("step"), "steps": last.get("step"), "tokens": last.get("tokens")}


def row_of_run(name: str, config: dict[str, Any], summary: dict[str, Any], data: Path | None = None) -> Row:
    """Return the row for a run folder, or for a model config; ``data`` is the data folder of the run, if any."""
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
    """Return a row with the scores of an evaluation instead of those recorded in training."""
    fresh = {name: getattr(score, name) for name in ("seen", "changed", "tokenizer", *FIGURES)}
    return replace(row, task=_WORD_TASK, measured=MeasuredText(score.documents, score.bytes), **fresh)


def compare(rows: Sequence[Row], nats: Sequence[Nats] | None = None, text: str | None = None) -> Comparison:
    """Keep the comparable scores, and give the reasons for omitting the others.

    ``nats`` contains each model's loss on each document in ``text``, if all models were evaluated on the same text.
    """
    texts: list[MeasuredText] = []  # different texts
    for row in rows:
        if row.measured is not None and not any(row.measured.same_as(each) for each in texts):
            texts.append(row.measured)
    tokenizers = tuple(dict.fromkeys((row.tokenizer or "unknown")[:8] for row in rows))
    lost = tuple(row.name for row in rows if row.measured is None)
    changed = tuple(row.name for row in rows if row.changed) if len(tokenizers) > 1 else ()
    tasks = tuple(sorted({str(row.task) for row in rows}))
    checks = (
        (len(tokenizers) > 1, ComparisonRemark("tokenizers", tokenizers, len(tokenizers))),
        (len(texts) > 1, ComparisonRemark("texts", count=len(texts))),
        (bool(changed), ComparisonRemark("changed", changed)),
        (bool(lost) and len(rows) > 1, ComparisonRemark("lost", lost)),
        (tasks not in ((), (_WORD_TASK,)), ComparisonRemark("tasks", tasks)),
    )
    reasons = [reason for applies, reason in checks if applies]
    if reasons:
        rows = [replace(row, perplexity=None) for row in rows]
    if changed:
        rows = [replace(row, bits_per_byte=None, bits_per_character=None) if row.changed else row for row in rows]
    best = _best(rows, nats) if len(rows) > 1 and not changed else None
    if isinstance(best, ComparisonRemark):
        return Comparison(list(rows), None, text, [*reasons, best])
    return Comparison(list(rows), best, text, reasons)


def _best(rows: Sequence[Row], nats: Sequence[Nats] | None) -> str | ComparisonRemark:
    """Return the name of the best model, or the reason why none is named."""
    if nats is None:
        return ComparisonRemark("trainings")
    if learned := tuple(row.name for row in rows if row.seen is not None and row.seen.trained):
        return ComparisonRemark("learned", learned)
    if untold := tuple(row.name for row in rows if row.seen is None):
        return ComparisonRemark("untold", untold)
    first, second = sorted(range(len(rows)), key=lambda index: float(nats[index].sum()))[:2]
    if len(nats[first]) != len(nats[second]) or len(nats[first]) < _FEWEST_DOCUMENTS:
        return ComparisonRemark("few", count=len(nats[first]))
    differences = nats[second] - nats[first]
    if differences.sum() <= _ERRORS * differences.std(ddof=1) * math.sqrt(len(differences)):
        return ComparisonRemark("chance", (rows[first].name, rows[second].name))
    return rows[first].name


def validation_of(data: Path) -> MeasuredText | None:
    """Return the size of the validation split in a data folder; None if it cannot be read."""
    with suppress(KothaError):
        info = Dataset(data, verify=False)["validation"].info
        return MeasuredText(info.documents, info.bytes)
    return None


def _describe(model: Any) -> tuple[str, int | None]:
    if not isinstance(model, dict):
        return "?", None
    words = f"{model.get('family', '?')} {model.get('n_layers', '?')}x{model.get('d_model', '?')}"
    with suppress(KothaError, KeyError, TypeError, ValueError):  # the config was written by another version
        return words, count_parameters(config_from_dict(model)).total
    return words, None


def comparison_table(found: Comparison) -> Table:
    """Return a table with one row per model; the scores of the best model are marked, if one is named."""
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
    """Return the comparison as one offline HTML page."""
    return report_page("compare", "Models side by side", found.to_dict(), made_by="kotha compare")
