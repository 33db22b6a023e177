"""A model with some heads switched off beside the same model whole: what it then says, writes, and is surprised by.

The heads are silent by hooks (``importance.silence``); the weights stay as they are. What is measured on a whole text,
head by head, is in ``study.py``; this is one text and any heads together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.inside.flow.flow import FinalAnswer, final_answers
from kotha.inside.heads.importance import places_of, silence
from kotha.inside.inputs import ModelInput
from kotha.inside.request import Asked, as_asked, read_asked
from kotha.model.gpt import GPT
from kotha.model.seq2seq import Seq2Seq


@dataclass(frozen=True)
class Spoken:
    """What a model says of an input."""

    answers: tuple[FinalAnswer, ...]
    nats: tuple[float, ...]  # how surprised it is by each token after the first; of who foretells no tokens, none
    written: str | None = None  # how it goes on, where that was asked for

    @property
    def loss_nats(self) -> float | None:
        """Its surprise on average."""
        return sum(self.nats) / len(self.nats) if self.nats else None


@dataclass(frozen=True)
class SilencedHeads:
    """An input as the whole model reads it, and without some heads."""

    heads: tuple[str, ...]
    given: ModelInput
    whole: Spoken
    without: Spoken


def without_heads(bundle: Bundle, asked: Asked | str, heads: Sequence[str]) -> SilencedHeads:
    """Let a model read with some heads silent, and whole; with ``generate``, both also go on with the text."""
    wanted = as_asked(asked)
    model = bundle.model
    if wanted.generate is not None and not isinstance(model, GPT):
        family = bundle.config.family
        raise UsageError("only a GPT goes on with a text, and this model is a {family}", family=family)
    places_of(model, heads)  # refuses those that are not there before anything is read
    given = read_asked(bundle, replace(wanted, generate=None, temperature=0.0, seed=0))
    whole = _speak(bundle, given, wanted)
    with silence(model, heads):
        without = _speak(bundle, given, wanted)
    return SilencedHeads(tuple(heads), given, whole, without)


def _speak(bundle: Bundle, given: ModelInput, asked: Asked) -> Spoken:
    model = bundle.model
    output = given.pass_through(model)
    nats = _nats(given, output[0]) if isinstance(model, GPT | Seq2Seq) else ()
    written = None
    if asked.generate is not None and bundle.tokenizer is not None:
        longer = read_asked(bundle, asked)
        ids = [piece.id for piece in longer.lines["tokens"][longer.written_from :] if piece.id is not None]
        written = bundle.tokenizer.decode(ids)
    return Spoken(final_answers(model, given, output), nats, written)


def _nats(given: ModelInput, logits: Tensor) -> tuple[float, ...]:
    """The surprise at each token of the line that is foretold, but the first: (T, V) -> T - 1."""
    ids = torch.tensor([piece.id for piece in list(given.lines.values())[-1]], device=logits.device)
    said = logits[:-1].float().log_softmax(dim=-1).gather(-1, ids[1:, None])  # (T - 1, 1)
    return tuple((-said[:, 0]).tolist())
