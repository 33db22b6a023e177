"""The lens and the flow in a real browser."""

from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, opened
from tests.inside.attention.test_maps import HOSTILE, input_of
from tests.inside.small_models import TEXT, small

from kotha.inside.flow.flow import flow
from kotha.inside.flow.page import flow_page
from kotha.inside.inputs import name_piece, speller
from kotha.inside.lens.lens import Lens, lens, lens_page

pytestmark = pytest.mark.browser
TEXTS_OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter(each => {
    const text = each.getBoundingClientRect(), picture = each.closest("svg").getBoundingClientRect()
    return text.width > 0 && (text.left < picture.left - 1 || text.right > picture.right + 1)
}).map(each => each.textContent)"""


def looked(body: str) -> Lens:
    return lens(small(body).model, input_of(body))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts: dict[str, str] = {}
    tokenizer = small("gpt").tokenizer
    assert tokenizer is not None
    texts["lens-gpt"] = lens_page(looked("gpt"), TEXT, speller(tokenizer))
    for body in ("seq2seq", "vit"):
        texts[f"flow-{body}"] = flow_page(flow(small(body).model, input_of(body)), TEXT, lambda token: f"শব্দ {token}")
    texts["hostile"] = lens_page(looked("gpt"), HOSTILE, lambda token: HOSTILE)
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize(("width", "scheme"), [(400, "dark"), (1200, "light")])
def test_they_fit_and_ask_for_nothing(browser, pages, width: int, scheme: str) -> None:
    for path in pages.values():
        with opened(browser, path, width, scheme) as page:
            page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
            check_it_fits(page, width)
            assert page.evaluate(TEXTS_OUTSIDE) == []


def test_a_title_of_one_long_word_fits_a_phone(browser, tmp_path: Path) -> None:
    tokenizer = small("gpt").tokenizer
    assert tokenizer is not None
    word = "ক্ষ্ম" * 45
    made = {
        "lens": lens_page(looked("gpt"), word, speller(tokenizer)),
        "flow": flow_page(flow(small("gpt").model, input_of("gpt")), word, str),
    }
    for name, text in made.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        with opened(browser, path, 390) as page:
            check_it_fits(page, 390)


def test_the_lens_tells_what_a_layer_considered(browser, pages) -> None:
    found, tokenizer = looked("gpt"), small("gpt").tokenizer
    assert tokenizer is not None
    with opened(browser, pages["lens-gpt"]) as page:
        assert page.locator("#lens thead th").all_inner_texts() == ["after", "embedding", "layer 0", "layer 1"]
        rows = page.locator("#lens tbody th").all_inner_texts()
        assert rows == [piece.text for piece in found.given.lines["tokens"]]
        cells = page.locator("#lens tbody tr").nth(2).locator(".cell span").all_inner_texts()
        assert cells == [name_piece(tokenizer, row[2].ids[0]).text for row in found.opinions]
        page.locator("#lens .cell").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        opinion = found.opinions[1][1]
        said = page.inner_text("#detail")
        assert f"stands at place {opinion.rank:,}" in said and f"{opinion.kl_nats:.3f} nats from" in said
        assert page.locator("#detail .bars li").count() == 5


def test_hostile_text_is_text(browser, pages) -> None:
    with opened(browser, pages["hostile"]) as page:
        assert page.locator("b").count() == 0
        assert page.locator(".cell span").first.text_content() == HOSTILE


def test_the_flow_stands_open_where_it_begins(browser, pages) -> None:
    with opened(browser, pages["flow-seq2seq"]) as page:
        shown = page.locator("figcaption:visible").all_inner_texts()
        assert any(text.startswith("Encoder layer 0") for text in shown)
        assert any(text.startswith("Decoder layer 0") for text in shown)
        assert not any(text.startswith("Decoder layer 1") for text in shown)
        page.click("summary:has-text('Decoder layer 1')")
        assert page.locator("figcaption:visible").filter(has_text="Decoder layer 1").count() == 1
        assert page.locator("svg text").filter(has_text="attention to the source").count() == 2
