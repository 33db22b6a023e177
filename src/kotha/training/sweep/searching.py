"""The search itself: draw settings, train, tell the study, until there are as many trials as were asked for.

Each trial is a run folder of its own, so a pruned one can be gone on with, and the best one is a model already. Trial 0
is the default recipe. Values are drawn by TPE (Bergstra et al. 2011), from a seed and the trial's number alone; a trial
is stopped when its learning curve falls behind the others at the same share of the run (median pruning, or Hyperband).
A schedule that still falls can make a curve look worse than its end would be, so nothing is stopped in the first
quarter, nor before a few trials have come to their end. Who is killed goes on by starting again; several may work at
the same time (``study.py``).
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kotha.artifacts.run_folder import RunFolder, figure
from kotha.errors import ConfigError, TrainingError
from kotha.i18n.message import Message
from kotha.text.shards import Dataset
from kotha.training.fitting import OnRemark
from kotha.training.loop import Training
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.start import TrainRequest, check_held_out, train_run
from kotha.training.sweep.about import Sweep, SweepRequest, describe_sweep, read_sweep
from kotha.training.sweep.space import Value, short
from kotha.training.sweep.study import (
    ABOUT,
    DEFAULT,
    FOLDER,
    WORKER,
    SweepWorker,
    database_in,
    database_told,
    do_again,
    open_study,
    optuna,
    take_over,
)

FIGURES = {"bits_per_byte": "bits/byte", "loss_nats": "nats"}  # what decides, the first that a task measures
# Trials that come to their end before any is stopped, and parts of a run in which none is.
_WHOLE_TRIALS, _FIRST_PARTS = 4, EVALUATIONS // 4
_DRAWN_BY_CHANCE = 8


class _EnoughError(Exception):
    """Another process began the last trial in the same moment."""


class SweepStopped(Exception):  # noqa: N818 - nothing went wrong
    """Someone asked to stop; the trial at hand is saved and queued again."""


class Searching:
    """One process at work on a sweep."""

    def __init__(
        self,
        data: Dataset,
        folder: Path,
        request: SweepRequest,
        *,
        url: str | None,
        name: str,
        on_event: Callable[[dict[str, Any]], None],
        on_remark: OnRemark,
    ) -> None:
        check_held_out(data)
        self._data, self._folder, self._request = data, folder, request
        self._hear, self._say = on_event, on_remark
        optuna()  # before a folder is made
        self._url = database_in(folder) if url is None else url
        with database_told(self._url):
            self.study = open_study(self._url, name, folder, lambda: describe_sweep(data, request).to_dict())
            self.sweep: Sweep = read_sweep(self.study.user_attrs[ABOUT], data, request)
        pruners = optuna().pruners
        self.study.pruner = {
            "median": pruners.MedianPruner(n_startup_trials=_WHOLE_TRIALS, n_warmup_steps=_FIRST_PARTS),
            "hyperband": pruners.HyperbandPruner(_FIRST_PARTS, max_resource=EVALUATIONS, reduction_factor=2),
            "none": pruners.NopPruner(),
        }[request.prune]
        self._states = optuna().trial.TrialState
        self._at = 0  # the trial at hand

    def _counted(self) -> list[Any]:
        """The trials that count; what failed was queued again, or was one too many."""
        return [each for each in self.study.get_trials(deepcopy=False) if each.state != self._states.FAIL]

    def run(self) -> None:
        """Do trials until there are enough, those of other processes included."""
        worker = SweepWorker(self._folder)
        try:
            with database_told(self._url):
                while True:
                    for left in take_over(self.study, worker):
                        self._say(
                            Message(
                                "{trial} was left by a process that is gone; it is done again", trial=title_of(left)
                            )
                        )
                    trials = self._counted()
                    waiting = any(each.state == self._states.WAITING for each in trials)
                    if not waiting and len(trials) >= self._request.trials:
                        return
                    self._one(worker)
        finally:
            worker.close()

    def _one(self, worker: SweepWorker) -> None:
        """Draw one trial and do it; whatever ends it before its end, it is queued again."""
        try:
            self.study.optimize(lambda trial: self._try(trial, worker), n_trials=1, catch=(_EnoughError,))
        except BaseException as error:
            with suppress(Exception):  # the database may be what failed; then who comes next finds the trial left
                last = self.study.trials[self._at]
                if last.state == self._states.FAIL and last.user_attrs.get(WORKER) == worker.name:
                    do_again(self.study, last, blamed=not isinstance(error, SweepStopped))
            raise

    def _try(self, trial: Any, worker: SweepWorker) -> float:
        """One trial, from its values to its best figure."""
        trial.set_user_attr(WORKER, worker.name)
        self._at = trial.number
        if sum(each.number < trial.number for each in self._counted()) >= self._request.trials:
            raise _EnoughError
        is_default = trial.number == 0 or bool(trial.user_attrs.get(DEFAULT))
        trial.set_user_attr(DEFAULT, is_default)
        if FOLDER not in trial.user_attrs:
            trial.set_user_attr(FOLDER, f"trial-{trial.number:04d}")
        values = self._values(trial, is_default)
        drawn = [f"{name.replace('_', ' ')} {short(value)}" for name, value in values.items()]
        told = "{trial} is the default recipe: {drawn}" if is_default else "{trial}: {drawn}"
        self._say(Message(told, trial=title_of(trial), drawn=drawn))
        folder = RunFolder(self._folder / trial.user_attrs[FOLDER])
        try:
            return self._train(trial, folder, values, is_default)
        except (ConfigError, TrainingError) as error:
            if is_default:  # what even the default cannot do is nothing to search around
                raise
            trial.set_user_attr("problem", str(error))
            self._say(Message("{trial} came to nothing: {error}", trial=title_of(trial), error=error))
            raise optuna().TrialPruned from error

    def _values(self, trial: Any, is_default: bool) -> dict[str, Value]:
        """The trial's values; the default's are told to the study where they lie within what is searched."""
        seed = np.random.SeedSequence([self._request.seed, trial.number]).generate_state(1)[0]
        samplers, searched, defaults = optuna().samplers, self.sweep.searched, self.sweep.defaults
        self.study.sampler = samplers.TPESampler(seed=int(seed), n_startup_trials=_DRAWN_BY_CHANCE, constant_liar=True)
        if not is_default:
            return {each.name: each.draw(trial) for each in searched}
        within = {each.name: defaults[each.name] for each in searched if each.holds(defaults[each.name])}
        self.study.sampler = samplers.PartialFixedSampler(within, self.study.sampler)
        for each in searched:
            if each.name in within:
                each.draw(trial)
        return dict(defaults)

    def _train(self, trial: Any, folder: RunFolder, values: dict[str, Value], is_default: bool) -> float:
        curve = _Curve(trial, may_prune=not is_default)
        goes_on = folder.exists
        if goes_on:
            for row in folder.metrics():
                curve.hear({**row, "steps": folder.read()[1]["steps"]})

        def hear(event: dict[str, Any]) -> None:
            curve.hear(event)
            self._hear({**event, "trial": title_of(trial)})

        summary = train_run(
            self._data,
            folder,
            TrainRequest() if goes_on else self.sweep.request(values),
            resume=goes_on,
            on_event=hear,
            on_ready=curve.watch,
        )
        reached = value_of(folder.best() or {})
        for name in ("steps", "tokens", "seconds"):
            trial.set_user_attr(name, summary[name])
        unit = next((unit for name, unit in FIGURES.items() if name in summary), "nats")
        trial.set_user_attr("unit", unit)
        if summary["stopped"] and not curve.pruned:
            raise SweepStopped
        shown = Message("{value:.4f} {unit}", value=reached, unit=Message(unit))
        told = {"trial": title_of(trial), "shown": shown}
        if curve.pruned:
            behind = "{trial} was stopped at {shown} after {parts} of {evaluations} parts: it fell behind"
            self._say(Message(behind, **told, parts=curve.parts, evaluations=EVALUATIONS))
            raise optuna().TrialPruned
        ended = [each.value for each in self._counted() if each.state == self._states.COMPLETE]
        best = Message(", the best so far") if reached < min(ended, default=float("inf")) else ""
        self._say(Message("{trial} reached {shown}{best}", **told, best=best))
        return reached


class _Curve:
    """The learning curve of a trial, told to the study part by part."""

    def __init__(self, trial: Any, may_prune: bool) -> None:
        self._trial, self._may_prune = trial, may_prune
        self._training: Training | None = None
        self.pruned, self.parts = False, 0

    def watch(self, training: Training) -> None:
        """Be able to stop it."""
        self._training = training

    def hear(self, event: dict[str, Any]) -> None:
        """An event; an evaluation is told, and may be the last."""
        value = value_of(event.get("validation") or {})
        part = round(EVALUATIONS * event["step"] / event["steps"])
        if not np.isfinite(value) or part <= self.parts:
            return
        self.parts = part
        self._trial.report(value, part)
        training = self._training if self._may_prune and event["step"] < event["steps"] else None
        if training is not None and self._trial.should_prune():
            self.pruned = training.interrupts.asked = True  # it saves, and ends as if someone had asked it to


def value_of(score: dict[str, Any]) -> float:
    """The figure of a score that decides, lower is better; infinity where there is none."""
    found = (figure(score, name) for name in FIGURES)
    return next((value for value in found if value is not None), float("inf"))


def title_of(trial: Any) -> Message:
    """What a trial is called: by its folder, which stays the same if it is done again.

    >>> from types import SimpleNamespace
    >>> str(title_of(SimpleNamespace(user_attrs={"folder": "trial-0007"}, number=9)))
    'trial 7'
    """
    folder = str(trial.user_attrs.get(FOLDER, trial.number))
    return Message("trial {n}", n=int(folder.rpartition("-")[2]))
