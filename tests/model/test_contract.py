"""Properties of every family: it compiles to one graph, trains, reloads bit for bit, and rejects invalid input."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kotha.artifacts import model_folder as bundle
from kotha.errors import UsageError
from kotha.model.bert import BERTOutput
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import Model, build
from kotha.model.presets import MODERN

SIZES: dict[str, Any] = {"d_model": 16, "n_heads": 4, "n_layers": 2}
TEXT: dict[str, Any] = {**SIZES, "vocab_size": 30, "context_length": 10}
CONFIGS: dict[str, ModelConfig] = {
    "gpt classic": GPTConfig(**TEXT, dropout=0.1, attention_dropout=0.1),
    "gpt modern": GPTConfig(**TEXT, **MODERN, n_kv_heads=2),
    "bert": BERTConfig(**TEXT),
    "seq2seq": Seq2SeqConfig(**TEXT),
    "vit": ViTConfig(**SIZES, image_size=12, patch_size=4, n_classes=5),
}
FAMILIES = pytest.mark.parametrize("name", CONFIGS)
# torch's warning on processors without bfloat16
pytestmark = pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")


def example(config: ModelConfig) -> list[Tensor]:
    """Inputs for a model of this config, with padding if it supports any."""
    if isinstance(config, ViTConfig):
        return [torch.randn(2, 3, 12, 12)]
    tokens = torch.randint(30, (2, 9))
    real = torch.ones(2, 9, dtype=torch.bool)
    real[1, 6:] = False
    second = {"gpt": [], "bert": [torch.randint(2, (2, 9))], "seq2seq": [torch.randint(30, (2, 7))]}
    return [tokens, *second[config.family], real]


def answers(output: Tensor | BERTOutput) -> Tensor:
    """All outputs of a model, concatenated."""
    parts = output if isinstance(output, tuple) else (output,)
    return torch.cat([part.flatten() for part in parts])


def made(name: str, **sizes: Any) -> tuple[Model, list[Tensor]]:
    torch.manual_seed(0)
    model = build(CONFIGS[name].replace(**sizes))
    return model, example(CONFIGS[name])


def compiled_and_plain(name: str, n_layers: int, **options: Any) -> tuple[Tensor, Tensor]:
    """The outputs of a model compiled as one graph, and of the uncompiled model."""
    torch._dynamo.reset()
    model, inputs = made(name, n_layers=n_layers)
    model.eval()
    expected = answers(model(*inputs))
    result = answers(torch.compile(model, fullgraph=True, **options)(*inputs))
    result.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters() if weight.requires_grad), "all have a slope"
    return result, expected


@FAMILIES
def test_every_family_is_one_graph(name: str) -> None:
    # If a graph breaks, it breaks in the first layer; every further layer would take more time to compile.
    compiled, plain = compiled_and_plain(name, n_layers=1, backend="aot_eager")
    torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@FAMILIES
@pytest.mark.filterwarnings("ignore")  # warnings from the compiler's imports
def test_every_family_compiles(name: str) -> None:
    compiled, plain = compiled_and_plain(name, n_layers=2)
    torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)


@FAMILIES
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_family_trains_a_step(name: str, dtype: torch.dtype) -> None:
    model, inputs = made(name)
    model = model.to(dtype).train()
    inputs = [each.to(dtype) if each.is_floating_point() else each for each in inputs]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(1)
    goal = torch.randn_like(answers(model(*inputs)))
    losses = []
    for _ in range(8):
        optimizer.zero_grad()
        loss = (answers(model(*inputs)) - goal).square().mean()
        loss.backward()
        missing = [weight for weight, parameter in model.named_parameters() if parameter.grad is None]
        assert not missing
        assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
        optimizer.step()
        losses.append(loss.item())
    assert min(losses[1:]) < losses[0]


@FAMILIES
def test_every_family_trains_under_autocast(name: str) -> None:
    model, inputs = made(name)
    expected = answers(model.eval()(*inputs))
    with torch.autocast("cpu", torch.bfloat16):
        result = answers(model(*inputs))
    result.float().sum().backward()
    assert (result.float() - expected).abs().max() < 0.1


@FAMILIES
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_family_reloads_bit_for_bit(name: str, dtype: torch.dtype, tmp_path: Path) -> None:
    model, inputs = made(name)
    model = model.to(dtype).eval()
    inputs = [each.to(dtype) if each.is_floating_point() else each for each in inputs]
    bundle.save(tmp_path / "model", model)
    back = bundle.load(tmp_path / "model").model
    assert type(back) is type(model)
    assert back.config == model.config
    assert not back.training
    weights = model.state_dict()
    assert {key: tensor.dtype for key, tensor in back.state_dict().items()} == dict.fromkeys(weights, dtype)
    assert all(torch.equal(tensor, weights[key]) for key, tensor in back.state_dict().items())
    assert torch.equal(answers(back(*inputs)), answers(model(*inputs)))
    tied = [(n, p.data_ptr()) for n, p in back.named_parameters(remove_duplicate=False)]
    assert len({pointer for _, pointer in tied}) == len(list(model.parameters()))


@FAMILIES
def test_a_copy_keeps_tied_weights_tied(name: str) -> None:
    model, _ = made(name)
    assert len(list(copy.deepcopy(model).parameters())) == len(list(model.parameters()))


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(UsageError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("name", ["gpt classic", "gpt modern", "bert"])
def test_tokens_and_positions_out_of_range_are_refused(name: str) -> None:
    model, _ = made(name)
    beyond, below, long = torch.tensor([[3, 30]]), torch.tensor([[-1]]), torch.zeros(1, 11, dtype=torch.long)
    words = (
        "token id 30 is out of range: the vocabulary has 30 entries, 0 to 29; "
        "was the text encoded with another tokenizer?"
    )
    assert refused(lambda: model(beyond)) == words
    assert refused(lambda: model(below)).startswith("token id -1 is out of range")
    assert refused(lambda: model(long)) == (
        "11 tokens exceed context_length=10; pass the last 10, or train with a longer context"
    )


def test_both_sides_of_a_translation_are_checked() -> None:
    model, _ = made("seq2seq")
    good, bad = torch.zeros(1, 3, dtype=torch.long), torch.full((1, 3), 99)
    assert "token id 99" in refused(lambda: model(bad, good))
    assert "token id 99" in refused(lambda: model(good, bad))
    assert "11 tokens" in refused(lambda: model(good, torch.zeros(1, 11, dtype=torch.long)))


def test_a_segment_out_of_range_is_refused() -> None:
    model, _ = made("bert")
    assert "segment id 2 is out of range: the segment table has 2 entries" in refused(
        lambda: model(torch.tensor([[1]]), torch.tensor([[2]]))
    )


def test_checks_cost_compiled_code_nothing() -> None:
    model, inputs = made("gpt classic")
    graphs: list[Any] = []

    def look(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    torch.compile(nn.Module.eval(model), backend=look, fullgraph=True)(inputs[0])
    assert len(graphs) == 1
    assert "aminmax" not in graphs[0].code
