"""What the browser tests of the pages of ``inside`` share: a browser that notes what is asked for and what is said."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
OPTIONS += ["--disable-component-update", "--disable-sync"]

# Everything that reaches beyond the window, except what scrolls in a box of its own.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter(each =>
    !each.closest(".scroll") && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML)"""


@contextmanager
def a_browser() -> Iterator[Any]:
    """Debian's chromium; where there is none, a skip with its reason, on CI a failure."""
    if not CHROMIUM.exists():
        if os.environ.get("CI"):
            pytest.fail(f"no chromium at {CHROMIUM}, and on CI the browser must be tested")
        pytest.skip(f"no chromium at {CHROMIUM}; Debian's package `chromium` puts one there")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def opened(browser: Any, path: Path, width: int = 1200, scheme: str = "light") -> Iterator[Any]:
    """A page in a window; when it is left, nothing may have been asked of anyone, and nothing complained of."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())
    yield page
    assert asked == [path.as_uri()]
    assert said == []
    page.close()


def check_it_fits(page: Any, width: int) -> None:
    """Nothing but what scrolls by itself is wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OUTSIDE) == []
