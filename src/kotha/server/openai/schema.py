"""The requests of OpenAI's clients, as far as small models can meet them; what cannot be met is refused, not ignored.

Beside OpenAI's own names stand ``top_k``, ``min_p`` and ``repetition_penalty``. What is left out has the value that
``kotha generate`` has, which was chosen by measurement, not OpenAI's.

A request also has the form of its answer. A model that was not taught to take turns goes on with what was said, as one
text; every answer to a chat then says so, in ``kotha.remark``, because a reader would take noise for an opinion.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kotha.generation.answers import Chance, Result, Written
from kotha.generation.conversation import UNTAUGHT, conversation_prompt
from kotha.server.api.requests import tokenizer_of, writer_of
from kotha.server.batching import StreamChunk
from kotha.server.model_registry import Served
from kotha.server.wire import Drawn, FieldError, JsonObject, ModelName, Texts, TextsOrIds, WireRequest, as_list
from kotha.text.tokenizer.chat import Turn

_TOKENS = 150
_ENDS = {"end": "stop", "stop string": "stop", "length": "length", "cancelled": "length"}
Prompt = str | tuple[int, ...]
_SEEDS = 1 << 63
Stop = Annotated[str, Field(max_length=1000)]


class StreamOptions(BaseModel):
    """More to tell in a stream."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool = False
    include_obfuscation: bool = False


class Sampled(Drawn):
    """What completions and chats share: how texts are drawn, and how many."""

    max_tokens: int | None = Field(None, ge=0)
    seed: int | None = Field(None, ge=-_SEEDS, lt=_SEEDS)
    stop: Stop | Annotated[list[Stop], Field(max_length=4096, fail_fast=True)] | None = None
    n: int = Field(1, ge=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    user: str | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: JsonObject | None = None

    @model_validator(mode="after")
    def _only_what_is_offered(self) -> "Sampled":
        if self.presence_penalty or self.frequency_penalty:
            raise FieldError("penalties by presence and by frequency are not offered; use repetition_penalty")
        if self.logit_bias:
            raise FieldError("logit_bias is not offered")
        if self.stream_options is not None and not self.stream:
            raise FieldError("stream_options are for streams; ask for stream too")
        return self

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts before which an answer ends."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def most_tokens(self) -> int:
        """How many tokens an answer may have."""
        return _TOKENS if self.max_tokens is None else self.max_tokens

    def remark(self, _: Served) -> JsonObject:
        """What every answer of a model says of itself."""
        return {}


class CompletionRequest(Sampled):
    """A text to go on with, or several."""

    kinds: ClassVar = ("text_completion", "text_completion", "cmpl")  # of an answer, of a part, before an id
    prompt: TextsOrIds = ""
    logprobs: int | None = Field(None, ge=0)
    echo: bool = False
    best_of: int | None = None
    suffix: str | None = None

    @model_validator(mode="after")
    def _plain_completions(self) -> "CompletionRequest":
        if self.best_of not in (None, self.n):
            raise FieldError("best_of is not offered; ask for n texts and choose")
        if self.suffix:
            raise FieldError("suffix is not offered; these models write forwards")
        if self.echo and self.logprobs is not None:
            raise FieldError("echo with logprobs is not offered; `kotha evaluate` tells how likely a text is")
        return self

    @property
    def alternatives(self) -> int | None:
        """As many as are asked for."""
        return self.logprobs

    def prompts(self, _: Served) -> list[Prompt]:
        """One or several, texts or token ids."""
        return as_list(self.prompt)

    def whole(self, served: Served, place: int, result: Result) -> JsonObject:
        """One text, its prompt before it if asked for."""
        (part,) = self.parts(StreamChunk(result.text, result, result.written), 0)
        return {**part, "text": (self._echoed(served, place) if self.echo else "") + result.text}

    def first(self, served: Served, place: int) -> JsonObject | None:
        """The prompt, if asked for."""
        return {**self.parts(StreamChunk(self._echoed(served, place)), 0)[0], "logprobs": None} if self.echo else None

    def parts(self, chunk: StreamChunk, offset: int) -> list[JsonObject]:
        """Letters and, with the last of them, why the text ended."""
        reason = None if chunk.result is None else _ENDS[chunk.result.stopped]
        return [{"text": chunk.text, "logprobs": self._chances(chunk.written, offset), "finish_reason": reason}]

    def _echoed(self, served: Served, place: int) -> str:
        prompt = as_list(self.prompt)[place // self.n]
        return prompt if isinstance(prompt, str) else tokenizer_of(served).decode(prompt)

    def _chances(self, written: Sequence[Written], offset: int) -> JsonObject | None:
        """How likely each token was, and what else could have stood there."""
        if self.logprobs is None:
            return None
        return {
            "tokens": [token.text for token in written],
            "token_logprobs": [token.log_probability for token in written],
            "top_logprobs": [{other.text: other.log_probability for other in token.alternatives} for token in written],
            "text_offset": list(accumulate((len(token.text) for token in written), initial=offset))[:-1],
        }


class TextPart(BaseModel):
    """A part of a message; only text is understood."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str


class SentMessage(BaseModel):
    """What one side said."""

    model_config = ConfigDict(extra="ignore")  # clients send back all of an answer, with fields that are empty here

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart] | None = None
    name: str | None = None

    @property
    def text(self) -> str:
        """Its parts as one text."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class ChatRequest(Sampled):
    """A conversation that the model is to go on with."""

    kinds: ClassVar = ("chat.completion", "chat.completion.chunk", "chatcmpl")
    messages: Annotated[list[SentMessage], Field(min_length=1, max_length=4096, fail_fast=True)]
    max_completion_tokens: int | None = Field(None, ge=0)
    logprobs: bool = False
    top_logprobs: int | None = Field(None, ge=0)
    response_format: JsonObject | None = None
    tools: list[JsonObject] | None = None
    tool_choice: str | JsonObject | None = None
    parallel_tool_calls: bool | None = None
    metadata: JsonObject | None = None
    store: bool | None = None
    modalities: Texts | None = None
    reasoning_effort: str | None = None

    @model_validator(mode="after")
    def _only_text(self) -> "ChatRequest":
        if self.tools:
            raise FieldError("tools are not offered; these models only write")
        if self.response_format not in (None, {"type": "text"}):
            raise FieldError("response_format is not offered; the answer is text")
        if self.modalities not in (None, ["text"]):
            raise FieldError("only text is offered")
        if self.top_logprobs is not None and not self.logprobs:
            raise FieldError("top_logprobs needs logprobs: true")
        return self

    @property
    def most_tokens(self) -> int:
        """The newer of the two names, where it is given."""
        return super().most_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def alternatives(self) -> int | None:
        """As many as are asked for, or none beside what was written."""
        return (self.top_logprobs or 0) if self.logprobs else None

    def prompts(self, served: Served) -> list[Prompt]:
        """The model's template, or all that was said as one text; old turns go where it is too long."""
        turns = [Turn("system" if each.role == "developer" else each.role, each.text) for each in self.messages]
        plain = not served.takes_turns
        return [tuple(conversation_prompt(writer_of(served).engine, turns, self.most_tokens, plain=plain))]

    def remark(self, served: Served) -> JsonObject:
        """That nobody answers, where the model was not taught to."""
        return {} if served.takes_turns else {"kotha": {"remark": str(UNTAUGHT)}}

    def whole(self, _: Served, __: int, result: Result) -> JsonObject:
        """One answer."""
        message = {"role": "assistant", "content": result.text, "refusal": None}
        return {
            "message": message,
            "logprobs": self._chances(result.written),
            "finish_reason": _ENDS[result.stopped],
        }

    def first(self, _: Served, __: int) -> JsonObject:
        """Who speaks."""
        return _delta({"role": "assistant", "content": "", "refusal": None})

    def parts(self, chunk: StreamChunk, _: int) -> list[JsonObject]:
        """Letters, and why the answer ended."""
        told = self._chances(chunk.written)
        found = [_delta({"content": chunk.text}, told)] if chunk.text or told else []
        return found if chunk.result is None else [*found, _delta({}, reason=_ENDS[chunk.result.stopped])]

    def _chances(self, written: Sequence[Written]) -> JsonObject | None:
        if not self.logprobs:
            return None

        def row(token: Chance) -> JsonObject:
            return {"token": token.text, "logprob": token.log_probability, "bytes": list(token.text.encode())}

        told = [{**row(token), "top_logprobs": list(map(row, token.alternatives))} for token in written]
        return {"content": told, "refusal": None}


def _delta(delta: JsonObject, told: JsonObject | None = None, reason: str | None = None) -> JsonObject:
    return {"delta": delta, "logprobs": told, "finish_reason": reason}


class EmbeddingRequest(WireRequest):
    """Texts to be made into vectors."""

    model: ModelName
    input: TextsOrIds
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)
    user: str | None = None
