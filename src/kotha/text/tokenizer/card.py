"""The tokenizer report card: how well a tokenizer fits a text, compared with others on the same text.

``tokens_per_word``   tokens per word (split at white space); fewer means more text per context and a faster model
``bytes_per_token``   bytes of normalized text per token
``unknown_rate``      share of unknown tokens
``split_aksharas``    share of token boundaries inside an akshara, in bytes, so that partial characters count too
``round_trip``        share of documents that decode to exactly their normalized text
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tokenizers import decoders, models, pre_tokenizers, trainers

from kotha.i18n.message import Message
from kotha.text.normalize import count_words
from kotha.text.tokenizer.pipeline import GPT2, assembled, splitter_of
from kotha.text.tokenizer.special import GENERATIVE
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import ends_inside


@dataclass(frozen=True)
class Card:
    """The measurements of one tokenizer on one text."""

    name: str
    kind: str
    vocab_size: int
    documents: int
    words: int
    tokens: int
    tokens_per_word: float
    bytes_per_token: float
    unknown_rate: float
    split_aksharas: float
    round_trip: float
    fingerprint: str


def measure(name: str, tokenizer: Tokenizer, texts: Iterable[str]) -> Card:
    """Measure a tokenizer on texts."""
    documents = words = tokens = n_bytes = unknown = inside = exact = 0
    for text in texts:
        normalized = tokenizer.normalize(text)
        ids = tokenizer.encode(text)
        documents += 1
        words += count_words(normalized)
        tokens += len(ids)
        n_bytes += len(normalized.encode())
        unknown += ids.count(tokenizer.special.get("unk", -1))
        exact += tokenizer.decode(ids) == normalized
        inside += sum(ends_inside(tokenizer, text, ids)[:-1])
    return Card(
        name,
        tokenizer.kind,
        tokenizer.vocab_size,
        documents,
        words,
        tokens,
        tokens / max(1, words),
        n_bytes / max(1, tokens),
        unknown / max(1, tokens),
        inside / max(1, tokens - documents),
        exact / max(1, documents),
        tokenizer.fingerprint,
    )


def train_gpt2_style(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train a byte-level BPE with GPT-2's pattern and no normalization, as a baseline."""
    backend = assembled(models.BPE(), (), decoders.ByteLevel(), splitter_of(GPT2, byte_level=True))
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[GENERATIVE["eos"]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(texts, trainer)
    return Tokenizer(backend)


# -- the table of cards ---------------------------------------------------------------------------------------------

# Field, title, format and the function that selects the best value.
_COLUMNS: tuple[tuple[str, Message, str, Callable[..., Any] | None], ...] = (
    ("name", Message("tokenizer"), "", None),
    ("kind", Message("kind"), "", None),
    ("vocab_size", Message("vocabulary"), ",", None),
    ("tokens_per_word", Message("tokens / word"), ".3f", min),
    ("bytes_per_token", Message("bytes / token"), ".3f", max),
    ("unknown_rate", Message("unknown"), ".2%", min),
    ("split_aksharas", Message("split aksharas"), ".2%", min),
    ("round_trip", Message("round trip"), ".1%", max),
)
COLUMNS = tuple((name, title) for name, title, _, _ in _COLUMNS)


def cells(card: Card) -> list[str]:
    """Return a card as a table row."""
    return [format(getattr(card, name), form) for name, _, form, _ in _COLUMNS]


def marks(cards: Sequence[Card]) -> dict[tuple[int, int], str]:
    """Return the best and worst cells, by (row, column), of each column whose displayed values differ."""
    found: dict[tuple[int, int], str] = {}
    for column, (name, _, form, best_of) in enumerate(_COLUMNS):
        values = [getattr(card, name) for card in cards]
        low, high = (format(each(values), form) for each in (min, max))
        if best_of is None or low == high:
            continue
        for row, shown in enumerate(format(value, form) for value in values):
            if shown in (low, high):
                found[row, column] = "best" if shown == format(best_of(values), form) else "worst"
    return found
