"""The studio in a real browser: a server with trained models of each family, and pages that are monitored.

All requests from a page must go to the server. A logged error, or a warning from the page's library, fails the test.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from filelock import FileLock

pytest.importorskip("fastapi", reason="the server stands on FastAPI")

from tests.browser.conftest import browser  # noqa: F401 - a fixture
from tests.browser.inside_pages import faults as faults
from tests.server.conftest import save_small, started
from tests.studio.learned import learn_all

from kotha.server.app import make_app
from kotha.server.settings import ServeSettings

# All views: phone, tablet and desktop, in both languages and themes. The most difficult one is always tested.
_OFTEN = {(390, "bn", "dark")}
LOOKS = [
    pytest.param(*look, marks=[] if look in _OFTEN else pytest.mark.slow)
    for look in itertools.product((390, 820, 1400), ("en", "bn"), ("light", "dark"))
]


@pytest.fixture(scope="session")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trained models, each in a folder with its name, and a small, fast GPT in addition to the bundled model.

    If tests run in several processes, the first one trains for all of them.
    """
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    folder = shared / "families"
    with FileLock(shared / "families.lock"):
        if not folder.exists():
            made = tmp_path_factory.mktemp("families")
            learn_all(tmp_path_factory.mktemp("material"), made)
            save_small(made, ["gpt"])
            made.rename(folder)
    return folder


@pytest.fixture(scope="session")
def studio(families: Path, work: Path) -> Iterator[str]:
    """The address of the studio."""
    names = [str(each) for each in sorted(families.iterdir())]
    yield from started(make_app(["box", *names], ServeSettings(jobs=work), device="cpu"))


Opened = Callable[..., Any]


def _is_wrong(said: Any) -> bool:
    """Return whether a message is an error, or a warning from the page's library."""
    return said.type == "error" or (said.type == "warning" and "svelte" in said.text)


@pytest.fixture
def enter(browser: Any, studio: str) -> Iterator[Opened]:  # noqa: F811
    """Open a room: ``enter("look", "blocks.0", m="box", x="…", lang="en", width=390)``."""
    pages: list[Any] = []
    wrong: list[str] = []

    def opened(*place: str, width: int = 1400, height: int = 900, lang: str = "en", **query: str) -> Any:
        page = browser.new_page(viewport={"width": width, "height": height}, reduced_motion="reduce")
        page.set_default_timeout(60_000)  # both cores may be busy with other tests
        page.on("console", lambda said: wrong.append(said.text) if _is_wrong(said) else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((studio, "data:", "blob:")) else wrong.append(asked.url),
        )
        asked = "&".join(f"{name}={quote(value)}" for name, value in {"lang": lang, **query}.items())
        page.goto(f"{studio}/#/{'/'.join(place)}?{asked}")
        page.locator("h1").wait_for()
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not wrong


def type_into(page: Any, name: str, text: str, key: str = "Enter") -> None:
    """Type into a field, and press a key to leave it."""
    page.get_by_role("textbox", name=name).fill(text)
    page.get_by_role("textbox", name=name).press(key)


def check_everyone_can_use_it(page: Any) -> None:
    """Check that axe finds no problems, and that nothing is wider than the window."""
    assert faults(page) == [], page.url
    assert sideways(page) == 0, page.url


def sideways(page: Any) -> int:
    """Return how far the page can be scrolled horizontally, which should be zero."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))
