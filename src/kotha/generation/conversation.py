"""A conversation: turns of a user and of the model, as tokens that the model was taught.

Turns are written by the chat template (``text/tokenizer/chat.py``). Old turns are forgotten when the context is full. A
model that was never taught this layout would answer noise. One that was has its template saved with it; with any other
the talk is one text that it goes on with, and ``remark`` says so to whoever shows the talk.
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

UNTAUGHT = Message("this model was not trained for conversation: it continues the text you write")


class Conversation:
    """What was said so far, and the request for the next answer."""

    def __init__(self, engine: Engine, plain: bool = False) -> None:
        assert engine.tokenizer is not None, "a conversation needs a tokenizer"
        self.engine, self.tokenizer = engine, engine.tokenizer
        self.taught = engine.chat is not None
        self.plain = plain or not self.taught
        self._turns: list[Turn] = []

    def __repr__(self) -> str:
        turns = f"{len(self._turns)} turn{'' if len(self._turns) == 1 else 's'}"
        return f"Conversation({turns if self.remark is None else f'{turns}; {self.remark}'})"

    @property
    def remark(self) -> Message | None:
        """What must be said before the first turn, and never left out."""
        return None if self.taught else UNTAUGHT

    @checked(SamplingSettings)
    def say(self, text: str, *, tokens: int = 150, seed: int = 0, stop: str | Sequence[str] = (), **how: Any) -> str:
        """The model's answer to a text; both are remembered. ``how`` are those of ``SamplingSettings``."""
        settings = SamplingSettings(seed=seed, **how)
        [result] = self.engine.generate(
            [self.ask(text, tokens, settings, (stop,) if isinstance(stop, str) else tuple(stop))]
        )
        self.remember(result.text)
        return result.text

    def ask(self, text: str, tokens: int, settings: SamplingSettings, stop: tuple[str, ...] = ()) -> Request:
        """The request that answers a text; it is remembered as the user's turn."""
        self._turns.append(Turn("user", text))
        prompt = conversation_prompt(self.engine, self._turns, tokens, self.plain)
        return Request(prompt=tuple(prompt), tokens=tokens, settings=settings, stop=stop)

    def forget(self) -> None:
        """Begin anew."""
        self._turns.clear()

    def remember(self, answer: str) -> None:
        """Keep the model's turn."""
        self._turns.append(Turn("assistant", answer))


def conversation_prompt(engine: Engine, turns: Sequence[Turn], tokens: int, plain: bool) -> list[int]:
    """What is read before the next turn: as many of the last turns as leave room for so many tokens.

    ``plain``: no marks, one text from its beginning. Somebody for whom there is no mark speaks as the user does.
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
        said = ids if plain else [special.get(turn.role, special["user"]), *ids, special["end"]]
        if read and len(said) + len(read) > room:
            break
        read = said + read
    return [*first, *read, *opening]
