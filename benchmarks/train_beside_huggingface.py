"""Training speed beside Hugging Face's GPT-2: the same sizes, data, optimizer and precision, in one run.

    python benchmarks/train_beside_huggingface.py [--device cpu|cuda] [--out FOLDER]

Both train the course's model (58 million parameters, T 128, vocabulary 32,100, no dropout; on a CPU one of 3 layers of
256 and 8,192 words, so that it ends) with AdamW and clipping, turn by turn: one round of ours, one of theirs, and the
median of the rounds. Ours is the very step of ``kotha.train.loop``; theirs is ``model(ids, labels=ids).loss`` as its
users write it. On a GPU both are compiled.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record
from transformers import GPT2Config, GPT2LMHeadModel

from kotha.model.presets import preset
from kotha.runs import RunFolder
from kotha.train.config import TrainConfig
from kotha.train.loop import Training
from kotha.train.objectives import next_token, next_token_sum
from kotha.train.tasks.task import Batch

MODEL = preset("bangla-58m").replace(dropout=0.0, attention_dropout=0.0)
if not torch.cuda.is_available():
    MODEL = MODEL.replace(n_layers=3, d_model=256, d_ff=1024, n_heads=4, vocab_size=8192)


class RandomTokens:
    """A task of random tokens: what is learned does not matter here."""

    name = "random-tokens"

    def batch(self, step: int, first: int, count: int) -> Batch:
        shape = (count, MODEL.context_length + 1)
        sequences = np.random.default_rng([step, first]).integers(0, MODEL.vocab_size, shape)
        n_targets = count * MODEL.context_length
        return Batch({"sequences": torch.from_numpy(sequences)}, {"tokens": n_targets}, n_targets)

    def sources(self, step: int) -> list[int]:
        return [step]

    def losses(self, model: Any, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"tokens": next_token(model, tensors["sequences"])}

    def measure(self, model: Any, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"tokens": next_token_sum(model, tensors["sequences"])}

    def validation(self) -> list[Batch]:
        return []

    def score(self, sums: dict[str, float], targets: dict[str, int]) -> dict[str, float]:
        return {"loss_nats": 0.0}

    def references(self) -> dict[str, float]:
        return {}


def ours(device: str, precision: str, batch_size: int, compiled: bool) -> Callable[[int], None]:
    """One step of our loop."""
    config = TrainConfig(
        batch_size=batch_size, micro_batch_size=batch_size, precision=precision, compile="on" if compiled else "off"
    )
    folder = RunFolder(tempfile.mkdtemp())
    training = Training(MODEL, config, RandomTokens(), folder, device=device)
    training.learner.train()
    training.fitting.settle(training._gradients)
    return lambda step: training._update(step) and None


def theirs(device: str, precision: str, batch_size: int, compiled: bool) -> Callable[[int], None]:
    """One step as users of transformers write it."""
    config = GPT2Config(
        vocab_size=MODEL.vocab_size,
        n_positions=MODEL.context_length,
        n_embd=MODEL.d_model,
        n_layer=MODEL.n_layers,
        n_head=MODEL.n_heads,
        n_inner=MODEL.d_ff,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
        use_cache=False,
    )
    model = GPT2LMHeadModel(config).to(device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=device == "cuda")
    forward = torch.compile(model) if compiled else model
    task = RandomTokens()
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]

    def step(number: int) -> None:
        ids = task.batch(number, 0, batch_size).tensors["sequences"][:, :-1].to(device)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device, dtype, enabled=precision != "float32"):
            loss = forward(input_ids=ids, labels=ids).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    return step


def seconds(step: Callable[[int], None], device: str, steps: int, first: int) -> float:
    """The time of some steps."""
    start = time.perf_counter()
    for number in range(first, first + steps):
        step(number)
    if device == "cuda":
        torch.cuda.synchronize()
    return (time.perf_counter() - start) / steps


def compare(device: str, precision: str, batch_size: int, compiled: bool, rounds: int, steps: int) -> dict[str, Any]:
    """Both, turn by turn."""
    sides: dict[str, Callable[[int], None]] = {}
    peaks: dict[str, int] = {}
    for name, make in {"ours": ours, "peer": theirs}.items():
        sides[name] = make(device, precision, batch_size, compiled)
        before = torch.cuda.memory_allocated() if device == "cuda" else 0
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        seconds(sides[name], device, 2 if device == "cpu" else 10, 0)
        if device == "cuda":
            peaks[name] = torch.cuda.max_memory_allocated() - (before if name == "peer" else 0)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in sides if turn % 2 else reversed(sides):
            times[name].append(seconds(sides[name], device, steps, 10 + turn * steps))
    tokens = batch_size * MODEL.context_length
    rate = {name: tokens / statistics.median(some) for name, some in times.items()}
    return {
        "device": device,
        "precision": precision,
        "compiled": compiled,
        "batch_size": batch_size,
        "ours_tokens_per_second": round(rate["ours"]),
        "peer_tokens_per_second": round(rate["peer"]),
        "ratio": round(rate["ours"] / rate["peer"], 3),
        "spread": {name: [round(tokens / each) for each in sorted(some)] for name, some in times.items()},
        **({"peak_bytes": peaks} if peaks else {}),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=record.RESULTS, help="folder of the result")
    options = parser.parse_args()
    cases = (
        [("bfloat16", 64, True), ("bfloat16", 512, True)]
        if options.device == "cuda"
        else [("float32", 16, False), ("bfloat16", 1, False)]
    )
    rows = []
    for precision, batch_size, compiled in cases:
        rounds, steps = (7, 20) if options.device == "cuda" else (5, 2 if precision == "float32" else 1)
        rows.append(compare(options.device, precision, batch_size, compiled, rounds, steps))
        print(rows[-1], flush=True)
    name = f"train_beside_huggingface_{options.device}"
    record.save(name, rows, ["torch", "transformers"], options.out)


if __name__ == "__main__":
    main()
