"""Normalization: examples of every rule, idempotence for any text, and the same result inside tokenizer.json."""

import json
import unicodedata
from collections import Counter

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.text.conftest import anything, assigned_text
from tokenizers import Regex, normalizers

from kotha.text.normalize import RULE_NAMES, RULES, Normalizer, is_plain, normalize
from kotha.text.tokenizer.pipeline import normalizer_of, rules_of

ZWNJ, ZWJ = "\u200c", "\u200d"

# Examples of each rule: (rule, input, output). Without the rule, or one of its patterns, some example fails.
BY_HAND = [
    ("nfc", "\u09dc", "\u09a1\u09bc"),  # ড় is decomposed
    ("nfc", "\u09dd", "\u09a2\u09bc"),
    ("nfc", "\u09df", "\u09af\u09bc"),
    ("nfc", "ক\u09c7\u09be", "ক\u09cb"),  # ো is composed
    ("nfc", "ক\u09c7\u09d7", "ক\u09cc"),
    ("nfc", "e\u0301", "\u00e9"),
    ("invisible", "\ufeffআমি", "আমি"),
    ("invisible", "আ\u200bমি", "আমি"),
    ("invisible", "আ\u00adমি", "আমি"),
    ("invisible", "আ\u2060মি", "আমি"),
    ("invisible", "আ\x00\x08\x0e\x1f\x7f\x80\x9fমি", "আমি"),
    ("spaces", "আমি\u00a0তুমি", "আমি তুমি"),
    ("spaces", "ক\u2009খ\u3000গ\u202fঘ\u1680ঙ\u205fচ", "ক খ গ ঘ ঙ চ"),
    ("spaces", "এক\r\nদুই\rতিন", "এক\nদুই\nতিন"),
    ("spaces", "এক\u2028দুই\u2029তিন\u0085চার\x0b\x0c", "এক\nদুই\nতিন\nচার\n\n"),
    ("ya_phala", f"র{ZWNJ}্যাব", f"র{ZWJ}্যাব"),
    ("ya_phala", f"র{ZWJ}{ZWNJ}্যাব", f"র{ZWJ}্যাব"),
    ("khanda_ta", f"উত্{ZWJ}সব", "উৎসব"),
    ("khanda_ta", f"হঠাত্{ZWJ}", "হঠাৎ"),
    ("joiners", f"আ{ZWJ}মি", "আমি"),
    ("joiners", f"আ{ZWNJ}মি", "আমি"),
    ("joiners", f"{ZWNJ}আমি", "আমি"),
    ("joiners", f"আমি {ZWJ}তুমি{ZWNJ}।{ZWNJ}", "আমি তুমি।"),
    ("joiners", f"মা{ZWNJ}র", "মার"),
    ("joiners", f"র{ZWJ}ব র{ZWNJ}ব", "রব রব"),
    ("joiners", f"উদ্{ZWNJ}{ZWNJ}যাপন", f"উদ্{ZWNJ}যাপন"),
    ("joiners", f"1{ZWNJ}-{ZWJ}[{ZWNJ}", "1-["),
    ("sign_order", "তঁার", "তাঁর"),
    ("sign_order", "হঁিট", "হিঁট"),
    ("sign_order", "পঁুথি", "পুঁথি"),
    ("sign_order", "পঁৌছা", "পৌঁছা"),
    ("repeated_signs", "ক্্ষ", "ক্ষ"),
    ("repeated_signs", "ড়়", "ড়"),
    ("repeated_signs", "চাঁঁঁদ", "চাঁদ"),
    ("a_kar", "অাম", "আম"),
    ("ba_nukta", "আমাব\u09bc", "আমার"),
]


@pytest.mark.parametrize(("rule", "text", "expected"), BY_HAND)
def test_a_rule_alone_does_what_it_says(rule, text, expected):
    assert Normalizer([rule])(text) == expected


@pytest.mark.parametrize(("rule", "text", "expected"), BY_HAND)
def test_without_the_rule_its_example_fails(rule, text, expected):
    assert Normalizer([])(text) == text
    rivals = {"ya_phala": {"joiners"}}  # otherwise, other rules would change the same text
    others = set(RULE_NAMES) - {rule} - rivals.get(rule, set())
    assert Normalizer(others)(text) != expected


def test_every_rule_has_an_example_and_help():
    assert {rule for rule, _, _ in BY_HAND} == set(RULE_NAMES)
    assert all(rule.help for rule in RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_pattern_of_a_rule_has_an_example_that_needs_it(rule):
    texts = [text for name, text, _ in BY_HAND if name == rule.name]
    if rule.name == "sign_order":  # one pattern per sign; all nine are tested together
        texts.append(" ".join(f"ক\u0981{sign}" for sign in "ািীুূেৈোৌ"))
    for pattern, _ in rule.pairs:
        assert any(regex.search(pattern, text) for text in texts), pattern


@pytest.mark.parametrize("text", ["শেষ৷ আর|", "1২3", "‘ক’ “খ”", "এক  দুই\n\n\n\tতিন", "বাংলা, English; ১২.৫%"])
def test_unaffected_text_is_unchanged(text):
    assert normalize(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"র{ZWJ}্যাব",
        f"উদ্{ZWNJ}যাপন",
        f"ক্{ZWJ}ষ",
        f"চেক্{ZWNJ} আপ",
        "👨\u200d👩\u200d👧\u200d👦",
        "🏳\ufe0f\u200d🌈",
        f"می{ZWNJ}خواهم",
        f"र्{ZWJ}य क्{ZWNJ}ष",
        f"ශ්{ZWJ}රී",
    ],
    ids=ascii,
)
def test_joiners_that_carry_meaning_survive(text):
    assert normalize(text) == unicodedata.normalize("NFC", text)
    assert text.count(ZWJ) + text.count(ZWNJ) == normalize(text).count(ZWJ) + normalize(text).count(ZWNJ)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"আমি{ZWNJ} {ZWJ}তুমি", "আমি তুমি"),
        (f"বাংলা{ZWNJ}দেশ{ZWJ}", "বাংলাদেশ"),
        (f"ASCII{ZWJ} 1{ZWNJ}2", f"ASCII{ZWJ} 12"),  # letters of other scripts keep their joiners
        (f"।{ZWNJ}“{ZWJ}", "।“"),
        (f"র\ufeff{ZWNJ}্য", f"র{ZWJ}্য"),  # a deletion makes them adjacent
        ("ত\u200b\u0981\u09be", "ত\u09be\u0981"),
        ("অ\u200d\u09be", "আ"),
        (f"ব{ZWJ}\u09bc", "র"),
        (f"ব\u09bc{ZWNJ}্যাব", f"র{ZWJ}্যাব"),  # ব় becomes র before the rules for joiners
        ("ক\u0981\u09c7\u09be", "ক\u09cb\u0981"),  # the second round composes what the first made adjacent
    ],
)
def test_stray_joiners_are_deleted_and_rules_apply_to_each_others_output(text, expected):
    assert normalize(text) == expected


@settings(max_examples=500, deadline=None)
@given(st.just(RULE_NAMES) | st.sets(st.sampled_from(RULE_NAMES)), st.text() | anything())
def test_normalizing_twice_with_any_rules_changes_nothing_more(rules, text):
    some = Normalizer(rules)
    assert some(some(text)) == some(text)


# -- the report -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "text", "expected", "counts"),
    [
        (
            RULE_NAMES,
            "\ufeffতঁার অাম\u00a0অাম প\u09dc\u09be",
            "তাঁর আম আম পড়া",
            {"invisible": 1, "sign_order": 1, "a_kar": 2, "spaces": 1, "nfc": 1},
        ),
        (["nfc"], "\u09dc \u09dc\u09dc", "ড় ড়ড়", {"nfc": 2}),  # words
        (["nfc"], "ক\u2000খ", "ক\u2002খ", {"nfc": 1}),  # no word changes, but the text does
    ],
)
def test_the_report_counts_each_change_by_its_rule(rules, text, expected, counts):
    report = Counter()
    assert Normalizer(rules)(text, report) == unicodedata.normalize("NFC", expected)
    assert report == counts


@settings(max_examples=200, deadline=None)
@given(anything())
def test_the_report_names_a_rule_if_and_only_if_text_changes(text):
    report = Counter()
    changed = Normalizer()(text, report) != text
    assert bool(report) >= changed  # one rule can undo another
    again = Counter()
    Normalizer()(normalize(text), again)
    assert not again


def test_rules_keep_their_order_whatever_order_they_are_given_in():
    assert Normalizer(reversed(RULE_NAMES)).rules == RULE_NAMES


# -- the same rules inside tokenizer.json -----------------------------------------------------------------------------


def in_file(rules):
    return normalizer_of(Normalizer(rules).rules)


@settings(max_examples=300, deadline=None)
@given(st.just(RULE_NAMES) | st.sets(st.sampled_from(RULE_NAMES)), anything())
def test_the_file_normalizes_like_our_code_with_any_rules(rules, text):
    assert in_file(rules).normalize_str(text) == Normalizer(rules)(text)


@pytest.mark.parametrize(("rule", "text", "expected"), BY_HAND)
def test_the_file_runs_each_rule(rule, text, expected):
    assert in_file([rule]).normalize_str(text) == expected


def state_of(normalizer):
    return json.loads(normalizer.__getstate__())


@pytest.mark.parametrize("rule", RULE_NAMES)
def test_each_rule_is_recognised_in_the_file(rule):
    assert rules_of(state_of(in_file([rule]))) == (rule,)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.sampled_from(RULE_NAMES)))
def test_any_rules_are_recognised_in_the_file(rules):
    assert rules_of(state_of(in_file(rules))) == Normalizer(rules).rules


def test_a_foreign_normalizer_is_not_recognised_as_ours():
    assert rules_of(None) == ()
    assert rules_of(state_of(normalizers.NFC())) is None
    assert rules_of(state_of(normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()]))) is None
    assert rules_of(state_of(normalizers.Replace(Regex("ক"), "খ"))) is None
    ours = state_of(in_file(RULE_NAMES))
    ours["normalizers"][5]["content"] = "?"
    assert rules_of(ours) is None


PLAIN_FRAGMENTS = [*"কবঅএরতযড", *"ািীুেৈোৌৗৃ", *"়্ঁংঃৎ", *"।“”‘–… \nab(", "ড়", "য\u09bc", "র\u200d্য", "\u00a0", "\u09dc"]


@settings(max_examples=2000)
@given(st.lists(st.sampled_from(PLAIN_FRAGMENTS), max_size=12).map("".join) | assigned_text())
def test_the_quick_check_never_misses_a_change(text: str) -> None:
    slow = normalizer_of(RULE_NAMES).normalize_str(text)
    assert not is_plain(text) or slow == text
    assert normalize(text) == slow
