"""Look inside, in a browser: for every family, the page shows the library's numbers."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.browser.inside_pages import wait_until
from tests.inside.small_models import TEXT
from tests.studio.conftest import LOOKS, Opened, check_everyone_can_use_it
from tests.studio.learned import BANGLA, BIRD, BIRD_PLACE, BIRD_SENTENCE, LATIN, SHAPES, SIDE, drawn_shapes

import kotha
from kotha.api.model_input import read_input
from kotha.api.options import InputOptions
from kotha.artifacts.model_folder import Bundle
from kotha.generation.classify import classify_pixels
from kotha.inside.embeddings import Embeddings, nearest_words
from kotha.inside.heads.importance import without_heads
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.study import heads_view
from kotha.inside.numbers.ledger import Ledger, keep
from kotha.report.built import WORDS
from kotha.storage import bundled
from kotha.storage.images import decode_png

pytestmark = pytest.mark.browser
GAPPED = BIRD_SENTENCE.replace(BIRD, "[MASK]")
STORY = "নদীর ধারে একটি গ্রাম ছিল।"
READ: dict[str, dict[str, str]] = {
    "box": {"x": STORY},
    "gpt": {"x": TEXT},
    "bert": {"x": BIRD_SENTENCE, "k": str(BIRD_PLACE)},
    "seq2seq": {"x": LATIN, "t": BANGLA},
}
ASKED = {
    "box": InputOptions(STORY),
    "gpt": InputOptions(TEXT),
    "bert": InputOptions(GAPPED),
    "seq2seq": InputOptions(LATIN, target=BANGLA),
}


def place_of(families: Path, model: str) -> Path:
    return bundled.FOLDER if model == "box" else families / model


def opened_bundle(families: Path, model: str) -> Bundle:
    return kotha.load(place_of(families, model), device="cpu").bundle


def ledger(families: Path, model: str) -> Ledger:
    bundle = opened_bundle(families, model)
    return keep(bundle.model, read_input(bundle, ASKED[model]))


def written(value: float, decimals: int) -> str:
    text = f"{abs(value):.{decimals}f}"
    return f"−{text}" if value < 0 and float(text) else text


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@pytest.mark.parametrize(
    ("model", "path", "site"),
    [
        ("box", ("blocks.6.attention", "weights"), "blocks.6.attention.weights"),
        ("bert", ("blocks.0", "attention_sum"), "blocks.0.attention_sum"),
        ("seq2seq", ("decoder.0.cross", "weights"), "decoder.0.cross.weights"),
    ],
)
def test_a_number_is_the_librarys_and_opens(
    enter: Opened, families: Path, model: str, path: tuple[str, ...], site: str
) -> None:
    page = enter("look", *path, m=model, h="1", r="3", c="2", **READ[model])
    entry = ledger(families, model)[site]
    value = float(entry.matrix(1)[2, 1])
    chosen = page.locator('td[aria-selected="true"]')
    chosen.wait_for()
    assert number(chosen.inner_text()) == pytest.approx(value, abs=0.06)
    inspector = page.get_by_role("complementary")
    inspector.locator("output").wait_for()
    assert inspector.locator("output").inner_text() == written(value, 4)
    result = re.findall(r"−?\d+\.\d+", inspector.get_by_text("the lines above give").inner_text())
    assert [number(each) for each in result] == pytest.approx([value, value], abs=2e-5)


def test_the_weave_says_what_each_layer_would_say(enter: Opened) -> None:
    page = enter("look", m="box", x=STORY)
    page.locator('table[role="grid"] tbody tr').first.wait_for()
    found = kotha.load("box", device="cpu").lens(STORY).to_dict()
    rows = page.locator("tbody tr")
    assert rows.count() == len(found["positions"])
    for row in (0, 3):
        cells = rows.nth(row).get_by_role("gridcell")
        result = [layer["positions"][row]["best"][0]["text"] for layer in found["layers"]]
        assert [cells.nth(i).locator(".text").inner_text() for i in range(cells.count())] == result
    rows.nth(3).get_by_role("gridcell").nth(2).click()
    page.get_by_text("Open this layer").wait_for()
    assert "r=4" in page.url and "c=3" in page.url


def test_rows_keep_their_height_from_the_model_to_a_number(enter: Opened) -> None:
    tops = []
    for path in ((), ("blocks.0",), ("blocks.0.attention", "scores")):
        page = enter("look", *path, m="gpt", x=TEXT)
        page.locator(".piece").nth(8).wait_for()
        page.wait_for_timeout(300)
        box = page.locator(".piece").nth(8).bounding_box()
        tops.append(box["y"] + box["height"] / 2)
    assert max(tops) - min(tops) <= 3


def test_keys_go_sideways_and_up_and_crumbs_say_where(enter: Opened) -> None:
    page = enter("look", "blocks.0.attention", "scores", m="gpt", x=TEXT, r="2", c="1", h="0")
    page.locator('td[aria-selected="true"]').click()
    page.keyboard.press("]")
    page.keyboard.press(".")
    page.keyboard.press("ArrowDown")
    assert wait_until(page, "location.hash.includes('blocks.1.attention/scores')")
    assert "h=1" in page.url and "r=3" in page.url
    crumbs = page.get_by_role("navigation", name="Breadcrumbs")
    assert crumbs.locator("select").nth(0).input_value() == "blocks.1"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert wait_until(page, "location.hash.startsWith('#/look?')")
    page.go_back()
    assert wait_until(page, "location.hash.includes('blocks.1')")


def test_another_model_shows_the_same_depth(enter: Opened) -> None:
    page = enter("look", "blocks.6.attention", "scores", m="box", x="নদীর ধারে", r="2", c="1")
    page.locator('td[aria-selected="true"]').wait_for()
    page.get_by_role("combobox", name="Model").first.select_option("gpt")
    page.get_by_text("layer 6 was replaced by layer 1").wait_for()
    assert wait_until(page, "location.hash.includes('blocks.1.attention/scores')")


def test_a_head_is_switched_off_with_one_click_and_rows_stay_where_they_are(enter: Opened, families: Path) -> None:
    page = enter("look", "blocks.0.attention", m="gpt", x=TEXT)
    place = "document.querySelector('.piece').getBoundingClientRect().top + scrollY"
    page.get_by_role("switch", name="Switch off head 1").wait_for()
    top = page.evaluate(place)
    page.get_by_role("switch", name="Switch off head 1").click()
    bundle = opened_bundle(families, "gpt")
    given = read_input(bundle, ASKED["gpt"])
    before, after = (f"{each.loss_nats:.2f}" for each in without_heads(bundle.model, given, ["blocks.0.attention.1"]))
    page.get_by_text(f"from {before} to {after} nats").wait_for()
    assert page.evaluate(place) == top
    assert wait_until(page, "document.querySelector('.silenced').getBoundingClientRect().bottom <= innerHeight")
    assert "s=blocks.0.attention.1" in page.url
    page.get_by_role("button", name="Switch all on").click()
    page.get_by_text(re.compile("the loss (rises|falls)")).wait_for(state="detached")


def test_heads_are_named_with_their_evidence(enter: Opened, families: Path) -> None:
    page = enter("look", "blocks.1.attention", m="gpt", x=TEXT)
    page.get_by_role("button", name="Name the heads").click()
    page.locator(".heads .kind").nth(3).wait_for()
    words = json.loads((WORDS / "look.json").read_text(encoding="utf-8"))
    source = TextSource(text=words["passage"]["en"], tokens=256)
    found = heads_view(opened_bundle(families, "gpt"), source).to_dict()
    studied = [each for each in found["heads"] if each["head"].startswith("blocks.1.")]
    assert "broad" in [each["kind"] for each in studied]
    assert page.locator(".heads .kind").all_inner_texts() == [words[f"kind.{each['kind']}"]["en"] for each in studied]
    shown = page.locator(".heads small").all_inner_texts()
    for text, each in zip(shown, studied, strict=True):
        assert f"{written(each['ablation_nats'], 3)} nats" in text


def test_looks_as_lines_are_the_weights(enter: Opened, families: Path) -> None:
    page = enter("look", "blocks.1.attention", m="gpt", x=TEXT, h="1", r="4", v="lines")
    weights = ledger(families, "gpt")["blocks.1.attention.weights"].matrix(1)[3]
    best = int(weights.argmax())
    line = page.locator(".lines li").nth(best)
    line.locator(".number").wait_for()
    assert line.locator(".number").inner_text() == f"{100 * float(weights[best]):.0f} %"


def test_a_hidden_word_is_guessed(enter: Opened, families: Path) -> None:
    page = enter("look", m="bert", x=BIRD_SENTENCE)
    page.get_by_role("button", name=f"Hide “{BIRD}”").click()
    page.get_by_role("button", name=f"Show “{BIRD}” again").wait_for()
    lm = kotha.load(families / "bert", device="cpu")
    [words] = lm.fill(GAPPED, words=6).words
    assert words[0].word == BIRD and words[0].probability > 0.5, "it has learned the word"
    place = read_input(lm.bundle, InputOptions(GAPPED)).masked[0]
    answer = page.locator(".answer").filter(has_text=f"token {place + 1}?")
    answer.locator("li").nth(5).wait_for()
    shown = [tuple(text.split("\n")) for text in answer.locator("li").all_inner_texts()]
    assert [share for _, share in shown] == [f"{100 * each.probability:.1f} %" for each in words]
    assert [text.strip("␣# ") for text, _ in shown] == [each.word.strip("# ") for each in words]


def test_a_translation_is_aligned(enter: Opened, families: Path) -> None:
    page = enter("look", "alignment", m="seq2seq", **READ["seq2seq"])
    found = kotha.load(families / "seq2seq", device="cpu").alignment(LATIN, target=BANGLA).to_dict()
    rows = page.locator('table[role="grid"] tbody tr')
    rows.first.wait_for()
    n_words = len(BANGLA.split())
    assert rows.count() == n_words and found["strongest"] == list(range(n_words)), "each name looks at its own"
    for row, weights in zip(rows.all(), found["weights"], strict=True):
        assert row.get_by_role("gridcell").all_inner_texts() == [f"{each:.3f}" for each in weights]
    result = page.locator(".view li small").all_inner_texts()
    for row, text in enumerate(result):
        assert text == f"→ ␣{LATIN.split()[row]} {100 * found['weights'][row][row]:.0f} %"


def test_an_image_is_dropped_in_named_and_looked_at(enter: Opened, families: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow writes the test's image")
    images, labels = drawn_shapes(seed=1, n_images=len(SHAPES))
    pixels, shape = images[0], SHAPES[labels[0]]
    image.fromarray(np.stack([pixels] * 3, -1)).save(tmp_path / "own.png")
    page = enter("look", m="vit", h="1", r="3")
    page.locator(".patches button").nth(3).wait_for()
    with page.expect_response(lambda said: said.url.endswith("/inside/pass")) as said:
        page.set_input_files('input[type="file"]', str(tmp_path / "own.png"))
    sent = base64.b64decode(said.value.request.post_data_json["image"])
    bundle = opened_bundle(families, "vit")
    decoded = decode_png(sent, SIDE, 1, 4096)
    weights = keep(bundle.model, read_input(bundle, InputOptions(image=decoded)))["blocks.1.attention.weights"].matrix(
        1
    )[2]
    expected = [f"{100 * float(share):.0f} %" for share in weights[1:]]
    assert wait_until(
        page,
        "all => [...document.querySelectorAll('.patches button')].map(each => each.textContent).join() === all.join()",
        expected,
    )
    named = classify_pixels(bundle, decoded)
    assert named.label == shape and named.probabilities[shape] > 0.5, "it has learned the shape"
    shown = [tuple(text.split("\n")) for text in page.locator(".answer li").all_inner_texts()]
    assert shown == [(label, f"{100 * share:.1f} %") for label, share in named.probabilities.items()]


def test_words_near_a_word(enter: Opened, families: Path) -> None:
    bundle = opened_bundle(families, "gpt")
    table = Embeddings(bundle.model, bundle.tokenizer)
    word = table.texts[table.frequent_words(3)[2]].strip()
    page = enter("look", "map", m="gpt")
    page.get_by_role("searchbox").fill(word)
    page.get_by_role("button", name="Find", exact=True).click()
    page.locator(".near li").first.wait_for()
    near = nearest_words(table, table.find(word), 12)
    assert page.locator(".near li button").all_inner_texts() == [each.text for each in near]
    assert page.locator(".near li .number").all_inner_texts() == [written(each.cosine, 3) for each in near]


def test_play_steps_through_the_layers(enter: Opened) -> None:
    page = enter("look", m="gpt", x=TEXT)
    page.locator('table[role="grid"] tbody tr').first.wait_for()
    page.get_by_role("button", name="One step forward").click()
    page.get_by_role("button", name="One step forward").click()
    page.get_by_text(re.compile("Layer 0: at .* it would predict")).wait_for()
    assert "c=2" in page.url


SWIPE = """(element, right) => {
    const finger = x => new Touch({identifier: 1, target: element, clientX: x, clientY: 400});
    const told = (kind, x, down) => new TouchEvent(kind, {bubbles: true, touches: down, changedTouches: [finger(x)]});
    element.dispatchEvent(told("touchstart", 200, [finger(200)]));
    element.dispatchEvent(told("touchend", 200 + right, []));
}"""


def test_on_a_phone_a_swipe_goes_to_the_next_layer_and_the_number_is_in_a_sheet(enter: Opened) -> None:
    page = enter("look", "blocks.0.attention", "scores", m="gpt", x=TEXT, r="2", c="1", width=390, height=844)
    sheet = page.get_by_role("complementary")
    sheet.locator("output").wait_for()
    heights = [sheet.bounding_box()["height"]]
    for _ in range(2):
        sheet.get_by_role("button", name="Pull the sheet up").click()
        heights.append(sheet.bounding_box()["height"])
    assert heights == sorted(set(heights)), "each pull shows more"
    sheet.get_by_role("button", name="Push the sheet down").click()
    assert sheet.bounding_box()["height"] == heights[0]
    stage = page.locator(".stage")
    stage.evaluate(SWIPE, -20)
    assert "blocks.0.attention" in page.url, "a touch that hardly moves is no swipe"
    stage.evaluate(SWIPE, -120)
    page.wait_for_url("**/blocks.1.attention/scores**")
    assert "r=2" in page.url and "c=1" in page.url, "at the same cell"
    stage.evaluate(SWIPE, 120)
    page.wait_for_url("**/blocks.0.attention/scores**")


def test_no_name_above_a_picture_is_cut(enter: Opened) -> None:
    for lang in ("en", "bn"):
        page = enter("look", "blocks.0", m="gpt", x=TEXT, lang=lang)
        page.locator(".part canvas").first.wait_for()
        wide = page.locator(".part").evaluate_all(
            """parts => parts.map(
                part => [part.offsetWidth, ...[...part.querySelectorAll('.head *')].map(each => each.offsetWidth)]
            )"""
        )
        assert wide and all(max(names) <= part for part, *names in wide)
        page.close()


PLACES: dict[str, tuple[str, ...]] = {"gpt": ("blocks.0",), "bert": ("blocks.0.attention",), "seq2seq": (), "vit": ()}


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_everyone_can_use_it_at_every_width(enter: Opened, width: int, lang: str, theme: str) -> None:
    for model, path in {**PLACES, "box": ("blocks.3.attention", "scores")}.items():
        query = {"r": "2", "c": "1", **READ.get(model, {})}
        page: Any = enter("look", *path, m=model, lang=lang, theme=theme, width=width, **query)
        page.locator(".piece, .patches button").first.wait_for()
        page.wait_for_timeout(400)
        check_everyone_can_use_it(page)
        page.close()


def test_it_is_told_how_far_the_naming_of_heads_is(enter: Opened) -> None:
    page = enter("look", "blocks.1.attention", m="gpt", x=TEXT)
    page.route("**/api/inside/heads", lambda _: None)  # slow
    result = '{"stage": "silencing", "done": 3, "total": 8}'
    page.route("**/api/progress**", lambda route: route.fulfill(body=result, content_type="application/json"))
    page.get_by_role("button", name="Name the heads").click()
    page.get_by_text("3 of 8 heads tested").wait_for()
    assert page.locator("progress").get_attribute("value") == str(0.5 * 3 / 8)


def test_on_a_phone_a_tapped_cell_answers_in_sight(enter: Opened) -> None:
    page = enter("look", m="gpt", x=TEXT, width=390, height=844)
    page.locator('[role="gridcell"]').nth(3).click()
    answer = page.get_by_role("complementary", name="The number")
    page.get_by_text("It would predict").wait_for()
    spot = answer.bounding_box()
    assert spot["y"] + 60 < 844, "and not a screen below"
