"""`kotha inside attention, flow, lens, trace` as a user types them."""

import json
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.inside.small_models import TEXT, small

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.inside.inputs import headline
from kotha.text.akshara import aksharas


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for body in ("gpt", "bert", "seq2seq", "vit"):
        bundle.save(folder / body, small(body).model, small(body).tokenizer)
    np.save(folder / "image.npy", np.arange(64, dtype=np.uint8).reshape(8, 8))
    return folder


def run(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main(["inside", *map(str, words)]) == 0
    output = capsys.readouterr()
    return output.out if "--json" in words else output.out + output.err


def test_attention_prints_the_strongest_weights(capsys, models: Path) -> None:
    out = run(capsys, "attention", models / "gpt", "--text", TEXT)
    assert out.count("→") == 3 * 8 and "blocks.1.attention.3" in out


def test_attention_covers_generated_tokens(capsys, models: Path, tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    words = ["attention", models / "gpt", "--text", "আজ", "--generate", 4, "--html", page, "--json"]
    found = json.loads(run(capsys, *words))
    model, tokenizer = small("gpt").model, small("gpt").tokenizer
    line = [tokenizer.special["eos"], *tokenizer.encode("আজ")]
    with torch.no_grad():
        for _ in range(4):
            line.append(int(model(torch.tensor([line]))[0, -1].argmax()))
    assert [piece["id"] for piece in found["lines"]["tokens"]] == line
    assert len(found["steps"]) == 4 and found["written_from"] == len(line) - 4
    assert '"made_by": "kotha inside attention"' in page.read_text(encoding="utf-8")
    drawn = [json.loads(run(capsys, *words[:6], "--temperature", 2, "--seed", seed, "--json")) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_attention_of_a_seq2seq_writes_its_own_target(capsys, models: Path) -> None:
    found = json.loads(run(capsys, "attention", models / "seq2seq", "--text", "আজ মেলা", "--generate", 3, "--json"))
    assert len(found["lines"]["target"]) <= 4 and found["written_from"] == 1
    given = json.loads(run(capsys, "attention", models / "seq2seq", "--text", "আজ", "--target", "কাল", "--json"))
    assert given["steps"] == [] and {each["name"] for each in given["maps"]} >= {
        "decoder.0.cross",
        "encoder.1.attention",
    }
    chosen = ["attention", models / "seq2seq", "--text", "আজ", "--target", "কাল", "--layers", "decoder.1", "--json"]
    assert [each["name"] for each in json.loads(run(capsys, *chosen))["maps"]] == [
        "decoder.1.attention",
        "decoder.1.cross",
    ]


def test_attention_of_a_pair_and_of_an_image(capsys, models: Path, tmp_path: Path) -> None:
    found = json.loads(run(capsys, "attention", models / "bert", "--text", "আজ [MASK]", "--second", "কাল", "--json"))
    texts = [piece["text"] for piece in found["lines"]["tokens"]]
    assert texts.count("[SEP]") == 2 and "[MASK]" in texts
    page = tmp_path / "v.html"
    out = run(capsys, "attention", models / "vit", "--image", models / "image.npy", "--html", page)
    assert str(page) in out and '"pixels"' in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["flow", "lens"])
@pytest.mark.parametrize("body", ["gpt", "bert", "seq2seq"])
def test_flow_and_lens_print_write_and_give_json(capsys, models: Path, tmp_path: Path, command: str, body: str) -> None:
    words = [command, models / body, "--text", "আজ মেলা", *(["--target", "কাল"] if body == "seq2seq" else [])]
    assert "entropy" in run(capsys, *words)
    assert json.loads(run(capsys, *words, "--json"))["family"] == body
    page = tmp_path / "p.html"
    assert str(page) in run(capsys, *words, "--html", page)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_flow_has_the_workshops_text(capsys, models: Path) -> None:
    found = json.loads(run(capsys, "flow", models / "gpt", "--json"))
    start, *words = [piece["text"] for piece in found["lines"]["tokens"]]
    assert start == "<|endoftext|>" and "".join(words).replace("␣", " ").strip().startswith("বাংলাদেশ")
    image = json.loads(run(capsys, "flow", models / "vit", "--image", models / "image.npy", "--json"))
    assert image["stations"][0]["hook_point"] == "patches"


def test_trace_lists_places_and_writes_arrays(capsys, models: Path, tmp_path: Path) -> None:
    out = run(capsys, "trace", models / "gpt", "--text", "আজ মেলা", "--layer", "blocks.0")
    assert "blocks.0.attention.weights" in out and "blocks.1" not in out
    words = ["trace", models / "gpt", "--text", "আজ মেলা", "--hook", "*.weights"]
    found = json.loads(run(capsys, *words, "--npz", tmp_path / "a.npz", "--json"))
    with np.load(tmp_path / "a.npz") as arrays:
        assert sorted(arrays) == [each["hook_point"] for each in found["activations"]]
        assert arrays["blocks.0.attention.weights"].sum(-1) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("words", "wording"),
    [
        (["attention", "gpt"], "a gpt model needs a text"),
        (["attention", "vit"], "a vit model needs an image"),
        (["attention", "vit", "--text", "আজ"], "give it an image"),
        (["attention", "gpt", "--image", "image.npy"], "only a ViT takes an image"),
        (["attention", "gpt", "--text", "আজ", "--image", "image.npy"], "not both"),
        (["attention", "gpt", "--text", "আজ", "--generate", "0"], "--generate 0 is too few"),
        (["attention", "gpt", "--text", "আজ", "--generate", "99"], "exceed the context length of 48"),
        (["attention", "gpt", "--text", "আজ", "--layers", "7"], "known: blocks.0, blocks.1"),
        (["attention", "gpt", "--text", "আজ", "--generate", "3", "--temperature", "-1"], "--temperature -1.0"),
        (["attention", "bert", "--text", "আজ", "--generate", "3"], "cannot generate text"),
        (["attention", "seq2seq", "--text", "আজ", "--generate", "3", "--temperature", "1"], "omit --temperature"),
        (["attention", "gpt", "--text", "আজ", "--temperature", "1"], "set the number of tokens with --generate"),
        (["lens", "vit", "--text", "আজ"], "a ViT predicts classes"),
        (["trace", "gpt", "--text", "আজ", "--npz", "a.txt"], "the file name must end in .npz; use a.txt.npz"),
        (["trace", "gpt", "--text", "আজ", "--layer", "block.0"], "did you mean 'blocks.0'"),
        (["trace", "gpt", "--text", "আজ", "--layer", "7"], "known: blocks.0, blocks.1"),
        (["trace", "gpt", "--text", "আজ", "--hook", "weights"], "did you mean '*.weights'?"),
        (
            ["trace", "gpt", "--text", "আজ", "--hook", "blob"],
            "unknown hook point 'blob'; known: *.attention, *.att",
        ),
    ],
)
def test_usage_errors(capsys, models: Path, monkeypatch, words: list[str], wording: str) -> None:
    monkeypatch.chdir(models)
    assert main(["inside", *words]) == 2
    assert wording in capsys.readouterr().err


def test_a_missing_run_is_a_failure(capsys, tmp_path: Path) -> None:
    assert main(["inside", "lens", str(tmp_path / "none"), "--text", "আজ"]) == 1
    assert "give a run, model or Hugging Face folder" in capsys.readouterr().err


@pytest.mark.parametrize("text", [TEXT * 9, "ক্ষ্ম" * 100])
def test_a_long_text_has_a_short_title(text: str) -> None:
    title = headline(text)
    assert title.endswith(" …") and text.startswith(title.removesuffix(" …"))
    assert 20 < len(title) <= 300 and aksharas(title)[-3] in aksharas(text)
    assert headline(TEXT) == TEXT


@pytest.mark.parametrize("text", ["মা", "ক", "?"])
def test_a_short_text_is_its_own_title(text: str) -> None:
    assert headline(text) == text


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_text_has_a_title(text: str) -> None:
    assert str(headline(text)) == "An empty text"


def test_bfloat16_weights_are_computed_in_float32(capsys, tmp_path: Path) -> None:
    """bfloat16 products on a CPU lose precision, so the weights are widened to float32."""
    narrow = deepcopy(small("gpt").model).bfloat16()
    bundle.save(tmp_path / "narrow", narrow, small("gpt").tokenizer)
    bundle.save(tmp_path / "wide", narrow.float(), small("gpt").tokenizer)
    for words in (["flow"], ["trace"], ["lens"], ["attention"], ["worksheet", "--run"]):
        result = [run(capsys, *words, tmp_path / name, "--text", TEXT, "--json") for name in ("narrow", "wide")]
        assert result[0] == result[1]


@pytest.mark.parametrize("command", ["attention", "flow", "lens"])
def test_brackets_in_a_name_are_no_markup(capsys, models: Path, tmp_path: Path, command: str) -> None:
    page = tmp_path / "a[" / "b].html"
    assert f"page saved to {page}\n" in run(capsys, command, models / "gpt", "--text", "আজ", "--html", page)


def test_a_layer_is_named_by_its_number_too(capsys, models: Path) -> None:
    out = run(capsys, "trace", models / "gpt", "--text", "আজ", "--layer", "1")
    assert "blocks.1.attention.weights" in out and "blocks.0" not in out
