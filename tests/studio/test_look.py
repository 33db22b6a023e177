"""Look inside, in a browser: what stands on the page is what the library computes, for every family."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi", reason="the server stands on FastAPI")
pytest.importorskip("playwright", reason="it drives the browser")

from tests.inside.small_models import TEXT
from tests.studio.conftest import LOOKS, Opened, faults, sideways

import kotha
from kotha.bundle import Bundle
from kotha.inside.asked import Asked, read_asked
from kotha.inside.embeddings.near import nearest_words
from kotha.inside.embeddings.words import Embeddings
from kotha.inside.heads.measuring import TextSource
from kotha.inside.heads.page import heads_view
from kotha.inside.heads.silencing import without_heads
from kotha.inside.numbers.ledger import Ledger, keep
from kotha.pictures import decode_png
from kotha.studio.files import WORDS

pytestmark = pytest.mark.browser
TARGET = "নদীর ধারে"
READ: dict[str, dict[str, str]] = {
    "gpt": {"x": TEXT},
    "bert": {"x": "নদীর ধারে গ্রাম", "k": "1"},
    "seq2seq": {"x": TEXT, "t": TARGET},
}


def opened_bundle(families: Path, model: str) -> Bundle:
    return kotha.load(families / model, device="cpu").bundle


def ledger(families: Path, model: str) -> Ledger:
    bundle = opened_bundle(families, model)
    asked = {
        "gpt": Asked(TEXT),
        "bert": Asked("নদীর [MASK] গ্রাম"),
        "seq2seq": Asked(TEXT, target=TARGET),
    }[model]
    return keep(bundle.model, read_asked(bundle, asked))


def written(value: float, decimals: int) -> str:
    text = f"{abs(value):.{decimals}f}"
    return f"−{text}" if value < 0 and float(text) else text


def number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@pytest.mark.parametrize(
    ("model", "path", "site"),
    [
        ("gpt", ("blocks.1.attention", "weights"), "blocks.1.attention.weights"),
        ("gpt", ("blocks.0.feedforward", "added"), "blocks.0.feedforward"),
        ("bert", ("blocks.1.attention", "scores"), "blocks.1.attention.scores"),
        ("bert", ("blocks.0", "attention_sum"), "blocks.0.attention_sum"),
        ("seq2seq", ("decoder.1.cross", "weights"), "decoder.1.cross.weights"),
        ("seq2seq", ("encoder.0.attention", "queries"), "encoder.0.attention.queries"),
    ],
)
def test_a_number_is_the_librarys_and_opens(
    enter: Opened, families: Path, model: str, path: tuple[str, ...], site: str
) -> None:
    page = enter("look", *path, m=model, h="2", r="3", c="2", **READ[model])
    entry = ledger(families, model)[site]
    value = float(entry.matrix(2)[2, 1])
    chosen = page.locator('td[aria-selected="true"]')
    chosen.wait_for()
    assert number(chosen.inner_text()) == pytest.approx(value, abs=0.06)
    inspector = page.get_by_role("complementary")
    inspector.locator("output").wait_for()
    assert inspector.locator("output").inner_text() == written(value, 4)
    assert inspector.get_by_text(f"the lines above give {written(value, 4)[:-2]}").count() == 1


def test_the_weave_says_what_each_layer_would_say(enter: Opened, families: Path) -> None:
    page = enter("look", m="gpt", x=TEXT)
    page.locator('table[role="grid"] tbody tr').first.wait_for()
    found = kotha.load(families / "gpt", device="cpu").lens(TEXT).to_dict()
    rows = page.locator("tbody tr")
    assert rows.count() == len(found["positions"])
    for row in (0, 3):
        cells = rows.nth(row).get_by_role("gridcell")
        said = [layer["positions"][row]["best"][0]["text"] for layer in found["layers"]]
        assert [cells.nth(i).locator(".text").inner_text() for i in range(cells.count())] == said
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
    page.wait_for_function("location.hash.includes('blocks.1.attention/scores')")
    assert "h=1" in page.url and "r=3" in page.url
    crumbs = page.get_by_role("navigation", name="Where you are")
    assert crumbs.locator("select").nth(0).input_value() == "blocks.1"
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    page.wait_for_function("location.hash.startsWith('#/look?')")
    page.go_back()
    page.wait_for_function("location.hash.includes('blocks.1')")


def test_another_model_shows_the_same_depth(enter: Opened) -> None:
    page = enter("look", "blocks.6.attention", "scores", m="box", x="নদীর ধারে", r="2", c="1")
    page.locator('td[aria-selected="true"]').wait_for()
    page.get_by_role("combobox", name="Model").first.select_option("gpt")
    page.get_by_text("layer 6 became layer 1").wait_for()
    page.wait_for_function("location.hash.includes('blocks.1.attention/scores')")


def test_a_head_is_switched_off_with_one_click(enter: Opened, families: Path) -> None:
    page = enter("look", "blocks.0.attention", m="gpt", x=TEXT)
    page.get_by_role("switch", name="Switch off head 1").click()
    found = without_heads(opened_bundle(families, "gpt"), TEXT, ["blocks.0.attention.1"])
    before, after = (f"{found.whole.loss_nats:.2f}", f"{found.without.loss_nats:.2f}")
    page.get_by_text(f"from {before} to {after} nats").wait_for()
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
    page = enter("look", m="bert", x="নদীর ধারে গ্রাম")
    page.get_by_role("button", name="Hide “ধারে”").click()
    page.get_by_role("button", name="Show “ধারে” again").wait_for()
    bundle = opened_bundle(families, "bert")
    given = read_asked(bundle, Asked("নদীর [MASK] গ্রাম"))
    logits = given.pass_through(bundle.model).token_logits[0, given.masked[0]]
    share = float(logits.softmax(-1).max())
    page.locator(".answer").filter(has_text=f"piece {given.masked[0] + 1}?").get_by_text(
        f"{100 * share:.1f} %"
    ).first.wait_for()


def test_a_translation_is_aligned(enter: Opened, families: Path) -> None:
    page = enter("look", "alignment", m="seq2seq", **READ["seq2seq"])
    found = kotha.load(families / "seq2seq", device="cpu").alignment(TEXT, target=TARGET).to_dict()
    page.locator('table[role="grid"] tbody tr').first.wait_for()
    shown = [
        number(text)
        for text in page.locator('table[role="grid"] tbody tr').first.get_by_role("gridcell").all_inner_texts()
    ]
    assert shown == pytest.approx(found["weights"][0], abs=6e-4)


def test_an_image_is_dropped_in_and_looked_at(enter: Opened, families: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image", reason="Pillow writes the test's image")
    pixels = np.random.default_rng(1).integers(0, 256, (8, 8), dtype=np.uint8)
    image.fromarray(np.stack([pixels] * 3, -1)).save(tmp_path / "own.png")
    page = enter("look", m="vit", h="1", r="3")
    page.locator(".patches button").nth(3).wait_for()
    with page.expect_response(lambda said: said.url.endswith("/inside/pass")) as said:
        page.set_input_files('input[type="file"]', str(tmp_path / "own.png"))
    sent = base64.b64decode(said.value.request.post_data_json["image"])
    bundle = opened_bundle(families, "vit")
    read = read_asked(bundle, Asked(image=decode_png(sent, 8, 1, 4096)))
    weights = keep(bundle.model, read)["blocks.1.attention.weights"].matrix(1)[2]
    expected = [f"{100 * float(share):.0f} %" for share in weights[1:]]
    page.wait_for_function(
        "all => [...document.querySelectorAll('.patches button')].map(each => each.textContent).join() === all.join()",
        arg=expected,
    )


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
    page.get_by_role("button", name="One step on").click()
    page.get_by_role("button", name="One step on").click()
    page.get_by_text(re.compile("Layer 0: at .* it would say")).wait_for()
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


PLACES: dict[str, tuple[str, ...]] = {"gpt": ("blocks.0",), "bert": ("blocks.1.attention",), "seq2seq": (), "vit": ()}


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_everyone_can_use_it_at_every_width(enter: Opened, width: int, lang: str, theme: str) -> None:
    for model, path in {**PLACES, "box": ("blocks.3.attention", "scores")}.items():
        query = {"r": "2", "c": "1", **READ.get(model, {})}
        page: Any = enter("look", *path, m=model, lang=lang, theme=theme, width=width, **query)
        page.locator(".piece, .patches button").first.wait_for()
        page.wait_for_timeout(400)
        assert not faults(page), model
        assert sideways(page) == 0, model
        page.close()
