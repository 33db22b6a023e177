"""The installed wheel includes the studio, and needs neither a checkout nor node."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loopback import http

pytest.importorskip("hatchling", reason="the build backend, which the tests' environment has")

from hatchling.builders.wheel import WheelBuilder

from kotha.report.built import FOLDER, STATIC

ROOT = Path(__file__).parents[2]
_PART = re.compile(r"[\w.]+-[\w-]{8}\.(?:js|css|woff2)\b")  # named by the build tool
# The path contains the libraries for these tests, but no editable checkout of Kotha; the location of the imported Kotha
# is printed.
_START = """
import sys
sys.path = [sys.argv.pop(1), *(each for each in sys.path if "site-packages" in each or "lib/python" in each)]
import kotha
print(kotha.__file__, flush=True)
from kotha.cli import run
run()
"""


def built(root: Path, out: Path) -> Path:
    (wheel,) = WheelBuilder(str(root)).build(directory=str(out), versions=["standard"])
    return Path(wheel)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


def test_two_builds_are_equal_to_the_byte(wheel: Path, tmp_path: Path) -> None:
    """A copy of the files in another folder, with other times and permissions."""
    skipped = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "copy" / "src", copy_function=shutil.copyfile, ignore=skipped)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tmp_path / "copy" / name)
    for file in (tmp_path / "copy").rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
        os.utime(file, (1, 1))
    assert built(tmp_path / "copy", tmp_path).read_bytes() == wheel.read_bytes()


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with only the wheel of this checkout installed."""
    folder = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile", "--target"]
    subprocess.run([*command, str(folder), wheel], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def served(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of ``kotha serve`` from that folder, started without a checkout and with an empty PATH."""
    nowhere = tmp_path_factory.mktemp("nowhere")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PATH")}
    environment |= {"PATH": str(nowhere), "HOME": str(nowhere), "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(
        [sys.executable, "-P", "-c", _START, str(installed), "serve", "--port", "0", "--device", "cpu"],
        cwd=nowhere, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None and server.stderr is not None
    with contextlib.closing(server.stdout) as said, contextlib.closing(server.stderr) as told:
        try:
            assert Path(said.readline().strip()).is_relative_to(installed)
            yield told.readline().split(" at ")[1].split("/v1")[0]
        finally:
            server.terminate()
            server.wait(60)


def test_the_wheel_has_what_the_studio_is_made_of() -> None:
    packed = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    of_the_studio = [each for each in FOLDER.rglob("*") if each.is_file() and "__pycache__" not in each.parts]
    assert {f"kotha/report/studio/{each.relative_to(FOLDER).as_posix()}" for each in of_the_studio} <= packed
    assert not [name for name in packed if "node_modules" in name or name.endswith((".svelte", ".ts"))]


def test_the_studio_is_served_from_the_wheel_alone(served: str) -> None:
    page = http.get(served)
    assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
    asked = {"/"}
    waiting = set(re.findall(r'(?:src|href)="(/[^"]+)"', page.text))
    while waiting:  # scripts refer to the chunks that each room loads, and styles to the fonts
        asked.add(path := waiting.pop())
        found = http.get(f"{served}{path}")
        assert found.status_code == 200, path
        if "font" not in found.headers["content-type"]:
            waiting |= {f"/studio/{name}" for name in _PART.findall(found.text)} - asked
    assert {Path(each).suffix for each in asked} >= {".js", ".css", ".woff2"}
    assert {f"/{each.relative_to(STATIC).as_posix()}" for each in (STATIC / "studio").iterdir()} <= asked
    assert http.get(f"{served}/v1/models").json()["data"][0]["id"] == "box"
