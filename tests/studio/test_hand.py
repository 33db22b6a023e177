"""By hand, in a real browser: an attention row in Bangla digits, named mistakes, own numbers, heads, files, mini."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.studio.conftest import LOOKS, Opened, check_everyone_can_use_it, sideways
from tests.studio.learned import BANGLA, BIRD_SENTENCE, LATIN

from kotha.artifacts import model_folder as bundle
from kotha.course.worksheet.builtin_sheets import paper_sheet, student_sheet, workshop_sheet
from kotha.course.worksheet.model import model_sheet
from kotha.i18n.numbers import bangla_digits
from kotha.report.built import WORDS
from kotha.storage import bundled

SAID = json.loads((WORDS / "hand.json").read_text(encoding="utf-8"))
SHEET = workshop_sheet().matrices
STEPS = ("Q", "K", "V", "products", "scores", "masked", "powers", "sums", "weights", "output")


def said(key: str, **filling: str) -> str:
    """Return an English phrase with its values filled in."""
    text: str = SAID[key]["en"]
    for name, value in filling.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def open_step(page: Any, name: str) -> None:
    page.locator("nav.steps button", has=page.locator(".name")).nth(STEPS.index(name)).click()


def cell(page: Any, row: int, column: int) -> Any:
    return page.locator(f'td.chosen [data-cell="{row},{column}"], [data-cell="{row},{column}"]').last


def answer(page: Any, row: int, column: int, typed: str) -> Any:
    """Type into a cell of the result and press Enter; return the cell."""
    field = cell(page, row, column)
    field.fill(typed)
    field.press("Enter")
    return page.locator("td", has=cell(page, row, column)).last


def fill(page: Any, name: str) -> None:
    """Let the page fill in a step."""
    open_step(page, name)
    page.get_by_role("button", name=said("fill", name=name)).click()


def test_the_first_row_of_attention_with_bangla_digits(enter: Opened) -> None:
    page = enter("hand", lang="bn")
    n_cells = 0
    for name in STEPS:
        open_step(page, name)
        for column, value in enumerate(SHEET[name][0].tolist()):
            typed = "-৯৯৯" if value == float("-inf") else bangla_digits(f"{value:.4f}")
            assert answer(page, 0, column, typed).get_attribute("class").split()[0] == "right", (name, column)
            n_cells += 1
        if name in ("K", "V"):  # the row uses all keys and values; the page fills in the others, for no points
            page.get_by_role("button", name=SAID["fill"]["bn"].replace("{name}", name)).click()
    assert bangla_digits(f"{4 * n_cells}") in page.locator(".total").inner_text()
    page.reload()
    page.locator(".total").wait_for()
    assert bangla_digits(f"{4 * n_cells}") in page.locator(".total").inner_text(), "work survives a reload"


def test_mistakes_are_named(enter: Opened) -> None:
    page = enter("hand")
    scores = SHEET["scores"]
    wrong = [
        ("Q", 0, 1, f"{SHEET['K'][0, 1]:.2f}", said("wrong.otherMatrix", used="W_K", right="W_Q")),
        ("Q", 0, 0, "0.7", said("wrong.summedColumn", left="X", right="W_Q")),
        ("Q", 1, 0, "-0.39", said("wrong.sign")),
        ("Q", 2, 1, "0.7×0.2+0.2×0.1+0.6×0.4+0.5×0.4", said("wrong.term", n="4")),
        ("scores", 0, 0, f"{SHEET['products'][0, 0]:.4f}", said("wrong.noRoot")),
        ("scores", 1, 1, f"{SHEET['products'][1, 1] / 2:.4f}", said("wrong.widthForRoot")),
        ("masked", 0, 1, f"{scores[0, 1]:.4f}", said("wrong.maskForgotten")),
        ("powers", 1, 0, f"{scores[1, 0]:.4f}", said("wrong.noE")),
        ("weights", 1, 0, f"{SHEET['powers'][1, 0] / SHEET['powers'][:, 0].sum():.4f}", said("wrong.softmaxDown")),
    ]
    for name, row, column, typed, words in wrong:
        for before in STEPS[: STEPS.index(name)]:
            open_step(page, before)
            button = page.get_by_role("button", name=said("fill", name=before))
            if name != "Q" and button.is_enabled():
                button.click()
        open_step(page, name)
        assert answer(page, row, column, typed).get_attribute("class").split()[0] == "wrong", name
        assert words in page.locator(".verdict").inner_text(), (name, typed)
    open_step(page, "K")
    assert page.locator(".note").count() == 0


def test_help_costs_points_and_says_so(enter: Opened) -> None:
    page = enter("hand")
    assert "Worth 4 of 4" in page.locator(".answer").inner_text()
    answer(page, 0, 0, "0.9")
    assert "Worth 3 of 4" in page.locator(".answer").inner_text()
    for number in (1, 2, 3):
        page.get_by_role("button", name=f"Hint {number} of 3").click()
    hints = page.locator(".hints").inner_text()
    assert "row 1 of X and column 1 of W_Q" in hints and "1.0×0.1 + 0.5×0.3 + 0.2×0.2 + 0.8×0.1" in hints
    assert "0.1 + 0.15 + 0.04 = 0.29" in hints
    assert "Worth 1 of 4" in page.locator(".answer").inner_text()
    assert answer(page, 0, 0, "0.4").get_attribute("class").split()[0] == "coarse"
    answer(page, 0, 0, "0.37")
    assert "1 of 288 points" in page.locator(".total").inner_text()
    page.get_by_role("button", name="Show the worked step").click()
    assert "1 of 288 points" in page.locator(".total").inner_text()
    assert "0.57" in page.locator(".worked").inner_text()
    open_step(page, "products")
    assert "comes first" in page.locator(".panel").inner_text(), "what is not there yet cannot be used"


def test_own_numbers_flow_and_come_back(enter: Opened) -> None:
    page = enter("hand", s="4x6x3", seed="7")
    drawn = student_sheet("4x6x3", 7).matrices
    page.get_by_role("button", name=said("fill", name="Q")).click()
    shown = page.locator(".meet tbody td").first
    assert float(shown.inner_text()) == pytest.approx(drawn["Q"][0, 0], abs=1e-4)
    page.get_by_role("button", name=said("edit")).click()
    field = page.locator(".beside tbody input").first
    field.fill("২.৫")
    field.press("Tab")
    changed = drawn["Q"][0, 0] + (2.5 - drawn["X"][0, 0]) * drawn["W_Q"][0, 0]
    assert float(shown.inner_text()) == pytest.approx(changed, abs=1e-4)
    page.get_by_role("button", name=said("edits.back")).click()
    assert float(shown.inner_text()) == pytest.approx(drawn["Q"][0, 0], abs=1e-4)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("box", {"x": "নদী", "l": "1", "h": "2"}),
        ("bert", {"x": BIRD_SENTENCE, "h": "1"}),
        ("seq2seq", {"x": LATIN, "y": BANGLA}),
    ],
    ids=["gpt", "bert", "seq2seq"],
)
def test_a_head_of_a_model_is_a_sheet(enter: Opened, families: Path, model: str, more: dict[str, str]) -> None:
    page = enter("hand", s="head", m=model, **more)
    which = {"layer": int(more.get("l", 0)), "head": int(more.get("h", 0)), "target": more.get("y")}
    place = bundled.FOLDER if model == "box" else families / model
    sheet = model_sheet(bundle.load(place), more["x"], **which)
    page.locator("nav.steps button", has=page.get_by_text("scores", exact=True)).click()
    for name in ("Q", "K", "products"):
        missing = page.get_by_role("button", name=said("missing.fill", name=name))
        if missing.count():
            missing.click()
    value = sheet.steps["scores"].values[0, 0]
    page.locator(".made [data-cell='0,0']").fill(f"{value:.5f}")
    page.locator(".made [data-cell='0,0']").press("Enter")
    assert "right" in page.locator(".made tbody td").first.get_attribute("class"), page.locator(".panel").inner_text()


def test_a_vit_has_no_sheet_and_says_so(enter: Opened) -> None:
    page = enter("hand", s="head", m="vit", x="নদী")
    assert said("text.family") in page.locator("[role=alert]").inner_text()


def test_files_to_take_along(enter: Opened, tmp_path: Path) -> None:
    page = enter("hand")
    answer(page, 0, 0, "০.৩৭")
    answer(page, 0, 1, "0.7")
    with page.expect_download() as came:
        page.get_by_role("button", name=said("spreadsheet")).click()
    assert Path(came.value.path()).read_bytes()[:2] == b"PK"
    page.get_by_role("link", name=said("tab.score")).click()
    page.get_by_label(said("score.name")).fill("রহিমা")
    with page.expect_download() as came:
        page.get_by_role("button", name=said("score.save")).click()
    file = tmp_path / "score.json"
    came.value.save_as(file)
    result = json.loads(file.read_text(encoding="utf-8"))
    assert (result["points"], result["name"]) == (4, "রহিমা") and result["answers"][1] == {
        "cell": "Q[1,2]", "tries": ["0.7"], "hints": 0, "verdict": "wrong", "points": 0,
    }  # fmt: skip
    result["points"] = 40
    file.write_text(json.dumps(result), encoding="utf-8")
    page.locator("input[type=file]").set_input_files(file)
    page.locator("article").wait_for()
    checked = page.locator("article").inner_text()
    assert "4 of 288 points" in checked and "claims 40" in checked


def test_a_mini_learns_and_goes_back(enter: Opened) -> None:
    page = enter("hand", "mini")
    page.locator("figcaption").wait_for()

    def loss() -> float:
        return float(page.locator("figcaption strong").inner_text().removeprefix("Loss "))

    first = loss()
    page.locator(".matrices button").nth(9).click()
    figures = page.locator(".right dl dd").all_inner_texts()
    value, _, update, after = (float(each.replace("−", "-")) for each in figures)
    assert value + update == pytest.approx(after, abs=1e-5)
    page.get_by_role("button", name=said("mini.step"), exact=True).click()
    page.get_by_text("after 1 steps").wait_for()
    assert loss() < first
    assert float(page.locator(".right dl dd").first.inner_text().replace("−", "-")) == pytest.approx(after, abs=1e-5)
    page.get_by_role("button", name=said("mini.back")).click()
    page.get_by_text("after 0 steps").wait_for()
    assert loss() == first
    page.get_by_label(said("mini.speed")).select_option("20")
    page.get_by_role("button", name=said("mini.play"), exact=True).click()
    page.locator(".writes", has_text=SAID["mini.example"]["bn"]).wait_for()
    page.get_by_role("button", name=said("mini.pause")).click()
    assert loss() < first / 4


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_everybody_can_use_it(enter: Opened, width: int, lang: str, theme: str) -> None:
    page = enter("hand", width=width, lang=lang, theme=theme)
    answer(page, 0, 0, "0.7")
    for tab in ("sheet", "mini", "score"):
        page.get_by_role("link", name=SAID[f"tab.{tab}"][lang], exact=True).click()
        page.locator({"sheet": ".meet", "mini": "figcaption", "score": "table"}[tab]).first.wait_for()
        check_everyone_can_use_it(page)


def test_print_is_black_on_white_without_controls(enter: Opened) -> None:
    page = enter("hand", theme="dark")
    answer(page, 0, 0, "0.37")
    page.emulate_media(media="print")
    paper = page.locator(".paper")
    assert paper.is_visible() and not page.locator(".desk").is_visible() and not page.locator("nav").first.is_visible()
    assert paper.evaluate("each => getComputedStyle(each).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    text = paper.inner_text()
    assert "Q = X × W_Q" in text and "0.37" in text and "0.57" not in text.split("Q = X × W_Q")[1].split("K =")[0]


def test_no_number_of_a_sum_is_out_of_sight(enter: Opened) -> None:
    """A column that is scrolled away would be missing from the learner's sum."""
    page = enter("hand", height=800)
    page.locator(".beside table").wait_for()
    for width in (390, 1000, 1140, 1240, 1280, 1366, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_timeout(100)
        for part in (".scroll", ".beside"):
            hidden = page.locator(part).first.evaluate("each => each.scrollWidth - each.clientWidth")
            assert hidden <= 1, (part, width)
        assert sideways(page) == 0, width


def test_on_a_phone_the_answer_is_beside_its_numbers(enter: Opened) -> None:
    page = enter("hand", width=390, height=844)
    page.locator(".above table").evaluate("each => each.scrollIntoView({ block: 'start' })")
    page.wait_for_timeout(200)
    top, bottom = page.locator(".above td").first.bounding_box(), page.locator(".meet tr").last.bounding_box()
    answer = page.locator(".inspector").bounding_box()
    assert top["y"] >= 52 and bottom["y"] + bottom["height"] <= answer["y"], "both factors, the result and the answer"
    assert page.locator(".typed input").bounding_box()["y"] < 844 - 70, "above the bar of rooms"


def test_a_verdict_stays_in_its_step_and_the_example_is_no_answer(enter: Opened) -> None:
    page = enter("hand")
    answer(page, 0, 0, "0.37")
    page.get_by_text(said("right.before", cell="Q[1,1]", n="4")).wait_for()
    open_step(page, "K")
    assert page.get_by_text(said("right.before", cell="Q[1,1]", n="4")).count() == 0
    example = float(said("answer.example").split(",")[0])
    assert not any(abs(value - example) < 0.01 for matrix in SHEET.values() for value in matrix.ravel().tolist())


def test_two_heads_are_joined_and_mixed_by_hand(enter: Opened, tmp_path: Path) -> None:
    page = enter("hand", "output_2", s="block")
    sheet = paper_sheet("block")
    asked = [name for name, step in sheet.steps.items() if step.operation is not None]
    for name in asked[: asked.index("joined")]:  # both heads computed by the page
        page.locator("nav.steps li button").nth(asked.index(name)).click()
        page.locator(".tools button", has_text="Let the machine compute").click()
    for name in ("joined", "attended", "sum_1", "mean_1"):
        page.locator("nav.steps li button").nth(asked.index(name)).click()
        for column, value in enumerate(sheet.matrices[name][0].tolist()):
            assert answer(page, 0, column, f"{value:.4f}").get_attribute("class").split()[0] == "right", (name, column)
    page.locator("nav.steps li button").nth(asked.index("joined")).click()
    answer(page, 1, 0, f"{sheet.matrices['output_2'][1, 0]:.4f}")
    page.get_by_text(said("wrong.otherHead")).wait_for()
    page.locator("nav.tabs a").nth(2).click()
    with page.expect_download() as waiting:
        page.get_by_role("button", name=said("score.save")).click()
    waiting.value.save_as(tmp_path / "score.json")
    result = json.loads((tmp_path / "score.json").read_text(encoding="utf-8"))
    shown = [each["cell"] for each in result["answers"] if each["verdict"] == "shown"]
    assert result["points"] == 4 * (4 + 4 + 4 + 1) and sum(cell.startswith("output_2[") for cell in shown) == 6
    page.locator("input[type=file]").set_input_files(tmp_path / "score.json")
    page.locator("article").wait_for()
    assert "attended 4/" in page.locator("article").inner_text() and page.locator("article .note").count() == 0


def paste(page: Any, field: Any, text: str) -> None:
    """Paste a text, as Ctrl-V does."""
    field.focus()
    field.evaluate(
        """(field, text) => {
          const held = new DataTransfer();
          held.setData("text/plain", text);
          field.dispatchEvent(new ClipboardEvent("paste", { clipboardData: held, bubbles: true, cancelable: true }));
        }""",
        text,
    )


def test_a_matrix_of_a_spreadsheet_is_pasted(enter: Opened) -> None:
    page = enter("hand", "Q")
    page.get_by_role("button", name=said("edit")).click()
    paste(page, page.locator('.beside [data-cell="1,1"]'), "০.৫\t০.২৫\n১\t২\n9\t9")
    # the last row is below X, so it is dropped
    page.get_by_text(said("pasted.given", n="4", all="6", name="X")).wait_for()
    x = SHEET["X"].copy()
    x[1:3, 1:3] = [[0.5, 0.25], [1, 2]]
    q = x @ SHEET["W_Q"]
    paste(page, cell(page, 0, 0), "\n".join("\t".join(f"{value:.4f}" for value in row) for row in q.tolist()))
    page.get_by_text(said("pasted.open", n="6", all="6", name="Q")).wait_for()
    for row, column in ((0, 0), (1, 1), (2, 0), (2, 1)):
        cell(page, row, column).press("Enter")
        assert "right" in page.locator("td", has=cell(page, row, column)).last.get_attribute("class").split()
