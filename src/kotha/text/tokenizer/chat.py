"""The chat template: how the turns of a conversation are written, as tokens here and as Jinja for other tools.

``<|user|> … <|end|> <|assistant|> … <|end|>``: before a turn its speaker's mark, after it the end's; before them all
what starts a document. Marks are special tokens themselves and never their spelling, so nobody can speak for another. A
model that was taught to take turns has its template saved with it, and takes it along wherever it goes. What is kept is
the marks, not the Jinja: a program out of a foreign folder is never run.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import tokenizers

from kotha.errors import TokenizerError
from kotha.text.tokenizer.prompt import start_of_document
from kotha.text.tokenizer.special import GENERATIVE
from kotha.text.tokenizer.tokenizer import Tokenizer

ROLES = ("system", "user", "assistant")
END = "end"


class Turn(NamedTuple):
    """What one side said; the roles are system, user and assistant."""

    role: str
    text: str


@dataclass(frozen=True)
class ChatTemplate:
    """The marks of turns, as a tokenizer writes them.

    >>> ChatTemplate({"user": "<|user|>", "assistant": "<|assistant|>", "end": "<|end|>"}).jinja()[:20]
    '{% set marks = {"use'
    """

    marks: Mapping[str, str]  # by role, and ``end`` for what closes every turn
    start: str = ""  # the mark before the first turn

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "ChatTemplate | None":
        """The template that a tokenizer has marks for; None where it lacks them."""
        special = tokenizer.special
        if not {"user", "assistant", END} <= special.keys():
            return None
        start = start_of_document(tokenizer)
        marks = {role: tokenizer.pieces[special[role]] for role in (*ROLES, END) if role in special}
        return cls(marks, "" if start is None else tokenizer.pieces[start])

    def jinja(self) -> str:
        """The same for transformers, llama.cpp and others."""
        speakers = {role: mark for role, mark in self.marks.items() if role != END}
        return (
            f"{self.start}{{% set marks = {json.dumps(speakers)} %}}"
            "{% for message in messages %}"
            "{% if message['role'] not in marks %}{{ raise_exception('no such role: ' + message['role']) }}{% endif %}"
            "{{ marks[message['role']] + message['content'] + " + json.dumps(self.marks[END]) + " }}"
            "{% endfor %}"
            "{% if add_generation_prompt %}{{ marks['assistant'] }}{% endif %}"
        )

    def encode(self, tokenizer: Tokenizer, turns: Sequence[Turn]) -> tuple[list[int], list[bool]]:
        """Tokens of a conversation, and which of them the assistant wrote: its words and the end of its turns."""
        start = start_of_document(tokenizer)
        tokens = [] if start is None else [start]
        written = [False] * len(tokens)
        for turn in turns:
            if turn.role not in self.marks or turn.role == END:
                raise TokenizerError("this tokenizer has no special token for the role {role!r}", role=turn.role)
            said = [*tokenizer.encode(turn.text), tokenizer.special[END]]
            tokens += [tokenizer.special[turn.role], *said]
            written += [False, *[turn.role == "assistant"] * len(said)]
        return tokens, written

    def prompt(self, tokenizer: Tokenizer, turns: Sequence[Turn]) -> list[int]:
        """Tokens after which the assistant speaks."""
        return [*self.encode(tokenizer, turns)[0], tokenizer.special["assistant"]]


def with_marks(tokenizer: Tokenizer) -> Tokenizer:
    """The tokenizer itself where it has the marks of turns, else one that has them too, behind all its pieces."""
    missing = [GENERATIVE[role] for role in ("user", "assistant", END) if role not in tokenizer.special]
    if not missing:
        return tokenizer
    backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    backend.add_special_tokens([tokenizers.AddedToken(text, special=True, normalized=False) for text in missing])
    return Tokenizer(backend)
