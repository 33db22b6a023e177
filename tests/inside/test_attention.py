"""Attention maps: the page has the traced weights, and text cannot inject markup."""

import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import torch
from tests.inside.small_models import BODIES, TEXT, small

from kotha.errors import UsageError
from kotha.inside import attention as module
from kotha.inside.attention import STEPS, AttentionMaps, attention_maps, attention_view, summarize
from kotha.inside.hook_points import choose_layers
from kotha.inside.inputs import ModelInput, Piece, read, read_image
from kotha.inside.trace import trace
from kotha.model.pruning import remove_heads

HOSTILE = "</script><b>কথা</b>&\u2028<!--"


def input_of(body: str, **more: Any) -> ModelInput:
    bundle = small(body)
    if body == "vit":
        return read_image(bundle.model, torch.linspace(-1, 1, 64).reshape(1, 8, 8))
    target = {"target": "আজ মেলা হবে"} if body.startswith("seq2seq") else {}
    return read(bundle.model, bundle.tokenizer, TEXT, **target, **more)


def maps_of(body: str) -> AttentionMaps:
    return attention_maps(small(body).model, input_of(body))


def page_of(body: str, given: ModelInput | None = None, model: Any = None) -> str:
    bundle = small(body) if model is None else replace(small(body), model=model)
    return attention_view(bundle, input_of(body) if given is None else given).html


def data_in(html: str) -> Any:
    (held,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(held)["data"]


@pytest.mark.parametrize("body", BODIES)
def test_the_page_holds_the_traced_weights(body: str) -> None:
    model, given = small(body).model, input_of(body)
    with trace(model, hook_points=["*.weights"]) as seen, torch.no_grad():
        model(*given.inputs)
    data = data_in(page_of(body))
    assert [f"{each['name']}.weights" for each in data["maps"]] == list(seen)
    for each in data["maps"]:
        stored = np.frombuffer(base64.b64decode(each["weights"]), "<u2").reshape(each["shape"]) / STEPS
        traced = seen[f"{each['name']}.weights"][0].numpy()
        assert np.abs(stored - traced).max() <= 0.5 / STEPS + 1e-7
        assert np.abs(stored.sum(-1) - 1).max() <= stored.shape[-1] / STEPS
        assert stored.shape[1:] == (len(data["lines"][each["queries"]]), len(data["lines"][each["keys"]]))
        if each["causal"]:
            assert not np.triu(stored, 1).any()


@pytest.mark.parametrize("body", BODIES)
def test_only_masked_attention_is_called_causal(body: str) -> None:
    maps = maps_of(body).maps
    causal = {each.name for each in maps if each.causal}
    expected = {
        "gpt": {"blocks.0.attention", "blocks.1.attention"},
        "seq2seq": {"decoder.0.attention", "decoder.1.attention"},
    }.get(body.split("-")[0], set())
    assert causal == expected
    assert all(bool(each.weights.triu(1).any()) for each in maps if each.name not in causal)


@pytest.mark.parametrize("body", ["gpt", "gpt-grouped", "bert", "seq2seq"])
def test_the_other_mask_uses_the_same_queries_and_keys(body: str) -> None:
    model, given = small(body).model, input_of(body)
    with trace(model) as seen, torch.no_grad():
        model(*given.inputs)
    for each in attention_maps(model, given).maps:
        if each.queries != each.keys:
            assert each.other is None
            continue
        scores = seen[f"{each.name}.scores"][0].double().numpy()
        hidden = np.triu(np.ones(scores.shape[-2:], bool), 1) & (not each.causal)
        grown = np.where(hidden, 0, np.exp(scores - scores.max(-1, keepdims=True)))
        assert each.other is not None
        np.testing.assert_allclose(each.other, grown / grown.sum(-1, keepdims=True), atol=1e-6)


def test_an_image_has_no_other_mask() -> None:
    assert all(each.other is None for each in maps_of("vit").maps)
    data = data_in(page_of("vit"))
    assert (data["grid"], data["image"]["width"]) == ([2, 2], 8)
    pixels = np.frombuffer(base64.b64decode(data["image"]["pixels"]), np.uint8).reshape(8, 8, 3)
    assert np.abs(pixels[..., 1] - np.linspace(0, 255, 64).reshape(8, 8)).max() <= 0.51


def test_each_step_refers_to_the_row_it_was_generated_from() -> None:
    bundle = small("gpt")
    model, tokenizer = bundle.model, bundle.tokenizer

    def greedy(ids: list[int]) -> list[int]:
        line = list(ids)
        with torch.no_grad():
            for _ in range(5):
                line.append(int(model(torch.tensor([line]))[0, -1].argmax()))
        return line[len(ids) :]

    given = read(model, tokenizer, TEXT, write=greedy)
    maps = attention_maps(model, given)
    ids = [piece.id for piece in given.lines["tokens"]]
    first = given.written_from
    assert first is not None and [step.row for step in maps.steps] == list(range(first - 1, first + 4))
    for step in maps.steps:
        with trace(model, hook_points=["*.weights", "logits"]) as seen, torch.no_grad():
            model(torch.tensor([ids[: step.row + 1]]))
        for each in maps.maps:
            alone = seen[f"{each.name}.weights"][0, :, -1]
            torch.testing.assert_close(each.weights[:, step.row, : step.row + 1], alone, atol=1e-6, rtol=1e-5)
        chances = seen["logits"][0, -1].softmax(-1)
        assert step.token == ids[step.row + 1] == step.best[0].id == int(chances.argmax())
        assert step.probability == pytest.approx(float(chances.max()), abs=1e-6)
    data = data_in(page_of("gpt", given))
    assert [step["best"][0]["id"] for step in data["steps"]] == ids[first:]


class Tags(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]


def test_a_hostile_token_stays_text() -> None:
    given = input_of("gpt")
    lines = {"tokens": (Piece(HOSTILE, 1), *given.lines["tokens"][1:])}
    html = page_of("gpt", replace(given, lines=lines, remarks=(HOSTILE,), title=HOSTILE))
    tags = Tags()
    tags.feed(html)
    assert "b" not in tags.found and tags.found.count("script") == 3 and tags.links == []
    assert data_in(html)["lines"]["tokens"][0]["text"] == HOSTILE
    markup = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"https?://|@import|url\((?!data:)", markup)
    assert "default-src 'none'" in html and "unsafe" not in markup, "only scripts with a listed hash can run"


def test_a_head_summary_matches_manual_computation() -> None:
    each = maps_of("gpt").maps[0]
    summary = summarize(each)[2]
    weights = each.weights[2].double().numpy()
    assert summary.on_itself == pytest.approx(np.diag(weights).mean())
    assert summary.on_previous == pytest.approx(np.diag(weights, -1).mean())
    assert summary.on_first == pytest.approx(weights[1:, 0].mean())
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
    assert summary.entropy_bits == pytest.approx(-(weights * logs).sum(-1).mean(), abs=1e-6)
    query, key, share = summary.looks[0]
    assert share == pytest.approx(weights[1:].max()) and weights[query, key] == pytest.approx(share)


def test_zero_weights_are_not_listed() -> None:
    weights = torch.tensor([[[1.0, 0.0], [0.25, 0.75]]])
    two_tokens = replace(maps_of("gpt").maps[0], heads=(0,), weights=weights)
    (summary,) = summarize(two_tokens)
    assert summary.looks == ((1, 1, 0.75), (1, 0, 0.25))


def test_layers_are_chosen_by_number_or_name() -> None:
    model = small("seq2seq").model
    assert choose_layers(model, []) is None
    assert choose_layers(model, ["0"]) == ["encoder.0", "decoder.0"]
    chosen = attention_maps(model, input_of("seq2seq"), ["decoder.1"])
    assert [each.name for each in chosen.maps] == ["decoder.1.attention", "decoder.1.cross"]
    with pytest.raises(UsageError, match="this model has no layer '7'; known: decoder"):
        attention_maps(model, input_of("seq2seq"), choose_layers(model, ["7"]))
    with pytest.raises(UsageError, match=r"did you mean 'decoder\.1'"):
        attention_maps(model, input_of("seq2seq"), ["decodr.1"])


def test_too_many_weights_are_rejected_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WEIGHTS", 100)
    with pytest.raises(UsageError, match=r"weights exceed the limit of 100 per page; use a shorter text"):
        maps_of("gpt")


def test_heads_keep_their_numbers_after_pruning() -> None:
    model = remove_heads(small("gpt").model, ["blocks.0.attention.1"])
    found = attention_maps(model, input_of("gpt"))
    assert found.maps[0].heads == (0, 2, 3) and found.maps[0].weights.shape[0] == 3
    assert [summary.head for summary in summarize(found.maps[0])] == [0, 2, 3]
    assert data_in(page_of("gpt", model=model))["maps"][0]["heads"] == [0, 2, 3]
