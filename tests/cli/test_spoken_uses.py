"""What a model's uses say in Bangla: classes, gaps, translations, an index that is asked, judges."""

import io
import json
import re
from pathlib import Path

import pytest
import torch
from tests.prepared import write_pairs
from tests.speech import bangla, left_in_english, spoken, told

from kotha.artifacts import model_folder as bundle
from kotha.cli.main import main
from kotha.i18n.numbers import bangla_digits
from kotha.model.bert import BERT
from kotha.model.config import BERTConfig, GPTConfig
from kotha.model.gpt import GPT
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.text.tokenizer.trainers import train

SIZES = {"context_length": 256, "n_layers": 1, "d_model": 16, "n_heads": 2}


def refused(words: list[object], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says in Bangla when it refuses."""
    capsys.readouterr()
    assert main([*map(str, words), "--language", "bn"]) != 0
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("kotha: ")
    return shown.err.removeprefix("kotha: ").rstrip("\n")


@pytest.fixture(scope="module")
def base(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A GPT with fresh weights, and the tokenizer of the little data folder."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(data)
    return bundle.save(
        tmp_path_factory.mktemp("base") / "gpt", GPT(GPTConfig(vocab_size=tokenizer.vocab_size, **SIZES)), tokenizer
    )


def test_a_classifier_is_made_measured_and_asked(base, tmp_path, capsys) -> None:
    table, run = tmp_path / "t.jsonl", tmp_path / "kinds"
    assert main(["corpus", "stories", "--documents", "90", "--out", str(table)]) == 0
    lines = table.read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join([*lines, lines[0], lines[1]]), encoding="utf-8")
    made = ["adapt", "classify", table, "--from", base, "--out", run, "--text", "text", "--label", "kind"]
    out, err = spoken([*map(str, made), "--epochs", "1"], capsys)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    assert f"{summary['accuracy']:.4f}" in out and f"{summary['macro_f1']:.4f}" in out
    assert out.startswith(f"{bangla(summary['examples'])}টি নমুনা\n") and "সব সময় সবচেয়ে বড় শ্রেণি" in out
    for line in ("হুবহু কপি বলে ২টি লেখা বাদ গেছে।", "লেখা আছে “text” ঘরে, শ্রেণি “kind” ঘরে (যেমন বলা হয়েছে)।"):
        assert line in err
    names = (str(run), "story", "news", "entry", "“text”", "“kind”", "TF-IDF")
    assert left_in_english(out + err, *names) == []

    words = ["classify", str(run), "নদীর ধারে গ্রাম।"]
    best, share = next(iter(told(words, capsys)["probabilities"].items()))
    assert spoken(words, capsys) == (f"{best} {share:.1%}  " + out_rest(words, capsys), "")
    assert refused(["classify", base, "ক"], capsys) == (
        "এটি gpt মডেল, শ্রেণি নির্ণয় করতে শেখেনি। `kotha adapt classify` দিয়ে শেখান।"
    )
    assert "দেখুন: kotha classify --help" in refused(["classify", run], capsys)
    assert refused(["classify", run, ""], capsys).startswith("লেখাটি ফাঁকা, তাই কোনো শ্রেণি বলা যায় না।")
    assert "`--from MODEL` দিন" in refused(["adapt", "classify", "--out", tmp_path / "other"], capsys)
    new = [*made[:5], "--out", tmp_path / "other"]
    assert "০.০৫ থেকে ০.৪ পর্যন্ত দিন।" in refused([*new, "--held-out", "0.9"], capsys)


def out_rest(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What stands behind the best class, as English has it: there is nothing of ours to say."""
    assert main(words) == 0
    return capsys.readouterr().out.split("  ", 1)[1]


def test_a_model_that_was_taught_to_answer(base, tmp_path, capsys) -> None:
    questions, run = tmp_path / "q.jsonl", tmp_path / "taught"
    assert main(["corpus", "questions", "--stories", "30", "--out", str(questions)]) == 0
    made = ["adapt", "instruct", questions, "--from", base, "--out", run, "--epochs", "1"]
    out, err = spoken([*map(str, made), "--set", "evaluate_every=100"], capsys)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", out))
    assert cells["ঠিক উত্তর"] == f"{summary['right']:.1%} ({summary['low']:.1%} থেকে {summary['high']:.1%})"
    assert cells["শেখানোর আগে"] == f"{summary['before']['right']:.1%}"
    assert cells["প্রশ্ন"] == f"{summary['examples']}, কথোপকথনের ধরনে করা"
    assert f"শেখানোর আগে না-দেখা {bangla(summary['examples'])}টি প্রশ্নের " in err
    ours = out.split("│ প্রশ্ন ")[0]  # what follows is asked and written
    assert (
        left_in_english(
            ours + "\n".join(re.findall("^kotha: .*", err, re.MULTILINE)), str(run), "instruction", "answer"
        )
        == []
    )
    other = tmp_path / "other.jsonl"
    other.write_text('{"a": "ক", "b": "খ"}\n', encoding="utf-8")
    said = refused(["adapt", "instruct", other, "--from", base, "--out", tmp_path / "z"], capsys)
    assert said.startswith(f"{other}: ঘরগুলো হলো a, b; কোনটি নির্দেশ আর কোনটি উত্তর, বোঝা যায়নি।")


def test_gaps_are_filled(tmp_path, capsys) -> None:
    tokenizer = train(["নদীর ধারে মা থাকে। গ্রামের পথে ছেলেটি হাঁটে।"], "wordpiece", 512)
    torch.manual_seed(0)
    folder = bundle.save(tmp_path / "bert", BERT(BERTConfig(vocab_size=tokenizer.vocab_size, **SIZES)), tokenizer)
    words = ["fill", str(folder), "নদীর [MASK] মা [MASK]"]
    found = told(words, capsys)
    out, err = spoken(words, capsys)
    assert err == "" and [line for line in out.splitlines() if "নম্বর" in line] == [
        "১ নম্বর ফাঁকা জায়গা",
        "২ নম্বর ফাঁকা জায়গা",
    ]
    assert f"{found['words'][0][0]['probability']:.1%}" in out
    follows = ["fill", str(folder), "নদীর ধারে", "--next", "মা থাকে"]
    chance = bangla_digits(f"{told(follows, capsys)['follows']:.1%}")
    assert spoken(follows, capsys)[0] == f"দ্বিতীয় বাক্যটি প্রথমটির পরে আসার সম্ভাবনা {chance}\n"
    assert refused(["fill", folder, "নদীর"], capsys).endswith("যেখানে শব্দ নেই, সেখানে [MASK] লিখুন।")
    assert refused(["fill", "box", "[MASK]"], capsys) == "box একটি gpt মডেল। ফাঁকা জায়গা পূরণ করে শুধু BERT।"


def test_a_translator_is_made_measured_and_asked(tmp_path, capsys) -> None:
    pairs, run = write_pairs(tmp_path / "pairs.tsv", 60), tmp_path / "run"
    sizes = ["d_model=32", "n_heads=2", "d_ff=64", "n_layers=1", "context_length=32", "vocab_size=700", "batch_size=8"]
    made = ["train", pairs, "--out", run, "--reverse", "--preset", "pocket-seq2seq", "--steps", "2", "--set", *sizes]
    out, err = spoken([*map(str, made)], capsys)
    assert "“bn” ঘরের লেখা থেকে “en” ঘরের অনুবাদ শেখা হবে (লেখা দেখে আন্দাজ করা)" in err
    assert "প্রশিক্ষণের জন্য ৫৪টি জোড়া, যাচাইয়ের জন্য ৩টি জোড়া, শেষে মাপার জন্য ৩টি জোড়া।" in err
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", out))
    assert cells["যাচাইয়ে লস (ন্যাট)"] == f"{summary['validation']['loss_nats']:.4f}"
    assert "“bn” থেকে অনুবাদ, মেলানো হয়েছে “en”-এর সঙ্গে।" in out and f"{summary['chrf']:.2f}" in out
    measured = re.sub(r"(BLEU|chrF\+\+): nrefs.*", "", out)  # signatures are for programs
    assert left_in_english(measured, str(run), "BLEU", "chrF++", "“bn”", "“en”") == []

    words = ["translate", str(run), "আমি ভাত খাই"]
    assert spoken(words, capsys) == (told(words, capsys)["text"] + "\n", "")
    assert refused(["translate", run], capsys).startswith("কী অনুবাদ করা হবে, দিন:")
    assert refused(["translate", "box", "ক"], capsys) == "box একটি gpt মডেল। অনুবাদ করে শুধু Seq2Seq।"
    assert refused([*words, "--beams", "0"], capsys) == "`beams` = 0 চলবে না। ১ বা বেশি দিন; সাধারণত ৪ দেওয়া হয়।"


def test_documents_are_indexed_and_asked(tmp_path, capsys) -> None:
    text, index = tmp_path / "village.txt", tmp_path / "v.index"
    text.write_text("মিনা থাকে পলাশপুর গ্রামে।\n\nতার ভাই রাজু থাকে ঢাকা শহরে।\n", encoding="utf-8")
    making = ["index", str(text), "--out", str(index)]
    out, err = spoken(making, capsys)
    report = told(making, capsys)
    cells = dict(re.findall(r"│ (.+?)\s+│\s+(.+?) │", out))
    counts = {"উৎস": report["sources"], "ডকুমেন্ট": report["documents"], "অনুচ্ছেদ": report["passages"]}
    assert cells == {name: f"{count:,}" for name, count in counts.items()} and err == "kotha: সূচি তৈরি হচ্ছে …\n"
    assert out.endswith(f"ডকুমেন্ট: {bangla(report['documents'])}টি যোগ হয়েছে\n")
    assert left_in_english(out, str(index)) == []

    asking = ["ask", "মিনার ভাই কোথায় থাকে?", "--index", str(index)]
    found = told(asking, capsys)
    out, err = spoken(asking, capsys)
    assert out.endswith(f"\n{found['answer']}\n") and f"[1] {found['passages'][0]['score']:.3f}" in out
    assert ", সারি " in out and err.startswith("kotha: উত্তর লেখার জন্য মডেলের নাম দেওয়া হয়নি")
    out, err = spoken(["ask", "where is he?", "--index", str(index)], capsys)
    assert out == "\nএই ডকুমেন্টগুলোতে উত্তর পাওয়া যায়নি।\n"
    assert err == "kotha: প্রশ্নটি রোমান হরফে, ডকুমেন্টগুলো বাংলা হরফে। ডকুমেন্টের হরফে প্রশ্ন করুন।\n"
    assert refused(["ask", "কে?", "--index", tmp_path / "none"], capsys).startswith(
        f"{tmp_path / 'none'} নামে কোনো সূচি নেই।"
    )
    assert refused([*asking, "--limit", "0"], capsys) == "`limit` = 0 দিলে কিছুই চাওয়া হয় না। ১ বা বেশি দিন।"
    assert "`--by words` দিন।" in refused(["ask", "box", "কে?", "--index", index, "--by", "meaning"], capsys)


def test_a_judge_is_asked_and_told_who_won(tmp_path, capsys, monkeypatch) -> None:
    tokenizer = train(["নদীর ধারে মা থাকে। পাঁচটি আম।"], "char", level="akshara")
    models = []
    for seed in range(2):
        torch.manual_seed(seed)
        made = GPT(GPTConfig(vocab_size=tokenizer.vocab_size, **SIZES))
        models.append(str(bundle.save(tmp_path / f"model-{seed}", made, tokenizer)))
    prompts, folder = tmp_path / "p.txt", str(tmp_path / "j")
    prompts.write_text("নদীর\nমা\n", encoding="utf-8")
    how = ["--out", folder, "--judge", "মিনা"]
    monkeypatch.setattr("sys.stdin", io.StringIO("কী?\n১\nq\n"))
    out, err = spoken(["judge", *models, "--prompts", str(prompts), *how, "--tokens", "6"], capsys)
    assert "২টির মধ্যে ১ নম্বর: " in out and "\n১: " in out and "\n২: " in out
    assert "kotha: প্রথমটি ভালো হলে ১, দ্বিতীয়টি হলে ২, সমান হলে ০, থামতে q:" in err
    assert f"kotha: ১টি জোড়া বাকি। আবার চালাতে লিখুন: kotha judge --out {folder} --judge 'মিনা'" in err
    monkeypatch.setattr("sys.stdin", io.StringIO("0\n"))
    out, _ = spoken(["judge", *how], capsys)
    result = told(["judge", "--out", folder], capsys)
    best, meeting = result["standings"][0], result["meetings"][0]
    assert f"{best['strength']:+.2f} │ {best['low']:+.2f} থেকে {best['high']:+.2f}" in out
    assert f"{meeting['chance']:.0%} ({meeting['low']:.0%} থেকে {meeting['high']:.0%})" in out
    assert "মিনা ২টির মধ্যে ২টির বিচার করেছেন" in out
    assert left_in_english(out.split("┏", 1)[1], *models, "Bradley–Terry") == []
    said = refused(["judge", "--out", tmp_path / "none"], capsys)
    assert said.endswith("মডেলের নাম আর `--prompts` দিয়ে শুরু করুন।")
