"""The report in a real browser: it asks no network for anything, fits its window, and follows the reader's colours."""

from itertools import islice

import pytest
from tests.browser.inside_pages import OUTSIDE

from kotha.text.stories.corpus import stories
from kotha.train.show.report import report_page

TEXTS_OUTSIDE = """() => [...document.querySelectorAll("svg text")].filter(each => {
    const text = each.getBoundingClientRect(), picture = each.closest("svg").getBoundingClientRect()
    return text.left < picture.left - 1 || text.right > picture.right + 1
}).map(each => each.textContent)"""


def report() -> str:
    texts = [document.text for document in islice(stories(seed=5), 12)]
    config = {
        "model": {"family": "gpt", "n_layers": 4, "d_model": 192},
        "data": {"path": "a/long/path/" * 12, "tokenizer": "f" * 64},
        "references": {"ln V": 8.32, "unigram": 6.41},
        "floors": {"bits_per_byte": 0.047},
        "predicted": {"memory_bytes": {"weights": 9e6, "total": 4e8}, "seconds": 3400.0},
    }
    rows = [{"step": step, "loss_nats": 9 / step**0.3, "gradient_norm": 3 / step, "tokens_per_second": 123456.0}
            for step in range(1, 3001)]  # fmt: skip
    for place, text in enumerate(texts):
        found = {"loss_nats": 4 - place / 10, "bits_per_byte": 1 - place / 40, "bits_per_character": 2.5 - place / 10}
        rows.append({"step": 250 * (place + 1), "validation": found, "sample": text})
    return report_page(config, rows, {"steps": 3000, "best_step": 3000, "peak_memory_bytes": 5e8, "seconds": 3600.0})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("run") / "report.html"
    path.write_text(report(), encoding="utf-8")
    return path.as_uri()


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1200])
def test_it_fits_the_window_and_asks_for_nothing(browser, address: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    page.goto(address)
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    assert asked == [address]
    assert said == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(TEXTS_OUTSIDE) == []
    page.close()


@pytest.mark.browser
def test_it_is_dark_for_who_wants_it_dark(browser, address: str) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme)
        page.goto(address)
        line = "getComputedStyle(document.querySelector('svg path[stroke-linecap]')).stroke"
        colours[scheme] = page.evaluate(f"[getComputedStyle(document.body).backgroundColor, {line}]")
        page.close()
    assert colours["light"] == ["rgb(253, 252, 248)", "rgb(179, 84, 30)"]
    assert colours["dark"] == ["rgb(25, 24, 22)", "rgb(232, 150, 95)"]
