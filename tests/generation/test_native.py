"""The decoding step in C compared with the model, for every layout, in float32 and int8; and without a compiler."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tests.generation.conftest import LAYOUTS, REMOVED, tiny
from torch import nn

import kotha
from kotha.generation import compilation
from kotha.generation import native as native_module
from kotha.generation.cache import RowCache
from kotha.generation.cache_memory import CacheMemory
from kotha.generation.compilation import native
from kotha.generation.engine import Engine
from kotha.generation.native import NativeModel, NativeStep, Pace
from kotha.generation.native_decoder import NativeDecoder
from kotha.generation.request import Request
from kotha.generation.settings import SamplingSettings
from kotha.generation.weights import Int8Linear, as_arrays, prepare
from kotha.model.config import GPTConfig
from kotha.model.gpt import GPT
from kotha.model.pruning import remove_heads

needs_compiler = pytest.mark.skipif(native() is None, reason="no C compiler on this machine")


@pytest.fixture
def no_compiler(monkeypatch: Any) -> Iterator[None]:
    monkeypatch.setattr(compilation.shutil, "which", lambda name: None)
    native.cache_clear()
    yield
    native.cache_clear()


@pytest.fixture
def quantized_inputs(monkeypatch: Any) -> None:
    """Make torch's int8 layers quantize their input too, as in the C code; a readable version of its matrix product."""

    def forward(self: Int8Linear, x: torch.Tensor) -> torch.Tensor:
        largest = x.abs().amax(dim=-1, keepdim=True)
        rounded = (x * (127 / largest)).round()
        y = (rounded @ self.weight.float().T) * (largest / 127) * self.scale
        return y if self.bias is None else y + self.bias

    monkeypatch.setattr(Int8Linear, "forward", forward)


@needs_compiler
@pytest.mark.usefixtures("quantized_inputs")
@pytest.mark.parametrize(("layout", "removed"), [*((each, []) for each in LAYOUTS), *REMOVED.items()])
@pytest.mark.parametrize("weights", ["float32", "int8"])
@pytest.mark.parametrize("threads", [1, 3])
@torch.no_grad()
def test_a_step_in_c_equals_a_step_of_the_model(layout: str, removed: list[str], weights: Any, threads: int) -> None:
    """Layers with different numbers of heads are tested too."""
    whole = tiny(layout, context_length=12, vocab_size=31)
    model = prepare(remove_heads(whole, removed) if removed else whole, weights)
    library = native()
    assert library is not None
    here, there = CacheMemory(model.config, 3), RowCache(model.config, 3)
    step = NativeStep(NativeModel(model.config, as_arrays(model), library, threads), 3)
    there.lengths.copy_(torch.tensor([0, 2, 7]))  # rows of different lengths with the same random content
    here.lengths[:] = [0, 2, 7]
    for mine, other in zip(here.keys + here.values, there.keys + there.values, strict=True):
        other.copy_(torch.randn(other.shape))
        mine[:] = other.numpy()
    for _ in range(5):
        tokens = torch.randint(31, (3,))
        expected = model(tokens[:, None], cache=there)[:, 0].numpy()
        assert abs(step(here, tokens.tolist()) - expected).max() <= 1e-4
        here.lengths += 1
        there.advance()
    for mine, other in zip(here.keys + here.values, there.keys + there.values, strict=True):
        assert abs(mine - other.numpy()).max() <= 1e-4


@needs_compiler
@pytest.mark.usefixtures("quantized_inputs")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("weights", ["float32", "int8"])
@torch.no_grad()
def test_prompts_read_in_c_equal_prompts_read_by_the_model(layout: str, weights: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(native_module, "_PIECE", 5)  # so that texts are truncated
    model = prepare(tiny(layout, context_length=12, vocab_size=31), weights)
    here, there, library = CacheMemory(model.config, 3), RowCache(model.config, 3), native()
    assert library is not None
    texts, rows = [[1, 2, 3, 4, 5, 6, 7], [8, 9], [10, 11, 12, 13]], [2, 0, 1]
    places = [(token, place, row) for row, text in zip(rows, texts, strict=True) for place, token in enumerate(text)]
    tokens, positions, seats = zip(*places, strict=True)
    NativeStep(NativeModel(model.config, as_arrays(model), library)).read(here, tokens, positions, seats)
    for row, text in zip(rows, texts, strict=True):
        there.first, there.n_rows, there.even = row, 1, 0
        model.hidden(torch.tensor([text]), cache=there)
    for mine, other in zip(here.keys + here.values, there.keys + there.values, strict=True):
        # A number halfway between two integers may be rounded either way.
        assert other.abs().max() > 0.5 and abs(mine - other.numpy()).max() <= (1e-4 if weights == "float32" else 0.05)


@needs_compiler
@pytest.mark.parametrize(("width", "d_ff", "vocab_size"), [(5, 1, 3), (16, 37, 9), (37, 70, 131), (384, 64, 64)])
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_row_does_not_depend_on_other_rows_to_the_last_bit(
    width: int, d_ff: int, vocab_size: int, weights: Any
) -> None:
    torch.manual_seed(0)
    config = GPTConfig(d_model=width, n_heads=1, d_ff=d_ff, n_layers=1, vocab_size=vocab_size, context_length=4)
    model, library = prepare(GPT(config), weights), native()
    assert library is not None
    tokens = torch.randint(vocab_size, (11,)).tolist()

    def logits(tokens: list[int], threads: int) -> Any:
        step = NativeStep(NativeModel(config, as_arrays(model), library, threads), len(tokens))
        return step(CacheMemory(config, len(tokens)), tokens)

    alone = [logits([token], 1)[0] for token in tokens]
    for count in range(1, len(tokens) + 1):
        for threads in (1, 3):
            assert np.array_equal(logits(tokens[:count], threads), np.stack(alone[:count])), (count, threads)


@needs_compiler
@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_probabilities_are_identical_alone_and_in_a_batch(weights: Any) -> None:
    """Generate nine texts in four rows, beyond the context and with prompts of every length, and then each alone."""
    model = tiny("modern", context_length=24, vocab_size=31)
    prompts = [tuple(range(1, 2 + 4 * place)) for place in range(6)] + [(3,), (4, 5), (6,)]
    requests = [
        Request(prompt=prompt, tokens=5 + 6 * place, settings=SamplingSettings(seed=place), alternatives=3)
        for place, prompt in enumerate(prompts)
    ]
    together = Engine(model, None, max_batch=4, weights=weights).generate(requests)
    for request, found in zip(requests, together, strict=True):
        (alone,) = Engine(model, None, max_batch=1, weights=weights).generate([request])
        assert found.written == alone.written and found.ids == alone.ids


def test_the_faster_number_of_threads_is_used_and_the_other_retried() -> None:
    pace, taken = Pace(4), []
    for step in range(300):
        threads = pace.threads()
        taken.append(threads)
        busy = step < 150  # under other load, one thread is faster; then the load ends
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


@needs_compiler
def test_generate_uses_the_c_step_unless_the_model_has_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a step in torch takes several times as long, because its threads wait for each other."""
    lm = kotha.load()
    used: list[int] = []
    step = NativeDecoder.start
    monkeypatch.setattr(NativeDecoder, "start", lambda *given: used.append(1) or step(*given))
    text = lm.generate("নদীর ধারে", tokens=4, seed=1)
    request = Request(prompt="নদীর ধারে", tokens=4, settings=SamplingSettings(seed=1))
    assert len(used) == 4
    assert text == "নদীর ধারে" + lm.engine().generate([request])[0].text
    assert len(used) == 4, "the engine's default is the model itself"
    hooked = lm.model.stack.blocks[0].register_forward_hook(lambda *_: None)
    assert lm.generate("নদীর ধারে", tokens=4, seed=1) == text and len(used) == 4
    hooked.remove()
    with torch.no_grad():
        lm.model.tokens.weight[:] = 0  # a change of the model is used by the next call
    assert lm.generate("নদীর ধারে", tokens=4, seed=1) != text and len(used) > 4
