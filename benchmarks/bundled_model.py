"""Train the bundled model in stages, so that the training stages can run on another machine.

    python benchmarks/bundled_model.py all ../shared/data WORK    every stage, one after the other

    python benchmarks/bundled_model.py text ../shared/data WORK   WORK/text, WORK/tokenizer, WORK/data, WORK/last
    python benchmarks/bundled_model.py train WORK                 WORK/trained; needs a GPU, about ten minutes
    python benchmarks/bundled_model.py join WORK                  WORK/taught: the student, in one piece
    python benchmarks/bundled_model.py settle WORK                WORK/settled; needs a GPU, about a minute
    python benchmarks/bundled_model.py pack WORK                  the student as int8: src/kotha/storage/bundled
    python benchmarks/bundled_model.py measure WORK               benchmarks/results/bundled_model.json
    python benchmarks/bundled_model.py card                       src/kotha/storage/bundled/README.md, from that file

    python benchmarks/bundled_model.py rehearse ../shared/data WORK  all but the card, small; into WORK/packed

Before the last stage, run ``bundled_samples.py write WORK``, which generates seventy texts to be judged by a reader.
The evaluation documents were held out before the first stage. The weights are committed only once.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "src"))

import bundled_openings  # noqa: E402 - beside this file
import bundled_text  # noqa: E402

VOCABULARY = 8192
# Two larger teachers of different shapes, then the student, which is bundled; the teachers supply most of its loss.
STUDENT = "box"
TRIALS: list[dict[str, Any]] = [
    {
        "name": "box-t1",
        "model": {"n_layers": 8, "d_model": 768, "n_heads": 12, "d_ff": 2048},
        "set": {"steps": 2600, "evaluate_every": 650, "dropout": 0.4, "muon_learning_rate": 0.004}
        | {"weight_decay": 0.8, "decay_steps": 1300},
    },
    {
        "name": "box-t2",
        "model": {"n_layers": 12, "d_model": 512, "n_heads": 8, "d_ff": 1408},
        "set": {"steps": 2600, "evaluate_every": 650, "dropout": 0.35, "muon_learning_rate": 0.005}
        | {"decay_steps": 1300, "seed": 1},
    },
    {
        "name": STUDENT,
        "bring": True,
        "teachers": ["box-t1", "box-t2"],
        "weigh": 0.8,
        "model": {"n_layers": 8, "d_model": 384, "n_heads": 6, "d_ff": 768},
        "set": {"steps": 4000, "evaluate_every": 500, "dropout": 0.1, "muon_learning_rate": 0.005}
        | {"learning_rate": 0.002, "decay_steps": 2500, "seed": 2},
    },
]
# The last training stage, without teachers: new stories with arbitrary beginnings.
LAST_STORIES, LAST_REPORTS, LAST_SEED = 50_000, 10_000, 21
SETTLING: dict[str, Any] = {
    **{"steps": 5000, "batch_size": 32, "warmup_steps": 50, "decay_steps": 4000, "dropout": 0.05},
    **{"optimizer": "muon", "learning_rate": 0.0015, "muon_learning_rate": 0.004, "seed": 3, "evaluate_every": 1000},
}
# The sampling settings for comparison with human texts: those of `kotha generate`.
WRITING: dict[str, Any] = {"temperature": 0.8, "top_k": 40, "repetition_penalty": 1.1}


def write_text(data: Path, work: Path) -> None:
    """Write the plain text of each part, a tokenizer trained on the training part, and the shards of both parts."""
    import kotha

    parts = bundled_text.split(bundled_text.documents(data))
    for part, sources in parts.items():
        for source, passages in sources.items():
            lines = (json.dumps({"text": passage, "source": source}, ensure_ascii=False) for passage in passages)
            path = work / "text" / part / f"{source}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    held_out = work / "text" / "held_out.jsonl"
    everything = sorted((work / "text" / "held_out").glob("*.jsonl"))
    held_out.write_text("".join(path.read_text(encoding="utf-8") for path in everything), encoding="utf-8")
    train = work / "text" / "train"
    tokenizer = kotha.train_tokenizer(
        [train], kind="unigram", vocab_size=VOCABULARY, out=work / "tokenizer", overwrite=True
    )
    print(kotha.prepare([train], tokenizer, work / "data", validation=held_out, overwrite=True))
    last = work / "text" / "last.jsonl"
    sources = (parts["train"][source] for source in ("tagore", "wikipedia"))
    written = (
        bundled_text.generated(LAST_SEED, LAST_STORIES, ["story"]),
        bundled_text.generated(LAST_SEED, LAST_REPORTS, ["news", "entry"]),
    )
    passages = bundled_openings.last_reading(*written, *sources)
    last.write_text("".join(json.dumps({"text": each}, ensure_ascii=False) + "\n" for each in passages), "utf-8")
    print(kotha.prepare([last], tokenizer, work / "last", validation=held_out, overwrite=True))


def train(work: Path) -> None:
    """Train the teachers and their student with ``learning.py``, like all trials."""
    trials = work / "trials.json"
    trials.write_text(json.dumps([{**each, "data": str(work / "data")} for each in TRIALS], indent=1))
    program = ROOT / "benchmarks" / "learning.py"
    subprocess.run([sys.executable, str(program), str(trials), str(work / "trained")], check=True)


def join(work: Path) -> None:
    """Join the parts of the student's weights into a model folder."""
    from kotha.artifacts import model_folder as bundle
    from kotha.text.tokenizer.tokenizer import Tokenizer

    trained, taught = work / "trained" / STUDENT, work / "taught"
    taught.mkdir(exist_ok=True)
    shutil.copyfile(trained / "best-config.json", taught / bundle.CONFIG_FILE)
    Tokenizer.load(work / "tokenizer").save(taught)
    with (taught / bundle.WEIGHTS_FILE).open("wb") as file:
        for part in sorted(trained.glob("best.[0-9]*")):
            file.write(part.read_bytes())


def settle(work: Path) -> None:
    """Fine-tune the student on stories with arbitrary beginnings."""
    import kotha

    print(kotha.train(work / "last", out=work / "settled", start=work / "taught", **SETTLING).summary)


def pack(work: Path, packed: Path) -> None:
    """Store the fine-tuned student as int8 in ``packed``, by default the folder in the package."""
    from kotha.artifacts import model_folder as bundle

    opened = bundle.load(work / "settled" / bundle.RUN_MODEL)
    bundle.save(work / "int8", opened.model, opened.tokenizer, overwrite=True, stored="int8")
    for path in sorted((work / "int8").iterdir()):
        shutil.copyfile(path, packed / path.name)
    print(f"{sum(path.stat().st_size for path in (work / 'int8').iterdir()):,} bytes in {packed}")


def measure(work: Path, packed: Path) -> None:
    """Measure the packed model, and compare its texts with human texts."""
    import bundled_measure
    import writing_defaults

    import kotha

    model = kotha.load(packed)
    writing = writing_defaults.beside_people(model, work, WRITING)
    bundled_measure.measure(work, model, {"settling": SETTLING, "writing": writing})


def make_small() -> None:
    """Use small sizes, so that every stage takes only seconds, to test the pipeline."""
    global VOCABULARY, LAST_STORIES, LAST_REPORTS
    import bundled_measure
    import writing_defaults

    VOCABULARY, LAST_STORIES, LAST_REPORTS = 600, 40, 10
    bundled_text.STORIES, bundled_measure.TOKENS = 60, 8
    writing_defaults.PASSAGES, writing_defaults.WORDS = 2, 1
    pace = {"steps": 4, "evaluate_every": 2, "decay_steps": 2, "warmup_steps": 1, "batch_size": 2}
    for trial in TRIALS:
        trial["model"] = {
            "n_layers": 1,
            "d_model": 32,
            "n_heads": 2,
            "d_ff": 64,
            "context_length": 64,
            "vocab_size": VOCABULARY,
        }
        trial["set"] |= pace
    SETTLING.update(pace)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    stages = ["text", "train", "join", "settle", "pack", "measure", "card"]
    parser.add_argument("stage", choices=["all", "rehearse", *stages])
    parser.add_argument("folders", nargs="*", type=Path)
    options = parser.parse_args()
    work = options.folders[-1] if options.folders else Path()
    wanted = {"all": stages, "rehearse": stages[:-1]}.get(options.stage, [options.stage])
    packed = ROOT / "src" / "kotha" / "storage" / "bundled"
    if options.stage == "rehearse":
        make_small()
        packed = work / "packed"
        packed.mkdir(parents=True)
    for stage in wanted:
        match stage:
            case "text":
                write_text(options.folders[0], work)
            case "train":
                train(work)
            case "join":
                join(work)
            case "settle":
                settle(work)
            case "pack":
                pack(work, packed)
            case "measure":
                measure(work, packed)
            case "card":
                from bundled_card import write_card

                write_card()


if __name__ == "__main__":
    main()
