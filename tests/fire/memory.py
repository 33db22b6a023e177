"""Commands on machines that are too small: each ends well, or says in words that there is not enough memory.

    python -m tests.fire.memory [--commands train index] [--bounds 500 700 900] [--out FOLDER]

Every command is a real process with a bound on its address space (``ulimit -v``), in millions of bytes; one thread, as
a small machine would. What must not be: a traceback, a signal, a silent end, or a file that passes for whole and is
not. Writes benchmarks/results/fire_memory.json.
"""

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fire.cases import CASES, Words, begin
from tests.launching import Launcher

from kotha.errors import KothaError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record

BOUNDS = (300, 500, 700, 800, 900, 1000, 1200, 1600)
_MATERIAL = CASES["gguf"]  # all that one needs to export: stories, tokenizer, shards, a run

# By name; what each reads and writes is in the folder.
COMMANDS: dict[str, Callable[[Path], Words]] = {
    "stories": lambda folder: ["corpus", "stories", "--documents", "200", "--out", str(folder / "out.jsonl")],
    "tokenizer": CASES["tokenizer"].again,
    "prepare": CASES["prepare"].again,
    "plan": lambda folder: ["plan", "--preset", "gpt2"],
    "train": lambda folder: [*CASES["train"].words(folder)[:3], str(folder / "out"), *CASES["train"].words(folder)[4:]],
    "evaluate": lambda folder: ["evaluate", str(folder / "run"), "--text", "আমি বাড়ি যাই।"],
    "doctor": lambda folder: ["doctor", str(folder / "run")],
    "compare": lambda folder: ["compare", str(folder / "run"), "box", "--text", str(folder / "s.jsonl")],
    "generate": lambda folder: ["generate", "আমি", "--tokens", "10"],
    "inside": lambda folder: [
        "inside",
        "attention",
        str(folder / "run"),
        "--text",
        "আমি",
        "--html",
        str(folder / "page.html"),
    ],
    "export": CASES["export"].words,
    "gguf": CASES["gguf"].words,
    "index": CASES["index"].words,
    "lessons": lambda folder: ["lessons", "run", "positions", "--seeds", "1", "--steps", "3"],
}


@dataclass
class Seen:
    """How one command ended under each bound."""

    command: str
    ended_well: list[int]
    told: list[int]
    wrong: list[str]


def begun(words: Words, folder: Path, bound: int) -> subprocess.CompletedProcess[str]:
    """Run a command that may take so many millions of bytes."""
    limit = (bound * 1_000_000,) * 2
    return subprocess.run(
        [sys.executable, "-m", "kotha", *words],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=300,
    )


def judge(ran: subprocess.CompletedProcess[str]) -> str | None:
    """What is wrong with how it ended, or nothing."""
    lines = ran.stderr.strip().splitlines() or [""]
    if ran.returncode == 0:
        return None
    if ran.returncode < 0 or ran.returncode > 2:
        return f"ended with {ran.returncode}: {lines[-1][:200]}"
    if "Traceback" in ran.stderr:
        return f"a traceback: {lines[-1][:200]}"
    # OpenBLAS says it in a line of its own, and ends the process.
    return None if "memory" in lines[-1].lower() else f"said: {lines[-1][:200]}"


def try_command(name: str, material: Path, bounds: list[int], keep: Path) -> Seen:
    seen = Seen(name, [], [], [])
    for bound in bounds:
        folder = keep / "it"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(material, folder)
        ran = begun(COMMANDS[name](folder), folder, bound)
        wrong = judge(ran)
        for case in CASES.values():  # what is there is whole, or passes for nothing
            try:
                case.sound(folder)
            except (KothaError, OSError, ValueError, AssertionError) as error:
                wrong = f"{case.name} is not whole: {error}"
        if wrong:
            seen.wrong.append(f"{bound} MB: {wrong}")
        else:
            (seen.ended_well if ran.returncode == 0 else seen.told).append(bound)
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--bounds", nargs="+", type=int, default=list(BOUNDS))
    parser.add_argument("--out", type=Path, default=record.RESULTS)
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="kotha-fire-") as place:
        material = Path(place) / "material"
        with Launcher() as launcher:
            begin(launcher, _MATERIAL, material)
        for name in given.commands:
            seen = try_command(name, material, given.bounds, Path(place))
            rows.append(asdict(seen))
            said = f"{name:10} well with {seen.ended_well}, told with {seen.told}, wrong {len(seen.wrong)}"
            print(said, *seen.wrong, sep="\n  ", flush=True)
            record.save("fire_memory", {"bounds_mb": given.bounds, "commands": rows}, ["torch"], given.out)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
