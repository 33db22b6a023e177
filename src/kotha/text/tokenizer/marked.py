"""Texts with the marks around them that a classifier reads: the same in training, in measuring and at work."""

from collections.abc import Sequence

from kotha.errors import DataError
from kotha.text.tokenizer.tokenizer import Tokenizer


class MarkedTexts:
    """Encodes texts between marks, as far as a context goes: the start of a text mostly tells its kind.

    >>> from kotha.text.tokenizer.trainers import train
    >>> reader = MarkedTexts(train(["আমার সোনার বাংলা"], "char", level="akshara"), ("eos",), context_length=3)
    >>> [len(ids) for ids in reader.encode(["আমার", ""])], reader.truncated
    ([3, 1], 1)
    """

    def __init__(self, tokenizer: Tokenizer, marks: Sequence[str], context_length: int) -> None:
        for role in marks:
            if role not in tokenizer.special:
                kind = "wordpiece" if role in ("cls", "sep") else "unigram"
                raise DataError(
                    f"the tokenizer has no {role} token, and this model needs it to classify; train one of kind "
                    f"{kind!r}"
                )
        *self.before, self.after = (tokenizer.special[role] for role in marks)
        self.pad = tokenizer.special.get("pad", 0)
        self.tokenizer, self.room = tokenizer, context_length - len(marks)
        self.truncated = 0  # texts so far that were longer

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of each text with its marks."""
        ids = self.tokenizer.encode_batch(list(texts))
        self.truncated += sum(len(each) > self.room for each in ids)
        return [self.surround(each) for each in ids]

    def surround(self, ids: Sequence[int]) -> list[int]:
        """Ids of a text between the marks, cut to what fits."""
        return [*self.before, *ids[: self.room], self.after]
