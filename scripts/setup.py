"""Make this checkout's own virtual environment, from what constraints.txt pins. Needs a Python and nothing else.

usage: python3 scripts/setup.py demo|dev [--locked]

With --locked every file is checked against the hash that scripts/lock.py wrote for this system, processor and Python;
where there is no such lock, versions are pinned and that is said.

Says what it does, does it once (a stamp in .venv remembers), and uses only the standard library. What takes root
(Debian packages) is installed when we are root, and skipped with a printed reason when we are not.
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
BUILD = ["hatchling", "editables"]  # what makes Kotha's own package
OLDEST = (3, 11)
# What some tests need beside Python, by its command: a browser with fonts that have Bangla, a spreadsheet, and what
# strikes a command at the calls that it makes of the kernel.
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
    """Install Debian packages if we may; True when it was done."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = {"check": False, "env": environment, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update", "-q"], **quiet)
    install = ["apt-get", "install", "-y", "-q", "--no-install-recommends", *packages]
    return subprocess.run(install, **quiet).returncode == 0


def suitable_python() -> str:
    """A Python that is new enough: the one that runs this, or a newer one beside it."""
    if sys.version_info >= OLDEST:
        return sys.executable
    for minor in range(14, OLDEST[1] - 1, -1):
        if found := shutil.which(f"python3.{minor}"):
            return found
    sys.exit(f"setup: Kotha needs Python {OLDEST[0]}.{OLDEST[1]} or newer, and this is {sys.version.split()[0]}")


def make_environment() -> None:
    """Make .venv, with Debian's venv package first where Python came without it."""
    python = suitable_python()
    if (VENV / "bin" / "pip").exists():
        return
    say(f"making a virtual environment in .venv with {python}")
    for attempt in ("as it is", "after installing python3-venv"):
        shutil.rmtree(VENV, ignore_errors=True)
        made = subprocess.run([python, "-m", "venv", str(VENV)], check=False, stdout=subprocess.DEVNULL)
        if made.returncode == 0:
            return
        if attempt == "as it is" and not apt_install(["python3-venv"]):
            break
    sys.exit("setup: this Python cannot make virtual environments; install the Debian package python3-venv as root")


def lock_of(level: str) -> Path:
    """Where the lock of a level is, for the machine that this runs on."""
    python = "".join(map(str, sys.version_info[:2]))
    return ROOT / "locks" / f"{platform.system()}-{platform.machine()}-py{python}-{level}.txt".lower()


def install_packages(level: str, locked: bool) -> None:
    """Install Kotha and what it needs, each at the version that constraints.txt pins."""
    inputs = [ROOT / "pyproject.toml", ROOT / "constraints.txt"]
    state = hashlib.sha256(b"".join(path.read_bytes() for path in inputs) + str(ROOT).encode()).hexdigest()
    stamp = VENV / f".installed-{level}"
    covering = [stamp] if level == "dev" else [stamp, VENV / ".installed-dev"]
    if any(path.is_file() and path.read_text() == state for path in covering):
        say("everything is installed")
        return
    say(f"installing Kotha and what it needs for {level} (a minute or two the first time)")
    pip = [str(PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location"]
    if level == "dev":
        pip.append("--no-compile")  # Python compiles what is imported; compiling all of it takes a minute
    if locked and lock_of(level).is_file():
        say(f"every file is checked against {lock_of(level).relative_to(ROOT)}")
        run(*pip, "--no-deps", "--require-hashes", "--requirement", str(lock_of(level)))
        run(*pip, "--no-deps", "--no-build-isolation", "--editable", ".")
    else:
        if locked:
            say(f"no {lock_of(level).relative_to(ROOT)}: versions are pinned, files are not checked")
        run(*pip, "--constraint", "constraints.txt", *BUILD)
        run(*pip, "--constraint", "constraints.txt", "--no-build-isolation", "--editable", f".{EXTRAS[level]}")
    stamp.write_text(state)


def install_programs() -> None:
    """Programs for the tests that look at pages and spreadsheets with others' eyes."""
    for program, packages in PROGRAMS.items():
        if shutil.which(program):
            continue
        say(f"installing Debian's {' '.join(packages)} for the tests that use {program}")
        if not apt_install(packages):
            reason = "that takes root" if os.geteuid() != 0 else "apt-get could not install it"
            say(f"skipped: no {program} ({reason}); the tests that need it will be skipped")


def main() -> None:
    words = [word for word in sys.argv[1:] if word != "--locked"]
    if len(words) != 1 or words[0] not in EXTRAS:
        sys.exit(__doc__)
    level = words[0]
    os.environ.setdefault("PIP_ROOT_USER_ACTION", "ignore")
    make_environment()
    # Debian's packages come in beside Python's: both mostly unpack, and neither needs the other.
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
