"""The attention page in a real browser: tabs, steps, keyboard, complete Bangla, no network requests."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.browser.inside_pages import check_it_fits, opened
from tests.inside.small_models import TEXT, small
from tests.inside.test_attention import HOSTILE, input_of

from kotha.inside.attention import AttentionMaps, alignment_view, attention_view
from kotha.inside.inputs import Piece
from kotha.inside.view import View

pytestmark = pytest.mark.browser
VIEWS = {"gpt": ["lines", "grid", "matrix", "steps"], "bert": ["lines", "grid", "matrix"]}
VIEWS |= {"seq2seq": VIEWS["gpt"], "vit": ["image", *VIEWS["bert"]]}


def view_of(body: str, **changes: Any) -> View[AttentionMaps]:
    given = replace(input_of(body), **{"title": TEXT, **changes})
    if body in ("gpt", "seq2seq"):  # as if the model had generated the last three
        given = replace(given, written_from=len(given.last_line) - 3)
    return attention_view(small(body), given)


def made(body: str) -> AttentionMaps:
    return view_of(body).found


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    line = input_of("bert").lines["tokens"]
    hostile = view_of("bert", lines={"tokens": (Piece(HOSTILE, 1), *line[1:])}, title=HOSTILE)
    views = {**{body: view_of(body) for body in VIEWS}, "hostile": hostile}
    return {name: view.save(folder / f"{name}.html") for name, view in views.items()}


@pytest.mark.parametrize(
    ("body", "width", "scheme", "language"),
    [
        ("gpt", 390, "dark", "bn"),
        ("gpt", 1400, "light", "en"),
        ("bert", 820, "dark", "en"),
        ("seq2seq", 390, "light", "bn"),
        ("vit", 390, "dark", "bn"),
    ],
)
def test_every_view_fits_and_is_quiet(browser, pages, body: str, width: int, scheme: str, language: str) -> None:
    with opened(browser, pages[body], width, scheme, language) as page:
        names = page.get_by_role("tab").evaluate_all("all => all.map(each => each.id.slice(4))")
        assert names == VIEWS[body]
        assert page.get_attribute("html", "lang") == language and page.get_attribute("html", "data-theme") == scheme
        for name in names:
            page.click(f"#tab-{name}")
            assert page.get_attribute(f"#tab-{name}", "aria-selected") == "true"
            check_it_fits(page, width)
            if page.locator("input[type=checkbox]").count():
                page.check("input[type=checkbox]")
                assert page.locator("section h2").count() == 2
                check_it_fits(page, width)
                page.uncheck("input[type=checkbox]")


def keys_shown(page: Any) -> list[str]:
    """Return the numbers next to the attended pieces, empty for a piece without a number."""
    return page.locator(".lines ul li").evaluate_all(
        "all => all.map(each => each.querySelector('.number')?.textContent ?? '')"
    )


def test_conjuncts_are_whole_and_rows_are_told(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        words = page.locator(".rows .piece").all_inner_texts()
        assert words == [piece.text for piece in made("gpt").given.lines["tokens"]]
        assert any("ক্ষ" in word for word in words)
        page.get_by_role("button", name="all heads together").click()
        page.locator(".rows button").nth(2).click()
        weights = made("gpt").maps[0].weights[:, 2].mean(0)
        assert keys_shown(page)[:4] == [f"{share:.3f}" for share in weights[:3].tolist()] + [""]
        assert "attends most to" in page.inner_text("output.summary") and "Mean of 4 heads" in page.inner_text(
            "output.summary"
        )
        page.locator(".rows button").nth(2).click()
        assert set(keys_shown(page)) == {""}
        page.locator(".rows button").nth(4).focus()
        page.keyboard.press("Enter")
        assert page.locator(".rows button").nth(4).get_attribute("aria-pressed") == "true"
        assert keys_shown(page)[4] != ""


def test_tabs_and_cells_follow_the_keyboard(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        page.focus("#tab-lines")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert page.get_attribute("#tab-matrix", "aria-selected") == "true"
        page.get_by_role("gridcell").first.click()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        share = float(made("gpt").maps[0].weights[0, 2, 1])
        assert page.inner_text("output.summary").endswith(f": {share:.3f} (the row sums to 1.000)")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        assert ": hidden by the mask (the row sums to 1.000)" in page.inner_text("output.summary")


def test_a_small_picture_opens_its_head(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        page.click("#tab-grid")
        page.get_by_role("button", name="layer 1, head 2").click()
        assert page.get_attribute("#tab-matrix", "aria-selected") == "true"
        assert page.input_value("select") == "1"
        assert page.get_by_role("button", name="head 2").get_attribute("aria-pressed") == "true"
        share = float(made("gpt").maps[1].weights[2, 0, 0])
        page.get_by_role("gridcell").first.click()
        assert f": {share:.3f} " in page.inner_text("output.summary")


def test_masks_stand_side_by_side(browser, pages) -> None:
    with opened(browser, pages["gpt"]) as page:
        page.click("#tab-matrix")
        page.check("input[type=checkbox]")
        titles = page.locator("section h2").all_inner_texts()
        assert titles == [
            "With the mask what the model computes",
            "Without the mask what the same head would attend to",
        ]
        other = made("gpt").maps[0].other
        assert other is not None
        page.get_by_role("gridcell").first.click()
        assert page.inner_text("output.summary").endswith(f"Without the mask: {float(other[0, 0, 0]):.3f}")


def test_writing_is_walked_step_by_step(browser, pages) -> None:
    maps = made("gpt")
    line = [piece.text for piece in maps.given.lines["tokens"]]

    def seen(page: Any) -> tuple[list[str], str]:
        return page.locator(".text .chip:not(.new)").all_text_contents(), page.text_content(".text .chip.new")

    with opened(browser, pages["gpt"]) as page:
        page.click("#tab-steps")
        for place in (0, 1, 2):
            row = maps.steps[place].row
            assert seen(page) == (line[: row + 1], line[row + 1])
            assert page.inner_text(".player output").startswith(f"token {place + 1} of 3")
            best = page.locator("section ol li .number").first.inner_text()
            assert abs(float(best.split()[0]) - 100 * maps.steps[place].best[0].probability) < 0.051
            if place < 2:
                page.click('[aria-label="One step forward"]')
        assert page.is_disabled('[aria-label="One step forward"]')
        page.focus(".player input")
        page.keyboard.press("Home")
        assert seen(page)[1] == line[maps.steps[0].row + 1]
        assert page.locator(".grid button").count() == 8


def test_an_image_is_looked_at_patch_by_patch(browser, pages) -> None:
    weights = made("vit").maps[0].weights[0]

    def shown(page: Any) -> list[str]:
        return page.locator(".patches button").evaluate_all("all => all.map(each => each.ariaLabel.split(': ')[1])")

    with opened(browser, pages["vit"]) as page:
        assert shown(page) == [f"{100 * share:.1f} %" for share in weights[0, 1:].tolist()]
        page.locator(".patches button").first.click()
        page.keyboard.press("ArrowRight")
        assert shown(page) == [f"{100 * share:.1f} %" for share in weights[2, 1:].tolist()]
        assert "Patch 1, 2" in page.inner_text("h3")
        page.keyboard.press("Escape")
        assert "The class token" in page.inner_text("h3")


def test_hostile_text_is_text(browser, pages) -> None:
    with opened(browser, pages["hostile"]) as page:
        assert page.locator("main b", has_text="কথা").count() == 0
        assert page.locator(".rows .piece").first.text_content() == HOSTILE
        assert page.text_content("h1") == HOSTILE


def test_colours_follow_the_reader(browser, pages) -> None:
    colours = []
    for scheme in ("light", "dark"):
        with opened(browser, pages["gpt"], scheme=scheme) as page:
            page.click("#tab-grid")
            pixel = "[...document.querySelector('.grid canvas').getContext('2d').getImageData(0, 0, 1, 1).data]"
            colours.append(page.evaluate(f"[getComputedStyle(document.documentElement).backgroundColor, {pixel}]"))
    assert colours[0] == ["rgb(253, 252, 248)", [0, 47, 33, 255]]  # attends only to itself: full colour
    assert colours[1] == ["rgb(25, 24, 22)", [228, 251, 231, 255]]


def test_the_reader_changes_language_and_theme(browser, pages) -> None:
    with opened(browser, pages["gpt"], language="bn") as page:
        assert page.inner_text("#tab-lines") == "রেখা"
        page.locator("header button").first.click()
        assert page.inner_text("#tab-lines") == "lines"
        page.locator("header button").nth(1).click()
        assert page.get_attribute("html", "data-theme") == "dark"


def test_the_weights_in_the_picture_are_the_models(browser, pages) -> None:
    weights = made("bert").maps[0].weights[1]
    with opened(browser, pages["bert"]) as page:
        page.click("#tab-matrix")
        page.get_by_role("button", name="head 1").click()
        rows = page.get_by_role("row").filter(has=page.get_by_role("gridcell"))
        found = [[float(cell) for cell in rows.nth(row).get_by_role("gridcell").all_inner_texts()] for row in range(3)]
        torch.testing.assert_close(torch.tensor(found), weights[:3], atol=5.1e-4, rtol=0)


@pytest.mark.parametrize(("width", "language"), [(390, "bn"), (1400, "en")])
def test_an_alignment_is_a_matrix_to_read(browser, tmp_path: Path, width: int, language: str) -> None:
    view = alignment_view(small("seq2seq"), TEXT, "আজ মেলা হবে")
    with opened(browser, view.save(tmp_path / "alignment.html"), width, language=language) as page:
        check_it_fits(page, width)
        shown = torch.tensor([float(each) for each in page.get_by_role("gridcell").all_inner_texts()])
        torch.testing.assert_close(shown, view.found.weights.flatten(), atol=5.1e-4, rtol=0)
