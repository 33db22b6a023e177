"""What Kotha stands on, as a bill of materials, and what is known against it.

usage: .venv/bin/python scripts/audit.py [FOLDER]

FOLDER (build/audit unless named) gets ``sbom.json``, every package of .venv in CycloneDX's format, and ``known.json``,
what pip-audit's database says of each of them. Both tools live in an environment of their own there, at the versions
that audit.txt pins. Exits with 1 where something is known against a package, and with 3 where the database could
not be asked: silence is not a clean bill.
"""

import json
import subprocess
import sys
from pathlib import Path

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


def known(programs: Path, sbom: Path, out: Path) -> int:
    """Ask what is known against the packages of a bill; the exit code."""
    found = json.loads(sbom.read_text(encoding="utf-8"))["components"]
    # Kotha itself is in no index, and a build (``+cpu``) has the holes of what it is a build of.
    pins = sorted(f"{each['name']}=={each['version'].partition('+')[0]}" for each in found if each["name"] != "kotha")
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
    out.write_text(json.dumps(answered, indent=1) + "\n", encoding="utf-8")
    against = [row for row in answered if row["vulns"]]
    for row in against:
        print(f"{row['name']} {row['version']}: {', '.join(hole['id'] for hole in row['vulns'])}")
    print(f"{len(against)} of {len(answered)} packages have something known against them")
    return 1 if against else 0


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "audit"
    folder.mkdir(parents=True, exist_ok=True)
    programs, sbom = tools(folder), folder / "sbom.json"
    print(f"{bill(programs, Path(sys.executable), sbom)} packages in {sbom}", flush=True)
    sys.exit(known(programs, sbom, folder / "known.json"))


if __name__ == "__main__":
    main()
