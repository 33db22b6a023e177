"""A prompt as tokens: behind the mark that starts a document, and of a long text no more than a context can hold.

A text is cut where a lone space stands between two words, which no token crosses, and where there is none between two
letters; and far enough before the tokens that are wanted that these are the ones that the whole text has. A test holds
them equal.
"""

import re
from itertools import accumulate

from kotha.text.akshara import aksharas
from kotha.text.tokenizer.tokenizer import Tokenizer

_LONE_SPACE = re.compile(r"(?<=\S) (?=\S)")
# Tokens before those that are wanted, in which a cut that was no good one is forgotten.
_MARGIN = 64
# Where no space is found in so many letters there may be none at all.
_SEARCHED, _LETTERS = 10_000, 50


def encode_end(tokenizer: Tokenizer, text: str, tokens: int) -> tuple[list[int], bool]:
    """Ids of a text, and whether they are all of it: of a long one at least so many last tokens are among them."""
    wanted = tokens + _MARGIN
    size = wanted * max(1, *map(len, tokenizer.pieces))  # no piece is longer, so in as many letters there are enough
    while size < len(text):
        ids = tokenizer.encode(text[_cut(text, len(text) - size) :])
        if len(ids) >= wanted:
            return ids, False
        size *= 4  # normalization took much away, or what is unknown is one token
    return tokenizer.encode(text), True


def encode_prompt(tokenizer: Tokenizer, text: str, tokens: int) -> tuple[list[int], bool]:
    """The same of a text that a model reads as the beginning of a document: behind the token that starts one."""
    ids, whole = encode_end(tokenizer, text, tokens)
    start = start_of_document(tokenizer)
    return ([start, *ids] if whole and start is not None else ids), whole


def start_of_document(tokenizer: Tokenizer) -> int | None:
    """The token before the first of a document: in training that is the one that ended the document before.

    Where a model comes from elsewhere, its tokenizer's file says what it was trained behind; it may be nothing.
    """
    marks = tokenizer.marks_before
    if marks is not None:
        return marks[-1] if marks else None
    return tokenizer.special.get("eos", tokenizer.special.get("bos"))


def _cut(text: str, start: int) -> int:
    """The first good place to cut from there on."""
    space = _LONE_SPACE.search(text, start, start + _SEARCHED)
    if space is not None:
        return space.start()
    before = max(0, start - _LETTERS)  # where a letter begins is seen from the letters before it
    ends = accumulate(map(len, aksharas(text[before : start + _LETTERS])), initial=before)
    return next((end for end in ends if end >= start), start)
