"""A run that learns from examples instead of a data folder: what all uses of them share.

::

    RUN/examples/    train.jsonl, validation.jsonl, test.jsonl: what was learned from, chosen by and measured on

The rest is a run as ``train`` makes it. The examples lie in the run, so whoever goes on needs no other file, and what
was held out can be found again. The third part is looked at once, after the last step. Each use (``classify.py``,
``pairs.py``, ``instruct.py``) brings its own settings, its task, and what it measures.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kotha.artifacts import model_folder as bundle
from kotha.artifacts import run_folder as runs
from kotha.artifacts.model_folder import Bundle
from kotha.artifacts.run_folder import RunFolder
from kotha.errors import CheckpointError, ConfigError, KothaError
from kotha.i18n.message import Text
from kotha.model.config import ModelConfig
from kotha.storage.atomic import write_whole
from kotha.storage.json_files import as_json
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.config import TrainConfig
from kotha.training.device.hardware import describe_machine
from kotha.training.loop import OnEvent, Sampler, Training
from kotha.training.settings import take_sizes
from kotha.training.show.report import write_report
from kotha.training.tasks.task import Task

EXAMPLES, PARTS = "examples", ("train", "validation", "test")

OnRemark = Callable[[Text], None]
Row = tuple[str, ...]
Measure = Callable[[Bundle], dict[str, Any]]  # what is found on the held-out part, for the summary


def training_of(
    model: ModelConfig,
    config: TrainConfig,
    task: Task,
    folder: RunFolder,
    tokenizer: Tokenizer | None,
    *,
    on_event: OnEvent | None = None,
    sampler: Sampler | None = None,
    fill: Callable[[Any], Any] | None = None,
) -> Training:
    """The training of a task; who listens also hears how many steps there will be."""

    def hear(event: dict[str, Any]) -> None:
        if on_event is not None:
            on_event({**event, "steps": training.config.steps})

    training = Training(model, config, task, folder, sampler=sampler, on_event=hear, initialize=fill)
    return training


def begin(
    training: Training,
    model: ModelConfig,
    tokenizer: Tokenizer | None,
    names: Sequence[str],
    parts: Mapping[str, Sequence[Row]],
    keep: Callable[[Path], None] | None = None,
    /,
    **about: Any,
) -> None:
    """Make the run folder, with the examples of each part; ``names`` are those of their values.

    What is no text is written by ``keep``, which gets the folder of the examples.
    """
    folder = training.folder
    folder.start(
        model,
        training.config.to_dict(),
        tokenizer,
        task=training.task.name,
        machine={**describe_machine(training.arithmetic.device), "precision": training.arithmetic.precision},
        references=training.task.references(),
        **about,
    )
    place = folder.path / EXAMPLES
    place.mkdir(exist_ok=True)
    for part, rows in parts.items():
        text = "".join(as_json(dict(zip(names, row, strict=True))) + "\n" for row in rows)
        write_whole(place / f"{part}.jsonl", text)
    if keep is not None:
        keep(place)
    training.save()  # whoever is killed before the next checkpoint has the weights that it started from


def settings_of(folder: RunFolder, changes: dict[str, Any]) -> tuple[ModelConfig, TrainConfig]:
    """The model and the settings of a run that goes on, with some changed."""
    model, settings = folder.read()
    same, changes = take_sizes(model, changes)
    if same != model:
        raise ConfigError("a run that goes on keeps its model; for other sizes start another run")
    try:
        config = TrainConfig().change(**settings)
    except (KothaError, TypeError) as error:
        raise CheckpointError(f"{folder.path / runs.CONFIG} is broken: {error}") from error
    return model, config.change(**changes)


def go_on(training: Training, changes: dict[str, Any], say: OnRemark) -> None:
    """Return to the last checkpoint, and remember changed settings."""
    if changes:
        training.folder.change(training.config.to_dict())
    say(f"going on from step {training.resume():,} of {training.config.steps:,}")


def finish(training: Training, measure: Measure, say: OnRemark) -> dict[str, Any]:
    """Train to the end; then, and only then, look at the held-out part. Returns the summary."""
    folder = training.folder
    training.fitting.on_remark = say
    summary = training.run()
    chosen_by = dict(folder.best() or {})
    chosen_by.pop("step", None)
    of_the_run = {name: value for name, value in summary.items() if name not in chosen_by or name == "tokens"}
    summary = {**of_the_run, "validation": chosen_by}
    if not summary["stopped"]:
        say("measuring on the held-out part …")
        summary = {**measure(bundle.load(folder.best_model, training.arithmetic.device)), **summary}
    folder.write(runs.SUMMARY, summary)
    write_report(folder.path)
    return summary


def read_rows(run: Path, names: Sequence[str]) -> list[list[Row]]:
    """The examples of each part of a run."""
    return [_read_part(run / EXAMPLES / f"{part}.jsonl", names) for part in PARTS]


def _read_part(file: Path, names: Sequence[str]) -> list[Row]:
    try:
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").split("\n") if line]
        return [tuple(str(row[name]) for name in names) for row in rows]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(f"{file} cannot be read: {error}; a run needs its examples to go on") from error
