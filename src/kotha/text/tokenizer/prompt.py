"""Special tokens around text: in prompts, in a classifier's input, and in a tokenizer's file.

A prompt starts with the start-of-document token. If the text exceeds the context, only its end is encoded. The cut is
far enough before the required tokens for these to equal the tokens of the complete text; a test checks this.

For a classifier, a text that exceeds the context is split into parts of about equal length, each between special
tokens. The number of parts is limited; in a longer text, they are spread evenly from start to end.

``Tokenizer.encode`` adds no special tokens; callers add them. In other tools a single call does everything
(``tokenizer(text)`` in transformers, a prompt in llama.cpp), so the tokenizer's file must specify the tokens that
preceded text in training (`framed`). If a file specifies nothing, the model's training convention applies; a file can
also specify that there are no such tokens.
"""

import json
from collections.abc import Sequence

import tokenizers
from tokenizers import processors

from kotha.errors import DataError
from kotha.text.tokenizer.pipeline import without_marks
from kotha.text.tokenizer.tokenizer import Tokenizer

# Extra tokens before the required ones, so that the cut does not affect those.
_MARGIN = 64
# Maximum number of parts per text, enough to determine its class.
_MOST_STRETCHES = 8


def encode_end(tokenizer: Tokenizer, text: str, tokens: int) -> tuple[list[int], bool]:
    """Return the ids of a text and whether they are complete; if not, at least the last ``tokens`` ids are exact."""
    required = tokens + _MARGIN
    size = required * max(1, *map(len, tokenizer.pieces))  # no piece is longer, so this number of characters is enough
    while size < len(text):
        ids = tokenizer.encode(text[-size:])
        if len(ids) >= required:
            return ids, False
        size *= 4  # normalization shortened the text, or unknown text became one token
    return tokenizer.encode(text), True


def encode_prompt(tokenizer: Tokenizer, text: str, tokens: int) -> tuple[list[int], bool]:
    """Encode like ``encode_end``, and put the start-of-document token before a complete text."""
    ids, complete = encode_end(tokenizer, text, tokens)
    start = start_of_document(tokenizer)
    return ([start, *ids] if complete and start is not None else ids), complete


def start_of_document(tokenizer: Tokenizer) -> int | None:
    """Return the token that precedes a document; in training, this token ends the previous document.

    For an imported model, it is the token specified in the tokenizer's file; None if there is none.
    """
    marks = tokenizer.marks_before
    if marks is not None:
        return marks[-1] if marks else None
    return tokenizer.special.get("eos", tokenizer.special.get("bos"))


class MarkedTexts:
    """Encodes texts between special tokens, in parts that fit into a context.

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
                    "the tokenizer has no {role} token, which this model requires for classification; train a "
                    "tokenizer of kind {kind!r}",
                    role=role,
                    kind=kind,
                )
        *self.before, self.after = (tokenizer.special[role] for role in marks)
        self.pad = tokenizer.special.get("pad", 0)
        self.tokenizer, self.room = tokenizer, context_length - len(marks)
        self.truncated = 0  # number of texts that were not encoded completely

    def encode(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """Return the ids of each text's parts, with special tokens."""
        found = []
        for ids in self.tokenizer.encode_batch(list(texts)):
            self.truncated += len(ids) > _MOST_STRETCHES * self.room
            found.append([self.surround(ids[start:end]) for start, end in self.stretches(len(ids))])
        return found

    def stretches(self, length: int) -> list[tuple[int, int]]:
        """Return (start, end) of each part of a text of ``length`` tokens."""
        count = max(1, -(-length // self.room))
        if count <= _MOST_STRETCHES:
            return [(part * length // count, (part + 1) * length // count) for part in range(count)]
        starts = (part * (length - self.room) // (_MOST_STRETCHES - 1) for part in range(_MOST_STRETCHES))
        return [(start, start + self.room) for start in starts]

    def surround(self, ids: Sequence[int]) -> list[int]:
        """Put the ids of a part between the special tokens."""
        return [*self.before, *ids, self.after]


def framed(tokenizer: Tokenizer, before: Sequence[int], after: Sequence[int] = ()) -> Tokenizer:
    """Return a copy of the tokenizer whose file puts these special tokens, and no others, around a text.

    >>> from kotha.text.tokenizer.trainers import train
    >>> plain = train(["আমার সোনার বাংলা"], "char", level="akshara")
    >>> marking = framed(plain, [plain.special["eos"]])
    >>> marking.backend.encode("আমার").tokens
    ['<|endoftext|>', 'আ', 'মা', 'র']
    >>> marking.encode("আমার") == plain.encode("আমার"), marking.fingerprint == plain.fingerprint
    (True, True)
    """
    first, last = ([tokenizer.pieces[token] for token in tokens] for tokens in (before, after))
    single = [*first, "$A", *last]
    pair = [*single, "$B:1", *(f"{name}:1" for name in last)]
    named = dict(zip([*first, *last], [*before, *after], strict=True))
    marks = processors.TemplateProcessing(single=single, pair=pair, special_tokens=list(named.items()))
    backend = _without_marks(tokenizer)
    own = json.loads(backend.to_str())["post_processor"]
    keep_own = own is not None and own["type"] == "ByteLevel"  # adds no tokens; all others are replaced
    backend.post_processor = processors.Sequence([backend.post_processor, marks]) if keep_own else marks
    return Tokenizer(backend)


def unframed(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer, or a copy whose file specifies no special tokens around text if it specifies any."""
    return tokenizer if tokenizer.marks_before is None else Tokenizer(_without_marks(tokenizer))


def _without_marks(tokenizer: Tokenizer) -> tokenizers.Tokenizer:
    state = json.loads(tokenizer.backend.to_str())
    state["post_processor"] = without_marks(state["post_processor"])
    return tokenizers.Tokenizer.from_str(json.dumps(state, ensure_ascii=False))
