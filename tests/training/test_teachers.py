"""Runs with teachers: stages are trained in order, interrupted ones are resumed, and the best model is kept."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.prepared import prepared, some_stories
from tests.training.test_loop import SHORT, KilledError, model_config

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.text.shards import Dataset
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training import train_run as module
from kotha.training.checkpoint import list_checkpoints
from kotha.training.loop import Training
from kotha.training.plan.stages import Stage
from kotha.training.request import RunSetup, TrainRequest
from kotha.training.train_run import train_run

TEACHERS = (
    Stage(model_config(), SHORT.change(seed=1), 12, 0.1, 600.0),
    Stage(model_config(d_model=48, n_heads=3), SHORT.change(seed=2, backwards=0.5), 12, 0.1, 600.0),
)
STUDENT = Stage(model_config(), SHORT.change(teachers=("teachers/1", "teachers/2")), 12, 0.1, 600.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    texts = some_stories(seed=3, n_documents=60)
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "unigram", 700), validation=0.1)


@pytest.fixture(autouse=True)
def planned(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = RunSetup(STUDENT.model, STUDENT.settings, 0.1, stages=(*TEACHERS, STUDENT))
    monkeypatch.setattr(module, "choose_settings", lambda *_: choice)


def train(data: Dataset, path: Path, **how) -> dict:
    return train_run(data, RunFolder(path), TrainRequest(), **how)


def scores(path: Path) -> dict[str, float]:
    return {name: json.loads((path / name).read_text())["loss_nats"] for name in ("best.json", "summary.json")}


def test_a_student_is_trained_after_its_teachers(data: Dataset, tmp_path: Path) -> None:
    events, remarks = [], []
    summary = train(data, tmp_path / "run", on_event=events.append, on_remark=lambda text: remarks.append(str(text)))
    assert [(each["role"], each["d_model"], each["steps"]) for each in summary["stages"]] == [
        ("teacher", 32, 12),
        ("teacher", 48, 12),
        ("student", 32, 12),
    ]
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == summary
    assert [each["stage"] for each in events] == sorted(each["stage"] for each in events)
    assert {each["stages"] for each in events} == {3}
    assert [text.split(",")[0] for text in remarks if text.startswith("stage")] == [
        "stage 1 of 3: teacher",
        "stage 2 of 3: teacher",
        "stage 3 of 3: student (distilled from the teachers)",
    ]
    best = min(each["loss_nats"] for each in summary["stages"])
    assert scores(tmp_path / "run")["best.json"] == best  # the student is never worse than a teacher
    folder = RunFolder(tmp_path / "run")
    steps = [row["step"] for row in folder.metrics_with_teachers() if "validation" not in row]
    assert steps == list(range(1, 37))
    assert "Stages" in (tmp_path / "run" / "report.html").read_text()


def test_the_best_teacher_is_the_model_until_the_student_is_better(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Training.run

    def stop_student(self: Training) -> dict:
        return run(self) if "teachers" in self.folder.path.parts[-2] else self.finish(stopped=True)

    monkeypatch.setattr(Training, "run", stop_student)
    summary = train(data, tmp_path / "run")
    assert summary["stopped"]
    assert summary["best_step"] == 0
    teachers = [bundle.load(tmp_path / "run" / "teachers" / name) for name in ("1", "2")]
    better = min(range(2), key=lambda index: summary["stages"][index]["loss_nats"])
    own = bundle.load(tmp_path / "run").model
    assert all(map(torch.equal, own.parameters(), teachers[better].model.parameters()))


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_a_killed_run_resumes_in_its_stage(
    data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: int
) -> None:
    whole = train(data, tmp_path / "whole")

    def kill(event: dict) -> None:
        if event.get("stage") == stage and event["step"] == 6:
            raise KilledError

    with pytest.raises(KilledError):
        train(data, tmp_path / "run", on_event=kill)
    monkeypatch.setattr(module, "choose_settings", lambda *_: pytest.fail("a resumed run chooses nothing"))
    again = train_run(data, RunFolder(tmp_path / "run"), resume=True)
    same = ("role", "steps", "loss_nats")
    assert [[each[name] for name in same] for each in again["stages"]] == [
        [each[name] for name in same] for each in whole["stages"]
    ]
    first, second = (bundle.load(tmp_path / name).model.state_dict() for name in ("whole", "run"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_finished_teachers_keep_no_checkpoints(data: Dataset, tmp_path: Path) -> None:
    train(data, tmp_path / "run")
    for name in ("1", "2"):
        folder = RunFolder(tmp_path / "run" / "teachers" / name)
        assert not folder.checkpoints.exists()
        assert bundle.load(folder.path)
    assert list_checkpoints(RunFolder(tmp_path / "run").checkpoints)


def test_a_run_can_be_moved(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(event: dict) -> None:
        if event.get("stage") == 3:
            raise KilledError

    with pytest.raises(KilledError):
        train(data, tmp_path / "run", on_event=kill)
    (tmp_path / "run").rename(tmp_path / "moved")
    assert not train_run(data, RunFolder(tmp_path / "moved"), resume=True)["stopped"]


def test_a_time_limit_shortens_a_stage(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hurried = (replace(TEACHERS[0], seconds=0.0), TEACHERS[1], STUDENT)
    monkeypatch.setattr(module, "choose_settings", lambda *_: RunSetup(STUDENT.model, STUDENT.settings, stages=hurried))
    summary = train(data, tmp_path / "run")
    assert [each["steps"] for each in summary["stages"]] == [8, 12, 12]
