"""Marks around a text, written into the tokenizer's file so that other programs put them there by themselves.

Here a text is encoded alone, and whoever needs marks adds them (``ending.py``, ``marked.py``). Elsewhere one line is
expected to do everything (``tokenizer(text)`` of transformers, a prompt given to llama.cpp): what the model was trained
behind must be in the file. A file that says nothing of marks leaves them to the model's training; one may also say that
there are none.
"""

import json
from collections.abc import Sequence

import tokenizers
from tokenizers import processors

from kotha.text.tokenizer.pipeline import without_marks
from kotha.text.tokenizer.tokenizer import Tokenizer


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
    names = {token: tokenizer.pieces[token] for token in (*before, *after)}
    first, last = ([names[token] for token in some] for some in (before, after))
    single = [*first, "$A", *last]
    pair = [*single, "$B:1", *(f"{name}:1" for name in last)]
    marks = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(name, token) for token, name in names.items()]
    )
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
