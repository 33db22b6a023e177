"""The score of a text model: its figures, what counting reaches on the same text, and whether it knew the text.

One making of its table serves the terminal, a page and a notebook.
"""

from dataclasses import dataclass

from kotha.evaluation.measurement import Measurement
from kotha.i18n.message import Message, Plural, Text
from kotha.report.table import Table

FIGURES = {
    "bits_per_byte": Message("bits per byte"),
    "bits_per_character": Message("bits per character"),
    "perplexity": Message("perplexity"),
}
_ANSWERS = ("New", "Held out", "Seen in training", "That cannot be told")


@dataclass(frozen=True)
class Familiarity:
    """How many documents of a text a run knows, and from where."""

    documents: int
    trained: int  # documents that it was trained on
    held_out: int  # others that its data folder held out: not learned from, but its best step was chosen by them
    verdict: Text  # the same in words


@dataclass(frozen=True)
class Baseline:
    """One figure to beat."""

    name: str
    loss_nats: float
    perplexity: float
    bits_per_byte: float
    bits_per_character: float


@dataclass(frozen=True)
class Baselines:
    """All figures to beat, and the text that they were counted on."""

    rows: list[Baseline]
    counted: str  # where the text that was counted comes from
    counted_tokens: int
    all_tokens: int  # tokens of that text; where they are more, only the first were counted

    @property
    def references(self) -> dict[str, float]:
        """Nats by name, as a run's config has them."""
        return {row.name: row.loss_nats for row in self.rows}


@dataclass(frozen=True)
class TextScore(Measurement):
    """How well a model predicts a text, and how that was measured."""

    loss_nats: float  # mean over all tokens, each document's end included
    perplexity: float  # e to the loss: among how many equally likely tokens it hesitates
    bits_per_byte: float
    bits_per_character: float
    tokens: int
    documents: int
    bytes: int
    characters: int
    unknown: int  # tokens that hide what the tokenizer does not know; bits per byte are too low by what they hide
    context: int
    stride: int
    tokenizer: str  # fingerprint of the tokenizer
    text: str  # where the text comes from
    seen: Familiarity | None = None  # whether the model has learned from it; None where that cannot be told
    baselines: Baselines | None = None  # what counting reaches on the same text, where that was asked for

    def _repr_html_(self) -> str:
        return score_table(self).html()


def score_table(score: TextScore, name: str = "model") -> Table:
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
    header: list[Text] = ["", Message("nats per token"), FIGURES["perplexity"], *list(FIGURES.values())[:2]]
    return Table(score.text, header, cells, remarks)


def _as_answer(verdict: Text) -> Text:
    """A verdict as it begins a sentence."""
    template = verdict if isinstance(verdict, str) else verdict.template
    return next((Message(each) for each in _ANSWERS if each.lower() == template.lower()), verdict)


def _figures(row: TextScore | Baseline) -> list[str]:
    wide = f"{row.perplexity:,.1f}" if row.perplexity < 1e6 else f"{row.perplexity:.2e}"
    return [f"{row.loss_nats:.4f}", wide, f"{row.bits_per_byte:.4f}", f"{row.bits_per_character:.4f}"]
