"""Many trainings on one GPU, side by side, each from an entry of a JSON file.

    python benchmarks/learning.py TRIALS.json OUT [--at-once 3] [--work FOLDER]

TRIALS.json is a list of objects: ``name``, ``data`` (a prepared folder), ``preset``, ``recipe``, ``model`` and ``set``
(changes of the model and of the training), ``teachers`` (names of earlier trials, whose models it learns from too),
``start`` (the name of an earlier trial to continue from).
Each is scored on its data's validation split as `kotha evaluate` does, in windows that move by half a context.

OUT/results.json holds the trials, their scores and curves; the models of those with ``bring`` come along,
in parts of 16 MB. The weights lie in a work folder; one that is named is kept, and trials which ended there are not
run again, so that a later list may name them as teachers.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "src"))


def run_trial(asked: dict[str, Any], work: Path) -> None:
    """One training, in a process of its own."""
    import record
    import torch

    from kotha.artifacts import model_folder as bundle
    from kotha.artifacts.run_folder import RunFolder
    from kotha.evaluation.perplexity import evaluate_text
    from kotha.model.presets import preset
    from kotha.text.held_out import from_dataset
    from kotha.text.shards import Dataset
    from kotha.training.config import recipe
    from kotha.training.start import start_run

    data = Dataset(asked["data"])
    model = preset(asked.get("preset", "bangla-modern")).replace(**asked.get("model", {}))
    teachers = [str(work / name) for name in asked.get("teachers", [])]
    config = recipe(asked.get("recipe", "modern"), **asked.get("set", {}), teachers=teachers)
    if config.dropout is not None:
        model = model.replace(dropout=config.dropout)
    run = RunFolder(work / asked["name"])
    curve: list[list[float]] = []  # step, seconds of training, nats per token and bits per byte
    learned: list[list[float]] = []  # step and training loss in nats per token

    def tell(event: dict[str, Any]) -> None:
        if "loss_nats" in event:
            learned.append([event["step"], round(event["loss_nats"], 4)])
        if "validation" not in event:
            return
        found, seconds = event["validation"], training.progress.seconds
        curve.append([event["step"], round(seconds, 1), found["loss_nats"], found["bits_per_byte"]])
        print(f"{asked['name']:24} {seconds:5.0f} s  step {event['step']:6d}  {found['bits_per_byte']:.4f}", flush=True)

    start = asked.get("start")
    fill = None if start is None else lambda fresh: fresh.load_state_dict(bundle.load(work / start).model.state_dict())
    training = start_run(model, config, data, run, on_event=tell, initialize=fill)
    began = time.time()
    summary = training.run()
    best = bundle.load(run.path, "cuda" if torch.cuda.is_available() else "cpu")
    with training.arithmetic.autocast():
        score = evaluate_text(best.model, from_dataset(data, best.tokenizer))
    hours = {"began": began, "ended": time.time()}  # they show what ran beside what
    where = {"machine": record.machine() | {"torch": torch.__version__}}
    found = {**asked, **hours, **where, "score": score.to_dict(), "curve": curve, "learned": learned}
    found |= {"summary": summary}
    (work / f"{asked['name']}.json").write_text(json.dumps(found, default=str))
    tokens, seconds = training.progress.tokens, training.progress.seconds
    print(f"== {asked['name']:24} {score.bits_per_byte:.4f}  tokens {tokens:,}  training {seconds:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("trials", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--trial", help=argparse.SUPPRESS)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    trials = json.loads(options.trials.read_text())
    if options.trial:
        run_trial(next(each for each in trials if each["name"] == options.trial), options.work)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as passing:
        work = options.work or Path(passing)
        work.mkdir(parents=True, exist_ok=True)
        run_all(trials, work, options)


def run_all(trials: list[dict[str, Any]], work: Path, options: argparse.Namespace) -> None:
    """All trials, some at once, a student after its teachers; results.json grows with each that ends."""
    done = {path.stem for path in work.glob("*.json")}
    waiting, running = [each for each in trials if each["name"] not in done], dict[str, subprocess.Popen[bytes]]()
    asked = {each["name"]: each for each in trials}
    while waiting or running:
        for name, process in list(running.items()):
            if process.poll() is None:
                continue
            done.add(name)
            del running[name]
            found = [json.loads(path.read_text()) for path in sorted(work.glob("*.json"))]
            (options.out / "results.json").write_text(json.dumps(found, indent=1))
            if asked[name].get("bring") and process.returncode == 0:
                bring(work / name, options.out / name)
        ready = [each for each in waiting if {*each.get("teachers", []), each.get("start")} - {None} <= done]
        if ready and len(running) < options.at_once:
            waiting.remove(ready[0])
            name = ready[0]["name"]
            words = [sys.executable, __file__, options.trials, options.out, "--trial", name, "--work", work]
            running[name] = subprocess.Popen(list(map(str, words)), env={**os.environ, "OMP_NUM_THREADS": "4"})
        time.sleep(0.2)


def bring(run: Path, out: Path) -> None:
    """The weights of one trial, in parts."""
    import torch
    from train_course import bring_weights

    out.mkdir()
    bring_weights(run, out, torch.float32)


if __name__ == "__main__":
    main()
