"""Texts with the marks around them that a classifier reads: the same in training, in measuring and at work.

What does not fit into the context is read in stretches of about equal length, each between its own marks. Of a text
that is longer than so many stretches, as many are read, spread over it from its beginning to its end.
"""

from collections.abc import Sequence

from kotha.errors import DataError
from kotha.text.tokenizer.tokenizer import Tokenizer

# Stretches of one text: what a kind of text is shows long before they are through.
_MOST = 8


class MarkedTexts:
    """Encodes texts between marks, in stretches that fit into a context.

    >>> from kotha.text.tokenizer.trainers import train
    >>> reader = MarkedTexts(train(["আমার সোনার বাংলা"], "char", level="akshara"), ("eos",), context_length=3)
    >>> [[len(ids) for ids in stretches] for stretches in reader.encode(["আমার", "", "সোনার বাংলা"])]
    [[2, 3], [1], [3, 3, 3]]
    """

    def __init__(self, tokenizer: Tokenizer, marks: Sequence[str], context_length: int) -> None:
        for role in marks:
            if role not in tokenizer.special:
                kind = "wordpiece" if role in ("cls", "sep") else "unigram"
                raise DataError(
                    "the tokenizer has no {role} token, and this model needs it to classify; "
                    "train one of kind {kind!r}",
                    role=role,
                    kind=kind,
                )
        *self.before, self.after = (tokenizer.special[role] for role in marks)
        self.pad = tokenizer.special.get("pad", 0)
        self.tokenizer, self.room = tokenizer, context_length - len(marks)
        self.truncated = 0  # texts so far of which a part was not read

    def encode(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Ids of each text's stretches, with their marks."""
        found = []
        for ids in self.tokenizer.encode_batch(list(texts)):
            self.truncated += len(ids) > _MOST * self.room
            found.append([self.surround(ids[start:end]) for start, end in self.stretches(len(ids))])
        return found

    def stretches(self, length: int) -> list[tuple[int, int]]:
        """From where to where a text of so many tokens is read at one time."""
        count = max(1, -(-length // self.room))
        if count <= _MOST:
            return [(part * length // count, (part + 1) * length // count) for part in range(count)]
        starts = (part * (length - self.room) // (_MOST - 1) for part in range(_MOST))
        return [(start, start + self.room) for start in starts]

    def surround(self, ids: Sequence[int]) -> list[int]:
        """Ids of a stretch between the marks."""
        return [*self.before, *ids, self.after]
