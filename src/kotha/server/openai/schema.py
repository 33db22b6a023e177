"""The requests of OpenAI's clients, as far as small models can meet them; what cannot be met is refused, not ignored.

Beside OpenAI's own names stand ``top_k``, ``min_p`` and ``repetition_penalty``. What is left out has the value that
``kotha generate`` has, which was chosen by measurement, not OpenAI's.

A request also has the form of its answer. A model that was not taught to take turns goes on with what was said, as one
text; every answer to a chat then says so, in ``kotha.remark``, because a reader would take noise for an opinion.
"""

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from kotha.generation.conversation import UNTAUGHT, conversation_prompt
from kotha.generation.request import Result, Written
from kotha.server.api.requests import writer_of
from kotha.server.batching import StreamChunk
from kotha.server.json_requests import (
    MOST_ALTERNATIVES,
    MOST_TOKENS,
    Drawn,
    FieldError,
    JsonObject,
    ModelName,
    TextsOrIds,
    WireRequest,
    as_list,
)
from kotha.server.model_registry import Served
from kotha.text.tokenizer.chat import Turn

_TOKENS = 150
_ENDS = {"end": "stop", "stop string": "stop", "length": "length", "cancelled": "length"}
# Fields of OpenAI's that are not offered, each with what asks for nothing; and those that change nothing here.
_NOT_OFFERED: dict[str, Any] = {
    **dict.fromkeys(("presence_penalty", "frequency_penalty", "logit_bias", "suffix", "echo", "tools")),
    **dict.fromkeys(("logprobs", "top_logprobs")),  # of a chat; completions have them
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


class Sampled(Drawn):
    """What completions and chats share: how texts are drawn, and how many."""

    max_tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)
    seed: int | None = Field(None, ge=-_SEEDS, lt=_SEEDS)
    stop: Stops = Field([])
    n: int = Field(1, ge=1)
    stream: bool = False
    stream_options: dict[str, bool] | None = None

    @model_validator(mode="before")
    @classmethod
    def _only_what_is_offered(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        other = _NOT_OFFERED.keys() - cls.model_fields.keys()
        for name, value in given.items():
            if name in other and value and value != _NOT_OFFERED[name]:
                raise FieldError("{name} is not supported; remove it", name, name=name)
        return {name: value for name, value in given.items() if name not in (*other, *_IGNORED)}

    @model_validator(mode="after")
    def _for_streams(self) -> "Sampled":
        if self.stream_options is not None and not self.stream:
            raise FieldError("stream_options is only valid with stream")
        return self

    @property
    def alternatives(self) -> int | None:
        """The number of other tokens that are reported at each place; None for no probabilities."""
        return None

    @property
    def most_tokens(self) -> int:
        """How many tokens an answer may have."""
        return _TOKENS if self.max_tokens is None else self.max_tokens

    def remark(self, _: Served) -> JsonObject:
        """What every answer of a model says of itself."""
        return {}

    def first(self) -> JsonObject | None:
        """What a stream begins with."""
        return None


class CompletionRequest(Sampled):
    """A text to go on with, or several."""

    kinds: ClassVar = ("text_completion", "text_completion", "cmpl")  # of an answer, of a part, before an id
    prompt: TextsOrIds = ""
    logprobs: int | None = Field(None, ge=0, le=MOST_ALTERNATIVES)

    @property
    def alternatives(self) -> int | None:
        """As many as are asked for."""
        return self.logprobs

    def prompts(self, _: Served) -> list[Prompt]:
        """One or several, texts or token ids."""
        return as_list(self.prompt)

    def whole(self, result: Result) -> JsonObject:
        """One text."""
        return self.parts(StreamChunk(result.text, result, result.written))[0]

    def parts(self, chunk: StreamChunk) -> list[JsonObject]:
        """Letters and, with the last of them, why the text ended."""
        reason = None if chunk.result is None else _ENDS[chunk.result.stopped]
        return [{"text": chunk.text, "logprobs": self._chances(chunk.written), "finish_reason": reason}]

    def _chances(self, written: Sequence[Written]) -> JsonObject | None:
        """How likely each token was, and what else could have stood there."""
        if self.logprobs is None:
            return None
        return {
            "tokens": [token.text for token in written],
            "token_logprobs": [token.log_probability for token in written],
            "top_logprobs": [{other.text: other.log_probability for other in token.alternatives} for token in written],
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
    max_completion_tokens: int | None = Field(None, ge=0, le=MOST_TOKENS)

    @property
    def most_tokens(self) -> int:
        """The newer of the two names, where it is given."""
        return super().most_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    def prompts(self, served: Served) -> list[Prompt]:
        """The model's template, or all that was said as one text; old turns go where it is too long."""
        turns = [Turn("system" if each.role == "developer" else each.role, each.text) for each in self.messages]
        plain = not served.takes_turns
        return [tuple(conversation_prompt(writer_of(served).engine, turns, self.most_tokens, plain=plain))]

    def remark(self, served: Served) -> JsonObject:
        """That nobody answers, where the model was not taught to."""
        return {} if served.takes_turns else {"kotha": {"remark": str(UNTAUGHT)}}

    def whole(self, result: Result) -> JsonObject:
        """One answer."""
        message = {"role": "assistant", "content": result.text, "refusal": None}
        reason = _ENDS[result.stopped]
        return {"message": message, "logprobs": None, "finish_reason": reason}

    def first(self) -> JsonObject:
        """Who speaks."""
        return _delta({"role": "assistant", "content": "", "refusal": None})

    def parts(self, chunk: StreamChunk) -> list[JsonObject]:
        """Letters, and why the answer ended."""
        found = [_delta({"content": chunk.text})] if chunk.text else []
        return found if chunk.result is None else [*found, _delta({}, reason=_ENDS[chunk.result.stopped])]


def _delta(delta: JsonObject, reason: str | None = None) -> JsonObject:
    return {"delta": delta, "logprobs": None, "finish_reason": reason}


class EmbeddingRequest(WireRequest):
    """Texts to be made into vectors."""

    model: ModelName
    input: TextsOrIds
    encoding_format: Literal["float", "base64"] = "float"
    user: str | None = None
