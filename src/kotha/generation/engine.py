"""The engine: generates text for many requests in one batch (continuous batching).

A request waits for a free row. Then its prompt is processed: a short prompt in one pass, a long one in chunks, one per
step (``prefill.py``). The last token of the prompt is processed by the first step. Each step adds one token to every
row, sampled with the row's own settings. When an answer ends, its row goes to the next request. The output of a request
does not depend on other requests in the batch.

A text prompt is encoded as the start of a document, after the start-of-document token, as in training and evaluation.
Without this token, small models produce much worse text (``docs/dev/experiments.md``). Token ids are used unchanged.

When a row's context is full, its older half is dropped: the request moves to the front of the queue, and the newer half
is processed again, as a prompt. Which tokens are dropped depends only on the text (``request.context_start``).
"""

import itertools
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kotha.errors import UsageError
from kotha.generation.native import NativeModel
from kotha.generation.native_decoder import Drawn, NativeDecoder
from kotha.generation.prefill import Prompt, PromptReader
from kotha.generation.request import Answer, GeneratedToken, Request, Result
from kotha.i18n.message import Option
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.prompt import encode_prompt, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from kotha.generation.torch_decoder import TorchDecoder
    from kotha.generation.weights import Weights
    from kotha.model.gpt import GPT


@dataclass(frozen=True)
class Event:
    """An update of a request: new text that will not change, or the end of the request."""

    number: int
    text: str
    result: Result | None = None
    written: tuple[GeneratedToken, ...] = ()  # tokens since the last event, if probabilities were requested


class Engine:
    """Generates text with a model.

    ``weights`` is None (the model's own weights), "float32", "bfloat16" or "int8" (see ``weights.py``); the model
    itself is not changed. ``kept_bytes`` limits the memory for caching prompt prefixes. Without a tokenizer, requests
    and results are token ids. A ``NativeModel`` runs without torch.
    """

    def __init__(
        self,
        model: "GPT | NativeModel",
        tokenizer: Tokenizer | None,
        *,
        max_batch: int = 16,
        weights: "Weights | None" = None,
        chat: ChatTemplate | None = None,
        kept_bytes: int = 0,
    ) -> None:
        if model.config.family != "gpt":
            raise UsageError("a {name} cannot continue text; use a GPT", name=type(model).__name__)
        if max_batch < 1:
            raise UsageError("{max_batch} is too small; use 1 or more", max_batch=Option("max_batch", max_batch))
        self.tokenizer, self.chat = tokenizer, chat
        self._vocab_size = model.config.vocab_size
        if tokenizer is not None:
            self._vocab_size = min(self._vocab_size, tokenizer.vocab_size)
        roles = {} if tokenizer is None else tokenizer.special
        self._ends = frozenset(roles[role] for role in ("eos", "end") if role in roles)
        self._start = None if tokenizer is None else start_of_document(tokenizer)
        self.model: Any = model  # or the decoder's copy
        self._decoder: NativeDecoder | TorchDecoder
        batch = max_batch, self._vocab_size, self._ends
        if isinstance(model, NativeModel):
            self._decoder = NativeDecoder(model, *batch)
        else:
            from kotha.generation.torch_decoder import decoder_of  # imports torch

            self.model, self._decoder = decoder_of(model, weights, *batch)
        self.prompts = PromptReader(self._decoder, kept_bytes)
        self._max_batch = max_batch
        self._numbers = itertools.count()
        self._waiting: deque[Answer] = deque()
        self._reading: deque[tuple[Answer, Prompt]] = deque()
        self._active: list[Answer] = []
        self._paused: dict[int, Answer] = {}
        self._events: list[Event] = []
        self._pending: Drawn | None = None

    # -- requests ---------------------------------------------------------------------------------------------------

    def submit(self, request: Request) -> int:
        """Queue a request and return its number, which is part of each of its events."""
        # Tokens beyond the context are not processed, but they count for the repetition penalty.
        most = self.model.config.context_length if request.settings.repetition_penalty is None else None
        answer = Answer(next(self._numbers), request, self._ids(request.prompt, most), self.tokenizer)
        if request.tokens == 0:
            answer.finish("length")
            self._events.append(Event(answer.number, "", answer.result()))
        else:
            self._waiting.append(answer)
        return answer.number

    def cancel(self, number: int) -> None:
        """Cancel a request; the events of the next step include its output so far."""
        reading = (answer for answer, _ in self._reading)
        for answer in [*self._active, *self._waiting, *reading, *self._paused.values()]:
            if answer.number == number:
                self._events.append(Event(number, answer.finish("cancelled"), answer.result()))
        self._waiting = deque(answer for answer in self._waiting if answer.stopped is None)
        self._reading = deque(pair for pair in self._reading if pair[0].stopped is None)
        self._paused.pop(number, None)
        self._free_rows()

    def pause(self, number: int) -> bool:
        """Pause a request and free its row, keeping its output; return False if it has no row."""
        self._flush()
        answer = next((each for each in self._active if each.number == number), None)
        if answer is None:
            return False
        self._free_rows([answer])
        self._paused[number] = answer
        return True

    def resume(self, number: int) -> None:
        """Queue a paused request again; its text is processed again as a prompt."""
        self._waiting.append(self._paused.pop(number))

    def step(self) -> list[Event]:
        """Run one step for all requests with a row, and return the events."""
        self._admit()
        self._read_prompt()
        if self._active:
            self._advance()
        events, self._events = self._events, []
        return events

    @property
    def busy(self) -> bool:
        """Whether there is work or an event for the next step."""
        return bool(self._active or self._reading or self._waiting or self._events)

    @property
    def n_free(self) -> int:
        """The number of rows that are free and not needed for a waiting request."""
        return max(0, self._max_batch - len(self._active) - len(self._reading) - len(self._waiting))

    def stream(self, request: Request) -> Iterator[Event]:
        """Run a request and yield its events as text becomes final; the last one has the result."""
        number = self.submit(request)
        try:
            while self.busy:
                yield from self.step()
        finally:  # the caller may have stopped iterating
            self.cancel(number)
            self._events.clear()

    def generate(self, requests: Iterable[Request]) -> list[Result]:
        """Run requests and return their results in order."""
        numbers = [self.submit(request) for request in requests]
        results: dict[int, Result] = {}
        while self.busy:
            results |= {event.number: event.result for event in self.step() if event.result is not None}
        return [results[number] for number in numbers]

    # -- steps ------------------------------------------------------------------------------------------------------

    def _ids(self, prompt: str | tuple[int, ...], most: int | None) -> list[int]:
        """Return the tokens of a prompt; for a prompt much longer than ``most``, only those at its end."""
        if not isinstance(prompt, str):
            ids = list(prompt)
        elif self.tokenizer is not None:
            ids, _ = encode_prompt(self.tokenizer, prompt, len(prompt) if most is None else most)
        elif prompt:
            raise UsageError("a text prompt needs a tokenizer; pass token ids instead")
        else:
            ids = []
        wrong = next((token for token in ids if not 0 <= token < self._vocab_size), None)
        if wrong is not None:
            raise UsageError(
                "token id {wrong} in the prompt is outside the vocabulary of {vocab_size:,} tokens",
                wrong=wrong,
                vocab_size=self._vocab_size,
            )
        if not ids and self._start is None:
            raise UsageError("the prompt is empty, and the vocabulary has no start-of-document token; provide a prompt")
        return ids or [self._start or 0]

    def _admit(self) -> None:
        """Assign free rows to waiting requests and process their prompts.

        For a long prompt, only the first chunk is processed.
        """
        new: list[tuple[Answer, list[int]]] = []
        while self._waiting and len(self._active) + len(self._reading) + len(new) < self._max_batch:
            # All visible tokens except the last, which the first step processes.
            ids = self._waiting[0].context_tokens(self.model.config.context_length)[:-1]
            self._make_room(len(ids) + 1)  # raises an error before any processing if the memory is too small
            answer, prompt = self._waiting.popleft(), self.prompts.begin(ids)
            if prompt is None:
                new.append((answer, ids))
            else:
                self._reading.append((answer, prompt))
        if new:
            texts = [ids for _, ids in new]
            first = self._assign_rows([answer for answer, _ in new], [len(ids) for ids in texts])
            cache: Any = self._decoder.cache  # a cache of the decoder's type
            self._decoder.read(cache, first, texts)

    def _read_prompt(self) -> None:
        """Process a chunk of the long prompt that has waited longest; assign a row when the prompt is complete."""
        if not self._reading:
            return
        answer, prompt = self._reading.popleft()
        if not prompt.done:  # the whole prompt may have been cached
            self.prompts.read_next(prompt)
        if prompt.done:
            self._decoder.cache.put(self._assign_rows([answer], [prompt.read]), prompt.cache, prompt.read)
        else:
            self._reading.append((answer, prompt))

    def _assign_rows(self, answers: Sequence[Answer], lengths: Sequence[int]) -> int:
        """Assign rows to new answers with these numbers of tokens; return the first row."""
        self._make_room(max(lengths))
        first = len(self._active)
        self._active += answers
        self._decoder.put(first, answers)
        self._decoder.cache.set_lengths(first, lengths)
        for answer, length in zip(answers, lengths, strict=True):
            answer.read = length
        return first

    def _advance(self) -> None:
        """Start the next steps before reading the results of the previous ones, to keep a GPU busy."""
        context = self.model.config.context_length
        furthest = max(answer.read for answer in self._active)
        self._make_room(furthest + self._decoder.block)
        if furthest >= context:
            self._flush()  # the text to process again must be complete
            full = [answer for answer in self._active if answer.read >= context]
            self._waiting.extendleft(reversed(full))
            self._free_rows(full)
        if not self._active:
            return
        steps = self._start_steps() if any(answer.unscheduled for answer in self._active) else None
        if self._decoder.overlaps:
            steps, self._pending = self._pending, steps
        self._collect(steps)

    def _start_steps(self) -> Drawn:
        """Schedule the next few steps of every row."""
        room = self.model.config.context_length - max(answer.read for answer in self._active)
        count = min(self._decoder.block, room, max(answer.unscheduled for answer in self._active))
        drawn = self._decoder.start(self._active, count)
        for answer in self._active:
            answer.read += count
            answer.scheduled += count
        return drawn

    def _collect(self, steps: Drawn | None) -> None:
        """Add sampled tokens to their answers, and free the rows of the answers that end."""
        if steps is None:
            return
        for answer, tokens, seen in steps():
            if answer.stopped is not None:  # it has ended or was cancelled in the meantime
                continue
            n_reported = len(answer.written)
            text = answer.extend(tokens, seen if answer.request.alternatives is not None else [], self._ends)
            written = tuple(answer.written[n_reported:])
            if text or written or answer.stopped is not None:
                result = answer.result() if answer.stopped else None
                self._events.append(Event(answer.number, text, result, written))
        self._free_rows()

    def _flush(self) -> None:
        """Collect the results of all pending steps, so that rows may be reassigned."""
        self._collect(self._pending)
        self._pending = None

    def _make_room(self, positions: int) -> None:
        """Allocate this number of positions in the cache, up to the context length."""
        wanted = min(positions, self.model.config.context_length)
        if wanted > self._decoder.cache.size:
            self._flush()
            self._decoder.cache.make_room(wanted)

    def _free_rows(self, leaving: Sequence[Answer] = ()) -> None:
        """Free the rows of answers that ended or leave the batch; the last row in use is moved into each freed row."""
        for row in range(len(self._active) - 1, -1, -1):
            if self._active[row].stopped is not None or self._active[row] in leaving:
                last = self._active.pop()
                if row < len(self._active):
                    self._active[row] = last
                    self._decoder.move(len(self._active), row)
