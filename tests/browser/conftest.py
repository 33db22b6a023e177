"""The browser for all tests in this folder: Debian's chromium, started once per module."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser; without one, tests are skipped with a reason, or fail on CI."""
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"no chromium at {CHROMIUM}, and on CI the browser must be tested")
        pytest.skip(f"no chromium at {CHROMIUM}; Debian's package `chromium` puts one there")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield browser
        browser.close()
