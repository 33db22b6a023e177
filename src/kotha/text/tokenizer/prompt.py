"""Texts with the marks around them that a model reads: prompts, a classifier's texts, and what a file says of marks.

A prompt stands behind the mark that starts a document, and of a long one no more is read than a context can hold. It is
cut far enough before the tokens that are wanted that these are the ones that the whole text has, whatever was cut in
two there. A test holds them equal.

A classifier reads what does not fit into its context in stretches of about equal length, each between its own marks. Of
a text that is longer than so many stretches, as many are read, spread over it from its beginning to its end.

Here a text is encoded alone, and whoever needs marks adds them. Elsewhere one line is expected to do everything
(``tokenizer(text)`` of transformers, a prompt given to llama.cpp): what the model was trained behind must be in the
tokenizer's file (`framed`). A file that says nothing of marks leaves them to the model's training; one may also say
that there are none.
"""

import json
from collections.abc import Sequence

import tokenizers
from tokenizers import processors

from kotha.errors import DataError
from kotha.text.tokenizer.pipeline import without_marks
from kotha.text.tokenizer.tokenizer import Tokenizer

# Tokens before those that are wanted, in which the cut is forgotten.
_MARGIN = 64
# Stretches of one text: what a kind of text is shows long before they are through.
_MOST_STRETCHES = 8


def encode_end(tokenizer: Tokenizer, text: str, tokens: int) -> tuple[list[int], bool]:
    """Ids of a text, and whether they are all of it: of a long one at least so many last tokens are among them."""
    wanted = tokens + _MARGIN
    size = wanted * max(1, *map(len, tokenizer.pieces))  # no piece is longer, so in as many letters there are enough
    while size < len(text):
        ids = tokenizer.encode(text[-size:])
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
                    "the tokenizer has no {role} token, which this model needs for classification; train a "
                    "tokenizer of kind {kind!r}",
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
            self.truncated += len(ids) > _MOST_STRETCHES * self.room
            found.append([self.surround(ids[start:end]) for start, end in self.stretches(len(ids))])
        return found

    def stretches(self, length: int) -> list[tuple[int, int]]:
        """From where to where a text of so many tokens is read at one time."""
        count = max(1, -(-length // self.room))
        if count <= _MOST_STRETCHES:
            return [(part * length // count, (part + 1) * length // count) for part in range(count)]
        starts = (part * (length - self.room) // (_MOST_STRETCHES - 1) for part in range(_MOST_STRETCHES))
        return [(start, start + self.room) for start in starts]

    def surround(self, ids: Sequence[int]) -> list[int]:
        """Ids of a stretch between the marks."""
        return [*self.before, *ids, self.after]


def framed(tokenizer: Tokenizer, before: Sequence[int], after: Sequence[int] = ()) -> Tokenizer:
    """The tokenizer whose file puts these marks around a text, in place of any others.

    >>> from kotha.text.tokenizer.trainers import train
    >>> plain = train(["আমার সোনার বাংলা"], "char", level="akshara")
    >>> marking = framed(plain, [plain.special["eos"]])
    >>> marking.backend.encode("আমার").tokens
    ['<|endoftext|>', 'আ', 'মা', 'র']
    >>> marking.encode("আমার") == plain.encode("আমার"), marking.fingerprint == plain.fingerprint
    (True, True)
    """
    first, last = ([tokenizer.pieces[token] for token in some] for some in (before, after))
    single = [*first, "$A", *last]
    pair = [*single, "$B:1", *(f"{name}:1" for name in last)]
    named = dict(zip([*first, *last], [*before, *after], strict=True))
    marks = processors.TemplateProcessing(single=single, pair=pair, special_tokens=list(named.items()))
    backend = _without_marks(tokenizer)
    own = json.loads(backend.to_str())["post_processor"]
    keeps = own is not None and own["type"] == "ByteLevel"  # what is not about marks; what puts others gives way
    backend.post_processor = processors.Sequence([backend.post_processor, marks]) if keeps else marks
    return Tokenizer(backend)


def unframed(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer whose file says nothing of marks; itself where it is so."""
    return tokenizer if tokenizer.marks_before is None else Tokenizer(_without_marks(tokenizer))


def _without_marks(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    state = json.loads(tokenizer.backend.to_str())
    state["post_processor"] = without_marks(state["post_processor"])
    return tokenizers.Tokenizer.from_str(json.dumps(state, ensure_ascii=False))
