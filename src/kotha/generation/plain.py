"""Writing, the plain way: look at everything again for each token, as the course does.

The readable twin of the engine and of its sampling; tests hold them equal. When the context is full, its older half is
forgotten (``first_in_sight``). ``chances`` says in which order the settings act:

1. repetition penalty, on the model's own scores (Keskar et al. 2019, https://arxiv.org/abs/1909.05858);
2. temperature;
3. top-k, then top-p of what is left (Holtzman et al. 2019, https://arxiv.org/abs/1904.09751), then min-p
   (Nguyen et al. 2024, https://arxiv.org/abs/2407.01082);
4. the draw.

It is Hugging Face's order. llama.cpp's differs in one place, temperature comes last there; we take the former, so that
top-p and min-p cut the very distribution that is drawn from.
"""

import math
from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from kotha.errors import KothaError
from kotha.generation.settings import SamplingSettings
from kotha.model.evaluating import evaluating
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer

# Numbers are drawn this many at a time, so that the first of them do not depend on how many are wanted.
_DRAWN_AT_ONCE = 256
NO_NUMBERS = "the model's logits are NaN or infinite; its weights are damaged, or too large for their type"


def write(model: GPT, tokenizer: Tokenizer, prompt: str, tokens: int = 100, **how: Any) -> str:
    """The prompt and what the model writes after it, up to the end of the text; ``how`` as ``SamplingSettings``."""
    end = tokenizer.special["eos"]  # also what a document begins behind
    start = [end, *tokenizer.encode(prompt)]
    settings = SamplingSettings(**how)
    return tokenizer.decode(start + continue_plainly(model, start, tokens, settings, ends={end}))


@torch.no_grad()
def continue_plainly(
    model: GPT, start: Sequence[int], n_tokens: int, settings: SamplingSettings, ends: Collection[int] = ()
) -> list[int]:
    """The tokens that follow a start, up to one of ``ends``, which is left out."""
    device, written = model.tokens.weight.device, list(start)
    for number in uniforms(settings.seed, n_tokens).tolist():
        first = first_in_sight(len(written), len(start), model.config.context_length)
        seen = torch.tensor([written[first:]], device=device)
        with evaluating(model):
            logits = model(seen)[0, -1].float()  # (V,)
        said = [token for token in written if token not in ends]  # an end is no repetition
        token = draw(logits, settings, said, number)
        if token in ends:
            break
        written.append(token)
    return written[len(start) :]


def first_in_sight(n_tokens: int, n_prompt: int, context_length: int) -> int:
    """The first token that is looked at when so many are there, the prompt's among them.

    The course drops one token for each new one, and must then read all the others again: their places have changed, and
    all but the first layer's keys were made in the sight of the one that left. Dropping half of them at once lets the
    rest be read again once, and then be gone on from for half a context.

    >>> [first_in_sight(n, n_prompt=1, context_length=4) for n in (1, 4, 5, 6, 7, 8)]
    [0, 0, 2, 2, 4, 4]
    >>> first_in_sight(9, n_prompt=9, context_length=4)  # of a long prompt, its end
    5
    """
    first = max(0, n_prompt - context_length)
    half = max(1, context_length // 2)
    beyond = max(0, n_tokens - first - context_length)
    return first + math.ceil(beyond / half) * half


def uniforms(seed: int, count: int) -> Tensor:
    """A number in [0, 1) for each step of a seed: (count,); more of them begin with the same."""
    generator = torch.Generator().manual_seed(seed)
    first, *others = (torch.rand(_DRAWN_AT_ONCE, generator=generator) for _ in range(0, max(1, count), _DRAWN_AT_ONCE))
    return (torch.cat((first, *others)) if others else first)[:count]


def draw(logits: Tensor, settings: SamplingSettings, seen: Collection[int], number: float) -> int:
    """The token that a number in [0, 1) falls on when the chances are laid end to end, best first: (V,) -> ()."""
    kept = chances(logits, settings, seen)
    reached = 0.0
    for token, chance in kept.items():
        reached += chance
        if number < reached:
            return token
    return token  # the sum was rounded to a little less than 1


def chances(logits: Tensor, settings: SamplingSettings, seen: Collection[int]) -> dict[int, float]:
    """The probability of each token that can be drawn, best first: (V,) -> token: chance.

    >>> half, quarter = math.log(0.5), math.log(0.25)
    >>> kept = chances(torch.tensor([quarter, half, quarter]), SamplingSettings(temperature=1, top_k=2), seen=[])
    >>> {token: round(chance, 3) for token, chance in kept.items()}
    {1: 0.667, 0: 0.333}
    """
    scores = dict(enumerate(logits.tolist()))
    penalty = settings.repetition_penalty
    if penalty is not None:
        for token in set(seen):
            scores[token] = scores[token] / penalty if scores[token] > 0 else scores[token] * penalty
    ranked = sorted(scores, key=lambda token: -scores[token])
    best = scores[ranked[0]]
    if not math.isfinite(sum(scores.values())):
        raise KothaError(NO_NUMBERS)
    if settings.greedy:
        return {ranked[0]: 1.0}
    kept = ranked[: settings.top_k]
    weights = {token: math.exp((scores[token] - best) / settings.temperature) for token in kept}
    if settings.top_p is not None:
        wanted = settings.top_p * sum(weights.values())
        better = accumulate(weights.values(), initial=0.0)  # what stands before each
        kept = [token for token, reached in zip(kept, better, strict=False) if reached < wanted]
        weights = {token: weights[token] for token in kept}
    if settings.min_p is not None:
        weights = {token: weight for token, weight in weights.items() if weight >= settings.min_p}  # the best has 1
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items() if weight > 0}
