"""A sweep: what it searches around, and the search: draw settings, train, tell the study, until there are enough.

The default recipe is settled once, with the sizes, the context and the share of the validation text that it would have.
All trials keep these unless they are searched, so that they are measured alike and compared at equal time.

Each trial is a run folder of its own, so a pruned one can be gone on with, and the best one is a model already. Trial 0
is the default recipe. Values are drawn by TPE (Bergstra et al. 2011), from a seed and the trial's number alone; a trial
is stopped when its learning curve falls behind the others at the same share of the run (median pruning, or Hyperband).
A schedule that still falls can make a curve look worse than its end would be, so nothing is stopped in the first
quarter, nor before a few trials have come to their end. Who is killed goes on by starting again; several may work at
the same time (``study.py``).
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
from kotha.training.plan.design import BASE, measure_text
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.plan.step_time import use_fastest_threads
from kotha.training.start import USUAL_PRESET, TrainRequest, check_held_out, choose_settings, take_sizes, train_run
from kotha.training.sweep.space import SIZE, Searched, Value, as_changes, default_of, read_search, short, usual_search
from kotha.training.sweep.study import (
    ABOUT,
    DEFAULT,
    FOLDER,
    database_in,
    database_told,
    do_again,
    open_study,
    optuna,
)

FIGURES = {"bits_per_byte": "bits/byte", "loss_nats": "nats"}  # what decides, the first that a task measures
# Trials that come to their end before any is stopped, and parts of a run in which none is.
_WHOLE_TRIALS, _FIRST_PARTS = 4, EVALUATIONS // 4
_DRAWN_BY_CHANCE = 8
_FORMAT = 1
_ANOTHER = Message(
    "start another study with {out}, or with {study} in a shared database",
    out=Option("out", ...),
    study=Option("study", ...),
)


@dataclass(frozen=True)
class SweepRequest:
    """What was asked for."""

    training: TrainRequest  # of each trial; its minutes are a trial's
    search: tuple[str, ...] = ()  # what is searched, in words; empty for what usually matters
    prune: str = "median"  # median, hyperband or none
    seed: int = 0  # of what is drawn
    trials: int = 20  # of all processes together

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UsageError("trials={trials} must be 1 or more", trials=self.trials)

    @property
    def told(self) -> dict[str, Any]:
        """What must be the same for all who work on one study, ready for JSON."""
        asked = self.training
        how = {"preset": asked.preset, "recipe": asked.recipe, "minutes": asked.minutes, "seed": self.seed}
        return {**how, "prune": self.prune, "changes": dict(asked.changes)}


@dataclass(frozen=True)
class Sweep:
    """What everybody knows of a sweep, ready for JSON."""

    asked: dict[str, Any]
    data: str  # the identity of the data
    preset: str | None  # of every trial
    fixed: dict[str, Any]  # settings and sizes of every trial, unless searched
    measured_by: dict[str, Any]  # settings that only say how it is measured
    search: list[str]  # in words
    defaults: dict[str, Value]  # of what is searched
    format: int = _FORMAT

    @cached_property
    def searched(self) -> list[Searched]:
        """What is searched."""
        return read_search(self.search, preset(self.preset or USUAL_PRESET))

    def changes(self, values: dict[str, Value]) -> dict[str, Any]:
        """What a trial with these values changes, as ``kotha train`` would be told."""
        return {**self.fixed, **as_changes(values)}

    def request(self, values: dict[str, Value]) -> TrainRequest:
        """A trial with these values."""
        changes = {**self.measured_by, **self.changes(values)}
        return TrainRequest(self.preset, self.asked["recipe"], self.asked["minutes"], changes=changes)


def describe_sweep(data: Dataset, request: SweepRequest) -> Sweep:
    """Settle a new sweep: the default recipe for the data and the time, and what is searched around it."""
    asked, given = request.training, dict(request.training.changes)
    # What can be refused is refused before anything is timed.
    chosen = read_search(request.search, preset(asked.preset or USUAL_PRESET), given)
    choice = choose_settings(asked, measure_text(str(data.path)), use_fastest_threads)
    design, settings = choice.design, choice.settings
    sizes_open = asked.preset is None and design is not None and len(take_sizes(choice.model, given)[1]) == len(given)
    searched = chosen or usual_search(choice, given, sizes_open)
    names = {each.name for each in searched}
    fixed, measured_by = dict[str, Any](), dict[str, Any]()
    if design is not None:
        fixed = design.sizes if sizes_open and SIZE not in names else {}
        fixed |= {"context_length": settings.context_length}
        measured_by = {"evaluate_tokens": settings.evaluate_tokens}
    elif not asked.timed:  # a recipe may look too seldom for a curve
        measured_by = {"evaluate_every": max(1, -(-settings.steps // EVALUATIONS))}
    fixed = {name: value for name, value in {**fixed, **given}.items() if name not in names}
    return Sweep(
        asked=request.told,
        data=data.identity,
        preset=BASE if sizes_open else asked.preset,
        fixed=fixed,
        measured_by={name: value for name, value in measured_by.items() if name not in fixed},
        search=[each.words for each in searched],
        defaults={each.name: default_of(each.name, choice) for each in searched},
    )


def read_sweep(told: dict[str, Any], data: Dataset, request: SweepRequest) -> Sweep:
    """The sweep that a study tells of; one of other data or settings than what is asked for now is refused."""
    if told.get("format") != _FORMAT:
        raise UsageError("the study was started by another version of Kotha; {another}", another=_ANOTHER)
    sweep = Sweep(**told)
    again = read_search(request.search, preset(sweep.preset or USUAL_PRESET)) or sweep.searched
    search = " ".join(each.words for each in again)
    before = {**sweep.asked, "data": sweep.data, "search": " ".join(sweep.search)}
    for name, value in {**request.told, "data": data.identity, "search": search}.items():
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


# -- one process at work -----------------------------------------------------------------------------------------------


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
        self.data, self.folder, self._request = data, folder, request
        self._hear, self._say = on_event, on_remark
        pruners, self._states = optuna().pruners, optuna().trial.TrialState  # before a folder is made
        self._url = database_in(folder) if url is None else url
        with database_told(self._url):
            self.study = open_study(self._url, name, folder, lambda: asdict(describe_sweep(data, request)))
            self.sweep = read_sweep(self.study.user_attrs[ABOUT], data, request)
        self.study.pruner = {
            "median": pruners.MedianPruner(n_startup_trials=_WHOLE_TRIALS, n_warmup_steps=_FIRST_PARTS),
            "hyperband": pruners.HyperbandPruner(_FIRST_PARTS, max_resource=EVALUATIONS, reduction_factor=2),
            "none": pruners.NopPruner(),
        }[request.prune]
        self._at: int | None = None  # the trial at hand

    def counted(self) -> list[Any]:
        """The trials that count; what failed was queued again."""
        return [each for each in self.study.get_trials(deepcopy=False) if each.state != self._states.FAIL]

    def run(self) -> None:
        """Do trials until there are enough, those of other processes included."""
        with database_told(self._url):
            while True:
                optuna().storages.fail_stale_trials(self.study)  # and queue them again
                states = [each.state for each in self.counted()]
                if self._states.WAITING not in states and len(states) >= self._request.trials:
                    return
                self._one()

    def _one(self) -> None:
        """Draw one trial and do it; whatever ends it before its end, it is queued again."""
        self._at = None
        try:
            self.study.optimize(self._try, n_trials=1)
        except BaseException:
            with suppress(Exception):  # the database may be what failed; then the heart of the trial has stopped
                if self._at is not None and self.study.trials[self._at].state == self._states.FAIL:
                    do_again(self.study, self.study.trials[self._at])
            raise

    def _try(self, trial: Any) -> float:
        """One trial, from its values to its best figure."""
        self._at = trial.number
        is_default = trial.number == 0 or bool(trial.user_attrs.get(DEFAULT))
        trial.set_user_attr(DEFAULT, is_default)
        if FOLDER not in trial.user_attrs:
            trial.set_user_attr(FOLDER, f"trial-{trial.number:04d}")
        values = self._values(trial, is_default)
        drawn = [f"{name.replace('_', ' ')} {short(value)}" for name, value in values.items()]
        told = "{trial} is the default recipe: {drawn}" if is_default else "{trial}: {drawn}"
        self._say(Message(told, trial=title_of(trial), drawn=drawn))
        try:
            return self._train(trial, values, is_default)
        except (ConfigError, TrainingError) as error:
            if is_default:  # what even the default cannot do is nothing to search around
                raise
            trial.set_user_attr("problem", str(error))
            self._say(Message("{trial} failed: {error}", trial=title_of(trial), error=error))
            raise optuna().TrialPruned from error

    def _values(self, trial: Any, is_default: bool) -> dict[str, Value]:
        """The trial's values; the default's are told to the study where they lie within what is searched."""
        seed = np.random.SeedSequence([self._request.seed, trial.number]).generate_state(1)[0]
        samplers, searched, defaults = optuna().samplers, self.sweep.searched, self.sweep.defaults
        self.study.sampler = samplers.TPESampler(seed=int(seed), n_startup_trials=_DRAWN_BY_CHANCE, constant_liar=True)
        if is_default:
            searched = [each for each in searched if each.holds(defaults[each.name])]
            within = {each.name: defaults[each.name] for each in searched}
            self.study.sampler = samplers.PartialFixedSampler(within, self.study.sampler)
        drawn = {each.name: each.draw(trial) for each in searched}
        return dict(defaults) if is_default else drawn

    def _train(self, trial: Any, values: dict[str, Value], is_default: bool) -> float:
        folder, title = RunFolder(self.folder / trial.user_attrs[FOLDER]), title_of(trial)
        parts, pruned = 0, False  # of the learning curve that the study was told, and whether that was the last
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
                pruned = training.interrupts.stop_requested = True  # it saves, and ends as if someone had asked it to

        def hear(event: dict[str, Any]) -> None:
            follow(event)
            self._hear({**event, "trial": title})

        def watch(begun: Training) -> None:
            nonlocal training
            training = begun

        goes_on = folder.exists
        for row in folder.metrics() if goes_on else ():
            follow({**row, "steps": folder.read()[1]["steps"]})
        request = TrainRequest() if goes_on else self.sweep.request(values)
        summary = train_run(self.data, folder, request, resume=goes_on, on_event=hear, on_ready=watch)
        reached = value_of(folder.best() or {})
        unit = next((unit for name, unit in FIGURES.items() if name in summary), "nats")
        for name in ("steps", "tokens", "seconds", "unit"):
            trial.set_user_attr(name, {**summary, "unit": unit}[name])
        if summary["stopped"] and not pruned:
            raise SweepStopped
        told = {"trial": title, "shown": Message("{value:.4f} {unit}", value=reached, unit=Message(unit))}
        if pruned:
            behind = "{trial} was stopped at {shown} after {parts} of {evaluations} parts: it fell behind"
            self._say(Message(behind, **told, parts=parts, evaluations=EVALUATIONS))
            raise optuna().TrialPruned
        ended = [each.value for each in self.counted() if each.state == self._states.COMPLETE]
        best = Message(", the best so far") if reached < min(ended, default=float("inf")) else ""
        self._say(Message("{trial} reached {shown}{best}", **told, best=best))
        return reached


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
