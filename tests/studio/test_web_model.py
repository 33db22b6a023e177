"""The bundled model as one file, opened from disk in a browser without a network, compared with the library."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from tests.studio.conftest import LOOKS, check_everyone_can_use_it, type_into

from kotha.artifacts.model_folder import Bundle, load
from kotha.export.parity import ParityReport, our_side, prompt_reader
from kotha.export.targets import export
from kotha.export.web import export as web
from kotha.export.web.export import compare_page, rounded
from kotha.generation.plain import continue_plainly
from kotha.generation.settings import SamplingSettings
from kotha.model.attention import set_implementation
from kotha.model.gpt import GPT
from kotha.report.built import words
from kotha.storage import bundled
from kotha.text.akshara import units
from kotha.text.tokenizer.tokenizer import Tokenizer

pytestmark = pytest.mark.browser
MOST_BYTES = 24_000_000
OPENING = words("write")["opening"]["en"]
LOOK = """async (ids) => {
  const {layers} = await kotha.source.scores(ids, ids.length);
  return layers.map((heads) => heads.map((row) => [...row]));
}"""
LINES = [
    *("আমার সোনার বাংলা, আমি তোমায় ভালোবাসি।", "র\u200c্যাব তঁার কাছে গেল; ক্ষমা স্ত্রী অ্যাপ", "a b\r\n ১২৩ 456 😀 <|endoftext|>"),
    *("", " ", "নদীর ধারে বসে রহিম ভাবছিল"),
]


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return load(bundled.FOLDER)


@pytest.fixture(scope="module")
def model(bundle: Bundle) -> GPT:
    """The model with its matrices rounded as in the page; the bundled model is stored in this form."""
    return rounded(cast("GPT", our_side(bundle).model))


@pytest.fixture(scope="module")
def tokenizer(bundle: Bundle) -> Tokenizer:
    assert bundle.tokenizer is not None
    return bundle.tokenizer


@pytest.fixture(scope="module")
def file(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("web") / "model.html"
    with pytest.MonkeyPatch.context() as patch:  # checked by this module's browser, not by another one
        patch.setattr(web, "check_page", lambda *_: ParityReport("web"))
        export(bundle, "web", path, run=bundled.FOLDER)
    return path


Opened = Callable[..., Any]


@pytest.fixture
def opened(browser: Any, file: Path) -> Iterator[Opened]:
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_(width: int = 1400, lang: str = "en", theme: str = "light") -> Any:
        size = {"width": width, "height": 900}
        context = browser.new_context(offline=True, viewport=size, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        allowed = (file.as_uri(), "data:font", "blob:")
        page.on("request", lambda asked: None if asked.url.startswith(allowed) else wrong.append(asked.url[:200]))
        page.goto(f"{file.as_uri()}#/?lang={lang}&theme={theme}")
        page.evaluate("kotha.opened")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert not wrong


def write(page: Any, tokens: int) -> str:
    """Generate a given number of tokens, and return the text."""
    type_into(page, "Tokens", str(tokens))
    page.get_by_role("button", name="Generate").click()
    page.get_by_text("per second").wait_for()
    return str(page.locator(".ribbon").inner_text())


def test_it_is_one_small_file(file: Path) -> None:
    assert file.stat().st_size <= MOST_BYTES
    assert [path.name for path in file.parent.iterdir()] == ["model.html"]


def test_ids_and_logits_are_the_library_s(opened: Opened, model: GPT, tokenizer: Tokenizer) -> None:
    page = opened()
    assert page.evaluate("kotha.opened")["simd"], "the kernel that the policy must allow"
    report = ParityReport("web", peer="this browser")
    compare_page(report, model, tokenizer, page, LINES)
    assert report.passed, report
    assert report.lines == len(LINES) and report.positions > 0


def test_a_seed_writes_the_library_s_text(opened: Opened, model: GPT, tokenizer: Tokenizer) -> None:
    start = prompt_reader(tokenizer)(OPENING)
    settings = SamplingSettings(seed=7)
    ids = continue_plainly(model, start, 24, settings, {tokenizer.special["eos"]})
    text = write(opened(), 24)
    assert text == tokenizer.decode([*start, *ids])
    assert "".join(units(text)) == text


def test_another_piece_is_gone_on_from(opened: Opened, model: GPT, tokenizer: Tokenizer) -> None:
    page = opened()
    before = write(page, 10)
    start = prompt_reader(tokenizer)(OPENING)
    ids = continue_plainly(model, start, 10, SamplingSettings(seed=7), {tokenizer.special["eos"]})
    with torch.no_grad():
        chances = model(torch.tensor([[*start, *ids[:4]]]))[0, -1].softmax(-1)
    best = chances.topk(8)
    page.locator('[data-place="4"]').click()
    shown = page.locator(".others li")
    figures = [float(line.split()[-2].strip("<")) for line in shown.all_inner_texts()]
    assert figures == pytest.approx([100 * value for value in best.values.tolist()], abs=0.06)
    other = next(place for place, token in enumerate(best.indices.tolist()) if token not in (ids[4], 0))
    shown.nth(other).get_by_role("button").click()
    page.get_by_role("button", name="Back to the previous text").wait_for()
    lead = tokenizer.decode([*start, *ids[:4], best.indices.tolist()[other]])
    assert page.locator(".ribbon").inner_text().startswith(lead)
    page.get_by_role("button", name="Back to the previous text").click()
    assert page.locator(".ribbon").inner_text() == before


def test_looks_are_those_of_the_library(opened: Opened, bundle: Bundle, tokenizer: Tokenizer) -> None:
    page = opened()
    page.get_by_role("textbox", name="Begin a sentence").fill("নদীর ধারে বসে রহিম")
    page.get_by_role("heading", name="Attention of “␣রহিম”").wait_for()
    ids = prompt_reader(tokenizer)("নদীর ধারে বসে রহিম")
    theirs = page.evaluate(LOOK, ids)
    twin = rounded(cast("GPT", our_side(bundle).model))
    set_implementation(twin, "explicit")
    seen: list[Any] = []
    blocks: Any = twin.stack.blocks
    for block in blocks:
        block.attention.weights.register_forward_hook(lambda *given: seen.append(given[-1][0, :, -1]))
    with torch.no_grad():
        twin(torch.tensor([ids]))
    ours = torch.stack(seen)  # (layers, heads, S)
    torch.testing.assert_close(torch.tensor(theirs), ours, atol=1e-4, rtol=0)
    for layer, head in itertools.product((0, 7), (0, 5)):
        cell = page.locator(f"#look-{layer}-{head}")
        assert abs(int(cell.inner_text()) - 100 * float(ours[layer, head].max())) <= 0.51
    page.locator("#look-0-0").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.get_by_role("heading", name="Layer 1, head 1").is_visible()


def test_sliders_act_in_the_page(opened: Opened) -> None:
    page = opened()
    page.get_by_text("40 of 8,192 tokens remain").wait_for()
    type_into(page, "Temperature", "0")
    page.get_by_text("1 of 8,192 tokens remain").wait_for()


def test_its_card_is_told(opened: Opened) -> None:
    page = opened()
    for said in ("14,949,760", "cc-by-sa-4.0"):
        assert page.locator("dl").get_by_text(said).is_visible()
    page.get_by_text("Model card: training data").click()
    assert page.get_by_role("heading", name="Limitations").is_visible()
    assert "0.324" in page.inner_text("body") and "Tagore" in page.inner_text("body")


def test_the_text_can_be_stopped(opened: Opened) -> None:
    page = opened()
    type_into(page, "Tokens", "400")
    page.get_by_role("button", name="Generate").click()
    page.locator('[data-place="2"]').wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Generate").wait_for()
    assert page.locator("[data-place]").count() < 400


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_nobody_is_kept_out(opened: Opened, width: int, lang: str, theme: str) -> None:
    page = opened(width, lang, theme)
    page.locator(".paper").wait_for()
    page.locator("#look").wait_for()
    page.locator("summary").click()
    assert page.locator("html").get_attribute("lang") == lang
    assert page.locator("html").get_attribute("data-theme") == theme
    check_everyone_can_use_it(page)
