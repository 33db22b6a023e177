"""What a sweep is, for all who work on it: its data, what was asked for, what is searched, the default it starts from.

The default recipe is settled here, with the sizes, the context and the share of the validation text that it would have.
All trials keep these unless they are searched, so that they are measured alike and compared at equal time.
"""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from kotha.errors import UsageError
from kotha.i18n.message import Message, Option
from kotha.model.presets import preset
from kotha.text.shards import Dataset
from kotha.training.plan.design import BASE, measure_text
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.plan.step_time import use_fastest_threads
from kotha.training.start import USUAL_PRESET, TrainRequest, choose_settings, take_sizes
from kotha.training.sweep.space import SIZE, Searched, Value, as_changes, default_of, read_search, usual_search

_FORMAT = 1
_ANOTHER = Message(
    "begin another study with {out}, or in a shared database with {study}",
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

    @cached_property
    def searched(self) -> list[Searched]:
        """What is searched."""
        return read_search(self.search, preset(self.preset or USUAL_PRESET))

    def to_dict(self) -> dict[str, Any]:
        """For the study."""
        return {"format": _FORMAT, **asdict(self)}

    def changes(self, values: dict[str, Value]) -> dict[str, Any]:
        """What a trial with these values changes, as ``kotha train`` would be told."""
        return {**self.fixed, **as_changes(values)}

    def request(self, values: dict[str, Value]) -> TrainRequest:
        """A trial with these values."""
        changes = {**self.measured_by, **self.changes(values)}
        return TrainRequest(self.preset, self.asked["recipe"], self.asked["minutes"], changes=changes)


def describe_sweep(data: Dataset, request: SweepRequest) -> Sweep:
    """Settle a new sweep: the default recipe for the data and the time, and what is searched around it."""
    asked = request.training
    # What can be refused is refused before anything is timed.
    chosen = read_search(request.search, preset(asked.preset or USUAL_PRESET), asked.changes)
    choice = choose_settings(asked, measure_text(str(data.path)), use_fastest_threads)
    given = dict(asked.changes)
    designed = asked.preset is None and choice.design is not None
    _, rest = take_sizes(choice.model, given)
    sizes_open = designed and len(rest) == len(given)
    searched = chosen or usual_search(choice, given, sizes_open)
    names = {each.name for each in searched}
    measured_by: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    if choice.design is not None:
        fixed = choice.design.sizes if sizes_open and SIZE not in names else {}
        fixed |= {"context_length": choice.settings.context_length}
        measured_by = {"evaluate_tokens": choice.settings.evaluate_tokens}
    elif not asked.timed:  # a recipe may look too seldom for a curve
        measured_by = {"evaluate_every": max(1, -(-choice.settings.steps // EVALUATIONS))}
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
        raise UsageError("the study was begun by another version of Kotha; {another}", another=_ANOTHER)
    if told["data"] != data.identity:
        raise UsageError(
            "the study was begun with other data than {path}; name that, or {another}", path=data.path, another=_ANOTHER
        )
    for name, value in request.told.items():
        if told["asked"].get(name) != value:
            raise UsageError(
                "the study was begun with {name}={begun!r}, and now {asked!r} is asked for; go on with the "
                "same, or {another}",
                name=name,
                begun=told["asked"].get(name),
                asked=value,
                another=_ANOTHER,
            )
    sweep = Sweep(**{name: value for name, value in told.items() if name != "format"})
    again = read_search(request.search, preset(sweep.preset or USUAL_PRESET))
    if again and [each.words for each in again] != sweep.search:
        raise UsageError(
            "the study searches {searched}; go on with the same, or {another}",
            searched=" ".join(sweep.search),
            another=_ANOTHER,
        )
    return sweep
