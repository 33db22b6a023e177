"""Output in Bangla: sentences with the figures from ``--json`` in the right digits, and help."""

import contextlib
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.speech import bangla, left_in_english, spoken, told

import kotha
from kotha.cli import language as speech
from kotha.cli.main import COMMANDS, main
from kotha.i18n.numbers import ascii_digits, bangla_digits

SIZES = ["--steps", "12", "--set", "n_layers=1", "d_model=32", "n_heads=2", "context_length=32"]
HELPED = [(), *((name,) for name in COMMANDS)]
HELPED += [(group, name) for group, known in COMMANDS.items() for name in known.get("commands", ())]


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "small"
    assert main(["train", str(data), "--out", str(out), *SIZES]) == 0
    return out


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A small demo in Bangla: its folder, its stdout and its stderr."""
    folder = tmp_path_factory.mktemp("demos") / "d"
    small = ["--documents", "100", "--vocab-size", "1000", "--minutes", "0.02"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        assert main(["demo", "--out", str(folder), *small, "--language", "bn"]) == 0
    return folder, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("words", HELPED, ids=" ".join)
def test_help_is_in_bangla(words: tuple[str, ...], capsys, monkeypatch) -> None:
    """Two consecutive English words indicate untranslated text; names, values and formats are single words."""
    monkeypatch.setenv("COLUMNS", "500")
    assert main([*words, "--help"]) == 0
    english = capsys.readouterr().out
    assert "Usage:" in english
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert main([*words, "--help"]) == 0
    shown = capsys.readouterr().out
    flag = re.compile(r"--[a-z]+(?:-[a-z]+)*")
    assert set(flag.findall(shown)) == set(flag.findall(english))
    ours = re.sub(r"^ব্যবহার:.*|`[^`]*`|\[না দিলে: [^]]*\]|Hugging Face|\([^)]*[*/][^)]*\)", "", shown, flags=re.MULTILINE)
    ours = re.sub(r"--[\w-]+( [A-Z]+)*|\b[A-Z][\w-]*|\S*[./=_:]\S*", "", ours)
    assert re.findall(r"[a-z]{2,} [a-z]{2,}", ours) == []
    assert "Parameters" not in shown and "required" not in shown and "choices" not in shown


MISTAKES = [
    (["trian"], "“trian” নামে কোনো কমান্ড নেই"),
    (["train"], "`train` কমান্ডে DATA দিতে হয়। দেখুন: kotha train --help"),
    (["plan", "--stps", "4"], "`--stps` নামে কোনো অপশন নেই"),
    (["train", "data", "--out", "x", "--steps", "many"], "`--steps` একটি পূর্ণসংখ্যা চায়; “many” চলবে না।"),
    (["inside", "lense"], "“lense” নামে কোনো কমান্ড নেই"),
    (["generate", "nowhere"], "nowhere নামে কোনো ফোল্ডার নেই। রানের ফোল্ডারের নাম দিন"),
    (["demo", "--documents", "5"], "--documents 5 দিলে টোকেনাইজারের শেখার মতো লেখা হয় না। অন্তত ১০০ দিন।"),
    (["export", "--to", "pdf", "--out", "x"], "`--to` “pdf” নেয় না"),
    (["card", "2024"], "2024 নামে কিছু নেই।"),
]


@pytest.mark.parametrize(
    ("words", "expected"), MISTAKES, ids=lambda each: " ".join(each) if isinstance(each, list) else ""
)
def test_usage_errors_in_bangla(words, expected, capsys, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(words)
    assert capsys.readouterr().err.isascii()
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert main(words) == code != 0
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith(f"kotha: {expected}") and shown.err.count("\n") == 1


def test_the_flag_overrides_the_variable_and_english_is_the_default(monkeypatch) -> None:
    assert speech.requested_language(["lessons"]) == "en"
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert speech.requested_language(["lessons"]) == "bn"
    assert speech.requested_language(["lessons", "--language", "en"]) == "en"
    monkeypatch.setenv("KOTHA_LANGUAGE", "en")
    assert speech.requested_language(["lessons", "--language=bn"]) == "bn"
    assert speech.requested_language(["corpus", "inspect", "x.txt", "--language", "bn"]) == "en", (
        "there it is the language of the corpus"
    )
    monkeypatch.setenv("KOTHA_LANGUAGE", "fr")
    assert speech.requested_language(["lessons"]) == "en"


def test_an_empty_language_variable_is_ignored(monkeypatch, capsys) -> None:
    assert main(["presets"]) == 0
    english = capsys.readouterr().out
    for nothing in ("", " "):
        monkeypatch.setenv("KOTHA_LANGUAGE", nothing)
        assert main(["presets"]) == 0 and capsys.readouterr().out == english
        assert main(["presets", "--language", "bn"]) == 0 and capsys.readouterr().out != english
    monkeypatch.setenv("KOTHA_LANGUAGE", "fr")
    assert main(["presets"]) == 2 and "'fr'" in capsys.readouterr().err


def test_the_language_ends_with_the_command() -> None:
    main(["lessons", "run", "nothing", "--language", "bn"])
    assert speech.current_language() == "en"


def test_english_does_not_load_a_catalogue() -> None:
    """Translation must not slow the startup in English."""
    code = (
        "from kotha.i18n.catalogue import catalogue; from kotha.cli.main import main; main(['trian']);"
        "assert catalogue.cache_info().currsize <= 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


def test_the_demo_in_bangla(demo: tuple[Path, str, str]) -> None:
    folder, out, err = demo
    headings = re.findall(r"^([০-৯])\. (.*?)  ", out, re.MULTILINE)
    assert [number for number, _ in headings] == list("১২৩৪৫৬৭") and headings[4][1] == "প্রশিক্ষণ"
    summary = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    score = kotha.load(folder / "run").evaluate(folder / "data")
    assert f"{bangla(summary['steps'])}টি ধাপে {bangla(summary['tokens'])}টি টোকেন পড়েছে" in out
    assert f"প্রতি বাইটে {bangla_digits(f'{score.bits_per_byte:.3f}')} বিট" in out
    proposed = out.split("এরপর যে তিনটি কাজ করে দেখতে পারেন:")[1].strip().splitlines()
    assert len(proposed) == 3 and all(line.endswith(" --language bn") for line in proposed)
    ours = re.split("এরপর যে তিনটি", re.sub(r"^  .*\n", "", out, flags=re.MULTILINE))[0]  # without quoted texts
    remarks = "\n".join(line for line in err.splitlines() if line.startswith("kotha: "))
    names = ("kotha unigram", "GPT-2 pattern", "GPT-2", "GPT", "unigram", "bpe", "kotha card")
    assert left_in_english(ours + remarks, str(folder), *names) == []


def test_training_output_in_bangla(data, tmp_path, capsys) -> None:
    run = tmp_path / "spoken"
    out, err = spoken(["train", str(data), "--out", str(run), *SIZES], capsys)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", out))
    assert cells["ধাপ"] == f"{summary['steps']:,}" and cells["টোকেন"] == f"{summary['tokens']:,}"
    assert cells["প্রতি বাইটে বিট"] == f"{summary['bits_per_byte']:.4f}" and cells["মাঝপথে থামানো"] == "না"
    assert f"যাচাই: {summary['bits_per_byte']:.4f} বিট/বাইট" in err and "হিসাব চলবে" in err
    assert left_in_english(out, str(run), run.name) == []
    assert f"{run / 'report.html'} (ব্রাউজারে খুলুন)" in out


def test_a_plan_has_the_figures_of_the_json(data, capsys) -> None:
    words = ["plan", "--preset", "bangla-58m", "--data", str(data), "--no-time"]
    plan = told(words, capsys)
    out, _ = spoken(words, capsys)
    cells = dict(re.findall(r"│ (.+?)\s+│\s+([\d,]+) │", out))
    parts = plan["parameters"]
    assert cells["মোট"] == f"{parts['total']:,}" and cells["অ্যাটেনশন"] == f"{parts['attention']:,}"
    names = ("bangla-58m: gpt", "kotha export", "gguf", "onnxruntime", "hf", "onnx", "web", "GPT2LMHeadModel", "gpt2")
    assert left_in_english(out, *names) == []


def test_tokenizer_and_prepare(data, tmp_path, capsys) -> None:
    tokenizer, stories = str(data.parent / "tok"), str(data.parent / "s.jsonl")
    words = ["tokenizer", "view", tokenizer, "নদীর ধারে"]
    tokens = told(words, capsys)["tokens"]
    out, _ = spoken(words, capsys)
    assert f"{bangla(len(tokens))}টি টোকেন। টোকেন-নম্বর: {' '.join(str(token['id']) for token in tokens)}" in out
    out, err = spoken(["prepare", stories, "--tokenizer", tokenizer, "--out", str(tmp_path / "d")], capsys)
    made = json.loads((tmp_path / "d" / "dataset.json").read_text(encoding="utf-8"))
    assert f"{made['splits']['train']['tokens']:,}" in out and "প্রশিক্ষণ" in out and "বাদ গেছে: কিছুই না" in out
    assert "টোকেনে ভাগ করা হচ্ছে …" in err and left_in_english(out, str(tmp_path / "d")) == []


def test_the_last_line_of_generate(run, capsys) -> None:
    words = ["generate", str(run), "আমি", "--tokens", "40", "--temperature", "0"]
    row = told(words, capsys)
    out, err = spoken(words, capsys)
    assert out == row["text"] + "\n", "the output of a model is not translated"
    assert err.startswith(f"kotha: {bangla(row['tokens'])}টি টোকেন, প্রতি সেকেন্ডে ")
    assert "টোকেনের সীমা এসে গেছে। প্রসঙ্গের দৈর্ঘ্য ৩২ টোকেন পেরোনোর পর মডেল লেখার শুরুটা ভুলে গেছে।" in err
    assert left_in_english(err) == []


def test_evaluate_has_the_figures_of_the_json(run, data, capsys, monkeypatch) -> None:
    words = ["evaluate", str(run), str(data)]
    score = told(words, capsys)
    out, err = spoken(words, capsys)
    for figure in ("loss_nats", "bits_per_byte", "bits_per_character"):
        assert f"{score[figure]:.4f}" in out
    assert f"{bangla(score['documents'])}টি ডকুমেন্টের {bangla(score['tokens'])}টি টোকেনে মাপা" in out
    assert int(ascii_digits(re.search(r"\(([০-৯,]+) বাইট", out)[1].replace(",", ""))) == score["bytes"]
    assert left_in_english(out, f"{data} (validation)", str(run), run.name) == [] and "মাপা হচ্ছে …" in err
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert told(words, capsys) == score, "JSON is the same in both languages"


def test_inside_has_the_figures_of_the_json(run, capsys) -> None:
    text = ["--text", "নদীর ধারে"]
    found = told(["inside", "lens", str(run), *text], capsys)
    out, _ = spoken(["inside", "lens", str(run), *text], capsys)
    last = found["layers"][-1]["positions"][-1]
    assert f"{last['best'][0]['text']} {last['best'][0]['probability']:.0%} (#{last['rank_of_answer']})" in out
    out, err = spoken(["inside", "attention", str(run), *text], capsys)
    assert "কে কার দিকে তাকায়" in out and "সবচেয়ে বেশি যেদিকে" in out
    assert err == "kotha: সব হেডের পাতা চাইলে `--html FILE` দিন।\n"
    found = told(["inside", "trace", str(run), *text], capsys)
    out, _ = spoken(["inside", "trace", str(run), *text], capsys)
    assert "কোন জায়গায় কী দেখা গেল" in out and f"{found['activations'][-1]['mean']:.4f}" in out


def test_documents_are_indexed(tmp_path, capsys) -> None:
    text, index = tmp_path / "village.txt", tmp_path / "v.index"
    text.write_text("মিনা থাকে পলাশপুর গ্রামে।\n\nতার ভাই রাজু থাকে ঢাকা শহরে।\n", encoding="utf-8")
    making = ["index", str(text), "--out", str(index)]
    out, _ = spoken(making, capsys)
    report = told(making, capsys)
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", out))
    counts = {"উৎস": report["sources"], "ডকুমেন্ট": report["documents"], "অনুচ্ছেদ": report["passages"]}
    assert cells == {name: f"{count:,}" for name, count in counts.items()}
    assert out.endswith(f"ডকুমেন্ট: {bangla(report['documents'])}টি যোগ হয়েছে\n")
    assert left_in_english(out, str(index)) == []
