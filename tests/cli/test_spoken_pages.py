"""Pages without script in Bangla: the figures of the English page, no English sentence, and English as it was."""

import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.speech import bangla, left_in_english
from tests.studio.test_words import FORMULA, NAMES

import kotha
from kotha.api.bench.growth import STARTS, Cost, Growth, grown_models
from kotha.cli.main import main
from kotha.cli.spoken import speaking
from kotha.evaluation.classes_page import classes_page
from kotha.evaluation.classification import score_answers
from kotha.evaluation.text_score import score_table
from kotha.evaluation.translation import TranslationScore
from kotha.evaluation.translation_page import translations_page
from kotha.i18n.numbers import ascii_digits, bangla_digits
from kotha.text.corpus.pairs import TextPairs
from kotha.training.show.report import report_page
from kotha.training.sweep.findings import SweepFindings, Trial
from kotha.training.sweep.page import sweep_page

# What people, models and files say: passages, tokens, commands, settings, and words that were translated.
THEIRS = r'<(pre|dl|style)>.*?</\1>|<div class="story".*?</div>|<p class="pieces".*?</p>|<td class="words">.*?</td>'
NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)( ?(?:k|M|G|million|হাজার|লাখ|কোটি)(?![A-Za-z]))?")
UNITS = {"": 1, "k": 1e3, "হাজার": 1e3, "লাখ": 1e5, "M": 1e6, "million": 1e6, "কোটি": 1e7, "G": 1e9}
KNOWN = ("chrF++", "BLEU", "TF-IDF", "GPT-2 pattern", "GPT", "ln V", "ln K", "CPU", "Python", "torch", "UTF-8", "bpe")


def said(page: str) -> list[str]:
    """What a page says of its own, element by element."""
    assert page.count("<html lang=") == 1
    own = re.sub(THEIRS, "", page, flags=re.DOTALL)
    return [html.unescape(text).strip() for text in re.findall(r">([^<]+)<", own) if text.strip()]


def numbers(page: str) -> list[str]:
    """All figures of a page, whichever digits and units they have."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", ascii_digits(" ".join(said(page))))
    return sorted(f"{float(number) * UNITS[unit.strip()]:.5g}" for number, unit in NUMBER.findall(plain))


def both(make: Callable[[], str]) -> tuple[str, str]:
    """A page in English and in Bangla, after which English is what it was."""
    with speaking(["train"]):
        english = make()
    with speaking(["train", "--language", "bn"]):
        spoken = make()
    assert make() == english and '<html lang="en">' in english and '<html lang="bn">' in spoken
    return english, spoken


def hold(english: str, spoken: str, *names: str) -> None:
    """The same figures in both, nothing left in English, and in a sentence digits of one kind."""
    assert numbers(spoken) == numbers(english)
    for text in said(spoken):
        assert left_in_english(text, *names, *KNOWN) == [], text
        for sentence in re.split(r"(?<=[।?])\s", text):
            bare = NAMES.sub("", sentence)
            latin, own = re.search(r"[0-9]", bare), re.search(r"[০-৯]", bare)
            assert not (latin and own), sentence
            assert not own or not FORMULA.search(sentence), sentence


METRICS = [
    *({"step": step, "loss_nats": 9 / step, "learning_rate": 1e-3, "gradient_norm": 1.5, "tokens_per_second": 21_000.0,
       "peak_share": 0.25, "tokens": 64 * step, "seconds": step * 1.0} for step in range(1, 31)),
    *({"step": step, "validation": {"loss_nats": loss, "bits_per_byte": loss / 3, "bits_per_character": loss},
       "sample": "নদীর ধারে"} for step, loss in ((5, 2.5), (10, 1.5), (15, 1.8), (20, 2.1), (30, 2.4))),
]  # fmt: skip
CONFIG = {
    "model": {"family": "gpt", "n_layers": 2, "d_model": 64, "tied_head": True, "dropout": None},
    "training": {"steps": 40, "gradient_clip": 1.0, "best_by": "loss", "sampling": "documents"},
    "references": {"ln V": 6.9, "unigram": 5.2},
    "floors": {"bits_per_byte": 0.4},
    "data": {"train_tokens": 123_456},
    "machine": {"cores": 2, "reason": "bfloat16 takes about 100 times as long here"},
    "predicted": {"memory_bytes": {"weights": 592_000, "base": 392_000_000, "total": 433e6}, "seconds": 64.0},
}
SUMMARY = {"steps": 30, "tokens": 1920, "seconds": 85.0, "peak_memory_bytes": 451e6, "device": "cpu", "best_step": 10}


def test_a_run_s_report() -> None:
    english, spoken = both(lambda: report_page(CONFIG, METRICS, SUMMARY))
    hold(english, spoken)
    assert "প্রশিক্ষণ: ৩০টি ধাপ, ১,৯২০টি টোকেন, লেখাটি ০.০১৬ বার পড়া, ৮৫ সেকেন্ড।" in spoken
    assert "মাঝপথে থামানো হয়েছে: হওয়ার কথা ছিল ৪০টি ধাপ। সবচেয়ে ভালো ফল ১০ নম্বর ধাপে:" in spoken
    assert "১০ নম্বর ধাপের পর মডেলটি প্রশিক্ষণের লেখা মুখস্থ করতে থাকে।" in spoken
    assert ">শেষ সীমা = 1.2<" in spoken or "শেষ সীমা = 0.4" in spoken, "a formula has Latin digits"
    assert "<td>মোট মেমরি</td><td>433 MB</td><td>451 MB</td><td>1.04</td>" in spoken
    assert "<td>সময়</td><td>64 সেকেন্ড</td><td>85 সেকেন্ড</td>" in spoken
    for pair in (
        "<dt>best_by</dt><dd>loss</dd>",
        "<dt>sampling</dt><dd>documents</dd>",
        "<dt>tied_head</dt><dd>হ্যাঁ</dd>",
    ):
        assert pair in spoken, "what is typed stays as it is typed"
    assert "<dt>best by</dt>" in english and "<dd>এখানে bfloat16-এ সময় লাগে প্রায় 100 গুণ</dd>" in spoken


@pytest.mark.parametrize(
    ("task", "figures"),
    [
        ("masked-words", {"loss_nats": 1.2}),
        ("classes", {"loss_nats": 0.3, "accuracy": 0.895, "majority": 0.579}),
        ("classes", {"loss_nats": None}),
    ],
)
def test_a_report_of_another_task_and_of_one_that_goes_on(task, figures) -> None:
    config = {**CONFIG, "task": task, "references": {"ln K": 0.7, "class frequencies": 0.68}, "floors": {}}
    hold(*both(lambda: report_page(config, [*METRICS[:30], {"step": 30, "validation": figures}], {})))
    hold(*both(lambda: report_page(config, METRICS[:3], {})))
    hold(*both(lambda: report_page({"model": {}}, [], {})))


def test_the_report_that_a_training_leaves(data: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    run = tmp_path / "small"
    sizes = ["n_layers=1", "d_model=32", "n_heads=2", "context_length=32"]
    monkeypatch.setenv("KOTHA_LANGUAGE", "bn")
    assert main(["train", str(data), "--out", str(run), "--steps", "12", "--set", *sizes]) == 0
    spoken = (run / "report.html").read_text(encoding="utf-8")
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    english = kotha.Run(run).report.read_text(encoding="utf-8")
    hold(english, spoken)
    assert f"প্রশিক্ষণ: {bangla(summary['steps'])}টি ধাপ, {bangla(summary['tokens'])}টি টোকেন" in spoken
    bits = bangla_digits(f"{summary['bits_per_byte']:.3f}")
    assert f"প্রতি বাইটে {bits} বিট লাগে" in spoken


@pytest.mark.parametrize("called", ["text", "image"])
def test_the_page_of_classes(called) -> None:
    labels = ("খেলা", "রাজনীতি")
    score = score_answers(
        labels, [labels[n % 2] for n in range(1234)], [labels[n % 2 * (n % 5 > 0)] for n in range(1234)]
    )
    simpler = {"accuracy": 0.5, "macro_f1": 0.333}
    score = replace(score, baselines={"majority": simpler, "TF-IDF + logistic regression": simpler})
    lead = f"Measured on 1,234 {called}s that were kept out of training and out of every choice."
    english, spoken = both(lambda: classes_page(score, "kinds: 2 classes", lead, called))
    hold(english, spoken, "kinds")
    assert f"<b>{bangla_digits(f'{score.macro_f1:.3f}')}</b>" in spoken
    assert f"<b>{bangla_digits(f'{score.accuracy:.1%}')}</b><span>না-দেখা ১,২৩৪টি" in spoken
    assert f"<td>{score.classes[0].recall:.3f}</td>" in spoken, "tables have Latin digits"


def test_the_page_of_translations() -> None:
    pairs = TextPairs(("আমি ভাত খাই",) * 120, ("reading, written, source",) * 120)
    score = TranslationScore(23.4, "nrefs:1", 45.6, "nrefs:1", 120, ("3 steps",) * 120, None, None)
    score = replace(score, baselines={"nearest neighbour": {"bleu": 3.2, "chrf": 21.1}})
    lead = "120 pairs that were kept out of training and out of every choice."
    english, spoken = both(lambda: translations_page(score, pairs, "run: translations", lead))
    hold(english, spoken, "run", "(signature)")
    assert "<b>৪৫.৬</b>" in spoken and "<b>২৩.৪</b>" in spoken and "১২০টি জোড়ার প্রথম ১০০টি।" in spoken
    for theirs in ("3 steps", "reading, written, source"):
        assert spoken.count(f'<td class="words">{theirs}</td>') == 100, "what was written stays as it was written"


def test_the_page_of_a_score() -> None:
    score = kotha.load().evaluate(["নদীর ধারে একটি গ্রাম।", "মা বাড়ি গেল।"])
    hold(*both(score_table(score, "box").page), score.text)


def test_the_page_of_a_sweep() -> None:
    kept = {"seed": 0}
    trials = [
        Trial(**_filled(Trial, name="trial 0", value=2.5, state="complete", values={"dropout": 0.1}, is_default=True,
                        curve=[(1, 3.0), (2, 2.5)])),
        Trial(**_filled(Trial, name="trial 1", value=2.4, state="complete", values={"dropout": 0.0}, is_default=False,
                        curve=[(1, 3.1), (2, 2.4)])),
        Trial(**_filled(Trial, name="trial 2", value=2.9, state="pruned", values={"dropout": 0.3}, is_default=False,
                        curve=[(1, 3.4), (2, 2.9)])),
    ]  # fmt: skip
    found = SweepFindings(
        **_filled(SweepFindings, trials=trials, importance={"dropout": 1.0}, default_values={"dropout": 0.1},
                  searched={"dropout": "0.0..0.3"}, unit="bits/byte", changes=kept, at_an_end=["dropout"])
    )  # fmt: skip
    hold(*both(lambda: sweep_page(found, "kotha train data")), "dropout")


def _filled(kind: type, **given: object) -> dict:
    return {**dict.fromkeys(kind.__dataclass_fields__), **given}


def test_the_page_of_growing_costs() -> None:
    start = STARTS["cpu"]
    costs = [
        Cost(name, size, 9e4 / place, 300_000_000 * place, 8e4 / place, 280_000_000 * place)
        for name, models in grown_models(start).items()
        for place, (size, _) in enumerate(models, 1)
    ]
    hold(*both(Growth(costs, start, {"processor": "Some CPU"}, "float32").page), "Some CPU")


def test_the_demo_s_report(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "demo"
    words = ["demo", "--out", str(folder), "--documents", "100", "--vocab-size", "1000", "--minutes", "0.02"]
    assert main([*words, "--language", "bn"]) == 0
    spoken = (folder / "report.html").read_text(encoding="utf-8")
    for text in said(spoken):
        assert left_in_english(text, *KNOWN) == [], text
    summary = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    assert f"মডেলটি {bangla(summary['tokens'])}টি টোকেন পড়েছে" in spoken
    told = re.search(r"প্রতি বাইটে ([০-৯.]+) বিট", capsys.readouterr().out)
    assert told is not None and f"<b>{told[1]}</b>" in spoken, "the figure of the terminal"
    assert '<html lang="bn">' in spoken and '<html lang="bn">' in (folder / "run" / "report.html").read_text("utf-8")
    assert spoken.count("--language bn") == 5, "commands go on in the same language"
