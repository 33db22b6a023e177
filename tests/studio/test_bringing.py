"""Uploads and input: files that are removed again, files that are not text, and typed numbers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("playwright", reason="it drives the browser")

from playwright.sync_api import expect
from tests.loopback import http
from tests.server.conftest import models, started  # noqa: F401 - a fixture

from kotha.server.app import make_app
from kotha.server.settings import Limits, ServeSettings

pytestmark = pytest.mark.browser
# A file that no job uses may be removed immediately, and no job is accepted.
STRICT = Limits(file_rest_seconds=0, jobs=0)
TEXT = ("নদীর ধারে একটি ছোট গ্রাম ছিল। " * 20).encode()


def house(models: Path, work: Path, limits: Limits = STRICT) -> Iterator[str]:  # noqa: F811
    names = [str(models / "plain"), str(models / "taught")]
    yield from started(make_app(names, ServeSettings(jobs=work, limits=limits), device="cpu"))


@pytest.fixture(scope="module")
def small(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:  # noqa: F811
    """A server with a low upload limit that accepts no jobs."""
    yield from house(models, tmp_path_factory.mktemp("work"))


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened = browser.new_page(viewport={"width": 1200, "height": 900}, reduced_motion="reduce")
    opened.set_default_timeout(60_000)
    yield opened
    opened.close()


def kept(url: str) -> list[Any]:
    return list(http.get(f"{url}/api/files").json())


def choose(page: Any, name: str, data: bytes) -> None:
    page.locator("input[type=radio][value=own]").check()
    page.locator("form input[type=file]").set_input_files({"name": name, "mimeType": "text/plain", "buffer": data})


def test_a_file_whose_training_is_refused_is_let_go(page: Any, small: str) -> None:
    page.goto(f"{small}/#/train?lang=bn")
    choose(page, "নদী.txt", TEXT)
    with page.expect_request(lambda asked: asked.method == "DELETE") as let_go:
        page.get_by_role("button", name="শুরু করুন", exact=True).click()
    page.get_by_text("০টি কাজ রাখা আছে, এর বেশি রাখা যায় না").wait_for()
    let_go.value.response()
    assert kept(small) == []


def test_a_comparison_lets_go_of_its_text(page: Any, small: str) -> None:
    page.goto(f"{small}/#/compare?lang=en&runs=plain,taught")
    page.get_by_role("textbox").first.fill(TEXT.decode())
    with page.expect_request(lambda asked: asked.method == "DELETE") as let_go:
        page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_role("cell", name="taught").or_(page.get_by_role("rowheader", name="taught")).first.wait_for()
    let_go.value.response()
    assert kept(small) == []


def test_spare_files_say_how_much_they_hold_and_go_with_one_button(page: Any, small: str) -> None:
    for _ in range(2):
        http.post(f"{small}/api/files", json={"text": "ক" * 400_000}).raise_for_status()
    page.goto(f"{small}/#/train?lang=bn")
    page.locator("input[type=radio][value=own]").check()
    page.get_by_text("আর কোনো কাজে লাগছে না: ২টি, মোট ২.৪ MB।").wait_for()
    page.get_by_role("button", name="মুছে ফেলুন").click()
    expect(page.get_by_text("আর কোনো কাজে লাগছে না")).to_have_count(0)
    assert kept(small) == []


@pytest.mark.parametrize(("lang", "expected"), [("en", "0 files are stored"), ("bn", "০টি ফাইল রাখা আছে")])
def test_too_many_files_are_refused_in_the_reader_s_language(
    page: Any,
    models: Path,  # noqa: F811
    tmp_path: Path,
    lang: str,
    expected: str,
) -> None:
    for url in house(models, tmp_path, replace(STRICT, files=0)):
        page.goto(f"{url}/#/train?lang={lang}")
        choose(page, "নদী.txt", TEXT)
        page.locator("form.well button.primary").click()
        page.locator("form").get_by_text(expected).wait_for()
        page.goto("about:blank")


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("page.html", b"<!DOCTYPE html><p>x</p>", "page.html একটি ওয়েব পাতা"),
        ("book.pdf", b"%PDF-1.4\nx", "book.pdf একটি PDF"),
        ("none.txt", b" \n", "none.txt ফাইলটি ফাঁকা"),
    ],
)
def test_what_is_no_plain_text_never_leaves_the_page(
    page: Any, small: str, name: str, data: bytes, expected: str
) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.method))
    page.goto(f"{small}/#/train?lang=bn")
    choose(page, name, data)
    page.get_by_role("button", name="শুরু করুন", exact=True).click()
    page.locator("form").get_by_text(expected).wait_for()
    assert "POST" not in asked


def test_a_text_without_blank_lines_is_told_to_be_one_document(page: Any, small: str) -> None:
    page.goto(f"{small}/#/train?lang=bn")
    choose(page, "নদী.txt", TEXT)
    page.get_by_text("শেষ অংশটি যাচাইয়ের জন্য আলাদা রাখা হবে").wait_for()
    choose(page, "নদী.txt", TEXT + b"\n\n" + TEXT)
    expect(page.get_by_text("শেষ অংশটি যাচাইয়ের জন্য আলাদা রাখা হবে")).to_have_count(0)


def test_a_number_stays_as_it_was_typed(page: Any, small: str) -> None:
    page.goto(f"{small}/#/train?lang=bn")
    field = page.get_by_role("textbox", name="মিনিট")
    for typed, shown in (("2.7", "২.৭"), ("০.২৫", "০.২৫"), ("", "০.২৫")):
        field.fill(typed)
        expect(field).to_have_value(typed)
        field.press("Tab")
        expect(field).to_have_value(shown)


@pytest.mark.parametrize("typed", ["3", "৩"])
def test_a_vocabulary_has_room_for_pieces(page: Any, small: str, typed: str) -> None:
    page.goto(f"{small}/#/design?lang=en&vocab_size={2 if typed == '3' else 4096}")
    field = page.get_by_role("textbox", name="Vocabulary")
    expect(field).to_have_value("512" if typed == "3" else "4096")
    field.fill(typed)
    field.press("Tab")
    expect(field).to_have_value("512")
