"""The page of a judging: pair after pair by hand or by key, blind, and a file that the folder takes in."""

import json
from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, opened

from kotha.evaluate.judge.session import Judging


@pytest.fixture
def judging(tmp_path: Path) -> Judging:
    written = {
        name: [f"{name[-1]} লিখল {number} </script><b>" * 3 for number in range(2)] for name in ("run-ক", "run-খ")
    }
    made = Judging.start(tmp_path / "judging", ["নদীর ধারে", "মা"], written)
    made.page(tmp_path / "judge.html")
    return made


@pytest.mark.browser
def test_it_is_judged_offline_and_comes_back_as_a_file(browser, judging: Judging, tmp_path: Path) -> None:
    with opened(browser, tmp_path / "judge.html", 390) as page:
        check_it_fits(page, 390)
        page.locator("#judge").fill("রহিম")
        shown = page.locator("#prompt").inner_text()
        page.locator("#left").click()
        page.keyboard.press("Backspace")
        assert page.locator("#prompt").inner_text() == shown, "one can go back"
        assert page.locator("#left").get_attribute("aria-pressed") == "true"
        page.keyboard.press("2")
        page.keyboard.press("0")
        assert page.locator("#done").is_visible() and page.locator("#count").inner_text() == "2 judged"
        href = page.locator("#file").get_attribute("href")
        returned = page.evaluate("href => decodeURIComponent(href.slice(href.indexOf(',') + 1))", href)
        assert "run-" not in page.content(), "who wrote what is not in it"
    file = tmp_path / "judgements.json"
    file.write_text(returned, encoding="utf-8")
    assert judging.collect(file) == ("রহিম", 2)
    by_prompt = {pair.prompt: judging.said_by("রহিম")[pair.id] for pair in judging.pairs}
    assert by_prompt.pop(shown) == "right" and [*by_prompt.values()] == ["tie"]
    assert json.loads(returned)["pairs"] == judging.fingerprint
