"""Write a software bill of materials for Kotha's dependencies, and list their known vulnerabilities.

usage: .venv/bin/python scripts/audit.py [FOLDER] [--database CLONE]

The script writes two files to FOLDER (default: build/audit): ``sbom.json``, all packages in .venv in CycloneDX format,
and ``known.json``, their vulnerabilities according to pip-audit's database. Both tools are installed in a separate
environment in FOLDER, at the versions pinned in audit.txt. The exit code is 1 if a package has a known vulnerability,
and 3 if the database could not be queried. Without a network, pass CLONE, a clone of the PyPA's advisory database (its
``vulns/``), which is only as current as its last commit.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TOOLS = Path(__file__).with_suffix(".txt")


def tools(folder: Path) -> Path:
    """Return the folder of the tools' programs; create their environment if it does not exist."""
    programs = folder / "tools" / "bin"
    if not (programs / "pip-audit").exists():
        subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True)
        pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(TOOLS)]
        subprocess.run(pip, check=True)
    return programs


def bill(programs: Path, python: Path, out: Path) -> int:
    """Write the bill of materials for a Python environment; return the number of packages."""
    words = [str(programs / "cyclonedx-py"), "environment", str(python), "--pyproject", str(ROOT / "pyproject.toml")]
    subprocess.run([*words, "--output-reproducible", "--output-file", str(out)], check=True)
    return len(json.loads(out.read_text(encoding="utf-8"))["components"])


def pinned(sbom: Path) -> list[tuple[str, str]]:
    """Return the names and versions in a bill, without Kotha itself, and without build suffixes such as ``+cpu``."""
    found = json.loads(sbom.read_text(encoding="utf-8"))["components"]
    return sorted((each["name"], each["version"].partition("+")[0]) for each in found if each["name"] != "kotha")


def known_offline(sbom: Path, clone: Path, out: Path) -> int:
    """Look up the packages in a bill in a copy of the advisory database; return the exit code."""
    import yaml
    from packaging.utils import canonicalize_name

    pins = pinned(sbom)
    entries: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((clone / "vulns").glob("*/*.yaml")):
        entry = yaml.safe_load(file.read_text(encoding="utf-8"))
        if "withdrawn" not in entry:
            for affected in entry.get("affected", ()):
                entries.setdefault(canonicalize_name(affected["package"]["name"]), []).append({**affected, **entry})
    if not entries:
        print(f"{clone} contains no vulns/*/*.yaml; clone the PyPA's advisory-database there")
        return 3
    rows = [
        {"name": name, "version": version, "vulns": [{"id": each["id"]} for each in against]}
        for name, version in pins
        for against in [[each for each in entries.get(canonicalize_name(name), ()) if is_affected(version, each)]]
    ]
    print(f"{sum(map(len, entries.values())):,} entries in {clone}")
    return told(rows, out)


def is_affected(version: str, entry: dict[str, Any]) -> bool:
    """Return whether an entry affects this version, by list or by range (``introduced`` to before ``fixed``)."""
    from packaging.version import Version

    if version in entry.get("versions", ()):
        return True
    here = Version(version)
    for each in entry.get("ranges", ()):
        inside = False
        for event in each["events"] if each["type"] == "ECOSYSTEM" else ():
            ((kind, text),) = event.items()
            reached = text == "0" or (here > Version(text) if kind == "last_affected" else here >= Version(text))
            inside = (kind == "introduced") if reached else inside
        if inside:
            return True
    return False


def known(programs: Path, sbom: Path, out: Path) -> int:
    """Look up the packages in a bill in the online database; return the exit code."""
    pins = [f"{name}=={version}" for name, version in pinned(sbom)]
    asked = out.with_name("asked.txt")
    asked.write_text("\n".join(pins) + "\n", encoding="utf-8")
    words = [str(programs / "pip-audit"), "--no-deps", "--disable-pip", "--progress-spinner", "off"]
    ran = subprocess.run(
        [*words, "--requirement", str(asked), "--format", "json"], capture_output=True, text=True, check=False
    )
    rows = json.loads(ran.stdout)["dependencies"] if ran.stdout.startswith("{") else []
    answered = [row for row in rows if "skip_reason" not in row]
    if len(answered) < len(pins):
        print(f"pip-audit returned results for {len(answered)} of {len(pins)} packages; the others were not checked")
        return 3
    return told(answered, out)


def told(rows: list[dict[str, Any]], out: Path) -> int:
    """Write and print the known vulnerabilities; return the exit code."""
    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    against = [row for row in rows if row["vulns"]]
    for row in against:
        print(f"{row['name']} {row['version']}: {', '.join(hole['id'] for hole in row['vulns'])}")
    print(f"{len(against)} of {len(rows)} packages have known vulnerabilities")
    return 1 if against else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "audit")
    parser.add_argument("--database", type=Path)
    given = parser.parse_args()
    folder = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    programs, sbom = tools(folder), folder / "sbom.json"
    print(f"{bill(programs, Path(sys.executable), sbom)} packages in {sbom}", flush=True)
    out = folder / "known.json"
    sys.exit(known(programs, sbom, out) if given.database is None else known_offline(sbom, given.database, out))


if __name__ == "__main__":
    main()
