"""Shared fixtures for text tests: an adversarial alphabet, a small corpus, and a tokenizer of every kind."""

import socket
from collections.abc import Iterator
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from kotha.text.akshara import aksharas
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

# Fragments rather than code points if a rule needs several of them together.
ADVERSARIAL = [
    *"কতযবরডঢয়ড়ষহঅএআ",
    *"ািীুেৈোৌৗৃ",
    *"়়্্ঁঁংঃৎ",
    *"\u200c\u200d\u200c\u200d\ufeff\u200b\u00ad\u2060",
    *"\u00a0\u2009\u2028\u0085\r\n\t \x00\x1f",
    "\r\n",
    *"।৷|০৫09aZe'\"‘”",
    *"\u0301\u0308\u0323é",
    *"👩👧❤\ufe0f\U0001f3fd🇧🇩",
    *"क\u094dष\u093cامی\u064e\u1100\u1161\u11a8",
    "র\u200d্যা",
    "ত্\u200d",
    "<|endoftext|>",
    "<0x41>",
    "[SEP]",
    "\u2581",
    "Ġ",
    "##",
    "\ufffd",
]

# The kinds of tokenizers in contract tests, with the arguments for training each.
KINDS: dict[str, dict[str, Any]] = {
    "char-codepoint": {"kind": "char", "level": "codepoint"},
    "char-akshara": {"kind": "char", "level": "akshara"},
    "bpe-qwen35": {"kind": "bpe", "split": "qwen35"},
    "bpe-words": {"kind": "bpe", "split": "words"},
    "unigram": {"kind": "unigram"},
    "wordpiece": {"kind": "wordpiece"},
}
VOCAB_SIZE = 900

SENTENCES = Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").splitlines()


@cache
def train_kind(name: str, **changes: Any) -> Tokenizer:
    """A tokenizer of a kind, trained once for all tests."""
    return train(CORPUS, **{"vocab_size": VOCAB_SIZE, **KINDS[name], **changes})


# Single sentences and pairs on two lines, repeated often enough that words are learned.
CORPUS = [*SENTENCES * 4, *(f"{first}\n{second}" for first, second in zip(SENTENCES, SENTENCES[7:], strict=False))]


def assigned_text(**limits: Any) -> st.SearchStrategy[str]:
    """Arbitrary text of code points that are assigned in this Python's version of Unicode.

    Python, `regex`, ICU and the Rust crates use different versions of Unicode, and correctly differ on code points that
    are unassigned in one of them. Surrogates are excluded.
    """
    return st.text(st.characters(exclude_categories=["Cs", "Cn"]), **limits)


def adversarial_text(max_size: int = 14) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(ADVERSARIAL), max_size=max_size).map("".join)


def anything() -> st.SearchStrategy[str]:
    """Text with characters from both alphabets."""
    return assigned_text() | adversarial_text()


trained = train_kind


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    """A tokenizer of each kind, one after another."""
    return trained(request.param)


def boundaries(text: str) -> Iterator[int]:
    """The ends of all aksharas of a text."""
    return accumulate(map(len, aksharas(text)))


@pytest.fixture
def listener() -> Iterator[int]:
    """The port of a server that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def free_port() -> int:
    """A port without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
