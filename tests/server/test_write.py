"""Token-by-token generation and token probabilities match the library."""

import json
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from tests.loopback import http
from tests.server.conftest import Address

from kotha.artifacts import model_folder as bundle
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings

TEXT = "নদীর ধারে ক্ষণিক"


def written(address: Address, **asked: Any) -> list[dict[str, Any]]:
    """Return the events of a stream."""
    with http.stream("POST", f"{address.url}/api/write", json={"model": "plain", **asked}, timeout=60) as said:
        lines = [line.removeprefix("data: ") for line in said.iter_lines() if line]
    assert said.status_code == 200 and lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def scored(address: Address, prompt: str | Sequence[int]) -> tuple[dict[str, Any], np.ndarray[Any, Any]]:
    """A probability distribution: the most likely tokens, and its statistics."""
    response = http.post(f"{address.url}/api/logits", json={"model": "plain", "prompt": prompt}, timeout=60)
    assert response.status_code == 200, response.text
    (length,) = struct.unpack_from("<I", response.content)
    return json.loads(response.content[4 : 4 + length]), np.frombuffer(response.content, "<f4", offset=4 + length)


def test_generated_text_matches_the_library(address: Address) -> None:
    opened = bundle.load(address.folder / "plain")
    settings = SamplingSettings(temperature=0.9, top_k=30, top_p=0.95, min_p=0.01, repetition_penalty=1.2, seed=5)
    engine = Engine(opened.model, opened.tokenizer)  # type: ignore[arg-type]
    (result,) = engine.generate([Request(prompt=TEXT, tokens=20, settings=settings, alternatives=8)])
    first, *others = written(
        address,
        prompt=TEXT,
        max_tokens=20,
        temperature=0.9,
        top_k=30,
        top_p=0.95,
        min_p=0.01,
        repetition_penalty=1.2,
        seed=5,
    )
    tokens = [token for event in others for token in event.get("tokens", [])]
    assert first["seed"] == 5 and "".join(piece["adds"] for piece in first["prompt"]) == TEXT
    assert tuple(token["id"] for token in tokens) == result.ids
    assert "".join(event.get("letters", "") for event in others) == result.text
    assert "".join(token["adds"] for token in tokens) in result.text, "bytes that form no character may follow"
    for token, wanted in zip(tokens, result.written, strict=True):
        assert token["probability"] == pytest.approx(np.exp(wanted.log_probability), rel=1e-4)
        assert (token["rank"], [other["id"] for other in token["others"]]) == (
            wanted.rank,
            [other.id for other in wanted.alternatives],
        )
    assert others[-1]["end"] == {
        "stopped": result.stopped,
        "tokens": 20,
        "tokens_per_second": others[-1]["end"]["tokens_per_second"],
    }


def test_token_ids_are_used_unchanged(address: Address) -> None:
    whole = written(address, prompt=TEXT, max_tokens=8, temperature=0)
    prompt = [piece["id"] for piece in whole[0]["prompt"]]
    tokens = [token["id"] for event in whole[1:] for token in event.get("tokens", [])]
    rest = written(address, prompt=[*prompt, *tokens[:3]], max_tokens=5, temperature=0)
    assert [piece["id"] for piece in rest[0]["prompt"]] == [*prompt, *tokens[:3]]
    assert [token["id"] for event in rest[1:] for token in event.get("tokens", [])] == tokens[3:]
    long = written(address, prompt=[*prompt, *tokens] * 20, max_tokens=1)
    assert len(long[0]["prompt"]) == 64, "of a text beyond the context its end is read"


def test_the_distribution_is_the_models_own(address: Address) -> None:
    opened = bundle.load(address.folder / "plain")
    assert opened.tokenizer is not None
    head, scores = scored(address, TEXT)
    ids = [opened.tokenizer.special["eos"], *opened.tokenizer.encode(TEXT)]
    with torch.no_grad():
        wanted = opened.model(torch.tensor([ids]))[0, -1, : opened.tokenizer.vocab_size]
    np.testing.assert_allclose(scores, wanted.numpy(), atol=1e-5)
    assert head["vocabulary"] == len(scores) and head["prompt"] == ids and head["seen"] == sorted(set(ids[1:]))
    assert [piece["id"] for piece in head["best"]][:5] == wanted.topk(5).indices.tolist()
    again, same = scored(address, ids)
    assert again == head
    np.testing.assert_array_equal(same, scores)


@pytest.mark.parametrize(
    ("path", "asked", "words"),
    [
        ("/api/write", {"max_tokens": 100_000}, "max_tokens: it must be 4,096 or less"),
        ("/api/write", {"others": 1000}, "others: it must be 20 or less"),
        ("/api/write", {"prompt": [999_999]}, "outside the vocabulary"),
        ("/api/write", {"prompt": "ক " * 400}, "shorten it"),
        ("/api/logits", {"prompt": [999_999]}, "outside the vocabulary"),
    ],
)
def test_invalid_requests_are_rejected(address: Address, path: str, asked: dict[str, Any], words: str) -> None:
    response = http.post(address.url + path, json={"model": "plain", **asked}, timeout=60)
    assert response.status_code == 400 and words in response.json()["error"]["message"]


def test_token_probabilities_of_a_given_text_are_the_models_own(address: Address) -> None:
    opened = bundle.load(address.folder / "plain")
    assert opened.tokenizer is not None
    result = http.post(f"{address.url}/api/read", json={"model": "plain", "prompt": TEXT}, timeout=60).json()["tokens"]
    ids = [opened.tokenizer.special["eos"], *opened.tokenizer.encode(TEXT)]
    assert [each["id"] for each in result] == ids and "".join(each["adds"] for each in result) == TEXT
    with torch.no_grad():
        scores = opened.model(torch.tensor([ids]))[0, :-1, : opened.tokenizer.vocab_size]  # type: ignore[operator]
    for each, token, row in zip(result[1:], ids[1:], scores, strict=True):
        assert each["probability"] == pytest.approx(float(row.softmax(-1)[token]), rel=1e-3)
        assert each["rank"] == 1 + int((row > row[token]).sum())
    assert result[0]["probability"] is None and result[0]["rank"] is None, "nothing stands before it"


def test_a_text_is_read_completely_with_few_scores_in_memory(address: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"model": "plain", "prompt": TEXT}
    whole = http.post(f"{address.url}/api/read", json=asked, timeout=60).json()
    monkeypatch.setattr("kotha.server.api.text._SCORED", 2)
    again = http.post(f"{address.url}/api/read", json=asked, timeout=60).json()
    for one, other in zip(whole["tokens"], again["tokens"], strict=True):
        assert one["id"] == other["id"] and one["rank"] == other["rank"]
