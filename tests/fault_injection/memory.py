"""Commands on machines that are too small: each ends well, or says in words that there is not enough memory.

    python -m tests.fault_injection.memory [--commands train index] [--bounds 500 700 900] [--out FOLDER]

Every command is a real process with a bound on its address space (``ulimit -v``), in millions of bytes; one thread, as
a small machine would. What must not be: a traceback, a signal, a silent end, or a file that passes for whole and is
not. A server is asked for a text, and told to stop: it writes, or says what it lacks, and stops well. Writes
benchmarks/results/fire_memory.json.
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.fault_injection.cases import CASES, Words, begin
from tests.fuzz.targets import seeds, write
from tests.launching import Launcher

from kotha.errors import KothaError

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import record

BOUNDS = (300, 500, 700, 800, 900, 1000, 1200, 1600)
_MATERIAL = CASES["gguf"]  # all that one needs to export: stories, tokenizer, shards, a run

_SERVERS = ("serve", "open")
_BAD_ANSWER = "the server answered:"

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
    "presets": lambda folder: ["presets"],
    "card": lambda folder: ["card"],
    "onnx": lambda folder: ["export", str(folder / "run"), "--to", "onnx", "--out", str(folder / "model.onnx")],
    "import": lambda folder: ["import", str(folder / "foreign"), "--out", str(folder / "out")],
    "adapt": lambda folder: [
        *("adapt", "classify", str(folder / "moods.csv"), "--from", str(folder / "run"), "--out", str(folder / "out")),
        *("--set", "steps=3"),
    ],
    "sweep": lambda folder: [
        *("sweep", str(folder / "data"), "--out", str(folder / "out"), "--trials", "2", "--steps", "3"),
        *("--preset", "pocket", "--search", "learning_rate=1e-4..1e-2", "--set", "n_layers=1", "d_model=18"),
    ],
    "judge": lambda folder: [
        *("judge", str(folder / "run"), "box", "--out", str(folder / "out"), "--tokens", "5"),
        *("--prompts", str(folder / "prompts.txt"), "--page", str(folder / "page.html")),
    ],
    "classify": lambda folder: ["classify", str(folder / "classifier"), "আমি বাড়ি যাই।"],
    "fill": lambda folder: ["fill", str(folder / "bert"), "আমি [MASK] যাই।"],
    "translate": lambda folder: ["translate", str(folder / "seq2seq"), "আমি বাড়ি যাই।"],
    "chat": lambda folder: ["chat"],
    "ask": lambda folder: ["ask", "--index", str(folder / "asked.db"), "নদী কোথায়?"],
    "demo": lambda folder: ["demo", "--out", str(folder / "out"), "--documents", "300", "--minutes", "0.05"],
    "serve": lambda folder: ["serve", "--port", "0"],
    "open": lambda folder: ["open", "--no-browser", "--jobs", str(folder / "jobs")],
    "bench": lambda folder: ["bench", "generate", "--batch-size", "1", "--tokens", "4", "--rounds", "2"],
    "inspect": lambda folder: ["corpus", "inspect", str(folder / "s.jsonl")],
}


def more_material(folder: Path, launcher: Launcher) -> None:
    """Models of other families, that have learned nothing; texts of two classes; an index to ask."""
    for name in ("classifier", "bert", "seq2seq"):
        write(folder / name, seeds("model")[name])
    write(folder / "foreign", seeds("hugging_face")["plain"])
    rows = [f"{text} {number},{label}\n" for number in range(20) for text, label in (("ভালো", "সুখ"), ("মন্দ", "দুঃখ"))]
    (folder / "moods.csv").write_text("text,label\n" + "".join(rows), encoding="utf-8")
    (folder / "prompts.txt").write_text("আমি\nনদী\n", encoding="utf-8")
    launcher.run(["index", str(folder / "s.jsonl"), "--out", str(folder / "asked.db")], folder.with_name("log"))


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
    said = folder.with_name("said")
    with said.open("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "kotha", *words],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit),
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            stdin=subprocess.DEVNULL,
        )
        wrong = ask_server(process, said) if words[0] in _SERVERS else None
        output, _ = process.communicate(timeout=300)
    told = said.read_text(encoding="utf-8") + (f"\n{_BAD_ANSWER} {wrong}" if wrong else "")
    return subprocess.CompletedProcess(words, process.returncode, output, told)


def ask_server(process: "subprocess.Popen[str]", said: Path) -> str | None:
    """Ask for a text where it comes so far as to listen, and tell it to stop; what was wrong with the answer."""
    for _ in range(600):
        address = re.search(r"http://127\.0\.0\.1:\d+", said.read_text(encoding="utf-8"))
        if address is not None or process.poll() is not None:
            break
        time.sleep(0.2)
    if process.poll() is not None or address is None:
        return None
    asked = {"model": "box", "prompt": "আমি", "max_tokens": 5}
    request = urllib.request.Request(
        f"{address[0]}/v1/completions", json.dumps(asked).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            found = json.load(answer)["choices"][0]["text"]
        wrong = None if found else "nothing"
    except urllib.error.HTTPError as error:
        told = json.load(error)["error"]["message"]
        wrong = None if "memory" in told else f"{error.code}, {told}"
    except OSError as error:  # it has ended, and says why where others do
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
            return None
        wrong = str(error)
    process.terminate()
    return wrong


def judge(ran: subprocess.CompletedProcess[str]) -> str | None:
    """What is wrong with how it ended, or nothing."""
    lines = ran.stderr.strip().splitlines() or [""]
    told_to_stop = ran.args[0] in _SERVERS and ran.returncode == 128 + signal.SIGTERM
    if lines[-1].startswith(_BAD_ANSWER):
        return lines[-1]
    if (ran.returncode == 0 or told_to_stop) and "Traceback" not in ran.stderr:
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
            (seen.told if ran.returncode in (1, 2) else seen.ended_well).append(bound)
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
            more_material(material, launcher)
        for name in given.commands:
            seen = try_command(name, material, given.bounds, Path(place))
            rows.append(asdict(seen))
            said = f"{name:10} well with {seen.ended_well}, told with {seen.told}, wrong {len(seen.wrong)}"
            print(said, *seen.wrong, sep="\n  ", flush=True)
            record.save("fire_memory", {"bounds_mb": given.bounds, "commands": rows}, ["torch"], given.out)
    return int(any(row["wrong"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
