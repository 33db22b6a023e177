"""Helpers for browser tests: a window that records a page's requests and messages, and a check for overflow."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_SETTLED_SECONDS = 30  # enough for a busy machine
# All elements that extend beyond the window, except those inside a scrollable container.
OUTSIDE = """() => {
    const scrolls = each => /auto|scroll/.test(getComputedStyle(each).overflowX)
    const inside = each => each !== null && (scrolls(each) || inside(each.parentElement))
    return [...document.querySelectorAll("body *")].filter(each =>
        each.getBoundingClientRect().right > innerWidth + 1 && !inside(each.parentElement)).map(each => each.outerHTML)
}"""


@contextmanager
def opened(browser: Any, path: Path, width: int = 1200, scheme: str = "light", language: str = "en") -> Iterator[Any]:
    """Open a page in a window; at the end, check that there were no network requests and no errors."""
    page = window(browser)
    page.goto("about:blank")  # because a change of fragment does not reload the page
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.mouse.move(0, 0)
    asked: list[str] = []
    messages: list[str] = []
    notes: dict[str, Callable[[Any], None]] = {
        "request": lambda request: asked.append(request.url.partition("#")[0]),
        "console": lambda message: messages.append(message.text),
        "pageerror": lambda error: messages.append(str(error)),
    }
    for event, note in notes.items():
        page.on(event, note)
    page.goto(f"{path.as_uri()}#/?lang={language}&theme=system")
    try:
        yield page
    finally:
        for event, note in notes.items():
            page.remove_listener(event, note)
    assert asked == [path.as_uri()]
    assert messages == []


def written(folder: Path, page: str) -> Path:
    """Write a page to a file."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    return path


def window(browser: Any) -> Any:
    """The only window of a browser, because opening another one takes longer than most checks."""
    if not browser.contexts:
        browser.new_context().new_page()
    return browser.contexts[0].pages[0]


def wait_until(page: Any, holds: str, given: Any = None) -> bool:
    """Wait until a condition holds in the page; return False if it does not.

    Playwright's own ``wait_for_function`` evaluates the condition first through the debugger and then as a script in
    the page. The content security policy blocks the script, so the function fails if the condition does not hold at the
    first attempt.
    """
    end = time.monotonic() + _SETTLED_SECONDS
    while not page.evaluate(holds, given):
        if time.monotonic() > end:
            return False
        page.wait_for_timeout(20)
    return True


def check_it_fits(page: Any, width: int) -> None:
    """Check that only scrollable elements are wider than the window; the layout may take a moment to settle."""
    wait_until(page, f"document.documentElement.scrollWidth === {width} && ({OUTSIDE})().length === 0")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OUTSIDE) == []


def faults(page: Any) -> list[str]:
    """Return the serious and critical accessibility problems that axe finds."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['help']} ({each['nodes'][0]['html'][:200]})"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]
