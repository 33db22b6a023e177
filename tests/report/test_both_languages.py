"""Documents in Bangla contain the same numbers as in English, and no English sentences."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.report.shown import Shown
from tests.speech import left_in_english

from kotha.cli.main import main
from kotha.evaluation.classification import classes_document, score_answers
from kotha.evaluation.translation import TranslationScore, translations_document
from kotha.i18n.message import Message
from kotha.i18n.numbers import ascii_digits
from kotha.report.document import Report
from kotha.text.corpus.pairs import TextPairs
from kotha.training.reporting.report import Record, report_document
from kotha.training.sweep.findings import SweepFindings, Trial, sweep_document

NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)( ?(?:million|হাজার|লাখ|কোটি)(?![A-Za-z]))?")
UNITS = {"": 1, "হাজার": 1e3, "লাখ": 1e5, "million": 1e6, "কোটি": 1e7}
KNOWN = (
    "chrF++",
    "BLEU",
    "TF-IDF + logistic regression",
    "GPT-2 pattern",
    "GPT",
    "uniform",
    "uniform over classes",
    "CPU",
    "Python",
)
KNOWN += ("torch", "UTF-8", "bpe", "nearest neighbour", "NaN", "signature")


def numbers(words: list[str]) -> list[str]:
    """Return all numbers of a page, regardless of digits and units."""
    plain = re.sub(r"(?<=\d),(?=\d)", "", ascii_digits(" ".join(words)))
    return sorted(f"{float(number) * UNITS[unit.strip()]:.3g}" for number, unit in NUMBER.findall(plain))


def held(document: Report, *names: str) -> list[str]:
    """Check the Bangla page: the same numbers, and no English text."""
    page = Shown(document.html())
    spoken = page.words("bn")
    assert numbers(spoken) == numbers(page.words())
    for each in spoken:
        assert left_in_english(each, *names, *KNOWN) == [], each
    return spoken


METRICS = [
    *({"step": step, "loss_nats": 9 / step, "learning_rate": 1e-3, "gradient_norm": 1.5, "tokens_per_second": 21_000.0,
       "peak_share": 0.25, "tokens": 64 * step, "seconds": step * 1.0} for step in range(1, 31)),
    *({"step": step, "validation": {"loss_nats": loss, "bits_per_byte": loss / 3, "bits_per_character": loss},
       "sample": "নদীর ধারে"} for step, loss in ((5, 2.5), (10, 1.5), (15, 1.8), (20, 2.1), (30, 2.4))),
]  # fmt: skip
CONFIG = {
    "model": {"family": "gpt", "n_layers": 2, "d_model": 64, "tied_head": True, "dropout": None},
    "training": {"steps": 40, "gradient_clip": 1.0, "best_by": "loss", "sampling": "documents"},
    "references": {"uniform": 6.9, "unigram": 5.2},
    "floors": {"bits_per_byte": 0.4},
    "data": {"train_tokens": 123_456},
    "machine": {"cores": 2, "reason": "bfloat16 takes about 100 times as long here"},
    "predicted": {"memory_bytes": {"weights": 592_000, "base": 392_000_000, "total": 433e6}, "seconds": 64.0},
}
SUMMARY = {"steps": 30, "tokens": 1920, "seconds": 85.0, "peak_memory_bytes": 451e6, "device": "cpu", "best_step": 10}


def test_a_run_s_report() -> None:
    spoken = held(report_document(Record(CONFIG, METRICS, SUMMARY)))
    assert "প্রশিক্ষণ: ৩০টি ধাপ, ১,৯২০টি টোকেন, লেখাটি ০.০১৬ বার পড়া, ৮৫ সেকেন্ড।" in spoken
    assert "মাঝপথে থামানো হয়েছে: হওয়ার কথা ছিল ৪০টি ধাপ।" in spoken
    assert "শেষ সীমা = 0.4" in spoken, "a formula has Latin digits"


@pytest.mark.parametrize(
    ("task", "figures"),
    [
        ("masked-words", {"loss_nats": 1.2}),
        ("classes", {"loss_nats": 0.3, "accuracy": 0.895, "majority": 0.579}),
        ("classes", {"loss_nats": None}),
    ],
)
def test_a_report_of_another_task_and_of_an_unfinished_run(task, figures) -> None:
    config = {
        **CONFIG,
        "task": task,
        "references": {"uniform over classes": 0.7, "class frequencies": 0.68},
        "floors": {},
    }
    for metrics in ([*METRICS[:30], {"step": 30, "validation": figures}], METRICS[:3], []):
        held(report_document(Record(config, metrics, {})))


def test_the_page_of_classes() -> None:
    labels = ("খেলা", "রাজনীতি")
    score = score_answers(
        labels, [labels[n % 2] for n in range(1234)], [labels[n % 2 * (n % 5 > 0)] for n in range(1234)]
    )
    simpler = {"accuracy": 0.5, "macro_f1": 0.333}
    score = replace(score, baselines={"majority": simpler, "TF-IDF + logistic regression": simpler})
    spoken = held(classes_document(score, "kinds: 2", ""))
    assert any(each.startswith("না-দেখা ১,২৩৪টি") for each in spoken)


def test_the_page_of_translations() -> None:
    pairs = TextPairs(("আমি ভাত খাই",) * 120, ("reading, written, source",) * 120)
    score = TranslationScore(23.4, "nrefs:1", 45.6, "nrefs:1", 120, ("3 steps",) * 120, None, None)
    score = replace(score, baselines={"nearest neighbour": {"bleu": 3.2, "chrf": 21.1}})
    assert "১২০টি জোড়ার প্রথম ১০০টি।" in held(translations_document(score, pairs, "run", ""))


def test_the_page_of_a_sweep() -> None:
    values: dict = dict.fromkeys(Trial.__dataclass_fields__)
    trials = [
        Trial(**{**values, "name": Message("trial {n}", n=n), "value": 2.5 - n / 10, "state": state,
                 "values": {"dropout": n / 10}, "is_default": n == 0, "curve": [(1, 3.0), (2, 2.5)]})
        for n, state in enumerate(("complete", "complete", "pruned"))
    ]  # fmt: skip
    found = SweepFindings(**{
        **dict.fromkeys(SweepFindings.__dataclass_fields__), "trials": trials, "importance": {"dropout": 1.0},
        "default_values": {"dropout": 0.1}, "searched": {"dropout": "0.0..0.3"}, "unit": "bits/byte", "changes": {},
        "at_an_end": ["dropout"], "best": trials[1], "default": trials[0], "data": "data", "recipe": "modern",
    })  # fmt: skip
    held(sweep_document(found), "dropout", "trial 1")


def test_pages_of_a_run_and_a_demo_open_in_the_commands_language(tmp_path: Path, capsys) -> None:
    folder = tmp_path / "demo"
    words = ["demo", "--out", str(folder), "--documents", "100", "--vocab-size", "1000", "--minutes", "0.02"]
    assert main([*words, "--language", "bn"]) == 0
    page = Shown((folder / "report.html").read_text(encoding="utf-8"))
    for each in page.words("bn"):
        assert left_in_english(each, *KNOWN) == [], each
    summary = json.loads((folder / "run" / "summary.json").read_text(encoding="utf-8"))
    assert page.data["lead"][0]["values"]["tokens"] == {"count": summary["tokens"]}
    run = Shown((folder / "run" / "report.html").read_text(encoding="utf-8"))
    assert page.language == run.language == ["bn"]
    commands = " ".join(block["text"] for block in page.blocks("code"))
    assert commands.count("--language bn") == 5, "commands go on in the same language"
    assert (run.headings("bn")[0], run.headings()[0]) == ("লস", "Loss")
