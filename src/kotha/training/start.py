"""Start and resume training runs: create or open a run folder, and return a `Training`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from kotha.artifacts.run_folder import CONFIG, LAUNCH, RunFolder, describe_data, mapping
from kotha.errors import CheckpointError, ConfigError, DataError, KothaError
from kotha.i18n.message import Message
from kotha.model.config import BERTConfig, ClassifierConfig, GPTConfig, ModelConfig
from kotha.storage.status import matching
from kotha.text.shards import Dataset
from kotha.training.bigrams import initialize_from_bigrams
from kotha.training.checkpoint import copy_missing_files
from kotha.training.config import TrainConfig
from kotha.training.device import describe_machine
from kotha.training.distributed import ALONE, Ranks
from kotha.training.loop import Training
from kotha.training.plan.memory import plan_memory
from kotha.training.request import take_sizes
from kotha.training.tasks.masked_words import MaskedWords
from kotha.training.tasks.task import NextToken

# The data for model families not trained on plain text; all others are classifiers.
_OTHERS = {"seq2seq": Message("pairs of texts"), "vit": Message("labelled images")}


def check_held_out(data: Dataset) -> None:
    """Raise an error if the data has no validation text, because then no model would be saved."""
    if not data["validation"].info.tokens:
        raise DataError(
            "{path} has no validation text, which is required to select the best model; prepare the data again from "
            "two or more documents (separated by blank lines in a .txt file), or with a validation file",
            path=data.path,
        )


def start_run(
    model: ModelConfig,
    config: TrainConfig,
    data: Dataset,
    folder: RunFolder,
    *,
    ranks: Ranks = ALONE,
    seconds_per_step: float | None = None,
    origin: str | None = None,
    floors: Mapping[str, float] | None = None,
    stages: Sequence[Mapping[str, Any]] = (),
    **how: Any,
) -> Training:
    """Create a run in a new folder, ready to ``run()``.

    ``how`` is passed to `Training`. ``origin``, ``floors`` and ``stages`` are recorded in config.json.
    ``seconds_per_step`` is the predicted duration of a step.
    """
    if ranks.writes:
        folder.claim()
    training = _open(model, config, data, folder, ranks=ranks, **how)
    if ranks.writes:  # created only now, so that invalid settings leave no folder behind
        more: dict[str, Any] = {"origin": origin, "floors": floors, "stages": stages or None, LAUNCH: ranks.launch}
        more["language"] = mapping(data.description, "made_by").get("language")
        about = {"data": describe_data(data), **{name: value for name, value in more.items() if value is not None}}
        make_folder(training, seconds_per_step, **about)
    ranks.wait()
    return training


def make_folder(training: Training, seconds_per_step: float | None = None, **about: Any) -> None:
    """Create the run folder; ``about`` has additional entries for its config.json."""
    arithmetic, config = training.arithmetic, training.config
    machine = {"precision": arithmetic.precision, "reason": str(arithmetic.reason), "processes": training.ranks.world}
    seconds = seconds_per_step * config.steps if seconds_per_step else None
    needed = plan_memory(training.model.config, config, training.fitting.micro_batch_size, training.fitting.how)
    training.folder.start(
        training.model.config,
        config.to_dict(),
        training.task.tokenizer,
        task=training.task.name,
        machine={**describe_machine(arithmetic.device), **machine},
        references=training.task.references(),
        predicted={"memory_bytes": asdict(needed), "seconds": seconds},
        **about,
    )


def resume_run(
    data: Dataset, folder: RunFolder, changes: Mapping[str, Any], *, ranks: Ranks = ALONE, **how: Any
) -> Training:
    """Open a run at its last checkpoint, with some settings changed, ready to ``run()``."""
    copy_missing_files(folder.path, ranks)
    folder.check_data(data)
    opened = lambda model, config: _open(model, config, data, folder, ranks=ranks, **how)
    return resume_training(folder, changes, opened, ranks)


def resume_training(
    folder: RunFolder,
    changes: Mapping[str, Any],
    opened: Callable[[ModelConfig, TrainConfig], Training],
    ranks: Ranks = ALONE,
) -> Training:
    """Open a run of any task at the last checkpoint in its folder, with some settings changed."""
    if ranks.writes:
        folder.claim()
    model, config = resumed_settings(folder, changes)
    origin = folder.about().get("origin")
    if origin is not None and not matching(folder.checkpoints):  # otherwise it would restart from random weights
        message = "{path} has no checkpoint with the weights of {origin}; start a new run from {origin}"
        raise CheckpointError(message, path=folder.path, origin=origin)
    training = opened(model, config)
    if ranks.writes and changes:
        folder.change(config.to_dict())
    ranks.wait()
    together = "" if ranks.alone else Message(", in {n} processes", n=ranks.world)
    message = "resuming from step {step:,} of {steps:,}{together}"
    training.say(Message(message, step=training.resume(), steps=config.steps, together=together))
    return training


def resumed_settings(folder: RunFolder, changes: Mapping[str, Any]) -> tuple[ModelConfig, TrainConfig]:
    """Return the model and the settings of a run that is resumed, with some settings changed."""
    model, saved = folder.read()
    known = {each.name for each in fields(TrainConfig)}  # older runs may have settings that no longer exist
    try:
        config = TrainConfig(**{name: value for name, value in saved.items() if name in known})
    except (KothaError, TypeError) as error:
        raise CheckpointError("{path} is corrupted: {error}", path=folder.path / CONFIG, error=error) from error
    same, changes = take_sizes(model, changes)  # torchrun restarts processes with the original arguments
    if same != model:
        raise ConfigError("a resumed run keeps its model; to use other sizes, start a new run")
    return model, config.change(**changes)


def _open(model: ModelConfig, config: TrainConfig, data: Dataset, folder: RunFolder, **how: Any) -> Training:
    """Create the Training of a run: next tokens for a GPT, masked words for a BERT."""
    if not isinstance(model, GPTConfig | BERTConfig) or isinstance(model, ClassifierConfig):
        message = (
            "a {family} model is trained on {needs}, but {path} contains plain text; use {needs}, or a gpt or bert "
            "model"
        )
        needs = _OTHERS.get(model.family, Message("labelled texts"))
        raise ConfigError(message, family=model.family, needs=needs, path=data.path)
    if config.initial == "bigrams":
        how.setdefault("initialize", lambda new: initialize_from_bigrams(new, data, config.seed))
    task = (
        NextToken(model, config, data, folder.path)
        if isinstance(model, GPTConfig)
        else MaskedWords(model, config, data)
    )
    return Training(model, config, task, folder, **how)
