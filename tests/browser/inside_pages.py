"""What the browser tests share: a window that notes what a page asks for and says, and what reaches beyond it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Everything that reaches beyond the window, except what scrolls in a box of its own.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter(each =>
    !each.closest(".scroll") && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML)"""


@contextmanager
def opened(browser: Any, path: Path, width: int = 1200, scheme: str = "light") -> Iterator[Any]:
    """A page in a window; when it is left, nothing may have been asked of anyone, and nothing complained of."""
    page = window(browser)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.mouse.move(0, 0)
    asked: list[str] = []
    said: list[str] = []
    notes: dict[str, Callable[[Any], None]] = {
        "request": lambda request: asked.append(request.url),
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
    }
    for event, note in notes.items():
        page.on(event, note)
    page.goto(path.as_uri())
    try:
        yield page
    finally:
        for event, note in notes.items():
            page.remove_listener(event, note)
    assert asked == [path.as_uri()]
    assert said == []


def window(browser: Any) -> Any:
    """The one window of a browser: to open another takes longer than most of what is looked at in it."""
    if not browser.contexts:
        browser.new_context().new_page()
    return browser.contexts[0].pages[0]


def check_it_fits(page: Any, width: int) -> None:
    """Nothing but what scrolls by itself is wider than the window."""
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OUTSIDE) == []
