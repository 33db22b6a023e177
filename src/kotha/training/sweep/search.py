"""Hyperparameter search around the default recipe: draw settings, train, and report results to the study.

The default recipe is chosen once, with its sizes, context length and share of the validation text. All trials use these
values except for the searched settings, so they are evaluated in the same way and compared at equal training time.

Each trial is a run folder, so a pruned trial can be resumed, and the best trial is already a trained model. Trial 0 is
the default recipe. Values are drawn by TPE (Bergstra et al. 2011), with random numbers that depend only on the seed and
the trial number. A trial is stopped when its learning curve is worse than those of the others at the same point of the
run (median pruning, or Hyperband). Before the learning rate decays, a curve can look worse than its final result, so no
trial is stopped in its first quarter, or before a few trials have completed. Running the command again continues a
killed sweep. Several processes can work on one sweep at the same time (``study.py``).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from kotha.artifacts.run_folder import RunFolder, figure
from kotha.errors import ConfigError, TrainingError, UsageError
from kotha.i18n.message import Message, OnRemark, Option
from kotha.model.presets import preset
from kotha.text.shards import Dataset
from kotha.training.loop import Training
from kotha.training.plan.design import BASE
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.plan.step_time import use_fastest_threads
from kotha.training.plan.text_size import measure_text
from kotha.training.request import USUAL_PRESET, TrainRequest, choose_settings, take_sizes
from kotha.training.start import check_held_out
from kotha.training.sweep.space import (
    SIZE,
    SearchDimension,
    Value,
    as_changes,
    default_of,
    read_search,
    short,
    usual_search,
)
from kotha.training.sweep.study import (
    ABOUT,
    DEFAULT,
    FOLDER,
    database_errors,
    database_in,
    open_study,
    optuna,
    requeue,
)
from kotha.training.train_run import train_run

FIGURES = {"bits_per_byte": "bits/byte", "loss_nats": "nats"}  # the objective is the first of these that a task has
# Trials that must complete before any trial is stopped, and evaluations before a trial can be stopped.
_FULL_TRIALS, _FIRST_PARTS = 4, EVALUATIONS // 4
_RANDOM_TRIALS = 8
_FORMAT = 1
_ANOTHER = Message(
    "start another study with {out}, or with {study} in a shared database",
    out=Option("out", ...),
    study=Option("study", ...),
)


@dataclass(frozen=True)
class SweepRequest:
    """The user's request for a sweep."""

    training: TrainRequest  # the request of each trial, with its time limit
    search: tuple[str, ...] = ()  # search ranges as text; empty: the settings that usually matter most
    prune: str = "median"  # median, hyperband or none
    seed: int = 0  # random seed for drawing values
    trials: int = 20  # total number of trials over all processes

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UsageError("{trials} must be 1 or more", trials=Option("trials", self.trials))

    @property
    def shared_settings(self) -> dict[str, Any]:
        """Return the settings that must be equal in all processes of a study, as JSON types."""
        training = self.training
        how = {"preset": training.preset, "recipe": training.recipe, "minutes": training.minutes, "seed": self.seed}
        return {**how, "prune": self.prune, "changes": dict(training.changes)}


@dataclass(frozen=True)
class Sweep:
    """The description of a sweep as JSON types, shared by all processes."""

    asked: dict[str, Any]
    data: str  # identity of the data
    preset: str | None  # of every trial
    fixed: dict[str, Any]  # settings and sizes of every trial, unless searched
    measured_by: dict[str, Any]  # settings that only affect evaluation
    search: list[str]  # search ranges as text
    defaults: dict[str, Value]  # default values of the searched settings
    format: int = _FORMAT

    @cached_property
    def searched(self) -> list[SearchDimension]:
        """The settings that the sweep searches."""
        return read_search(self.search, preset(self.preset or USUAL_PRESET))

    def changes(self, values: dict[str, Value]) -> dict[str, Any]:
        """Return how a trial with these values changes the defaults, as for ``kotha train``."""
        return {**self.fixed, **as_changes(values)}

    def request(self, values: dict[str, Value]) -> TrainRequest:
        """Return the training request of a trial with these values."""
        changes = {**self.measured_by, **self.changes(values)}
        return TrainRequest(self.preset, self.asked["recipe"], self.asked["minutes"], changes=changes)


def describe_sweep(data: Dataset, request: SweepRequest) -> Sweep:
    """Describe a new sweep: the default recipe for the data and time limit, and the settings to search."""
    trial, given = request.training, dict(request.training.changes)
    # Validated before anything is timed.
    chosen = read_search(request.search, preset(trial.preset or USUAL_PRESET), given)
    choice = choose_settings(trial, measure_text(str(data.path)), use_fastest_threads)
    design, settings = choice.design, choice.settings
    sizes_open = trial.preset is None and design is not None and len(take_sizes(choice.model, given)[1]) == len(given)
    searched = chosen or usual_search(choice, given, sizes_open)
    names = {each.name for each in searched}
    fixed, measured_by = dict[str, Any](), dict[str, Any]()
    if design is not None:
        fixed = design.sizes if sizes_open and SIZE not in names else {}
        fixed |= {"context_length": settings.context_length}
        measured_by = {"evaluate_tokens": settings.evaluate_tokens}
    elif not trial.timed:  # the recipe's evaluations may be too far apart for a learning curve
        measured_by = {"evaluate_every": max(1, -(-settings.steps // EVALUATIONS))}
    fixed = {name: value for name, value in {**fixed, **given}.items() if name not in names}
    return Sweep(
        asked=request.shared_settings,
        data=data.identity,
        preset=BASE if sizes_open else trial.preset,
        fixed=fixed,
        measured_by={name: value for name, value in measured_by.items() if name not in fixed},
        search=[each.words for each in searched],
        defaults={each.name: default_of(each.name, choice) for each in searched},
    )


def read_sweep(description: dict[str, Any], data: Dataset, request: SweepRequest) -> Sweep:
    """Return the sweep that a study describes; raise an error if its data or settings differ from the request."""
    if description.get("format") != _FORMAT:
        raise UsageError("the study was started by another version of Kotha; {another}", another=_ANOTHER)
    sweep = Sweep(**description)
    requested = read_search(request.search, preset(sweep.preset or USUAL_PRESET)) or sweep.searched
    search = " ".join(each.words for each in requested)
    before = {**sweep.asked, "data": sweep.data, "search": " ".join(sweep.search)}
    for name, value in {**request.shared_settings, "data": data.identity, "search": search}.items():
        begun = before.get(name)
        if begun != value:
            raise UsageError(
                "the study was started with {name}={begun!r}, but now {asked!r} is requested; use the same "
                "value, or {another}",
                name=name,
                begun=begun,
                asked=value,
                another=_ANOTHER,
            )
    return sweep


# -- one process -------------------------------------------------------------------------------------------------------


class SweepStopped(Exception):  # noqa: N818 - nothing went wrong
    """Raised when a stop is requested; the current trial is saved and queued again."""


class SweepRunner:
    """The search loop of one process."""

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
        self.data, self.folder, self._request = data, folder, request
        self._on_event, self._say = on_event, on_remark
        pruners, self._states = optuna().pruners, optuna().trial.TrialState  # fail before a folder is created
        self._url = database_in(folder) if url is None else url
        with database_errors(self._url):
            self.study = open_study(self._url, name, folder, lambda: asdict(describe_sweep(data, request)))
            self.sweep = read_sweep(self.study.user_attrs[ABOUT], data, request)
        self.study.pruner = {
            "median": pruners.MedianPruner(n_startup_trials=_FULL_TRIALS, n_warmup_steps=_FIRST_PARTS),
            "hyperband": pruners.HyperbandPruner(_FIRST_PARTS, max_resource=EVALUATIONS, reduction_factor=2),
            "none": pruners.NopPruner(),
        }[request.prune]
        self._current: int | None = None  # the current trial

    def counted(self) -> list[Any]:
        """Return the trials that count towards the total; failed trials are queued again."""
        return [each for each in self.study.get_trials(deepcopy=False) if each.state != self._states.FAIL]

    def run(self) -> None:
        """Run trials until all processes together have run enough."""
        with database_errors(self._url):
            while True:
                optuna().storages.fail_stale_trials(self.study)  # queues stale trials again
                states = [each.state for each in self.counted()]
                if self._states.WAITING not in states and len(states) >= self._request.trials:
                    return
                self._one()

    def _one(self) -> None:
        """Run one trial; if it is interrupted, it is queued again."""
        self._current = None
        try:
            self.study.optimize(self._try, n_trials=1)
        except BaseException:
            with suppress(Exception):  # after a database error the heartbeat stops, and the trial is queued later
                if self._current is not None and self.study.trials[self._current].state == self._states.FAIL:
                    requeue(self.study, self.study.trials[self._current])
            raise

    def _try(self, trial: Any) -> float:
        """Run a trial and return the best value of its objective."""
        self._current = trial.number
        is_default = trial.number == 0 or bool(trial.user_attrs.get(DEFAULT))
        trial.set_user_attr(DEFAULT, is_default)
        if FOLDER not in trial.user_attrs:
            trial.set_user_attr(FOLDER, f"trial-{trial.number:04d}")
        values = self._values(trial, is_default)
        drawn = [f"{name.replace('_', ' ')} {short(value)}" for name, value in values.items()]
        template = "{trial} is the default recipe: {drawn}" if is_default else "{trial}: {drawn}"
        self._say(Message(template, trial=title_of(trial), drawn=drawn))
        try:
            return self._train(trial, values, is_default)
        except (ConfigError, TrainingError) as error:
            if is_default:  # a sweep needs a working default
                raise
            trial.set_user_attr("problem", str(error))
            self._say(Message("{trial} failed: {error}", trial=title_of(trial), error=error))
            raise optuna().TrialPruned from error

    def _values(self, trial: Any, is_default: bool) -> dict[str, Value]:
        """Return the values of a trial; for the default recipe, only those within the search ranges are recorded."""
        seed = np.random.SeedSequence([self._request.seed, trial.number]).generate_state(1)[0]
        samplers, searched, defaults = optuna().samplers, self.sweep.searched, self.sweep.defaults
        self.study.sampler = samplers.TPESampler(seed=int(seed), n_startup_trials=_RANDOM_TRIALS, constant_liar=True)
        if is_default:
            searched = [each for each in searched if each.holds(defaults[each.name])]
            within = {each.name: defaults[each.name] for each in searched}
            self.study.sampler = samplers.PartialFixedSampler(within, self.study.sampler)
        drawn = {each.name: each.draw(trial) for each in searched}
        return dict(defaults) if is_default else drawn

    def _train(self, trial: Any, values: dict[str, Value], is_default: bool) -> float:
        folder, title = RunFolder(self.folder / trial.user_attrs[FOLDER]), title_of(trial)
        parts, pruned = 0, False  # number of evaluations reported to the study, and whether the trial was pruned
        training: Training | None = None

        def follow(event: dict[str, Any]) -> None:
            nonlocal parts, pruned
            value = value_of(event.get("validation") or {})
            part = round(EVALUATIONS * event["step"] / event["steps"])
            if not np.isfinite(value) or part <= parts:
                return
            parts = part
            trial.report(value, part)
            if training is None or is_default or event["step"] >= event["steps"]:
                return
            if trial.should_prune():
                pruned = training.interrupts.stop_requested = True  # the run saves a checkpoint and ends

        def on_event(event: dict[str, Any]) -> None:
            follow(event)
            self._on_event({**event, "trial": title})

        def on_ready(started: Training) -> None:
            nonlocal training
            training = started

        resumes = folder.exists
        for row in folder.metrics() if resumes else ():
            follow({**row, "steps": folder.read()[1]["steps"]})
        request = TrainRequest() if resumes else self.sweep.request(values)
        summary = train_run(self.data, folder, request, resume=resumes, on_event=on_event, on_ready=on_ready)
        reached = value_of(folder.best() or {})
        unit = next((unit for name, unit in FIGURES.items() if name in summary), "nats")
        for name in ("steps", "tokens", "seconds", "unit"):
            trial.set_user_attr(name, {**summary, "unit": unit}[name])
        if summary["stopped"] and not pruned:
            raise SweepStopped
        outcome = {"trial": title, "shown": Message("{value:.4f} {unit}", value=reached, unit=Message(unit))}
        if pruned:
            behind = "{trial} fell behind and was stopped at {shown} after {parts} of {evaluations} evaluations"
            self._say(Message(behind, **outcome, parts=parts, evaluations=EVALUATIONS))
            raise optuna().TrialPruned
        ended = [each.value for each in self.counted() if each.state == self._states.COMPLETE]
        best = Message(", the best so far") if reached < min(ended, default=float("inf")) else ""
        self._say(Message("{trial} reached {shown}{best}", **outcome, best=best))
        return reached


def value_of(score: dict[str, Any]) -> float:
    """Return the value of a minimized score; infinity if it is missing."""
    found = (figure(score, name) for name in FIGURES)
    return next((value for value in found if value is not None), float("inf"))


def title_of(trial: Any) -> Message:
    """Return the name of a trial, taken from its folder, which stays the same if the trial is repeated.

    >>> from types import SimpleNamespace
    >>> str(title_of(SimpleNamespace(user_attrs={"folder": "trial-0007"}, number=9)))
    'trial 7'
    """
    folder = str(trial.user_attrs.get(FOLDER, trial.number))
    return Message("trial {n}", n=int(folder.rpartition("-")[2]))
