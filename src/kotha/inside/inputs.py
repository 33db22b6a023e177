"""Model inputs: a text, a pair of texts or an image as tensors, with a readable name for each position.

Inspection needs tensors for the model and, for the reader, a piece of text (or an image patch) for each position. A
piece that is only part of a character is marked. Pieces are grouped into named lines: ``source`` and ``target`` for a
Seq2Seq, ``patches`` for a ViT, and ``tokens`` for all other models.

This module does not generate text. To include generated tokens, pass ``write``, a function that takes the ids so far
and returns the new ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kotha.errors import UsageError
from kotha.i18n.message import Message, Option, Text
from kotha.model.classifier import TextClassifier
from kotha.model.family import Model
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq
from kotha.model.vit import ViT
from kotha.storage.images import read_picture
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.prompt import encode_prompt
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.view import view_token

Write = Callable[[list[int]], Sequence[int]]
Spell = Callable[[int], str]
Image = str | Path | NDArray[np.float32] | Tensor
_LONGEST_TITLE = 45  # grapheme clusters


@dataclass(frozen=True)
class Piece:
    """One position in readable form."""

    text: str
    id: int | None = None  # token id; None for a patch
    part: bool = False  # whether it is only part of a character


@dataclass(frozen=True)
class TokenPrediction:
    """A token (for a ViT, a class) and its probability."""

    id: int
    text: str
    probability: float


@dataclass(frozen=True)
class ModelInput:
    """The inputs to a model, with a readable piece for each position."""

    inputs: tuple[Tensor, ...]
    lines: dict[str, tuple[Piece, ...]]  # pieces by line name
    remarks: tuple[Text, ...] = ()  # notes for the user about the input
    written_from: int | None = None  # index of the first generated piece in the last line
    masked: tuple[int, ...] = ()  # masked positions of a BERT
    grid: tuple[int, int] | None = None  # rows and columns of an image's patches
    title: Text = ""  # title of a page about this input
    spell: Spell = str  # returns the text of an output id

    @property
    def last_line(self) -> tuple[Piece, ...]:
        """The line that the model predicts, which for a Seq2Seq is the target."""
        return list(self.lines.values())[-1]

    def likeliest(self, probabilities: Tensor, count: int) -> tuple[TokenPrediction, ...]:
        """Return the ``count`` most likely predictions at one position, best first: (V,) -> count."""
        best, ids = probabilities.topk(min(count, len(probabilities)))
        pairs = zip(ids.tolist(), best.tolist(), strict=True)
        return tuple(TokenPrediction(token, self.spell(token), share) for token, share in pairs)

    def pass_through(self, model: Model) -> Any:
        """Run the model on these inputs without gradients."""
        device = next(model.parameters()).device
        with torch.no_grad():
            return model(*(each.to(device) for each in self.inputs))

    def lines_of(self, attention: str) -> tuple[str, str]:
        """Return the lines of an attention module's queries and keys: ``decoder.0.cross`` -> target, source."""
        if len(self.lines) == 1:
            (name,) = self.lines
            return name, name
        if attention.startswith("encoder"):
            return "source", "source"
        return ("target", "source") if attention.endswith("cross") else ("target", "target")


def read(
    model: Model,
    tokenizer: Tokenizer | None,
    text: str = "",
    *,
    second: str | None = None,
    target: str | None = None,
    write: Write | None = None,
) -> ModelInput:
    """Prepare a text as model input; ``second`` is a second sentence for a BERT, ``target`` a translation."""
    if isinstance(model, ViT):
        raise UsageError("this model is a ViT, which takes images, not text; give it an image")
    if isinstance(model, TextClassifier):
        raise UsageError(
            "this model is a classifier; use classify to explain its answers, or inspect the model that it "
            "was fine-tuned from"
        )
    if tokenizer is None:
        raise UsageError(
            "this model has no tokenizer, so it cannot take text; save it with its tokenizer, or train it with one"
        )
    for given, argument, family in ((second, "second", "BERT"), (target, "target", "Seq2Seq")):
        if given is not None and model.config.family != family.lower():
            raise UsageError(
                "{argument} applies only to a {family}, but this model is a {own}; omit it",
                argument=Option(argument),
                family=family,
                own=model.config.family,
            )
    length = model.config.context_length
    if isinstance(model, GPT):
        return _read_gpt(length, tokenizer, text, write)
    if isinstance(model, Seq2Seq):
        return _read_pair(length, tokenizer, text, target, write)
    if write is not None:
        raise UsageError("a BERT cannot generate text; omit generate, or put [MASK] into the text")
    return _read_bert(length, tokenizer, text, second)


def read_image(model: Model, image: Image) -> ModelInput:
    """Prepare an image (n_channels, height, width) or an image file as input to a ViT: class token, patches by row."""
    if not isinstance(model, ViT):
        raise UsageError(
            "only a ViT takes an image, but this model is a {family}; give it a text", family=model.config.family
        )
    if isinstance(image, str | Path):
        image = read_picture(Path(image), model.config.image_size, model.config.n_channels)
    pixels = torch.as_tensor(image)[None]
    rows, columns = model.patches.grid(pixels)
    patches = [Piece(f"{row + 1},{column + 1}") for row in range(rows) for column in range(columns)]
    spell = model.config.class_names.__getitem__
    return ModelInput((pixels,), {"patches": (Piece("class"), *patches)}, grid=(rows, columns), spell=spell)


def name_piece(tokenizer: Tokenizer, token: int) -> Piece:
    """Return a token in readable form.

    A space is shown as ␣, a combining sign on ◌, part of a character in ‹›, and a special token by its name.
    """
    if token >= tokenizer.vocab_size:
        return Piece(f"‹{token}›", token)  # an id beyond the tokenizer's vocabulary
    if token in tokenizer.special.values():
        return Piece(tokenizer.pieces[token], token)
    viewed = view_token(tokenizer, token)
    text = f"‹{viewed.text}›" if viewed.part else viewed.text
    return Piece(text or "‹empty›", token, viewed.part)


def speller(tokenizer: Tokenizer | None) -> Spell:
    """Return a function that converts an id to its text, or to its number if there is no tokenizer."""
    return str if tokenizer is None else lambda token: name_piece(tokenizer, token).text


def headline(text: str) -> Text:
    """Shorten a text to a page title, cut between grapheme clusters."""
    clusters = aksharas(" ".join(text.split()))
    cut = "".join(clusters[:_LONGEST_TITLE]) + (" …" if len(clusters) > _LONGEST_TITLE else "")
    return cut or Message("An empty text")


# -- one reader for each architecture ---------------------------------------------------------------------------------


def _read_gpt(most: int, tokenizer: Tokenizer, text: str, write: Write | None) -> ModelInput:
    remarks = _empty_remark(text)
    read, complete = encode_prompt(tokenizer, text, most)
    ids = read or [special(tokenizer, "eos")]
    n_tokens = Message("{n:,}" if complete else "more than {n:,}", n=len(ids))
    added = [] if write is None else list(write(ids))
    if write is None and len(ids) > most:
        template = "the text has {n} tokens; the model sees only the last {most:,} (its context length)"
        remarks.append(Message(template, n=n_tokens, most=most))
        ids = ids[-most:]
    elif len(ids) + len(added) > most:
        raise UsageError(
            "{n} tokens and {written:,} generated tokens exceed the context length of {most:,}; use a "
            "shorter text or generate fewer tokens",
            n=n_tokens,
            written=len(added),
            most=most,
        )
    return _given(tokenizer, {"tokens": [*ids, *added]}, remarks, written_from=None if write is None else len(ids))


def _read_bert(most: int, tokenizer: Tokenizer, text: str, second: str | None) -> ModelInput:
    cls, sep = (special(tokenizer, role) for role in ("cls", "sep"))
    first = [cls, *_with_masks(tokenizer, text), sep]
    other = [] if second is None else [*_with_masks(tokenizer, second), sep]
    _check_length(Message("the text"), len(first) + len(other), most)
    segments = torch.tensor([[0] * len(first) + [1] * len(other)])
    masked = tuple(place for place, token in enumerate(first + other) if token == tokenizer.special.get("mask"))
    return _given(tokenizer, {"tokens": first + other}, _empty_remark(text), segments, masked=masked)


def _read_pair(most: int, tokenizer: Tokenizer, text: str, target: str | None, write: Write | None) -> ModelInput:
    if not text:
        raise UsageError("the text is empty; there is nothing to translate")
    if target is not None and write is not None:
        raise UsageError("target is already a translation; omit either generate or target")
    if target is None and write is None:
        raise UsageError("a Seq2Seq also needs a target")
    start, end = (special(tokenizer, role) for role in ("bos", "eos"))
    source = [*tokenizer.encode(text), end]
    _check_length(Message("the text"), len(source), most)
    written = [start, *(write(source) if write is not None else tokenizer.encode(target or ""))]
    _check_length(Message("the target"), len(written), most)
    return _given(tokenizer, {"source": source, "target": written}, written_from=None if write is None else 1)


def _given(
    tokenizer: Tokenizer, ids: dict[str, list[int]], remarks: Sequence[Text] = (), *extra: Tensor, **more: Any
) -> ModelInput:
    """Build an input from lines of ids, one row each, and ``extra`` tensors."""
    lines = {name: tuple(name_piece(tokenizer, token) for token in line) for name, line in ids.items()}
    rows = (torch.tensor([line]) for line in ids.values())
    return ModelInput((*rows, *extra), lines, tuple(remarks), spell=speller(tokenizer), **more)


def _with_masks(tokenizer: Tokenizer, text: str) -> list[int]:
    """Encode a text that may contain the name of the mask token, such as ``[MASK]``."""
    if "mask" not in tokenizer.special:
        return tokenizer.encode(text)
    mask = tokenizer.special["mask"]
    parts = text.split(tokenizer.pieces[mask])
    return [token for part in parts for token in (mask, *tokenizer.encode(part))][1:]


def _check_length(what: Message, n_tokens: int, most: int) -> None:
    if n_tokens > most:
        raise UsageError(
            "{what} has {n:,} tokens including special tokens, more than the context length of {most:,}; shorten it",
            what=what,
            n=n_tokens,
            most=most,
        )


def special(tokenizer: Tokenizer, role: str) -> int:
    """Return the id of the special token for a role, or raise ``UsageError`` if the tokenizer has none."""
    if role not in tokenizer.special:
        raise UsageError("this tokenizer has no {role} token, which the model's input requires", role=role)
    return tokenizer.special[role]


def _empty_remark(text: str) -> list[Text]:
    return [] if text else [Message("the text is empty; the input consists of special tokens only")]
