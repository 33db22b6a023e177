"""A generation request, its answer in progress, and its result.

An answer decodes tokens to complete grapheme clusters (the first token may be a vowel sign that belongs to the prompt's
last cluster), looks for stop strings, and records why it ended. The text ends before the stop string. Stop strings are
compared by grapheme cluster (``ক`` does not match ``কি``). Text that may be the start of a stop string is held back
until the following characters decide.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from kotha.errors import UsageError
from kotha.generation.settings import SamplingSettings, uniforms
from kotha.i18n.message import Option
from kotha.i18n.short_repr import ShortRepr
from kotha.text.akshara import units
from kotha.text.tokenizer.tokenizer import Tokenizer

MOST_ALTERNATIVES = 100
StopReason = Literal["end", "stop string", "length", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A prompt to continue, with settings."""

    prompt: str | tuple[int, ...] = ""  # text, or token ids including special tokens; empty: a new document
    tokens: int = 150  # largest number of tokens to generate
    settings: SamplingSettings = field(default_factory=SamplingSettings)  # how tokens are sampled
    stop: tuple[str, ...] = ()  # strings that end the answer; not part of the output
    alternatives: int | None = None  # report probabilities, with this number of most likely tokens per position

    def __post_init__(self) -> None:
        if self.tokens < 0:
            raise UsageError("{tokens} is negative; use 0 or more", tokens=Option("tokens", self.tokens))
        if "" in self.stop:
            raise UsageError("an empty stop string would end every answer immediately; remove it")
        if self.alternatives is not None and not 0 <= self.alternatives <= MOST_ALTERNATIVES:
            raise UsageError(
                "{alternatives} is out of range; use 0 to {most}, or omit the setting",
                alternatives=Option("alternatives", self.alternatives),
                most=MOST_ALTERNATIVES,
            )


@dataclass(frozen=True)
class TokenProbability:
    """A candidate token and its log-probability before any sampling setting is applied."""

    id: int
    text: str
    log_probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary, with the probability."""
        return {"token": self.text, "id": self.id, "probability": round(math.exp(self.log_probability), 6)}


@dataclass(frozen=True)
class GeneratedToken(TokenProbability):
    """A generated token, with the most likely tokens at its position."""

    alternatives: tuple[TokenProbability, ...]
    rank: int  # rank by probability; 1 for the most likely token
    above: float  # total probability of all more likely tokens

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary, with the alternatives."""
        return {**super().to_dict(), "alternatives": [other.to_dict() for other in self.alternatives]}


@dataclass(frozen=True, repr=False)
class Result(ShortRepr):
    """A finished answer."""

    text: str  # the generated text, without the prompt
    ids: tuple[int, ...]  # the generated tokens, including those of a stop string but not the end token
    stopped: StopReason  # why it ended
    prompt_tokens: int  # encoded tokens; of a prompt much longer than the context, only the end is encoded
    tokens_per_second: float  # measured from the submission of the request
    written: tuple[GeneratedToken, ...] = ()  # each token with its probability, if ``alternatives`` was set

    @property
    def tokens(self) -> int:
        """The number of generated tokens."""
        return len(self.ids)


# A token, the most likely tokens at its position, their log-probabilities, the rank of the token, and the total
# probability of more likely ones.
Seen = tuple[list[int], list[float], list[int], list[float]]


class Answer:
    """A request in progress."""

    def __init__(self, number: int, request: Request, start: list[int], tokenizer: Tokenizer | None) -> None:
        self.number, self.request, self.start = number, request, start
        self.ids: list[int] = []
        self.written: list[GeneratedToken] = []
        self.read = 0  # tokens in the cache, including those of pending steps
        self.scheduled = 0  # sampled tokens, including those of pending steps
        self.stopped: StopReason | None = None
        self._tokenizer, self._text = tokenizer, ""
        self.numbers = uniforms(request.settings.seed)  # for the steps that are not scheduled yet
        self._began, self._seconds = time.perf_counter(), 0.0
        if tokenizer is not None:
            self._stops = Stops([tokenizer.normalize(text) for text in request.stop])
            self._stream = tokenizer.stream()
            shown = sum(len(self._stream.push(token)) for token in start)
            self._skip = max(0, len(tokenizer.decode(start)) - shown)  # the prompt's last cluster is still held back

    @property
    def unscheduled(self) -> int:
        """The number of tokens that remain to be sampled, without those in pending steps."""
        return self.request.tokens - self.scheduled

    @property
    def last(self) -> int:
        """The last token so far."""
        return (self.ids or self.start)[-1]

    def context_tokens(self, context_length: int) -> list[int]:
        """The tokens of the prompt and the answer that are in the context."""
        n_prompt = len(self.start)
        first = context_start(n_prompt + len(self.ids), n_prompt, context_length)
        return self.start[first:] + self.ids[max(0, first - n_prompt) :]

    def extend(self, tokens: Sequence[int], seen: Sequence[Seen], ends: frozenset[int]) -> str:
        """Add tokens until the answer ends; return the text that is now final."""
        room, shown = self.request.tokens - len(self.ids), ""
        end = next((index for index, token in enumerate(tokens) if token in ends), len(tokens))
        reason: StopReason | None = "length" if end >= room else "end" if end < len(tokens) else None
        for index, token in enumerate(tokens[: min(end, room)]):
            self.ids.append(token)
            if seen:
                self._note(*seen[index])
            if self._tokenizer is not None:
                shown += self._show(self._stream.push(token))
                if self._stops.found is not None:
                    reason = "stop string"
                    break
        return shown if reason is None else shown + self.finish(reason)

    def finish(self, reason: StopReason) -> str:
        """End the answer; return the text that was held back."""
        self.stopped, self._seconds = reason, time.perf_counter() - self._began
        if self._tokenizer is None:
            return ""
        shown = self._show(self._stream.finish())
        if self._stops.found is not None:
            self.stopped = "stop string"
        rest = self._stops.finish()
        self._text += rest
        return shown + rest

    def result(self) -> Result:
        """Return the result of a finished answer."""
        assert self.stopped is not None, "the answer is not finished"
        rate = len(self.ids) / self._seconds if self._seconds > 0 else 0.0
        return Result(self._text, tuple(self.ids), self.stopped, len(self.start), rate, tuple(self.written))

    def _show(self, text: str) -> str:
        """Remove the prompt's text; return the text that cannot be the start of a stop string."""
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        shown = self._stops.push(text[skipped:])
        self._text += shown
        return shown

    def _note(self, ids: list[int], chances: list[float], rank: list[int], above: list[float]) -> None:
        tokenizer = self._tokenizer
        spelled = ("" if tokenizer is None else tokenizer.decode([token], skip_special=False) for token in ids)
        first, *others = zip(ids, spelled, chances, strict=True)
        self.written.append(
            GeneratedToken(*first, tuple(TokenProbability(*each) for each in others), rank[0], above[0])
        )


def context_start(n_tokens: int, n_prompt: int, context_length: int) -> int:
    """Return the index of the first token in the context; ``n_tokens`` counts the prompt and the answer so far.

    The course drops one old token for each new one. All other tokens must then be processed again, because their
    positions change and all keys above the first layer depend on the dropped token. Here, half of the context is
    dropped at once, so the rest is processed again only once per half context.

    >>> [context_start(n, n_prompt=1, context_length=4) for n in (1, 4, 5, 6, 7, 8)]
    [0, 0, 2, 2, 4, 4]
    >>> context_start(9, n_prompt=9, context_length=4)  # the end of a long prompt
    5
    """
    first = max(0, n_prompt - context_length)
    half = max(1, context_length // 2)
    beyond = max(0, n_tokens - first - context_length)
    return first + math.ceil(beyond / half) * half


class Stops:
    """Passes text through until a stop string is complete.

    >>> stops = Stops(["শেষ।"])
    >>> stops.push("এই শে"), stops.push("ষ।"), stops.found
    ('এই ', '', 'শেষ।')
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._stops = {text: units(text) for text in sorted(texts, key=len, reverse=True)}
        self._held: list[str] = []
        self.found: str | None = None

    def push(self, text: str) -> str:
        """Add whole grapheme clusters; return the text that cannot be part of a stop string."""
        if not self._stops:
            return text
        shown = ""
        for cluster in units(text):
            if self.found is None:
                self._held.append(cluster)
                shown += self._release()
        return shown

    def finish(self) -> str:
        """Return the text that was held back; call this at the end of the input."""
        rest, self._held = "".join(self._held), []
        return rest

    def _release(self) -> str:
        """Look for a stop string in the held text; return the text that cannot be the start of one."""
        held, keep = self._held, 0
        for text, clusters in self._stops.items():
            if held[-len(clusters) :] == clusters:
                self.found, self._held = text, []
                return "".join(held[: -len(clusters)])
            fits = (n for n in range(len(clusters), keep, -1) if held[-n:] == clusters[:n])
            keep = max(keep, next(fits, 0))
        self._held = held[len(held) - keep :]
        return "".join(held[: len(held) - keep])
