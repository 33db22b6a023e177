"""The site builds in strict mode in both languages, is complete, works offline, and finds all forms of a word."""

import functools
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripts.book.chapters import chapters
from scripts.book.site import broken_links, build, page_text, toml
from scripts.book.slugs import slug
from tests.browser.inside_pages import wait_until

from kotha.retrieval import stemming

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    return build(folder / "site", folder / "source")


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_every_chapter_has_a_page_in_its_language(site: Path) -> None:
    for chapter in chapters():
        page = (site / chapter.language / "learn" / f"{chapter.name}.html").read_text(encoding="utf-8")
        assert chapter.title.partition(". ")[2] in page
        assert "<!-- holds" not in page


def test_links_lead_somewhere_also_across_the_languages(site: Path) -> None:
    assert broken_links(site) == []
    page = (site / "bn" / "learn" / "01-text.html").read_text(encoding="utf-8")
    assert 'href="../../en/learn/01-text.html"' in page


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html">x</a><a href="#here">y</a><img src="c.svg"><p id="there">')
    assert broken_links(tmp_path) == ["a.html: b.html", "a.html: #here", "a.html: c.svg"]


def test_the_builder_is_strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(path: Path, language: str) -> str:
        return page_text(path, language) + "\n\n[nowhere](nowhere.md)\n"

    monkeypatch.setattr("scripts.book.site.page_text", broken)
    with pytest.raises(SystemExit, match=r"(?s)the en book does not build.*page does not exist"):
        build(tmp_path / "site", tmp_path / "source")


def test_the_site_names_no_font_and_no_script_from_elsewhere(site: Path) -> None:
    for path in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = path.read_text(encoding="utf-8")
        for foreign in ("fonts.googleapis", "fonts.gstatic", "unpkg.com", "jsdelivr", "cdnjs"):
            assert foreign not in text, f"{path.relative_to(site)} asks {foreign}"


def test_anchors_are_those_of_a_code_host() -> None:
    assert slug("Why 512? It is a choice", "-") == "why-512-it-is-a-choice"
    assert slug("এক শব্দ, দুই বানান", "-") == "এক-শব্দ-দুই-বানান"


def test_settings_are_written_as_toml() -> None:
    assert toml({"a": [True, "ক\\"], "b.c": 1}) == '{ a = [true, "ক\\\\"], "b.c" = 1 }'


def test_the_search_takes_off_the_endings_that_the_retrieval_does() -> None:
    script = (ROOT / "docs" / "theme" / "search.js").read_text(encoding="utf-8")
    listed = script.split("const ENDINGS = (")[1].split(")")[0]
    endings = listed.replace('"', "").replace("+", "").split()
    assert sorted(endings) == sorted(stemming._ENDINGS.split())


# A search term, and a word on the page that must be found: other endings, the other spelling of য়, no joiner.
FORMS = [
    ("টোকেনগুলোর", "টোকেন"),
    ("অক্ষরটিকে", "অক্ষর"),
    ("বাংলা\u09df", "বাংলায়"),
    ("নদীদেরকে", "নদী"),
    ("স্ত্রীর", "স্ত্রী"),
]


@pytest.mark.browser
def test_search_finds_a_word_by_any_of_its_forms_and_asks_nobody_else(browser: Any, address: str) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    for typed, found in FORMS:
        page.goto(f"{address}/bn/index.html")
        page.get_by_role("button", name="খুঁজুন").first.click()
        page.keyboard.type(typed)
        assert wait_until(
            page,
            """found => [...document.querySelectorAll("*")].some(each => {
                const list = each.shadowRoot && each.shadowRoot.querySelector("ol");
                return list && list.innerText.normalize("NFC").includes(found);
            })""",
            found,
        )
    assert asked
    assert all(url.startswith((address, "data:", "blob:")) for url in asked), set(asked)
    page.close()


@pytest.mark.browser
def test_no_page_is_wider_than_the_screen(browser: Any, address: str) -> None:
    page = browser.new_page()
    for chapter in chapters():
        page.goto(f"{address}/{chapter.language}/learn/{chapter.name}.html")
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 900})
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, f"{chapter.label} is {wide} wide on {width}"
    page.close()
