"""The training loop: models learn, and a run that was stopped and resumed equals an uninterrupted one."""

import hashlib
import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.prepared import prepared, some_stories

from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, KothaError, TrainingError
from kotha.model.config import GPTConfig
from kotha.text.prepare import PrepareOptions, prepare
from kotha.text.shards import Dataset
from kotha.text.tokenizer.trainers import train as train_tokenizer
from kotha.training import checkpoint
from kotha.training import device as precision
from kotha.training.checkpoint import checkpoint_path, list_checkpoints, load_checkpoint
from kotha.training.config import TrainConfig
from kotha.training.device import peak_flops_per_second
from kotha.training.loop import Training
from kotha.training.start import resume_run, start_run
from kotha.training.train_run import train_run

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    texts = some_stories(seed=3, n_documents=60)
    return prepared(tmp_path_factory.mktemp("data"), texts, train_tokenizer(texts, "unigram", 700), validation=0.1)


def model_config(**changes: object) -> GPTConfig:
    values = {"vocab_size": 700, "context_length": 32, "n_layers": 1, "d_model": 32, "n_heads": 2, "dropout": 0.1}
    return GPTConfig(**{**values, **changes})


SHORT = TrainConfig(steps=12, batch_size=4, warmup_steps=2, evaluate_every=4, precision="float32", learning_rate=3e-3)


def start(data: Dataset, path: Path, config: TrainConfig = SHORT, model: GPTConfig | None = None, **more) -> Training:
    return start_run(model or model_config(), config, data, RunFolder(path), **more)


def resumed(data: Dataset, path: Path, **more: object) -> Training:
    return resume_run(data, RunFolder(path), {}, **more)


def weights(run: Training) -> dict[str, torch.Tensor]:
    return {name: each.detach().clone() for name, each in run.model.named_parameters()}


def assert_same(first: Training, second: Training) -> None:
    for (name, one), other in zip(weights(first).items(), weights(second).values(), strict=True):
        assert torch.equal(one, other), name
    assert first.progress.best_loss == second.progress.best_loss
    if first.average is not None:
        for name, one in first.average.tensors.items():
            assert torch.equal(one, second.average.tensors[name]), name


class KilledError(Exception):
    """Simulates kill -9: none of our code runs after it."""


@pytest.mark.parametrize(
    ("optimizer", "precision", "steps", "stops"),
    [("adamw", "float32", 12, (1, 6)), ("muon", "float32", 12, (6,)), ("adamw", "bfloat16", 3, (3,))],
)
def test_a_run_killed_at_any_step_resumes_bit_for_bit(data, tmp_path, optimizer, precision, steps, stops) -> None:
    every = steps // 3
    changes = {"optimizer": optimizer, "precision": precision, "steps": steps, "evaluate_every": every}
    config = SHORT.change(**changes, ema_decay=0.9, ema_every=2, evaluate_tokens=32)
    # A CPU may emulate bfloat16, which is slow.
    model = model_config(context_length=8, d_model=16) if precision == "bfloat16" else model_config()
    uninterrupted = start(data, tmp_path / "whole", config, model)
    uninterrupted.run()
    for stop in stops:

        def kill(event: dict, stop: int = stop) -> None:
            if event["step"] == stop and "loss_nats" in event:
                raise KilledError

        path = tmp_path / f"killed-{stop}"
        with pytest.raises(KilledError):
            start(data, path, config, model, on_event=kill).run()
        again = resumed(data, path)
        assert again.progress.step == (stop - 1) // every * every
        again.run()
        assert_same(uninterrupted, again)
        rows = [(row["step"], row.get("loss_nats")) for row in again.folder.metrics()]
        assert rows == [(row["step"], row.get("loss_nats")) for row in uninterrupted.folder.metrics()]


@pytest.fixture
def clocked(data: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Training]:
    """Runs with a simulated clock: a step takes one second, and a slow step takes four."""
    peak_flops_per_second(torch.device("cpu"), torch.float32)  # measured once, with the real clock
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])

    def make(config: TrainConfig, slow: range = range(0)) -> Training:
        training = start(data, tmp_path / "run", config)
        read = training.task.batch

        def batch(step: int, first: int, count: int):
            clock[0] += 4.0 if step in slow else 1.0
            return read(step, first, count)

        monkeypatch.setattr(training.task, "batch", batch)
        training.fitting.micro_batch_size = SHORT.batch_size
        monkeypatch.setattr(training.fitting, "settle", lambda gradients: None)
        return training

    return make


@pytest.mark.parametrize(("slow", "steps"), [(range(1), 48), (range(8), 48), (range(48), 16)])
def test_a_few_slow_steps_do_not_shorten_a_run(clocked, slow: range, steps: int) -> None:
    """There is time for 72 fast steps or for 18 slow ones."""
    training = clocked(SHORT.change(steps=48, evaluate_every=6, evaluate_tokens=32), slow)
    training.deadline = 72.0
    assert training.run()["steps"] == pytest.approx(steps, abs=2)


@pytest.mark.parametrize(("most", "steps"), [(None, 20), (35, 35), (1000, 57)])
def test_a_run_timed_on_a_busy_machine_is_extended(data, tmp_path: Path, clocked, most, steps) -> None:
    """There is time for 60 steps, but only 20 were planned; the text is sufficient for 60."""
    planned = SHORT.change(steps=20, evaluate_every=5, evaluate_tokens=32, schedule="stable", decay_steps=12)
    training, remarks = clocked(planned), []
    training.say = remarks.append
    training.deadline, training.most_steps = 60.0, most
    assert training.run()["steps"] == pytest.approx(steps, abs=2)
    if most is None:
        assert not remarks
        return
    assert "this machine is faster than when it was timed" in str(remarks[0])
    assert training.config.decay_steps == pytest.approx(0.6 * steps, abs=2)
    as_if = start(data, tmp_path / "as if", training.config)  # planned from the start
    as_if.fitting.micro_batch_size = SHORT.batch_size
    as_if.run()
    assert_same(training, as_if)


def test_earlier_computations_in_the_process_change_nothing(data, tmp_path: Path) -> None:
    torch._C._set_mkldnn_enabled(True)  # as in a new process
    first = start(data, tmp_path / "first")
    first.run()
    start(data, tmp_path / "between", SHORT.change(precision="bfloat16", steps=1)).run()
    second = start(data, tmp_path / "second")
    second.run()
    assert_same(first, second)


def test_a_resumed_run_keeps_its_precision(data, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(precision, "_gain_of_bfloat16", lambda: 0.5)
    first = start(data, tmp_path / "run", SHORT.change(precision="auto"))
    first.save()
    first.folder.release()
    monkeypatch.setattr(precision, "_gain_of_bfloat16", lambda: 6.0)  # a later probe
    assert resumed(data, tmp_path / "run").arithmetic.precision == "float32"
    assert start(data, tmp_path / "new", SHORT.change(precision="auto")).arithmetic.precision == "bfloat16"


def test_a_late_run_is_shortened_and_resumed_with_fewer_steps(data, tmp_path: Path) -> None:
    late = start(data, tmp_path / "late")
    late.deadline = 0.0  # in the past
    assert late.run()["steps"] == late.folder.about()["training"]["steps"] == 8, "the smallest number of steps"
    shutil.rmtree(checkpoint_path(late.folder.checkpoints, list_checkpoints(late.folder.checkpoints)[-1]))
    again = resumed(data, tmp_path / "late")
    assert again.progress.step == 6
    again.run()
    assert_same(late, again)


def send_signals(step: int, *signals: signal.Signals) -> Callable[[dict], None]:
    """An event handler that raises signals after a step was logged."""

    def interrupt(event: dict) -> None:
        if event["step"] == step and "loss_nats" in event:
            for each in signals:
                signal.raise_signal(each)

    return interrupt


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_a_signal_saves_and_ends_and_a_second_sigterm_is_ignored(data, tmp_path: Path, times: int) -> None:
    run = start(data, tmp_path / "run", on_event=send_signals(6, *[signal.SIGTERM] * times))
    summary = run.run()
    assert summary["stopped"] is True and summary["steps"] in (6, 7)
    assert list_checkpoints(run.folder.checkpoints) == [4, summary["steps"]]
    uninterrupted, again = start(data, tmp_path / "whole"), resumed(data, tmp_path / "run")
    uninterrupted.run()
    again.run()
    assert_same(uninterrupted, again)


def test_a_second_ctrl_c_ends_at_once(data, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        start(data, tmp_path / "run", on_event=send_signals(2, signal.SIGINT, signal.SIGINT)).run()


class SignalingBatches(list):
    """Validation batches during which a scheduler sends SIGTERM."""

    def __getitem__(self, index):
        signal.raise_signal(signal.SIGTERM)
        return super().__getitem__(index)


def test_a_stop_during_an_evaluation_saves_first_and_evaluates_on_resume(data, tmp_path, monkeypatch) -> None:
    run = start(data, tmp_path / "run")
    batches = SignalingBatches(run.task.validation() * 3)
    measured = []
    monkeypatch.setattr(run.task, "validation", lambda: batches)
    monkeypatch.setattr(run.task, "score", lambda *_: measured.append(1))
    summary = run.run()
    assert (summary["stopped"], summary["steps"], measured) == (True, 4, [])
    assert list_checkpoints(run.folder.checkpoints) == [4]
    uninterrupted, again = start(data, tmp_path / "whole"), resumed(data, tmp_path / "run")
    uninterrupted.run()
    again.run()
    assert_same(uninterrupted, again)
    rows = [[(row["step"], "validation" in row) for row in each.folder.metrics()] for each in (uninterrupted, again)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize(("name", "measures"), [("SIGINT", True), ("SIGTERM", False)])
def test_a_stop_before_the_first_evaluation(data, tmp_path: Path, name: str, measures: bool) -> None:
    """After Ctrl-C there is time to evaluate a model; after SIGTERM its last weights are saved without a score."""
    names, interrupt = [], send_signals(2, signal.Signals[name])

    def on_event(event: dict) -> None:
        names.extend([event["stopping"]] if "stopping" in event else [])
        interrupt(event)

    run = start(data, tmp_path / "run", on_event=on_event)
    summary = run.run()
    assert names == [name]
    assert list_checkpoints(run.folder.checkpoints) == [2]
    assert run.folder.best_model.is_dir() and (run.folder.best() is not None) is measures
    assert (summary["best_step"] is not None, summary["loss_nats"] is not None) == (measures, measures)


def test_a_folder_is_used_by_one_run_at_a_time(data, tmp_path: Path) -> None:
    first = start(data, tmp_path / "run")
    for another in (start, resumed):
        with pytest.raises(KothaError, match=rf"run is in use: another process \(pid {os.getpid()}\) is writing there"):
            another(data, tmp_path / "run")
    first.run()
    resumed(data, tmp_path / "run").run()


def test_a_run_that_fails_to_start_leaves_no_folder(data, tmp_path: Path, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RunFolder, "write", full)
    with pytest.raises(
        KothaError, match="run could not be written: No space left on device; no partial output was left"
    ):
        start(data, tmp_path / "some" / "where" / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_other_files_is_rejected_before_timing(data, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    remarks: list[object] = []
    for begin in (start, lambda data, path: train_run(data, RunFolder(path), on_remark=remarks.append)):
        with pytest.raises(CheckpointError, match=r"contains report\.html but no run; choose a new or empty folder"):
            begin(data, tmp_path)
    assert remarks == []
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_a_run_killed_at_its_start_can_be_started_again(data, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / ".config.json.kotha-partial").write_text("{")
    assert start(data, tmp_path).run()["steps"] == SHORT.steps


def test_micro_batches_give_the_gradients_of_the_batch(data, tmp_path: Path) -> None:
    found = []
    for size in (4, 1, 3):
        config = SHORT.change(micro_batch_size=size, steps=3)
        run = start(data, tmp_path / str(size), config, model_config(dropout=0.0))
        run.run()
        found.append(torch.cat([each.flatten() for each in weights(run).values()]))
    assert all(torch.allclose(found[0], other, atol=1e-5) for other in found[1:])


def test_interrupted_pruning_is_finished_on_resume(data, tmp_path: Path) -> None:
    """The run was killed after saving a checkpoint and before or during the removal of an old one."""
    config = SHORT.change(steps=6, checkpoint_every=2, keep_checkpoints=3, evaluate_every=6)
    run = start(data, tmp_path / "run", config)
    run.run()
    checkpoints = run.folder.checkpoints
    shutil.copytree(checkpoint_path(checkpoints, 2), checkpoints / ".step-00000001.kotha-gone")
    (checkpoint_path(checkpoints, 6) / "manifest.json").unlink()
    again = resume_run(data, run.folder, {"keep_checkpoints": 1})
    assert again.progress.step == 4
    assert list_checkpoints(checkpoints) == [4, 6], "a broken checkpoint does not count towards keep_checkpoints"
    assert not list(checkpoints.glob(".*"))


def test_a_manifest_with_an_impossible_file_name_is_rejected(data, tmp_path: Path) -> None:
    run = start(data, tmp_path / "run", SHORT.change(steps=2, checkpoint_every=2, evaluate_every=2))
    run.run()
    newest = checkpoint_path(run.folder.checkpoints, 2)
    (newest / "state.json").write_text("", encoding="utf-8")
    (newest / "manifest.json").write_text(
        json.dumps({"state.json": hashlib.sha256(b"").hexdigest(), "x" * 5000: ""}), encoding="utf-8"
    )
    with pytest.raises(CheckpointError, match="x is missing"):
        load_checkpoint(newest)


def test_the_loss_falls_and_the_best_weights_are_kept(data, tmp_path: Path) -> None:
    config = SHORT.change(steps=150, evaluate_every=50, keep_checkpoints=1, learning_rate=1e-2)
    run = start(data, tmp_path / "run", config)
    summary = run.run()
    losses = [row["loss_nats"] for row in run.folder.metrics() if "loss_nats" in row]
    assert losses[0] == pytest.approx(np.log(700), abs=0.3), "the loss of an untrained model"
    assert losses[-1] < losses[0] - 1
    assert summary["loss_nats"] < losses[0] - 0.8
    validations = {row["step"]: row["validation"]["loss_nats"] for row in run.folder.metrics() if "validation" in row}
    assert summary["best_step"] == min(validations, key=validations.get)
    assert set(list_checkpoints(run.folder.checkpoints)) == {150, summary["best_step"]}
    assert json.loads((run.folder.path / "best.json").read_text())["step"] == summary["best_step"]
    split = data["validation"].info
    assert summary["bits_per_byte"] == pytest.approx(summary["loss_nats"] / np.log(2) * split.tokens / split.bytes)


def test_patience_ends_a_run_without_improvement(data, tmp_path: Path) -> None:
    config = SHORT.change(steps=1000, evaluate_every=1, patience=3, learning_rate=1e-12, warmup_steps=0)
    summary = start(data, tmp_path / "run", config.change(learning_rate=1e-30)).run()
    assert summary["steps"] < 20


@pytest.mark.parametrize(
    ("step", "factor", "message"),
    [
        (9, float("nan"), r"is nan at step 9\. Last good"),
        (60, 1000, "the loss rose to"),
    ],
)
def test_nan_and_spikes_of_the_loss_stop_the_run(data, tmp_path: Path, step, factor, message) -> None:
    run = start(data, tmp_path / "run", SHORT.change(steps=80))

    def shake(event: dict) -> None:
        if event["step"] == step and "loss_nats" in event:
            with torch.no_grad():
                run.model.head.weight.mul_(factor)

    run._on_event = shake
    with pytest.raises(TrainingError, match=message):
        run.run()
    assert list_checkpoints(run.folder.checkpoints)[-1] <= step, "no broken weights were saved"


@pytest.mark.parametrize(
    ("step", "message", "saved"),
    [
        (4, r"free some space, then continue with resume=True\. Last checkpoint: none yet$", []),
        (8, r"free some space, then continue with resume=True\. Last checkpoint: .*step-00000004$", [4]),
    ],
)
def test_a_full_disk_is_reported_with_the_last_checkpoint(
    data, tmp_path: Path, monkeypatch, step: int, message: str, saved: list[int]
) -> None:
    run, save = start(data, tmp_path / "run"), checkpoint.write_weights

    def full(path: Path, tensors: dict, **about: str) -> None:
        if f"step-{step:08}" in str(path):
            raise OSError(28, "No space left on device")
        save(path, tensors, **about)

    monkeypatch.setattr(checkpoint, "write_weights", full)
    with pytest.raises(CheckpointError, match=f"No space left on device; {message}"):
        run.run()
    assert list_checkpoints(run.folder.checkpoints) == saved
    monkeypatch.undo()
    assert resumed(data, tmp_path / "run").run()["steps"] == SHORT.steps


def test_a_broken_checkpoint_is_skipped(data, tmp_path: Path) -> None:
    start(data, tmp_path / "run").run()
    newest = checkpoint_path(tmp_path / "run" / "checkpoints", 12)
    file = newest / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match=r"model\.safetensors was changed after it was saved"):
        load_checkpoint(newest)
    assert resumed(data, tmp_path / "run").progress.step == 8


def test_a_run_does_not_overwrite_another(data, tmp_path: Path) -> None:
    start(data, tmp_path / "run")
    with pytest.raises(CheckpointError, match="contains a run; resume it with resume=True"):
        start(data, tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"not found; specify the folder of a training run"):
        RunFolder(tmp_path / "none").read()


def test_a_resumed_run_keeps_its_model_and_data(data, tmp_path: Path) -> None:
    start(data, tmp_path / "run")
    prepare([data.path.parent / "texts.jsonl"], data.tokenizer, tmp_path / "other", PrepareOptions(validation=0.3))
    with pytest.raises(
        CheckpointError, match=r"was started with data other than .*other; resume it with the original data"
    ):
        resumed(Dataset(tmp_path / "other"), tmp_path / "run")
    assert resume_run(data, RunFolder(tmp_path / "run"), {"n_layers": 1, "steps": 20}).config.steps == 20
    with pytest.raises(ConfigError, match="keeps its model; to use other sizes, start a new run"):
        resume_run(data, RunFolder(tmp_path / "run"), {"n_layers": 2})


def test_a_vocabulary_that_does_not_fit_is_rejected(data, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="use vocab_size="):
        start(data, tmp_path / "run", model=model_config(vocab_size=100))
    assert not (tmp_path / "run").exists()
