"""The built-in corpus: deterministic, endless, varied and clean."""

import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.stories.conftest import PLOTS

from kotha.errors import UsageError
from kotha.text.stories import plot
from kotha.text.stories.corpus import KINDS, Story, floor_bits_per_byte, stories, story

SENTENCE_END = re.compile(r"[।?!\n]")


def fingerprint(document: Story) -> str:
    return hashlib.sha256(document.text.encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def documents() -> list[Story]:
    return [story(1, index) for index in range(10_000)]


def test_random_access_equals_iteration() -> None:
    assert list(itertools.islice(stories(seed=5, start=40), 20)) == [story(5, index) for index in range(40, 60)]
    assert story(5, 1_000_000_000_000) == story(5, 1_000_000_000_000)
    assert story(5, 0) != story(6, 0)


@given(st.integers(), st.integers())
def test_any_two_integers_name_a_document(seed: int, index: int) -> None:
    document = story(seed, index)
    assert document == story(seed, index)
    assert document.kind in KINDS
    assert document.log_probability < 0


def test_documents_do_not_depend_on_the_hash_seed() -> None:
    code = "from kotha.text.stories.corpus import story; print([hash_of(story(2, i)) for i in range(20)])"
    code = code.replace("hash_of", "(lambda d: __import__('hashlib').sha256(d.text.encode()).hexdigest()[:16])")
    expected = str([fingerprint(story(2, index)) for index in range(20)])
    for seed in ("1", "2"):
        result = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout.strip() == expected


def test_import_is_light() -> None:
    code = """
import sys
before = set(sys.modules)
import kotha.text.stories
foreign = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names) - {"kotha"}
print(sorted(foreign), "kotha.text.stories.lexicon" in sys.modules)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[] False"


def test_text_is_normalized_and_tidy(documents: list[Story]) -> None:
    untidy = re.compile(r"  | [।,?!]|[।,?!]{2}|[{}<>\[\]|$_]|[A-Za-z0-9]|[^।?!,]”|“[^”]*“|”[^“]*”|^\s|\s$|\n\n")
    for document in documents:
        assert unicodedata.normalize("NFC", document.text) == document.text
        found = untidy.search(document.text)
        assert not found, f"{found} in:\n{document.text}"
        assert document.text.endswith(("।", "!", "?", "”"))


def test_documents_are_neither_short_nor_long(documents: list[Story]) -> None:
    lengths = sorted(len(document.text.split()) for document in documents)
    assert lengths[0] >= 50
    assert lengths[-1] <= 350
    assert lengths[len(lengths) // 20] < 90
    assert lengths[-len(lengths) // 20] > 220


def test_words_and_sentences_vary(documents: list[Story]) -> None:
    words = {word.strip("।,?!:“”‘’") for document in documents for word in document.text.split()}
    assert len(words) >= 5_000
    sentences = [s.strip(" “”") for document in documents for s in SENTENCE_END.split(document.text)]
    long = [sentence for sentence in sentences if len(sentence.split()) >= 8]
    assert len(long) > 50_000
    assert len(set(long)) / len(long) >= 0.95
    assert len({document.text for document in documents}) == len(documents)


def test_every_plot_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    compile_plot = plot.compile_plot

    def record(chosen: plot.Plot) -> object:
        counts[chosen.name] += 1
        return compile_plot(chosen)

    monkeypatch.setattr(plot, "compile_plot", record)
    for index in range(2_000):
        story(3, index)
    assert set(counts) == {one.name for plots in PLOTS.values() for one in plots}
    assert min(counts.values()) >= 10


def test_kinds_have_the_stated_proportions(documents: list[Story]) -> None:
    counts = Counter(document.kind for document in documents)
    for kind, share in KINDS.items():
        assert counts[kind] / len(documents) == pytest.approx(share, abs=0.03)


def test_kinds_can_be_chosen() -> None:
    news = list(itertools.islice(stories(seed=4, kinds=["news"]), 30))
    assert {document.kind for document in news} == {"news"}
    plots = math.log(len(PLOTS["news"]))
    assert all(document.log_probability < -plots for document in news)


@pytest.mark.parametrize("kinds", [[], ["news", "news"]])
def test_kinds_must_be_named_once(kinds: list[str]) -> None:
    with pytest.raises(UsageError, match="must name at least one kind"):
        story(0, 0, kinds)


def test_unknown_kind_is_explained() -> None:
    with pytest.raises(UsageError, match="kinds='storey' is not a valid choice; did you mean 'story'"):
        story(0, 0, ["storey"])


def test_floor_is_the_information_per_byte(documents: list[Story]) -> None:
    bits = sum(-document.log_probability for document in documents) / math.log(2)
    size = sum(len(document.text.encode()) for document in documents)
    assert floor_bits_per_byte(documents) == pytest.approx(bits / size)
    assert 0.03 < floor_bits_per_byte(documents) < 0.35
    with pytest.raises(UsageError, match="at least one document"):
        floor_bits_per_byte([])
