"""Run several training runs in parallel on one GPU, each described by an entry in a JSON file.

    python benchmarks/learning.py TRIALS.json OUT [--at-once 3] [--work FOLDER]

TRIALS.json is a list of objects with the keys ``name``, ``data`` (a data folder), ``preset``, ``recipe``, ``model`` and
``set`` (changes to the model and to the training settings), ``teachers`` (names of earlier trials whose models are
distilled), and ``start`` (the name of an earlier trial to continue). Each trial is scored on the validation split of
its data as in `kotha evaluate`, in windows that advance by half a context.

OUT/results.json contains the trials with their scores and curves; the models of trials with ``bring`` are also written
to OUT, in parts of 16 MB. The weights are stored in a work folder. A folder given by --work is kept, and the trials
finished there are not run again, so that a later list can use them as teachers.
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
    """Run one trial, in its own process."""
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
    hours = {"began": began, "ended": time.time()}  # they show which trials ran in parallel
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
    """Run all trials, some in parallel, a student after its teachers; each finished trial is added to results.json."""
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
    """Write the weights of one trial, in parts."""
    import torch
    from train_course import bring_weights

    out.mkdir()
    bring_weights(run, out, torch.float32)


if __name__ == "__main__":
    main()
