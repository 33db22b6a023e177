"""Teachers of a run: the models that are trained before it and distilled into it.

The config of such a run lists its stages; each teacher is a run folder of its own under ``teachers/``. A teacher that
was interrupted is resumed with the run. Until the student is better, the best teacher is the best model of the run.
"""

import time
from typing import Any

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import BEST, RunFolder, figure
from kotha.i18n.message import Message, Plural
from kotha.i18n.numbers import Duration
from kotha.model.config import config_from_dict
from kotha.storage.atomic import remove_directory
from kotha.storage.status import exists
from kotha.text.shards import Dataset
from kotha.training.config import TrainConfig
from kotha.training.device import free_memory
from kotha.training.loop import OnEvent, Training
from kotha.training.plan.stages import teacher_folder
from kotha.training.start import resume_run, start_run

STAGES = "stages"


def train_teachers(training: Training, data: Dataset, *, timed: bool, on_event: OnEvent | None, **how: Any) -> bool:
    """Train the teachers of a run that are not finished; returns False if a stop was requested."""
    stages = _stages_of(training.folder)
    for number, stage in enumerate(stages[:-1], 1):
        folder = RunFolder(training.folder.path / teacher_folder(number))
        if not _finished(folder):
            training.say(_announcement(number, stages))
            notify = _numbered(on_event, number, len(stages))
            finished = _train(folder, data, stage, timed, on_event=notify, **how)
            _keep_best(training, folder)
            if not finished:
                return False
        _keep_best(training, folder)
        if exists(folder.checkpoints):
            remove_directory(folder.checkpoints)  # a finished teacher is never resumed
    if stages:
        training.say(_announcement(len(stages), stages))
    return True


def _stages_of(folder: RunFolder) -> list[dict[str, Any]]:
    """The stages in the config of a run; empty for an ordinary run."""
    return list(folder.about().get(STAGES, []))


def _announcement(number: int, stages: list[dict[str, Any]]) -> Message:
    """Which stage begins."""
    model, is_last = stages[number - 1]["model"], number == len(stages)
    return Message(
        "stage {n} of {of}: {role}, {layers} of width {width}, about {time}",
        n=number,
        of=len(stages),
        role=Message("student of these teachers") if is_last else Message("teacher"),
        layers=Plural("{n} layer", "{n:,} layers", n=model["n_layers"]),
        width=model["d_model"],
        time=Duration(stages[number - 1]["seconds"]),
    )


def _numbered(on_event: OnEvent | None, number: int, of: int) -> OnEvent | None:
    """The listener, with the number of the stage in each event."""
    return None if on_event is None else lambda event: on_event({**event, "stage": number, "stages": of})


def stage_results(folder: RunFolder) -> list[dict[str, Any]]:
    """The result of each stage of a run: steps, seconds and bits per byte; empty for an ordinary run."""
    stages = _stages_of(folder)
    folders = [RunFolder(folder.path / teacher_folder(number)) for number in range(1, len(stages))]
    found = []
    for stage, each in zip(stages, [*folders, folder], strict=False):
        summary = each.summary() or {}
        sizes = {name: stage["model"][name] for name in ("n_layers", "d_model")}
        figures = {name: summary.get(name) for name in ("steps", "seconds", "bits_per_byte", "loss_nats")}
        found.append({"role": "student" if each is folder else "teacher", **sizes, **figures})
    return found


def _finished(folder: RunFolder) -> bool:
    summary = folder.summary() if folder.exists else None
    return summary is not None and not summary["stopped"]


def _train(folder: RunFolder, data: Dataset, stage: dict[str, Any], timed: bool, **how: Any) -> bool:
    """Train or resume one teacher; returns whether it finished."""
    if folder.exists:
        training = resume_run(data, folder, {}, **how)
    else:
        model = config_from_dict(stage["model"])
        folder.path.parent.mkdir(exist_ok=True)
        training = start_run(model, TrainConfig(**stage["training"]), data, folder, **how)
        if timed:
            training.most_steps = stage["most_steps"]
            training.deadline = time.perf_counter() + stage["seconds"]
    stopped = bool(training.run()["stopped"])
    del training
    free_memory()
    return not stopped


def _keep_best(training: Training, folder: RunFolder) -> None:
    """Make the model of a teacher the best of the run, if it is better than the best so far."""
    score, progress = folder.best(), training.progress
    loss = figure(score or {}, "loss_nats")
    if score is None or loss is None or progress.step or loss >= progress.best_loss:
        return
    teacher = bundle.load(folder.path)
    bundle.save(training.folder.best_model, teacher.model, teacher.tokenizer, overwrite=True, whatever_it_holds=True)
    training.folder.write(BEST, {**score, "step": 0})
    progress.best_loss, progress.best_step = loss, 0
