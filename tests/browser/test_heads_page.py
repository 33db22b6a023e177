"""The page of heads in a real browser: offline, inside the window, conjuncts and special tokens as text."""

from pathlib import Path

import pytest
import torch
from tests.browser.inside_pages import check_it_fits, opened
from tests.inside.small_models import small
from torch import Tensor
from torch.nn.functional import cross_entropy

from kotha.inside.heads.page import heads_page
from kotha.inside.heads.sight import Passage
from kotha.inside.heads.study import Study, study

pytestmark = pytest.mark.browser
# Letters that a heads' example may show: long, stacked, joined, and what looks like HTML.
SHOWN = ("␣ক্ষুধার্ত", "র‍্যাব", "রাষ্ট্রপতি", "<b>কথা</b>&amp;")


def studied(body: str) -> Study:
    """Every head of a small model, on tokens that repeat."""
    tokens = torch.arange(40) % 13
    target = None if body != "seq2seq" else tokens

    def loss(model: torch.nn.Module, batch: Tensor) -> Tensor:
        given = (batch, batch) if body == "seq2seq" else (batch,)
        return cross_entropy(model(*given)[:, :-1].flatten(0, 1), batch[:, 1:].flatten())

    return study(small(body).model, [Passage(tokens, target)], [tokens[None]], loss)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    found = {}
    for body in ("gpt", "seq2seq"):
        found[body] = folder / f"{body}.html"
        page = heads_page(studied(body), "a/long/path/" * 12, "<i>text</i>", lambda token: SHOWN[token % len(SHOWN)])
        found[body].write_text(page, encoding="utf-8")
    return found


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1200, "dark")])
@pytest.mark.parametrize(("body", "n_heads"), [("gpt", 8), ("seq2seq", 24)])
def test_it_fits_and_asks_for_nothing(
    browser, pages: dict[str, Path], body: str, n_heads: int, width: int, scheme: str
) -> None:
    with opened(browser, pages[body], width, scheme) as page:
        check_it_fits(page, width)
        assert page.locator("svg rect").count() == n_heads


def test_tokens_are_text_and_whole(browser, pages: dict[str, Path]) -> None:
    with opened(browser, pages["gpt"]) as page:
        cells = page.locator("table").first.locator("tr td:nth-child(5)").all_inner_texts()
        assert len(cells) == 8
        looks = [part.strip() for cell in cells if cell for part in cell.rpartition(" (")[0].split("→")]
        assert looks and set(looks) <= set(SHOWN)
        assert page.locator("main i, main b b").count() == 0
