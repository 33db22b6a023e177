"""What every result carries: the machine, the versions, the command."""

import json
import os
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    found = {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": memory,
        "system": platform.platform(),
    }
    torch = sys.modules.get("torch")  # only a benchmark that uses it has it loaded
    if torch is not None and torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found


def save(name: str, figures: Any, libraries: list[str], folder: Path = RESULTS) -> Path:
    """Write benchmarks/results/NAME.json, or NAME.json elsewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    command = ["python", *(argument.replace(str(Path.home()), "~") for argument in sys.argv)]
    record = {
        "command": shlex.join(command),
        "machine": machine(),
        "versions": {"python": platform.python_version(), **{library: version(library) for library in libraries}},
        "figures": figures,
    }
    path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"written to {path}", file=sys.stderr)
    return path


def figures(path: Path) -> Any:
    """What an earlier run of a benchmark has written."""
    return json.loads(path.read_text(encoding="utf-8"))["figures"]
