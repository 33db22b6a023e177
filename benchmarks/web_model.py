"""Measure the bundled model as one HTML file: its size, and tokens per second in Chromium.

    python benchmarks/web_model.py

The file is opened from disk without a network. Each implementation (WebAssembly with SIMD, plain typed arrays)
generates some short greedy texts; the median speed is reported with the lowest and the highest, because other programs
may be running. The prompt is processed before timing starts. The script also checks whether greedy text equals that of
the library's engine with the same weights, in float32 and in int8 (which also rounds the inputs to products).
"""

import argparse
import os
import statistics
import sys
import tempfile
from itertools import zip_longest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

import record  # noqa: E402

from kotha.artifacts.model_folder import load  # noqa: E402
from kotha.export.parity import prompt_reader  # noqa: E402
from kotha.export.targets import export  # noqa: E402
from kotha.export.web.export import opened_page  # noqa: E402
from kotha.generation.engine import Engine  # noqa: E402
from kotha.generation.request import Request  # noqa: E402
from kotha.generation.settings import SamplingSettings  # noqa: E402
from kotha.storage import bundled  # noqa: E402

PROMPTS = ("এক দেশে এক রাজা ছিল।", "নদীর ধারে বসে রহিম", "বাংলাদেশ দক্ষিণ এশিয়ার", "আমি", "সকালে উঠে মা")
GOES = 7
# Generates greedy text after token ids, and measures the speed.
WRITE = """async ([ids, count]) => {
  const settings = {temperature: 0, top_k: null, top_p: null, min_p: null, repetition_penalty: null};
  const written = [];
  const order = {count, seed: 0, settings};
  const {perSecond} = await kotha.source.write(ids, ids.length, order, {token: (token) => written.push(token.id)});
  return {written, perSecond};
}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    options = parser.parse_args()
    bundle = load(bundled.FOLDER)
    assert bundle.tokenizer is not None, "the bundled model has a tokenizer"
    read = prompt_reader(bundle.tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.html"
        report = export(bundle, "web", path, run=bundled.FOLDER)
        with opened_page(path) as page:
            written = [page.evaluate(WRITE, [read(prompt), options.tokens])["written"] for prompt in PROMPTS]
            busy = os.getloadavg()[0]
            speeds = {name: _speed(page, simd, read(PROMPTS[0]), options.tokens) for name, simd in _WAYS.items()}
        figures = {
            "file_bytes": path.stat().st_size,
            "parameters": sum(weight.numel() for weight in bundle.model.parameters()),
            "peer": report.peer,
            "largest_logit_difference": report.max_logit_difference,
            "token_ids_equal": {"lines": report.lines, "different": report.lines_different},
            "load_average_before": round(busy, 1),
            "tokens_per_second": speeds,
            "greedy_text": {kind: _alike(bundle, kind, written, options.tokens) for kind in ("float32", "int8")},
        }
    print(figures)
    record.save("web_model", figures, ["torch", "playwright"], options.out)


_WAYS = {"simd": True, "plain": False}


def _speed(page: Any, simd: bool, ids: list[int], tokens: int) -> dict[str, Any]:
    opened = page.evaluate("(simd) => kotha.open(simd)", simd)
    assert opened["simd"] == simd, "this browser has no WebAssembly with SIMD"
    page.evaluate(WRITE, [ids, tokens])  # warm-up until its code is compiled
    goes = [page.evaluate(WRITE, [ids, tokens])["perSecond"] for _ in range(GOES)]
    return {
        "median": round(statistics.median(goes), 1),
        "slowest": round(min(goes), 1),
        "quickest": round(max(goes), 1),
        "tokens": tokens,
        "goes": GOES,
        "opening_seconds": round(opened["milliseconds"] / 1000, 2),
    }


def _alike(bundle: Any, weights: Any, written: list[list[int]], tokens: int) -> dict[str, Any]:
    """Return, for each prompt, the first token at which the engine and the page differ; None if all tokens match."""
    engine = Engine(bundle.model, bundle.tokenizer, weights=weights)
    greedy = SamplingSettings(temperature=0, top_k=None, repetition_penalty=None)
    results = engine.generate([Request(prompt=prompt, tokens=tokens, settings=greedy) for prompt in PROMPTS])
    pairs = [zip_longest(ours.ids, theirs) for ours, theirs in zip(results, written, strict=True)]
    parts = [next((place for place, (mine, other) in enumerate(pair) if mine != other), None) for pair in pairs]
    return {"prompts": len(PROMPTS), "tokens_each": tokens, "first_difference": parts}


if __name__ == "__main__":
    main()
