"""``kotha train`` on a table of pairs, and the commands on the resulting run."""

import json
from pathlib import Path

import pytest
from tests.prepared import write_pairs

from kotha.cli.main import FAILED, MISUSED, OK, main

QUICKLY = ["--preset", "pocket-seq2seq", "--steps", "4", "--set", "batch_size=8", "evaluate_every=2", "vocab_size=700"]
SMALL = ["d_model=32", "n_heads=2", "d_ff=64", "n_layers=1", "context_length=32"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with pairs and a run trained on them."""
    folder = tmp_path_factory.mktemp("pairs")
    write_pairs(folder / "pairs.tsv", 60)
    words = ["train", folder / "pairs.tsv", "--out", folder / "run", "--reverse", *QUICKLY, *SMALL]
    assert main([str(word) for word in words]) == OK
    return folder


def said(capsys: pytest.CaptureFixture[str], *words: object, code: int = OK) -> tuple[str, str]:
    capsys.readouterr()
    assert main([str(word) for word in words]) == code
    heard = capsys.readouterr()
    return heard.out, heard.err


def test_training_a_translator_on_a_table(capsys, tmp_path: Path) -> None:
    table = write_pairs(tmp_path / "pairs.tsv", 60)
    _, err = said(capsys, "train", table, "--out", tmp_path / "run", "--reverse", *QUICKLY, *SMALL)
    assert "from 'bn' to 'en' (guessed)" in err
    assert "54 pairs for training, 3 pairs for validation, 3 pairs for testing" in err
    assert "one tokenizer for both languages" in err
    about = json.loads((tmp_path / "run" / "config.json").read_text(encoding="utf-8"))
    assert about["training"]["schedule"] == "cosine" and about["training"]["steps"] == 4
    out, err = said(capsys, "train", table, "--out", tmp_path / "run", "--resume", "--steps", "6", "--json")
    assert "resuming from step 4 of 6" in err and json.loads(out)["steps"] == 6
    out, _ = said(capsys, "train", table, "--out", tmp_path / "run", "--resume")
    assert "Translated from 'bn', compared with 'en'." in out and "Report:" in out
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    for name in ("nearest neighbour", "validation accuracy", f"{summary['chrf']:.2f}"):
        assert name in out
    assert "{" not in out, "no figure is a nested table"


def test_the_translator_translates_and_is_evaluated(capsys, made: Path) -> None:
    page = made / "looks.html"
    out, err = said(capsys, "translate", made / "run", "আমি ভাত খাই", "--alignment", page, "--json")
    assert f"kotha: page saved to {page}\n" in err
    found = json.loads(out)
    assert len(found["alignment"]["weights"]) == len(found["alignment"]["written"]) and page.is_file()
    lines = made / "lines.txt"
    lines.write_text("আমি ভাত খাই\n\nতুমি মাছ আনি\n", encoding="utf-8")
    out, _ = said(capsys, "translate", made / "run", "--file", lines)
    assert len(out.split("\n")) == 4, "one line per line, also for the empty one"
    out, _ = said(capsys, "evaluate", made / "run", made / "pairs.tsv", "--json")
    assert json.loads(out)["fields"] == ["bn", "en"] and json.loads(out)["seen"] == 54
    out, _ = said(capsys, "evaluate", made / "run", made / "pairs.tsv")
    assert "The model was trained on 54 of these pairs" in out and "tok:13a" in out


def test_the_schedule_of_2017_is_a_choice(capsys, tmp_path: Path) -> None:
    table = write_pairs(tmp_path / "pairs.tsv", 60)
    more = ["schedule=inverse-sqrt", "warmup_steps=2"]
    said(capsys, "train", table, "--out", tmp_path / "run", *QUICKLY, *SMALL, *more)
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    rates = [row["learning_rate"] for row in rows if "learning_rate" in row]
    assert rates[0] == 0 and rates[2] == pytest.approx((32 * 4000) ** -0.5)
    assert rates[3] / rates[2] == pytest.approx((2 / 3) ** 0.5)


@pytest.mark.parametrize(
    ("words", "code", "wording"),
    [
        (["@pairs.tsv"], MISUSED, "pairs.tsv is a file, not a data folder; prepare texts first"),
        (["@pairs.tsv", "--preset", "pocket"], FAILED, "pocket is a gpt model, but pairs of texts require a seq2seq"),
        (["@pairs.tsv", "--preset", "pocket-seq2seq", "--pair", "en", "de"], FAILED, "no field 'de' among en, bn"),
        (["@pairs.tsv", "--preset", "pocket-seq2seq", "--recipe", "moden"], FAILED, "did you mean 'modern'?"),
        (["@lines.txt", "--preset", "pocket-seq2seq"], MISUSED, "has fewer than two columns"),
        (["@nowhere.tsv", "--preset", "pocket-seq2seq"], FAILED, "nowhere.tsv"),
        (["@run", "--preset", "pocket", "--reverse"], MISUSED, "reverse applies only to a table of pairs"),
        (["@pairs.tsv", "--from", "@run", "--preset", "pocket-seq2seq"], MISUSED, "initial weights determine the"),
    ],
)
def test_usage_errors(capsys, made: Path, words: list[str], code: int, wording: str) -> None:
    (made / "lines.txt").write_text("আমি ভাত খাই\n", encoding="utf-8")
    places = [word.replace("@", f"{made}/") for word in words]
    _, err = said(capsys, "train", *places, "--out", made / "other", code=code)
    assert wording in err and "Traceback" not in err
    assert not (made / "other").exists()


def test_an_alignment_is_of_one_text(capsys, made: Path) -> None:
    (made / "lines.txt").write_text("আমি ভাত খাই\n", encoding="utf-8")
    words = ["translate", made / "run", "--file", made / "lines.txt", "--alignment", made / "a.html"]
    assert "--alignment needs a single text" in said(capsys, *words, code=MISUSED)[1]
