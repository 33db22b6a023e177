"""Generation speed of the course's model (58 million parameters) beside Hugging Face's generate and llama.cpp.

    python benchmarks/generate_speed.py [--device cpu|cuda] [--batches 1,16] [--tokens 64] [--out FOLDER]

The same weights everywhere, in the same precision where a row says so; prompts of 16 tokens, top-k 40, temperature 0.8,
no end token. Every side is warmed up, then they write turn by turn, and the median of the rounds counts; prompts are
read within the time. What bounds a step at batch 1 is the bytes of weights that a token reads, so each row tells them
and the bandwidth that its rate comes to, beside what this machine was measured to read. llama.cpp takes part where
``xllamacpp`` and ``gguf`` are installed; it has int8 as Q8_0 (a scale for 32 weights) and sees GPT-2's layout.
"""

import argparse
import resource
import statistics
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
from transformers import GPT2Config, GPT2LMHeadModel

from kotha.bundle import Bundle, save
from kotha.export.huggingface.config import write_config
from kotha.export.huggingface.export import foreign_weights
from kotha.export.huggingface.layouts import choose_layout
from kotha.generate.answers import Request
from kotha.generate.engine import Engine
from kotha.generate.settings import SamplingSettings
from kotha.model.gpt import GPT
from kotha.model.presets import preset
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.trainers import train

MODEL = preset("bangla-58m").replace(dropout=0.0, attention_dropout=0.0, activation="gelu-tanh")
PROMPT = 16
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}
Writer = Callable[[int], None]  # writes so many tokens in every row


def prompts(batch: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(0)
    ids: list[list[int]] = torch.randint(1, MODEL.vocab_size, (batch, PROMPT), generator=generator).tolist()
    return ids


def ours(model: GPT, weights: Any, batch: int, compiled: bool = False) -> Writer:
    engine = Engine(model, None, max_batch=batch, weights=weights, compiled=compiled)

    def write(n_tokens: int) -> None:
        settings = [SamplingSettings(temperature=0.8, top_k=40, seed=seed) for seed in range(batch)]
        asked = zip(prompts(batch), settings, strict=True)
        results = engine.generate(Request(prompt=tuple(ids), tokens=n_tokens, settings=each) for ids, each in asked)
        assert all(result.tokens == n_tokens for result in results)

    return write


def to_gpt2(model: GPT) -> GPT2LMHeadModel:
    """The same weights in Hugging Face's model."""
    layout = choose_layout(MODEL)
    settings = write_config(layout, MODEL, None, "float32")
    theirs = GPT2LMHeadModel(GPT2Config(**{**settings, "bos_token_id": 0, "pad_token_id": 0})).eval()
    theirs.load_state_dict(foreign_weights(Bundle(model, None), layout))
    return theirs


def huggingface(theirs: GPT2LMHeadModel, precision: str, batch: int, device: str) -> Writer:
    model = theirs.to(device, DTYPES[precision])
    ids = torch.tensor(prompts(batch), device=device)

    def write(n_tokens: int) -> None:
        mask = torch.ones_like(ids)
        how = {"do_sample": True, "top_k": 40, "temperature": 0.8, "max_new_tokens": n_tokens}
        assert model.generate(ids, attention_mask=mask, **how).shape[1] == PROMPT + n_tokens

    return write


def write_gguf(model: GPT, precision: str, path: Path) -> None:
    """The same weights as llama.cpp reads them; ids are passed in, so a small vocabulary will do."""
    from kotha.export.gguf.export import write_file

    kind = {"float32": "f32", "int8": "q8_0"}[precision]
    write_file(model, train((story.text for story in islice(stories(seed=0), 100)), "bpe", vocab_size=512), path, kind)


def llamacpp(model: GPT, precision: str, batch: int, folder: Path) -> Writer:
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
    asked = prompts(batch)

    def one(ids: list[int], n_tokens: int) -> None:
        how = {"top_k": 40, "temperature": 0.8, "ignore_eos": True, "cache_prompt": False, "n_predict": n_tokens}
        said = server.handle_completions({"prompt": ids, "max_tokens": n_tokens, **how})
        assert said["usage"]["completion_tokens"] == n_tokens, said

    def write(n_tokens: int) -> None:
        with ThreadPoolExecutor(batch) as pool:
            list(pool.map(lambda ids: one(ids, n_tokens), asked))

    return write


def compare(
    sides: dict[str, Callable[[], Writer]], device: str, batch: int, n_tokens: int, rounds: int
) -> dict[str, Any]:
    """Tokens a second of each side, turn by turn; a side that cannot run says why."""
    writers: dict[str, Writer] = {}
    found: dict[str, Any] = {}
    for name, make in sides.items():
        try:
            writers[name] = make()
            for _ in range(2):
                writers[name](n_tokens)
        except Exception as error:  # the others' figures are not lost
            writers.pop(name, None)
            found[name] = f"{type(error).__name__}: {error}"[:300]
            print(f"{name}: {found[name]}", file=sys.stderr, flush=True)
    times: dict[str, list[float]] = {name: [] for name in writers}
    for turn in range(rounds):
        for name in writers if turn % 2 else reversed(writers):
            if device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            writers[name](n_tokens)
            times[name].append(time.perf_counter() - start)
    for name, some in times.items():
        rate = batch * n_tokens / statistics.median(some)
        found[name] = {
            "tokens_per_second": round(rate, 1),
            "spread": [round(batch * n_tokens / each, 1) for each in sorted(some)],
            **_bytes(name, rate / batch),
        }
    return found


def _bytes(name: str, steps_per_second: float) -> dict[str, Any]:
    """Bytes of weights that a step reads (all but the embeddings), and the bandwidth that this comes to."""
    read = MODEL.vocab_size * MODEL.d_model + MODEL.n_layers * (4 * MODEL.d_model**2 + 2 * MODEL.d_model * MODEL.d_ff)
    n_bytes = read * next(size for kind, size in BYTES.items() if kind in name)
    return {"weight_bytes_per_step": n_bytes, "gigabytes_per_second": round(n_bytes * steps_per_second / 1e9, 2)}


def bandwidth(device: str) -> float:
    """Gigabytes a second that this machine reads, at best of some rounds."""
    tensor = torch.ones(1 << (30 if device == "cuda" else 26), device=device)
    best = 0.0
    for _ in range(8):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        tensor.sum().item()
        best = max(best, tensor.numel() * 4 / (time.perf_counter() - start) / 1e9)
    return round(best, 1)


def cold_start() -> float:
    """Seconds of CPU from `kotha generate` to the first letter of a pocket model."""
    tokenizer = train((story.text for story in islice(stories(seed=0), 1000)), "unigram", vocab_size=4096)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        save(path, GPT(preset("pocket").replace(vocab_size=tokenizer.vocab_size)), tokenizer)
        command = [sys.executable, "-m", "kotha", "generate", str(path), "নদীর ধারে", "--tokens", "1"]
        seconds = []
        for _ in range(3):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run(command, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return round(min(seconds), 2)


def cpu_sides(model: GPT, theirs: GPT2LMHeadModel, batch: int, folder: Path) -> dict[str, Callable[[], Writer]]:
    return {
        "kotha float32": lambda: ours(model, "float32", batch),
        "kotha int8": lambda: ours(model, "int8", batch),
        "huggingface float32": lambda: huggingface(theirs, "float32", batch, "cpu"),
        "llama.cpp float32": lambda: llamacpp(model, "float32", batch, folder),
        "llama.cpp int8": lambda: llamacpp(model, "int8", batch, folder),
    }


def cuda_sides(model: GPT, theirs: GPT2LMHeadModel, batch: int) -> dict[str, Callable[[], Writer]]:
    return {
        "kotha bfloat16": lambda: ours(model, "bfloat16", batch),
        "kotha bfloat16 compiled": lambda: ours(model, "bfloat16", batch, compiled=True),
        "huggingface bfloat16": lambda: huggingface(theirs, "bfloat16", batch, "cuda"),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batches", default=None, help="1,16 on a CPU, 1,16,256 on a GPU")
    parser.add_argument("--tokens", type=int, default=None, help="64 on a CPU, 96 on a GPU")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="sides whose name has this")
    parser.add_argument("--out", type=Path, default=record.RESULTS, help="folder of the result")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    torch.manual_seed(0)
    model = GPT(MODEL).eval()
    theirs = to_gpt2(model)
    model.to(options.device)
    figures: dict[str, Any] = {"read_bandwidth_gigabytes_per_second": bandwidth(options.device)}
    if not on_gpu:
        figures["cold_start_cpu_seconds"] = cold_start()
    batches = [int(each) for each in (options.batches or ("1,16,256" if on_gpu else "1,16")).split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for batch in batches:
            sides = cuda_sides(model, theirs, batch) if on_gpu else cpu_sides(model, theirs, batch, Path(folder))
            sides = {name: make for name, make in sides.items() if options.only in name}
            n_tokens = options.tokens or (96 if on_gpu else 64)
            figures[f"batch {batch}"] = compare(sides, options.device, batch, n_tokens, options.rounds)
            for name, row in figures[f"batch {batch}"].items():
                print(f"batch {batch}, {name}: {row}", flush=True)
    record.save(f"generate_speed_{options.device}", figures, ["torch", "transformers"], options.out)


if __name__ == "__main__":
    main()
