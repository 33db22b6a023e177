"""The chunked losses compared with ``F.cross_entropy`` on all logits."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from kotha.model import loss
from kotha.model import loss as module
from kotha.model.loss import next_token_loss, token_losses


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loss, "CHUNK_LOGITS", 100)
        yield


def plain(hidden: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None, smoothing: float) -> Tensor:
    logits = functional.linear(hidden, weight, bias)
    return functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=smoothing)


def chosen(hidden: Tensor, weight: Tensor, targets: Tensor, bias: Tensor | None, smoothing: float) -> Tensor:
    return next_token_loss(hidden, weight, targets, bias, label_smoothing=smoothing)


def inputs(seed: int, n_batch: int = 3, n_tokens: int = 7, with_bias: bool = True) -> list[Tensor | None]:
    torch.manual_seed(seed)
    bias = torch.randn(30, requires_grad=True) if with_bias else None
    hidden = torch.randn(n_batch, n_tokens, 8, requires_grad=True)
    weight = torch.randn(30, 8, requires_grad=True)
    targets = torch.randint(30, (n_batch, n_tokens)).masked_fill(torch.rand(n_batch, n_tokens) < 0.2, -100)
    targets[0, 0] = 5
    return [hidden, weight, targets, bias]


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    smoothing=st.sampled_from([0.0, 0.1]),
    with_bias=st.booleans(),
    n_tokens=st.integers(1, 9),
    seed=st.integers(0, 1000),
)
def test_chunks_change_neither_loss_nor_gradients(smoothing: float, with_bias: bool, n_tokens: int, seed: int) -> None:
    one, two = (inputs(seed, n_tokens=n_tokens, with_bias=with_bias) for _ in range(2))
    expected, result = plain(*one, smoothing), chosen(*two, smoothing)  # type: ignore[arg-type]
    assert abs(result.item() - expected.item()) <= 1e-6 * max(1, expected.item())
    (3 * expected).backward()
    (3 * result).backward()
    for mine, other in zip(two, one, strict=True):
        if mine is not None and mine.requires_grad:
            assert other is not None
            torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-6)


def test_no_gradients_are_computed_without_a_backward_pass() -> None:
    values = inputs(0)
    with torch.no_grad():
        assert not chosen(*values, 0.0).requires_grad
        torch.testing.assert_close(chosen(*values, 0.0), plain(*values, 0.0))  # type: ignore[arg-type]


def test_losses_per_token() -> None:
    hidden, weight, targets, bias = inputs(0)
    assert hidden is not None
    assert weight is not None
    assert targets is not None
    losses = token_losses(hidden, weight, targets, bias)
    assert losses.shape == targets.shape
    counted = targets != -100
    torch.testing.assert_close(losses[counted].mean(), plain(hidden, weight, targets, bias, 0.0).detach())
    assert (losses[~counted] == 0).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.filterwarnings("ignore:mkldnn_matmul failed")  # torch's warning on processors without bfloat16
def test_under_autocast_the_head_is_used_in_its_type(smoothing: float) -> None:
    one, two = inputs(0), inputs(0)
    with torch.autocast("cpu", torch.bfloat16):
        expected, result = plain(*one, smoothing), chosen(*two, smoothing)  # type: ignore[arg-type]
    assert result.dtype == torch.float32
    assert abs(result.item() - expected.item()) < 0.02
    result.backward()
    weight = two[1]
    assert weight is not None
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # from torch's tracing
def test_the_chunked_loss_compiles_to_one_graph() -> None:
    compiled = torch.compile(lambda *values: next_token_loss(*values), fullgraph=True, backend="aot_eager")
    one, two = inputs(0), inputs(0)
    expected, result = plain(*one, 0.0), compiled(*two)  # type: ignore[arg-type]
    torch.testing.assert_close(result, expected)
    expected.backward()
    result.backward()
    for ours, theirs in zip(two, one, strict=True):
        assert ours is not None and theirs is not None
        torch.testing.assert_close(ours.grad, theirs.grad)


@pytest.mark.parametrize("way", [module.loss_and_gradient, module._in_place])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_padding_rows_of_the_head_change_nothing(way: Any, smoothing: float) -> None:
    """A head padded for a GPU: the logits of the padding rows are ignored."""
    torch.manual_seed(0)
    logits, target, scale = torch.randn(6, 11), torch.randint(0, 11, (6, 1)), torch.full((6, 1), 1 / 6)
    filled = torch.cat([logits, torch.full((6, 5), 40.0)], dim=1)
    loss, slope = way(filled.clone(), target, [1.0], scale, smoothing, 11)
    expected, slopes = way(logits.clone(), target, [1.0], scale, smoothing, 11)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(slope, torch.nn.functional.pad(slopes, (0, 5)))
    reference = torch.nn.functional.cross_entropy(logits, target[:, 0], label_smoothing=smoothing)
    torch.testing.assert_close(loss, reference)


@pytest.mark.parametrize("way", [module.loss_and_gradient, module._in_place])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_sampled_tokens_are_a_share_of_the_target(monkeypatch: pytest.MonkeyPatch, way: Any, smoothing: float) -> None:
    """The loss and its gradients equal torch's cross-entropy with the mixture as the target distribution."""
    monkeypatch.setattr(module, "_in_place", way)
    monkeypatch.setattr(module, "CHUNK_LOGITS", 40)  # several chunks
    torch.manual_seed(0)
    rows, head = torch.randn(2, 5, 4, requires_grad=True), torch.randn(11, 4, requires_grad=True)
    targets, sampled = torch.randint(0, 11, (2, 5)), torch.randint(0, 11, (2, 5, 3))
    targets[1, 2] = module.IGNORED
    found = next_token_loss(rows, head, targets, label_smoothing=smoothing, sampled=sampled, sampled_share=0.4)
    kept = targets != module.IGNORED
    mixture = 0.6 * functional.one_hot(targets[kept], 11) + 0.4 * functional.one_hot(sampled[kept], 11).float().mean(1)
    expected = functional.cross_entropy((rows @ head.T)[kept], mixture, label_smoothing=smoothing)
    torch.testing.assert_close(found, expected)
    for mine, theirs in zip(
        torch.autograd.grad(found, (rows, head)), torch.autograd.grad(expected, (rows, head)), strict=True
    ):
        torch.testing.assert_close(mine, theirs)
