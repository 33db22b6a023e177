"""The findings of a sweep: the importance of each setting, and the best trial compared with the default.

The importance of a setting (PED-ANOVA, Watanabe et al. 2023) measures how much its values in the better trials differ
from those in all trials; the importances of all settings add up to one. With few trials, the importances are
unreliable. Each trial uses one seed, so a small gain may be due to chance.
"""

import math
import shlex
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kotha.i18n.message import Message, Text
from kotha.report.document import Block, Code, Curves, DrawnLine, Heading, Headline, Paragraph, Report
from kotha.report.table import Table
from kotha.storage.atomic import write_page
from kotha.training.plan.rules import EVALUATIONS
from kotha.training.sweep.search import SweepRunner, title_of
from kotha.training.sweep.space import Value, in_words, rounded, short
from kotha.training.sweep.study import DEFAULT, FOLDER, optuna

# Minimum number of completed trials for reporting importances.
_FEWEST = 4
# With fewer trials per setting than this, importances are reported as rough estimates.
_FEW_FOR_EACH = 5
_ENDS = {"complete": Message("completed"), "pruned": Message("stopped early")}


@dataclass(frozen=True)
class Trial:
    """The state of a trial."""

    name: Text
    folder: str
    state: str  # complete, pruned, running or waiting
    value: float | None  # the objective; lower is better
    is_default: bool
    values: dict[str, Value]
    steps: int | None = None
    seconds: float | None = None
    problem: str | None = None
    curve: list[tuple[int, float]] = field(default_factory=list)  # (part of the run, value) of each evaluation


@dataclass(frozen=True)
class SweepFindings:
    """The findings of a sweep, available as data, tables and a page."""

    data: str
    out: str
    trials: list[Trial]
    importance: dict[str, float]
    default_values: dict[str, Value]
    searched: dict[str, str]  # the range of each setting
    unit: str
    preset: str | None
    recipe: str
    minutes: float | None
    changes: dict[str, Any]  # what the best trial changes in the preset, recipe and time limit
    at_an_end: list[str]  # settings whose best value is near an end of their range
    best: Trial | None  # the trial with the lowest value
    default: Trial | None  # the default recipe, once it has completed

    def to_dict(self) -> dict[str, Any]:
        """Return all findings as JSON types."""
        return {**asdict(self), "command": self.command}

    @property
    def command(self) -> str:
        """Return the command that trains with the best settings."""
        changes = dict(self.changes)
        steps = changes.pop("steps", None)
        words = ["kotha", "train", self.data, "--out", "run"]
        words += [] if self.preset is None else ["--preset", self.preset]
        words += ["--recipe", self.recipe]
        words += [] if self.minutes is None else ["--minutes", f"{self.minutes:g}"]
        words += [] if steps is None else ["--steps", str(steps)]
        words += ["--set", *(f"{name}={in_words(value)}" for name, value in changes.items())] if changes else []
        return shlex.join(words)

    def count(self, *states: str) -> int:
        """Return the number of trials in these states."""
        return sum(each.state in states for each in self.trials)

    def tables(self) -> list[Table | Text]:
        """Return tables of the best trials and of the importance of each setting, with explanatory sentences."""
        best = trial_table(self, Message("{out}: the best trials", out=self.out))
        return [best, importance_table(self, Message("importance of settings")), *sentences(self)]

    def save(self, path: Path) -> Path:
        """Write the findings as a page."""
        write_page(path, sweep_document(self).html())
        return path


def find(searching: SweepRunner) -> SweepFindings:
    """Return the current findings of the study, over all processes."""
    sweep, counted = searching.sweep, searching.counted()
    trials = [_trial(each, sweep.defaults) for each in counted]
    ended = [each for each in trials if each.state == "complete" and each.value is not None]
    best = min(ended, key=lambda each: each.value or 0.0, default=None)
    values = {} if best is None else best.values
    names = [each.name for each in sweep.searched]
    importance: dict[str, float] = {}
    if len(ended) >= _FEWEST and len({each.value for each in ended}) > 1:
        importance = optuna().importance.get_param_importances(searching.study, params=names)
    return SweepFindings(
        data=str(searching.data.path),
        out=str(searching.folder),
        trials=trials,
        importance={name: float(importance.get(name, 0.0)) for name in names if importance},
        default_values=sweep.defaults,
        searched={each.name: each.range for each in sweep.searched},
        unit=next((each.user_attrs["unit"] for each in counted if "unit" in each.user_attrs), "bits/byte"),
        preset=sweep.preset,
        recipe=sweep.asked["recipe"],
        minutes=sweep.asked["minutes"],
        changes=sweep.changes(values),
        at_an_end=[each.name for each in sweep.searched if each.at_an_end(values.get(each.name))],
        best=best,
        default=next((each for each in ended if each.is_default), None),
    )


def _trial(trial: Any, defaults: dict[str, Value]) -> Trial:
    attributes = trial.user_attrs
    is_default = bool(attributes.get(DEFAULT))
    return Trial(
        name=title_of(trial),
        folder=str(attributes.get(FOLDER, "")),
        state=trial.state.name.lower(),
        value=trial.value if trial.value is not None and math.isfinite(trial.value) else None,
        is_default=is_default,
        values=dict(defaults) if is_default else {name: rounded(value) for name, value in trial.params.items()},
        **{name: attributes.get(name) for name in ("steps", "seconds", "problem")},
        curve=sorted(trial.intermediate_values.items()),
    )


# -- tables and sentences ----------------------------------------------------------------------------------------------


def importance_table(found: SweepFindings, title: Text = "") -> Table:
    """Return each setting with its range, default, best value and importance, the most important first."""
    rows: list[list[Text]] = []
    for name in sorted(found.searched, key=lambda each: -found.importance.get(each, 0.0)):
        chosen = "" if found.best is None else short(found.best.values.get(name))
        share = f"{found.importance[name]:.0%}" if name in found.importance else ""
        rows.append([name, found.searched[name], short(found.default_values[name]), chosen, share])
    return Table(title, [*map(Message, ("setting", "searched", "default", "best", "importance"))], rows)


def trial_table(found: SweepFindings, title: Text = "", most: int = 10) -> Table:
    """Return the trials, best first, with value, outcome and settings."""
    known = [each for each in found.trials if each.value is not None]
    rows: list[list[Text]] = []
    for each in sorted(known, key=lambda each: (each.state != "complete", each.value))[:most]:
        values = ", ".join(f"{name}={short(value)}" for name, value in each.values.items())
        name = Message("{trial} (default)", trial=each.name) if each.is_default else each.name
        rows.append([name, f"{each.value:.4f}", _ENDS.get(each.state, each.state), values])
    return Table(title, [Message("trial"), Message(found.unit), Message("outcome"), Message("settings")], rows)


def sentences(found: SweepFindings) -> list[Message]:
    """Return the sentences that explain the tables."""
    best, default, completed = found.best, found.default, found.count("complete")
    ends = "completed trials: {whole}; stopped early: {stopped}"
    messages = [Message(ends, whole=completed, stopped=found.count("pruned"))]
    if unfinished := found.count("running", "waiting"):
        messages.append(
            Message(
                "running in other processes or waiting: {n}; run the same command again to continue them", n=unfinished
            )
        )
    if best is None or best.value is None:
        return [*messages, Message("no trial has completed yet, so there is nothing to recommend")]
    how: dict[str, Any] = {"trial": best.name, "value": best.value, "unit": Message(found.unit)}
    template = "{trial} is the best: {value:.4f} {unit}"
    if best.is_default:
        template = "no trial was better than the default recipe, {value:.4f} {unit}"
    elif default is not None and default.value is not None:
        template = (
            "{trial} is the best: {value:.4f} {unit}, {gain:.1%} below the default recipe's {default:.4f}; each trial "
            "has only one seed, so a small gain may be due to chance"
        )
        how |= {"gain": 1 - best.value / default.value, "default": default.value}
    messages.append(Message(template, **how))
    beyond = "the best {name} is {value}, close to an end of {range}; extend the range"
    for name in found.at_an_end:
        messages.append(Message(beyond, name=name, range=found.searched[name], value=short(best.values[name])))
    if not found.importance:
        messages.append(
            Message(
                "the importance of settings cannot be estimated yet; this takes {n} completed trials with different "
                "results",
                n=_FEWEST,
            )
        )
    elif completed < _FEW_FOR_EACH * len(found.searched):
        messages.append(
            Message(
                "the importance of settings is a rough estimate from {n} trials; run more trials to improve it",
                n=completed,
            )
        )
    return messages


# -- one offline page ------------------------------------------------------------------------------------------------

_MOST_TRIALS = 200


def sweep_document(found: SweepFindings) -> Report:
    """Return the page as data."""
    best, default, unit = found.best, found.default, Message(found.unit)
    figures: list[tuple[str, Text]] = []
    if best is not None:
        figures.append((f"{best.value:.4f}", Message("{unit}, {trial}", unit=unit, trial=best.name)))
    if default is not None:
        figures.append((f"{default.value:.4f}", Message("{unit}, the default recipe", unit=unit)))
    blocks: list[Block] = [Headline([*figures, (str(len(found.trials)), Message("trials"))])]
    blocks += [Paragraph(each) for each in sentences(found)]
    if best is not None:
        blocks.append(Code(found.command, Message("Train again with the best trial's settings, possibly for longer")))
    blocks += [Heading(Message("Importance of settings")), importance_table(found)]
    curves = [_line(each, best, default) for each in found.trials if len(each.curve) > 1]
    if curves:
        text = (
            "Each line is a trial, measured at {n} points of its run; short lines are trials that were stopped early."
        )
        title = Message("Learning curves of {n} trials", n=len(curves))
        # Highlighted lines come last, so that they are drawn on top.
        ordered = sorted(curves, key=lambda each: each.look != "faint")
        blocks.append(Heading(Message("Learning curves")))
        caption = [Message(text, n=EVALUATIONS)]
        blocks.append(Curves(title, Message("part of the run"), unit, ordered, caption=caption))
    blocks += [Heading(Message("Trials")), trial_table(found, most=_MOST_TRIALS)]
    lead = Message("Many short training runs; runs that fell behind were stopped early.")
    return Report(Message("Hyperparameter search results"), [lead], blocks, [Message("Made by kotha sweep.")])


def _line(trial: Trial, best: Trial | None, default: Trial | None) -> DrawnLine:
    points = [(float(part), value) for part, value in trial.curve]
    if best is not None and trial.name == best.name:
        return DrawnLine(Message("best ({trial})", trial=trial.name), points, 1, "dots")
    if default is not None and trial.name == default.name:
        return DrawnLine(Message("default"), points, 2, "dots")
    return DrawnLine(trial.name, points, 6, "faint")
