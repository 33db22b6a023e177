"""Pages of maps, tokenizer cards, comparisons, plans and diagnoses in a real browser: offline, without overflow."""

import tempfile
from itertools import islice
from pathlib import Path

import pytest
from tests.browser.inside_pages import check_it_fits, faults, opened, written
from tests.browser.test_training_pages import a_design, a_doctor_s_word, a_plan
from tests.generation.conftest import tiny
from tests.text.conftest import trained

from kotha.evaluation.comparison import Comparison, ComparisonRemark, Row, comparison_page
from kotha.evaluation.judge.session import JudgingSession, judging_page
from kotha.inside.embeddings import Embeddings, NearWords, embeddings_view
from kotha.inside.view import View
from kotha.report.tokenizer_card import cards_page
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer import card

pytestmark = pytest.mark.browser
MOST_BYTES = 400_000
TEXTS = [each.text for each in islice(stories(seed=3), 12)]


def near_words() -> View[NearWords]:
    table = Embeddings(tiny("modern", context_length=64), trained("unigram"))
    return embeddings_view(table, ["মা", "নদী"], count=5, map_words=60, name="Words")


def words_page() -> str:
    return near_words().html


def tokenizers_page() -> str:
    loaded = {name: trained(name) for name in ("unigram", "char-codepoint")}
    cards = [card.measure(name, tokenizer, TEXTS) for name, tokenizer in loaded.items()]
    return cards_page(cards, loaded, " ".join(TEXTS[0].split()[:40]), "stories")


def compared() -> Comparison:
    rows = [
        Row(
            name,
            "gpt 2x96",
            1_008_224,
            tokens=655_360,
            bits_per_byte=bits,
            bits_per_character=2.6 * bits,
            perplexity=9.5,
        )
        for name, bits in (("one", 0.2997), ("other", 0.2023))
    ]
    reasons = (ComparisonRemark("untold", ("other",)), ComparisonRemark("tokenizers", ("a", "b"), 2))
    return Comparison(rows, [], text="stories.txt", reasons=reasons)


def comparison() -> str:
    return comparison_page(compared())


def a_judging() -> str:
    with tempfile.TemporaryDirectory() as folder:
        written = {name: [f"{name} {text}" for text in TEXTS[:2]] for name in ("ক", "খ")}
        return judging_page(JudgingSession.start(Path(folder) / "judging", ["নদীর ধারে", "মা বললেন"], written))


@pytest.mark.parametrize(("language", "scheme"), [("en", "dark"), ("bn", "light")])
@pytest.mark.parametrize(
    "made", [words_page, tokenizers_page, comparison, a_plan, a_design, a_doctor_s_word, a_judging]
)
def test_it_fits_every_window_keeps_nobody_out_and_asks_for_nothing(
    browser, tmp_path: Path, made, language: str, scheme: str
) -> None:
    path = written(tmp_path, made())
    assert path.stat().st_size < MOST_BYTES
    with opened(browser, path, scheme=scheme, language=language) as page:
        page.locator("h1").wait_for()
        for width in (390, 820, 1400):
            page.set_viewport_size({"width": width, "height": 900})
            check_it_fits(page, width)
        assert faults(page) == []


def test_the_neighbours_are_the_library_s_and_another_word_is_picked(browser, tmp_path: Path) -> None:
    path = written(tmp_path, words_page())
    with opened(browser, path, language="bn") as page:
        for word in near_words().found.words:
            page.get_by_role("button", name=word.word, exact=True).first.click()
            assert word.word in page.locator("aside h2").inner_text()
            shown = [float(each) for each in page.locator(".near .number").all_inner_texts()]
            assert shown == pytest.approx([each.cosine for each in word.neighbours], abs=5e-4)
            assert page.locator(".near button").all_inner_texts() == [each.text for each in word.neighbours]


def test_the_cards_are_the_library_s(browser, tmp_path: Path) -> None:
    path = written(tmp_path, tokenizers_page())
    with opened(browser, path) as page:
        shown = [float(text.split()[0]) for text in page.locator(".measure td.number").all_inner_texts()]
        loaded = [trained(name) for name in ("unigram", "char-codepoint")]
        cards = [card.measure("", tokenizer, TEXTS) for tokenizer in loaded]
        scales = {
            "tokens_per_word": 1,
            "bytes_per_token": 1,
            "split_aksharas": 100,
            "unknown_rate": 100,
            "round_trip": 100,
        }
        wanted = [scale * getattr(each, name) for name, scale in scales.items() for each in cards]
        assert shown == pytest.approx(wanted, abs=0.051)
        counts = page.locator(".head strong").all_inner_texts()
        sample = " ".join(TEXTS[0].split()[:40])
        assert [int(text.replace(",", "").split()[0]) for text in counts] == [
            len(each.encode(sample)) for each in loaded
        ]


def test_the_table_has_the_library_s_figures_and_reasons_in_both_languages(browser, tmp_path: Path) -> None:
    path = written(tmp_path, comparison())
    with opened(browser, path) as page:
        bits = [float(text.split()[0]) for text in page.locator("td.bits span").all_inner_texts()]
        assert bits == [row.bits_per_byte for row in compared().rows]
        assert page.locator("tbody .best").count() == 1 and "stories.txt" in page.locator("main").inner_text()
        assert "it is unknown whether this text was in the training data of other" in page.locator("main").inner_text()
    with opened(browser, path, language="bn") as page:
        assert "০.২০২৩" in page.locator("td.best").inner_text()
        assert "it is not known" not in page.locator("main").inner_text()
