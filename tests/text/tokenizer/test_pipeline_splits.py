"""Splits: by hand, nothing lost, and `regex` and Oniguruma read the patterns alike."""

import json

import pytest
import regex
from hypothesis import given, settings
from tests.text.conftest import anything

from kotha.errors import TokenizerError
from kotha.text.tokenizer.pipeline import GPT2, QWEN35, SPLITS, WORDS, split_name_of, splitter_of
from kotha.text.tokenizer.trainers import train


def chunks(split, text):
    return regex.findall(split, text)


@pytest.mark.parametrize(
    ("split", "text", "expected"),
    [
        (WORDS, "আমি ভাত খাই।", ["আমি", " ভাত", " খাই", "।"]),
        (WORDS, "র\u200d্যাব উদ্\u200cযাপন", ["র\u200d্যাব", " উদ্\u200cযাপন"]),
        (WORDS, "১৯৭১ সাল, 1971", ["১৯৭১", " সাল", ",", " 1971"]),
        (WORDS, "এক  দুই\n\nতিন ", ["এক", " ", " দুই", "\n", "\nতিন", " "]),
        (WORDS, "ক্ষ?! 👩\u200d🚀", ["ক্ষ", "?!", " 👩\u200d🚀"]),
        (QWEN35, "আমি ভাত খাই।", ["আমি", " ভাত", " খাই", "।"]),
        (QWEN35, "র\u200d্যাব", ["র", "\u200d্যাব"]),
        (QWEN35, "সাল 1971", ["সাল", " ", "1", "9", "7", "1"]),
        (QWEN35, "I'll", ["I", "'ll"]),
        (GPT2, "আমি", ["আম", "ি"]),
        (GPT2, " খাই ১২", [" খ", "া", "ই", " ১২"]),
    ],
)
def test_chunks_by_hand(split, text, expected):
    assert chunks(split, text) == expected


@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
@settings(max_examples=200, deadline=None)
@given(text=anything())
def test_nothing_is_lost_and_both_engines_agree(split, text):
    found = chunks(split, text)
    assert "".join(found) == text
    assert [chunk for chunk, _ in splitter_of(split).pre_tokenize_str(text)] == found


@pytest.mark.parametrize("byte_level", [False, True])
@pytest.mark.parametrize("name", SPLITS)
def test_a_split_is_recognised_in_the_file(name, byte_level):
    step = splitter_of(SPLITS[name], byte_level)
    assert split_name_of(json.loads(step.__getstate__())) == name


def test_foreign_pre_tokenizers_are_not_taken_for_ours():
    assert split_name_of(None) is None
    assert split_name_of({"type": "Metaspace", "replacement": "\u2581"}) is None


def test_an_unknown_split_is_answered_with_the_nearest():
    with pytest.raises(TokenizerError, match="split='word' is not a choice; did you mean 'words'"):
        train(["কথা"], "bpe", split="word")
