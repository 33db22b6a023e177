"""The Bangla text of the exercises follows the style guide, with one kind of digits per sentence."""

import re
import unicodedata
from collections.abc import Iterator

from tests.studio.test_words import BANNED

from kotha.course import data
from kotha.course.exercises.selection import QuestionChoice
from kotha.i18n.catalogue import translate
from kotha.i18n.message import Message

FORMULA = re.compile(r"[`=×/^√→[\]]|\(\d[\d,]*, |\de[-+]?\d")
NAMES = re.compile(r"\{[^}]*\}|\b[A-Za-z][\w-]*\d[\w-]*")


def texts() -> Iterator[tuple[str, Message]]:
    others = (QuestionChoice(set="assessment"), QuestionChoice(seed=11), QuestionChoice(preset="gpt2"))
    for choice in (QuestionChoice(), *others):
        for question in choice.prepare():
            messages = [question.text, *question.worked, *question.hints, *(slip.words for slip in question.slips)]
            messages += [] if question.order is None else question.order.pieces
            if question.rubric is not None:
                messages += map(data.bilingual, (*question.rubric.things, *question.rubric.misbeliefs))
            yield from ((f"{choice.sheet}, {question.id}", words) for words in messages)


TEXTS = list(dict.fromkeys((where, translate(words, "bn")) for where, words in texts()))


def is_bangla(text: str) -> bool:
    return any("\u0980" <= letter <= "\u09ff" for letter in text)


def test_the_bangla_follows_the_style_guide() -> None:
    assert len(TEXTS) > 300
    for where, bangla in TEXTS:
        if not is_bangla(bangla):  # a line of arithmetic
            continue
        assert unicodedata.is_normalized("NFC", bangla), where
        assert not [word for word in BANNED if word in bangla], f"{where}: {bangla}"
        assert "!" not in bangla and " ।" not in bangla, f"{where}: {bangla}"


def test_a_sentence_has_one_kind_of_digits() -> None:
    for where, bangla in TEXTS:
        for sentence in re.split(r"(?<=[।?\n])\s*", bangla):
            bare = NAMES.sub("", sentence)
            if re.search(r"[0-9]", bare) and is_bangla(sentence):
                assert not re.search(r"[০-৯]", bare), f"{where}: {sentence}"
                assert FORMULA.search(sentence), f"{where}: Bangla digits in prose: {sentence}"
