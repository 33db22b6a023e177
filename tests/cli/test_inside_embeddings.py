"""`kotha inside embeddings` as a user types it."""

import json
from pathlib import Path

import pytest

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.model.config import GPTConfig
from kotha.model.family import build
from kotha.text.tokenizer.trainers import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    tokenizer = train(["মা বাবা নদী পুকুর লাল নীল বই খাতা [/b] " * 40], "unigram", vocab_size=400)
    sizes = {"context_length": 16, "n_layers": 1, "d_model": 8, "n_heads": 2}
    model = build(GPTConfig(vocab_size=tokenizer.vocab_size, **sizes))
    return str(bundle.save(tmp_path_factory.mktemp("model") / "run", model, tokenizer))


def test_neighbours_map_and_touched_rows(run: str, capsys, tmp_path: Path) -> None:
    command = ["inside", "embeddings", run, "মা", "মাখাতা", "--count", "3", "--text", "মা বই মা"]
    page = tmp_path / "map.html"
    assert main([*command, "--map", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(each["word"], len(each["pieces"])) for each in found["words"]] == [("মা", 1), ("মাখাতা", 3)]
    assert all(len(each["neighbours"]) == 3 for each in found["words"])
    assert found["touched"]["looked_up"] == found["touched"]["distinct"]
    assert found["map"]["words"] > 8
    assert "মাখাতা" in page.read_text(encoding="utf-8")
    assert main(command) == 0
    out = capsys.readouterr().out
    assert "is not a single token; its vector is the mean of" in out
    assert "the output head shares the token embedding" in out
    assert found["touched"]["position_table"] == {"rows": 16, "gradient": 2, "without_decay": 2, "with_decay": 16}
    assert "position rows changed by a step of AdamW with weight decay" in out and "whether or not its row has" in out


def test_a_word_in_brackets_is_a_word(run: str, capsys) -> None:
    assert main(["inside", "embeddings", run, "[/b]", "মা[/b]"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("[/b]\n") and "মা[/b] is not a single token" in out


@pytest.mark.parametrize(
    ("arguments", "code", "wording"),
    [
        ([], 2, "give a word, --map FILE or --text TEXT"),
        (["{run}", "☃র‍্যা"], 2, "the vocabulary cannot spell “☃র‍্যা”"),
        (["{run}", "মা", "--map", "map.png"], 2, "has the wrong extension for an HTML page; use map.html"),
        (["{run}", "মা", "--count", "0"], 2, "at least 1"),
        (["{run}", "--text", "মা"], 2, "no next token to predict"),
        (["nowhere", "মা"], 1, "nowhere not found"),
    ],
)
def test_usage_errors(run: str, capsys, arguments: list[str], code: int, wording: str) -> None:
    assert main(["inside", "embeddings", *(each.format(run=run) for each in arguments)]) == code
    assert wording in capsys.readouterr().err
