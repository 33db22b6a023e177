"""The heads page in a real browser: offline, without overflow, with conjuncts and special tokens as text."""

from pathlib import Path
from unittest.mock import patch

import pytest
import torch
from tests.browser.inside_pages import check_it_fits, opened
from tests.inside.small_models import small

from kotha.inside.heads.kinds import Passage
from kotha.inside.heads.measuring import HeadExamination, TargetBatch
from kotha.inside.heads.study import Study, study
from kotha.report.single_file import view_page

pytestmark = pytest.mark.browser
# Tokens that an example may show: long, with conjuncts and joiners, and text that looks like HTML.
SHOWN = ("␣ক্ষুধার্ত", "র‍্যাব", "রাষ্ট্রপতি", "<b>কথা</b>&amp;")


def studied(body: str) -> Study:
    """A study of every head of a small model on repeated tokens."""
    tokens, bundle = torch.arange(40) % 13, small(body)
    passage = Passage(tokens[:-1], None if body != "seq2seq" else tokens)
    batch = TargetBatch(tuple(passage.inputs), tokens[None, 1:])
    assert bundle.tokenizer is not None
    examined = HeadExamination(bundle, bundle.tokenizer, "<i>text</i>", [], [batch])
    with patch("kotha.inside.heads.study.speller", lambda _: lambda token: SHOWN[token % len(SHOWN)]):
        return study(examined)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for body in ("gpt", "seq2seq"):
        found[body] = folder / f"{body}.html"
        page = view_page("heads", "a/long/path/" * 12, studied(body).page())
        found[body].write_text(page, encoding="utf-8")
    return found


@pytest.mark.parametrize(("width", "scheme", "language"), [(390, "light", "bn"), (820, "dark", "en")])
@pytest.mark.parametrize(("body", "n_heads"), [("gpt", 8), ("seq2seq", 24)])
def test_it_fits_and_asks_for_nothing(
    browser, pages: dict[str, Path], body: str, n_heads: int, width: int, scheme: str, language: str
) -> None:
    with opened(browser, pages[body], width, scheme, language) as page:
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        check_it_fits(page, width)
        assert page.get_by_role("gridcell").count() == page.locator("#does tbody tr").count() == n_heads


def test_tokens_are_text_and_whole(browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["gpt"]) as page:
        cells = page.locator("#does td.case").all_inner_texts()
        assert len(cells) == 8
        looks = [part.strip() for cell in cells if cell for part in cell.rpartition(" (")[0].split("→")]
        assert looks and {look.removeprefix("in the text ") for look in looks} <= set(SHOWN)
        assert page.locator("main i", has_text="text").count() == page.locator("main b", has_text="কথা").count() == 0


def test_the_figures_are_the_study_s(browser, pages: dict[str, Path]) -> None:
    found = studied("gpt")
    with opened(browser, pages["gpt"]) as page:
        shown = [float(each.replace("−", "-")) for each in page.get_by_role("gridcell").all_inner_texts()]
        assert shown == pytest.approx([report.ablation_nats for report in found.heads], abs=5.1e-4)
        page.get_by_role("gridcell").nth(5).click()
        report, aside = found.heads[5], page.locator("aside")
        assert aside.locator("code").inner_text() == report.head == "blocks.1.attention.1"
        figures = [float(each.replace("−", "-")) for each in aside.locator("dd").all_inner_texts()]
        expected = [report.ablation_nats, report.gradient_nats, report.distance, report.symmetry]
        assert figures == pytest.approx(expected, abs=0.051) and figures[0] == pytest.approx(expected[0], abs=5.1e-5)
        page.keyboard.press("ArrowRight")
        assert aside.locator("code").inner_text() == "blocks.1.attention.2"
