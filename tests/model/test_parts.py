"""Positions, norms, feed-forwards and initialization."""

import math

import pytest
import torch
from torch import nn

from kotha.model.config import BlockConfig, GPTConfig, Positions
from kotha.model.family import build
from kotha.model.feedforward import SwiGLU, make_feedforward
from kotha.model.initialization import initialize, residual_writers
from kotha.model.norm import RMSNorm, make_norm, rms_norm
from kotha.model.position import HalvesPositions, RotaryPositions, SinusoidalPositions, make_positions, rotate
from kotha.model.presets import preset


def test_sinusoidal_positions_are_the_papers_formula() -> None:
    d_model, table = 6, SinusoidalPositions()(torch.zeros(1, 500, 6), torch.arange(500))[0]
    for position in (0, 1, 7, 499):
        for i in range(d_model // 2):
            angle = position / 10_000 ** (2 * i / d_model)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_halves_are_the_same_waves_in_another_order() -> None:
    x, positions = torch.zeros(1, 9, 8), torch.arange(9)
    interleaved, halves = SinusoidalPositions()(x, positions), HalvesPositions()(x, positions)
    assert torch.equal(halves, torch.cat((interleaved[..., 0::2], interleaved[..., 1::2]), dim=-1))


def test_a_rotated_query_meets_a_rotated_key_by_their_distance_alone() -> None:
    torch.manual_seed(0)
    rotary = RotaryPositions(8, 10_000)
    q, k = torch.randn(1, 1, 1, 8, dtype=torch.float64), torch.randn(1, 1, 1, 8, dtype=torch.float64)

    def score(at: int, to: int) -> float:
        turned = [rotate(x, rotary.rotation(torch.tensor([place]))) for x, place in ((q, at), (k, to))]
        return (turned[0] @ turned[1].mT).item()

    assert score(3, 1) == pytest.approx(score(12, 10), abs=1e-5)
    assert score(3, 1) != pytest.approx(score(3, 2), abs=1e-3)
    assert score(0, 0) == pytest.approx((q @ k.mT).item(), abs=1e-12)


def test_positions_can_differ_from_row_to_row() -> None:
    torch.manual_seed(0)
    one, two = torch.arange(4), torch.arange(3, 7)
    both = torch.stack((one, two))
    kinds: list[Positions] = ["learned", "sinusoidal", "sinusoidal-halves", "rotary", "none"]
    for kind in kinds:
        config = GPTConfig(d_model=8, n_heads=2, n_layers=1, vocab_size=5, context_length=8, positions=kind)
        positions, x = make_positions(config), torch.randn(2, 4, 8)
        together = positions(x, both)
        assert torch.equal(together[0], positions(x, one)[0])
        assert torch.equal(together[1], positions(x, two)[1])
        rotation, apart = positions.rotation(both), positions.rotation(two)
        if kind == "rotary":
            assert rotation is not None
            assert apart is not None
            heads = torch.randn(2, 2, 4, 4)
            assert torch.equal(rotate(heads, rotation)[1], rotate(heads, apart)[1])
        else:
            assert rotation is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_fused_rms_norm_is_the_readable_one(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    norm, x = RMSNorm(16, 1e-6).to(dtype), torch.randn(3, 16, dtype=dtype)
    nn.init.normal_(norm.weight)
    torch.testing.assert_close(norm(x), rms_norm(x, norm.weight, 1e-6))


def test_parts_are_what_the_config_names() -> None:
    config = BlockConfig(d_model=8, n_heads=2, norm="rms", activation="swiglu", feedforward_bias=False)
    assert isinstance(make_norm(config), RMSNorm)
    feedforward = make_feedforward(config)
    assert isinstance(feedforward, SwiGLU)
    x = torch.randn(1, 3, 8)
    gate = x @ feedforward.gate.weight.mT
    expected = (gate * gate.sigmoid() * (x @ feedforward.up.weight.mT)) @ feedforward.down.weight.mT
    torch.testing.assert_close(feedforward(x), expected)


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu-tanh"])
def test_each_activation_is_its_formula(activation: str) -> None:
    x = torch.linspace(-3, 3, 13)
    tanh = 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    formulas = {"relu": x.clamp(min=0), "gelu": 0.5 * x * (1 + torch.erf(x / math.sqrt(2))), "gelu-tanh": tanh}
    feedforward = make_feedforward(BlockConfig(d_model=8, n_heads=2, activation=activation))  # type: ignore[arg-type]
    torch.testing.assert_close(feedforward.get_submodule("activation")(x), formulas[activation])


def test_weights_start_as_documented() -> None:
    torch.manual_seed(0)
    classic = build(preset("bangla-58m").replace(vocab_size=2000, n_layers=2))
    writers = residual_writers(classic)
    assert len(writers) == 4
    for module in classic.modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            std = 0.02 / math.sqrt(4) if module in writers else 0.02
            assert module.weight.std().item() == pytest.approx(std, rel=0.05)
        if isinstance(module, nn.Linear) and module.bias is not None:
            assert (module.bias == 0).all()


def test_a_model_given_memory_later_starts_the_same_way() -> None:
    for name in ("mini", "pocket"):
        config = preset(name)
        model = build(config, "meta").to_empty(device="cpu")
        for parameter in model.parameters():
            nn.init.constant_(parameter, math.nan)
        torch.manual_seed(0)
        initialize(model, config)
        assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_the_weights_of_2017_keep_the_size_of_what_they_are_given() -> None:
    torch.manual_seed(0)
    model = build(preset("transformer-base").replace(vocab_size=500, n_layers=1, n_decoder_layers=1))
    assert model.get_parameter("tokens.weight").std().item() == pytest.approx(512**-0.5, rel=0.05)
    up = model.get_parameter("encoder.blocks.0.feedforward.up.weight")
    bound = math.sqrt(6 / (512 + 2048))
    assert bound * 0.99 <= up.abs().max().item() <= bound


@pytest.mark.parametrize("name", ["pocket", "char", "bangla-58m", "bangla-modern"])
def test_an_untrained_model_knows_nothing(name: str) -> None:
    torch.manual_seed(0)
    config = preset(name)
    config = config.replace(n_layers=2, vocab_size=1000)
    model = build(config).eval()
    tokens = torch.randint(1000, (2, 33))
    loss = nn.functional.cross_entropy(model(tokens)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    assert loss.item() == pytest.approx(math.log(1000), abs=0.3)
