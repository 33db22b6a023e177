"""Generation speed of the course's model (58 million parameters), compared with Hugging Face and llama.cpp.

    python benchmarks/generate_speed.py [--device cpu|cuda] [--batches 1,16] [--tokens 64] [--out FOLDER]

All programs use the same weights, in the precision given in each row; prompts have 16 tokens, with top-k 40,
temperature 0.8 and no end token. After a warm-up the programs generate in turns, and the median of the rounds is
reported; the time includes reading the prompts. At batch size 1, the speed of a step is limited by memory bandwidth, so
each row contains the bytes of weights read per step and the resulting bandwidth, which can be compared with the
bandwidth measured on this machine. llama.cpp is included if ``xllamacpp`` and ``gguf`` are installed; its int8 is Q8_0
(one scale for 32 weights), and it runs the model as GPT-2.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
sys.path.insert(0, str(Path(__file__).parent))

import record

from kotha.api.bench.rounds import BenchmarkResult, Work, measure_rounds
from kotha.api.bench.workloads import our_writer, prompts, their_writer
from kotha.artifacts.model_folder import save
from kotha.model.gpt import GPT
from kotha.model.presets import preset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.trainers import train

MODEL = preset("bangla-58m").replace(dropout=0.0, attention_dropout=0.0, activation="gelu-tanh")
BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}


def write_gguf(model: GPT, precision: str, path: Path) -> None:
    """Write the model's weights for llama.cpp; a small vocabulary is enough, because ids are passed directly."""
    from kotha.export.gguf.export import write_file

    kind = {"float32": "f32", "int8": "q8_0"}[precision]
    write_file(model, train((story.text for story in islice(stories(seed=0), 100)), "bpe", vocab_size=512), path, kind)


def llamacpp(model: GPT, precision: str, batch: int, n_tokens: int, folder: Path) -> Work:
    import xllamacpp

    path = folder / f"{precision}.gguf"
    if not path.exists():
        write_gguf(model, precision, path)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_parallel, params.n_ctx = batch, batch * MODEL.context_length
    params.cpuparams.n_threads = torch.get_num_threads()
    params.warmup = True
    server = xllamacpp.Server(params)
    asked = prompts(model, batch).tolist()

    def one(ids: list[int]) -> None:
        how = {"top_k": 40, "temperature": 0.8, "ignore_eos": True, "cache_prompt": False, "n_predict": n_tokens}
        said = server.handle_completions({"prompt": ids, "max_tokens": n_tokens, **how})
        assert said["usage"]["completion_tokens"] == n_tokens, said

    def write() -> None:
        with ThreadPoolExecutor(batch) as pool:
            list(pool.map(one, asked))

    return write


def compare(
    sides: dict[str, Callable[[], Work]], device: str, batch: int, n_tokens: int, rounds: int
) -> dict[str, Any]:
    """Return the tokens per second of each program, measured in turns; a program that cannot run reports why."""
    outcome = BenchmarkResult(f"batch {batch}", "tokens", batch * n_tokens)
    measure_rounds(outcome, sides, torch.device(device), rounds, lambda stage, done, total: None)
    found: dict[str, Any] = {name: {} for name in sides}
    for name, side in outcome.implementations().items():
        found[name] = {
            "tokens_per_second": round(side["per_second"], 1),
            "spread": [round(outcome.amount / each, 1) for each in sorted(outcome.seconds[name])],
            **_bytes(name, side["per_second"] / batch),
        }
    for remark in outcome.remarks:
        found[remark.values["name"]] = remark.values["why"]
        print(remark, file=sys.stderr, flush=True)
    return found


def _bytes(name: str, steps_per_second: float) -> dict[str, Any]:
    """Return the bytes of weights that a step reads (all but the embeddings), and the resulting bandwidth."""
    read = MODEL.vocab_size * MODEL.d_model + MODEL.n_layers * (4 * MODEL.d_model**2 + 2 * MODEL.d_model * MODEL.d_ff)
    n_bytes = read * next(size for kind, size in BYTES.items() if kind in name)
    return {"weight_bytes_per_step": n_bytes, "gigabytes_per_second": round(n_bytes * steps_per_second / 1e9, 2)}


def bandwidth(device: str) -> float:
    """Return the best measured memory bandwidth in gigabytes per second."""
    tensor = torch.ones(1 << (30 if device == "cuda" else 26), device=device)
    best = 0.0
    for _ in range(8):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        tensor.sum().item()
        best = max(best, tensor.numel() * 4 / (time.perf_counter() - start) / 1e9)
    return round(best, 1)


def cold_start(rounds: int) -> float:
    """Return the CPU seconds from starting `kotha generate` to the first character of a pocket model."""
    tokenizer = train((story.text for story in islice(stories(seed=0), 1000)), "unigram", vocab_size=4096)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(path, GPT(preset("pocket").replace(vocab_size=tokenizer.vocab_size)), tokenizer)
        command = [sys.executable, "-m", "kotha", "generate", str(path), "নদীর ধারে", "--tokens", "1"]
        seconds = []
        for _ in range(rounds):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(seconds), 2)


def cpu_sides(model: GPT, batch: int, n_tokens: int, folder: Path) -> dict[str, Callable[[], Work]]:
    return {
        "kotha float32": lambda: our_writer(model, "float32", batch, n_tokens),
        "kotha int8": lambda: our_writer(model, "int8", batch, n_tokens),
        "huggingface float32": lambda: their_writer(model, "float32", batch, n_tokens),
        "llama.cpp float32": lambda: llamacpp(model, "float32", batch, n_tokens, folder),
        "llama.cpp int8": lambda: llamacpp(model, "int8", batch, n_tokens, folder),
    }


def cuda_sides(model: GPT, batch: int, n_tokens: int) -> dict[str, Callable[[], Work]]:
    return {
        "kotha bfloat16": lambda: our_writer(model, "bfloat16", batch, n_tokens),
        "huggingface bfloat16": lambda: their_writer(model, "bfloat16", batch, n_tokens),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batches", default=None, help="batch sizes (default: 1,16 on a CPU, 1,16,256 on a GPU)")
    parser.add_argument("--tokens", type=int, default=None, help="tokens per text (default: 64 on a CPU, 96 on a GPU)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="only implementations whose name contains this")
    parser.add_argument("--out", type=Path, default=record.RESULTS, help="output folder")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    torch.manual_seed(0)
    model = GPT(MODEL).eval().to(options.device)
    figures: dict[str, Any] = {"read_bandwidth_gigabytes_per_second": bandwidth(options.device)}
    if not on_gpu:
        figures["cold_start_cpu_seconds"] = cold_start(min(3, options.rounds))
    batches = [int(each) for each in (options.batches or ("1,16,256" if on_gpu else "1,16")).split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for batch in batches:
            n_tokens = options.tokens or (96 if on_gpu else 64)
            all_of_them = (
                cuda_sides(model, batch, n_tokens) if on_gpu else cpu_sides(model, batch, n_tokens, Path(folder))
            )
            sides = {name: make for name, make in all_of_them.items() if options.only in name}
            figures[f"batch {batch}"] = compare(sides, options.device, batch, n_tokens, options.rounds)
            for name, row in figures[f"batch {batch}"].items():
                print(f"batch {batch}, {name}: {row}", flush=True)
    record.save(f"generate_speed_{options.device}", figures, ["torch", "transformers"], options.out)


if __name__ == "__main__":
    main()
