"""Reading conversations: guessed and named fields, messages, groups, and invalid rows."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kotha.errors import CorpusError, DataError
from kotha.text.corpus.dialogues import holds_dialogues, read_dialogues
from kotha.text.tokenizer.chat import Turn


def written(file: Path, *rows: Any) -> Path:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return file


def test_fields_are_guessed_by_name_and_reported(tmp_path: Path) -> None:
    plain = written(tmp_path / "a.jsonl", {"id": 1, "question": "কে?", "answer": "মা।", "story": 4})
    found = read_dialogues(plain)
    assert found.turns == ((Turn("user", "কে?"), Turn("assistant", "মা।")),)
    assert (found.fields, found.guessed, found.groups) == (("question", "answer"), True, ("4",))
    alpaca = {"instruction": "যোগ করো", "input": "২ ও ৩", "output": "৫"}
    found = read_dialogues(written(tmp_path / "b.jsonl", alpaca, {**alpaca, "input": ""}))
    assert found.fields == ("instruction", "input", "output")
    assert [turns[0].text for turns in found.turns] == ["যোগ করো\n২ ও ৩", "যোগ করো"]
    assert found.groups == ("row 0", "row 1"), "each stands alone"
    named = read_dialogues(written(tmp_path / "c.jsonl", {"q": "কে?", "a": "মা।"}), "q", "a")
    assert named.guessed is False and len(named) == 1
    table = tmp_path / "d.csv"
    table.write_text("prompt,completion\nকে?,মা।\n", encoding="utf-8")
    assert read_dialogues(table).fields == ("prompt", "completion")


def test_messages_are_turns_and_the_last_is_the_assistants(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "ছোট করে"}, {"role": "user", "content": "কে?"}]
    answer = {"role": "assistant", "content": " মা। "}
    good = {"messages": [*turns, answer], "group": "ক"}
    found = read_dialogues(written(tmp_path / "a.jsonl", good))
    assert found.turns[0] == (Turn("system", "ছোট করে"), Turn("user", "কে?"), Turn("assistant", "মা।"))
    assert found.groups == ("ক",)
    for wrong, said in (
        ({"messages": turns}, "that ends with an assistant turn"),
        ({"messages": [{"role": "teacher", "content": "ক"}, answer]}, r"a role \(one of system, user, assistant\)"),
        ({"messages": [{"role": "user", "content": 5}, answer]}, "non-empty text as content"),
        ({"messages": "কে?"}, "expected messages, a list of at least two turns"),
        ([1], "expected an object with messages"),
    ):
        file = written(tmp_path / "b.jsonl", {"messages": good["messages"]}, wrong)
        with pytest.raises(CorpusError, match=said):
            read_dialogues(file)
        assert len(read_dialogues(file, errors="skip")) == 1


def test_a_row_without_an_answer_or_a_file_without_fields_is_rejected(tmp_path: Path) -> None:
    file = written(tmp_path / "a.jsonl", {"question": "কে?", "answer": "মা।"}, {"question": "কী?", "answer": " "})
    with pytest.raises(CorpusError, match="line 2: the field 'answer' is empty"):
        read_dialogues(file)
    assert len(read_dialogues(file, errors="skip")) == 1
    with pytest.raises(DataError, match="none of the usual field names of an instruction"):
        read_dialogues(written(tmp_path / "b.jsonl", {"text": "নদী", "label": "ক"}))


def test_conversations_are_distinguished_from_documents(tmp_path: Path) -> None:
    assert holds_dialogues(written(tmp_path / "a.jsonl", {"question": "কে?", "answer": "মা।"}))
    assert holds_dialogues(written(tmp_path / "b.jsonl", {"messages": []}))
    assert not holds_dialogues(written(tmp_path / "c.jsonl", {"text": "নদী", "question": "কে?", "answer": "মা।"}))
    assert not holds_dialogues(written(tmp_path / "d.jsonl", {"text": "নদী"}))
    (tmp_path / "e.txt").write_text("নদী")
    assert not holds_dialogues(tmp_path / "e.txt") and not holds_dialogues(tmp_path / "nowhere.jsonl")


def test_invalid_messages_are_rejected_with_a_reason(tmp_path: Path) -> None:
    rows = b"".join(json.dumps({"messages": [{"role": "user", "content": str(n)}]}).encode() for n in range(50))
    packed = gzip.compress(rows)
    for name, data in {"cut": packed[: len(packed) // 2], "other": b"\x1f\x8b\x08" + bytes(30)}.items():
        file = tmp_path / f"{name}.jsonl.gz"
        file.write_bytes(data)
        with pytest.raises(CorpusError, match="gz data"):
            read_dialogues(file)
        assert not holds_dialogues(file)


def test_remote_conversations_are_read() -> None:
    import fsspec

    turns = [{"role": "user", "content": "কত?"}, {"role": "assistant", "content": "দুই।"}]
    fsspec.filesystem("memory").pipe("/talk/a.jsonl", json.dumps({"messages": turns}).encode())
    found = read_dialogues("memory://talk/a.jsonl")
    assert [turn.text for turn in found.turns[0]] == ["কত?", "দুই।"]
