"""Teachers of a run: the models that are trained first and then distilled into the student.

The config of a run with teachers lists its stages, and each teacher has its own run folder under ``teachers/``. If a
teacher was interrupted, it is resumed with the run. Until the student outperforms its teachers, the best teacher is the
best model of the run.
"""

from typing import Any

from kotha.artifacts import model_folder as bundle
from kotha.artifacts.run_folder import BEST, TEACHERS, RunFolder, figure, stages_of
from kotha.i18n.message import Message, Plural
from kotha.i18n.numbers import Duration
from kotha.model.config import config_from_dict
from kotha.storage.atomic import remove_directory
from kotha.storage.status import exists
from kotha.text.shards import Dataset
from kotha.training.config import TrainConfig
from kotha.training.device import free_memory
from kotha.training.loop import Training
from kotha.training.start import resume_run, start_run


def train_teachers(training: Training, data: Dataset, *, timed: bool, **how: Any) -> bool:
    """Train a run's unfinished teachers; return False if a stop was requested."""
    stages = stages_of(training.folder.about())
    for number, stage in enumerate(stages, 1):
        numbers = {"stage": number, "stages": len(stages)}
        folder = RunFolder(training.folder.path / TEACHERS / str(number))
        is_student = number == len(stages)
        if is_student or not _finished(folder):
            training.say(_announcement(number, stages))
        if is_student:
            training.stage = numbers
            break
        finished = _finished(folder) or _train(folder, data, stage, numbers, timed, **how)
        _keep_best(training, folder)
        if not finished:
            return False
        if exists(folder.checkpoints):
            remove_directory(folder.checkpoints)  # a finished teacher is never resumed
    return True


def _announcement(number: int, stages: list[dict[str, Any]]) -> Message:
    """Return a message about the stage that is about to start."""
    stage, is_student = stages[number - 1], number == len(stages)
    return Message(
        "stage {n} of {of}: {role}, {layers} of width {width}, about {time}",
        n=number,
        of=len(stages),
        role=Message("student (distilled from the teachers)") if is_student else Message("teacher"),
        layers=Plural("{n} layer", "{n:,} layers", n=stage["model"]["n_layers"]),
        width=stage["model"]["d_model"],
        time=Duration(stage["seconds"]),
    )


def _finished(folder: RunFolder) -> bool:
    summary = folder.summary() if folder.exists else None
    return summary is not None and not summary["stopped"]


def _train(
    folder: RunFolder, data: Dataset, stage: dict[str, Any], numbers: dict[str, int], timed: bool, **how: Any
) -> bool:
    """Train or resume one teacher; return whether it finished."""
    if folder.exists:
        training = resume_run(data, folder, {}, **how)
    else:
        model = config_from_dict(stage["model"])
        folder.path.parent.mkdir(exist_ok=True)
        training = start_run(model, TrainConfig(**stage["training"]), data, folder, **how)
        if timed:
            training.most_steps, training.time_limit = stage["most_steps"], stage["seconds"]
    training.stage = numbers
    stopped = bool(training.run()["stopped"])
    del training
    free_memory()
    return not stopped


def _keep_best(training: Training, folder: RunFolder) -> None:
    """Make a teacher's model the best model of the run if it is better than the best so far."""
    score, progress = folder.best(), training.progress
    loss = figure(score or {}, "loss_nats")
    if score is None or loss is None or progress.step or loss >= progress.best_loss:
        return
    teacher = bundle.load(folder.path)
    out = training.folder.best_model
    bundle.save(out, teacher.model, teacher.tokenizer, overwrite=True, whatever_it_holds=True)
    training.folder.write(BEST, {**score, "step": 0})
    progress.best_loss, progress.best_step = loss, 0


def stage_results(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the result of each stage of a run: sizes, steps, seconds and score; empty if the run has no stages."""
    stages, found = stages_of(folder.about()), []
    for number, stage in enumerate(stages, 1):
        role = "student" if number == len(stages) else "teacher"
        own = folder if role == "student" else RunFolder(folder.path / TEACHERS / str(number))
        summary = own.summary() or {}
        sizes = {name: stage["model"][name] for name in ("n_layers", "d_model")}
        figures = {name: summary.get(name) for name in ("steps", "seconds", "bits_per_byte", "loss_nats")}
        found.append({"role": role, **sizes, **figures})
    return found
