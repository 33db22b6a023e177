"""Starting a run on a data folder, and going on with one: what the command does, for Python too."""

from typing import Any

from kotha.errors import CheckpointError, KothaError
from kotha.model.config import ModelConfig
from kotha.runs import CONFIG, RunFolder
from kotha.text.shards import Dataset
from kotha.train.config import TrainConfig
from kotha.train.device.hardware import describe_machine
from kotha.train.distributed import ALONE, Ranks
from kotha.train.loop import OnEvent, Sampler, Training
from kotha.train.plan.step_time import predict_seconds_per_step
from kotha.train.tasks.data_folder import task_for


def start_run(
    model: ModelConfig,
    config: TrainConfig,
    data: Dataset,
    folder: RunFolder,
    *,
    sampler: Sampler | None = None,
    on_event: OnEvent | None = None,
    ranks: Ranks = ALONE,
    timed: bool = False,
    **about: Any,
) -> Training:
    """A run in a new folder, ready to ``run()``; ``about`` is what else its config.json should tell.

    With ``timed`` a few small steps are timed first, to predict how long the run will take.
    """
    if ranks.is_first:
        folder.claim()
    task = task_for(model, config, data)
    training = Training(
        model, config, task, folder, tokenizer=data.tokenizer, sampler=sampler, on_event=on_event, ranks=ranks
    )
    if ranks.is_first:  # only now: settings that cannot be trained leave no folder behind
        arithmetic, fitting = training.arithmetic, training.fitting
        shape = (fitting.micro_batch_size, fitting.context_length)
        seconds = predict_seconds_per_step(model, config, *shape, arithmetic) if timed and ranks.alone else None
        folder.start(
            model,
            config.to_dict(),
            data.tokenizer,
            task=task.name,
            data={
                "path": str(data.path),
                "tokenizer": data.tokenizer.fingerprint,
                "train_tokens": data["train"].info.tokens,
            },
            machine={
                **describe_machine(arithmetic.device),
                "precision": arithmetic.precision,
                "reason": arithmetic.reason,
                "processes": ranks.world,
            },
            references=task.references(),
            predicted={
                "memory_bytes": fitting.plan().to_dict(),
                "seconds": seconds * config.steps if seconds else None,
            },
            **about,
        )
    ranks.wait()
    return training


def resume_run(
    data: Dataset,
    folder: RunFolder,
    changes: dict[str, Any],
    *,
    sampler: Sampler | None = None,
    on_event: OnEvent | None = None,
    ranks: Ranks = ALONE,
) -> Training:
    """The run of a folder at its last checkpoint, with some settings changed, ready to ``run()``."""
    if ranks.is_first:
        folder.claim()
    model, settings = folder.read()
    folder.check_data(data)
    try:
        config = TrainConfig().change(**settings)
    except (KothaError, TypeError) as error:
        raise CheckpointError(f"{folder.path / CONFIG} is broken: {error}") from error
    config = config.change(**changes)
    training = Training(
        model,
        config,
        task_for(model, config, data),
        folder,
        tokenizer=data.tokenizer,
        sampler=sampler,
        on_event=on_event,
        ranks=ranks,
    )
    if ranks.is_first and changes:
        folder.change(config.to_dict())
    ranks.wait()
    training.resume()
    return training
