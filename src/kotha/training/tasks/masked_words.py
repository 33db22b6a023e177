"""Masked words (MLM) and sentence pairs (NSP), the training tasks of BERT.

A passage is a part of a document that fits the context. A short document is one passage; a longer one is divided into
as few passages of about equal length as possible. Every word is used once per epoch, except in one-token documents,
which cannot be divided in two.

An example is ``[CLS] A [SEP] B [SEP]``. A passage is cut at a random position in its middle half. With probability 1/2,
B is the text that follows A; otherwise it is a passage of the same length from another document, so that the length
gives no hint. Then words are masked. Random choices differ between epochs; they depend on the seed and the example's
position.

Evaluation uses every passage of the validation split, with random choices that do not depend on the seed of the run.

Exactly 15 % of the ordinary tokens are chosen, but at least one. Each is independently replaced by the mask token with
probability 80 %, replaced by a random ordinary token with 10 %, or left unchanged with 10 %, so that the model has to
predict every token, not only the masks (https://arxiv.org/abs/1810.04805, appendix A.1).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from kotha.errors import ConfigError, DataError
from kotha.model.bert import BERT
from kotha.model.config import BERTConfig
from kotha.model.loss import IGNORED
from kotha.model.objectives import masked_words, score_predictions, score_token_predictions, sentence_pairs, word_loss
from kotha.text.held_out import frequency_nats
from kotha.text.shards import Dataset, Split
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.tasks.examples import Order
from kotha.training.tasks.task import Batch, Ids, Score, Task, Tensors, check_vocabulary, count_tokens, measuring_slices

CHOSEN = 0.15
MASKED, REPLACED = 0.8, 0.1
_ROLES = ("cls", "sep", "mask", "pad")


class Hidden(NamedTuple):
    """A token sequence with some of its words masked."""

    tokens: Ids  # (T,), the input to the model
    places: Ids  # (K,), the masked positions, in order
    words: Ids  # (K,), the original tokens


class Masking:
    """Masks words in texts encoded by one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        missing = [role for role in _ROLES if role not in tokenizer.special]
        if missing:
            raise DataError(
                "the tokenizer has no {missing} token, which is required for masking words; train a tokenizer of "
                "kind 'wordpiece' and prepare the text with it",
                missing=missing,
            )
        self.cls, self.sep, self.mask, self.pad = (tokenizer.special[role] for role in _ROLES)
        self.is_ordinary = np.ones(tokenizer.vocab_size, dtype=bool)
        self.is_ordinary[list(tokenizer.special.values())] = False
        self.ordinary = np.flatnonzero(self.is_ordinary)

    def hide(self, tokens: Ids, generator: np.random.Generator) -> Hidden:
        """Choose words in a text and mask them: (T,) -> (T,), (K,), (K,)."""
        candidates = np.flatnonzero(self.is_ordinary[tokens])
        if not len(candidates):  # if there are only unknown words, they are masked, so that there is a target
            candidates = np.flatnonzero((tokens != self.cls) & (tokens != self.sep))
        places = np.sort(generator.choice(candidates, n_chosen(len(candidates)), replace=False))
        words = tokens[places]
        draws = generator.random(len(places))
        others = generator.choice(self.ordinary, len(places))
        shown = np.where(draws < MASKED, self.mask, np.where(draws < MASKED + REPLACED, others, words))
        hidden = tokens.copy()
        hidden[places] = shown
        return Hidden(hidden, places, words)


def n_chosen(n_words: int) -> int:
    """Return the number of masked words in a text of ``n_words`` words.

    >>> n_chosen(2), n_chosen(100)
    (1, 15)
    """
    return max(1, round(CHOSEN * n_words))


# -- the task ----------------------------------------------------------------------------------------------------------


_WORDS, _PAIRS = "words", "pairs"
_MARKS = 3  # [CLS] and two [SEP]
_SHORTEST_CONTEXT = 8
_VALIDATION_SEED = 0
# The smallest number of tokens that can be divided in two.
_SHORTEST = 2


@dataclass(frozen=True)
class Example:
    """Two passages with some of their words masked."""

    hidden: Hidden
    n_first: int  # tokens of the first segment, with its special tokens
    unrelated: bool  # whether the second passage is from another document


class MaskedWords(Task):
    """Predict masked words, and whether the second passage follows the first."""

    name = "masked-words"

    def __init__(self, model: BERTConfig, config: TrainConfig, data: Dataset) -> None:
        self.context_length = config.context_length or model.context_length
        if self.context_length < _SHORTEST_CONTEXT:
            raise ConfigError(
                "predicting masked words requires a context_length of at least {least}", least=_SHORTEST_CONTEXT
            )
        self.tokenizer = data.tokenizer
        self._masking = Masking(data.tokenizer)
        check_vocabulary(model, data.tokenizer)
        self.data = data
        self._vocab_size, self._label_smoothing = model.vocab_size, config.label_smoothing
        self._evaluate_tokens = config.evaluate_tokens
        self._passages, self._held_out = (
            Passages(data[split], self.context_length - _MARKS) for split in ("train", "validation")
        )
        self._order = Order(len(self._passages), config.batch_size, config.seed)

    # -- examples ---------------------------------------------------------------------------------------------------

    def batch(self, step: int, first: int, count: int) -> Batch:
        return self._as_batch([self._at(turn) for turn in self._order.turns(step, first, count)])

    def _at(self, turn: int) -> Example:
        return self._draw(self._passages, self._order.example(turn), self._order.generator(turn))

    def _draw(self, passages: "Passages", passage: int, generator: np.random.Generator) -> Example:
        text = passages.read(passage)
        least = max(1, len(text) // 4)
        cut = int(generator.integers(least, len(text) - least + 1))
        unrelated = bool(generator.random() < 0.5)
        second = text[cut:]
        if unrelated:
            second = passages.from_other_document(passage, len(second), generator)
        cls, sep = self._masking.cls, self._masking.sep
        tokens = np.concatenate(([cls], text[:cut], [sep], second, [sep]))
        return Example(self._masking.hide(tokens, generator), cut + 2, unrelated)

    def _as_batch(self, examples: list[Example]) -> Batch:
        """Return a batch padded to the context length, so that all its parts have the same width."""
        n_places = n_chosen(self.context_length - _MARKS)
        lengths = np.array([[len(each.hidden.tokens)] for each in examples])
        firsts = np.array([[each.n_first] for each in examples])
        places = np.arange(self.context_length)
        arrays = {
            "tokens": _filled([each.hidden.tokens for each in examples], self.context_length, self._masking.pad),
            "segments": ((places >= firsts) & (places < lengths)).astype(np.int64),
            "real": places < lengths,
            "places": _filled([each.hidden.places for each in examples], n_places, 0),
            "words": _filled([each.hidden.words for each in examples], n_places, IGNORED),
            "unrelated": np.array([each.unrelated for each in examples], np.int64),
        }
        targets = {_WORDS: int((arrays["words"] != IGNORED).sum()), _PAIRS: len(examples)}
        return Batch({name: torch.from_numpy(each) for name, each in arrays.items()}, targets, arrays["tokens"].size)

    def validation(self) -> list[Batch]:
        passages = self._held_out
        generator = Order(len(passages), 1, _VALIDATION_SEED).generator
        slices = measuring_slices(len(passages), self.context_length, self._evaluate_tokens)
        return [self._as_batch([self._draw(passages, each, generator(each)) for each in some]) for some in slices]

    # -- losses and scores -------------------------------------------------------------------------------------------

    def losses(self, model: BERT, tensors: Tensors) -> Tensors:
        hidden = model.hidden(tensors["tokens"], tensors["segments"], tensors["real"])
        words = word_loss(
            model, masked_words(model, hidden, tensors["places"], tensors["words"]), self._label_smoothing
        )
        return {_WORDS: words, _PAIRS: sentence_pairs(model, hidden, tensors["unrelated"])}

    def measure(self, model: BERT, tensors: Tensors) -> Tensors:
        hidden = model.hidden(tensors["tokens"], tensors["segments"], tensors["real"])
        words, words_right = score_token_predictions(
            model, masked_words(model, hidden, tensors["places"], tensors["words"])
        )
        pairs, pairs_right = score_predictions(model.pair_head(model.pool(hidden)), tensors["unrelated"])
        return {_WORDS: words, _PAIRS: pairs, "words_right": words_right, "pairs_right": pairs_right}

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> Score:
        """See Task; ``loss_nats``, which training minimizes, is the sum of the two means."""
        words, pairs = (sums[part] / targets[part] for part in (_WORDS, _PAIRS))
        return {
            "loss_nats": words + pairs,
            "words_nats": words,
            "pairs_nats": pairs,
            "words_accuracy": sums["words_right"] / targets[_WORDS],
            "pairs_accuracy": sums["pairs_right"] / targets[_PAIRS],
            "words": targets[_WORDS],
            "pairs": targets[_PAIRS],
        }

    def references(self) -> dict[str, float]:
        """See Task; compare ``uniform`` and ``unigram`` with ``words_nats``, and ``coin flip`` with ``pairs_nats``."""
        words = torch.cat([batch.tensors["words"].flatten() for batch in self.validation()])
        held_out = torch.bincount(words[words != IGNORED], minlength=self._vocab_size).numpy()
        train = count_tokens(self.data, "train", self._vocab_size)
        train[: len(self._masking.is_ordinary)] *= self._masking.is_ordinary  # special tokens are never masked
        unigram = frequency_nats(train, held_out)
        return {"uniform": math.log(self._vocab_size), "unigram": unigram, "coin flip": math.log(2)}


def _filled(rows: list[Ids], width: int, filling: int) -> Ids:
    return np.stack([np.pad(row, (0, width - len(row)), constant_values=filling) for row in rows])


class Passages:
    """The passages of a split, by index; a document that cannot be divided in two has no passages."""

    def __init__(self, split: Split, longest: int) -> None:
        assert longest > _SHORTEST, "shorter passages could be single tokens"
        lengths = np.diff(split.offsets).astype(np.int64) - 1  # without the end token
        usable = np.flatnonzero(lengths >= _SHORTEST)
        if len(usable) < 2:
            raise DataError(
                "the {split} split has {n} documents of at least {least} tokens, but sentence pairs require two; "
                "prepare more text, or a larger validation share",
                split=split.name,
                n=len(usable),
                least=_SHORTEST,
            )
        self._split, self._documents, self._sizes = split, usable, lengths[usable]
        self._counts: NDArray[np.int64] = -(-self._sizes // longest)  # passages of each document
        self._ends = np.cumsum(self._counts)  # one past the last passage of each document

    def __len__(self) -> int:
        return int(self._ends[-1])

    def read(self, passage: int) -> Ids:
        """Return the tokens of a passage."""
        index = self._document_of(passage)
        number = passage - int(self._ends[index] - self._counts[index])
        cuts = (each * int(self._sizes[index]) // int(self._counts[index]) for each in (number, number + 1))
        return self._stretch(index, *cuts)

    def from_other_document(self, passage: int, length: int, generator: np.random.Generator) -> Ids:
        """Return up to ``length`` consecutive tokens from a document other than the passage's."""
        other = int(generator.integers(len(self._documents) - 1))
        other += other >= self._document_of(passage)
        start = int(generator.integers(max(1, int(self._sizes[other]) - length + 1)))
        return self._stretch(other, start, start + length)

    def _document_of(self, passage: int) -> int:
        """Return the index of the document that contains a passage."""
        return int(np.searchsorted(self._ends, passage, side="right"))

    def _stretch(self, index: int, start: int, end: int) -> Ids:
        return self._split[int(self._documents[index])][:-1][start:end].astype(np.int64)
