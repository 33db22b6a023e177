"""What Kotha stands on, as a bill of materials, and what is known against it.

usage: .venv/bin/python scripts/audit.py [FOLDER] [--database CLONE]

FOLDER (build/audit unless named) gets ``sbom.json``, every package of .venv in CycloneDX's format, and ``known.json``,
what pip-audit's database says of each of them. Both tools live in an environment of their own there, at the versions
that audit.txt pins. Exits with 1 where something is known against a package, and with 3 where the database could
not be asked: silence is not a clean bill. Where there is no network, CLONE is a copy of the PyPA's advisory database
(its ``vulns/``), which is as old as its last commit, and is asked instead.
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
    """The programs of the tools' own environment, made where it is not there yet."""
    programs = folder / "tools" / "bin"
    if not (programs / "pip-audit").exists():
        subprocess.run([sys.executable, "-m", "venv", str(programs.parent)], check=True)
        pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", str(TOOLS)]
        subprocess.run(pip, check=True)
    return programs


def bill(programs: Path, python: Path, out: Path) -> int:
    """Write the bill of materials of a Python's environment; how many packages it names."""
    words = [str(programs / "cyclonedx-py"), "environment", str(python), "--pyproject", str(ROOT / "pyproject.toml")]
    subprocess.run([*words, "--output-reproducible", "--output-file", str(out)], check=True)
    return len(json.loads(out.read_text(encoding="utf-8"))["components"])


def pinned(sbom: Path) -> list[tuple[str, str]]:
    """Names and versions of a bill. Kotha is in no index; a build (``+cpu``) has the holes of what it is a build of."""
    found = json.loads(sbom.read_text(encoding="utf-8"))["components"]
    return sorted((each["name"], each["version"].partition("+")[0]) for each in found if each["name"] != "kotha")


def known_offline(sbom: Path, clone: Path, out: Path) -> int:
    """What a copy of the advisory database says of the packages of a bill; the exit code."""
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
        print(f"{clone} holds no vulns/*/*.yaml; clone the PyPA's advisory-database there")
        return 3
    rows = [
        {"name": name, "version": version, "vulns": [{"id": each["id"]} for each in against]}
        for name, version in pins
        for against in [[each for each in entries.get(canonicalize_name(name), ()) if is_affected(version, each)]]
    ]
    print(f"{sum(map(len, entries.values())):,} entries in {clone}")
    return told(rows, out)


def is_affected(version: str, entry: dict[str, Any]) -> bool:
    """Whether an entry speaks of this version: by its list, or by a range (``introduced`` to before ``fixed``)."""
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
    """Ask what is known against the packages of a bill; the exit code."""
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
        print(
            f"pip-audit's database answered for {len(answered)} of {len(pins)} packages; nothing is known of the rest"
        )
        return 3
    return told(answered, out)


def told(rows: list[dict[str, Any]], out: Path) -> int:
    """Write and say what is known; the exit code."""
    out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    against = [row for row in rows if row["vulns"]]
    for row in against:
        print(f"{row['name']} {row['version']}: {', '.join(hole['id'] for hole in row['vulns'])}")
    print(f"{len(against)} of {len(rows)} packages have something known against them")
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
