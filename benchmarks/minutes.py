"""Measure `kotha train DATA --minutes M` for several M: bits per byte as a function of the training time.

    python benchmarks/minutes.py DATA [--minutes 1 3 10 30] [--seeds 0] [--name minutes] [--work FOLDER]
                                 [--set NAME=VALUE] [--nanogpt FOLDER]

Only the time is set, so this measures the defaults. The models are scored on the held-out documents, with windows that
advance by half a context, as in `kotha evaluate`. `spent` is the training time; `seconds` is the time of the whole
command.

With `--nanogpt`, the `model.py` in that folder (not part of this repository) is trained on the same tokens for as long
as the whole command of Kotha took, with nanoGPT's optimizer and with the sizes and settings that its README gives for a
CPU. The schedule depends on the elapsed time, so that the learning rate reaches its minimum when the time is over.
"""

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

import kotha

# From nanoGPT's README (the command for a MacBook), and from config/train_shakespeare_char.py.
CONTEXT, BATCH, SIZES = 64, 12, {"n_layer": 4, "n_head": 4, "n_embd": 128, "dropout": 0.0}
RATE, LEAST_RATE, DECAY, BETAS, CLIP, WARM_UP = 1e-3, 1e-4, 0.1, (0.9, 0.99), 1.0, 100


def trained(data: Path, minutes: float, seed: int, out: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """Train for this number of minutes, and score the model."""
    began = time.perf_counter()
    run = kotha.train(data, minutes=minutes, seed=seed, out=out, **settings)
    seconds, summary, config = time.perf_counter() - began, run.summary, run.model.config
    score = run.model.evaluate(data, baselines="none")
    return {
        "minutes": minutes,
        "seed": seed,
        "seconds": round(seconds, 1),
        "spent": round(summary["seconds"], 1),
        "steps": summary["steps"],
        "tokens": summary["tokens"],
        "layers": config.n_layers,
        "width": config.d_model,
        "bits_per_byte": score.bits_per_byte,
    }


def nanogpt(folder: str, data: Path, seconds: float, seed: int) -> dict[str, Any]:
    """Train nanoGPT's model for this time, and score it as Kotha's models are scored."""
    import numpy as np
    import torch
    from torch import nn

    from kotha.evaluation.perplexity import token_nats
    from kotha.text.held_out import read_held_out
    from kotha.text.shards import Dataset

    sys.path.insert(0, folder)
    import model as theirs  # type: ignore[import-not-found]

    began = time.perf_counter()
    torch.manual_seed(seed)
    dataset = Dataset(data)
    line = np.concatenate(dataset["train"].shards)
    words = dataset.tokenizer.vocab_size
    net = theirs.GPT(theirs.GPTConfig(block_size=CONTEXT, vocab_size=words, bias=False, **SIZES))
    optimizer = net.configure_optimizers(DECAY, RATE, BETAS, "cpu")
    draw, steps = np.random.default_rng(seed), 0
    while (share := (time.perf_counter() - began) / seconds) < 1:
        rate = LEAST_RATE + (RATE - LEAST_RATE) * (1 + math.cos(math.pi * share)) / 2
        for group in optimizer.param_groups:
            group["lr"] = min(1, (steps + 1) / WARM_UP) * rate
        starts = draw.integers(0, len(line) - CONTEXT, BATCH)
        rows = torch.from_numpy(np.stack([line[each : each + CONTEXT + 1] for each in starts]).astype(np.int64))
        _, loss = net(rows[:, :-1], rows[:, 1:].contiguous())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), CLIP)
        optimizer.step()
        steps += 1

    class Scored(nn.Module):
        """nanoGPT's model with the three members that the evaluation reads."""

        tokens, head = net.transformer.wte, net.lm_head

        def hidden(self, ids: torch.Tensor) -> torch.Tensor:
            parts = net.transformer
            x = parts.wte(ids) + parts.wpe(torch.arange(ids.shape[1]))
            for block in parts.h:
                x = block(x)
            return parts.ln_f(x)

    net.eval()
    text = read_held_out(data, dataset.tokenizer)
    documents = (np.concatenate([[text.end], each]) for each in text)
    nats = sum(each.sum() for each in token_nats(Scored(), documents, CONTEXT, CONTEXT // 2))  # type: ignore[arg-type]
    found = {
        "who": "nanoGPT",
        "seed": seed,
        "seconds": round(seconds, 1),
        "steps": steps,
        "tokens": steps * BATCH * CONTEXT,
    }
    return {**found, "bits_per_byte": float(nats) / math.log(2) / text.bytes}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[1, 3, 10, 30])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--name", default="minutes")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--set", nargs="*", default=[])
    parser.add_argument("--nanogpt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = []
        for minutes in options.minutes:
            for seed in options.seeds:
                out = (options.work or Path(folder)) / f"{minutes:g}-{seed}"
                found.append(trained(options.data, minutes, seed, out, record.from_words(options.set)))
                print(found[-1], flush=True)
                if options.nanogpt:
                    found.append(nanogpt(options.nanogpt, options.data, found[-1]["seconds"], seed))
                    print(found[-1], flush=True)
                record.save(options.name, {"data": options.data.name, "runs": found}, ["torch"])


if __name__ == "__main__":
    main()
