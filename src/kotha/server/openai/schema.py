"""Request schemas for OpenAI's API. Unsupported fields are rejected, not ignored.

``top_k``, ``min_p`` and ``repetition_penalty`` are extensions. The defaults are those of ``kotha generate`` instead of
OpenAI's.

A request class also builds the responses to its requests. A model that was not fine-tuned for conversation continues
the messages as a single text. The chat responses of such a model contain a remark in ``kotha.remark``, because a
continuation is not a reply.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kotha.generation.conversation import NOT_INSTRUCTION_TUNED, conversation_prompt
from kotha.generation.request import GeneratedToken, Result
from kotha.server.api.requests import writer_of
from kotha.server.batching import StreamChunk
from kotha.server.json_requests import (
    MOST_ALTERNATIVES,
    MOST_TOKENS,
    FieldError,
    JsonObject,
    ModelName,
    SamplingFields,
    TextsOrIds,
    WireRequest,
    as_list,
)
from kotha.server.model_registry import ServedModel
from kotha.text.tokenizer.chat import Turn

_TOKENS = 150
_ENDS = {"end": "stop", "stop string": "stop", "length": "length", "cancelled": "length"}
# Unsupported fields, each with the value that has no effect, and fields that are ignored.
_NOT_SUPPORTED: dict[str, Any] = {
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "logit_bias", "suffix", "echo", "tools")),
    **dict.fromkeys(("logprobs", "top_logprobs")),  # in chats; completions support logprobs
    **{"best_of": 1, "response_format": {"type": "text"}, "modalities": ["text"]},
}
_IGNORED = ("user", "metadata", "store", "tool_choice", "parallel_tool_calls", "reasoning_effort")
Prompt = str | tuple[int, ...]
_SEEDS = 1 << 63
Stops = Annotated[
    list[Annotated[str, Field(max_length=1000)]],
    Field(max_length=16, fail_fast=True),
    BeforeValidator(lambda given: [given] if isinstance(given, str) else given or []),
]


class GenerationRequest(SamplingFields):
    """The fields that completions and chats share."""

    max_tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)
    seed: int | None = Field(None, ge=0, lt=_SEEDS)
    stop: Stops = Field([])
    n: int = Field(1, ge=1)
    stream: bool = False
    stream_options: dict[str, bool] | None = None

    @model_validator(mode="before")
    @classmethod
    def _reject_unsupported(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        other = _NOT_SUPPORTED.keys() - cls.model_fields.keys()
        for name, value in given.items():
            if name in other and value and value != _NOT_SUPPORTED[name]:
                raise FieldError("{name} is not supported; remove it", name, name=name)
        return {name: value for name, value in given.items() if name not in (*other, *_IGNORED)}

    @model_validator(mode="after")
    def _check_stream_options(self) -> "GenerationRequest":
        if self.stream_options is not None and not self.stream:
            raise FieldError("stream_options is only valid with stream")
        return self

    @property
    def alternatives(self) -> int | None:
        """The number of alternative tokens to report at each position, or None to report no probabilities."""
        return None

    @property
    def most_tokens(self) -> int:
        """The maximum number of generated tokens."""
        return _TOKENS if self.max_tokens is None else self.max_tokens

    def remark(self, _: ServedModel) -> JsonObject:
        """Return extra fields that are added to every response from this model."""
        return {}

    def first(self) -> JsonObject | None:
        """Return the first part of a stream, if any."""
        return None


class CompletionRequest(GenerationRequest):
    """One prompt to continue, or several."""

    kinds: ClassVar = (
        "text_completion",
        "text_completion",
        "cmpl",
    )  # object types of a response and of a part; prefix of ids
    prompt: TextsOrIds = ""
    logprobs: int | None = Field(None, ge=0, le=MOST_ALTERNATIVES)

    @property
    def alternatives(self) -> int | None:
        """The value of ``logprobs``."""
        return self.logprobs

    def prompts(self, _: ServedModel) -> list[Prompt]:
        """Return the prompts as texts or token ids."""
        return as_list(self.prompt)

    def whole(self, result: Result) -> JsonObject:
        """Return the choice for a finished text."""
        return self.parts(StreamChunk(result.text, result, result.written))[0]

    def parts(self, chunk: StreamChunk) -> list[JsonObject]:
        """Return the text of a chunk and, with the last one, why it ended."""
        reason = None if chunk.result is None else _ENDS[chunk.result.stopped]
        return [{"text": chunk.text, "logprobs": self._logprobs(chunk.written), "finish_reason": reason}]

    def _logprobs(self, written: Sequence[GeneratedToken]) -> JsonObject | None:
        """Return the log probabilities of the tokens and their alternatives."""
        if self.logprobs is None:
            return None
        return {
            "tokens": [token.text for token in written],
            "token_logprobs": [token.log_probability for token in written],
            "top_logprobs": [{other.text: other.log_probability for other in token.alternatives} for token in written],
        }


class TextPart(BaseModel):
    """A part of a message; only text is supported."""

    model_config = ConfigDict(extra="forbid")

    type: Literal["text"]
    text: str


class SentMessage(BaseModel):
    """A message in the conversation."""

    model_config = ConfigDict(extra="ignore")  # clients send responses back with extra fields

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """The content as a single text."""
        if isinstance(self.content, list):
            return "\n".join(part.text for part in self.content)
        return self.content or ""


class ChatRequest(GenerationRequest):
    """A conversation to continue."""

    kinds: ClassVar = ("chat.completion", "chat.completion.chunk", "chatcmpl")
    messages: Annotated[list[SentMessage], Field(min_length=1, max_length=4096, fail_fast=True)]
    max_completion_tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)

    @property
    def most_tokens(self) -> int:
        """The value of ``max_completion_tokens``, or of its older name."""
        return super().most_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def prompts(self, served: ServedModel) -> list[Prompt]:
        """Apply the chat template, or join the messages into one text; drop the oldest turns if it is too long."""
        turns = [Turn("system" if each.role == "developer" else each.role, each.text) for each in self.messages]
        plain = not served.supports_chat
        return [tuple(conversation_prompt(writer_of(served).engine, turns, self.most_tokens, plain=plain))]

    def remark(self, served: ServedModel) -> JsonObject:
        """Return a remark if the model was not fine-tuned for conversation."""
        return {} if served.supports_chat else {"kotha": {"remark": str(NOT_INSTRUCTION_TUNED)}}

    def whole(self, result: Result) -> JsonObject:
        """Return the choice for a finished answer."""
        message = {"role": "assistant", "content": result.text, "refusal": None}
        reason = _ENDS[result.stopped]
        return {"message": message, "logprobs": None, "finish_reason": reason}

    def first(self) -> JsonObject:
        """Return the first chunk of a stream, which sets the assistant's role."""
        return _delta({"role": "assistant", "content": "", "refusal": None})

    def parts(self, chunk: StreamChunk) -> list[JsonObject]:
        """Return the text of a chunk and, with the last one, why it ended."""
        found = [_delta({"content": chunk.text})] if chunk.text else []
        return found if chunk.result is None else [*found, _delta({}, reason=_ENDS[chunk.result.stopped])]


def _delta(delta: JsonObject, reason: str | None = None) -> JsonObject:
    return {"delta": delta, "logprobs": None, "finish_reason": reason}


class EmbeddingRequest(WireRequest):
    """Texts to embed."""

    model: ModelName
    input: TextsOrIds
    encoding_format: Literal["float", "base64"] = "float"
    user: str | None = None
