"""The list of common Bangla aksharas: each entry is one akshara, normalized, and the most common come first."""

from collections import Counter
from itertools import islice

from kotha.text.akshara import is_whole, units
from kotha.text.normalize import Normalizer
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.letters import common_letters


def test_each_is_one_normalized_letter_without_repeats():
    letters, normalize = common_letters(), Normalizer()
    assert len(set(letters)) == len(letters)
    assert [letter for letter in letters if units(letter) != [letter] or not is_whole(letter)] == []
    assert [letter for letter in letters if normalize(letter) != letter] == []


def test_letters_of_common_words_are_included_most_common_first():
    letters = common_letters()
    words = "বৃদ্ধি ব্যাংক পৌঁছে লক্ষ্মী ঔষধ ঐক্য হ্যাঁ তীক্ষ্ণ কর্তৃপক্ষ র\u200d্যাব দৈনিক অ্যাপ ঊর্ধ্ব"
    assert [letter for word in words.split() for letter in units(word) if letter not in letters] == []
    assert letters.index("রা") < letters.index("দ্ধি") < letters.index("শৃ") < letters.index("ক্ষ্ণ")


def test_a_few_hundred_cover_nearly_all_of_an_independent_text():
    counts = Counter(
        unit for document in islice(stories(5), 40) for unit in units(document.text) if "\u0980" < unit[0] < "\u0a00"
    )
    covered = {number: sum(counts[letter] for letter in common_letters()[:number]) for number in (150, 600, 1500)}
    assert covered[150] > 0.8 * counts.total()
    assert covered[600] > 0.96 * counts.total()
    assert covered[1500] > 0.995 * counts.total()
