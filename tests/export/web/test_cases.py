"""The stored cases for the page's tests equal the library's output, and unsupported tokenizers are rejected."""

import json
import re
from typing import Any

import pytest
import torch
from tests.export.models import shaken
from tests.export.web.cases import CONFIGS, FILE, made, tokenizers
from tokenizers import decoders, normalizers, pre_tokenizers

from kotha.errors import ConfigError
from kotha.export.web.export import pack, rounded
from kotha.export.web.vocabulary import describe_vocabulary
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train


def test_the_stored_cases_equal_the_library() -> None:
    kept, now = json.loads(FILE.read_text(encoding="utf-8")), json.loads(json.dumps(made()))
    for name in ("tokenizers", "letters", "uniforms"):
        assert kept[name] == now[name], "run `python -m tests.export.web.cases`"
    assert kept["models"].keys() == now["models"].keys()
    for name, case in now["models"].items():
        before = kept["models"][name]
        assert (before["ids"], before["description"]) == (case["ids"], case["description"])
        for place, logits in case["logits"].items():
            torch.testing.assert_close(torch.tensor(before["logits"][place]), torch.tensor(logits), atol=1e-5, rtol=0)


def test_quantizing_twice_changes_nothing() -> None:
    model: Any = rounded(shaken(CONFIGS["qwen3"]).model)  # type: ignore[arg-type]
    assert pack(model) == pack(rounded(model))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"normalizer": normalizers.Lowercase()}, "a normalization other than Kotha's"),
        ({"pre_tokenizer": pre_tokenizers.Metaspace()}, "a pre-tokenizer other than Kotha's"),
        ({"decoder": decoders.Metaspace()}, "a decoder other than Kotha's"),
    ],
)
def test_an_unsupported_tokenizer_is_rejected(changed: dict[str, Any], expected: str) -> None:
    backend = type(tokenizers()["unigram"].backend).from_str(tokenizers()["unigram"].backend.to_str())
    for name, value in changed.items():
        setattr(backend, name, value)
    with pytest.raises(ConfigError, match=f"cannot export to a web page: the tokenizer has {re.escape(expected)}"):
        describe_vocabulary(Tokenizer(backend))


def test_wordpiece_is_rejected() -> None:
    with pytest.raises(ConfigError, match="the tokenizer has a wordpiece vocabulary"):
        describe_vocabulary(train(["নদীর ধারে গ্রাম"] * 9, "wordpiece", 300))
