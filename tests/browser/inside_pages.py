"""What the browser tests share: a window that notes what a page asks for and says, and what reaches beyond it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Everything that reaches beyond the window, except what scrolls in a box of its own.
OUTSIDE = """() => [...document.querySelectorAll("body *")].filter(each =>
    !each.closest(".scroll") && each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML)"""


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
