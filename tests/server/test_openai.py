"""OpenAI's official client, unmodified, with the server: lists, completions, chats, embeddings, streams, errors."""

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.loopback import http
from tests.server.conftest import Address, started

from kotha.api.model import load
from kotha.artifacts import model_folder as bundle
from kotha.generation.conversation import NOT_INSTRUCTION_TUNED
from kotha.generation.engine import Engine
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.server.app import make_app
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.chat import ChatTemplate, Turn

openai = pytest.importorskip("openai", reason="the official client")
PROMPT = "নদীর ধারে"


@pytest.fixture(scope="module")
def client(address: Address) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{address.url}/v1", api_key="none", max_retries=0) as found:
        yield found


def alone(address: Address, name: str, prompt: Any, tokens: int = 20, **how: Any) -> Any:
    """Return the text for the same seed without concurrent requests."""
    opened = bundle.load(address.folder / name)
    settings = SamplingSettings(**how)
    [result] = Engine(opened.model, opened.tokenizer).generate(  # type: ignore[arg-type]
        [Request(prompt=prompt, tokens=tokens, settings=settings, alternatives=2)]
    )
    return result


def test_models_are_listed_and_found_by_name(client: Any) -> None:
    assert [model.id for model in client.models.list()] == ["plain", "taught"]
    assert client.models.retrieve("taught").owned_by == "kotha"
    with pytest.raises(openai.NotFoundError, match="this server has no model 'gpt-4'; known: plain, taught"):
        client.models.retrieve("gpt-4")


def test_a_completion_is_what_the_seed_writes_alone(client: Any, address: Address) -> None:
    result = client.completions.create(model="plain", prompt=PROMPT, max_tokens=20, seed=3)
    wanted = alone(address, "plain", PROMPT, seed=3)
    assert result.choices[0].text == wanted.text and result.object == "text_completion"
    assert result.choices[0].finish_reason == ("length" if wanted.stopped == "length" else "stop")
    assert result.usage.prompt_tokens == wanted.prompt_tokens and result.usage.completion_tokens == wanted.tokens
    assert result.usage.total_tokens == wanted.prompt_tokens + wanted.tokens


def test_a_length_of_null_is_the_default(client: Any) -> None:
    kinds: Any = (
        (client.completions, {"prompt": PROMPT}),
        (client.chat.completions, {"messages": [{"role": "user", "content": PROMPT}]}),
    )
    for door, asked in kinds:
        left_out, null = (door.create(model="plain", seed=3, **asked, **how) for how in ({}, {"max_tokens": None}))
        assert null.usage == left_out.usage and null.usage.completion_tokens > 16


def test_many_prompts_and_texts_are_in_order(client: Any, address: Address) -> None:
    ids = bundle.load(address.folder / "plain").tokenizer.encode("মা")  # type: ignore[union-attr]
    result = client.completions.create(model="plain", prompt=[PROMPT, "মা"], max_tokens=8, seed=1, n=2)
    wanted = [alone(address, "plain", prompt, 8, seed=seed) for prompt in (PROMPT, "মা") for seed in (1, 2)]
    assert [choice.text for choice in result.choices] == [each.text for each in wanted]
    assert [choice.index for choice in result.choices] == [0, 1, 2, 3]
    assert result.usage.prompt_tokens == wanted[0].prompt_tokens + wanted[2].prompt_tokens, "a prompt is read once"
    by_ids = client.completions.create(model="plain", prompt=ids, max_tokens=8, seed=1)
    assert by_ids.choices[0].text == alone(address, "plain", tuple(ids), 8, seed=1).text


def test_sampling_settings_have_an_effect(client: Any, address: Address) -> None:
    for how in [
        {"temperature": 0.0},
        {"temperature": 1.5, "top_p": 0.5},
        {"top_k": 3, "min_p": 0.2, "repetition_penalty": 1.5},
    ]:
        ours = {name: how.get(name) for name in ("top_k", "min_p", "repetition_penalty") if name in how}
        theirs = {name: value for name, value in how.items() if name not in ours}
        result = client.completions.create(
            model="plain", prompt=PROMPT, max_tokens=12, seed=5, extra_body=ours, **theirs
        )
        assert result.choices[0].text == alone(address, "plain", PROMPT, 12, seed=5, **how).text, how
    first, second = (client.completions.create(model="plain", prompt=PROMPT, max_tokens=30) for _ in range(2))
    assert first.choices[0].text != second.choices[0].text, "without a seed, another text each time"


def test_probabilities_are_the_models_own(client: Any, address: Address) -> None:
    result = client.completions.create(model="plain", prompt=PROMPT, max_tokens=6, seed=3, logprobs=2).choices[0]
    wanted = alone(address, "plain", PROMPT, 6, seed=3).written
    assert result.logprobs.tokens == [token.text for token in wanted]
    assert np.allclose(result.logprobs.token_logprobs, [token.log_probability for token in wanted])
    assert all(len(others) <= 2 and max(others.values()) <= 0 for others in result.logprobs.top_logprobs)


def test_a_stream_never_splits_a_character_and_is_complete(client: Any) -> None:
    how: dict[str, Any] = {"model": "plain", "prompt": PROMPT, "max_tokens": 60, "seed": 4}
    whole = client.completions.create(**how)
    parts = list(client.completions.create(**how, stream=True, stream_options={"include_usage": True}))
    letters = [part.choices[0].text for part in parts if part.choices]
    assert "".join(letters) == whole.choices[0].text and len(letters) > 10
    shown = PROMPT
    for some in letters:
        assert aksharas(shown + some)[: len(aksharas(shown))] == aksharas(shown) or not some
        shown += some
    assert parts[-1].usage == whole.usage and parts[-1].choices == []
    assert [part.choices[0].finish_reason for part in parts if part.choices][-1] is not None
    several = list(client.completions.create(**how, n=3, stream=True, logprobs=1))
    texts = ["".join(p.choices[0].text for p in several if p.choices[0].index == place) for place in range(3)]
    assert texts == [choice.text for choice in client.completions.create(**how, n=3).choices]
    assert all(part.choices[0].logprobs is not None for part in several)


def test_stop_strings_end_a_text_before_them(client: Any) -> None:
    whole = client.completions.create(model="plain", prompt=PROMPT, max_tokens=60, seed=4).choices[0].text
    stop = aksharas(whole)[len(aksharas(whole)) // 2]
    result = client.completions.create(model="plain", prompt=PROMPT, max_tokens=60, seed=4, stop=[stop]).choices[0]
    assert result.finish_reason == "stop" and stop not in aksharas(result.text) and whole.startswith(result.text)


def test_a_chat_uses_the_models_own_template(client: Any, address: Address) -> None:
    turns = [("system", "সংক্ষেপে বলো।"), ("user", "কেমন আছো?"), ("assistant", "ভালো।"), ("user", PROMPT)]
    messages = [{"role": role, "content": text} for role, text in turns]
    result = client.chat.completions.create(model="taught", messages=messages, max_completion_tokens=20, seed=3)
    tokenizer = bundle.load(address.folder / "taught").tokenizer
    assert tokenizer is not None
    template = ChatTemplate.of(tokenizer)
    assert template is not None
    prompt = tuple(template.prompt(tokenizer, [Turn(*turn) for turn in turns]))
    wanted = alone(address, "taught", prompt, seed=3)
    assert result.choices[0].message.content == wanted.text and result.choices[0].message.role == "assistant"
    assert result.usage.prompt_tokens == len(prompt) and "kotha" not in result.model_extra
    parts = list(
        client.chat.completions.create(model="taught", messages=messages, max_completion_tokens=20, seed=3, stream=True)
    )
    assert "".join(part.choices[0].delta.content or "" for part in parts) == wanted.text
    assert parts[0].choices[0].delta.role == "assistant" and parts[-1].choices[0].finish_reason is not None


def test_a_model_without_chat_training_always_adds_a_remark(client: Any) -> None:
    messages = [{"role": "user", "content": [{"type": "text", "text": PROMPT}]}]
    result = client.chat.completions.create(model="plain", messages=messages, max_tokens=5)
    assert result.model_extra["kotha"]["remark"] == str(NOT_INSTRUCTION_TUNED)
    first = next(iter(client.chat.completions.create(model="plain", messages=messages, max_tokens=5, stream=True)))
    assert first.model_extra["kotha"]["remark"] == str(NOT_INSTRUCTION_TUNED)


def test_the_bundled_model_adds_the_remark() -> None:
    asked = {"model": "box", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 2}
    for url in started(make_app(device="cpu")):
        result = http.post(f"{url}/v1/chat/completions", json=asked, timeout=60).json()
        streamed = http.post(f"{url}/v1/chat/completions", json={**asked, "stream": True}, timeout=60).text
        about = http.get(f"{url}/api/models/box").json()
    assert (
        result["kotha"] == {"remark": str(NOT_INSTRUCTION_TUNED)}
        and streamed.count(str(NOT_INSTRUCTION_TUNED)) == 1
        and not about["supports_chat"]
    )


def test_embeddings_are_the_librarys_own(client: Any, address: Address) -> None:
    texts = [PROMPT, "মা"]
    result = client.embeddings.create(model="plain", input=texts)  # the client asks for base64, and decodes it
    wanted = load(address.folder / "plain", "cpu").embed(texts)
    assert np.allclose([row.embedding for row in result.data], wanted, atol=1e-6)
    plain = client.embeddings.create(model="plain", input=PROMPT, encoding_format="float")
    assert np.allclose(plain.data[0].embedding, wanted[0], atol=1e-6) and plain.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    ("how", "status", "message"),
    [
        ({"model": "plian"}, 404, "did you mean 'plain'?"),
        ({"max_tokens": 4097}, 400, "max_tokens: it must be 4,096 or less"),
        ({"n": 9}, 400, "9 texts are too many for one request; at most 8 are allowed"),
        ({"prompt": ["ক"] * 9}, 400, "prompt: 9 given; give 1 to 8"),
        ({"prompt": []}, 400, "prompt: 0 given"),
        ({"prompt": "নদীর ধারে " * 200}, 400, "this model's context is 64 tokens"),
        ({"prompt": [10**6]}, 400, "token id 1000000 in the prompt is outside the vocabulary"),
        ({"temperature": -1}, 400, "temperature"),
        ({"frequency_penalty": 1}, 400, "frequency_penalty is not supported; remove it"),
        ({"extra_body": {"colour": "red"}}, 400, "colour"),
        ({"stop": [""]}, 400, "an empty stop string"),
        ({"logprobs": 99}, 400, "logprobs: it must be 20 or less"),
        ({"stop": ["ক"] * 17}, 400, "it has more than 16 items"),
    ],
)
def test_unsupported_requests_are_rejected_with_a_message(
    client: Any, how: dict[str, Any], status: int, message: str
) -> None:
    with pytest.raises(openai.APIStatusError) as caught:
        client.completions.create(**{"model": "plain", "prompt": PROMPT, "max_tokens": 3, **how})
    assert caught.value.status_code == status, caught.value
    assert message in caught.value.message and caught.value.body["message"] in caught.value.message


def test_concurrent_clients_get_the_same_texts_as_alone(address: Address) -> None:
    async def all_at_once() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{address.url}/v1", api_key="none", max_retries=0) as client:
            asked = [
                client.completions.create(model="plain", prompt=PROMPT, max_tokens=5 + seed, seed=seed)
                for seed in range(24)  # three times the rows
            ]
            return [said.choices[0].text for said in await asyncio.gather(*asked)]

    texts = asyncio.run(all_at_once())
    assert texts == [alone(address, "plain", PROMPT, 5 + seed, seed=seed).text for seed in range(24)]


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (["a"] * 10_000, "prompt: it has more than 4,096 items"),
        ([3, -1], "prompt: -1 is not a token id"),
        ([[3], [-1]], "prompt: -1 is not a token id"),
        ([1, "a"], "prompt: it mixes strings, token ids and lists"),
        ([[1], "a"], "prompt: it mixes"),
        ([True, False], "prompt: it must be a string, a list of strings, a list of token ids"),
        ([[True]], "prompt: it must be a string, a list"),
        ([["a"]], "prompt: it must be a string, a list"),
        (5, "prompt: it must be a string, a list"),
        (None, "prompt: it must be a string, a list"),
    ],
)
def test_an_invalid_prompt_has_its_own_message(address: Address, prompt: Any, message: str) -> None:
    answer = http.post(f"{address.url}/v1/completions", json={"model": "plain", "prompt": prompt})
    assert answer.status_code == 400 and answer.json()["error"]["message"].startswith(message), answer.text


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"stop": "y" * 1001}, "stop.0: it is longer than 1,000 characters"),
        ({"stop": ["a"] * 17}, "stop: it has more than 16 items"),
        ({"seed": -1}, "seed: it must be 0 or more"),
    ],
)
def test_an_invalid_field_has_its_own_message(address: Address, asked: Any, message: str) -> None:
    answer = http.post(f"{address.url}/v1/completions", json={"model": "plain", "prompt": "a", **asked})
    assert answer.status_code == 400 and answer.json()["error"]["message"].startswith(message), answer.text
