"""The requests of OpenAI's clients, as far as small models can meet them; what cannot be met is refused, not ignored.

Beside OpenAI's own names stand ``top_k``, ``min_p`` and ``repetition_penalty``. What is left out has the value that
``kotha generate`` has, which was chosen by measurement, not OpenAI's.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kotha.generation.settings import SamplingSettings
from kotha.server.validation import FieldError
from kotha.server.wire import ModelName, Texts, TextsOrIds, WireRequest, as_list

# What is drawn by, where a request does not say: the settings of `kotha generate`.
_USUAL = SamplingSettings()
_TOKENS = 150
_SEEDS = 1 << 63
Stop = Annotated[str, Field(max_length=1000)]


class StreamOptions(BaseModel):
    """More to tell in a stream."""

    model_config = ConfigDict(extra="forbid")

    include_usage: bool = Field(False, description="Let a last part tell how many tokens were read and written.")
    include_obfuscation: bool = Field(
        False, description="Taken, and not needed: nothing here is worth guessing from lengths."
    )


class Sampled(WireRequest):
    """What completions and chats share: how texts are drawn, and how many."""

    model: ModelName
    temperature: float = Field(
        _USUAL.temperature, ge=0, le=2, description="0 takes the best token; higher is more varied."
    )
    top_p: float | None = Field(
        None, gt=0, le=1, description="Draw among the best tokens that hold this share of the probability."
    )
    top_k: int | None = Field(_USUAL.top_k, ge=1, description="Not OpenAI's: draw among so many of the best tokens.")
    min_p: float | None = Field(
        None, gt=0, le=1, description="Not OpenAI's: … at least this share as likely as the best."
    )
    repetition_penalty: float | None = Field(
        _USUAL.repetition_penalty, gt=0, le=10, description="Not OpenAI's: above 1, what was said becomes less likely."
    )
    seed: int | None = Field(
        None, ge=-_SEEDS, lt=_SEEDS, description="The same seed gives the same text; without one, another each time."
    )
    stop: Stop | Annotated[list[Stop], Field(max_length=4096, fail_fast=True)] | None = Field(
        None, description="The answer ends before any of these."
    )
    n: int = Field(1, ge=1, description="Texts for each prompt.")
    stream: bool = Field(False, description="Send letters as they are written, as server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Only with stream.")
    user: str | None = Field(None, description="Taken, and not used.")
    presence_penalty: float = Field(0.0, description="Not offered; 0 is taken.")
    frequency_penalty: float = Field(0.0, description="Not offered; 0 is taken.")
    logit_bias: dict[str, Any] | None = Field(None, description="Not offered; an empty one is taken.")

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

    def settings(self, seed: int) -> SamplingSettings:
        """How the text with this seed is drawn."""
        return SamplingSettings(
            seed=seed,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=self.repetition_penalty,
        )


class CompletionRequest(Sampled):
    """A text to go on with, or several."""

    prompt: TextsOrIds = Field("", description="A text or several, as text or as token ids.")
    max_tokens: int | None = Field(None, ge=0, description=f"Written at most; {_TOKENS} if left out.")
    logprobs: int | None = Field(None, ge=0, description="Tell probabilities, and so many other tokens at each place.")
    echo: bool = Field(False, description="Let the prompt stand before its text.")
    best_of: int | None = Field(None, description="Not offered; the same as n is taken.")
    suffix: str | None = Field(None, description="Not offered; an empty one is taken.")

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
    def prompts(self) -> list[str | tuple[int, ...]]:
        """One or several, texts or token ids."""
        return as_list(self.prompt)

    @property
    def most_tokens(self) -> int:
        """How many tokens an answer may have."""
        return _TOKENS if self.max_tokens is None else self.max_tokens


class TextPart(BaseModel):
    """A part of a message; only text is understood."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"] = Field(description="Only text is understood.")
    text: str = Field(description="What was said.")


class SentMessage(BaseModel):
    """What one side said."""

    model_config = ConfigDict(extra="ignore")  # clients send back all of an answer, with fields that are empty here

    role: Literal["system", "developer", "user", "assistant"] = Field(
        description="Who said it; developer is read as system."
    )
    content: str | list[TextPart] | None = Field(None, description="What was said.")
    name: str | None = Field(None, description="Taken, and not read.")

    @property
    def text(self) -> str:
        """Its parts as one text."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class ChatRequest(Sampled):
    """A conversation that the model is to go on with."""

    messages: Annotated[list[SentMessage], Field(min_length=1, max_length=4096, fail_fast=True)] = Field(
        description="What was said so far, the oldest first."
    )
    max_tokens: int | None = Field(None, ge=0, description="An older name of max_completion_tokens.")
    max_completion_tokens: int | None = Field(None, ge=0, description=f"Written at most; {_TOKENS} if left out.")
    logprobs: bool = Field(False, description="Tell how likely each token was.")
    top_logprobs: int | None = Field(None, ge=0, description="Tell so many other tokens at each place; needs logprobs.")
    response_format: dict[str, Any] | None = Field(None, description="Only text is offered.")
    tools: list[dict[str, Any]] | None = Field(None, description="Not offered; an empty list is taken.")
    tool_choice: str | dict[str, Any] | None = Field(None, description="Taken, and not used: there are no tools.")
    parallel_tool_calls: bool | None = Field(None, description="Taken, and not used: there are no tools.")
    metadata: dict[str, Any] | None = Field(None, description="Taken, and not kept.")
    store: bool | None = Field(None, description="Taken; nothing is stored.")
    modalities: Texts | None = Field(None, description="Only text is offered.")
    reasoning_effort: str | None = Field(None, description="Taken, and not used.")

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
        """How many tokens an answer may have."""
        given = self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens
        return _TOKENS if given is None else given


class EmbeddingRequest(WireRequest):
    """Texts to be made into vectors."""

    model: ModelName
    input: TextsOrIds = Field(description="A text or several, as text or as token ids.")
    encoding_format: Literal["float", "base64"] = Field(
        "float", description="Numbers, or the bytes of float32 in base64."
    )
    dimensions: int | None = Field(None, ge=1, description="Only as many as the model has.")
    user: str | None = Field(None, description="Taken, and not used.")

    @property
    def inputs(self) -> list[str | tuple[int, ...]]:
        """One or several, texts or token ids."""
        return as_list(self.input)
