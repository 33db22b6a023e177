"""A model that was taught to take turns, as the one who answers from passages."""

from kotha.generation.conversation import Conversation, was_taught
from kotha.generation.engine import Engine


class TaughtWriter:
    """Answers one turn, always its best token: an answer from documents is no place for chance.

    Nor for a penalty on repetition: it repeats what the documents say.
    """

    def __init__(self, engine: Engine, tokens: int) -> None:
        self._engine, self._tokens = engine, tokens

    @classmethod
    def of(cls, engine: Engine, tokens: int) -> "TaughtWriter | None":
        """The writer of a model; None where it was never taught to answer."""
        return cls(engine, tokens) if was_taught(engine) else None

    def fits(self, text: str) -> bool:
        """Whether a turn leaves room for an answer in the context."""
        tokenizer = self._engine.tokenizer
        assert tokenizer is not None, "who takes turns has a tokenizer"
        marks = 3  # user, end, assistant
        context = self._engine.model.config.context_length
        return len(tokenizer.encode(text)) + marks + min(self._tokens, context // 2) <= context

    def say(self, text: str) -> str:
        """The answer to a turn."""
        talk = Conversation(self._engine)
        return talk.say(text, tokens=self._tokens, temperature=0.0, repetition_penalty=None).strip()
