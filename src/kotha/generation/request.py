"""What is asked and what is answered: a request, the answer while it grows, and the result.

An answer turns tokens into text by whole letters, behind the prompt's last letter (a vowel sign may lean on it), looks
for stop strings and knows why it ended. The text ends before a stop string, and no part of it is shown; they are
compared as a reader sees letters (``ক`` does not stop ``কি``), and letters that could begin one wait until it is clear
that they do not.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kotha.errors import UsageError
from kotha.generation.plain import first_in_sight, uniforms
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Option
from kotha.text.akshara import units
from kotha.text.tokenizer.tokenizer import Tokenizer

MOST_ALTERNATIVES = 100
StopReason = Literal["end", "stop string", "length", "cancelled"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """One text to go on with."""

    prompt: str | tuple[int, ...] = ""  # where to begin: text, or token ids with special ones; empty: a new document
    tokens: int = 150  # how many tokens to write at most
    settings: SamplingSettings = field(default_factory=SamplingSettings)  # how each is chosen
    stop: tuple[str, ...] = ()  # texts before which the answer ends; they are not shown
    alternatives: int | None = None  # tell probabilities, and this many of the likeliest at each place

    def __post_init__(self) -> None:
        if self.tokens < 0:
            raise UsageError("{tokens} is negative; use 0 or more", tokens=Option("tokens", self.tokens))
        if "" in self.stop:
            raise UsageError("an empty stop string would end every text at once; remove it")
        if self.alternatives is not None and not 0 <= self.alternatives <= MOST_ALTERNATIVES:
            raise UsageError(
                "{alternatives} is out of range; use 0 to {most}, or omit it",
                alternatives=Option("alternatives", self.alternatives),
                most=MOST_ALTERNATIVES,
            )


@dataclass(frozen=True)
class Chance:
    """A token that could stand at a place, and how likely the model found it before any setting acted."""

    id: int
    text: str
    log_probability: float

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, as a probability."""
        return {"token": self.text, "id": self.id, "probability": round(math.exp(self.log_probability), 6)}


@dataclass(frozen=True)
class Written(Chance):
    """A token that was written, beside the likeliest ones at its place."""

    alternatives: tuple[Chance, ...]
    rank: int  # 1: no other was likelier
    above: float  # the probability of all that were likelier, together

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON, with what else could have stood there."""
        return {**super().to_dict(), "alternatives": [other.to_dict() for other in self.alternatives]}


@dataclass(frozen=True)
class Result:
    """A finished answer."""

    text: str  # what was written, without the prompt
    ids: tuple[int, ...]  # its tokens, those of a stop string among them; not the token that ended it
    stopped: StopReason  # why it ended
    prompt_tokens: int  # as far as it was encoded: of a text far longer than the context, no more than its end
    tokens_per_second: float  # from the moment the request got its place in the batch
    written: tuple[Written, ...] = ()  # each token with its probability, where ``alternatives`` asked for it

    @property
    def tokens(self) -> int:
        """How many were written."""
        return len(self.ids)


# A token and the likeliest ones at its place, the log-probability of each, the token's rank and the share above it.
Seen = tuple[list[int], list[float], list[int], list[float]]


class Answer:
    """A request while it is answered."""

    def __init__(self, number: int, request: Request, start: list[int], tokenizer: Tokenizer | None) -> None:
        self.number, self.request, self.start = number, request, start
        self.ids: list[int] = []
        self.written: list[Written] = []
        self.read = 0  # tokens that the cache holds, or will when the steps that are under way have been done
        self.asked = 0  # tokens that were drawn, or are being drawn
        self.stopped: StopReason | None = None
        self._tokenizer, self._text = tokenizer, ""
        self._began, self._seconds = time.perf_counter(), 0.0
        if tokenizer is not None:
            self._stops = Stops([tokenizer.normalize(text) for text in request.stop])
            self._stream = tokenizer.stream()
            shown = sum(len(self._stream.push(token)) for token in start)
            self._skip = max(0, len(tokenizer.decode(start)) - shown)  # the prompt's last letter still waits

    @cached_property
    def numbers(self) -> NDArray[np.float32]:
        """What each draw falls by; made when first needed, which is when a GPU already reads the prompt."""
        drawn: NDArray[np.float32] = uniforms(self.request.settings.seed, self.request.tokens).numpy()
        return drawn

    @property
    def unasked(self) -> int:
        """Tokens that no step is under way for."""
        return self.request.tokens - self.asked

    @property
    def last(self) -> int:
        """The token that the next one follows."""
        return (self.ids or self.start)[-1]

    def in_sight(self, context_length: int) -> list[int]:
        """The tokens of prompt and answer that the next one follows."""
        n_prompt = len(self.start)
        first = first_in_sight(n_prompt + len(self.ids), n_prompt, context_length)
        return self.start[first:] + self.ids[max(0, first - n_prompt) :]

    def extend(self, tokens: Sequence[int], seen: Sequence[Seen], ends: frozenset[int]) -> str:
        """Take tokens until something ends the answer; return the letters that are now certain."""
        room, shown = self.request.tokens - len(self.ids), ""
        end = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
        reason: StopReason | None = "length" if end >= room else "end" if end < len(tokens) else None
        for place, token in enumerate(tokens[: min(end, room)]):
            self.ids.append(token)
            if seen:
                self._note(*seen[place])
            if self._tokenizer is not None:
                shown += self._show(self._stream.push(token))
                if self._stops.found is not None:
                    reason = "stop string"
                    break
        return shown if reason is None else shown + self.finish(reason)

    def finish(self, reason: StopReason) -> str:
        """End here; return the letters that were still waiting."""
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
        """What came of it."""
        assert self.stopped is not None, "asked for the result of an answer that goes on"
        rate = len(self.ids) / self._seconds if self._seconds > 0 else 0.0
        return Result(self._text, tuple(self.ids), self.stopped, len(self.start), rate, tuple(self.written))

    def _show(self, letters: str) -> str:
        """Letters without what still belongs to the prompt, as far as they cannot begin a stop string."""
        skipped = min(self._skip, len(letters))
        self._skip -= skipped
        shown = self._stops.push(letters[skipped:])
        self._text += shown
        return shown

    def _note(self, ids: list[int], chances: list[float], rank: list[int], above: list[float]) -> None:
        tokenizer = self._tokenizer
        spelled = ("" if tokenizer is None else tokenizer.decode([token], skip_special=False) for token in ids)
        first, *others = zip(ids, spelled, chances, strict=True)
        self.written.append(Written(*first, tuple(Chance(*each) for each in others), rank[0], above[0]))


class Stops:
    """Lets letters through until a stop string is complete.

    >>> stops = Stops(["শেষ।"])
    >>> stops.push("এই শে"), stops.push("ষ।"), stops.found
    ('এই ', '', 'শেষ।')
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._stops = {text: units(text) for text in sorted(texts, key=len, reverse=True)}
        self._held: list[str] = []
        self.found: str | None = None

    def push(self, text: str) -> str:
        """Take whole letters; return those that are certainly not part of a stop string."""
        if not self._stops:
            return text
        shown = ""
        for letter in units(text):
            if self.found is None:
                self._held.append(letter)
                shown += self._settle()
        return shown

    def finish(self) -> str:
        """What was still waiting, when nothing more comes."""
        rest, self._held = "".join(self._held), []
        return rest

    def _settle(self) -> str:
        """Look for a stop string at the end of what is held; let go what cannot begin one."""
        held, keep = self._held, 0
        for text, letters in self._stops.items():
            if held[-len(letters) :] == letters:
                self.found, self._held = text, []
                return "".join(held[: -len(letters)])
            fits = (n for n in range(len(letters), keep, -1) if held[-n:] == letters[:n])
            keep = max(keep, next(fits, 0))
        self._held = held[len(held) - keep :]
        return "".join(held[: len(held) - keep])
