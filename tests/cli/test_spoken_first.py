"""What the commands that a learner meets first say in Bangla: the demo, presets, a corpus, models side by side."""

import contextlib
import io
import json
import re
from pathlib import Path

import pytest
from tests.speech import bangla, left_in_english, spoken, told

import kotha
from kotha.cli.main import main
from kotha.i18n.numbers import bangla_digits


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A small demo in Bangla: its folder, what it printed, what it remarked."""
    folder = tmp_path_factory.mktemp("demos") / "d"
    small = ["--documents", "100", "--vocab-size", "1000", "--minutes", "0.02"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        assert main(["demo", "--out", str(folder), *small, "--language", "bn"]) == 0
    return folder, out.getvalue(), err.getvalue()


def test_the_demo_says_what_it_does_and_what_came_out(demo: tuple[Path, str, str]) -> None:
    folder, out, _ = demo
    headings = re.findall(r"^([০-৯])\. (.*?)  ", out, re.MULTILINE)
    assert [number for number, _ in headings] == list("১২৩৪৫৬৭৮") and headings[5][1] == "প্রশিক্ষণ"
    data = json.loads((folder / "data" / "dataset.json").read_text(encoding="utf-8"))
    cells = dict(re.findall(r"│ (.+?)\s+│\s+([\d,]+) │", out))
    assert cells["টোকেন"] == f"{data['splits']['train']['tokens']:,}"
    summary = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    score = kotha.load(folder / "run").evaluate(folder / "data")
    assert f"{bangla(summary['steps'])}টি ধাপে {bangla(summary['tokens'])}টি টোকেন পড়েছে" in out
    assert f"আলাদা রাখা {bangla(score.documents)}টি লেখার সবগুলোয়" in out
    assert f"প্রতি বাইটে {bangla_digits(f'{score.bits_per_byte:.3f}')} বিট" in out
    proposed = out.split("এরপর যে তিনটি কাজ করে দেখতে পারেন:")[1].strip().splitlines()
    assert len(proposed) == 3 and all(line.endswith(" --language bn") for line in proposed)


def test_the_demo_leaves_no_english_sentence(demo: tuple[Path, str, str]) -> None:
    folder, out, err = demo
    ours = re.split("এরপর যে তিনটি", re.sub(r"^  .*\n", "", out, flags=re.MULTILINE))[0]  # but for what is quoted
    remarks = "\n".join(line for line in err.splitlines() if line.startswith("kotha: "))
    names = ("kotha unigram", "GPT-2 pattern", "GPT-2", "GPT", "unigram", "bpe", "kotha card")
    assert left_in_english(ours + remarks, str(folder), *names) == []
    assert "মডেল: " in remarks and "সূক্ষ্মতায়" in remarks, "the words of train are the demo's too"


def test_a_demo_that_cannot_be_made_is_told(tmp_path, capsys) -> None:
    assert main(["demo", "--documents", "5", "--language", "bn"]) == 2
    assert capsys.readouterr().err == ("kotha: `documents` = 5 হলে টোকেনাইজারের শেখার মতো লেখা থাকে না। অন্তত ১০০ দিন।\n")
    (tmp_path / "thesis.tex").touch()
    assert main(["demo", "--out", str(tmp_path), "--language", "bn"]) == 1
    assert "এখানে thesis.tex আছে, আগের কোনো ডেমো নেই।" in capsys.readouterr().err


def test_presets_have_the_figures_of_the_json(capsys) -> None:
    rows = told(["presets"], capsys)
    out, _ = spoken(["presets"], capsys)
    shown = [re.split(r"\s*│\s*", line.strip(" │")) for line in out.splitlines() if line.startswith("│")]
    assert [(name, count) for name, _, count, *_ in shown] == [(row["name"], f"{row['parameters']:,}") for row in rows]
    for row, (*_, sizes, purpose) in zip(rows, shown, strict=True):
        config = row["config"]
        assert f"× {config['d_model']}, হেড {config['n_heads']}টি" in sizes
        assert left_in_english(purpose, "GPT", "CPU") == [] and left_in_english(sizes) == []


def test_a_corpus_is_described(tmp_path, capsys, monkeypatch) -> None:
    """There ``--language`` names the language of the corpus, and ``KOTHA_LANGUAGE`` the reader's."""
    corpus = tmp_path / "c.jsonl"
    texts = [{"text": "নদীর ধারে গ্রাম।"}, {"text": "নদীর ধারে গ্রাম।"}, {"text": "The sea is wide."}, {"txt": "?"}]
    corpus.write_text("\n".join(json.dumps(each) for each in texts), encoding="utf-8")
    words = ["corpus", "inspect", str(corpus), "--language", "en"]
    report = told(words, capsys)
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert told(words, capsys) == report
    assert main(words) == 0
    shown = capsys.readouterr()
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", shown.out))
    assert cells["ইউনিকোড-চিহ্ন"] == f"{report['characters']:,}" and cells["হুবহু কপি"] == "1"
    assert cells["“en” ভাষার ডকুমেন্ট"] == f"{report['language_share']:.1%}"
    assert cells["লিপি"].startswith(f"বাংলা {report['script_shares']['Bengali']:.1%}, রোমান ")
    assert left_in_english(shown.out, str(corpus), "“en”") == []
    assert "4 নম্বর সারি: “text” নামে কোনো ঘর নেই, আছে txt; “txt” নিতে `--field txt` দিন।" in shown.err


def test_stories_and_questions_are_counted(tmp_path, capsys) -> None:
    _, err = spoken(["corpus", "stories", "--documents", "12", "--out", str(tmp_path / "s.jsonl")], capsys)
    assert f"kotha: ১২টি ডকুমেন্ট লেখা হয়েছে: {tmp_path / 's.jsonl'}\n" in err
    asked = tmp_path / "q.jsonl"
    _, err = spoken(["corpus", "questions", "--stories", "3", "--out", str(asked)], capsys)
    count = len(asked.read_text(encoding="utf-8").splitlines())
    assert err == f"kotha: ৩টি গল্প নিয়ে {bangla(count)}টি প্রশ্ন লেখা হয়েছে: {asked}\n"
    assert main(["corpus", "stories", "--kind", "stry", "--language", "bn"]) == 2
    assert "“stry” নামে কোনো ধরনের ডকুমেন্ট নেই। “story” লিখতে চেয়েছিলেন?" in capsys.readouterr().err


def test_models_side_by_side_have_the_figures_of_the_json(demo, capsys) -> None:
    run = str(demo[0] / "run")
    words = ["compare", run, "box", "--text", str(demo[0] / "held-out.jsonl")]
    found = told(words, capsys)
    out, err = spoken(words, capsys)
    assert out.startswith(f"২টি মডেল পাশাপাশি, একই লেখায় মাপা: {demo[0]}")
    for row in found["rows"]:
        assert f"{row['parameters']:,}" in out and f"{row['bits_per_byte']:.4f}" in out
    assert "যাচাইয়ের জন্য রাখা ছিল" in out and "পারপ্লেক্সিটি বাদ: মডেলগুলোর টোকেনাইজার ২টি" in out
    names = [each for row in found["rows"] for each in (row["name"], row["tokenizer"][:8], row["model"])]
    assert left_in_english(out, str(demo[0]), *names) == []
    assert err == "kotha: মাপা হচ্ছে: run …\nkotha: মাপা হচ্ছে: box …\n"


def test_trainings_side_by_side(demo, capsys) -> None:
    run = str(demo[0] / "run")
    out, err = spoken(["compare", run, run], capsys)
    assert out.startswith("২টি মডেল পাশাপাশি, প্রতিটির প্রশিক্ষণের নিজের মাপে") and "কোনোটিকে সেরা বলা হয়নি" in out
    assert err == "kotha: সবগুলোকে একই লেখায় মাপতে চাইলে `--text FILE` দিন।\n"
    assert main(["compare", "box", "--language", "bn"]) == 2
    assert "`--text` দিয়ে একটি লেখা দিন; সেটিতে মাপা হবে।" in capsys.readouterr().err
