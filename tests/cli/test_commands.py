"""The commands as a user types them: results on stdout, remarks on stderr, exit codes, no tracebacks."""

import contextlib
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kotha.cli.main import COMMANDS, main
from kotha.cli.terminal import print_json


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stories and a tokenizer, created by the commands."""
    folder = tmp_path_factory.mktemp("made with spaces")
    assert main(["corpus", "stories", "--documents", "150", "--out", str(folder / "stories.jsonl")]) == 0
    train = ["tokenizer", "train", str(folder / "stories.jsonl"), "--vocab-size", "1500", "--out", str(folder / "tok")]
    assert main(train) == 0
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize(
    ("word", "heavy"),
    [("--help", ["torch", "numpy", "tokenizers", "pyarrow", "regex"]), ("presets", ["torch"]), ("lessons", ["torch"])],
)
def test_help_and_lists_are_quick_and_load_nothing_heavy(word: str, heavy: list[str]) -> None:
    code = f"import sys; from kotha.cli.main import main; code = main([{word!r}]); "
    loaded = f"print(code, sorted(set({heavy}) & set(sys.modules)))"
    output = subprocess.check_output([sys.executable, "-c", code + loaded], text=True)
    assert output.strip().endswith("0 []")
    assert word != "--help" or all(name in output for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "wording"),
    [
        (["tokeniser"], "did you mean 'tokenizer'?"),
        (["tokenizer", "trian"], "did you mean 'train'?"),
        (["corpus", "stories", "--document", "3"], "did you mean '--documents'?"),
        (["prepare", "x", "--out", "y"], "kotha: prepare needs --tokenizer; see kotha prepare --help"),
        (["train", "x", "--minuts", "1"], "kotha: unknown option --minuts; did you mean '--minutes'?"),
        (["prepare", "x", "--vocab-size", "4"], "kotha: unknown option --vocab-size; known: --duplicates, "),
        (["train", "x", "--minutes", "1", "--out"], "kotha: --out needs a value"),
        (["plan", "--gpus"], "kotha: --gpus needs a value"),
        (["generate", "box", "--temperature"], "kotha: --temperature needs a value"),
        (["classify", "box"], "kotha: classify needs TEXT"),
        (["classify", "box", "আজ", " \n"], "kotha: a TEXT is empty; give some text"),
        (["evaluate", "box"], "kotha: evaluate needs PATH or --text"),
        (["tokenizer", "train", "x", "--out", "y", "--kind", "unigrm"], "unigram"),
        (["corpus", "stories", "--documents", "many"], "many"),
        (["corpus", "stories", "--documents", "0"], "use at least 1"),
        (["corpus", "stories", "--kind", "stroy"], "did you mean 'story'?"),
        (["corpus", "stories", "--out", "a.xml"], "must end in .jsonl or .txt"),
        (["tokenizer", "view", "tok", "\udcff"], "is not UTF-8"),
    ],
)
def test_usage_errors_say_what_to_do(capsys, arguments: list[str], wording: str) -> None:
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert wording in " ".join((out + err).split())
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "wording"),
    [
        (["corpus", "inspect", "nowhere.txt"], "nowhere.txt"),
        (["tokenizer", "view", "nowhere.json", "কথা"], "no tokenizer at nowhere.json"),
        (["prepare", "nowhere.txt", "--tokenizer", "nowhere.json", "--out", "z"], "nowhere"),
        (["tokenizer", "train", "nowhere/*.txt", "--out", "y"], "nowhere"),
    ],
)
def test_failure_is_one_line_and_exit_code_one(
    capsys, monkeypatch, tmp_path, arguments: list[str], wording: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith("kotha: ")
    assert wording in err
    assert list(tmp_path.iterdir()) == [], "an error leaves no files behind"


def test_corpus_problems_are_each_printed_once(capsys, tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    path.write_text('{"text": "এক"}\n{one\n{two\n', encoding="utf-8")
    code, _, err = run(capsys, "tokenizer", "train", str(path), "--out", str(tmp_path / "t"))
    assert code == 1
    assert err.count("line 2") == 1
    _, _, err = run(capsys, "corpus", "inspect", str(path))
    assert err.count("line 2") == err.count("line 3") == 1


def test_stories_go_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "corpus", "stories", "--documents", "3", "--seed", "5")
    assert code == 0
    assert "।" in out
    assert run(capsys, "corpus", "stories", "--documents", "3", "--seed", "5")[1] == out


def test_inspect_as_json_and_as_a_table(capsys, made: Path) -> None:
    path = str(made / "stories.jsonl")
    report = json.loads(run(capsys, "corpus", "inspect", path, "--json")[1])
    wanted = {"documents", "bytes", "characters", "words", "duplicates", "language_share", "normalization"}
    assert wanted <= report.keys()
    assert (report["documents"], report["language_share"]) == (150, 1.0)
    assert "150" in run(capsys, "corpus", "inspect", path)[1]


def test_card_compares_and_writes_a_page(capsys, made: Path) -> None:
    arguments = ["tokenizer", "card", str(made / "tok"), "--text", str(made / "stories.jsonl")]
    code, out, _ = run(capsys, *arguments, "--json", "--html", str(made / "card.html"))
    found = json.loads(out)
    assert code == 0
    keys = {"vocab_size", "tokens_per_word", "bytes_per_token", "unknown_rate", "split_aksharas", "round_trip"}
    assert keys <= found.keys()
    assert found["round_trip"] == 1.0
    (caution,) = found["compared_with"]
    assert caution["tokens_per_word"] > found["tokens_per_word"]
    assert (made / "card.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "GPT-2 pattern" in run(capsys, *arguments)[1]
    assert "GPT-2 pattern" not in run(capsys, *arguments, "--no-caution")[1]


def test_view_shows_the_tokens(capsys, made: Path) -> None:
    code, out, _ = run(capsys, "tokenizer", "view", str(made / "tok"), "নদীর ধারে")
    assert code == 0
    assert "নদী" in out.replace("│", "")
    assert json.loads(run(capsys, "tokenizer", "view", str(made / "tok"), "নদীর", "--json")[1])["text"] == "নদীর"


def test_import_keeps_ids(capsys, made: Path, tmp_path: Path) -> None:
    code, out, _ = run(capsys, "tokenizer", "import", str(made / "tok"), "--out", str(tmp_path), "--json")
    assert code == 0
    again = run(capsys, "tokenizer", "import", str(tmp_path / "tokenizer.json"), "--out", str(tmp_path / "b"), "--json")
    assert json.loads(out)["fingerprint"] == json.loads(again[1])["fingerprint"]


def test_prepare_reports_and_guards(capsys, made: Path, tmp_path: Path) -> None:
    arguments = ["prepare", str(made / "stories.jsonl"), "--tokenizer", str(made / "tok"), "--out", str(tmp_path / "d")]
    report = json.loads(run(capsys, *arguments, "--json")[1])
    assert report["train_documents"] + report["validation_documents"] + report["leaked"] == 150
    assert report["train_tokens"] > report["validation_tokens"] > 0
    code, _, err = run(capsys, *arguments)
    assert code == 1
    assert "--overwrite" in err
    assert run(capsys, *arguments, "--overwrite")[0] == 0
    code, _, err = run(capsys, *arguments, "--overwrite", "--validation", "half")
    assert code == 1
    assert "half does not exist" in err


def test_an_existing_tokenizer_is_replaced_only_with_overwrite(capsys, made: Path) -> None:
    saved, stories = made / "tok" / "tokenizer.json", made / "stories.jsonl"
    before = saved.read_bytes()
    for words in (["train", str(stories), "--vocab-size", "600"], ["import", str(saved)]):
        assert main(["tokenizer", *words, "--out", str(made / "tok")]) == 1
        assert "exists; choose another folder, or replace it with --overwrite" in capsys.readouterr().err
    assert saved.read_bytes() == before
    assert main(["tokenizer", "import", str(saved), "--out", str(made / "tok"), "--overwrite"]) == 0


def test_a_closed_pipe_gives_no_traceback() -> None:
    command = f"{sys.executable!r} -m kotha corpus stories --documents 3000 | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=False)
    assert len(done.stdout) == 10
    assert b"Traceback" not in done.stderr


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="Linux has a file whose first page nobody can read")
@pytest.mark.parametrize(("language", "expected"), [("en", "Input/output error"), ("bn", "ডিস্ক থেকে পড়তে")])
def test_a_read_error_names_the_file(capsys, tmp_path: Path, language: str, expected: str) -> None:
    (tmp_path / "texts.txt").write_text("কথা\n", encoding="utf-8")
    (tmp_path / "tokenizer.json").symlink_to("/proc/self/mem")
    words = ["prepare", str(tmp_path / "texts.txt"), "--tokenizer", str(tmp_path), "--out", str(tmp_path / "data")]
    assert main([*words, "--language", language]) == 1
    output = capsys.readouterr().err
    assert f"{tmp_path / 'tokenizer.json'}: {expected}" in output
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    "words",
    [["--help"], ["corpus", "stories", "--documents", "3"], ["presets", "--json"]],
    ids=["help", "text", "json"],
)
@pytest.mark.parametrize("full", ["stdout", "both"])
def test_a_full_disk_on_stdout_gives_one_line(words: list[str], full: str) -> None:
    with Path("/dev/full").open("w") as disk:
        streams = {"stdout": disk, "stderr": disk if full == "both" else subprocess.PIPE}
        buffered = {**os.environ, "PYTHONUNBUFFERED": ""}  # Python flushes its buffers at exit
        done = subprocess.run([sys.executable, "-m", "kotha", *words], **streams, env=buffered, text=True, check=False)
    assert done.returncode == 1
    if full == "stdout":
        assert done.stderr == "kotha: the output could not be written: No space left on device\n"


def test_json_output_has_no_nan_or_infinity(capsys: pytest.CaptureFixture[str]) -> None:
    found = {"nan": math.nan, "deep": [{"infinity": (math.inf, -math.inf, 1.5)}], "text": "NaN"}
    print_json(found)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    read = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert read == {"nan": None, "deep": [{"infinity": [None, None, 1.5]}], "text": "NaN"}


def test_no_garbage_collection_at_exit() -> None:
    """A garbage collection with torch loaded takes half a second, so all objects are frozen."""
    code = "import gc, sys; from kotha.cli import run; sys.argv = ['kotha', 'presets', '--json']; run()"
    counted = f"{code}; print(gc.get_freeze_count(), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", counted], capture_output=True, text=True, check=True)
    assert int(done.stderr) > 0


@pytest.mark.parametrize(
    "words",
    [
        ["inside", "heads", "nowhere", "--html"],
        ["inside", "flow", "nowhere", "--text", "ক", "--html"],
        ["inside", "embeddings", "nowhere", "--map"],
        ["inside", "worksheet", "--run", "nowhere", "--xlsx"],
        ["compare", "nowhere", "--html"],
        ["plan", "--preset", "nothing", "--html"],
        ["tokenizer", "card", "nowhere", "--text", "nothing", "--html"],
    ],
    ids=" ".join,
)
def test_an_unwritable_page_is_rejected_before_any_work(capsys, tmp_path: Path, words: list[str]) -> None:
    """Other errors are detected later, so they must not be reported first."""
    taken = tmp_path / "notes.txt"
    taken.write_text("mine", encoding="utf-8")
    kind = ".xlsx" if words[-1] == "--xlsx" else ".html"
    for name, wording in (
        (taken, f"notes.txt exists and is not a {kind} file; choose another name"),
        (tmp_path, "is a folder; specify a file in it"),
        (taken / "a.html", "notes.txt is a file, not a folder"),
        (tmp_path / ("a" * 300), "cannot be written: File name too long"),
    ):
        code, out, err = run(capsys, *words, str(name))
        assert (code, out) == (2, "") and wording in err
    assert taken.read_text(encoding="utf-8") == "mine"


def test_an_invalid_output_path_is_rejected_before_training_a_tokenizer(capsys, made: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    code, _, err = run(capsys, "tokenizer", "train", "nothing.jsonl", "--out", str(tmp_path / "taken"))
    assert code == 2 and "taken is a file, not a folder" in err


def test_an_empty_list_is_shown_as_no_default(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "()" not in shown and "[default: modern]" in shown


@pytest.mark.parametrize("words", ["train data", "finetune classify moods.csv --from box"])
@pytest.mark.parametrize(("given", "flag"), [("out=other", "--out"), ("resume=true", "--resume")])
def test_options_cannot_be_given_with_set(
    words: str, given: str, flag: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = tmp_path / "more.toml"
    config.write_text(given.replace("other", "'other'") + "\n", encoding="utf-8")
    for way in (["--set", given], ["--config", str(config)]):
        assert main([*words.split(), "--out", str(tmp_path / "run"), *way]) == 2
        assert f"{given.partition('=')[0]} is not a setting; use {flag}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "template"),
    [(OSError(5, "Input/output error", "a{b}"), "{where}: {why}"), (ValueError("odd {x}"), "{kind}: {why}")],
)
def test_errors_are_saved_as_messages(
    error: Exception, template: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(words: list[str]) -> None:
        raise error

    monkeypatch.setenv("KOTHA_ERROR_FILE", str(tmp_path / "error.json"))
    monkeypatch.setattr("kotha.cli.main._run", fail)
    with contextlib.nullcontext() if isinstance(error, OSError) else pytest.raises(ValueError, match="odd"):
        assert main([]) == 1
    result = json.loads((tmp_path / "error.json").read_text(encoding="utf-8"))
    assert result["template"] == template and "{" in result["text"]


def test_help_shows_the_docstring_with_its_paragraphs_rewrapped(capsys, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    assert main(["train", "--help"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert "Train a model on a data folder, a table of pairs, or images." in lines
    (line,) = (each for each in lines if "Ctrl-C" in each)
    assert line.startswith("The run folder contains") and line.endswith("--resume continues.")
