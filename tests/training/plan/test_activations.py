"""The rules of eager memory beside torch: models run on fake tensors while a ledger follows every storage."""

import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kotha.model.config import ModelConfig, Seq2SeqConfig, TextConfig
from kotha.model.family import build
from kotha.model.presets import PRESETS, preset
from kotha.training.config import recipe
from kotha.training.device import DTYPES
from kotha.training.plan.activations import (
    BodyMemory,
    body_memory,
    eager_attention,
    eager_feedforward,
    eager_norm,
    example_inputs,
)
from kotha.training.plan.memory import plan_memory

CLASSIC, MODERN = PRESETS["gpt2"], PRESETS["bangla-modern"]
DROPPED = {"dropout": 0.1, "attention_dropout": 0.1}
KINDS: dict[str, ModelConfig] = {
    **{name: PRESETS[name] for name in ("pocket", "bangla-58m", "bangla-modern", "gpt2", "char")},
    **{name: PRESETS[name] for name in ("pocket-bert", "bert-base", "pocket-seq2seq", "transformer-base")},
    **{name: PRESETS[name] for name in ("vit-digits", "vit-base-16")},
    "grouped": MODERN.replace(n_kv_heads=2, dropout=0.0),
    "grouped, dropped": MODERN.replace(n_kv_heads=4, **DROPPED),
    "modern without rotation": MODERN.replace(positions="learned"),
    "modern without head norms": MODERN.replace(qk_norm=False),
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
def test_rules_are_what_torch_holds(name: str, precision: str) -> None:
    depths = {"n_layers": 2, **({"n_decoder_layers": 2} if isinstance(KINDS[name], Seq2SeqConfig) else {})}
    words = {"vocab_size": 2} if isinstance(KINDS[name], TextConfig) else {}  # tables are counted with the weights
    config = KINDS[name].replace(**depths, **words)
    length = min(96, config.context_length) if isinstance(config, TextConfig) else 0
    real = traced(config, 6, length, precision)
    ruled = body_memory(config, 6, length, precision, "cpu", compiled=False)
    assert ruled.kept == real.kept
    assert ruled.kept + ruled.working == pytest.approx(real.kept + real.working, rel=0.02)
    assert ruled.measuring == pytest.approx(real.measuring, rel=0.02)


def traced(config: ModelConfig, batch_size: int, length: int, precision: str) -> BodyMemory:
    """Count a pass forward and back, and one without gradients."""
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
    return BodyMemory(kept, working, ledger.peak)


class Ledger(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Bytes of the storages that operations make, from their making until nobody holds them."""

    def __init__(self, known: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.live = self.peak = 0
        self._sizes: dict[int, int] = {}
        self._known = {each.untyped_storage()._cdata for each in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            return 0  # fake tensors have no numbers; a model looks only whether its ids are in range
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


def test_an_eager_block_by_hand() -> None:
    # C 8, two heads of 4, d_ff 16, ReLU, float32. Attention: read 32, q k v 3*32, two logarithms 8, output 32.
    config = PRESETS["mini"]
    assert sum(eager_attention(config, 4, 4).values()) == 32 + 96 + 8 + 32
    assert sum(eager_feedforward(config, 4).values()) == 32 + 64
    assert eager_norm(config) == 32 + 8
    # In bfloat16 each of the three products keeps its own copy of what it read.
    assert eager_attention(config, 4, 2)["read by products"] == 3 * 16


@pytest.mark.parametrize("name", ["bangla-58m", "bangla-modern", "bert-base", "gpt2"])
def test_plans_are_what_was_measured(name: str) -> None:
    results = Path(__file__).parents[3] / "benchmarks" / "results" / "memory_plan_cpu.json"
    figures = json.loads(results.read_text(encoding="utf-8"))["figures"]
    figure = next(each for each in figures if each["preset"] == name)
    size, length = figure["micro_batch_size"], figure["context_length"]
    plan = plan_memory(
        preset(name),
        recipe(figure["recipe"], batch_size=2 * size),
        micro_batch_size=size,
        context_length=length,
        precision="float32",
        device="cpu",
        compiled=False,
    )
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
    assert done.stderr.strip().endswith("set()"), "two seconds of imports"
