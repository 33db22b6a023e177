"""The attention page in a real browser: tabs, steps, keys, Bangla whole, nothing asked of any network."""

from pathlib import Path
from typing import Any

import pytest
import torch
from tests.browser.inside_pages import check_it_fits, opened
from tests.inside.attention.test_maps import HOSTILE, input_of
from tests.inside.small_models import TEXT, small

from kotha.inside.attention.maps import AttentionMaps, attention_maps
from kotha.inside.attention.page import attention_page
from kotha.inside.inputs import ModelInput, Piece, name_piece

pytestmark = pytest.mark.browser
VIEWS = {"gpt": ["lines", "grid", "matrix", "steps"], "bert": ["lines", "grid", "matrix"]}
VIEWS |= {"seq2seq": VIEWS["gpt"], "vit": ["image", *VIEWS["bert"]]}


def made(body: str) -> AttentionMaps:
    model, given = small(body).model, input_of(body)
    if body in ("gpt", "seq2seq"):  # as if the model had written the last three
        line = list(given.lines)[-1]
        first = len(given.lines[line]) - 3
        given = ModelInput(given.inputs, given.lines, (), first)
    return attention_maps(model, given)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for body in VIEWS:
        maps, tokenizer = made(body), small(body).tokenizer
        names = {token: name_piece(tokenizer, token) for step in maps.steps for token, _ in step.best}  # type: ignore[arg-type]
        found[body] = folder / f"{body}.html"
        found[body].write_text(attention_page(maps, TEXT, names), encoding="utf-8")
    maps = made("bert")
    line = maps.given.lines["tokens"]
    hostile = ModelInput(maps.given.inputs, {"tokens": (Piece(HOSTILE, 1), *line[1:])})
    found["hostile"] = folder / "hostile.html"
    text = attention_page(AttentionMaps("bert", hostile, maps.maps), HOSTILE, {})
    found["hostile"].write_text(text, encoding="utf-8")
    return found


@pytest.mark.parametrize(
    ("body", "width", "scheme"),
    [
        ("gpt", 400, "dark"),
        ("gpt", 1200, "light"),
        ("bert", 1200, "dark"),
        ("seq2seq", 400, "light"),
        ("vit", 400, "dark"),
    ],
)
def test_every_view_fits_and_is_quiet(browser, pages, body: str, width: int, scheme: str) -> None:
    with opened(browser, pages[body], width, scheme) as page:
        names = page.eval_on_selector_all(".tabs button", "all => all.map(each => each.id.slice(4))")
        assert names == VIEWS[body]
        for name in names:
            page.click(f"#tab-{name}")
            assert page.get_attribute(f"#tab-{name}", "aria-selected") == "true"
            check_it_fits(page, width)
            if page.is_visible("#other"):
                page.check("#other")
                assert page.locator(".panel h3 small").all_inner_texts()[-1].strip() == "what the same head would see"
                check_it_fits(page, width)
                page.uncheck("#other")


def test_conjuncts_are_whole_and_rows_are_told(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        words = page.locator(".lines .left .word").all_inner_texts()
        assert words == [piece.text for piece in made("gpt").given.lines["tokens"]]
        assert any("ক্ষ" in word for word in words)
        page.locator(".lines .left button").nth(2).hover()
        weights = made("gpt").maps[0].weights[:, 2].mean(0)
        shown = page.locator(".lines .right .value").all_inner_texts()
        assert shown[:4] == [f"{share:.3f}" for share in weights[:3].tolist()] + [""]
        assert "looks most at" in page.inner_text("output.readout")
        page.mouse.move(5, 5)
        assert set(page.locator(".lines .right .value").all_inner_texts()) == {""}
        page.locator(".lines .left button").nth(4).focus()
        assert page.locator(".lines .right .value").nth(4).inner_text() != ""
        page.keyboard.press("Enter")
        assert page.locator(".lines .left button").nth(4).get_attribute("aria-pressed") == "true"


def test_tabs_and_cells_follow_the_keyboard(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        page.focus("#tab-lines")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.get_attribute("#tab-matrix", "aria-selected") == "true"
        page.focus(".matrix canvas")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowRight")
        share = float(made("gpt").maps[0].weights[0, 2, 1])
        assert page.inner_text("output.readout").endswith(f": {share:.3f}")
        page.keyboard.press("End")
        assert page.inner_text("output.readout").endswith("hidden by the mask")
        assert set(page.locator(".row-sums span").all_inner_texts()) == {"1.000"}


def test_a_small_picture_opens_its_head(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        page.click("#tab-grid")
        page.click('.tile[aria-label="layer 1, head 2"]')
        assert page.get_attribute("#tab-matrix", "aria-selected") == "true"
        assert page.input_value("#map") == "1"
        assert page.get_attribute('#heads [aria-label="head 2"]', "aria-pressed") == "true"
        share = float(made("gpt").maps[1].weights[2, 0, 0])
        assert page.inner_text("output.readout").endswith(f": {share:.3f}")


def test_masks_stand_side_by_side(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        page.click("#tab-matrix")
        page.check("#other")
        titles = page.locator(".panel h3").all_inner_texts()
        assert titles == ["With the mask what this model does", "Without the mask what the same head would see"]
        other = made("gpt").maps[0].other
        assert other is not None
        assert page.inner_text("output.readout").endswith(f"without the mask: {float(other[0, 0, 0]):.3f}")


def test_writing_is_walked_step_by_step(browser, pages) -> None:
    maps = made("gpt")
    line = [piece.text for piece in maps.given.lines["tokens"]]

    def seen(page: Any) -> tuple[list[str], str]:
        chips = page.locator(".text .chip:not(.new)").evaluate_all(
            "all => all.map(each => each.firstChild.textContent)"
        )
        return chips, page.locator(".text .chip.new").evaluate("each => each.firstChild.textContent")

    with opened(browser, pages["gpt"]) as page:
        page.click("#tab-steps")
        for place in (0, 1, 2):
            row = maps.steps[place].row
            assert seen(page) == (line[: row + 1], line[row + 1])
            assert page.inner_text(".player output").startswith(f"piece {place + 1} of 3")
            best = page.locator(".bars li").first.inner_text()
            assert f"{100 * maps.steps[place].best[0][1]:.1f} %" in best
            if place < 2:
                page.click('[aria-label="Step on"]')
        assert page.is_disabled('[aria-label="Step on"]')
        page.focus(".player input")
        page.keyboard.press("Home")
        assert seen(page)[1] == line[maps.steps[0].row + 1]
        assert page.locator(".strip").count() == 8


def test_an_image_is_looked_at_patch_by_patch(browser, pages) -> None:
    weights = made("vit").maps[0].weights[0]
    with opened(browser, pages["vit"]) as page:
        assert page.inner_text("output.readout").startswith("The class token looks most at patch")
        assert f"{float(weights[0, 1:].max()):.3f}" in page.inner_text("output.readout")
        page.focus("canvas.look")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        said = page.inner_text("output.readout")
        assert said.startswith("Patch 1,2 looks most") and f"{float(weights[2, 1:].max()):.3f}" in said
        page.keyboard.press("Escape")
        assert page.inner_text("output.readout").startswith("The class token")


def test_hostile_text_is_text(browser, pages) -> None:
    with opened(browser, pages["hostile"]) as page:
        assert page.locator("b").count() == 0
        assert page.locator(".lines .left .word").first.text_content() == HOSTILE
        assert page.text_content("h1") == HOSTILE


def test_colours_follow_the_reader(browser, pages) -> None:
    colours = []
    for scheme in ("light", "dark"):
        with opened(browser, pages["gpt"], scheme=scheme) as page:
            page.click("#tab-grid")
            pixel = "[...document.querySelector('.tile canvas').getContext('2d').getImageData(0, 0, 1, 1).data]"
            colours.append(page.evaluate(f"[getComputedStyle(document.body).backgroundColor, {pixel}]"))
    assert colours[0] == ["rgb(253, 252, 248)", [11, 110, 79, 255]]  # the first looks at itself alone: full colour
    assert colours[1] == ["rgb(25, 24, 22)", [95, 201, 162, 255]]


def test_the_weights_in_the_picture_are_the_models(browser, pages) -> None:
    weights = made("bert").maps[0].weights[1]
    with opened(browser, pages["bert"]) as page:
        page.click("#tab-matrix")
        page.click('#heads [aria-label="head 1"]')
        page.focus(".matrix canvas")
        found = []
        for _ in range(5):
            found.append(float(page.inner_text("output.readout").rsplit(": ", 1)[1]))
            page.keyboard.press("ArrowRight")
        torch.testing.assert_close(torch.tensor(found), weights[0, :5], atol=5.1e-4, rtol=0)
