"""A tokenizer.json that would take the process down, or all its memory, is refused in words."""

import json
from pathlib import Path
from typing import Any

import pytest

from kotha.errors import TokenizerError
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
LONGER = {"type": "Replace", "pattern": {"String": "ক"}, "content": "কক"}
LETTER = {"type": "Replace", "pattern": {"Regex": "[ক-হ]"}, "content": "কক"}


@pytest.fixture(scope="module")
def state() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(train(["নদীর ধারে ক্ষেত।"], "bpe", 300).backend.to_str())
    return found


@pytest.mark.parametrize(("part", "inside", "step", "said"), [
    ("pre_tokenizer", "pretokenizers", BYTES, "ByteLevel 40000 times"),
    ("normalizer", "normalizers", LONGER, "Replace {\"String\": \"ক\"} by 'কক' 40000 times"),
    ("normalizer", "normalizers", LETTER, "by 'কক' 40000 times"),
    ("decoder", "decoders", LONGER, "by 'কক' 40000 times"),
])  # fmt: skip
def test_steps_that_double_a_text_stand_there_once(
    tmp_path: Path, state: dict[str, Any], part: str, inside: str, step: dict[str, Any], said: str
) -> None:
    once = {"type": "Sequence", inside: [step]}
    file = tmp_path / "tokenizer.json"
    file.write_text(json.dumps({**state, part: once}), encoding="utf-8")
    Tokenizer.load(file)
    many = {"type": "Sequence", inside: [{"type": "Sequence", inside: [step] * 20000}, *[step] * 20000]}
    file.write_text(json.dumps({**state, part: many}), encoding="utf-8")
    with pytest.raises(TokenizerError, match="can make a text") as told:
        Tokenizer.load(file)
    assert said in str(told.value)


def test_a_mark_that_is_no_token_is_refused(tmp_path: Path, state: dict[str, Any]) -> None:
    part = {"SpecialToken": {"id": "<|start|>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    told = {"type": "TemplateProcessing", "single": [part, text], "pair": [part, text], "special_tokens": {}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**state, "post_processor": told}), encoding="utf-8")
    with pytest.raises(TokenizerError, match=r"start|post_processor"):
        Tokenizer.load(tmp_path).marks_before  # noqa: B018


def test_one_large_id_is_no_long_work(tmp_path: Path, state: dict[str, Any]) -> None:
    model = {**state["model"], "vocab": {**state["model"]["vocab"], "ঢাকা": 3_000_000}}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**state, "model": model}), encoding="utf-8")
    tokenizer = Tokenizer.load(tmp_path)
    assert tokenizer.decode(tokenizer.encode("নদী")) == "নদী"
    assert tokenizer.token_bytes(2_999_999) == b""
