"""What learners' commands say in Bangla: the figures of ``--json``, in sentences with the digits of their kind."""

import json
import re
from pathlib import Path

import pytest
from tests.speech import bangla, left_in_english, spoken, told

from kotha.cli.main import main
from kotha.i18n.numbers import ascii_digits

SIZES = ["--steps", "12", "--set", "n_layers=1", "d_model=32", "n_heads=2", "context_length=32"]


@pytest.fixture(scope="module")
def run(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "small"
    assert main(["train", str(data), "--out", str(out), *SIZES]) == 0
    return out


def test_a_training_is_told_while_it_goes_on_and_at_its_end(data, tmp_path, capsys) -> None:
    run = tmp_path / "spoken"
    out, err = spoken(["train", str(data), "--out", str(run), *SIZES], capsys)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", out))
    assert cells["ধাপ"] == f"{summary['steps']:,}" and cells["টোকেন"] == f"{summary['tokens']:,}"
    assert cells["লস (ন্যাট)"] == f"{summary['loss_nats']:.4f}"
    assert cells["প্রতি বাইটে বিট"] == f"{summary['bits_per_byte']:.4f}"
    assert cells["মাঝপথে থামানো"] == "না"
    assert f"যাচাই: {summary['bits_per_byte']:.4f} বিট/বাইট" in err and "হিসাব চলবে" in err
    assert left_in_english(out, str(run), run.name) == []
    assert f"{run / 'report.html'} (ব্রাউজারে খুলুন)" in out


def test_a_design_is_told_with_its_figures(data, tmp_path, capsys) -> None:
    run = tmp_path / "designed"
    _, err = spoken(["train", str(data), "--out", str(run), "--minutes", "0.05"], capsys)
    about = json.loads((run / "config.json").read_text(encoding="utf-8"))
    [line] = [line for line in err.splitlines() if "মডেল:" in line]
    width, layers = about["model"]["d_model"], about["model"]["n_layers"]
    assert f"{bangla(layers)}টি স্তর, প্রস্থ {bangla(width)}, প্যারামিটার" in line
    assert f"{about['training']['batch_size']} × {about['training']['context_length']} টোকেন" in line
    assert left_in_english(line) == []


def test_a_plan_has_the_figures_of_the_json(data, capsys) -> None:
    words = ["plan", "--preset", "bangla-58m", "--data", str(data), "--no-time"]
    plan = told(words, capsys)
    out, _ = spoken(words, capsys)
    cells = dict(re.findall(r"│ (.+?)\s+│\s+([\d,]+) │", out))
    parts = plan["parameters"]
    assert cells["মোট"] == f"{parts['total']:,}" and cells["অ্যাটেনশন"] == f"{parts['attention']:,}"
    assert cells["একটি হেডে"] == f"{parts['attention_per_head']:,}"
    lakhs = f"{plan['tokens'] / 1e5:.3g}".translate(str.maketrans("0123456789", "০১২৩৪৫৬৭৮৯"))
    assert f"{bangla(plan['steps'])}টি ধাপে {lakhs} লাখ টোকেন পড়া হবে, অর্থাৎ পুরো ডেটা " in out
    assert f"{plan['tokens_per_step']:,}টি টোকেন" in out, "a sentence with a power of ten has Latin digits"
    assert "লাখটি" not in out and "কোটিটি" not in out
    names = ("bangla-58m: gpt", "kotha export", "gguf", "onnxruntime", "hf", "onnx", "web", "GPT2LMHeadModel", "gpt2")
    assert left_in_english(out, *names) == []


def test_a_design_is_given_with_its_reasons(data, capsys) -> None:
    words = ["plan", "--minutes", "0.05", "--data", str(data)]
    out, _ = spoken(words, capsys)
    prose = out.split("নকশা: gpt")[0]
    names = ("modern", "RMSNorm", "SwiGLU", "QK-norm", " x ")
    assert left_in_english(prose, *names) == [] and "যে নকশা দেওয়া হলো" in prose
    starts = {line.index("  ", 2) for line in prose.splitlines() if line.startswith("  ড্রপআউট")}
    assert len(starts) == 1
    assert "চালাতে চাইলে:\n  kotha train" in out


def test_a_text_is_cut_and_prepared(data, tmp_path, capsys) -> None:
    tokenizer, stories = str(data.parent / "tok"), str(data.parent / "s.jsonl")
    words = ["tokenizer", "view", tokenizer, "নদীর ধারে"]
    tokens = told(words, capsys)["tokens"]
    out, _ = spoken(words, capsys)
    ids = " ".join(str(token["id"]) for token in tokens)
    assert f"{bangla(len(tokens))}টি টোকেন। টোকেন-নম্বর: {ids}" in out

    out, err = spoken(["prepare", stories, "--tokenizer", tokenizer, "--out", str(tmp_path / "d")], capsys)
    made = json.loads((tmp_path / "d" / "dataset.json").read_text(encoding="utf-8"))
    assert f"{made['splits']['train']['tokens']:,}" in out and "প্রশিক্ষণ" in out and "বাদ গেছে: কিছুই না" in out
    assert "টোকেনে ভাগ করা হচ্ছে …" in err
    assert left_in_english(out, str(tmp_path / "d")) == []

    out, _ = spoken(["tokenizer", "train", stories, "--vocab-size", "600", "--out", str(tmp_path / "t")], capsys)
    assert out.startswith("unigram টোকেনাইজার, টোকেন ৬০০টি। রাখা হয়েছে: ")


def test_writing_ends_with_how_much_and_why(run, capsys) -> None:
    words = ["generate", str(run), "আমি", "--tokens", "40", "--temperature", "0"]
    row = told(words, capsys)
    out, err = spoken(words, capsys)
    assert out == row["text"] + "\n", "what a model writes is nobody's to translate"
    assert err.startswith(f"kotha: {bangla(row['tokens'])}টি টোকেন, প্রতি সেকেন্ডে ")
    assert "এর বেশি চাওয়া হয়নি। প্রসঙ্গের দৈর্ঘ্য ৩২ টোকেন পেরোনোর পর মডেল লেখার শুরুটা ভুলে গেছে।" in err
    assert left_in_english(err) == []


def test_a_measurement_has_the_figures_of_the_json(run, data, capsys) -> None:
    words = ["evaluate", str(run), str(data)]
    score = told(words, capsys)
    out, err = spoken(words, capsys)
    for figure in ("loss_nats", "bits_per_byte", "bits_per_character"):
        assert f"{score[figure]:.4f}" in out
    assert f"{bangla(score['documents'])}টি ডকুমেন্টের {bangla(score['tokens'])}টি টোকেনে মাপা" in out
    assert "মডেলটি কি এই লেখা থেকে শিখেছে? না, যাচাইয়ের জন্য রাখা ছিল।" in out
    assert int(ascii_digits(re.search(r"\(([০-৯,]+) বাইট", out)[1].replace(",", ""))) == score["bytes"]
    assert left_in_english(out, str(data), str(run), run.name) == [] and "মাপা হচ্ছে …" in err


def test_a_measurement_on_changed_text_has_the_figures_of_the_json(run, data, tmp_path, capsys) -> None:
    text = tmp_path / "some.txt"
    text.write_text("নদীর ধারে ১২টি বাড়ি। গ্রামের পথে ছেলেটি রোজ হাঁটে।\n", encoding="utf-8")
    kinds = ["spelling", "typos", "latin", "digits", "punctuation", str(text)]
    words = ["evaluate", str(run), str(text), "--perturb", *kinds]
    found = told(words, capsys)
    out, _ = spoken(words, capsys)
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if line.startswith("│")]
    assert rows[0][:2] == ["যেমন আছে", f"{found['before']:.4f}"]
    for row, fall in zip(rows[1:], found["falls"], strict=True):
        assert fall["kind"] in row[0] and row[1:3] == [f"{fall['after']:.4f}", f"{fall['change']:+.1%}"]
        assert row[3] == ("অন্য লেখা" if fall["changed_words"] is None else f"{fall['changed_words']:.0%}")
    assert "প্রতি শব্দে বিট: যত কম, তত ভালো। যে ধরনে শব্দ ধরে ধরে বদল হয়, সেখানে বদলেছে ২০% শব্দ (সিড ০)।" in out
    ours = out.replace(found["falls"][2]["example"], "")  # Bangla in Latin letters
    assert left_in_english(ours, str(run), run.name, str(text)) == []


def test_json_is_the_same_in_both_languages(run, data, capsys, monkeypatch) -> None:
    words = ["evaluate", str(run), str(data)]
    english = told(words, capsys)
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert told(words, capsys) == english


def test_the_doctor_s_remarks_are_in_the_language_of_his_findings(run, tmp_path, capsys) -> None:
    out, err = spoken(["doctor", str(run)], capsys)
    assert left_in_english(out + err, str(run)) == []


def test_a_look_inside_has_the_figures_of_the_json(run, capsys) -> None:
    text = ["--text", "নদীর ধারে"]
    found = told(["inside", "flow", str(run), *text], capsys)
    out, _ = spoken(["inside", "flow", str(run), *text], capsys)
    best = found["answers"][0]["best"][0]
    assert "এরপর কী আসবে" in out and re.search(rf"{re.escape(best['text'])}\s+│ +{best['probability']:.2%}", out)

    found = told(["inside", "lens", str(run), *text], capsys)
    out, _ = spoken(["inside", "lens", str(run), *text], capsys)
    last = found["layers"][-1]["positions"][-1]
    assert out.startswith("এরপর কী আসবে? (#: চূড়ান্ত উত্তরটি ওই স্তরে কত নম্বরে)")
    assert f"{last['best'][0]['text']} {last['best'][0]['probability']:.0%} (#{last['rank_of_answer']})" in out
    assert f"{last['entropy_nats']:.2f} │" in out

    out, err = spoken(["inside", "attention", str(run), *text], capsys)
    assert "কে কার দিকে তাকায়" in out and "সবচেয়ে বেশি যেদিকে" in out
    assert err == "kotha: সব হেডের পাতা চাইলে `--html FILE` দিন।\n"

    found = told(["inside", "trace", str(run), *text], capsys)
    out, _ = spoken(["inside", "trace", str(run), *text], capsys)
    assert "কোন জায়গায় কী দেখা গেল" in out and f"{found['places'][-1]['mean']:.4f}" in out


def test_heads_are_told_with_their_worth(run, data, capsys) -> None:
    words = ["inside", "heads", str(run), str(data.parent / "s.jsonl"), "--tokens", "200"]
    found = told(words, capsys)
    out, err = spoken(words, capsys)
    assert out.startswith(f"{bangla(len(found['heads']))}টি হেড, মাপা হয়েছে {bangla(found['tokens'])}টি টোকেন দিয়ে")
    for head in found["heads"]:
        assert f"{head['ablation_nats']:+.4f}" in out
        if re.fullmatch(r".*\d+% on (itself|the token before|punctuation); \d+% by chance", head["evidence"]):
            assert head["evidence"] not in out and "আন্দাজে" in out
    assert "না থাকলে: হেডটি নিষ্ক্রিয় করলে লস যত ন্যাট বাড়ে।" in out and "হেড নিষ্ক্রিয় করে দেখা হচ্ছে …" in err


def test_neighbours_of_a_word_and_the_cost_of_a_width(run, capsys) -> None:
    words = ["inside", "embeddings", str(run), "নদী"]
    found = told(words, capsys)
    out, _ = spoken(words, capsys)
    nearest = found["words"][0]["neighbours"][0]
    assert "সবচেয়ে কাছের" in out and f"{nearest['cosine']:.3f}" in out and "কোসাইন শূন্যের কাছে থাকে" in out
    out, _ = spoken(["inside", "embeddings", "--vocab-size", "32100", "--widths", "512"], capsys)
    assert out.startswith("৩২,১০০টি টোকেনের এমবেডিং") and "16,435,200" in out and "float32-এ MiB" in out
