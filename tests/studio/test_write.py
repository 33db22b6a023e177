"""Write, in a real browser: the page shows the same text and probabilities as the library."""

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("playwright", reason="it drives the browser")

import torch
from playwright.sync_api import expect
from tests.studio.conftest import LOOKS, Opened, check_everyone_can_use_it, faults, sideways, type_into
from tests.studio.learned import BANGLA, LATIN

import kotha
from kotha.generation.plain import chances
from kotha.generation.request import Request, Result
from kotha.generation.settings import SamplingSettings

pytestmark = pytest.mark.browser
expect.set_options(timeout=60_000)  # both cores may be busy with other tests
PROMPT = "একদিন সকালে"
GREEDY = "0,,,,"
OPTION = ".ribbon [role=option]"


@pytest.fixture(scope="module")
def box() -> Iterator[Any]:
    yield kotha.load("box", device="cpu")


def library(box: Any, prompt: str | tuple[int, ...], tokens: int, **settings: Any) -> Result:
    request = Request(prompt=prompt, tokens=tokens, settings=SamplingSettings(**settings), alternatives=8)
    result: Result = box.engine(1).generate([request])[0]
    return result


def write(page: Any, texts: int = 1) -> None:
    """Start generating, and wait for the end."""
    page.locator("main .primary").click()
    done(page, texts)


def done(page: Any, texts: int = 1) -> None:
    """Wait until this number of texts is complete."""
    expect(page.locator("main .primary")).to_be_visible()
    expect(page.locator(".rate", has_text=re.compile(r"\S"))).to_have_count(texts)


def shown(page: Any, nth: int = 0) -> str:
    return str(page.locator(".ribbon").nth(nth).inner_text())


def numbers(text: str) -> list[float]:
    return [float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*\.?\d*", text)]


def tint(probability: float) -> str:
    """Return the expected tint: darker for less likely tokens, and none for likely ones."""
    depth = sum(probability < least for least in (0.5, 0.2, 0.05, 0.01, 0.001))
    return f"var(--tint-{depth})" if depth else ""


def tint_of(span: Any) -> str:
    return str(span.evaluate("each => each.style.background"))


def test_the_text_is_the_library_s(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, s=GREEDY, n="12")
    write(page)
    wanted = library(box, PROMPT, 12, temperature=0, top_k=None, repetition_penalty=None)
    assert shown(page) == PROMPT + wanted.text
    spans = page.locator(OPTION)
    assert spans.count() == len(wanted.ids)
    for place, token in enumerate(wanted.written):
        result = numbers(spans.nth(place).get_attribute("aria-label").split(",")[-1])[0]
        assert result == pytest.approx(100 * math.exp(token.log_probability), abs=0.051)
        assert tint_of(spans.nth(place).locator(".letters")) == tint(math.exp(token.log_probability))


def test_others_are_told_and_a_branch_leaves_the_text(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, n="10")
    write(page)
    usual = {"temperature": 0.8, "top_k": 40, "repetition_penalty": 1.1, "seed": 7}
    first = library(box, PROMPT, 10, **usual)
    assert shown(page) == PROMPT + first.text
    type_into(page, "top-k", "1")  # the tokens that would be cut are marked, and nothing is generated
    expect(page.locator(".marked")).to_have_count(sum(token.rank > 1 for token in first.written))
    type_into(page, "top-k", "40")
    assert page.locator(".strip").count() == 0 and shown(page) == PROMPT + first.text
    page.locator(OPTION).nth(3).hover()
    rows = page.locator(".others li")
    rows.first.wait_for()
    assert [numbers(text)[-1] for text in rows.locator(".number").all_inner_texts()] == pytest.approx(
        [100 * math.exp(other.log_probability) for other in first.written[3].alternatives], abs=0.051
    )
    place = next(i for i, other in enumerate(first.written[3].alternatives) if other.id != first.ids[3])
    rows.nth(place).locator("button").click()
    done(page)
    page.locator(".strip").wait_for()
    other = first.written[3].alternatives[place].id
    prompt = (box.tokenizer.special["eos"], *box.tokenizer.encode(PROMPT), *first.ids[:3], other)
    again = library(box, prompt, 10, **usual)
    expect(page.locator(OPTION)).to_have_count(14)
    assert shown(page) == box.tokenizer.decode([*prompt, *again.ids])
    # Both texts are kept; the keyboard switches between them, removes one, and restores it.
    assert page.locator(".strip li").count() == 2 and sideways(page) == 0
    assert page.locator(".text").bounding_box()["width"] < 800, "a long branch makes nothing wider"
    page.locator(".ribbon [role=listbox]").focus()
    page.keyboard.press("Alt+ArrowUp")
    assert shown(page) == PROMPT + first.text
    page.keyboard.press("Alt+ArrowDown")
    page.keyboard.press("Delete")
    assert shown(page) == PROMPT + first.text and page.locator(".strip").count() == 0
    page.keyboard.press("Control+z")
    assert page.locator(".strip li").count() == 2 and shown(page) != PROMPT + first.text


def test_by_keyboard_alone(enter: Opened) -> None:
    page = enter("write", x=PROMPT, n="6")
    page.locator("textarea").focus()
    page.keyboard.press("Enter")
    done(page)
    page.locator(".ribbon [role=listbox]").focus()
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.keyboard.press(key)
    assert page.locator(".ribbon [aria-selected=true]").get_attribute("data-place") == "2"
    before = shown(page)
    page.keyboard.press("Enter")  # the most likely of the other tokens
    page.locator(".strip").wait_for()
    done(page)
    assert shown(page) != before
    page.keyboard.press("End")
    page.keyboard.press("Escape")
    assert page.locator(".others").count() == 0


def test_sliders_act_on_the_distribution_as_the_library_does(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, lang="en", s="0.7,12,0.9,0.02,1.3")
    page.locator(".bars li button").nth(11).wait_for()
    ids = [box.tokenizer.special["eos"], *box.tokenizer.encode(PROMPT)]
    with torch.no_grad():
        logits = box.model(torch.tensor([ids]))[0, -1].float()

    def held(**settings: Any) -> None:
        kept = chances(logits, SamplingSettings(**settings), ids[1:])
        left, all_of_them, share = numbers(page.locator(".left").inner_text())
        assert (left, all_of_them) == (len(kept), box.tokenizer.vocab_size)
        assert share == pytest.approx(100 * sum(logits.softmax(0)[list(kept)].tolist()), abs=0.51)
        for place, chance in enumerate(list(kept.values())[:12]):
            assert numbers(page.locator(".bars .value").nth(place).inner_text())[0] == pytest.approx(
                100 * chance, abs=0.051
            )
        assert page.locator(".bars .cut").count() == max(0, 12 - len(kept))

    held(temperature=0.7, top_k=12, top_p=0.9, min_p=0.02, repetition_penalty=1.3)
    type_into(page, "top-k", "3")
    expect(page.locator(".bars")).to_contain_text("cut by top-k")
    held(temperature=0.7, top_k=3, top_p=0.9, min_p=0.02, repetition_penalty=1.3)
    assert page.locator(".ribbon").count() == 0, "nothing is written until it is asked for"
    expect(page).to_have_url(re.compile("s=0.7%2C3%2C"))


def test_two_settings_beside(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, n="10", bs=GREEDY)
    write(page, 2)
    page.get_by_text("are identical").wait_for()
    usual = library(box, PROMPT, 10, temperature=0.8, top_k=40, repetition_penalty=1.1, seed=7)
    greedy = library(box, PROMPT, 10, temperature=0, top_k=None, repetition_penalty=None)
    assert [shown(page, 0), shown(page, 1)] == [PROMPT + usual.text, PROMPT + greedy.text]
    assert page.locator(".parting").count() == (0 if usual.text == greedy.text else 2)
    page.get_by_role("button", name="Close the comparison").click()
    assert page.locator(".ribbon").count() == 1 and "bs=" not in page.url


def test_a_second_model_beside(enter: Opened) -> None:
    page = enter("write", x=PROMPT, n="5", b="gpt")
    write(page, 2)
    assert [page.locator(".sheet h2").nth(place).inner_text().split(",")[0] for place in (0, 1)] == [
        "First: box",
        "Second: gpt",
    ]


def test_what_was_written_can_be_changed_by_hand(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, s=GREEDY, n="5")
    write(page)
    text = shown(page)
    page.get_by_role("button", name="Edit the text").click()
    assert page.locator("textarea").input_value() == text
    page.keyboard.type(" একা")
    page.keyboard.press("Enter")
    expect(page.locator(".strip li")).to_have_count(2)
    done(page)
    wanted = library(box, text + " একা", 5, temperature=0, top_k=None, repetition_penalty=None)
    assert shown(page) == text + " একা" + wanted.text


def test_writing_again_with_nothing_changed_goes_on(enter: Opened) -> None:
    page = enter("write", x=PROMPT, s=GREEDY, n="5")
    write(page)
    before = shown(page)
    write(page)
    expect(page.locator(OPTION)).to_have_count(10)
    assert shown(page).startswith(before) and page.locator(".strip").count() == 0


def test_a_first_piece_is_chosen_and_all_stays_while_one_is_elsewhere(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, s=GREEDY, n="4")
    page.locator(".bars li button").nth(2).click()
    done(page)
    eos, *ids = [box.tokenizer.special["eos"], *box.tokenizer.encode(PROMPT)]
    with torch.no_grad():
        third = int(box.model(torch.tensor([[eos, *ids]]))[0, -1].topk(3).indices[2])
    rest = library(box, (eos, *ids, third), 4, temperature=0, top_k=None, repetition_penalty=None)
    text = shown(page)
    assert text == box.tokenizer.decode([*ids, third, *rest.ids])
    page.get_by_role("link", name="Tokenize").click()
    expect(page.locator("h1")).to_have_text("Tokenize")
    page.get_by_role("link", name="Write").click()
    page.locator(OPTION).first.wait_for()
    assert shown(page) == text
    expect(page).to_have_url(re.compile("s=0%2C"))


def test_stop_keeps_what_stands(enter: Opened) -> None:
    page = enter("write", x=PROMPT, n="400")
    page.locator("main .primary").click()
    page.locator(OPTION).nth(3).wait_for()
    page.keyboard.press("Escape")
    done(page)
    count = page.locator(OPTION).count()
    assert 4 <= count < 400
    page.locator("textarea").fill("রহিম")
    assert page.locator(OPTION).count() == count, "typing takes nothing away"
    page.keyboard.press("Enter")
    page.locator(OPTION).nth(2).wait_for()
    page.locator("textarea").fill("এক দেশে")  # during generation: the other text stays as it is
    page.keyboard.press("Enter")
    expect(page.locator(".ribbon .lead")).to_have_text("এক দেশে")
    page.locator(OPTION).nth(2).wait_for()
    page.keyboard.press("Escape")
    done(page)
    assert page.locator(".strip li").count() == 3


def test_the_first_visit_is_greeted_once(enter: Opened) -> None:
    page = enter("write")
    page.get_by_text("Generated on this computer, token by token. Point at a word.").wait_for()
    page.locator(OPTION).nth(30).wait_for()
    page.reload()
    page.locator(".bars li button").first.wait_for()
    assert page.locator(OPTION).count() == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [("bert", "but fills gaps"), ("vit", "it classifies images")],
)
def test_families_that_do_not_write_say_what_they_do(enter: Opened, model: str, words: str) -> None:
    page = enter("write", m=model)
    page.get_by_text(words).wait_for()
    assert not faults(page)


def test_a_seq2seq_translates(enter: Opened) -> None:
    page = enter("write", m="seq2seq", x=LATIN)  # Teach's form; see test_teach.py
    page.locator("main .primary").click()
    page.locator(".result", has_text=BANGLA).wait_for()


@pytest.mark.parametrize(("width", "lang", "theme"), LOOKS)
def test_everybody_can_use_it(enter: Opened, width: int, lang: str, theme: str) -> None:
    page = enter("write", width=width, lang=lang, theme=theme, x=PROMPT, n="15", bs=GREEDY)
    write(page, 2)
    page.locator(OPTION).nth(2).click()
    page.locator(".others").wait_for()
    check_everyone_can_use_it(page)


def test_what_was_given_is_tinted_by_how_likely_it_was(enter: Opened, box: Any) -> None:
    page = enter("write", x=PROMPT, n="2")
    write(page)
    pieces = page.locator(".lead span")
    ids = [box.tokenizer.special["eos"], *box.tokenizer.encode(PROMPT)]
    expect(pieces).to_have_count(len(ids) - 1)
    with torch.no_grad():
        shares = box.model(torch.tensor([ids]))[0].softmax(-1)
    for place, token in enumerate(ids[1:]):
        likely = float(shares[place, token])
        assert tint_of(pieces.nth(place)) == tint(likely)
        assert numbers(pieces.nth(place).get_attribute("title"))[0] == pytest.approx(100 * likely, rel=0.02, abs=0.001)
    assert shown(page).startswith(PROMPT)


def test_who_comes_to_see_a_model_write_sees_it_write(enter: Opened) -> None:
    page = enter("write", x=PROMPT, n="3", go="1")
    done(page)
    assert shown(page).startswith(PROMPT) and page.locator(OPTION).count() == 3
    assert "go=" not in page.url, "once"
