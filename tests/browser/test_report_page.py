"""The reports in a real browser: no network requests, no overflow, and the reader's colour scheme."""

from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.browser.inside_pages import check_it_fits, faults, opened, window

from kotha.api.demo_page import PAGES, demo_page
from kotha.cli.demo import next_steps
from kotha.evaluation.classification import classes_document, score_answers
from kotha.text.prepare import prepare
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.trainers import train
from kotha.training.reporting.report import Record, report_document

pytestmark = pytest.mark.browser


def record() -> Record:
    texts = [document.text for document in islice(stories(seed=5), 12)]
    config = {
        "model": {"family": "gpt", "n_layers": 4, "d_model": 192},
        "data": {"path": "a/long/path/" * 12, "tokenizer": "f" * 64},
        "references": {"uniform": 8.32, "unigram": 6.41},
        "floors": {"bits_per_byte": 0.047},
        "predicted": {"memory_bytes": {"weights": 9e6, "total": 4e8}, "seconds": 3400.0},
    }
    rows: list[dict[str, Any]] = [
        {"step": step, "loss_nats": 9 / step**0.3, "gradient_norm": 3 / step, "tokens_per_second": 123456.0}
        for step in range(1, 3001)
    ]
    for place, text in enumerate(texts):
        found = {"loss_nats": 4 - place / 10, "bits_per_byte": 1 - place / 40, "bits_per_character": 2.5 - place / 10}
        rows.append({"step": 250 * (place + 1), "validation": found, "sample": text})
    summary = {"steps": 3000, "best_step": 3000, "peak_memory_bytes": 5e8, "seconds": 3600.0, "tokens": 3_072_000}
    return Record(config, rows, {**summary, "loss_nats": 2.9, "bits_per_byte": 0.725})


def first_page(folder: Path) -> str:
    """The page of a demo whose model only copied its training data."""
    written = list(islice(stories(seed=1), 40))
    texts = [document.text for document in written]
    tokenizer = train(texts, "unigram", 700)
    (folder / "stories.txt").write_text("\n\n".join(texts), encoding="utf-8")
    shards = prepare([folder / "stories.txt"], tokenizer, folder / "data")
    result = [
        next(document.text for document in written if document.kind == kind) for kind in ("story", "news", "entry")
    ]
    prompts = [" ".join(text.split(" ")[:5]) for text in result]
    made = {"written": written, "tokenizer": tokenizer, "shards": shards, "record": record()}
    counted = {"unigram": {"bits_per_byte": 0.81}}
    score = SimpleNamespace(bits_per_byte=0.725, documents=150, baselines=counted)
    demo: Any = SimpleNamespace(**made, prompts=prompts, before=result[0], texts=result, score=score, floor=0.047)
    shown = "a/long/path/kotha-demo"
    return demo_page(demo, shown, next_steps(shown, ".venv/bin/kotha", 2.0))


LABELS = ["ভ্রমণ", "খেলাধুলা", "রাজনীতি", "বিজ্ঞান ও প্রযুক্তি", "আন্তর্জাতিক", "শিক্ষা", "বিনোদন", "অর্থনীতি", "স্বাস্থ্য", "ধর্ম", "অপরাধ"]


def classes() -> str:
    """The page of a classifier whose model is sometimes wrong."""
    true = [label for place, label in enumerate(LABELS) for _ in range(20 + 30 * place)]
    result = [LABELS[(LABELS.index(label) + (number % 4 == 0)) % len(LABELS)] for number, label in enumerate(true)]
    score = score_answers(LABELS, true, result)
    return classes_document(score, "খবর: 11 classes", "Measured on texts kept out.").html()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder, kept = tmp_path_factory.mktemp("pages"), record()
    made = {"run": report_document(kept).html(), "demo": first_page(folder)}
    made["classes"] = classes()
    for name, html in made.items():
        (folder / f"{name}.html").write_text(html, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in made}


@pytest.mark.parametrize("name", ["run", "demo", "classes"])
def test_it_fits_the_window_asks_for_nothing_and_keeps_nobody_out(browser, pages: dict[str, Path], name: str) -> None:
    for width, language in ((390, "bn"), (1400, "en")):
        with opened(browser, pages[name], width, language=language) as page:
            page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
            check_it_fits(page, width)
            assert faults(page) == []


def test_a_run_in_both_languages_with_its_curve_in_sight(browser, pages: dict[str, Path]) -> None:
    for width, side_by_side in ((390, False), (1400, True)):
        with opened(browser, pages["run"], width) as page:
            chart, sample = (page.locator(part).first.bounding_box() for part in ("figure .plot", ".story"))
            assert chart["y"] < 900, "the curve is to be seen without scrolling"
            assert (sample["x"] >= chart["x"] + chart["width"]) == side_by_side
    with opened(browser, pages["run"], 1400) as page:
        heard = page.locator("figure .plot").first.get_attribute("aria-label")
        assert heard.startswith("Loss. training: 9 at 1, 0.815 at 3000; lowest 0.815 at 3000. validation: 4 at 250,")
        assert page.locator("h1").inner_text() == page.title().removesuffix(" · কথা") == "GPT, 4 layers, width 192"
        page.get_by_role("button", name="Change the language").or_(page.locator("header button").first).first.click()
        assert page.locator("h1").inner_text() == "GPT, ৪টি স্তর, প্রস্থ ১৯২"
        page.locator("header button").first.click()


def test_the_demo_leads_to_its_other_pages(browser, pages: dict[str, Path]) -> None:
    for address, *_ in PAGES:
        (pages["demo"].parent / address).parent.mkdir(exist_ok=True)
        (pages["demo"].parent / address).write_text(f"<title>{address}</title>", encoding="utf-8")
    page = window(browser)
    for place, (address, *_) in enumerate(PAGES):
        page.goto(pages["demo"].as_uri())
        page.locator("nav a").nth(place).click()
        page.wait_for_url(f"**/{address}")
        assert page.title() == address


def test_the_diagonal_of_classes_is_the_darkest_by_day_and_by_night(browser, pages: dict[str, Path]) -> None:
    shade = """row => [...row.querySelectorAll("td")].map(cell => parseFloat(cell.style.getPropertyValue("--share")))"""
    for scheme, colour in (("light", "rgb(253, 252, 248)"), ("dark", "rgb(25, 24, 22)")):
        with opened(browser, pages["classes"], 1400, scheme=scheme) as page:
            assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == colour
            rows = page.locator("table").first.locator("tbody tr").all()
            assert [row.locator("th").inner_text() for row in rows] == LABELS
            shares = [row.evaluate(shade) for row in rows]
            assert [row.index(max(row)) for row in shares] == list(range(len(LABELS)))
