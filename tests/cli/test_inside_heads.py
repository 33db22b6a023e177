"""`kotha inside heads` and `kotha inside prune` as a user types them, including mistakes."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.inside.small_models import small

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.inside.heads.importance import every_head, silence
from kotha.model.config import BERTConfig, GPTConfig, ModelConfig, Seq2SeqConfig, ViTConfig
from kotha.model.family import build
from kotha.model.objectives import next_token, word_loss
from kotha.model.presets import MODERN
from kotha.text.held_out import read_held_out
from kotha.text.stories.corpus import stories
from kotha.text.tokenizer.chat import ChatTemplate
from kotha.text.tokenizer.trainers import train as train_tokenizer

TINY: dict[str, Any] = {"d_model": 16, "n_heads": 4, "n_layers": 2, "d_ff": 24}
TEXTS = [document.text for document in islice(stories(seed=4), 12)]


def folder_of(path: Path, config: ModelConfig, kind: str) -> Path:
    torch.manual_seed(0)
    model = build(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return bundle.save(path, model, train_tokenizer(TEXTS, kind, 600))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("heads")
    text: dict[str, Any] = {**TINY, "vocab_size": 600, "context_length": 32}
    folder_of(folder / "gpt", GPTConfig(**text, **MODERN, n_kv_heads=2), "unigram")
    folder_of(folder / "bert", BERTConfig(**text), "wordpiece")
    folder_of(folder / "seq2seq", Seq2SeqConfig(**{**text, "context_length": 200}), "unigram")
    bundle.save(folder / "vit", build(ViTConfig(**TINY, image_size=8, patch_size=4, n_channels=1, n_classes=3)))
    lines = [json.dumps({"text": text, "en": text[:40], "bn": text[:60]}) for text in TEXTS]
    (folder / "texts.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def answer(capsys: Any, *words: str) -> Any:
    assert main(["inside", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_heads_with_evidence(capsys: Any, place: Path) -> None:
    found = answer(capsys, "heads", str(place / "gpt"), str(place / "texts.jsonl"), "--tokens", "200")
    model, tokenizer = bundle.load(place / "gpt").model, bundle.load(place / "gpt").tokenizer
    assert [row["head"] for row in found["heads"]] == every_head(model)
    assert tokenizer is not None and found["tokens"] == 192 and found["passages"] == 6
    line = torch.from_numpy(read_held_out(place / "texts.jsonl", tokenizer).line[:200])
    windows = [line[None, start : start + 33] for start in range(0, 168, 33)]
    with torch.no_grad():
        before = sum(word_loss(model, next_token(model, each)).item() for each in windows) / 6  # type: ignore[arg-type]
        with silence(model, ["blocks.1.attention.2"]):
            after = sum(word_loss(model, next_token(model, each)).item() for each in windows) / 6  # type: ignore[arg-type]
    row = next(row for row in found["heads"] if row["head"] == "blocks.1.attention.2")
    assert found["loss_nats"] == pytest.approx(before, abs=1e-5)
    assert row["ablation_nats"] == pytest.approx(after - before, abs=1e-5)
    assert row["gradient_nats"] > 0 and {"previous-token", "induction", "rare-word", "broad"} <= row["scores"].keys()
    assert row["most_similar"]["head"].startswith("blocks.1.attention.")


def test_heads_as_a_table_and_as_a_page(capsys: Any, place: Path, tmp_path: Path) -> None:
    page = tmp_path / "heads.html"
    words = ["inside", "heads", str(place / "gpt"), "--text", TEXTS[0] + "<script>", "--html", str(page)]
    assert main(words) == 0
    output = capsys.readouterr()
    assert "blocks.0.attention.3" in output.out and "ablation" in output.out and str(page) in output.err
    html = page.read_text(encoding="utf-8")
    assert "blocks.1.attention.0" in html and "default-src 'none'" in html
    assert html.count("<script") == 3, "only the scripts of the page, none from the text"


@pytest.mark.parametrize(("name", "more"), [("bert", []), ("seq2seq", ["--pair", "en", "bn"])])
def test_other_families_too(capsys: Any, place: Path, name: str, more: list[str]) -> None:
    found = answer(capsys, "heads", str(place / name), str(place / "texts.jsonl"), "--tokens", "100", *more)
    assert len(found["heads"]) == len(every_head(bundle.load(place / name).model))
    assert all(row["ablation_nats"] != 0 for row in found["heads"])
    together = {"encoder.attention", "decoder.attention", "decoder.cross"} if name == "seq2seq" else set()
    assert found["together_nats"].keys() == together and all(found["together_nats"].values())
    assert main(["inside", "heads", str(place / name), str(place / "texts.jsonl"), "--tokens", "100", *more]) == 0
    assert ("without all heads of one kind" in capsys.readouterr().out) is (name == "seq2seq")


def test_prune_writes_a_smaller_folder_and_measures_it(capsys: Any, place: Path, tmp_path: Path) -> None:
    measured = [str(place / "texts.jsonl"), "--tokens", "200"]
    found = answer(capsys, "prune", str(place / "gpt"), *measured, "--out", str(tmp_path / "small"), "--count", "4")
    before, after = found["before"], found["after"]
    assert (before["heads"], after["heads"], len(found["removed"])) == (8, 4, 4)
    assert after["parameters"] < before["parameters"] and after["megabytes"] < before["megabytes"]
    opened = bundle.load(tmp_path / "small")
    assert set(opened.config.removed_heads) == set(found["removed"])
    assert sum(each.numel() for each in opened.model.parameters()) == after["parameters"]
    again = answer(capsys, "heads", str(tmp_path / "small"), *measured)
    assert again["loss_nats"] == pytest.approx(after["loss_nats"], abs=1e-6)
    assert {row["head"] for row in again["heads"]}.isdisjoint(found["removed"])
    assert main(["generate", str(tmp_path / "small"), "নদী", "--tokens", "5"]) == 0


def test_prune_takes_the_least_important(capsys: Any, place: Path, tmp_path: Path) -> None:
    measured = [str(place / "texts.jsonl"), "--tokens", "200"]
    worth = {row["head"]: row["ablation_nats"] for row in
             answer(capsys, "heads", str(place / "gpt"), *measured)["heads"]}  # fmt: skip
    out = ["--out", str(tmp_path / "small"), "--count", "2"]
    found = answer(capsys, "prune", str(place / "gpt"), *measured, *out)
    assert found["removed"] == sorted(worth, key=lambda head: worth[head])[:2]


@pytest.mark.parametrize(("name", "more"), [("bert", []), ("seq2seq", ["--pair", "en", "bn"])])
def test_prune_by_name_in_other_families(capsys: Any, place: Path, tmp_path: Path, name: str, more: list[str]) -> None:
    head = "decoder.1.cross.2" if name == "seq2seq" else "blocks.1.attention.2"
    out = ["--out", str(tmp_path / "small"), "--heads", head, *more]
    assert main(["inside", "prune", str(place / name), str(place / "texts.jsonl"), "--tokens", "100", *out]) == 0
    output = capsys.readouterr().out
    assert "parameters" in output and f"removed: {head}" in output
    assert bundle.load(tmp_path / "small").config.removed_heads == (head,)


def test_prune_keeps_the_type_of_the_weights_and_the_chat_template(capsys: Any, place: Path, tmp_path: Path) -> None:
    opened = bundle.load(place / "gpt")
    assert opened.tokenizer is not None
    template = ChatTemplate.of(opened.tokenizer)
    bundle.save(tmp_path / "narrow", opened.model.bfloat16(), opened.tokenizer, chat=template)
    out = ["--out", str(tmp_path / "small"), "--heads", "blocks.0.attention.1"]
    found = answer(capsys, "prune", str(tmp_path / "narrow"), "--text", TEXTS[0], *out)
    assert found["after"]["megabytes"] < found["before"]["megabytes"]
    smaller = bundle.load(tmp_path / "small")
    assert next(smaller.model.parameters()).dtype is torch.bfloat16 and smaller.chat == template


def test_special_tokens_have_their_own_names(capsys: Any, tmp_path: Path) -> None:
    bundle.save(tmp_path / "bert", small("bert").model, small("bert").tokenizer)
    text = "রাষ্ট্রপতি শিক্ষার্থীদের ক্ষুধার্ত " * 2
    found = answer(capsys, "heads", str(tmp_path / "bert"), "--text", text)
    examples = " ".join(row["example"] for row in found["heads"])
    assert "→ [CLS]" in examples and "␣[" not in examples


MISTAKES = [
    (["heads", "gpt"], "was not found; give --text … or a path"),
    (["heads", "gpt", "texts.jsonl", "--text", "ক"], "give either a path or a text, not both"),
    (["heads", "gpt", "--text", "ক"], "tokens; at least 9 are needed"),
    (["heads", "gpt", "--text", "ক", "--tokens", "2"], "--tokens 2 is too small; use at least 9"),
    (["heads", "gpt", "texts.jsonl", "--tokens", "8"], "--tokens 8 is too small; use at least 9"),
    (["heads", "vit", "--text", "ক"], "a vit model takes no text"),
    (["heads", "seq2seq", "texts.jsonl"], "is measured on pairs; give a path, and the names of the two fields as pair"),
    (["heads", "gpt", "texts.jsonl", "--pair", "en", "bn"], "pair applies only to a translation model"),
    (["prune", "gpt", "texts.jsonl"], "give either heads (by name) or count"),
    (["prune", "gpt", "texts.jsonl", "--count", "1", "--heads", "a"], "give either heads (by name) or count"),
    (
        ["prune", "gpt", "texts.jsonl", "--count", "7"],
        "7 heads cannot be removed: each attention module must keep at least one, so 1 to 6 of the 8",
    ),
    (["prune", "gpt", "texts.jsonl", "--count", "0"], "0 heads cannot be removed"),
    (["prune", "gpt", "texts.jsonl", "--heads", " ,"], "heads is empty"),
    (
        ["prune", "gpt", "texts.jsonl", "--heads", "blocks.0.attention.4"],
        "this model has no head 'blocks.0.attention.4'",
    ),
]


@pytest.mark.parametrize(("words", "message"), MISTAKES)
def test_mistakes_are_one_line(capsys: Any, place: Path, tmp_path: Path, words: list[str], message: str) -> None:
    known = {each.name for each in place.iterdir()}
    command, *rest = [str(place / word) if word in known else word for word in words]
    out = ["--out", str(tmp_path / "small")] if command == "prune" else []
    assert main(["inside", command, *rest, *out]) == 2
    output = capsys.readouterr().err.strip()
    assert message in output and "Traceback" not in output
    assert not (tmp_path / "small").exists()


def test_removing_all_heads_of_an_attention_is_rejected(capsys: Any, place: Path, tmp_path: Path) -> None:
    heads = ",".join(f"blocks.0.attention.{number}" for number in range(4))
    words = ["inside", "prune", str(place / "gpt"), str(place / "texts.jsonl"), "--heads", heads]
    assert main([*words, "--out", str(tmp_path / "small")]) == 1
    assert "all 4 heads of blocks.0.attention would be removed; leave at least one" in capsys.readouterr().err


def test_unwritable_output_is_rejected_before_any_work(capsys: Any, place: Path, tmp_path: Path) -> None:
    words = ["inside", "prune", str(place / "gpt"), "--text", TEXTS[0], "--count", "1"]
    assert main([*words, "--out", str(place / "gpt"), "--overwrite"]) == 2
    assert "is the folder of the original model" in capsys.readouterr().err
    (tmp_path / "mine.txt").write_text("mine")
    for more in ([], ["--overwrite"]):
        assert main([*words, "--out", str(tmp_path), *more]) == 1
        output = capsys.readouterr().err
        assert "silencing" not in output and bundle.load(place / "gpt").config.removed_heads == ()
        assert "exists; choose another folder, or use --overwrite to replace earlier output of the same kind" in output
    assert [each.name for each in tmp_path.iterdir()] == ["mine.txt"]


def test_hints_name_only_options_of_the_command(capsys: Any, place: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b'{"text": "' + "ক".encode() * 99 + b'"}\n{\n')
    words = {
        "heads": ["inside", "heads", str(place / "gpt"), str(broken)],
        "prune": ["inside", "prune", str(place / "gpt"), str(broken), "--count", "1", "--out", str(tmp_path / "small")],
        "evaluate": ["evaluate", str(place / "gpt"), str(broken)],
    }
    for command, given in words.items():
        assert main(given) == 1
        output = capsys.readouterr().err
        assert "line 2: not valid JSON" in output and "fix the input" in output
        assert ("or skip it with --errors skip" in output) == (command == "evaluate"), output
