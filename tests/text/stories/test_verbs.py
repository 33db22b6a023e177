"""The forms of verbs, against a table written by hand."""

import pytest

from kotha.text.stories.grammar import FORMS, PERSONS, TENSES, conjugate, nonfinite

# verb, tense: আমি, তুই, তুমি, সে, তিনি
FINITE = """
করা present: করি করিস করো করে করেন
করা past: করলাম করলি করলে করল করলেন
করা perfect: করেছি করেছিস করেছ করেছে করেছেন
করা pluperfect: করেছিলাম করেছিলি করেছিলে করেছিল করেছিলেন
করা continuous: করছি করছিস করছ করছে করছেন
করা was: করছিলাম করছিলি করছিলে করছিল করছিলেন
করা habit: করতাম করতিস করতে করত করতেন
করা future: করব করবি করবে করবে করবেন
রাখা present: রাখি রাখিস রাখো রাখে রাখেন
রাখা perfect: রেখেছি রেখেছিস রেখেছ রেখেছে রেখেছেন
আনা past: আনলাম আনলি আনলে আনল আনলেন
আনা perfect: এনেছি এনেছিস এনেছ এনেছে এনেছেন
লেখা present: লিখি লিখিস লেখো লেখে লেখেন
লেখা past: লিখলাম লিখলি লিখলে লিখল লিখলেন
শেখা habit: শিখতাম শিখতিস শিখতে শিখত শিখতেন
শেখা future: শিখব শিখবি শিখবে শিখবে শিখবেন
দেখা present: দেখি দেখিস দেখো দেখে দেখেন
দেখা past: দেখলাম দেখলি দেখলে দেখল দেখলেন
শোনা present: শুনি শুনিস শোনো শোনে শোনেন
শোনা perfect: শুনেছি শুনেছিস শুনেছ শুনেছে শুনেছেন
ওঠা present: উঠি উঠিস ওঠো ওঠে ওঠেন
ওঠা past: উঠলাম উঠলি উঠলে উঠল উঠলেন
খাওয়া present: খাই খাস খাও খায় খান
খাওয়া past: খেলাম খেলি খেলে খেল খেলেন
খাওয়া perfect: খেয়েছি খেয়েছিস খেয়েছ খেয়েছে খেয়েছেন
খাওয়া was: খাচ্ছিলাম খাচ্ছিলি খাচ্ছিলে খাচ্ছিল খাচ্ছিলেন
চাওয়া present: চাই চাস চাও চায় চান
চাওয়া past: চাইলাম চাইলি চাইলে চাইল চাইলেন
গাওয়া perfect: গেয়েছি গেয়েছিস গেয়েছ গেয়েছে গেয়েছেন
যাওয়া past: গেলাম গেলি গেলে গেল গেলেন
যাওয়া habit: যেতাম যেতিস যেতে যেত যেতেন
যাওয়া perfect: গেছি গেছিস গেছ গেছে গেছেন
যাওয়া pluperfect: গিয়েছিলাম গিয়েছিলি গিয়েছিলে গিয়েছিল গিয়েছিলেন
দেওয়া present: দিই দিস দাও দেয় দেন
দেওয়া past: দিলাম দিলি দিলে দিল দিলেন
দেওয়া future: দেব দিবি দেবে দেবে দেবেন
নেওয়া continuous: নিচ্ছি নিচ্ছিস নিচ্ছ নিচ্ছে নিচ্ছেন
হওয়া present: হই হোস হও হয় হন
হওয়া past: হলাম হলি হলে হলো হলেন
আসা past: এলাম এলি এলে এল এলেন
আসা perfect: এসেছি এসেছিস এসেছ এসেছে এসেছেন
দাঁড়ানো present: দাঁড়াই দাঁড়াস দাঁড়াও দাঁড়ায় দাঁড়ান
দাঁড়ানো past: দাঁড়ালাম দাঁড়ালি দাঁড়ালে দাঁড়াল দাঁড়ালেন
দাঁড়ানো perfect: দাঁড়িয়েছি দাঁড়িয়েছিস দাঁড়িয়েছ দাঁড়িয়েছে দাঁড়িয়েছেন
শেখানো perfect: শিখিয়েছি শিখিয়েছিস শিখিয়েছ শিখিয়েছে শিখিয়েছেন
খাওয়ানো past: খাওয়ালাম খাওয়ালি খাওয়ালে খাওয়াল খাওয়ালেন
পৌঁছানো perfect: পৌঁছেছি পৌঁছেছিস পৌঁছেছ পৌঁছেছে পৌঁছেছেন
"""
# verb: তুই, তুমি, তিনি now; তুই, তুমি, তিনি later
COMMANDS = """
করা: কর করো করুন করিস কোরো করবেন
বলা: বল বলো বলুন বলিস বোলো বলবেন
লেখা: লেখ লেখো লিখুন লিখিস লিখো লিখবেন
রাখা: রাখ রাখো রাখুন রাখিস রেখো রাখবেন
ওঠা: ওঠ ওঠো উঠুন উঠিস উঠো উঠবেন
খাওয়া: খা খাও খান খাস খেয়ো খাবেন
যাওয়া: যা যাও যান যাস যেয়ো যাবেন
দেওয়া: দে দাও দিন দিস দিয়ো দেবেন
আসা: আয় এসো আসুন আসিস এসো আসবেন
দাঁড়ানো: দাঁড়া দাঁড়াও দাঁড়ান দাঁড়াস দাঁড়িয়ো দাঁড়াবেন
"""
# verb: having done, to do, if done, the doing of
NONFINITE = """
করা: করে করতে করলে করার
শেখা: শিখে শিখতে শিখলে শেখার
শোনা: শুনে শুনতে শুনলে শোনার
রাঁধা: রেঁধে রাঁধতে রাঁধলে রাঁধার
আঁকা: এঁকে আঁকতে আঁকলে আঁকার
বোনা: বুনে বুনতে বুনলে বোনার
ফেলা: ফেলে ফেলতে ফেললে ফেলার
খাওয়া: খেয়ে খেতে খেলে খাওয়ার
গাওয়া: গেয়ে গাইতে গাইলে গাওয়ার
যাওয়া: গিয়ে যেতে গেলে যাওয়ার
আসা: এসে আসতে এলে আসার
হওয়া: হয়ে হতে হলে হওয়ার
বানানো: বানিয়ে বানাতে বানালে বানানোর
ঘোরানো: ঘুরিয়ে ঘোরাতে ঘোরালে ঘোরানোর
দেখানো: দেখিয়ে দেখাতে দেখালে দেখানোর
এগোনো: এগিয়ে এগোতে এগোলে এগোনোর
ধোয়া: ধুয়ে ধুতে ধুলে ধোয়ার
"""


def rows(table: str) -> list[tuple[str, list[str]]]:
    return [(head.strip(), forms.split()) for head, forms in (line.split(":") for line in table.strip().splitlines())]


@pytest.mark.parametrize(("name", "expected"), rows(FINITE))
def test_person_rank_and_tense(name: str, expected: list[str]) -> None:
    verb, tense = name.split()
    assert [conjugate(verb, tense, person) for person in PERSONS] == expected


@pytest.mark.parametrize(("verb", "expected"), rows(COMMANDS))
def test_commands(verb: str, expected: list[str]) -> None:
    ranks = ("তুই", "তুমি", "আপনি")
    assert [conjugate(verb, tense, rank) for tense in ("order", "request") for rank in ranks] == expected


@pytest.mark.parametrize(("verb", "expected"), rows(NONFINITE))
def test_forms_without_person(verb: str, expected: list[str]) -> None:
    assert [nonfinite(verb, form) for form in ("joined", "to", "if", "of")] == expected


def test_the_tables_hold_enough_forms() -> None:
    assert sum(len(forms) for table in (FINITE, COMMANDS, NONFINITE) for _, forms in rows(table)) >= 150


def test_of_a_phrase_the_last_word_is_the_verb() -> None:
    assert conjugate("জামা সেলাই করা", "was", "তিনি") == "জামা সেলাই করছিলেন"
    assert nonfinite("জাল ফেলা", "joined") == "জাল ফেলে"


@pytest.mark.parametrize("tense", sorted(TENSES))
def test_ranks_are_always_told_apart(tense: str) -> None:
    for verb in ("করা", "লেখা", "খাওয়া", "যাওয়া", "দেওয়া", "আসা", "হওয়া", "দাঁড়ানো"):
        assert conjugate(verb, tense, "সে" if tense != "request" else "তুমি") != conjugate(verb, tense, "তিনি")
    assert FORMS.isdisjoint(TENSES)
