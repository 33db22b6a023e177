"""The lens: each layer's prediction, compared with a few lines of torch."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from tests.inside.small_models import BODIES, small
from tests.inside.test_attention import HOSTILE, data_in, input_of

from kotha.artifacts.model_folder import Bundle
from kotha.errors import UsageError
from kotha.inside.lens import lens, lens_view

SPEAKING = [body for body in BODIES if body != "vit"]


@pytest.mark.parametrize("body", SPEAKING)
def test_the_last_layer_equals_the_model(body: str) -> None:
    model, given = small(body).model, input_of(body)
    with torch.no_grad():
        output: Any = model(*given.inputs)
    own = (output if isinstance(output, torch.Tensor) else output.token_logits)[0].softmax(-1)
    last = lens(model, given).layers[-1].positions
    for place, prediction in enumerate(last):
        best, ids = own[place].topk(5)
        assert [each.id for each in prediction.best] == ids.tolist()
        torch.testing.assert_close(
            torch.tensor([each.probability for each in prediction.best]), best, atol=1e-6, rtol=0
        )
        assert prediction.rank_of_answer == 1 and prediction.kl_nats == pytest.approx(0, abs=2e-6)


@pytest.mark.parametrize("body", ["gpt", "gpt-grouped", "gpt-post"])
def test_every_layer_equals_the_truncated_model(body: str) -> None:
    model, given = small(body).model, input_of(body)
    tokens = given.inputs[0]
    found = lens(model, given)
    assert [each.layer for each in found.layers] == ["embedding", "blocks.0", "blocks.1"]
    with torch.no_grad():
        final = model(tokens)[0].double().softmax(-1)
        places = torch.arange(tokens.shape[1])
        x = model.positions(model.tokens(tokens), places)
        for depth in range(3):
            result = model.head(model.stack.norm(x))[0].double().softmax(-1)
            for place, prediction in enumerate(found.layers[depth].positions):
                row, end = result[place], final[place]
                best = prediction.best[0]
                assert (best.id, best.probability) == (int(row.argmax()), pytest.approx(float(row.max()), abs=1e-6))
                assert prediction.rank_of_answer == row.argsort(descending=True).tolist().index(int(end.argmax())) + 1
                assert prediction.probability_of_answer == pytest.approx(float(row[end.argmax()]), abs=2e-6)
                kl = torch.nn.functional.kl_div(row.log(), end, reduction="sum")
                assert prediction.kl_nats == pytest.approx(float(kl), abs=1e-4)
                entropy = torch.distributions.Categorical(probs=row).entropy()
                assert prediction.entropy_nats == pytest.approx(float(entropy), abs=1e-4)
            if depth < 2:
                x = model.stack.blocks[depth](x, "causal", model.positions.rotation(places))


def test_a_vit_is_rejected() -> None:
    with pytest.raises(UsageError, match="a ViT predicts classes"):
        lens_view(Bundle(small("vit").model, None), input_of("vit"))


def test_json_and_page_have_the_same_data() -> None:
    view = lens_view(small("bert"), input_of("bert"))
    row = json.loads(json.dumps(view.to_dict()))
    assert row["question"] == "which word is here" and row["layers"] == data_in(view.html)["layers"]
    assert row["layers"][1]["positions"][0]["best"][0]["id"] == view.found.layers[1].positions[0].best[0].id
    hostile = replace(input_of("bert"), spell=lambda token: f"{HOSTILE}{token}", title=HOSTILE)
    html = lens_view(small("bert"), hostile).html
    assert data_in(html)["layers"][1]["positions"][0]["best"][0]["text"].startswith(HOSTILE)
    assert HOSTILE not in html and html.count("</script>") == 3
