"""Fine-tuning a text classifier, from a table to a model folder."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.finetune.conftest import QUICK, WORDS, moods, stopped_and_resumed, write_table

import kotha
from kotha.artifacts import model_folder as bundle
from kotha.errors import ConfigError, KothaError, UsageError
from kotha.evaluation.classification import classes_table
from kotha.finetune.classify import PAGE, ClassifyTexts
from kotha.generation.classify import Classifier
from kotha.model.family import build
from kotha.model.presets import preset


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, bases: dict[str, Path], table: Path) -> dict[str, kotha.Run]:
    folder = tmp_path_factory.mktemp("runs")
    settings = {**QUICK, "steps": 40, "evaluate_every": 10, "batch_size": 16}
    return {
        name: kotha.finetune_classify(table, start=base, out=folder / name, **settings) for name, base in bases.items()
    }


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_training_reaches_a_good_score_and_reports_it(runs: dict[str, kotha.Run], name: str) -> None:
    summary, path = runs[name].summary, runs[name].path
    assert [each["label"] for each in summary["classes"]] == sorted(WORDS)
    assert summary["macro_f1"] > 0.4 > summary["baselines"]["majority"]["accuracy"]
    assert np.sum(summary["confusion"]) == summary["examples"] == 6
    assert [each["support"] for each in summary["classes"]] == [2, 2, 2]
    assert summary["validation"]["macro_f1"] == pytest.approx(json.loads((path / "best.json").read_text())["macro_f1"])
    assert "মাঝারি" in (path / PAGE).read_text(encoding="utf-8")
    assert (path / "report.html").is_file()


@pytest.mark.parametrize("name", ["gpt", "bert"])
def test_predictions_have_probabilities_and_attributions(runs: dict[str, kotha.Run], name: str) -> None:
    model = runs[name].model
    answer = model.classify("আজ নদী চমৎকার", why=True)
    assert list(answer.probabilities) == sorted(WORDS, key=lambda label: -answer.probabilities[label])
    assert sum(answer.probabilities.values()) == pytest.approx(1) and answer.label == next(iter(answer.probabilities))
    assert "".join(each.text for each in answer.why) == "আজ নদী চমৎকার"
    alone, together = model.classify("আজ নদী চমৎকার"), model.classify(["আজ নদী চমৎকার", "কান্না " * 20, ""])
    assert together[0].probabilities == pytest.approx(alone.probabilities, abs=1e-5)
    assert not alone.why and len(together) == 3


def test_a_long_text_is_the_mean_of_its_stretches(runs: dict[str, kotha.Run]) -> None:
    for name in ("gpt", "bert"):
        classifier = Classifier(runs[name].model.bundle)
        tokenizer, marks = classifier.tokenizer, 2 if name == "bert" else 1
        text = "আজ নদী চমৎকার " * 30
        ids, room = tokenizer.encode(text), classifier.model.config.context_length - marks
        count = -(-len(ids) // room)
        assert 1 < count <= 8
        special, found = tokenizer.special, []
        for part in range(count):
            some = ids[part * len(ids) // count : (part + 1) * len(ids) // count]
            marked = [special["cls"], *some, special["sep"]] if name == "bert" else [*some, special["eos"]]
            with torch.no_grad():
                real = torch.ones(1, len(marked), dtype=torch.bool)
                found.append(classifier.model(torch.tensor([marked]), real).softmax(-1)[0])
        wanted = torch.stack(found).mean(dim=0)
        assert torch.allclose(classifier.probabilities([text, "নদী"])[0], wanted, atol=1e-5)
        [answer] = classifier.classify([text], why=True)
        assert "".join(each.text for each in answer.why) == tokenizer.normalize(text)
        assert classifier.truncated == 0


def test_a_pass_reads_all_stretches_of_long_texts(tmp_path: Path, bases: dict[str, Path]) -> None:
    """A text with several excerpts counts as several examples in an epoch."""
    steps = []
    for name, times in (("short", 1), ("long", 10)):
        table = write_table(tmp_path / f"{name}.csv", [(f"{text} " * times, label) for text, label in moods(60)])
        run = kotha.finetune_classify(
            table, start=bases["gpt"], out=tmp_path / name, epochs=1, batch_size=4, patience=None
        )
        task_sees = [
            -(-len(run.model.bundle.tokenizer.encode(text)) // 23)
            for text in ClassifyTexts().read_parts(run.path).train.texts
        ]
        assert run.summary["steps"] == -(-sum(task_sees) // 4)
        steps.append(run.summary["steps"])
    assert steps[1] > 2 * steps[0]


def test_attribution_removes_or_masks_tokens(runs: dict[str, kotha.Run]) -> None:
    for name in ("gpt", "bert"):
        classifier = Classifier(runs[name].model.bundle)
        text = "আজ নদী চমৎকার"
        [answer] = classifier.classify([text], why=True)
        ids = classifier.tokenizer.encode(text)
        special = classifier.tokenizer.special
        for place, found in enumerate(answer.why):
            hidden = [special["mask"]] if name == "bert" else []
            silenced = [*ids[:place], *hidden, *ids[place + 1 :]]
            marked = [special["cls"], *silenced, special["sep"]] if name == "bert" else [*silenced, special["eos"]]
            with torch.no_grad():
                real = torch.ones(1, len(marked), dtype=torch.bool)
                without = classifier.model(torch.tensor([marked]), real).softmax(-1)[0]
            best = classifier.labels.index(answer.label)
            assert found.change == pytest.approx(answer.probabilities[answer.label] - float(without[best]), abs=1e-5)


def test_texts_seen_in_training_are_counted(runs: dict[str, kotha.Run], table: Path) -> None:
    score = runs["gpt"].model.evaluate(table)
    assert score.seen == len(ClassifyTexts().read_parts(runs["gpt"].path).train) and runs["gpt"].summary["seen"] == 0
    assert "so its scores are too high" in str(classes_table(score, "run").remarks[-1])


def test_a_classifier_cannot_generate_and_a_gpt_cannot_classify(
    runs: dict[str, kotha.Run], bases: dict[str, Path], table: Path, tmp_path: Path
) -> None:
    classifier = runs["gpt"].model
    assert classifier.classify([]) == []
    with pytest.raises(UsageError, match="is a gpt-classifier model and does not generate text; it is a classifier"):
        classifier.generate("আজ")
    with pytest.raises(UsageError, match="is evaluated on labelled texts; give a file that contains them"):
        classifier.evaluate(["আজ"])
    with pytest.raises(UsageError, match="this model is a classifier; use classify to explain"):
        classifier.attention("আজ")
    with pytest.raises(
        UsageError, match="this is a gpt model, not a classifier; fine-tune it with `kotha finetune classify`"
    ):
        kotha.load(bases["gpt"]).classify("আজ")
    with pytest.raises(ConfigError, match="a gpt-classifier model is trained on labelled texts"):
        kotha.prepare([write_lines(tmp_path)], classifier.tokenizer, tmp_path / "data")
        kotha.train(tmp_path / "data", start=runs["gpt"], out=tmp_path / "run", steps=1)


def write_lines(folder: Path) -> Path:
    file = folder / "texts.txt"
    file.write_text("\n\n".join(text for text, _ in moods(30)), encoding="utf-8")
    return file


def test_training_starts_from_another_classifier(runs: dict[str, kotha.Run], tmp_path: Path) -> None:
    other = write_table(tmp_path / "two.csv", [row for row in moods(60, seed=5) if row[1] != "মাঝারি"])
    again = kotha.finetune_classify(other, start=runs["gpt"], out=tmp_path / "run", **QUICK)
    assert [each["label"] for each in again.summary["classes"]] == ["ভালো", "মন্দ"]


@pytest.mark.parametrize("lora", [None, 2])
def test_a_resumed_run_equals_an_uninterrupted_one(bases: dict[str, Path], table: Path, tmp_path: Path, lora) -> None:
    given: dict[str, Any] = {**QUICK, "lora": lora, "optimizer": "muon", "ema_decay": 0.5}
    train = partial(kotha.finetune_classify, table, start=bases["gpt"], **given)
    stopped_and_resumed(train, kotha.finetune_classify, tmp_path)


def test_a_run_killed_before_its_first_checkpoint_resumes_from_the_initial_weights(
    bases: dict[str, Path], table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kotha.finetune_classify(table, start=bases["gpt"], out=tmp_path / "whole", **QUICK)
    with monkeypatch.context() as patch:
        patch.setattr("kotha.finetune.examples._finish", lambda *_: (_ for _ in ()).throw(KothaError("killed")))
        with pytest.raises(KothaError, match="killed"):
            kotha.finetune_classify(table, start=bases["gpt"], out=tmp_path / "killed", **QUICK)
    again = kotha.finetune_classify(out=tmp_path / "killed", resume=True)
    assert whole.summary["validation"] == again.summary["validation"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("নদী", "ক"), ("গ্রাম", "ক")], "all 2 examples have the label 'ক'; give examples of at least two classes"),
        ([("নদী", "ক"), ("গ্রাম", "ক"), ("শহর", "ক"), ("মাঠ", "খ")], "class 'খ' with 1 example cannot be split"),
        ([("নদী", "ক"), ("গ্রাম", "")], "the field 'mood' is empty; fix the input"),
        ([], "contains no examples"),
    ],
)
def test_bad_examples_are_rejected_and_leave_no_files(
    rows: list[tuple[str, str]], message: str, bases: dict[str, Path], tmp_path: Path
) -> None:
    file = write_table(tmp_path / "bad.csv", rows)
    with pytest.raises(KothaError, match=message):
        kotha.finetune_classify(file, start=bases["gpt"], out=tmp_path / "run", text="said", label="mood")
    assert not (tmp_path / "run").exists()


def test_weights_of_another_family_are_rejected(table: Path, tmp_path: Path) -> None:
    vit = bundle.save(tmp_path / "vit", build(preset("vit-digits").replace(n_layers=1, d_model=16, n_heads=2)))
    with pytest.raises(KothaError, match=r"has no tokenizer|a vit model cannot classify texts"):
        kotha.finetune_classify(table, start=vit, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
