"""The chat template: converts the turns of a conversation to tokens, and itself to Jinja for other tools.

``<|user|> … <|end|> <|assistant|> … <|end|>``: each turn starts with the special token of its role and ends with the
end token. The first turn follows the start-of-document token. Role tokens are never encoded from text, so no message
can impersonate another role. A chat model is saved with the special tokens of its template, but without the Jinja
source, so code from a model folder is never run.
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
    """A message in a conversation; the roles are system, user and assistant."""

    role: str
    text: str


@dataclass(frozen=True)
class ChatTemplate:
    """The special tokens of turns, as spelled in a tokenizer's vocabulary.

    >>> ChatTemplate({"user": "<|user|>", "assistant": "<|assistant|>", "end": "<|end|>"}).jinja()[:20]
    '{% set marks = {"use'
    """

    marks: Mapping[str, str]  # special tokens by role, and ``end``, which ends each turn
    start: str = ""  # the token before the first turn

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "ChatTemplate | None":
        """Return the template for a tokenizer; None if it lacks the special tokens."""
        special = tokenizer.special
        if not {"user", "assistant", END} <= special.keys():
            return None
        start = start_of_document(tokenizer)
        marks = {role: tokenizer.pieces[special[role]] for role in (*ROLES, END) if role in special}
        return cls(marks, "" if start is None else tokenizer.pieces[start])

    def jinja(self) -> str:
        """Return the template as Jinja, for transformers, llama.cpp and other tools."""
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
        """Return a conversation's tokens, and whether each belongs to an assistant turn (text or end token)."""
        start = start_of_document(tokenizer)
        tokens = [] if start is None else [start]
        written = [False] * len(tokens)
        for turn in turns:
            if turn.role not in self.marks or turn.role == END:
                raise TokenizerError("this tokenizer has no special token for the role {role!r}", role=turn.role)
            content = [*tokenizer.encode(turn.text), tokenizer.special[END]]
            tokens += [tokenizer.special[turn.role], *content]
            written += [False, *[turn.role == "assistant"] * len(content)]
        return tokens, written

    def prompt(self, tokenizer: Tokenizer, turns: Sequence[Turn]) -> list[int]:
        """Return the tokens of a conversation up to the start of the next assistant turn."""
        return [*self.encode(tokenizer, turns)[0], tokenizer.special["assistant"]]


def with_marks(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer with the chat template's special tokens; missing tokens are appended to the vocabulary."""
    missing = [GENERATIVE[role] for role in ("user", "assistant", END) if role not in tokenizer.special]
    if not missing:
        return tokenizer
    backend = tokenizers.Tokenizer.from_str(tokenizer.backend.to_str())
    backend.add_special_tokens([tokenizers.AddedToken(text, special=True, normalized=False) for text in missing])
    return Tokenizer(backend)
