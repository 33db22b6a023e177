"""The flow: stations in the order of computation, with the same figures as in NumPy."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.inside.small_models import BODIES, small
from tests.inside.test_attention import HOSTILE, data_in, input_of

from kotha.inside.flow import Flow, flow, flow_view
from kotha.inside.inputs import read
from kotha.inside.trace import trace
from kotha.report.built import words

PRE = ["attention_norm", "attention", "residual_mid", "feedforward_norm", "feedforward", "residual_out"]
POST = ["attention", "attention_norm", "feedforward", "feedforward_norm"]


def found_of(body: str) -> Flow:
    return flow(small(body).model, input_of(body))


@pytest.mark.parametrize(("body", "order"), [("gpt", PRE), ("gpt-post", POST), ("bert", POST), ("vit", PRE)])
def test_stations_are_in_order_of_computation(body: str, order: list[str]) -> None:
    places = [station.hook_point for station in found_of(body).stations]
    layers = [f"blocks.{layer}.{place}" for layer in (0, 1) for place in order]
    start = places.index(layers[0])
    assert places[start : start + len(layers)] == layers
    assert places[-2:] == ["logits", "probabilities"]


def test_a_decoder_also_looks_at_the_source() -> None:
    post, pre = (
        [station for station in found_of(body).stations if station.layer == "decoder.0"]
        for body in ("seq2seq", "seq2seq-pre")
    )
    assert [each.label for each in post[::2]] == ["attention", "attention to the source", "feed-forward"]
    assert len(post[2].norms) == len(input_of("seq2seq").lines["target"])
    assert [each.kind for each in pre] == ["norm", "part", "sum"] * 3


@pytest.mark.parametrize("body", BODIES)
def test_figures_match_the_trace(body: str) -> None:
    model, given = small(body).model, input_of(body)
    with trace(model) as seen, torch.no_grad():
        model(*given.inputs)
    checked = 0
    for station in flow(model, given).stations:
        if station.hook_point not in seen or len(seen.passes(station.hook_point)) > 1:
            continue
        values = np.atleast_2d(seen[station.hook_point][0].double().numpy())
        assert station.shape == values.shape
        figures = [values.mean(), values.std(), values.min(), values.max()]
        np.testing.assert_allclose(
            [station.mean, station.std, station.low, station.high], figures, rtol=1e-9, atol=1e-12
        )
        np.testing.assert_allclose(station.norms, np.linalg.norm(values, axis=-1), rtol=1e-9)
        checked += 1
        if station.entropies:
            weights = seen[f"{station.hook_point}.weights"][0].double().numpy()
            logs = np.log2(weights, out=np.zeros_like(weights), where=weights > 0)
            np.testing.assert_allclose(list(station.entropies.values()), -(weights * logs).sum(-1).mean(-1), rtol=1e-6)
    assert checked >= 8


@pytest.mark.parametrize("body", BODIES)
def test_the_answer_equals_the_model_output(body: str) -> None:
    model, given = small(body).model, input_of(body)
    with torch.no_grad():
        output = model(*given.inputs)
    (answer,) = flow(model, given).answers
    logits = output[0] if body == "vit" else output.token_logits[0, -2] if body == "bert" else output[0, -1]
    best, ids = logits.softmax(-1).topk(len(answer.best))
    assert [each.id for each in answer.best] == ids.tolist()
    np.testing.assert_allclose([each.probability for each in answer.best], best, atol=1e-6)


def test_a_bert_answers_at_each_mask() -> None:
    bundle = small("bert")
    found = flow(bundle.model, read(bundle.model, bundle.tokenizer, "আজ [MASK] হবে [MASK]"))
    assert len(found.answers) == 2 and "[MASK]" in str(found.answers[0].question)


@pytest.mark.parametrize("body", BODIES)
def test_the_page_has_every_station_and_escapes_text(body: str) -> None:
    view = flow_view(small(body), replace(input_of(body), title=HOSTILE))
    assert HOSTILE not in view.html and view.html.count("</script>") == 3
    stations = data_in(view.html)["stations"]
    assert [each["hook_point"] for each in stations] == [station.hook_point for station in view.found.stations]
    assert len(view.found.table().cells) == len(stations)
    assert json.loads(json.dumps(view.to_dict()))["family"] == view.found.family


@pytest.mark.parametrize("body", BODIES)
def test_every_station_label_is_bilingual(body: str) -> None:
    known = words("flow")
    missing = {station.label for station in found_of(body).stations}
    assert not {label for label in missing if f"label.{label}" not in known}
