"""A conversation: turns of a user and of the model, as tokens that the model was taught.

Turns are written by the chat template (``text/tokenizer/chat.py``). Old turns are forgotten when the context is full. A
model that was never taught this layout would answer noise. One that has its template saved with it was; any other is
asked first, and where it was not, the talk is one text that it goes on with, and ``remark`` says so to whoever shows
the talk.
"""

from collections.abc import Sequence
from typing import Any

import torch

from kotha.arguments import checked
from kotha.generation.answers import Request
from kotha.generation.engine import Engine
from kotha.generation.settings import SamplingSettings
from kotha.i18n.message import Message
from kotha.text.tokenizer.chat import Turn
from kotha.text.tokenizer.prompt import encode_end, start_of_document
from kotha.text.tokenizer.tokenizer import Tokenizer

_ROLES = ("user", "assistant", "end")
# A sentence's end in Bangla and in English: a place where a turn could end.
_SENTENCE = "।", "."
# How likely a model that takes turns ends one there, at least, and at least so many times as likely as by chance.
_LIKELY, _TIMES = 0.01, 10
UNTAUGHT = Message("this model was never taught to converse: it goes on with what you write")


class Conversation:
    """What was said so far, and the request for the next answer."""

    def __init__(self, engine: Engine, plain: bool = False) -> None:
        assert engine.tokenizer is not None, "a conversation needs a tokenizer"
        self.engine, self.tokenizer = engine, engine.tokenizer
        self.taught = was_taught(engine)
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
    special, first = tokenizer.special, _start(tokenizer)
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


def _start(tokenizer: Tokenizer) -> list[int]:
    start = start_of_document(tokenizer)
    return [] if start is None else [start]


@torch.no_grad()
def was_taught(engine: Engine) -> bool:
    """Whether a model takes turns: its template was saved with it, or it ends them of itself.

    After a sentence in a turn, ``<|end|>`` must be likely then, and far more than by chance. Training makes a token
    that never occurs ever less likely, and a fresh model finds all of them alike, so one that only read texts says no,
    however long it did.
    """
    if engine.chat is not None:
        return True
    tokenizer, model = engine.tokenizer, engine.model
    if tokenizer is None or not all(role in tokenizer.special for role in _ROLES):
        return False
    user, assistant, end = (tokenizer.special[role] for role in _ROLES)
    likeliest = 0.0
    for sentence in _SENTENCE:
        words = tokenizer.encode(sentence)
        ids = [*_start(tokenizer), user, *words, end, assistant, *words][-model.config.context_length :]
        logits = model(torch.tensor([ids], device=model.tokens.weight.device))[0, -1]
        likeliest = max(likeliest, float(logits.float().softmax(dim=-1)[end]))
    return likeliest > max(_LIKELY, _TIMES / model.config.vocab_size)
