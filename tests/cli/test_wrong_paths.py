"""Wrong path arguments: a missing path, an empty folder, a folder of another kind, and a text.

Each gives a one-line error that states what is wrong, where, and what to do, in both languages.
"""

from pathlib import Path

import pytest

from kotha.cli.main import main

FOLDER = "it has no config.json; specify a run folder or a model folder"
FILE = "is a file; give a run, model or Hugging Face folder"
NOT_FOUND = "not found; give a run, model or Hugging Face folder, or box for the bundled model"
CASES = [
    ("train nowhere --out o", "nowhere not found; create a data folder with `kotha prepare`"),
    ("train empty --out o", "has no dataset.json; create one with `kotha prepare`"),
    (
        "train note.txt --out o",
        "prepare texts first: kotha tokenizer train note.txt --out tok && kotha prepare note.txt",
    ),
    ("train texts --out o", "prepare the text first: kotha tokenizer train texts --out tok && kotha prepare texts"),
    ("train note.txt --preset pocket --out o", "it is not a table of pairs"),
    ("train texts --config nowhere --out o", "No such file or directory; specify a TOML file"),
    ("sweep note.txt", "prepare the text first: kotha tokenizer train note.txt --out tok && kotha prepare note.txt"),
    ("prepare note.txt --tokenizer nowhere --out o", "no tokenizer at nowhere; train one with `kotha tokenizer train`"),
    ("prepare note.txt --tokenizer empty --out o", "empty contains no tokenizer"),
    ("tokenizer train nowhere --out o", "nowhere does not exist; name an existing file or folder"),
    ("finetune instruct note.txt --from box --out o", "note.txt has no fields; use a csv, tsv or jsonl"),
    ("doctor nowhere", "nowhere not found; specify the folder of a training run"),
    ("doctor empty", "no run in empty; specify the folder of a training run"),
    ("compare nowhere", "nowhere not found; specify a run folder"),
    ("compare empty", "is not a run folder and has no scores; give a text to evaluate it on: --text …"),
    ("card note.txt", "note.txt is not a model folder"),
    ("evaluate nowhere note.txt", NOT_FOUND),
    ("evaluate empty note.txt", FOLDER),
    ("evaluate note.txt", "put a model before it, such as box, the bundled model: kotha evaluate box note.txt"),
    ("generate note.txt ক", FILE),
    ("export empty --to hf --out o", FOLDER),
    ("import nowhere --out o", "nowhere not found; give the path of a Hugging Face folder"),
    ("ask ক --index nowhere", "no index at nowhere; create one from your documents with `kotha index`"),
    ("ask ক --index texts", "texts is a folder; give an index file created with `kotha index`"),
    ("ask ক --index empty.txt", "empty.txt is empty; index some documents with `kotha index`"),
    ("judge box empty --prompts nowhere --out o", "nowhere is not a file; give a file with one prompt per line"),
    ("translate box --file texts", "texts is a folder; specify a file in it"),
    ("translate box --file nowhere", "nowhere not found; check the path"),
    ("inside score texts", "texts is a folder; specify a file in it"),
    ("inside score note.txt", "note.txt is corrupted: it is not valid JSON"),
    ("inside worksheet --matrices note.txt", "note.txt must be a .json or .csv file with X, W_Q, W_K and W_V"),
    ("inside lens নদী", "নদী not found; specify a run folder, or give text with --text"),
    ("inside lens nowhere --text নদী", NOT_FOUND),
    ("inside embeddings river", "specify a run folder, or to look up a word, run: kotha inside embeddings box river"),
    ("inside embeddings river sea", NOT_FOUND),
    ("plan --steps 4", "unknown option --steps; write --set steps=VALUE"),
    ("train data --out o --batch-size 4", "unknown option --batch-size; write --set batch_size=VALUE"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create an empty folder, a folder of texts, a text and an empty file in the current directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "texts"):
        (tmp_path / name).mkdir()
    for name in ("note.txt", "texts/a.txt"):
        (tmp_path / name).write_text("নদীর ধারে একটি গ্রাম।\n", encoding="utf-8")
    (tmp_path / "empty.txt").touch()
    return tmp_path


@pytest.mark.parametrize(("words", "wording"), CASES, ids=[words for words, _ in CASES])
def test_a_wrong_path_gives_one_line_that_says_what_to_do(here: Path, capsys, words: str, wording: str) -> None:
    before = sorted(here.rglob("*"))
    code = main(words.split())
    captured = capsys.readouterr()
    line = captured.err.splitlines()[-1]
    assert code in (1, 2) and captured.out == ""
    assert line.startswith("kotha: ") and wording in line
    assert main([*words.split(), "--language", "bn"]) == code
    bangla = capsys.readouterr().err.splitlines()[-1]
    assert bangla != line and not bangla.isascii()
    assert sorted(here.rglob("*")) == before


def test_words_without_a_run_are_looked_up_in_the_bundled_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inside", "embeddings", "মা", "--count", "2"]) == 0
    alone = capsys.readouterr().out
    assert main(["inside", "embeddings", "box", "মা", "--count", "2"]) == 0
    assert capsys.readouterr().out == alone
