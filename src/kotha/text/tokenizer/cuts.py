"""Where a tokenizer cuts through a letter, which a reader sees as one: ``ক্ষ`` in two tokens is cut."""

from collections.abc import Sequence
from itertools import accumulate

from kotha.text.akshara import aksharas
from kotha.text.tokenizer.tokenizer import Tokenizer


def ends_inside(tokenizer: Tokenizer, text: str, ids: Sequence[int]) -> list[bool]:
    """Whether each token of a text, as it was encoded, ends inside a letter.

    Counted in bytes, so that half a character counts too; by the tokenizer's own word for one that loses some of it.
    """
    normalized = tokenizer.normalize(text)
    if tokenizer.decode(ids) == normalized:
        return _by_bytes(tokenizer, ids, normalized)
    return _by_spans(tokenizer, text)


def _by_bytes(tokenizer: Tokenizer, ids: Sequence[int], normalized: str) -> list[bool]:
    letter_ends = set(accumulate(len(letter.encode()) for letter in aksharas(normalized)))
    ends = list(accumulate(len(tokenizer.token_bytes(token)) for token in ids))
    # A tokenizer that puts a space before the first word counts one byte more than the text has.
    extra = ends[-1] - len(normalized.encode()) if ends else 0
    return [end > extra and end - extra not in letter_ends for end in ends]


def _by_spans(tokenizer: Tokenizer, text: str) -> list[bool]:
    prepared = tokenizer.normalizer(text) if tokenizer.normalizer else text
    letter_ends = {0, *accumulate(len(letter) for letter in aksharas(prepared))}
    return [end not in letter_ends for _, _, end in tokenizer.spans(text)]
