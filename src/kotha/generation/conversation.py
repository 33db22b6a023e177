"""A conversation: the turns of the user and the model, in the format of the model's training data.

The chat template (``text/tokenizer/chat.py``) formats the turns. Old turns are dropped when the context is full. A
model trained for conversation is saved with its template. Any other model continues the conversation as plain text;
``remark`` says so and should be shown to the user.
"""

from collections.abc import Sequence
from typing import Any

from kotha.arguments import checked
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message
from kotha.text.tokenizer.chat import Turn
from kotha.text.tokenizer.prompt import encode_end, start_of_document

NOT_INSTRUCTION_TUNED = Message("this model was not trained for conversation, so it continues your text")


class Conversation:
    """The turns so far, and the request for the next answer."""

    def __init__(self, engine: Engine, plain: bool = False) -> None:
        assert engine.tokenizer is not None, "a conversation needs a tokenizer"
        self.engine, self.tokenizer = engine, engine.tokenizer
        self.instruction_tuned = engine.chat is not None
        self.plain = plain or not self.instruction_tuned
        self._turns: list[Turn] = []

    def __repr__(self) -> str:
        turns = f"{len(self._turns)} turn{'' if len(self._turns) == 1 else 's'}"
        return f"Conversation({turns if self.remark is None else f'{turns}; {self.remark}'})"

    @property
    def remark(self) -> Message | None:
        """A remark to show before the first turn, or None."""
        return None if self.instruction_tuned else NOT_INSTRUCTION_TUNED

    @checked(SamplingSettings)
    def say(self, text: str, *, tokens: int = 150, seed: int = 0, stop: str | Sequence[str] = (), **how: Any) -> str:
        """Add a user turn and the model's answer, and return the answer; ``how`` takes ``SamplingSettings`` fields."""
        settings = SamplingSettings(seed=seed, **how)
        [result] = self.engine.generate(
            [self.ask(text, tokens, settings, (stop,) if isinstance(stop, str) else tuple(stop))]
        )
        self.remember(result.text)
        return result.text

    def ask(self, text: str, tokens: int, settings: SamplingSettings, stop: tuple[str, ...] = ()) -> Request:
        """Add a user turn and return the request for its answer."""
        self._turns.append(Turn("user", text))
        prompt = conversation_prompt(self.engine, self._turns, tokens, self.plain)
        return Request(prompt=tuple(prompt), tokens=tokens, settings=settings, stop=stop)

    def forget(self) -> None:
        """Remove all turns."""
        self._turns.clear()

    def remember(self, answer: str) -> None:
        """Add a model turn."""
        self._turns.append(Turn("assistant", answer))


def conversation_prompt(engine: Engine, turns: Sequence[Turn], tokens: int, plain: bool) -> list[int]:
    """Return the prompt for the next turn: as many of the latest turns as fit, leaving room for ``tokens`` tokens.

    With ``plain``, the prompt is plain text without special tokens. A role without a special token is treated as the
    user role.
    """
    tokenizer, context = engine.tokenizer, engine.model.config.context_length
    assert tokenizer is not None, "a conversation needs a tokenizer"
    special, start = tokenizer.special, start_of_document(tokenizer)
    first = [] if start is None else [start]
    opening = [] if plain else [special["assistant"]]
    room = max(1, context - min(tokens, context // 2) - len(first) - len(opening))
    read: list[int] = []
    for turn in reversed(turns):
        ids, _ = encode_end(tokenizer, turn.text, context)
        formatted = ids if plain else [special.get(turn.role, special["user"]), *ids, special["end"]]
        if read and len(formatted) + len(read) > room:
            break
        read = formatted + read
    return [*first, *read, *opening]
