"""Tokenize: the page shows the library's results for a text."""

import re
from pathlib import Path

import pytest
from tests.studio.conftest import Opened
from tests.studio.learned import BIRD_SENTENCE, LATIN

from kotha.artifacts import model_folder as bundle
from kotha.storage import bundled
from kotha.text.akshara import aksharas
from kotha.text.tokenizer.card import measure
from kotha.text.tokenizer.view import view

pytestmark = pytest.mark.browser
TEXT = "ক্ষমা চেয়ে রহিম বলল, “বাংলাদেশ ব্যাংক 2024”"


@pytest.mark.parametrize(("model", "text"), [("box", TEXT), ("bert", BIRD_SENTENCE), ("seq2seq", LATIN)])
def test_pieces_are_the_library_s(enter: Opened, families: Path, model: str, text: str) -> None:
    tokenizer = bundle.load(bundled.FOLDER if model == "box" else families / model).tokenizer
    assert tokenizer is not None
    page = enter("tokens", m=model, x=text)
    line = page.get_by_role("region", name=re.compile(f"^{model}(,|$)"))  # or several models
    line.wait_for()
    assert line.locator(".piece").all_inner_texts() == [piece.text for piece in view(tokenizer, text)]
    letters = page.get_by_role("region", name="Aksharas, as you read them")
    shown = [each.replace("␣", " ") for each in letters.locator(".piece").all_inner_texts()]
    assert shown == aksharas(text)


def test_the_card_is_the_library_s(enter: Opened) -> None:
    page = enter("tokens", m="box", x=TEXT)
    tokenizer = bundle.load(bundled.FOLDER).tokenizer
    assert tokenizer is not None
    card = measure("box", tokenizer, [TEXT])
    rows = page.get_by_role("row", name="box")
    rows.nth(2).wait_for()
    result = rows.all_inner_texts()
    assert f"{card.tokens_per_word:.2f}" in result[0] and f"{card.bytes_per_token:.2f}" in result[1]
    assert f"{100 * card.split_aksharas:.1f} %" in result[2]


def test_models_with_one_tokenizer_share_a_line(enter: Opened, families: Path) -> None:
    page = enter("tokens", m="bert", x=TEXT)
    fingerprints = [bundle.load(families / name).tokenizer.fingerprint for name in ("bert", "bert-classifier")]
    assert len(set(fingerprints)) == 1
    line = page.get_by_role("region", name="bert, bert-classifier", exact=True)
    line.wait_for()
    assert page.get_by_role("region", name="seq2seq", exact=True).is_visible()
    assert page.get_by_role("region", name="bert", exact=True).count() == 0


def test_cuts_inside_letters_are_marked_and_counted(enter: Opened, families: Path) -> None:
    page = enter("tokens", m="gpt", x="হিম")
    tokenizer = bundle.load(families / "gpt").tokenizer
    line = page.get_by_role("region", name="gpt, gpt-classifier", exact=True)
    line.wait_for()
    cuts = measure("gpt", tokenizer, ["হিম"])
    assert line.locator(".piece.cut").count() == round(cuts.split_aksharas * (cuts.tokens - 1))


def test_a_model_without_a_tokenizer_is_told_of(enter: Opened) -> None:
    page = enter("tokens", m="vit")
    page.get_by_text("does not read text and has no tokenizer.").wait_for()


def test_typing_changes_the_pieces_and_the_address(enter: Opened) -> None:
    page = enter("tokens", m="box")
    page.get_by_role("textbox", name="Your text").fill("নদী")
    page.get_by_role("region", name="Bytes: without any tokenizer").locator("strong", has_text="9").wait_for()
    page.wait_for_url("**x=*")
