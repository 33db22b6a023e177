"""The report shows the contents of the run folder, and handles missing parts."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tests.report.shown import Shown, text

from kotha.errors import CheckpointError
from kotha.model.presets import preset
from kotha.training.config import recipe
from kotha.training.reporting.report import Record, loss_chart, report_document, write_report

ATTACK = "</div><script>alert('x')</script><img src=x onerror=alert(1)>"

CONFIG: dict[str, Any] = {
    "model": preset("pocket").to_dict(),
    "training": recipe("modern", steps=400).to_dict(),
    "data": {"path": "data/stories", "tokenizer": "3f9a", "train_tokens": 1_000_000},
    "versions": {"kotha": "0.1.0", "torch": "2.13.0"},
    "task": "next-token",
    "machine": {"device": "cpu", "precision": "bfloat16", "processor": "two cores"},
    "references": {"uniform": math.log(4096), "unigram": 6.41},
    "floors": {"bits_per_byte": 0.047},
    "predicted": {"memory_bytes": {"weights": 10 * 2**20, "total": 100 * 2**20}, "seconds": 50.0},
}
SUMMARY: dict[str, Any] = {
    "steps": 400,
    "tokens": 3_276_800,
    "best_step": 200,
    "peak_memory_bytes": 125 * 2**20,
    "device": "cpu",
    "stopped": False,
    "seconds": 100.0,
}


def step_row(step: int) -> dict[str, Any]:
    figures = {"gradient_norm": 0.5, "learning_rate": 1e-3, "tokens_per_second": 7000.0, "peak_share": 0.4}
    return {"step": step, "loss_nats": 8 - step / 100, "tokens": 8192 * step, "seconds": step / 4, **figures}


def evaluation(step: int, loss: float, **more: Any) -> dict[str, Any]:
    found = {"loss_nats": loss, "bits_per_byte": loss / 4, "bits_per_character": loss / 2, "tokens": 1000}
    return {"step": step, "validation": found, "sample": f"গল্প {step}", **more}


# The best step is 200; afterwards, the validation loss rises while the training loss keeps falling.
LOSSES = {50: 7.0, 100: 6.5, 150: 6.0, 200: 5.5, 250: 5.6, 300: 5.7, 350: 5.9, 400: 6.0}
METRICS = [step_row(step) for step in range(1, 401)] + [evaluation(*each) for each in LOSSES.items()]


def write_run(folder: Path, config: object, metrics: list[dict[str, Any]], summary: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics), encoding="utf-8")
    for name, value in {"config.json": config, "summary.json": summary}.items():
        if value is not None:
            (folder / name).write_text(json.dumps(value), encoding="utf-8")
    return folder


def shown(config: dict[str, Any], metrics: list[dict[str, Any]], summary: dict[str, Any]) -> Shown:
    return Shown(report_document(Record(config, metrics, summary)).html())


def test_a_complete_run(tmp_path: Path) -> None:
    path = write_report(write_run(tmp_path / "run", CONFIG, METRICS, SUMMARY))
    page = Shown(path.read_text(encoding="utf-8"))
    assert path.name == "report.html"
    assert text(page.data["title"]) == "GPT, 2 layers, width 96, 578,144 parameters"
    assert text(page.data["lead"]) == (
        "Trained for 400 steps, 3.28 million tokens, 3.3 passes over the text, 100 seconds. "
        "At its best, at step 200, its loss on held-out text is 1.375 bits per byte, 2.750 per character."
    )
    assert page.headings() == [
        *("Loss", "Samples during training", "On held-out text", "How training went"),
        "Settings",
    ]
    loss, per_byte, *rest = page.blocks("curves")
    assert [text(label) for _, label in loss["levels"]] == ["uniform = 8.32", "unigram = 6.41", "floor = 0.19"]
    assert text(loss["marker"][1]) == "best: step 200" and text(per_byte["levels"][0][1]) == "floor = 0.047"
    titles = ["bits per character", "learning rate", "gradient norm", "tokens per second", "% of the machine's peak"]
    assert [text(each["title"]) for each in rest] == titles
    assert page.html == report_document(Record(CONFIG, METRICS, SUMMARY)).html(), "the page depends only on the files"


def test_three_samples_are_shown_and_the_rest_folded() -> None:
    page = shown(CONFIG, METRICS, SUMMARY)
    folded = page.blocks("folded")[0]
    rest = [each["text"] for each in folded["blocks"]]
    assert text(folded["summary"]) == "Other samples (5)" and rest[0] == "গল্প 100"
    seen = [(text(each["label"]), each["text"]) for each in page.blocks("quote") if each["text"] not in rest]
    assert [step for step in LOSSES if any(text == f"গল্প {step}" for _, text in seen)] == [50, 250, 400]
    assert seen[0] == ("step 50 · 1.750 bits per byte", "গল্প 50")


def test_an_unfinished_run_is_marked() -> None:
    def lead(metrics: list[dict[str, Any]], summary: dict[str, Any]) -> str:
        return text(shown(CONFIG, metrics, summary).data["lead"])

    unfinished = lead([row for row in METRICS if row["step"] <= 120], {})
    assert "Trained for 120 steps" in unfinished and "At its best, at step 100," in unfinished
    assert "It is not finished: 400 steps were planned." in unfinished
    assert "It was stopped early: 400 steps" in lead(METRICS[:100], {**SUMMARY, "steps": 100})


@pytest.mark.parametrize(
    ("config", "metrics", "summary"),
    [
        ({}, [], {}),
        ({"model": {"family": "gpt"}, "training": None, "references": 3, "predicted": []}, [], {"best_step": 7}),
        ({}, [{"step": 1}, {"step": 1, "validation": {}}, {"step": 2, "validation": {"loss_nats": None}}], {}),
        ({}, [{"step": 1, "loss_nats": None}, {"step": 2, "loss_nats": "x"}], {"steps": "many"}),
        (CONFIG, [], {}),
        ({}, METRICS, {}),
        ({}, [], SUMMARY),
    ],
)
def test_missing_figures_are_omitted(config, metrics, summary) -> None:
    for language in ("en", "bn"):
        words = " ".join(shown(config, metrics, summary).words(language))
        assert "None" not in words and "nan" not in words


def test_a_classifier_is_reported_by_its_accuracy() -> None:
    found = {"loss_nats": 0.4, "accuracy": 0.875, "majority": 0.25, "examples": 800}
    steps = [{"step": step, "loss_nats": 1.0} for step in (1, 2)]
    page = shown({"task": "classes"}, [*steps, {"step": 2, "validation": found, "sample": None}], {})
    right = "it answers 87.5% of held-out examples correctly (baseline of the most frequent answer: 25.0%)"
    assert right in text(page.data["lead"])
    assert text(page.blocks("curves")[1]["levels"][0][1]) == "most frequent answer = 25.0%"
    assert page.headings() == ["Loss", "On held-out examples"]


@pytest.mark.parametrize(
    ("task", "unit"),
    [
        *((task, "token") for task in ("next-token", "masked-words", "answers", "translation")),
        *((task, "answer") for task in ("text-classes", "image-classes")),
    ],
)
def test_the_loss_has_the_unit_of_the_task(task: str, unit: str) -> None:
    chart = loss_chart(Record({"task": task}, [{"step": 1, "loss_nats": 2.0}], {}))
    assert chart is not None and str(chart.y) == f"loss, nats per {unit}, log scale"


def test_the_contents_of_a_run_folder_are_escaped(tmp_path: Path) -> None:
    hostile = [{**step_row(1), ATTACK: 1.0}, evaluation(1, 5.0, sample=ATTACK + "\ud800\u2028")]
    named = {**CONFIG, "references": {ATTACK: 2.0}, "machine": {ATTACK: ATTACK}, "model": {"family": ATTACK}}
    folder = write_run(tmp_path / "run", named, hostile, {"device": ATTACK, "precision": [ATTACK, {}]})
    html = write_report(folder).read_text(encoding="utf-8")
    assert "<script>alert" not in html.lower()
    assert "<img" not in html.lower()


def test_a_truncated_line_is_skipped(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", CONFIG, METRICS[:50], None)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 51, "loss_na')
    assert "Trained for 50 steps" in text(Shown(write_report(folder).read_text(encoding="utf-8")).data["lead"])


def test_a_folder_without_a_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="contains no training run"):
        write_report(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json is corrupted"):
        write_report(tmp_path)
