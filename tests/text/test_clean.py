"""Exact and near duplicates, leaks between splits, languages."""

import itertools
import os
import pickle
import random
import re
import subprocess
import sys

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import SHARED_DATA
from tests.text.conftest import SENTENCES

from kotha.errors import ConfigError, KothaError
from kotha.text.clean.duplicates import ExactDuplicates, Signer, mark_duplicates
from kotha.text.clean.language import count_scripts, is_language, language_of
from kotha.text.clean.leakage import LeakIndex
from kotha.text.clean.shingles import shingle_hashes
from kotha.text.corpus.documents import read_documents
from kotha.text.parallel.local import LocalPool

WORD = regex.compile(r"[\p{L}\p{M}\p{N}\u200c\u200d]+")

needs_shared = pytest.mark.skipif(not SHARED_DATA.exists(), reason="the shared development data is not on this machine")
TEXTS = st.lists(st.text(st.sampled_from("কাঁখ্ষ র\u200dAbé1-।\n🙂𝒳"), max_size=40), max_size=6)


def story(seed: int, words: int = 200) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices("কখগঘচছজঝটঠািুে", k=5)) for _ in range(words)]


def slow_shingles(text: str, words: int = 5) -> set[tuple[str, ...]]:
    """Shingles computed by their definition, without optimization."""
    found = [word.lower() for word in WORD.findall(text)]
    if len(found) < words:
        return {tuple(found)} if found else set()
    return {tuple(found[i : i + words]) for i in range(len(found) - words + 1)}


# Shingles


def test_bangla_words_are_not_cut_at_vowel_signs_or_joiners():
    flat, _ = shingle_hashes(["র‍্যাবের কর্মকর্তা, ক্ষমা — ২০২৪! আজ কাল"])
    assert len(flat) == 2, "six words are two shingles of five"


@given(TEXTS)
@settings(max_examples=200, deadline=None)
def test_words_and_shingles_agree_with_the_slow_definition(texts):
    flat, offsets = shingle_hashes(texts)
    sets = [set(flat[a:b].tolist()) for a, b in itertools.pairwise(offsets)]
    slow = [slow_shingles(text) for text in texts]
    assert [len(s) for s in sets] == [len(s) for s in slow]
    for fast_a, slow_a in zip(sets, slow, strict=True):
        for fast_b, slow_b in zip(sets, slow, strict=True):
            assert len(fast_a & fast_b) == len(slow_a & slow_b)


def test_shingles_know_the_order_of_words_and_letters_but_not_case_or_punctuation():
    def of(text: str) -> list[int]:
        return shingle_hashes([text])[0].tolist()

    assert of("এক দুই তিন") == of("«এক», দুই… তিন।")
    assert of("Dhaka CITY") == of("dhaka city")
    assert len({*of("এক দুই"), *of("দুই এক"), *of("একদুই"), *of("এক"), *of("কএ দুই")}) == 5


def test_shingles_are_the_same_in_another_process():
    code = "from kotha.text.clean.shingles import shingle_hashes; print(shingle_hashes(['আমি ভাত খাই'])[0].tolist())"
    environment = {**os.environ, "PYTHONHASHSEED": "77"}
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert printed.stdout.strip() == str(shingle_hashes(["আমি ভাত খাই"])[0].tolist())


def test_a_hundred_thousand_words_have_a_hundred_thousand_numbers():
    rng = random.Random(0)
    words = sorted({"".join(rng.choices("abcdeকখগিু", k=7)) for _ in range(120_000)})
    assert len(words) > 100_000
    assert len(np.unique(shingle_hashes(words)[0])) == len(words)


# Exact copies


def test_exact_copies_ignore_white_space_only():
    seen = ExactDuplicates()
    assert [seen.is_new(t) for t in ("ক খ", " ক\n\tখ", "ক খ।", "", " ")] == [True, False, True, True, False]
    assert seen._count == 3


def test_exact_copies_among_many_within_the_documented_memory():
    seen = ExactDuplicates()
    assert all(seen.is_new(str(i)) for i in range(20_000))
    assert not any(seen.is_new(str(i)) for i in range(20_000))
    assert 12 <= seen._slots.itemsize * len(seen._slots) / 20_000 <= 24
    assert pickle.loads(pickle.dumps(seen)).is_new("7") is False


# Near copies


def texts_of(seed: int) -> list[str]:
    """Texts, half of which are earlier texts with a few words changed; some have no words, and some are equal."""
    chooser = random.Random(seed)
    words = " ".join(SENTENCES).split()
    texts: list[str] = []
    for _ in range(400):
        if texts and chooser.random() < 0.5:
            copy = chooser.choice(texts).split()
            for _ in range(chooser.randrange(6)):
                copy[chooser.randrange(len(copy))] = chooser.choice(words)
            texts.append(" ".join(copy))
        else:
            texts.append(" ".join(chooser.choices([*words, "…"], k=chooser.choice([1, 3, 30, 60]))))
    return texts


def stay(signatures, threshold=0.7):
    """The texts to keep, by definition: no earlier kept text shares a band with them and is similar enough."""
    kept, flags = [], []
    for signature in map(np.array, signatures):
        bands = [(signature == other).reshape(32, 4) for other in kept]
        flags.append(not any(same.all(axis=1).any() and same.mean() >= threshold for same in bands))
        if flags[-1]:
            kept.append(signature)
    return flags


def test_near_duplicates_agree_with_the_definition_for_any_batches(monkeypatch):
    monkeypatch.setattr("kotha.text.clean.leakage._BATCH_CHARACTERS", 3000)
    texts = texts_of(1)
    exact = ExactDuplicates()
    new = [text for text in texts if exact.is_new(text)]
    signatures = Signer()(new)
    answers = iter(stay([signature.digest() for signature in signatures if signature]))
    expected = [text for text, signature in zip(new, signatures, strict=True) if not signature or next(answers)]
    found = list(mark_duplicates(texts, "near", LocalPool(1)))
    assert [text for text, _ in found] == texts
    assert [text for text, is_new in found if is_new] == expected
    assert 100 < len(expected) < len(new) < 400, "copies were to be found, and not everywhere"


def test_one_changed_word_is_a_near_duplicate_and_half_the_text_is_not():
    words = " ".join(SENTENCES).split()[:200]
    changed = [*words[:100], "অন্য", *words[101:]]  # 5 of 196 shingles change on each side: J = 191 / 201
    half = [*words[:100], *reversed(words[100:])]
    texts = [" ".join(each) for each in (words, changed, half, ["…"], ["!"], words[:2])]
    found = mark_duplicates(texts, "near", LocalPool(1))
    assert [is_new for _, is_new in found] == [True, False, True, True, True, True]


# Leaks


@pytest.mark.parametrize("threshold", [0.0, -1.0, 1.5, float("nan")])
def test_invalid_thresholds_are_rejected(threshold):
    with pytest.raises(ConfigError, match=re.escape(f"threshold={threshold} must be above 0 and at most 1")):
        LeakIndex([], threshold)


def test_a_quoted_document_is_a_leak_however_long_the_text_around_it():
    held_out = [" ".join(story(seed, 60)) for seed in range(10)]
    leaks = LeakIndex(held_out)
    around = " ".join(story(99, 5000))
    assert leaks.leaked([f"{around} {held_out[4]} {around}", around]) == [True, False]


def test_containment_by_hand():
    """Ten words have six shingles; a text with the first eight words has four of them."""
    words = story(3, 10)
    text = " ".join(words[:8])
    assert [LeakIndex([" ".join(words)], share).leaked([text]) for share in (4 / 6, 0.7)] == [[True], [False]]


def test_repeats_count_once():
    words = story(3, 5)
    leaks = LeakIndex([" ".join(words) + " " + " ".join(story(4, 20))], 0.3)
    assert leaks.leaked([" ".join(words * 40)]) == [False]


@given(TEXTS, TEXTS, st.sampled_from([0.3, 0.7, 1.0]), st.sampled_from([1, 2, 5]))
@settings(max_examples=200, deadline=None)
def test_leaks_agree_with_the_slow_definition(held_out, asked, threshold, words):
    slow = [slow_shingles(text, words) for text in held_out]
    found = LeakIndex(held_out, threshold, words=words).leaked(asked)
    shares = [[len(own & slow_shingles(text, words)) / len(own) for own in slow if own] for text in asked]
    assert found == [max(each, default=0.0) >= threshold for each in shares]


def test_what_slips_through_the_sieve_is_no_leak():
    words = list(dict.fromkeys(story(6, 20_000)))
    held_out, strangers = words[:200], words[200:]
    leaks = LeakIndex(held_out)
    assert leaks._sieve[shingle_hashes(strangers)[0] >> leaks._shift].any()
    assert not any(leaks.leaked(strangers))


def test_one_at_a_time_many_at_once_and_after_pickling_are_the_same():
    held_out = [" ".join(story(seed, 40)) for seed in range(20)]
    leaks = LeakIndex(held_out, 0.5)
    texts = [" ".join(story(seed % 40, 40)[: 10 + seed % 31]) for seed in range(2000)]
    found = leaks.leaked(texts)
    again = pickle.loads(pickle.dumps(leaks)).leaked(texts)
    assert found == [leaks.leaked([text])[0] for text in texts] == again
    assert 100 < sum(found) < 1000


def test_no_held_out_documents_and_no_texts():
    assert LeakIndex([]).leaked(["কিছু কথা এখানে আছে বটে"]) == [False]
    assert LeakIndex(["", "…"]).leaked(["", "ক"]) == [False, False]
    assert LeakIndex(["ক"]).leaked([]) == []


# Languages


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("বাংলাদেশের রাজধানী ঢাকা", "bn"),
        ("অসমৰ ৰাজধানী দিছপুৰ আৰু ইয়াৰ মুখ্য চহৰ গুৱাহাটী", "as"),
        ("আসামের ভাষায় র লেখা হয় ৰ, " + "এ কথা সবাই জানেন এবং মানেন " * 10, "bn"),
        ("ঢাকা শহরের খবর: BBC News", "bn"),
        ("The capital of Bangladesh is Dhaka (ঢাকা), the largest city of the country, on the river Buriganga", "en"),
        ("बांग्लादेश की राजधानी ढाका है और यह एक बड़ा शहर है", "hi"),
        ("১২৩ — 456 !", "und"),
        ("", "und"),
    ],
)
def test_languages(text, language):
    assert language_of(text) == language
    assert is_language(text) == (language == "bn")


def test_bengali_letters_that_are_neither_bangla_nor_assamese():
    assert language_of("নুঙাইরবা ৱারী ৱাহৈ র") == "und"


def test_scripts_count_letters_and_signs():
    assert count_scripts("কি? Ab ১2 ж\u0301 𐐀") == {"Bengali": 2, "Latin": 2, "Cyrillic": 1, "Other": 2}


@pytest.mark.parametrize(
    ("module", "call", "words"),
    [
        ("rensa", Signer, "near-duplicate detection needs rensa; install it with: "),
        (
            "py3langid",
            lambda: language_of("abc"),
            "the language check needs py3langid; install it with: ",
        ),
    ],
)
def test_a_missing_library_names_the_extra(monkeypatch, module, call, words):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(KothaError, match=re.escape(words)):
        call()
    assert is_language("কথা")


def test_nothing_heavy_is_imported_before_it_is_needed():
    heavy = {"pyarrow", "rensa", "py3langid", "huggingface_hub"}
    code = f"import sys, kotha.text.clean, kotha.text.corpus; print({heavy!r} & sys.modules.keys())"
    printed = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "set()"


# Real text


@needs_shared
def test_the_shared_news_split_is_clean_and_a_planted_leak_is_found():
    news = [d.text for d in read_documents([SHARED_DATA / "news/validation.jsonl.zst"])]
    train = [d.text for d in read_documents([SHARED_DATA / "news/train.jsonl.zst"])][:1500]
    leaks = LeakIndex(news)
    assert not any(leaks.leaked(train))
    assert leaks.leaked([train[0] + "\n" + news[200] + "\n" + train[1]]) == [True]
    assert all(map(is_language, news))
