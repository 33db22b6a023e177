"""Splits: checked by hand, lossless, equal in `regex` and Oniguruma; pipelines that exhaust memory are rejected."""

import json
from pathlib import Path
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from tests.text.conftest import anything

from kotha.errors import TokenizerError
from kotha.text.tokenizer.pipeline import GPT2, QWEN35, SPLITS, WORDS, split_name_of, splitter_of
from kotha.text.tokenizer.tokenizer import Tokenizer
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


def test_foreign_pre_tokenizers_are_not_recognised_as_ours():
    assert split_name_of(None) is None
    assert split_name_of({"type": "Metaspace", "replacement": "\u2581"}) is None


def test_the_error_for_an_unknown_split_suggests_the_nearest():
    with pytest.raises(TokenizerError, match="split='word' is not a valid choice; did you mean 'words'"):
        train(["কথা"], "bpe", split="word")


BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
LONGER = {"type": "Replace", "pattern": {"String": "ক"}, "content": "কক"}
LETTER = {"type": "Replace", "pattern": {"Regex": "[ক-হ]"}, "content": "কক"}


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(train(["নদীর ধারে ক্ষেত।"], "bpe", 300).backend.to_str())
    return found


@pytest.mark.parametrize(("part", "inside", "step", "message"), [
    ("pre_tokenizer", "pretokenizers", BYTES, "ByteLevel 40000 times"),
    ("normalizer", "normalizers", LONGER, "Replace {\"String\": \"ক\"} by 'কক' 40000 times"),
    ("normalizer", "normalizers", LETTER, "by 'কক' 40000 times"),
])  # fmt: skip
def test_repeated_steps_that_double_a_text_are_rejected(
    tmp_path: Path, state: dict[str, Any], part: str, inside: str, step: dict[str, Any], message: str
) -> None:
    once = {"type": "Sequence", inside: [step]}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({**state, part: once}), encoding="utf-8")
    Tokenizer.load(file)
    many = {"type": "Sequence", inside: [{"type": "Sequence", inside: [step] * 20000}, *[step] * 20000]}
    file.write_text(json.dumps({**state, part: many}), encoding="utf-8")
    with pytest.raises(TokenizerError, match="can make a text") as told:
        Tokenizer.load(file)
    assert message in str(told.value)


def test_an_undefined_special_token_is_rejected(tmp_path: Path, state: dict[str, Any]) -> None:
    part = {"SpecialToken": {"id": "<|start|>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    result = {"type": "TemplateProcessing", "single": [part, text], "pair": [part, text], "special_tokens": {}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**state, "post_processor": result}), encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"start|post_processor"):
        Tokenizer.load(tmp_path).marks_before  # noqa: B018


def test_one_large_id_does_not_take_long(tmp_path: Path, state: dict[str, Any]) -> None:
    model = {**state["model"], "vocab": {**state["model"]["vocab"], "ঢাকা": 3_000_000}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**state, "model": model}), encoding="utf-8")
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.decode(tokenizer.encode("নদী")) == "নদী"
    assert tokenizer.token_bytes(2_999_999) == b""
