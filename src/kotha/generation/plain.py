"""Text generation without a cache, as in the course: the whole text is processed again for each token.

This module is the readable reference for the engine and its sampling; tests check that both give the same text. When
the context is full, its older half is dropped (``context_start``). ``chances`` applies the settings in this order:

1. repetition penalty, on the model's logits (Keskar et al. 2019, https://arxiv.org/abs/1909.05858);
2. temperature;
3. top-k, then top-p on the remaining tokens (Holtzman et al. 2019, https://arxiv.org/abs/1904.09751), then min-p
   (Nguyen et al. 2024, https://arxiv.org/abs/2407.01082);
4. sampling.

Hugging Face applies them in the same order. In llama.cpp, temperature comes last; here it comes first, so that top-p
and min-p apply to the distribution that is sampled from.
"""

import math
from collections.abc import Collection, Sequence
from itertools import accumulate, islice
from typing import Any

import torch
from torch import Tensor

from kotha.errors import NotFiniteError
from kotha.generation.request import context_start
from kotha.generation.settings import SamplingSettings, uniforms
from kotha.model.evaluating import evaluating, overflow_as_nan
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer


def write(model: GPT, tokenizer: Tokenizer, prompt: str, tokens: int = 100, **how: Any) -> str:
    """Return the prompt with its continuation up to the end of text; ``how`` takes ``SamplingSettings`` fields."""
    end = tokenizer.special["eos"]  # also marks the start of a document
    start = [end, *tokenizer.encode(prompt)]
    settings = SamplingSettings(**how)
    return tokenizer.decode(start + continue_plainly(model, start, tokens, settings, ends={end}))


@torch.no_grad()
def continue_plainly(
    model: GPT, start: Sequence[int], n_tokens: int, settings: SamplingSettings, ends: Collection[int] = ()
) -> list[int]:
    """Return the tokens that continue ``start``, up to but not including one of ``ends``."""
    device, written = model.tokens.weight.device, list(start)
    for number in islice(uniforms(settings.seed), n_tokens):
        first = context_start(len(written), len(start), model.config.context_length)
        context = torch.tensor([written[first:]], device=device)
        with evaluating(model), overflow_as_nan(model):
            logits = model(context)[0, -1].float()  # (V,)
        seen = [token for token in written if token not in ends]  # end tokens are exempt from the repetition penalty
        token = draw(logits, settings, seen, number)
        if token in ends:
            break
        written.append(token)
    return written[len(start) :]


def draw(logits: Tensor, settings: SamplingSettings, seen: Collection[int], number: float) -> int:
    """Sample a token by inverting the cumulative distribution (most likely first) at a number in [0, 1): (V,) -> ()."""
    kept = chances(logits, settings, seen)
    reached = 0.0
    for token, chance in kept.items():
        reached += chance
        if number < reached:
            return token
    return token  # rounding made the sum slightly less than 1


def chances(logits: Tensor, settings: SamplingSettings, seen: Collection[int]) -> dict[int, float]:
    """Return the probability of each token that can be sampled, most likely first: (V,) -> token: probability.

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
        raise NotFiniteError
    if settings.greedy:
        return {ranked[0]: 1.0}
    kept = ranked[: settings.top_k]
    weights = {token: math.exp((scores[token] - best) / settings.temperature) for token in kept}
    if settings.top_p is not None:
        wanted = settings.top_p * sum(weights.values())
        better = accumulate(weights.values(), initial=0.0)  # the total before each token
        kept = [token for token, reached in zip(kept, better, strict=False) if reached < wanted]
        weights = {token: weights[token] for token in kept}
    if settings.min_p is not None:
        weights = {
            token: weight for token, weight in weights.items() if weight >= settings.min_p
        }  # the most likely token has weight 1
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items() if weight > 0}
