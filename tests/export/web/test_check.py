"""The page is verified in a real browser; otherwise the report states the reason."""

import shutil
import sys
from pathlib import Path

import pytest
from tests.browser.conftest import CHROMIUM
from tests.export.models import CONFIGS, shaken

from kotha.errors import KothaError
from kotha.export.targets import export

LINES = ["নদীর ধারে", "তঁার র\u200c্যাব", "১২ 34 😀"]


@pytest.mark.browser
@pytest.mark.parametrize("name", ["qwen3", "course"])
def test_the_page_is_compared_where_there_is_a_browser(tmp_path: Path, name: str) -> None:
    if not CHROMIUM.exists():
        pytest.skip(f"no chromium at {CHROMIUM}; Debian's package `chromium` puts one there")
    report = export(shaken(CONFIGS[name]), "web", tmp_path / "m.html", lines=LINES)
    assert report.passed, report
    assert report.peer is not None and report.peer.endswith("from disk, offline")
    assert (report.lines, report.positions) == (3, 3)


def test_without_a_browser_the_report_says_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "playwright", None)
    report = export(shaken(CONFIGS["gpt2"]), "web", tmp_path, lines=LINES)
    assert not report.checked and report.passed
    assert "not checked: playwright is not installed" in str(report.remarks[0])


@pytest.mark.browser
def test_a_page_that_does_not_run_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(CHROMIUM.name) is None:
        pytest.skip("no chromium on this machine")
    monkeypatch.setattr("kotha.export.web.export.whole_page", lambda *_: "<title>nothing</title>")
    with pytest.raises(KothaError, match=r"the browser could not run .*model\.html"):
        export(shaken(CONFIGS["gpt2"]), "web", tmp_path, lines=LINES)
