"""The book at /book/: only its own files and scripts are allowed, and no API key is needed."""

import base64
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.loopback import http
from tests.server.conftest import Address, started

from kotha.errors import UsageError
from kotha.server.app import make_app
from kotha.server.security import POLICY
from kotha.server.settings import ServeSettings

SCRIPT = "let open = true"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "book"
    (folder / "bn" / "learn").mkdir(parents=True)
    (folder / "index.html").write_text(f"<script>{SCRIPT}</script><script src=a.js></script>", encoding="utf-8")
    (folder / "bn" / "learn" / "01.html").write_text("<p>অধ্যায়</p>", encoding="utf-8")
    (folder / "bn" / "search.json").write_text("{}", encoding="utf-8")
    (folder / "secret.key").write_text("nobody asks for this", encoding="utf-8")
    (folder.parent / "outside.html").write_text("outside", encoding="utf-8")
    (folder / "link.html").symlink_to(folder.parent / "outside.html")
    return folder


@pytest.fixture(scope="module")
def reading(models: Path, book: Path) -> Iterator[Address]:
    settings = ServeSettings(host="0.0.0.0", key="a-key-that-nobody-guesses", book=book)
    app = make_app([str(models / "plain")], settings, device="cpu")
    for url in started(app, "0.0.0.0"):
        yield Address(url, app, models)


def test_pages_are_read_without_a_key_and_models_are_not(reading: Address) -> None:
    page = http.get(f"{reading.url}/book/bn/learn/01.html")
    assert (page.status_code, page.text) == (200, "<p>অধ্যায়</p>")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert http.get(f"{reading.url}/book/bn/search.json").json() == {}
    assert http.get(f"{reading.url}/v1/models").status_code == 401
    assert http.get(f"{reading.url}/book/", follow_redirects=False).text.startswith("<script>")


@pytest.mark.parametrize(
    "path", ["secret.key", "link.html", "../outside.html", "%2e%2e/outside.html", "bn/", "nowhere.html"]
)
def test_only_files_of_the_book_are_served(reading: Address, path: str) -> None:
    key = {"authorization": "Bearer a-key-that-nobody-guesses"}
    assert http.get(f"{reading.url}/book/{path}", headers=key).status_code == 404


def test_an_inline_script_is_allowed_by_its_hash_only(reading: Address) -> None:
    begin = http.get(f"{reading.url}/book/").headers["content-security-policy"]
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in begin
    assert begin.count("unsafe") == begin.count("style-src 'self' 'unsafe-inline'") == 1
    assert http.get(f"{reading.url}/health").headers["content-security-policy"] == POLICY, (
        "other pages keep their policy"
    )


def test_without_a_book_there_is_none(address: Address) -> None:
    assert http.get(f"{address.url}/book/").status_code == 404


def test_a_folder_without_a_book_is_rejected(tmp_path: Path, models: Path) -> None:
    with pytest.raises(UsageError, match=r"contains no index\.html; build the book with `make docs`"):
        make_app([str(models / "plain")], ServeSettings(book=tmp_path), device="cpu")
