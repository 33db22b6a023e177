"""The worksheet's page in a real browser: it asks no network, fits its window, and keeps conjuncts whole."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.browser.inside_pages import check_it_fits, opened

from kotha.inside.worksheet.model import read_head
from kotha.inside.worksheet.page import Look, sheet_view
from kotha.inside.worksheet.workshop import workshop_sheet
from kotha.model.config import GPTConfig
from kotha.model.family import build

# How wide a text is set in the page's own font; a conjunct that fell apart is wider than its letters' count.
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
    sheets = {
        "workshop": workshop_sheet(),
        "model": read_head(build(config), [torch.arange(8)[None]], "blocks.0.attention", 1, labels),
    }
    found = {}
    for name, sheet in sheets.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(sheet_view(sheet, Look(4)).html, encoding="utf-8")
    return found


@pytest.mark.browser
@pytest.mark.parametrize("name", ["workshop", "model"])
@pytest.mark.parametrize("width", [400, 1200])
def test_it_fits_the_window_and_asks_for_nothing(browser: Any, pages: dict[str, Path], name: str, width: int) -> None:
    with opened(browser, pages[name], width) as page:
        page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
        check_it_fits(page, width)


@pytest.mark.browser
def test_labels_are_whole_and_weights_are_shaded(browser: Any, pages: dict[str, Path]) -> None:
    with opened(browser, pages["model"], scheme="dark") as page:
        labels = page.eval_on_selector_all("table.matrix tbody th", "all => all.map(each => each.textContent)")
        assert {"ক্লান্ত", "র‍্যাব", "<script>", "ক্ষ"} <= set(labels)
        assert page.evaluate(WIDTH, "ক্ষ") < page.evaluate(WIDTH, "ক") + page.evaluate(WIDTH, "ষ")
        shade = "getComputedStyle(document.querySelector('td[style]')).backgroundColor"
        assert page.evaluate(shade) != "rgba(0, 0, 0, 0)"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(25, 24, 22)"
