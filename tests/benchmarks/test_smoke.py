"""Smoke tests: every benchmark runs on sizes that take seconds."""

import json
from pathlib import Path

import pytest
from tests.launching import Launcher

from kotha.storage.bundled import FOLDER

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TOOLS = {"record", "headline_figure", "writing_figures"}  # imported by the benchmarks in the same folder
# Run by bundled_model, or tested with the bundled model; learning is run by bundled_model and by headline.
PARTS = {f"bundled_{part}" for part in ("card", "measure", "openings", "samples", "text")}
PARTS |= {"learning", "retrieval_score", "writing_defaults"}
# These take a minute or more at any size: they train three models in sequence, or start a Ray cluster.
LONG = {"bundled_model", "prepare_on_ray"}

# Arguments that reduce each benchmark ({data} and {prepared} are the fixtures), and the results file that it writes.
RUNS = {
    "bundled_model": ("rehearse {data} {out}", "bundled_model"),
    "classification": ("{data}/classify box --tasks sentiment --seeds 0 --limit 12 --epochs 1", "classification"),
    "classification_text": ("{data} {out}/text --seeds 0", None),
    "digits": ("{data}/digits.npz --preset vit-digits --seeds 0 --set steps=2 batch_size=8", "digits"),
    "first_character": ("--rounds 1", "first_character"),
    "first_use": ("--rounds 1", "first_use"),
    "generate_speed": ("--device cpu --batches 1 --tokens 4 --rounds 1 --only kotha", "generate_speed_cpu"),
    "gguf_parity": ("{box} {data}/text.jsonl --kinds f16 --lines 4 --positions 8 --tokens 300", "gguf_parity"),
    "headline": ("trials {out}", None),
    "instruct": ("--stories 4 --test-stories 2 --epochs 1", "instruct"),
    "loss_memory": ("--tokens 64 --width 16 --vocabulary 100 --only kotha", "loss_memory"),
    "memory_plan": ("--only pocket", None),
    "minutes": (
        "{prepared} --minutes 0.05 --set n_layers=1 d_model=32 n_heads=2 n_kv_heads=2 d_head=16 d_ff=64",
        "minutes",
    ),
    "ngram_speed": ("--tokens 20000 --vocabulary 300 --order 2", "ngram_speed"),
    "prepare_on_ray": ("--gigabytes 0.001 --workers 1 --no-kill", "prepare_on_ray"),
    "prepare_throughput": (
        "--megabytes 0.1 --timed 0.1 --rounds 1 --vocabulary 600 600 --news {data}/news",
        "prepare_throughput",
    ),
    "retrieval": ("--large 200 --data {data}/qa", "retrieval"),
    "serve_load": ("--clients 2 --seconds 1 --rows 2 --requests 2 --beside= --weights float32", "serve_load"),
    "serve_soak": ("--requests 20 --minutes 0.05", "serve_soak"),
    "tokenizers_on_news": ("{data} --sizes 600", "tokenizers_on_news"),
    "trace_cost": ("--preset pocket --rounds 2", "trace_cost"),
    "train_beside_huggingface": ("--device cpu --rounds 1", "train_beside_huggingface_cpu"),
    "train_course": ("{prepared} {out}/run --preset pocket --set steps=2 --model vocab_size=400", None),
    "train_speed": ("--only tiny --steps 8", "train_speed"),
    "translation": (
        "{data}/parallel/en-bn.tsv.zst --tests supara_test --directions en-bn --steps 2 --seeds 0",
        "translation",
    ),
    "web_model": ("--tokens 4", "web_model"),
}


# The same 58-million-parameter model in Hugging Face's generate and in llama.cpp, only in the extended suite.
BESIDE = {"generate_speed": ("--device cpu --batches 1 --tokens 4 --rounds 1 --only float32", "generate_speed_cpu")}


@pytest.mark.parametrize(
    ("name", "run"),
    [
        *(pytest.param(name, run, marks=[pytest.mark.slow] * (name in LONG), id=name) for name, run in RUNS.items()),
        *(pytest.param(name, run, marks=pytest.mark.slow, id=f"{name}-beside") for name, run in BESIDE.items()),
    ],
)
def test_a_benchmark_runs(
    name: str, run: tuple[str, str | None], data: Path, prepared: Path, launcher: Launcher, tmp_path: Path
) -> None:
    words, result = run
    arguments = words.format(data=data, prepared=prepared, out=tmp_path, box=FOLDER).split()
    log = tmp_path / "log"
    process = launcher.start([str(BENCHMARKS / f"{name}.py"), *arguments], log, KOTHA_RESULTS=str(tmp_path))
    assert launcher.wait(process) == 0, log.read_text(encoding="utf-8")[-3000:]
    if result is not None:
        assert json.loads((tmp_path / f"{result}.json").read_text(encoding="utf-8"))["figures"]


def test_no_benchmark_is_without_a_run() -> None:
    assert {path.stem for path in BENCHMARKS.glob("*.py")} == RUNS.keys() | TOOLS | PARTS
