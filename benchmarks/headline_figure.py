"""Report the headline run: a results file, and a figure with its loss curves over tokens and over seconds."""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import record

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

from kotha.report.chart import Point  # noqa: E402
from kotha.report.drawing import beside, lines  # noqa: E402
from kotha.training.config import TrainConfig  # noqa: E402

PICTURE = ROOT / "docs" / "images" / "headline.svg"
_TEACHERS = ("wide", "backwards", "plain")
_NAMES = {"student": "student of three", "course": "the course", "wide": "one model"}

Run = dict[str, Any]


def show(paths: list[Path]) -> None:
    """Read the results of ``learning.py``, write the results file, and draw the figure."""
    runs = {run["name"]: run for path in paths for run in json.loads(path.read_text()) if "curve" in run}
    seeds = sorted(int(name.split("-")[1]) for name in runs if name.startswith("student-"))
    kinds = ("course", *_TEACHERS, "student")
    runs = {f"{kind}-{seed}": runs[f"{kind}-{seed}"] for kind in kinds for seed in seeds}
    scores = {kind: [runs[f"{kind}-{seed}"]["score"]["bits_per_byte"] for seed in seeds] for kind in kinds}
    figures = {
        "bits_per_byte": {kind: {"mean": statistics.mean(found), "each": found} for kind, found in scores.items()},
        "seconds": {f"{seed}": seconds(runs, seed) for seed in seeds},
        "runs": [
            {key: value for key, value in run.items() if key != "summary"}
            | {"tokens": run["summary"]["tokens"], "seconds": _seconds(run)}
            for run in runs.values()
        ],
    }
    record.save("headline", figures, ["torch"])
    PICTURE.write_text(picture(runs, seeds[0]), encoding="utf-8")
    print(f"drawn in {PICTURE}", file=sys.stderr)


def seconds(runs: dict[str, Run], seed: int) -> dict[str, float]:
    """Return the training seconds of the teachers, some of which were trained in parallel, and of the student."""
    teachers = [runs[f"{name}-{seed}"] for name in _TEACHERS]
    wide, beside = _seconds(teachers[0]), sum(map(_seconds, teachers[1:]))
    student = _seconds(runs[f"student-{seed}"])
    return {"teachers": max(wide, beside), "student": student, "all": max(wide, beside) + student}


def _seconds(run: Run) -> float:
    return float(run["curve"][-1][1])


def picture(runs: dict[str, Run], seed: int) -> str:
    """Return two charts side by side, as one standalone SVG file."""
    spent = seconds(runs, seed)["teachers"]
    read = sum(_tokens(runs[f"{name}-{seed}"])[-1] for name in _TEACHERS)
    over_tokens: dict[str, list[Point]] = {}
    over_seconds: dict[str, list[Point]] = {}
    for kind, name in _NAMES.items():
        run = runs[f"{kind}-{seed}"]
        bits = [each[3] for each in run["curve"]]
        before = (read, spent) if kind == "student" else (0, 0)  # includes the time of its teachers
        over_tokens[name] = [(before[0] + at, y) for at, y in zip(_tokens(run), bits, strict=True)]
        over_seconds[name] = [(before[1] + each[1], each[3]) for each in run["curve"]]
    return beside(
        lines(over_tokens, x="tokens read", y="bits per byte"),
        lines(over_seconds, x="seconds of training on one H200", y="bits per byte"),
        title="Held-out news articles: bits per byte, lower is better",
    ).svg()


def _tokens(run: Run) -> list[int]:
    """Return the number of training tokens at each evaluation."""
    last, steps = run["curve"][-1][0], [each[0] for each in run["curve"]]
    total = run["score"]["context"] * run["set"].get("batch_size", _usual_batch(run)) * last
    return [total * step // last for step in steps]


def _usual_batch(run: Run) -> int:
    from kotha.training.config import RECIPES

    return int(RECIPES[run.get("recipe", "modern")].get("batch_size", TrainConfig().batch_size))
