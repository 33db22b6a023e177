"""The lens and flow pages in a real browser."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, opened
from tests.inside.small_models import TEXT, small
from tests.inside.test_attention import HOSTILE, input_of

from kotha.inside.flow import flow, flow_view
from kotha.inside.lens import Lens, lens, lens_view

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
    texts = {"lens-gpt": lens_view(small("gpt"), replace(input_of("gpt"), title=TEXT)).html}
    for body in ("seq2seq", "vit"):
        texts[f"flow-{body}"] = flow_view(small(body), replace(input_of(body), title=TEXT)).html
    hostile = replace(input_of("gpt"), spell=lambda _: HOSTILE, title=HOSTILE)
    texts["hostile"] = lens_view(small("gpt"), hostile).html
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize(("width", "scheme", "language"), [(390, "dark", "bn"), (820, "light", "en")])
def test_they_fit_and_ask_for_nothing(browser, pages, width: int, scheme: str, language: str) -> None:
    for path in pages.values():
        with opened(browser, path, width, scheme, language) as page:
            page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
            check_it_fits(page, width)
            assert page.evaluate(TEXTS_OUTSIDE) == []


def test_a_title_of_one_long_word_fits_a_phone(browser, tmp_path: Path) -> None:
    given = replace(input_of("gpt"), title="ক্ষ্ম" * 45)
    for name, view in {"lens": lens_view(small("gpt"), given), "flow": flow_view(small("gpt"), given)}.items():
        path = view.save(tmp_path / f"{name}.html")
        with opened(browser, path, 390) as page:
            check_it_fits(page, 390)


def test_the_lens_tells_what_a_layer_considered(browser, pages) -> None:
    found = looked("gpt")
    with opened(browser, pages["lens-gpt"]) as page:
        grid = page.get_by_role("grid")
        assert grid.locator("thead th").all_inner_texts() == ["tokens", "E", "0", "1"]
        rows = grid.locator("tbody th .piece").all_inner_texts()
        assert rows == [piece.text for piece in found.positions]
        cells = grid.locator("tbody tr").nth(2).locator(".text").all_inner_texts()
        assert cells == [layer.positions[2].best[0].text for layer in found.layers]
        grid.get_by_role("gridcell").first.click()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        prediction = found.layers[1].positions[1]
        result = page.locator("aside")
        assert result.locator("h2").inner_text() == f"{rows[1]}, after layer 0"
        assert result.locator(".ranks li.here").inner_text().split() == ["0", f"{prediction.rank_of_answer:,}"]
        assert result.locator("dd").all_inner_texts() == [f"{prediction.entropy_nats:.3f}", f"{prediction.kl_nats:.3f}"]
        shares = result.locator("ol").first.locator(".number").all_inner_texts()
        assert shares == [f"{100 * each.probability:.1f} %" for each in prediction.best]
        page.select_option("select", "entropy")
        cells = grid.locator("tbody tr").nth(2).locator(".text").all_inner_texts()
        assert cells == [f"{layer.positions[2].entropy_nats:.2f}" for layer in found.layers]


def test_hostile_text_is_text(browser, pages) -> None:
    with opened(browser, pages["hostile"]) as page:
        assert page.locator("b").count() == 0
        assert page.get_by_role("grid").locator(".text").first.text_content() == HOSTILE


def test_the_flow_stands_open_where_it_begins(browser, pages) -> None:
    found = flow(small("seq2seq").model, input_of("seq2seq"))
    with opened(browser, pages["flow-seq2seq"]) as page:
        assert page.locator("section.stage, details").count() == 3 + len(
            {each.layer for each in found.stations if each.layer}
        )
        shown = page.locator("section.stage h3:visible").all_inner_texts()
        assert any(text.startswith("encoder layer 0") for text in shown)
        assert any(text.startswith("decoder layer 0") for text in shown)
        assert page.locator("li code:visible").filter(has_text="decoder.1.").count() == 0
        page.click("summary:has-text('decoder layer 1')")
        assert page.locator("li code:visible").filter(has_text="decoder.1.cross").count() > 0
        assert page.locator("li b").filter(has_text="attention to the source").count() == 2


def test_the_figures_of_the_flow_are_the_models(browser, pages) -> None:
    found = flow(small("seq2seq").model, input_of("seq2seq"))
    stations = found.stations
    with opened(browser, pages["flow-seq2seq"]) as page:
        for number in (0, 3, len(stations) - 1):
            shown = (
                page.locator("li:has(> dl)")
                .nth(number)
                .locator("dd")
                .evaluate_all("all => all.map(each => Number(each.textContent.replaceAll('−', '-')))")
            )
            station = stations[number]
            figures = [station.mean, station.std, station.low, station.high, station.norm][: len(shown)]
            assert shown == pytest.approx(figures, rel=6e-3)
        best = page.locator(".answer li .number").first.inner_text()
        assert float(best.removesuffix(" %")) == pytest.approx(100 * found.answers[0].best[0].probability, rel=6e-3)
