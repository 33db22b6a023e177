"""Contamination: whether a text is in a run's training data."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kotha.artifacts.run_folder import describe_data
from kotha.evaluation.contamination import look_up
from kotha.evaluation.perplexity import Contamination
from kotha.i18n.message import Message
from kotha.text.held_out import from_texts
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def run(make_data: Callable[..., Dataset], texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    data = make_data([*texts[:40], "ছোট এক বাক্য।"], held_out=texts[40:50], leak_threshold=None)
    folder = tmp_path_factory.mktemp("run")
    about = {"data": {"path": str(data.path), "tokenizer": data.tokenizer.fingerprint}}
    (folder / "config.json").write_text(json.dumps(about))
    (folder / "metrics.jsonl").write_text("")
    return folder


def test_seen_held_out_and_new_documents(run: Path, texts: list[str], tokenizer: Tokenizer) -> None:
    def verdict(documents: list[str]) -> str:
        found = look_up(from_texts(documents, tokenizer), run)
        assert found is not None
        return str(found.verdict)

    assert verdict(texts[:40]) == "seen in training"
    assert verdict(texts[40:50]) == "held out"
    assert verdict(texts[50:70]) == "new"
    assert verdict(texts[:5] + texts[50:65]) == "25% seen in training"
    assert verdict(texts[45:50] + texts[50:55]) == "50% held out, the rest new"
    assert look_up(from_texts(texts[38:42], tokenizer), run) == Contamination(
        4, 2, 2, Message("{share:.0%} seen in training", share=0.5)
    )


def test_parts_of_documents_and_short_documents(run: Path, texts: list[str], tokenizer: Tokenizer) -> None:
    long = max(texts[:40], key=len)
    middle = long[long.index(" ", 100) + 1 : long.rindex(" ")]
    assert look_up(from_texts([middle], tokenizer), run) == Contamination(1, 1, 0, Message("seen in training"))
    assert look_up(from_texts(["ছোট এক বাক্য।"], tokenizer), run) == Contamination(1, 1, 0, Message("seen in training"))
    assert look_up(from_texts(["ছোট দুই বাক্য।"], tokenizer), run) == Contamination(1, 0, 0, Message("new"))


def test_unknown_contamination(run: Path, texts: list[str], tokenizer: Tokenizer, tmp_path: Path) -> None:
    text = from_texts(texts[:3], tokenizer)
    assert look_up(text, None) is None
    assert look_up(text, tmp_path) is None, "a model folder without its run"
    (tmp_path / "metrics.jsonl").write_text("")
    (tmp_path / "config.json").write_text(json.dumps({"data": {"path": "/gone", "tokenizer": tokenizer.fingerprint}}))
    assert look_up(text, tmp_path) is None


def test_data_prepared_again_is_other_data(
    make_data: Callable[..., Dataset], texts: list[str], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    data = make_data(texts[:20], held_out=texts[60:64], leak_threshold=None)
    (tmp_path / "config.json").write_text(json.dumps({"data": describe_data(data)}))
    (tmp_path / "metrics.jsonl").write_text("")
    found = look_up(from_texts(texts[:20], tokenizer), tmp_path)
    assert found is not None and str(found.verdict) == "seen in training"
    description = json.loads((data.path / "dataset.json").read_text())
    description["splits"]["train"]["shards"][0]["sha256"] = "0" * 64
    (data.path / "dataset.json").write_text(json.dumps(description))
    assert look_up(from_texts(texts[:20], tokenizer), tmp_path) is None


def test_the_data_of_the_model_that_a_run_started_from_counts(
    run: Path, make_data: Callable[..., Dataset], texts: list[str], tokenizer: Tokenizer, tmp_path: Path
) -> None:
    def started_from(name: str, origin: str) -> Path:
        data = make_data(texts[70:90], held_out=texts[90:94], leak_threshold=None)
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps({"data": describe_data(data), "origin": origin}))
        (folder / "metrics.jsonl").write_text("")
        return folder

    old, own, new = (from_texts(some, tokenizer) for some in (texts[:5], texts[70:75], texts[100:105]))
    for origin in (run, run / "best"):
        child = started_from(f"child of {origin.name}", str(origin))
        grandchild = started_from(f"grandchild of {origin.name}", str(child))
        for folder in (child, grandchild, grandchild / "best"):
            for text, verdict in ((old, "seen in training"), (own, "seen in training"), (new, "new")):
                found = look_up(text, folder)
                assert found is not None and str(found.verdict) == verdict
    stranger = started_from("stranger", "hf:someone/model")
    found = look_up(own, stranger)
    assert found is not None and str(found.verdict) == "seen in training"
    assert look_up(new, stranger) is None, "it may be in the data of the unknown model"
    loop = started_from("loop", str(tmp_path / "loop"))
    found = look_up(new, loop)
    assert found is not None and str(found.verdict) == "new"
