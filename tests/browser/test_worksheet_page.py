"""The worksheet page in a real browser: offline, without overflow, interactive as in the studio, and printable."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.browser.inside_pages import check_it_fits, faults, opened, wait_until

from kotha.course.worksheet.builtin_sheets import paper_sheet, workshop_sheet
from kotha.course.worksheet.model import read_head
from kotha.course.worksheet.page import sheet_view
from kotha.i18n.catalogue import translate
from kotha.i18n.numbers import Language
from kotha.model.config import GPTConfig
from kotha.model.family import build

pytestmark = pytest.mark.browser
MOST_BYTES = 400_000
# The width of a text in the page's own font; a conjunct that is not shaped is wider than a single letter.
WIDTH = """text => { const span = document.createElement("span"); span.textContent = text; span.style.font = "40px " +
    getComputedStyle(document.body).fontFamily; document.body.append(span);
    const width = span.getBoundingClientRect().width; span.remove(); return width }"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    config = GPTConfig(
        d_model=48, n_heads=2, n_layers=1, vocab_size=9, context_length=9, positions="rotary", qk_norm=True
    )
    labels = ["ক্লান্ত", "␣ছোট্ট", "র‍্যাব", "<script>", "␣বৃষ্টি", "◌া", "ক্ষ", "E0 A6"]
    head = read_head(build(config), [torch.arange(8)[None]], "blocks.0.attention", 1, labels)
    views = {
        "workshop": sheet_view(workshop_sheet()),
        "block": sheet_view(paper_sheet("block")),
        "model": sheet_view(head),
    }
    return {name: view.save(folder / f"{name}.html") for name, view in views.items()}


@pytest.mark.parametrize(("language", "scheme"), [pytest.param("en", "light", marks=pytest.mark.slow), ("bn", "dark")])
@pytest.mark.parametrize("name", ["workshop", "block", "model"])
def test_it_fits_every_window_keeps_nobody_out_and_asks_for_nothing(
    browser: Any, pages: dict[str, Path], name: str, language: str, scheme: str
) -> None:
    assert pages[name].stat().st_size < MOST_BYTES
    with opened(browser, pages[name], language=language, scheme=scheme) as page:
        for tab in page.get_by_role("tab").all():
            tab.click()
            page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
            for width in (390, 820, 1400):
                page.set_viewport_size({"width": width, "height": 900})
                assert wait_until(page, f"document.documentElement.scrollWidth === {width}")
                check_it_fits(page, width)
            assert faults(page) == []


def test_labels_are_whole_and_weights_are_shaded(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["model"], scheme="dark") as page:
        page.locator("#tab-solved").click()
        labels = page.eval_on_selector_all("table.matrix tbody th", "all => all.map(each => each.textContent)")
        assert {"ক্লান্ত", "র‍্যাব", "<script>", "ক্ষ"} <= set(labels)
        assert page.evaluate(WIDTH, "ক্ষ") < page.evaluate(WIDTH, "ক") + page.evaluate(WIDTH, "ষ")
        shade = "getComputedStyle(document.querySelector('table.matrix td[style]')).backgroundColor"
        assert page.evaluate(shade) != "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize("language", ["en", "bn"])
def test_it_is_worked_out_as_the_library_does(browser: Any, pages: dict[str, Path], language: Language) -> None:
    view = sheet_view(workshop_sheet(), language=language)
    with opened(browser, pages["workshop"], language=language) as page:
        page.locator("#tab-solved").click()
        assert page.locator("ol.steps h2").all_inner_texts() == [
            f"{number}. {translate(step.title, language)}" for number, step in enumerate(view.steps, 1)
        ]
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        shown = [text.splitlines() for text in page.locator("ol.steps pre").all_inner_texts()]
        assert shown == [step.sums for step in view.steps if step.sums]
        cells = page.locator("ol.steps table").last.locator("tbody tr").all()
        assert [row.locator("td").all_inner_texts() for row in cells] == [row[1:] for row in view.steps[-1].rows]


def test_answers_are_checked_in_the_page_and_come_back_as_a_score_file(
    browser: Any, pages: dict[str, Path], tmp_path: Path
) -> None:
    truth = workshop_sheet().steps["Q"].values
    with opened(browser, pages["workshop"]) as page:
        page.evaluate("localStorage.clear()")
        for column, typed in enumerate((f"{truth[0, 0]:.4f}", "7")):
            field = page.locator(f'.chosen [data-cell="0,{column}"]')
            field.fill(typed)
            field.press("Enter")
        page.locator('.chosen [data-cell="0,1"]').click()
        assert page.locator(".verdict").inner_text().strip() != ""
        page.get_by_role("button", name="hint").click()
        # Answers are kept when the reader switches the language.
        page.locator("header.bar button").first.click()
        assert "৪" in page.locator(".total").inner_text()
        page.locator("#tab-score").click()
        page.locator(".score input").fill("রহিমা")
        with page.expect_download() as came:
            page.locator(".score button.primary").click()
        came.value.save_as(tmp_path / "score.json")
        page.evaluate("localStorage.clear()")
    result = json.loads((tmp_path / "score.json").read_text(encoding="utf-8"))
    assert (result["points"], result["name"], len(result["answers"])) == (4, "রহিমা", 2)


def test_on_paper_there_is_room_to_write_or_all_of_the_arithmetic(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["workshop"]) as page:
        page.emulate_media(media="print")
        assert page.locator(".paper td.blank").count() == 72 and page.locator(".paper").is_visible()
        assert not page.locator(".desk").is_visible() and not page.locator("[role=tablist]").is_visible()
        page.emulate_media(media="screen")
        page.locator("#tab-solved").click()
        page.emulate_media(media="print")
        assert page.locator("ol.steps pre").first.is_visible() and page.locator(".paper").count() == 0
        page.emulate_media(media="screen")
