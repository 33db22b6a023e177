"""The engine: many requests in one batch, a token a step, a free row to whoever waits (continuous batching).

A request waits until a row is free. Its prompt is read, all but the last token, which is the first that a step reads:
a short one at once, a long one a piece a step (``prompts.py``). From then on every row goes one token further in each
step, draws with its own settings and ends for its own reasons, and its row is given to the next request. A text does
not depend on who else is in the batch.

A text is read as a document's beginning: behind the token that starts one, as in training and in measuring. Without it
the first word has nothing to stand on, and small models lose their way at once (``docs/dev/experiments.md``). Token ids
are taken as they are.

When a row's context is full, its older half is forgotten: it waits, before all others, until the rest is read again as
a prompt is. Which tokens these are depends on the text alone (``plain.first_in_sight``).
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from kotha.errors import UsageError
from kotha.generation.batch_state import Flight, Plan, Rows
from kotha.generation.cache import RowCache
from kotha.generation.decode_step import Steps, at_work
from kotha.generation.prefill import Prompt, PromptReader
from kotha.generation.request import Answer, Request, Result, Written
from kotha.generation.weights import Weights, prepare
from kotha.i18n.message import Option
from kotha.model.gpt import GPT
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.prompt import encode_prompt, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

# Steps that are done before the host looks for ends, and whether it looks while the next ones are under way. A GPU
# is kept at work by both; a CPU would gain nothing.
_PACE = {"cuda": (32, True), "cpu": (1, False)}
# Cached positions that a GPU's step looks at, at least; beyond, the next power of two, so that few steps are recorded.
_SHORTEST_SPAN = 64


@dataclass(frozen=True)
class Event:
    """News of one request: letters that are now certain, or its end."""

    number: int
    text: str
    result: Result | None = None
    written: tuple[Written, ...] = ()  # the tokens since the last news, where probabilities were asked for


class Engine:
    """Writes with a model.

    ``weights`` is None (as they are), "float32", "bfloat16" or "int8" (see ``weights.py``); the model itself is left as
    it was. ``kept_bytes`` may be used to remember prompts for others that begin alike. Without a tokenizer,
    requests and results are token ids.
    """

    def __init__(
        self,
        model: GPT,
        tokenizer: Tokenizer | None,
        *,
        max_batch: int = 16,
        weights: Weights | None = None,
        chat: ChatTemplate | None = None,
        kept_bytes: int = 0,
    ) -> None:
        if not isinstance(model, GPT):
            raise UsageError("a {name} cannot continue text; use a GPT", name=type(model).__name__)
        if max_batch < 1:
            raise UsageError("{max_batch} is too small; use 1 or more", max_batch=Option("max_batch", max_batch))
        self.model = prepare(model, weights)
        self.tokenizer, self.chat = tokenizer, chat
        device, dtype = self.model.tokens.weight.device, self.model.tokens.weight.dtype
        config = self.model.config
        vocab_size = config.vocab_size if tokenizer is None else min(config.vocab_size, tokenizer.vocab_size)
        roles = {} if tokenizer is None else tokenizer.special
        self._ends = frozenset(roles[role] for role in ("eos", "end") if role in roles)
        self._start = None if tokenizer is None else start_of_document(tokenizer)
        self._cache = RowCache(config, max_batch, dtype, device)
        block, self._lags = _PACE.get(device.type, _PACE["cpu"])
        self._rows = Rows(max_batch, vocab_size, block, device, self._ends)
        self._steps = Steps(self.model, self._cache, self._rows)
        self.prompts = PromptReader(self._steps, kept_bytes)
        self._max_batch = max_batch
        self._numbers = itertools.count()
        self._waiting: deque[Answer] = deque()
        self._reading: deque[tuple[Answer, Prompt]] = deque()
        self._active: list[Answer] = []
        self._paused: dict[int, Answer] = {}
        self._news: list[Event] = []
        self._flight: Flight | None = None

    # -- asking -----------------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> int:
        """Take a request; its number comes back with each event."""
        # Nothing beyond the context is read; but what was said there counts where saying it again is made less likely.
        most = self.model.config.context_length if request.settings.repetition_penalty is None else None
        answer = Answer(next(self._numbers), request, self._ids(request.prompt, most), self.tokenizer)
        if request.tokens == 0:
            answer.finish("length")
            self._news.append(Event(answer.number, "", answer.result()))
        else:
            self._waiting.append(answer)
        return answer.number

    def cancel(self, number: int) -> None:
        """End a request in the middle; what it has written comes with the next step's events."""
        reading = (answer for answer, _ in self._reading)
        for answer in [*self._active, *self._waiting, *reading, *self._paused.values()]:
            if answer.number == number:
                self._news.append(Event(number, answer.finish("cancelled"), answer.result()))
        self._waiting = deque(answer for answer in self._waiting if answer.stopped is None)
        self._reading = deque(pair for pair in self._reading if pair[0].stopped is None)
        self._paused.pop(number, None)
        self._free_rows()

    def pause(self, number: int) -> bool:
        """Take a request off its row; what it has written stands. False where it has none: it is read, or over."""
        self._settle()
        answer = next((each for each in self._active if each.number == number), None)
        if answer is None:
            return False
        self._free_rows([answer])
        self._paused[number] = answer
        return True

    def resume(self, number: int) -> None:
        """Let a request that was paused go on when there is a row; it is read again as a prompt is."""
        self._waiting.append(self._paused.pop(number))

    def step(self) -> list[Event]:
        """Go a step further with every request that has a row; the news of it."""
        with at_work(self.model):
            self._admit()
            self._read_on()
            if self._active:
                self._advance()
        news, self._news = self._news, []
        return news

    @property
    def busy(self) -> bool:
        """Whether a step would bring something."""
        return bool(self._active or self._reading or self._waiting or self._news)

    @property
    def n_free(self) -> int:
        """Rows that nobody has, and nobody waits for."""
        return max(0, self._max_batch - len(self._active) - len(self._reading) - len(self._waiting))

    def stream(self, request: Request) -> Iterator[Event]:
        """Answer a request, its letters as they come; the last event carries its result."""
        number = self.submit(request)
        try:
            while self.busy:
                yield from self.step()
        finally:  # whoever listened may have gone
            self.cancel(number)
            self._news.clear()

    def generate(self, requests: Iterable[Request]) -> list[Result]:
        """Answer requests; as many results in their order."""
        numbers = [self.submit(request) for request in requests]
        results: dict[int, Result] = {}
        while self.busy:
            results |= {event.number: event.result for event in self.step() if event.result is not None}
        return [results[number] for number in numbers]

    # -- answering --------------------------------------------------------------------------------------------------

    def _ids(self, prompt: str | tuple[int, ...], most: int | None) -> list[int]:
        """A prompt's tokens; of one that is far longer than ``most``, no more than its end."""
        if not isinstance(prompt, str):
            ids = list(prompt)
        elif self.tokenizer is not None:
            ids, _ = encode_prompt(self.tokenizer, prompt, len(prompt) if most is None else most)
        elif prompt:
            raise UsageError("a text prompt needs a tokenizer; pass token ids instead")
        else:
            ids = []
        wrong = next((token for token in ids if not 0 <= token < self._rows.vocab_size), None)
        if wrong is not None:
            raise UsageError(
                "token id {wrong} in the prompt is outside the vocabulary of {vocab_size:,} tokens",
                wrong=wrong,
                vocab_size=self._rows.vocab_size,
            )
        if not ids and self._start is None:
            raise UsageError("the prompt is empty, and the vocabulary has no start-of-document token; write a prompt")
        return ids or [self._start or 0]

    def _admit(self) -> None:
        """Give free rows to those that wait, and read their prompts; those that are long are begun."""
        new: list[tuple[Answer, list[int]]] = []
        while self._waiting and len(self._active) + len(self._reading) + len(new) < self._max_batch:
            # All in sight but the last token, which the first step reads.
            ids = self._waiting[0].in_sight(self.model.config.context_length)[:-1]
            self._make_room(len(ids) + 1)  # what cannot be held is refused before any of it is read
            answer, prompt = self._waiting.popleft(), self.prompts.begin(ids)
            if prompt is None:
                new.append((answer, ids))
            else:
                self._reading.append((answer, prompt))
        if new:
            texts = [ids for _, ids in new]
            first = self._seat([answer for answer, _ in new], [len(ids) for ids in texts])
            self._steps.read(self._cache, first, texts)

    def _read_on(self) -> None:
        """Read a piece of the long prompt that has waited longest for its next; one that is done gets its row."""
        if not self._reading:
            return
        answer, prompt = self._reading.popleft()
        if not prompt.done:  # it may have been taken over whole
            self.prompts.go_on(prompt)
        if prompt.done:
            self._cache.put(self._seat([answer], [prompt.read]), prompt.cache, prompt.read)
        else:
            self._reading.append((answer, prompt))

    def _seat(self, answers: Sequence[Answer], lengths: Sequence[int]) -> int:
        """The first row of new answers, which will hold so many tokens."""
        self._make_room(max(lengths))
        first = len(self._active)
        self._active += answers
        self._rows.put(first, answers)
        self._cache.lengths[first : len(self._active)] = torch.tensor(lengths, device=self._rows.device)
        for answer, length in zip(answers, lengths, strict=True):
            answer.read = length
        return first

    def _advance(self) -> None:
        """Send the next steps off, then read what the last ones drew: a GPU works while the host reads."""
        context = self.model.config.context_length
        furthest = max(answer.read for answer in self._active)
        self._make_room(furthest + self._rows.block)
        if furthest >= context:
            self._settle()  # what is read again must be known
            full = [answer for answer in self._active if answer.read >= context]
            self._waiting.extendleft(reversed(full))
            self._free_rows(full)
        if not self._active:
            return
        landing = self._take_off() if any(answer.unasked for answer in self._active) else None
        if self._lags:
            landing, self._flight = self._flight, landing
        self._land(landing)

    def _take_off(self) -> Flight:
        """Start some steps for every row."""
        room = self.model.config.context_length - max(answer.read for answer in self._active)
        count = min(self._rows.block, room, max(answer.unasked for answer in self._active))
        plan = self._plan(count)
        self._rows.load(self._active, count, plan)
        self._steps.run(plan, count)
        for answer in self._active:
            answer.read += count
            answer.asked += count
        return self._rows.catch(self._active, count, plan)

    def _land(self, flight: Flight | None) -> None:
        """Give answers what was drawn for them; those that end leave their rows."""
        if flight is None:
            return
        for answer, tokens, seen in flight.land():
            if answer.stopped is not None:  # it ended, or was cancelled, while this was under way
                continue
            told = len(answer.written)
            text = answer.extend(tokens, seen if answer.request.alternatives is not None else [], self._ends)
            written = tuple(answer.written[told:])
            if text or written or answer.stopped is not None:
                result = answer.result() if answer.stopped else None
                self._news.append(Event(answer.number, text, result, written))
        self._free_rows()

    def _settle(self) -> None:
        """Read what the steps under way draw; rows may change hands by it."""
        self._land(self._flight)
        self._flight = None

    def _make_room(self, positions: int) -> None:
        """Let the cache hold so many positions, as far as the context goes."""
        wanted = min(positions, self.model.config.context_length)
        if wanted > self._cache.size:
            self._settle()
            self._cache.make_room(wanted)
            self._steps.point()

    def _plan(self, count: int) -> Plan:
        """On a GPU, sizes in few steps: each other size would be recorded anew. A CPU takes them as they are."""
        read, n_rows = [answer.read for answer in self._active], len(self._active)
        span = min(max(read) + count, self._cache.size)
        if self._rows.device.type == "cuda":
            n_rows = min(_doubled(n_rows), self._max_batch)
            span = min(max(_SHORTEST_SPAN, _doubled(span)), self._cache.size)
            return self._rows.plan(self._active, n_rows, span)
        even = read[0] if count == 1 and min(read) == max(read) < self._cache.size else None
        return self._rows.plan(self._active, n_rows, span, even)

    def _free_rows(self, leaving: Sequence[Answer] = ()) -> None:
        """Rows in use are the first ones: the last takes the place of one that ended, or leaves to be read again."""
        for row in range(len(self._active) - 1, -1, -1):
            if self._active[row].stopped is not None or self._active[row] in leaving:
                last = self._active.pop()
                if row < len(self._active):
                    self._active[row] = last
                    self._rows.move(len(self._active), row)
                    self._cache.move(len(self._active), row)


def _doubled(size: int) -> int:
    """The power of two that holds a size."""
    return 1 << (size - 1).bit_length()
