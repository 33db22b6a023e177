"""Word folding, and passages that together contain the complete text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kotha.errors import UsageError
from kotha.retrieval.documents import IndexOptions
from kotha.retrieval.passages import cut, sentences
from kotha.retrieval.stemming import fold


def forms(text: str) -> list[str]:
    return [word.form for word in fold(text)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("\u09df", "\u09af\u09bc"),  # য় in one code point, and with a nukta
        ("র‍্যাব", "র‌্যাব"),  # ZWJ, and ZWNJ typed instead
        ("তঁার", "তাঁর"),
        ("১৯৭১", "1971"),
        ("Dhaka", "DHAKA"),
        ("বাং\u200cলা", "বাংলা"),
    ],
)
def test_equal_words_in_other_encodings_match(one: str, other: str) -> None:
    assert fold(one) == fold(other)


@pytest.mark.parametrize(("one", "other"), [("কৃষি", "কষ"), ("কাল", "কল"), ("বড়", "বড"), ("চাঁদ", "চাদ")])
def test_vowel_signs_distinguish_words(one: str, other: str) -> None:
    assert not {word.stem for word in fold(one)} & {word.stem for word in fold(other)}


def test_endings_are_removed_except_from_short_words() -> None:
    assert {word.stem for word in fold("নদীর নদীতে নদীকে নদীগুলোর নদী")} == {"নদী"}
    assert [word.stem for word in fold("মার তার কে")] == ["মার", "তার", "কে"]


@given(st.text(), st.integers(40, 200))
def test_passages_contain_every_word_and_keep_the_limit(text: str, letters: int) -> None:
    passages = cut(text, letters)
    assert "".join("".join(passages).split()) == "".join(text.split())
    assert all(0 < len(passage) <= letters for passage in passages)


def test_sentences_end_at_a_danda_and_not_within_a_number() -> None:
    assert sentences("দাম ৩.৫ টাকা।তারপর? “যাও!” শেষ") == ["দাম ৩.৫ টাকা।", "তারপর?", "“যাও!”", "শেষ"]


def test_a_passage_size_below_the_minimum_is_rejected() -> None:
    with pytest.raises(
        UsageError, match=r"passage_length=5 is too short; use at least 40 characters \(600 is typical\)"
    ):
        IndexOptions(passage_length=5)
