"""The requests of OpenAI's clients, as far as small models can meet them; what cannot be met is refused, not ignored.

Beside OpenAI's own names stand ``top_k``, ``min_p`` and ``repetition_penalty``. What is left out has the value that
``kotha generate`` has, which was chosen by measurement, not OpenAI's.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kotha.server.wire import Drawn, FieldError, JsonObject, ModelName, Texts, TextsOrIds, WireRequest

_TOKENS = 150
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

    @property
    def alternatives(self) -> int | None:
        """How many other tokens are told at each place; None: no probabilities are."""
        raise NotImplementedError


class CompletionRequest(Sampled):
    """A text to go on with, or several."""

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


class EmbeddingRequest(WireRequest):
    """Texts to be made into vectors."""

    model: ModelName
    input: TextsOrIds
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = Field(None, ge=1)
    user: str | None = None
