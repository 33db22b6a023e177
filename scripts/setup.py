"""Create a virtual environment for this checkout with the versions in constraints.txt. Requires only Python.

usage: python3 scripts/setup.py demo|dev [--locked]

With --locked every file is checked against the hash that scripts/lock.py wrote for this system, processor and Python
version. If there is no such lock file, only versions are pinned, and a message says so.

The script prints each step, skips steps that are already done (recorded by a stamp in .venv), and uses only the
standard library. Debian packages are installed if it runs as root, and otherwise skipped with a message.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
EXTRAS = {"demo": "[serve]", "dev": "[dev]"}
BUILD = ["hatchling", "editables"]  # builds the Kotha package
OLDEST = (3, 11)
# Programs that some tests need, by command: a browser with Bangla fonts, a spreadsheet, and a tool that injects faults
# into system calls.
PROGRAMS = {
    "chromium": ["chromium", "fonts-noto-core", "fonts-beng"],
    "soffice": ["libreoffice-calc"],
    "strace": ["strace"],
}


def say(text: str) -> None:
    print(f"setup: {text}", flush=True)


def run(*command: str) -> None:
    subprocess.run(command, check=True, cwd=ROOT)


def apt_install(packages: list[str]) -> bool:
    """Install Debian packages if permitted; return whether they were installed."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = {"check": False, "env": environment, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update", "-q"], **quiet)
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    return subprocess.run(install, **quiet).returncode == 0


def suitable_python() -> str:
    """Return a Python that is new enough: the one that runs this script, or another installed one."""
    if sys.version_info >= OLDEST:
        return sys.executable
    for minor in range(14, OLDEST[1] - 1, -1):
        if found := shutil.which(f"python3.{minor}"):
            return found
    sys.exit(f"setup: Kotha needs Python {OLDEST[0]}.{OLDEST[1]} or newer, not {sys.version.split()[0]}")


def make_environment() -> None:
    """Create .venv, after installing Debian's venv package if Python lacks it."""
    python = suitable_python()
    if (VENV / "bin" / "pip").exists():
        return
    say(f"creating a virtual environment in .venv with {python}")
    for attempt in ("as it is", "after installing python3-venv"):
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([python, "-m", "venv", str(VENV)], check=False, stdout=subprocess.DEVNULL)
        if made.returncode == 0:
            return
        if attempt == "as it is" and not apt_install(["python3-venv"]):
            break
    sys.exit("setup: this Python cannot create virtual environments; install the Debian package python3-venv as root")


def lock_of(level: str) -> Path:
    """Return the path of the lock file of a level for this machine."""
    python = "".join(map(str, sys.version_info[:2]))
    return ROOT / "locks" / f"{platform.system()}-{platform.machine()}-py{python}-{level}.txt".lower()


def install_packages(level: str, locked: bool) -> None:
    """Install Kotha and its dependencies, at the versions pinned in constraints.txt."""
    inputs = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    state = hashlib.sha256(b"".join(path.read_bytes() for path in inputs) + str(ROOT).encode()).hexdigest()
    stamp = VENV / f".installed-{level}"
    covering = [stamp] if level == "dev" else [stamp, VENV / ".installed-dev"]
    if any(path.is_file() and path.read_text() == state for path in covering):
        say("everything is installed")
        return
    say(f"installing Kotha and its {level} dependencies (a minute or two the first time)")
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location"]
    if level == "dev":
        pip.append("--no-compile")  # Python compiles what is imported; compiling all of it takes a minute
    if locked and lock_of(level).is_file():
        say(f"files are checked against the hashes in {lock_of(level).relative_to(ROOT)}")
        run(*pip, "--no-deps", "--require-hashes", "--requirement", str(lock_of(level)))
        run(*pip, "--no-deps", "--no-build-isolation", "--editable", ".")
    else:
        if locked:
            say(f"no {lock_of(level).relative_to(ROOT)}: versions are pinned, files are not checked")
        run(*pip, "--constraint", "constraints.txt", *BUILD)
        run(*pip, "--constraint", "constraints.txt", "--no-build-isolation", "--editable", f".{EXTRAS[level]}")
    stamp.write_text(state)


def install_programs() -> None:
    """Install the programs for tests that use a browser or a spreadsheet."""
    for program, packages in PROGRAMS.items():
        if shutil.which(program):
            continue
        say(f"installing Debian's {' '.join(packages)} for the tests that use {program}")
        if not apt_install(packages):
            reason = "requires root" if os.geteuid() != 0 else "apt-get could not install it"
            say(f"skipped: {program} is missing ({reason}); the tests that need it will be skipped")


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--locked"]
    if len(words) != 1 or words[0] not in EXTRAS:
        sys.exit(__doc__)
    level = words[0]
    os.environ.setdefault("PIP_ROOT_USER_ACTION", "ignore")
    make_environment()
    # Debian and Python packages are installed in parallel, because they do not depend on each other.
    programs = threading.Thread(target=install_programs) if level == "dev" else None
    if programs:
        programs.start()
    try:
        install_packages(level, "--locked" in sys.argv)
    finally:
        if programs:
            programs.join()


if __name__ == "__main__":
    main()
