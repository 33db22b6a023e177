"""The parts of a memory plan compared with torch: parameters, optimizer states, saved tensors, fake tensors."""

import json
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, TextConfig, ViTConfig
from kotha.model.family import build
from kotha.model.presets import PRESETS, preset
from kotha.training.config import recipe
from kotha.training.device import DTYPES
from kotha.training.optim import Optimizers
from kotha.training.plan.memory import (
    Body,
    MemoryConditions,
    compiled_block,
    eager_attention,
    eager_feedforward,
    eager_norm,
    largest_micro_batch,
    plan_memory,
)
from kotha.training.plan.step_time import example_inputs

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
HERE = MemoryConditions(16, "float32", "cpu", compiled=False)
MODERN = PRESETS["pocket"].replace(vocab_size=50, context_length=24, n_layers=3, d_model=32, n_heads=4, d_ff=48)
FAMILY: dict[str, ModelConfig] = {
    "modern": MODERN,
    "grouped": MODERN.replace(n_kv_heads=2, dropout=0.1),
    "classic": GPTConfig(
        vocab_size=50, context_length=24, n_layers=3, d_model=32, n_heads=4, dropout=0.1, attention_dropout=0.1
    ),
    "bert": BERTConfig(vocab_size=50, context_length=24, n_layers=3, d_model=32, n_heads=4, dropout=0.1),
    "seq2seq": Seq2SeqConfig(
        vocab_size=50, context_length=24, n_layers=2, n_decoder_layers=3, d_model=32, n_heads=4, dropout=0.1
    ),
    "vit": ViTConfig(image_size=28, patch_size=7, n_channels=1, n_classes=10, n_layers=3, d_model=32, n_heads=4),
}


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("kind", ["classic", "modern"])
def test_weights_and_optimizer_state_match_torch(name: str, kind: str) -> None:
    training = recipe(kind)
    model = build(FAMILY[name])
    optimizers = Optimizers(model, training)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizers.step(torch.amp.GradScaler(enabled=False))
    plan = plan_memory(FAMILY[name], training, 4, HERE)
    assert plan.weights == sum(each.nbytes for each in model.parameters())
    assert plan.gradients == sum(each.grad.nbytes for each in model.parameters() if each.grad is not None)
    assert plan.optimizer == sum(each.nbytes for each in optimizers.state().values())
    assert plan.average == (plan.weights if training.ema_decay is not None else 0)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("size", [1, 5])
def test_activations_match_what_autograd_saves(name: str, size: int) -> None:
    config = FAMILY[name]
    model, inputs = build(config), example_inputs(config, size, 16)
    known = {each.untyped_storage().data_ptr() for each in [*model.parameters(), *inputs]}
    kept: dict[int, tuple[int, torch.Tensor]] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = (storage.nbytes(), tensor.detach())  # kept alive, so that no address is reused
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        keep(model.hidden(*inputs))
    real = sum(nbytes for pointer, (nbytes, _) in kept.items() if pointer not in known)
    counted = Body(config, size, HERE).kept()
    assert counted == pytest.approx(real, rel=0.01, abs=256)


@given(st.integers(1, 200), st.sampled_from(["cpu", "cuda"]), st.booleans())
def test_a_larger_micro_batch_never_needs_less(size: int, device: Any, compiled: bool) -> None:
    training, how = recipe("modern", batch_size=1000), MemoryConditions(16, "float32", device, compiled)
    less, more = (plan_memory(MODERN, training, each, how) for each in (size, size + 1))
    assert less.total <= more.total
    assert less.activations < more.activations


@given(st.integers(0, 1 << 31))
def test_the_largest_micro_batch_fits_and_its_double_does_not(available: int) -> None:
    training, how = recipe("modern", batch_size=3000), MemoryConditions(16, "bfloat16", "cuda", compiled=True)
    size = largest_micro_batch(MODERN, training, available, how)
    total, double = (plan_memory(MODERN, training, each, how).total for each in (size, min(2 * size, 3000)))
    assert size == 1 or total <= available
    assert size == 3000 or double > available
    assert size == 3000 or size.bit_count() == 1


def test_sharding_divides_weights_and_optimizer_state() -> None:
    alone, copied, sharded = (
        plan_memory(
            preset("gpt2"), recipe("classic", batch_size=64), 8, MemoryConditions(1024, "bfloat16", "cuda", True, *how)
        )
        for how in ((1, False), (4, False), (4, True))
    )
    assert sharded.weights == alone.weights // 4
    assert copied.gradients == 2 * alone.gradients, "gradients, and communication buckets"
    assert sharded.total < alone.total < copied.total


def test_a_block_by_hand() -> None:
    # C 8, two heads of 4, d_ff 16, ReLU, float32. Attention: input 32, q k v 3*32, two log-sum-exps 8, output 32.
    config = PRESETS["mini"]
    assert eager_attention(config, 4, 4) == 32 + 96 + 8 + 32
    assert eager_feedforward(config, 4) == 32 + 64
    assert eager_norm(config) == 32 + 8
    # In bfloat16, each of the three matrix products keeps a copy of its input.
    assert eager_attention(config, 4, 2) == 3 * 16 + 48 + 8 + 16
    # Compiled, in bfloat16: residuals 2*4*8, norms 2*2*8, q k v 3*2*8, output 2*8 + 4*2, inner 2*2*16.
    assert compiled_block(config, 2) == 64 + 32 + 48 + 24 + 64


@pytest.mark.parametrize("name", ["bangla-58m", "bangla-modern", "gpt2", "bert-base"])
def test_compiling_keeps_less(name: str) -> None:
    eager, compiled = (
        Body(preset(name), 32, MemoryConditions(128, "bfloat16", "cuda", each)) for each in (False, True)
    )
    assert compiled.kept() < eager.kept()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of a process from /proc")
def test_a_real_run_needs_the_planned_memory() -> None:
    case = json.dumps(["pocket", "modern", 8, 64])
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # several threads are very slow on a busy machine
    # Otherwise glibc keeps freed blocks; on x86, this adds up to a third to the peak.
    environment |= {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "131072"}
    command = [sys.executable, str(BENCHMARKS / "memory_plan.py"), "--measure", case]
    found = json.loads(subprocess.check_output(command, text=True, env=environment))
    # The resident size of torch's libraries depends on the system: 300 to 700 MB were observed for the same process.
    grown = found["measured"] - found["stages"]["start"] + found["predicted"]["base"]
    assert grown == pytest.approx(found["predicted"]["total"], rel=0.15), found


# -- the rules compared with fake tensors, whose storages are tracked by a ledger --------------------------------------

CLASSIC, NEWS = PRESETS["gpt2"], PRESETS["bangla-modern"]
DROPPED = {"dropout": 0.1, "attention_dropout": 0.1}
KINDS: dict[str, ModelConfig] = {
    **{name: PRESETS[name] for name in ("pocket", "bangla-58m", "bangla-modern", "gpt2", "char")},
    **{name: PRESETS[name] for name in ("pocket-bert", "bert-base", "pocket-seq2seq", "transformer-base")},
    **{name: PRESETS[name] for name in ("vit-digits", "vit-base-16")},
    "grouped": NEWS.replace(n_kv_heads=2, dropout=0.0),
    "grouped, dropped": NEWS.replace(n_kv_heads=4, **DROPPED),
    "modern without rotation": NEWS.replace(positions="learned"),
    "modern without head norms": NEWS.replace(qk_norm=False),
    "classic with a gate": CLASSIC.replace(activation="swiglu", d_ff=2048, attention_dropout=0.0),
    "classic with rms": CLASSIC.replace(norm="rms", dropout=0.0, attention_dropout=0.0),
    "norms last": CLASSIC.replace(norm_order="post", **DROPPED),
    "norms last, rms, relu": CLASSIC.replace(norm_order="post", norm="rms", activation="relu"),
    "bert with norms first": PRESETS["bert-base"].replace(norm_order="pre", dropout=0.0),
    "seq2seq, rotary": PRESETS["transformer-base"].replace(positions="rotary", **DROPPED),
    "vit with rms": PRESETS["vit-base-16"].replace(norm="rms", activation="swiglu", d_ff=2048, **DROPPED),
}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", KINDS)
def test_the_rules_match_torch(name: str, precision: str) -> None:
    depths = {"n_layers": 2, **({"n_decoder_layers": 2} if isinstance(KINDS[name], Seq2SeqConfig) else {})}
    words = {"vocab_size": 2} if isinstance(KINDS[name], TextConfig) else {}  # tables are included in the weights
    config = KINDS[name].replace(**depths, **words)
    length = min(96, config.context_length) if isinstance(config, TextConfig) else 0
    kept, working, measuring = traced(config, 6, length, precision)
    ruled = Body(config, 6, MemoryConditions(length, precision, "cpu", compiled=False))
    assert ruled.kept() == kept
    assert ruled.kept() + ruled.working() == pytest.approx(kept + working, rel=0.02)
    assert ruled.measuring() == pytest.approx(measuring, rel=0.02)


def traced(config: ModelConfig, batch_size: int, length: int, precision: str) -> tuple[int, int, int]:
    """Measure a forward and backward pass (kept, working), and one without gradients."""
    autocast = torch.autocast("cpu", DTYPES[precision], enabled=precision != "float32")
    with FakeTensorMode():
        model: Any = build(config)
        inputs = example_inputs(config, batch_size, length)
        for parameter in model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        with Ledger([*model.parameters(), *(each.grad for each in model.parameters()), *inputs]) as ledger:
            with autocast:
                hidden = model.hidden(*inputs)
            kept = ledger.live
            hidden.backward(torch.ones_like(hidden))
            working = ledger.peak - kept
        del hidden
        with Ledger([*model.parameters(), *inputs]) as ledger, torch.no_grad(), autocast:
            model.eval().hidden(*inputs)
    return kept, working, ledger.peak


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of live storages, tracked over all operations."""

    def __init__(self, known: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = 0
        self._sizes: dict[int, int] = {}
        self._known = {each.untyped_storage()._cdata for each in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return 0  # fake tensors have no values; the model only checks the range of its ids
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, Tensor):
                self._note(each.untyped_storage())
        return found

    def _note(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._known or key in self._sizes:
            return
        self._sizes[key] = storage.nbytes()
        self.live += storage.nbytes()
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._forget, key)

    def _forget(self, key: int) -> None:
        self.live -= self._sizes.pop(key)


@pytest.mark.parametrize("name", ["bangla-58m", "bangla-modern", "bert-base", "gpt2"])
def test_plans_match_measurements(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kotha.training.plan.memory.CHUNK_LOGITS", 1 << 23)  # as when these figures were measured
    figures = json.loads((BENCHMARKS / "results" / "memory_plan_cpu.json").read_text(encoding="utf-8"))["figures"]
    figure = next(each for each in figures if each["preset"] == name)
    size, length = figure["micro_batch_size"], figure["context_length"]
    how = MemoryConditions(length, "float32", "cpu", compiled=False)
    plan = plan_memory(preset(name), recipe(figure["recipe"], batch_size=2 * size), size, how)
    assert plan.total == pytest.approx(figure["measured"], rel=0.02)


def test_a_plan_does_not_load_the_compiler() -> None:
    code = (
        "import sys\n"
        "from kotha.cli.main import main\n"
        "main(['plan', '--preset', 'bangla-58m', '--json'])\n"
        "print({'torch._dynamo', 'sympy'} & sys.modules.keys(), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["seconds_per_step"] > 0
    assert done.stderr.strip().endswith("set()"), "the compiler takes two seconds to import"
