"""The judging page: blind pairs, judged by pointer or keyboard, and a saved file that the session can merge."""

import json
from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, opened

from kotha.evaluation.judge.session import JudgingSession


@pytest.fixture
def judging(tmp_path: Path) -> JudgingSession:
    written = {
        name: [f"{name[-1]} লিখল {number} </script><b>" * 3 for number in range(2)] for name in ("run-ক", "run-খ")
    }
    made = JudgingSession.start(tmp_path / "judging", ["নদীর ধারে", "মা"], written)
    made.page(tmp_path / "judge.html")
    return made


@pytest.mark.browser
def test_it_is_judged_offline_and_comes_back_as_a_file(browser, judging: JudgingSession, tmp_path: Path) -> None:
    with opened(browser, tmp_path / "judge.html", 390) as page:
        check_it_fits(page, 390)
        page.get_by_label("Your name").fill("রহিম")
        prompt, left = page.locator("p.prompt"), page.get_by_role("button", name="The first")
        shown = prompt.inner_text()
        left.click()
        page.locator("h1").click()  # away from the button
        page.keyboard.press("Backspace")
        assert prompt.inner_text() == shown, "one can go back"
        assert left.get_attribute("aria-pressed") == "true"
        page.evaluate("document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '২', bubbles: true}))")
        page.keyboard.press("ArrowDown")
        assert page.get_by_text("All pairs are judged").is_visible() and page.get_by_text("2 judged").is_visible()
    with opened(browser, tmp_path / "judge.html", 390) as page:
        assert page.get_by_text("All pairs are judged").is_visible(), "what was said is kept"
        page.locator("button.quiet[lang=bn]").click()
        assert page.get_by_text("সব জোড়ার বিচার শেষ").is_visible() and page.get_by_text("২টির বিচার হয়েছে").is_visible()
        with page.expect_download() as saved:
            page.get_by_role("button", name="ফাইলটি রাখুন").click()
        returned = Path(saved.value.path()).read_text(encoding="utf-8")
        assert "run-" not in page.content(), "who wrote what is not in it"
    file = tmp_path / "judgements.json"
    file.write_text(returned, encoding="utf-8")
    assert judging.collect(file) == ("রহিম", 2)
    by_prompt = {pair.prompt: judging.said_by("রহিম")[pair.id] for pair in judging.pairs}
    assert by_prompt.pop(shown) == "right" and [*by_prompt.values()] == ["tie"]
    assert json.loads(returned)["pairs"] == judging.fingerprint
