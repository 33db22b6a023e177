"""The page of a classifier: it fits, Bangla names stand whole, and the diagonal is the darkest."""

from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, opened

from kotha.evaluation.classes_page import classes_page
from kotha.evaluation.classification import score_answers

LABELS = ["ভ্রমণ", "খেলাধুলা", "রাজনীতি", "বিজ্ঞান ও প্রযুক্তি", "আন্তর্জাতিক", "শিক্ষা", "বিনোদন", "অর্থনীতি", "স্বাস্থ্য", "ধর্ম", "অপরাধ"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    true = [label for place, label in enumerate(LABELS) for _ in range(20 + 30 * place)]
    said = [LABELS[(LABELS.index(label) + (number % 4 == 0)) % len(LABELS)] for number, label in enumerate(true)]
    score = score_answers(LABELS, true, said)
    path = tmp_path_factory.mktemp("classes") / "classes.html"
    path.write_text(classes_page(score, "খবর: 11 classes", "Measured on texts kept out."), encoding="utf-8")
    return path


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1400])
def test_it_fits_the_window_and_asks_for_nothing(browser, file: Path, width: int) -> None:
    with opened(browser, file, width) as page:
        check_it_fits(page, width)
        assert page.locator("table.matrix tbody th").all_inner_texts() == LABELS


@pytest.mark.browser
def test_the_diagonal_is_the_darkest_of_its_row(browser, file: Path) -> None:
    shade = """row => [...row.querySelectorAll("td")].map(cell => parseFloat(cell.style.getPropertyValue("--share")))"""
    with opened(browser, file, 1400) as page:
        rows = page.locator("table.matrix tbody tr").all()
        for place, row in enumerate(rows):
            shares = row.evaluate(shade)
            assert shares.index(max(shares)) == place and abs(sum(shares) - 1) < 0.01
