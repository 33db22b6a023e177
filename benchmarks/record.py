"""Write results files with the machine, the versions and the command, and parse settings from the command line."""

import json
import os
import platform
import shlex
import sys
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(os.environ.get("KOTHA_RESULTS") or ROOT / "benchmarks" / "results")


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        "system": platform.platform(),
    }
    torch = sys.modules.get("torch")  # loaded only if the benchmark uses it
    if torch is not None and torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def command() -> str:
    """Return the command that repeats the benchmark, to be run in the root of the repository."""
    script, *words = sys.argv
    spec = sys.modules["__main__"].__spec__
    if spec is not None:
        begun = ["-m", spec.name.removesuffix(".__main__")]
    else:
        place = Path(script).resolve()
        begun = [str(place.relative_to(ROOT)) if place.is_relative_to(ROOT) else script]
    return shlex.join(["python", *begun, *(word.replace(str(Path.home()), "~") for word in words)])


def save(name: str, figures: Any, libraries: list[str], folder: Path = RESULTS) -> Path:
    """Write benchmarks/results/NAME.json, or NAME.json in another folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    record = {
        "command": command(),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{library: version(library) for library in libraries}},
        "figures": figures,
    }
    path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}", file=sys.stderr)
    return path


def figures(path: Path) -> Any:
    """Return the results of an earlier run of a benchmark."""
    return json.loads(path.read_text(encoding="utf-8"))["figures"]


def from_words(words: Sequence[str]) -> dict[str, Any]:
    """Parse NAME=VALUE words as settings; a value that is not valid TOML is a plain word."""
    found: dict[str, Any] = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name] = tomllib.loads(f"value = {value}")["value"]
        except ValueError:
            found[name] = value
    return found
