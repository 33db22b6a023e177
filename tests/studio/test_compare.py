"""Compare and judge: the figures match the library, and the authors of texts stay hidden until the results."""

from pathlib import Path
from typing import Any

import pytest
from tests.studio.conftest import Opened

import kotha
from kotha.evaluation.judge.session import JudgingSession
from kotha.storage import bundled

pytestmark = pytest.mark.browser
TEXT = "সকালে নদীর ধারে দুটি ছেলে মাছ ধরছিল। একটু পরে বৃষ্টি নামল, তারা দৌড়ে বাড়ি ফিরল।"


def test_the_table_is_the_library_s(enter: Opened, families: Path, tmp_path: Path) -> None:
    page = enter("compare", runs="box,gpt")
    page.get_by_role("textbox").fill(TEXT)
    page.get_by_role("button", name="Compare", exact=True).click()
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    compared = kotha.compare([bundled.FOLDER, families / "gpt"], text=tmp_path / "text.txt").to_dict()
    found = compared["rows"]
    row = page.get_by_role("row", name="box")
    row.wait_for()
    assert f"{found[0]['bits_per_byte']:.4f} ▲" in row.inner_text()
    assert f"{found[1]['bits_per_byte']:.4f}" in page.get_by_role("row", name="gpt gpt").inner_text()
    assert compared["best"] is None, "it is not known whether they saw the text in training"
    assert page.get_by_text("No model is declared the best").is_visible()


def test_what_must_be_said_is_said_in_bangla(enter: Opened) -> None:
    page = enter("compare", runs="box,gpt", lang="bn")
    page.get_by_role("textbox").fill(TEXT)
    page.get_by_role("button", name="তুলনা করুন", exact=True).click()
    page.get_by_text("কোনোটিকে সেরা বলা হয়নি: box, gpt এই লেখা থেকে শিখেছে কি না").wait_for()
    assert page.get_by_text("পারপ্লেক্সিটি বাদ: মডেলগুলোর টোকেনাইজার ২টি").is_visible()


def test_what_was_never_measured_needs_a_text(enter: Opened) -> None:
    page = enter("compare", runs="box,gpt")
    page.get_by_text("paste a text to evaluate all models on").wait_for()
    assert page.get_by_role("button", name="Compare", exact=True).is_disabled()
    page.get_by_role("button", name="Use a short story").click()
    assert page.get_by_role("button", name="Compare", exact=True).is_enabled()


@pytest.mark.parametrize("model", ["bert", "seq2seq", "vit"])
def test_a_family_that_foretells_no_text_is_told_of(browser: Any, studio: str, model: str) -> None:
    page = browser.new_page()  # the console shows an expected error
    page.set_default_timeout(60_000)
    page.goto(f"{studio}/#/compare?lang=en&runs=box,{model}")
    page.get_by_role("textbox").fill(TEXT)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text(f"{model} is a {model} model; only GPT models can predict text").wait_for()
    page.close()


def test_pairs_are_judged_blind_and_kept(enter: Opened, work: Path) -> None:
    page = enter("compare", "judge", m="box", b="gpt")
    page.get_by_role("textbox", name="Your name").fill("মিনা")
    page.get_by_role("button", name="Generate texts").click()
    page.get_by_role("heading", name="Which continuation is better?").wait_for()
    id = page.url.split("judging=")[1].split("&")[0]
    names = page.get_by_role("main").inner_text()
    assert "You see which model leads after 10 judgements." in names and "gpt" not in names.lower()
    judging = JudgingSession.open(work / "judgings" / id)
    for count in range(1, len(judging.pairs) + 1):
        page.keyboard.press("ArrowLeft" if count % 2 else "ArrowDown")
        page.get_by_text(f"{count} judged, {len(judging.pairs) - count} left").wait_for()
    [meeting] = judging.result().meetings
    page.get_by_text(
        f"{meeting.one} {meeting.wins}, {meeting.other} {meeting.losses}, equally good {meeting.ties}"
    ).wait_for()
    assert page.get_by_role("heading", name="All pairs are judged.").is_visible()
