"""Measure the time from starting `kotha generate` to its first character and to its end, compared with importing torch.

    python benchmarks/first_character.py [--rounds 15]

In each round, every command is started once, in turn: `import torch` alone, `kotha generate` with the bundled model,
the same command with torch (as before `generation/light.py`, and as on a GPU), and `kotha --help`. Ratios are computed
between two commands in the same round. The disk cache is warm: each command is run once before, with bytecode in a
separate folder, which also contains the compiled step. In addition to the elapsed time, the CPU time of each process is
recorded, which depends less on the load of the machine. `parts` is a process that times its own steps.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import record

PROMPT = "আমি"
GENERATE = ["generate", PROMPT, "--tokens", "20"]
WITH_TORCH = (
    "import sys; from kotha.api import engine; engine.light_model = lambda folder: None; "
    "from kotha.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
COMMANDS = {
    "import_torch": ["-c", "import torch"],
    "generate": ["-m", "kotha", *GENERATE],
    "generate_with_torch": ["-c", WITH_TORCH, *GENERATE],
    "help": ["-m", "kotha", "--help"],
}
# The steps of a process until its text is complete, in order.
PARTS = """
import json, time
steps, last = {}, time.process_time()
def done(name):
    global last
    steps[name], last = round(time.process_time() - last, 4), time.process_time()
steps["start Python"] = round(last, 4)
import numpy; done("import numpy")
import kotha.cli.main, kotha.cli.generate; done("import the command line")
import kotha.api.engine as api; done("import tokenizers, regex and the rest")
from kotha.generation.compilation import native; native(); done("open the compiled step")
from kotha.storage.bundled import FOLDER
from kotha.text.tokenizer.tokenizer import Tokenizer; Tokenizer.load(FOLDER).fingerprint; done("tokenizer")
engine = api.open_engine(FOLDER); done("open the model, with a second tokenizer")
engine.generate([api.Request(prompt="আমি", tokens=20)]); done("write 20 tokens")
print(json.dumps(steps))
"""


def timed(words: list[str], environment: dict[str, str]) -> dict[str, float]:
    """Run Python with these arguments; return total seconds, CPU seconds, and seconds until text follows the prompt."""
    start, first, shown = time.perf_counter(), None, b""
    process = subprocess.Popen(
        [sys.executable, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    while some := os.read(process.stdout.fileno(), 1 << 16):
        shown += some
        if first is None and len(shown) > len(PROMPT.encode()):
            first = time.perf_counter() - start
    _, status, usage = os.wait4(process.pid, 0)
    took = {"seconds": time.perf_counter() - start, "cpu_seconds": usage.ru_utime + usage.ru_stime}
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{words} failed")
    return {**took, **({"first_character_seconds": first} if PROMPT.encode() in shown and first else {})}


def medians(rounds: list[dict[str, dict[str, float]]]) -> dict[str, Any]:
    """Return the median of each time, and of its ratio to importing torch in the same round."""
    found: dict[str, Any] = {}
    for name in COMMANDS:
        found[name] = {kind: statistics.median(each[name][kind] for each in rounds) for kind in rounds[0][name]}
        for kind in rounds[0][name]:
            base = "cpu_seconds" if kind == "cpu_seconds" else "seconds"
            ratio = statistics.median(each[name][kind] / each["import_torch"][base] for each in rounds)
            found[name][f"{kind.removesuffix('_seconds')}_to_import_torch"] = round(ratio, 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        own = {"PYTHONPYCACHEPREFIX": str(Path(folder) / "bytecode"), "XDG_CACHE_HOME": str(Path(folder) / "cache")}
        environment = {**os.environ, **own}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        timed(["-c", "import kotha.api.engine, torch"], environment)  # writes bytecode
        first_ever = timed(COMMANDS["generate"], environment)  # compiles
        for words in COMMANDS.values():
            timed(words, environment)
        loads, rounds = [], []
        for _ in range(options.rounds):
            loads.append(round(os.getloadavg()[0], 2))
            rounds.append({name: timed(words, environment) for name, words in COMMANDS.items()})
        steps = [json.loads(subprocess.check_output([sys.executable, "-c", PARTS], env=environment)) for _ in range(5)]
    figures = {
        "rounds": options.rounds,
        "medians": medians(rounds),
        "first_ever_with_compiling": first_ever,
        "parts_cpu_seconds": {name: statistics.median(each[name] for each in steps) for name in steps[0]},
        "load_before_each": loads,
        "each": rounds,
    }
    record.save("first_character", figures, ["torch", "numpy", "tokenizers"])


if __name__ == "__main__":
    main()
