"""The forms of nouns and numbers, compared with a handwritten table."""

import pytest

from kotha.text.stories.grammar import counted, digits, inflect, number

# word: genitive, locative
CASES = """
আম আমের আমে | গ্রাম গ্রামের গ্রামে | রহিম রহিমের রহিমে | নৌকা নৌকার নৌকায় | ঢাকা ঢাকার ঢাকায় | পদ্মা পদ্মার পদ্মায়
নদী নদীর নদীতে | বাড়ি বাড়ির বাড়িতে | জেলে জেলের জেলেতে | আলো আলোর আলোতে | মধু মধুর মধুতে | বালু বালুর বালুতে
মা মায়ের মায়ে | চা চায়ের চায়ে | পা পায়ের পায়ে | ঘি ঘিয়ের ঘিয়ে | গাঁ গাঁয়ের গাঁয়ে
বই বইয়ের বইয়ে | ভাই ভাইয়ের ভাইয়ে | লাউ লাউয়ের লাউয়ে | দই দইয়ের দইয়ে | নিমাই নিমাইয়ের নিমাইয়ে | চড়ুই চড়ুইয়ের চড়ুইয়ে
ঠাকুরগাঁও ঠাকুরগাঁওয়ের ঠাকুরগাঁওয়ে | নওগাঁ নওগাঁর নওগাঁয় | শরৎ শরতের শরতে | অভিজিৎ অভিজিতের অভিজিতে | রং রঙের রঙে
সময় সময়ের সময়ে | রায় রায়ের রায়ে | আষাঢ় আষাঢ়ের আষাঢ়ে | চন্দ্র চন্দ্রের চন্দ্রে | চৈত্র চৈত্রের চৈত্রে | দাদা দাদার দাদায়
ঘড়ি ঘড়ির ঘড়িতে | দিঘি দিঘির দিঘিতে | মেলা মেলার মেলায় | কুয়া কুয়ার কুয়ায় | হাট হাটের হাটে | ছেলে ছেলের ছেলেতে
"""
PLURALS = """
জেলে জেলেরা | চাষি চাষিরা | কৃষক কৃষকেরা | ছাত্র ছাত্ররা | কুমার কুমারেরা | তাঁতি তাঁতিরা | মা মায়েরা | বউ বউয়েরা | মাঝি মাঝিরা | মানুষ মানুষেরা
"""


def rows(table: str) -> list[list[str]]:
    return [row.split() for line in table.strip().splitlines() for row in line.split("|")]


@pytest.mark.parametrize(("word", "genitive", "locative"), rows(CASES))
def test_case_by_the_last_sound(word: str, genitive: str, locative: str) -> None:
    assert (inflect(word, "র"), inflect(word, "এ")) == (genitive, locative)


@pytest.mark.parametrize(("word", "plural"), rows(PLURALS))
def test_plural_of_people(word: str, plural: str) -> None:
    assert inflect(word, "রা") == plural


def test_the_last_word_of_a_phrase_is_inflected() -> None:
    assert inflect("রহিমা খালা", "র") == "রহিমা খালার"
    assert inflect("ছোট ভাই", "র") == "ছোট ভাইয়ের"
    assert inflect("বাঁশ-কারিগর", "রা") == "বাঁশ-কারিগরেরা"
    assert (inflect("মা", "কে"), inflect("চাষি", "দের")) == ("মাকে", "চাষিদের")


COUNTED = "1 টি একটি | 2 টি দুটি | 2 টা দুটা | 2 জন দুজন | 3 খানা তিনখানা | 4 জন চারজন | 6 বার ছয়বার | 19 টি উনিশটি"
NUMBERS = """
0 শূন্য | 11 এগারো | 29 ঊনত্রিশ | 35 পঁয়ত্রিশ | 44 চুয়াল্লিশ | 53 তিপ্পান্ন
69 ঊনসত্তর | 78 আটাত্তর | 89 ঊননব্বই | 99 নিরানব্বই | 100 একশো | 101 ১০১
"""


@pytest.mark.parametrize(("value", "classifier", "expected"), [*rows(COUNTED), ("150", "জন", "১৫০ জন")])
def test_number_with_its_classifier(value: str, classifier: str, expected: str) -> None:
    assert counted(int(value), classifier) == expected


@pytest.mark.parametrize(("value", "expected"), rows(NUMBERS))
def test_number_in_words(value: str, expected: str) -> None:
    assert number(int(value)) == expected


def test_every_number_up_to_a_hundred_has_its_own_word() -> None:
    assert len({number(n) for n in range(101)}) == 101


def test_digits_are_grouped_by_thousand_and_lakh() -> None:
    assert [digits(n) for n in (7, 764, 7641, 45000, 450000)] == ["৭", "৭৬৪", "৭,৬৪১", "৪৫,০০০", "৪,৫০,০০০"]
