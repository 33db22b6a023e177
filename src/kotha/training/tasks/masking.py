"""Hiding words of a text, BERT's way.

Of the ordinary tokens 15 % are chosen, exactly and at least one. A chosen one becomes the mask token with 80 %, a
random ordinary token with 10 %, and stays with 10 %, each drawn by itself: so a model must have something to say about
every token, not about masks alone (https://arxiv.org/abs/1810.04805, appendix A.1).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kotha.errors import DataError
from kotha.text.tokenizer.tokenizer import Tokenizer

CHOSEN = 0.15
MASKED, REPLACED = 0.8, 0.1
_ROLES = ("cls", "sep", "mask", "pad")

Ids = NDArray[np.int64]


class Hidden(NamedTuple):
    """A text with some of its words hidden."""

    tokens: Ids  # (T,), what the model reads
    places: Ids  # (K,), where it has to guess, in order
    words: Ids  # (K,), what stood there


class Masking:
    """Hides words of texts of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        missing = [role for role in _ROLES if role not in tokenizer.special]
        if missing:
            raise DataError(
                "the tokenizer has no {missing} token, and masked words need it; train one of kind 'wordpiece' and "
                "prepare the text with that",
                missing=missing,
            )
        self.cls, self.sep, self.mask, self.pad = (tokenizer.special[role] for role in _ROLES)
        self.is_ordinary = np.ones(tokenizer.vocab_size, dtype=bool)
        self.is_ordinary[list(tokenizer.special.values())] = False
        self.ordinary = np.flatnonzero(self.is_ordinary)

    def hide(self, tokens: Ids, chance: np.random.Generator) -> Hidden:
        """Choose words of a text and hide them: (T,) -> (T,), (K,), (K,)."""
        candidates = np.flatnonzero(self.is_ordinary[tokens])
        if not len(candidates):  # a text of nothing but unknown words: these, then, so that there is something to guess
            candidates = np.flatnonzero((tokens != self.cls) & (tokens != self.sep))
        places = np.sort(chance.choice(candidates, n_chosen(len(candidates)), replace=False))
        words = tokens[places]
        lot = chance.random(len(places))
        others = chance.choice(self.ordinary, len(places))
        shown = np.where(lot < MASKED, self.mask, np.where(lot < MASKED + REPLACED, others, words))
        hidden = tokens.copy()
        hidden[places] = shown
        return Hidden(hidden, places, words)


def n_chosen(n_words: int) -> int:
    """How many of so many words are chosen.

    >>> n_chosen(2), n_chosen(100)
    (1, 15)
    """
    return max(1, round(CHOSEN * n_words))
