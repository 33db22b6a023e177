"""Write the lock files for this platform: all packages that ``setup.py`` installs, with version and file hash.

usage: .venv/bin/python scripts/lock.py [FOLDER]

The script runs pip to find out what it would install into an empty environment with constraints.txt; nothing is
installed. A lock file is valid for one system, processor type and Python version, because it lists files:
``locks/linux-aarch64-py311-dev.txt``.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from setup import BUILD, EXTRAS, ROOT, lock_of

_HEAD = "# {level}: what setup.py --locked installs here, by version and hash. Written by scripts/lock.py.\n"


def wanted(level: str) -> list[dict[str, Any]]:
    """Return the packages that pip would install for a level, without Kotha itself."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        words = [*pip, "--report", str(report), "--constraint", "constraints.txt", "--no-build-isolation"]
        subprocess.run([*words, *BUILD, f"{ROOT}{EXTRAS[level]}"], check=True, cwd=ROOT)
        found: list[dict[str, Any]] = json.loads(report.read_text(encoding="utf-8"))["install"]
    return [each for each in found if each["metadata"]["name"] != "kotha"]


def line(package: dict[str, Any]) -> str:
    """Return the line for a package; the version has no build suffix (``+cpu``), which is covered by the hash."""
    name = re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower()
    version = package["metadata"]["version"].partition("+")[0]
    return f"{name}=={version} --hash=sha256:{package['download_info']['archive_info']['hashes']['sha256']}\n"


def main() -> None:
    for level in EXTRAS:
        path = Path(sys.argv[1]) / lock_of(level).name if len(sys.argv) > 1 else lock_of(level)
        path.parent.mkdir(exist_ok=True)
        lines = sorted(map(line, wanted(level)))
        path.write_text(_HEAD.format(level=level) + "".join(lines), encoding="utf-8")
        print(f"{path.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()
