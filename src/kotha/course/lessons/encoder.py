"""Lesson: an encoder against a decoder alone, of the same size, after the same number of guesses.

The decoder sees the past and learns to guess what comes next at every place. The encoder sees both sides and learns to
fill holes; only there does it guess, so it reads more text for as many guesses. Each is measured at its own trade and
at the other's: a hole in the middle of a text, and writing on.
"""

from functools import partial

import torch
from torch import Tensor

from kotha.course.lessons.learning import Maker, Taught, curves, learn, next_tokens
from kotha.course.lessons.measuring import cuts, let_write
from kotha.course.lessons.occasion import Occasion
from kotha.course.lessons.result import Condition, LessonResult, Sample
from kotha.course.lessons.variants import Filler
from kotha.course.lessons.wordbook import Wordbook
from kotha.i18n.message import Bilingual
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.model.loss import IGNORED, next_token_loss

_WORDS = Wordbook("encoder")
_HOLES = 0.25  # of the tokens, while the encoder learns
_WINDOWS = 64
# What it asks for unless somebody asks for something else.
SIZES = {"context_length": 16, "steps": 300}
_FIGURES = (
    _WORDS.figure("steps", 0, None),
    _WORDS.figure("hole"),
    _WORDS.figure("next"),
    _WORDS.figure("words", 0, "high", percent=True),
)


def objective(model: GPT, sequences: Tensor, step: int) -> Tensor:
    """What each of them learns by."""
    return filled_holes(model, sequences) if isinstance(model, Filler) else next_tokens(model, sequences, step)


def filled_holes(model: Filler, sequences: Tensor) -> Tensor:
    """Guess some tokens from all that stands around them: (B, T + 1) -> ()."""
    tokens = sequences[:, 1:]
    holes = torch.rand(tokens.shape) < _HOLES
    holes[:, 0] |= ~holes.any(dim=1)  # each row has one
    hidden = model.hidden(tokens.masked_fill(holes, model.hole))
    return next_token_loss(hidden, model.head.weight, tokens.masked_fill(~holes, IGNORED))


@torch.no_grad()
def loss_at_holes(model: GPT, windows: Tensor) -> float:
    """Nats of tokens inside a text: the encoder sees all but the token, the decoder what stands before it."""
    windows, losses = windows[:_WINDOWS], []
    with evaluating(model):
        for place in cuts(windows.shape[1] - 1)[:-1]:
            losses.append(-_guess(model, windows, place).gather(1, windows[:, place : place + 1]))
    return torch.cat(losses).mean().item()


def _guess(model: GPT, windows: Tensor, place: int) -> Tensor:
    """Log-probabilities of the token at a place: (N, T + 1) -> (N, V)."""
    if isinstance(model, Filler):
        tokens = windows.clone()
        tokens[:, place] = model.hole
        scores: Tensor = model.head(model.hidden(tokens[:, 1:])[:, place - 1])
    else:
        scores = model.head(model.hidden(windows[:, :place])[:, -1])
    return scores.log_softmax(dim=-1)


@torch.no_grad()
def loss_behind(model: GPT, windows: Tensor) -> float:
    """Nats of a next token where there is nothing but the past, as when a model writes."""
    windows, losses = windows[:_WINDOWS], []
    with evaluating(model):
        for place in cuts(windows.shape[1] - 1)[:-1]:
            chances = model(windows[:, :place])[:, -1].log_softmax(dim=-1)  # (N, V)
            losses.append(-chances.gather(1, windows[:, place : place + 1]))
    return torch.cat(losses).mean().item()


def teach(occasion: Occasion) -> LessonResult:
    """Train both, and measure each at both trades."""
    room, windows, sizes = occasion.room, occasion.room.windows(), occasion.sizes
    config = room.gpt(positions="rotary")  # a neighbour is one thing wherever it stands: learned sooner
    makers: dict[str, Maker] = {"decoder": lambda: GPT(config), "encoder": lambda: Filler(config)}
    steps = {"decoder": sizes.steps, "encoder": round(sizes.steps / _HOLES)}
    counter = occasion.counter(len(occasion.seeds) * sum(steps.values()))
    found: dict[str, list[Taught]] = {key: [] for key in makers}
    for seed in occasion.seeds:
        for key, make in makers.items():
            own = sizes.change(steps=steps[key])
            found[key].append(learn(make, room, own, seed, objective, partial(loss_at_holes, windows=windows), counter))
    conditions, samples = [], []
    for key, runs in found.items():
        written = [let_write(run.model, room, seed) for run, seed in zip(runs, occasion.seeds, strict=True)]
        figures = {
            "steps": [float(steps[key])] * len(runs),
            "hole": [loss_at_holes(run.model, windows) for run in runs],
            "next": [loss_behind(run.model, windows) for run in runs],
            "words": [each.share for each in written],
        }
        conditions.append(Condition(key, _WORDS[key], figures))
        samples.append(Sample(_WORDS[key], written[0].texts[0]))
    lines, axes = curves(found, conditions), ("filling", "steps", "nats")
    return _WORDS.result(_FIGURES, conditions, read(*conditions), lines, axes, from_zero=True, samples=samples)


def read(decoder: Condition, encoder: Condition) -> list[Bilingual]:
    """What the figures say, whatever they are."""
    sees_more = max(encoder.figures["hole"]) < min(decoder.figures["hole"])
    writes_worse = min(encoder.figures["next"]) > max(decoder.figures["next"])
    holes = {"encoder": encoder.mean("hole"), "decoder": decoder.mean("hole")}
    behind = {"encoder": encoder.mean("next"), "decoder": decoder.mean("next")}
    known = {"share": encoder.mean("words"), "known": decoder.mean("words")}
    return [
        _WORDS.say("both_sides" if sees_more else "too_early", **holes),
        _WORDS.say("writes_worse" if writes_worse else "writes_too", **behind, **known),
    ]
