"""The step in C beside the model itself, for every layout, in float32 and int8; and life without a compiler."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tests.generate.conftest import LAYOUTS, tiny
from torch import nn

from kotha.generate import native as native_module
from kotha.generate.answers import Request
from kotha.generate.cache import RowCache
from kotha.generate.engine import Engine
from kotha.generate.native import NativeStep, Pace, native
from kotha.generate.settings import SamplingSettings
from kotha.generate.weights import Int8Linear, choose_weights, prepare

needs_compiler = pytest.mark.skipif(native() is None, reason="no C compiler on this machine")


@pytest.fixture
def no_compiler(monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setattr(native_module.shutil, "which", lambda name: None)
    native.cache_clear()
    yield
    native.cache_clear()


@needs_compiler
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("threads", [1, 3])
@torch.no_grad()
def test_a_step_in_c_is_a_step_of_the_model(layout: str, weights: Any, threads: int) -> None:
    model = prepare(tiny(layout, context_length=12, vocab_size=31), weights)
    library = native()
    assert library is not None
    here, there = RowCache(model.config, 3), RowCache(model.config, 3)
    torch.set_num_threads(threads)
    try:
        step = NativeStep(model, here, library)
        for cache in (here, there):
            cache.lengths.copy_(torch.tensor([0, 2, 7]))  # rows of different lengths; what they hold is the same noise
            for tensor in (*cache.keys, *cache.values):
                tensor.copy_(torch.randn(tensor.shape, generator=torch.Generator().manual_seed(5)))
        for _ in range(5):
            tokens = torch.randint(31, (3,))
            expected = model(tokens[:, None], cache=there)[:, 0]
            assert (step(model, tokens) - expected).abs().max() <= 1e-4
            here.advance()
            there.advance()
        for mine, other in zip(here.keys + here.values, there.keys + there.values, strict=True):
            assert (mine - other).abs().max() <= 1e-4
    finally:
        torch.set_num_threads(1)


def test_the_quicker_number_of_threads_is_taken_and_the_other_tried_again() -> None:
    pace, taken = Pace(4), []
    for step in range(300):
        threads = pace.threads()
        taken.append(threads)
        busy = step < 150  # other work on the machine: one thread wins; then it ends
        pace.took(threads, (5.0 if busy else 1.0) if threads == 4 else 2.0)
    assert taken[:6] == [4, 1, 4, 1, 4, 1]
    assert taken[10:60] == [1] * 50
    assert taken[200:250] == [4] * 50
    alone = Pace(1)
    for _ in range(200):
        assert alone.threads() == 1
        alone.took(1, 1.0)


@pytest.mark.parametrize("shape", [(1, 5), (3, 8), (7, 33), (64, 48)])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_a_product_in_eight_bits_is_close(shape: tuple[int, int], bias: bool) -> None:
    torch.manual_seed(0)
    linear = nn.Linear(shape[1], shape[0], bias=bias)
    x = torch.randn(2, 3, shape[1])
    wide, narrow = linear(x), Int8Linear(linear)(x)
    assert narrow.shape == wide.shape
    assert ((wide - narrow).norm() / wide.norm()).item() <= 0.05
    assert Int8Linear(linear)(torch.zeros(1, shape[1])).allclose(linear(torch.zeros(1, shape[1])), atol=1e-6)


def test_without_a_compiler_the_text_is_the_same(no_compiler: None) -> None:
    assert native() is None
    model = tiny("modern", context_length=16, vocab_size=50)
    request = Request(prompt=(1, 2, 3), tokens=20, settings=SamplingSettings(seed=4))
    alone = Engine(model, None).generate([request])[0].ids
    assert Engine(model, None, weights="float32").generate([request])[0].ids == alone
    assert Engine(model, None, weights="int8").generate([request])[0].tokens == 20


def test_a_small_model_keeps_its_weights() -> None:
    assert choose_weights(tiny(vocab_size=50)) == "float32"
