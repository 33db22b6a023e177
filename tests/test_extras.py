"""Optional libraries: the hints name commands that work here, and commands check for libraries before any work."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from kotha.errors import InstallCommand

ROOT = Path(__file__).parent.parent
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
CODE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))


@pytest.mark.parametrize("extra", sorted(set(re.findall(r'InstallCommand\("(\w+)"', CODE))))
def test_a_hint_names_the_libraries_of_the_extra(extra: str) -> None:
    assert f"{sys.executable.rpartition('/')[2]} -m pip install " in str(InstallCommand(extra))
    for wanted in EXTRAS[extra]:
        assert wanted.replace("_", "-") in str(InstallCommand(extra))


def test_no_hint_installs_kotha_from_an_index() -> None:
    assert not re.findall(r"pip install '?kotha", CODE), "no index has it: use InstallCommand"


@pytest.mark.parametrize(
    ("words", "library"),
    [
        (["export", "--to", "gguf", "--out", "a.gguf"], "gguf"),
        (["export", "--to", "onnx", "--out", "a"], "onnx"),
        (["sweep", "data"], "optuna"),
        (["open"], "fastapi"),
    ],
)
def test_a_missing_library_is_reported_before_torch_is_imported(words: list[str], library: str, tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules[{library!r}] = None
from kotha.cli.main import main
code = main({words!r})
assert "torch" not in sys.modules, "torch was imported"
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1 and re.search(f"install (it|them) with: .* -m pip install .*{library}", done.stderr), (
        done.stderr
    )
    assert not [*tmp_path.iterdir()]
