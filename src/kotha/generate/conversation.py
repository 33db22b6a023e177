"""A conversation: turns of a user and of the model, as tokens that the model was taught.

``<|user|> … <|end|> <|assistant|> … <|end|>``, with the special tokens themselves and not their spelling, so that
nobody can speak for the other side. Old turns are forgotten when the context is full. A model that was never taught
this layout would answer noise; it is asked first, and where it was not, the talk is one text that it goes on with.
"""

import torch

from kotha.generate.answers import Request
from kotha.generate.engine import Engine
from kotha.generate.settings import SamplingSettings
from kotha.text.tokenizer.tokenizer import Tokenizer

_ROLES = ("user", "assistant", "end")
# A sentence's end in Bangla and in English: a place where a turn could end.
_SENTENCE = "।", "."


class Conversation:
    """What was said so far, and the request for the next answer."""

    def __init__(self, engine: Engine, plain: bool = False) -> None:
        assert engine.tokenizer is not None, "a conversation needs a tokenizer"
        self.engine, self.tokenizer = engine, engine.tokenizer
        self.plain = plain or not was_taught(engine)
        self._turns: list[list[int]] = []

    def ask(self, text: str, tokens: int, settings: SamplingSettings, stop: tuple[str, ...] = ()) -> Request:
        """The request that answers a text; it is remembered as the user's turn."""
        self._turns.append(self._turn("user", text))
        opening = [] if self.plain else [self.tokenizer.special["assistant"]]
        context = self.engine.model.config.context_length
        room = max(1, context - min(tokens, context // 2) - len(opening))
        while len(self._turns) > 1 and sum(map(len, self._turns)) > room:
            del self._turns[0]
        prompt = [token for turn in self._turns for token in turn] + opening
        return Request(prompt=tuple(prompt), tokens=tokens, settings=settings, stop=stop)

    def remember(self, answer: str) -> None:
        """Keep the model's turn."""
        self._turns.append(self._turn("assistant", answer))

    def _turn(self, role: str, text: str) -> list[int]:
        ids = self.tokenizer.encode(text)
        if self.plain:
            return ids
        return [self.tokenizer.special[role], *ids, self.tokenizer.special["end"]]


@torch.no_grad()
def was_taught(engine: Engine) -> bool:
    """Whether a model ends its turns: after a sentence, ``<|end|>`` must be likelier than a token drawn blindly.

    Training makes a token that never occurs far less likely than that, so a model that only read texts says no.
    """
    tokenizer: Tokenizer | None = engine.tokenizer
    if tokenizer is None or not all(role in tokenizer.special for role in _ROLES):
        return False
    user, assistant, end = (tokenizer.special[role] for role in _ROLES)
    likeliest = 0.0
    for sentence in _SENTENCE:
        words = tokenizer.encode(sentence)
        ids = [user, *words, end, assistant, *words][-engine.model.config.context_length :]
        device = engine.model.tokens.weight.device
        chances = engine.model(torch.tensor([ids], device=device))[0, -1].float().softmax(dim=-1)
        likeliest = max(likeliest, float(chances[end]))
    return likeliest > 1 / engine.model.config.vocab_size
