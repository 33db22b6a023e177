"""The map of words and the plan in a real browser: offline, inside the window, words whole and readable."""

from itertools import islice
from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, opened

from kotha.inside.embeddings.near import Dot, WordMap
from kotha.inside.embeddings.page import embeddings_page
from kotha.text.stories.corpus import stories
from kotha.train.plan.page import PlanText
from kotha.train.recipes import recipe

# Pairs of labels of which one covers more than a third of the other.
COVERED = """() => {
    const boxes = [...document.querySelectorAll("svg text")].map(each => each.getBoundingClientRect())
        .filter(box => box.width)
    let count = 0
    boxes.forEach((a, place) => boxes.slice(place + 1).forEach(b => {
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left)
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top)
        if (across > 0 && down > 0 && across * down > Math.min(a.width * a.height, b.width * b.height) / 3) count += 1
    }))
    return [count, boxes.length]
}"""


def words_page() -> str:
    words = list(dict.fromkeys(" ".join(each.text for each in islice(stories(seed=3), 20)).split()))[:250]
    dots = [
        Dot(word, (place * 37 % 101) ** 0.9, (place * 53 % 89) ** 0.9, place >= len(words) - 2)
        for place, word in enumerate(words)
    ]
    return embeddings_page("Words", WordMap(dots, (0.2, 0.1)), [])


def a_plan() -> str:
    tables = [("proposed", ["", "value", "why"], [["steps", "3", "a sentence of many words " * 8]])]
    return PlanText("", recipe("modern"), tables, ["words"], ["kotha train data --set " + "a" * 200]).html()


@pytest.mark.browser
@pytest.mark.parametrize("width", [400, 1200])
@pytest.mark.parametrize("made", [words_page, a_plan])
def test_it_fits_the_window_and_asks_for_nothing(browser, tmp_path: Path, made, width: int) -> None:
    path = tmp_path / "page.html"
    path.write_text(made(), encoding="utf-8")
    with opened(browser, path, width) as page:
        check_it_fits(page, width)
        covered, labels = page.evaluate(COVERED)
        assert covered <= labels / 20


@pytest.mark.browser
def test_a_phone_shows_fewer_labels_and_every_dot_says_its_word(browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(words_page(), encoding="utf-8")
    shown = {}
    for width in (400, 1200):
        with opened(browser, path, width) as page:
            shown[width] = page.evaluate(COVERED)[1]
            assert page.evaluate("document.querySelectorAll('circle > title').length") == 250
    assert 20 < shown[400] < shown[1200]
