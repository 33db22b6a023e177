"""Training speed of ``kotha train`` on one GPU, compared with nanoGPT's model and Hugging Face's GPT-2.

    python benchmarks/train_speed.py --nanogpt FOLDER [--only NAME] [--out FOLDER]
    python benchmarks/train_speed.py --only tiny --steps 8 --out FOLDER  # on any machine, in seconds

For Kotha, ``Training.run`` is measured on shards, including batches, clipping and logging but not evaluations. For the
other implementations, a typical training step is measured (bfloat16, compiled, fused AdamW, clipping), on random tokens
that are already on the device. FOLDER contains nanoGPT's ``model.py``, which is not part of this repository. Each
figure is the median over the logged intervals after a warm-up.
"""

import argparse
import gc
import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.artifacts.run_folder import RunFolder
from kotha.model.config import GPTConfig
from kotha.model.objectives import next_token, score_token_predictions, word_loss
from kotha.model.presets import preset
from kotha.training.config import TrainConfig, recipe
from kotha.training.device import peak_memory
from kotha.training.loop import Training
from kotha.training.tasks.task import Batch, Task

# Number of logged intervals to ignore.
WARM_UP = 4
TINY = "tiny"  # to test the script in seconds, on any machine


class Shards(Task):
    """Tokens in memory, batched as by PackedBatches: consecutive tokens, split into rows."""

    name = "next-token"

    def __init__(self, model: GPTConfig, batch_size: int) -> None:
        self._length, self._batch_size = model.context_length, batch_size
        self._line = np.random.default_rng(0).integers(0, model.vocab_size, 4_000_000).astype(np.uint16)

    def batch(self, step: int, first: int, count: int) -> Batch:
        start = ((step * self._batch_size + first) * self._length) % (len(self._line) - count * self._length - 1)
        line = self._line[start : start + count * self._length + 1].astype(np.int64)
        rows = line[np.arange(count)[:, None] * self._length + np.arange(self._length + 1)]
        return Batch({"sequences": torch.from_numpy(rows)}, {"tokens": count * self._length}, count * self._length)

    def losses(self, model: Any, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"tokens": word_loss(model, next_token(model, tensors["sequences"]))}

    def measure(self, model: Any, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"tokens": score_token_predictions(model, next_token(model, tensors["sequences"]))[0]}

    def validation(self) -> list[Batch]:
        return [self.batch(0, 0, 2)]

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> dict[str, float]:
        return {"loss_nats": sums["tokens"] / targets["tokens"]}

    def references(self) -> dict[str, float]:
        return {}


def ours(model: GPTConfig, settings: TrainConfig) -> dict[str, Any]:
    """Return the tokens per second of a run, from its log."""
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    first: list[float] = []
    speeds: list[float] = []

    def listen(event: dict[str, Any]) -> None:
        if "tokens_per_second" in event:
            first.append(time.perf_counter() - start)
            speeds.append(event["tokens_per_second"])

    folder = RunFolder(tempfile.mkdtemp())
    folder.start(model, settings.to_dict())
    training = Training(model, settings, Shards(model, settings.batch_size), folder, on_event=listen)
    summary = training.run()
    recorded = getattr(getattr(training, "_recording", None), "_graph", None) is not None
    return {
        "tokens_per_second": statistics.median(speeds[WARM_UP:]),
        "first_step_seconds": first[0],
        "peak_gib": peak_memory(training.arithmetic.device) / 2**30,
        "micro_batch_size": training.fitting.micro_batch_size,
        "recorded": recorded,
        "loss_nats": summary["loss_nats"],
    }


def theirs(module: torch.nn.Module, call: Any, n_words: int, shape: tuple[int, int], steps: int) -> dict[str, Any]:
    """Return the tokens per second of a plain training loop."""
    torch.cuda.reset_peak_memory_stats()
    optimizer = torch.optim.AdamW(module.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
    ids = torch.randint(0, n_words, (shape[0], shape[1] + 1), device="cuda")
    times = []
    start = time.perf_counter()
    first = 0.0
    for step in range(steps):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = call(ids)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
        optimizer.step()
        if step % 10 == 0:
            torch.cuda.synchronize()
            times.append(time.perf_counter())
            first = first or times[0] - start
    each = [(b - a) / 10 for a, b in itertools.pairwise(times)]
    return {
        "tokens_per_second": shape[0] * shape[1] / statistics.median(each[2:]),
        "first_step_seconds": first,
        "peak_gib": torch.cuda.max_memory_allocated() / 2**30,
    }


def nanogpt(folder: str, model: GPTConfig, batch_size: int, steps: int) -> dict[str, Any]:
    sys.path.insert(0, folder)
    import model as theirs_model  # type: ignore[import-not-found]

    sizes = {"n_layer": model.n_layers, "n_head": model.n_heads, "n_embd": model.d_model, "dropout": model.dropout}
    words = -(-model.vocab_size // 64) * 64 if model.vocab_size == 50257 else model.vocab_size
    made = theirs_model.GPT(
        theirs_model.GPTConfig(block_size=model.context_length, vocab_size=words, bias=False, **sizes)
    ).cuda()
    compiled = torch.compile(made)
    return theirs(
        made,
        lambda ids: compiled(ids[:, :-1], ids[:, 1:].contiguous())[1],
        model.vocab_size,
        (batch_size, model.context_length),
        steps,
    )


def clean() -> None:
    gc.collect()
    if torch.cuda.is_available():
        torch._dynamo.reset()
        torch.cuda.empty_cache()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--nanogpt")
    parser.add_argument("--only")
    parser.add_argument("--steps", type=int, default=160)
    parser.add_argument("--out", default=str(record.RESULTS))
    options = parser.parse_args()
    course = preset("bangla-58m").replace(dropout=0.0, attention_dropout=0.0)
    plain = recipe("course", steps=options.steps, evaluate_every=10_000, warmup_steps=10, gradient_clip=1.0)
    modern = recipe("modern", steps=options.steps, evaluate_every=10_000, warmup_steps=10, gradient_clip=1.0)
    best = preset("bangla-modern")
    cases: dict[str, tuple[Any, TrainConfig, bool]] = {
        "58m-b64": (course, plain.change(batch_size=64), True),
        "58m-b64-dropout": (preset("bangla-58m"), plain.change(batch_size=64), False),
        "58m-b512": (course, plain.change(batch_size=512), True),
        "gpt2-b32": (preset("gpt2").replace(dropout=0.0, attention_dropout=0.0), plain.change(batch_size=32), True),
        "modern": (best.replace(dropout=modern.dropout or 0.0), modern, False),
        TINY: (preset("mini"), plain.change(batch_size=2, precision="float32"), False),
    }
    rows = []
    for name, (model, settings, beside) in cases.items():
        if name not in (options.only.split(",") if options.only else set(cases) - {TINY}):
            continue
        settings = settings.change(dropout=None)
        rows.append({"case": name, "who": "kotha", **ours(model, settings)})
        print(rows[-1], flush=True)
        clean()
        if beside and options.nanogpt:
            found = nanogpt(options.nanogpt, model, settings.batch_size, max(80, options.steps // 2))
            rows.append({"case": name, "who": "nanoGPT", **found})
            print(rows[-1], flush=True)
            clean()
    record.save("train_speed", rows, ["torch"], Path(options.out))


if __name__ == "__main__":
    main()
