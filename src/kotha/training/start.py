"""Starting a run on a data folder, and going on with one: what the command does, for Python too."""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import torch

from kotha.artifacts.run_folder import LAUNCH, RunFolder, data_of, describe_data
from kotha.errors import CheckpointError, ConfigError, DataError, UsageError
from kotha.i18n.message import Message, ProgressMessage
from kotha.model.config import BERTConfig, ClassifierConfig, GPTConfig, ModelConfig
from kotha.storage.status import matching
from kotha.text.shards import Dataset
from kotha.text.tokenizer.tokenizer import Tokenizer
from kotha.training.checkpoint import bring_together
from kotha.training.config import TrainConfig
from kotha.training.device import describe_machine
from kotha.training.distributed import ALONE, Ranks
from kotha.training.fitting import OnRemark
from kotha.training.loop import OnEvent, Sampler, Training
from kotha.training.origin import Origin
from kotha.training.plan.design import measure_text
from kotha.training.plan.step_time import predict_seconds_per_step, use_fastest_threads
from kotha.training.settings import (
    USUAL_MINUTES,
    USUAL_PRESET,
    TrainRequest,
    check_lora,
    check_settings,
    choose_settings,
    resumed_settings,
)
from kotha.training.show.report import write_report
from kotha.training.tasks.masked_words import MaskedWords
from kotha.training.tasks.next_token import NextToken

# What families learn from that read no plain text, and what to do.
_OTHERS = {
    "seq2seq": (
        Message("pairs of texts"),
        Message("name a table of pairs (tsv, csv, jsonl) instead of the data folder"),
    ),
    "vit": (
        Message("images with their classes"),
        Message("name a folder with a folder for each class, or an .npz archive"),
    ),
}
_CLASSES = (Message("texts with labels"), Message("use a gpt or bert preset, or go on with what made it"))


def train_run(
    data: Dataset,
    folder: RunFolder,
    request: TrainRequest | None = None,
    *,
    resume: bool = False,
    sampler: Callable[[Any], str | None] | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark | None = None,
    on_ready: Callable[[Training], None] | None = None,
    ranks: Ranks = ALONE,
    origin: Origin | None = None,
    **about: Any,
) -> dict[str, Any]:
    """A whole training, from what was asked for to its report; returns the summary.

    With ``resume`` it goes on from the last checkpoint of the folder, with the request's changes. ``on_event`` hears
    figures, with the ``steps`` that there will be, ``on_remark`` sentences; ``sampler`` writes with the model at each
    evaluation; ``on_ready`` sees the training before its first step; ``origin`` is a model to start from; ``about`` is
    what else the run's config.json should tell.
    """
    request, say = request or TrainRequest(), on_remark or (lambda _: None)
    if resume and origin is not None:
        raise UsageError("a run that is resumed goes on from its own weights; start a new one from others")
    if resume and request.minutes is not None:
        raise UsageError("minutes is for a new run; one that is resumed has its steps, or gets other steps")
    if not resume and ranks.writes:
        folder.check_new()  # before anything takes its time; another process may already have begun it
    check_held_out(data)
    threads = torch.get_num_threads()
    how: dict[str, Any] = {"sampler": sampler, "on_event": on_event, "on_remark": say, "ranks": ranks}
    try:
        if resume:
            training = resume_run(data, folder, dict(request.changes), **how)
            _say_resumed(training, say)
        else:
            training = _start(data, folder, request, say, origin, **how, **about)
        chosen = training.arithmetic
        said = "{precision} on {device} ({reason})"
        say(Message(said, precision=chosen.precision, device=chosen.device, reason=chosen.reason))
        if on_ready is not None:
            on_ready(training)
        summary = training.run()
    finally:
        torch.set_num_threads(threads)
    if ranks.writes:
        write_report(folder.path)
    return summary


def _say_resumed(training: Training, say: OnRemark) -> None:
    step, steps, world = training.progress.step, training.config.steps, training.ranks.world
    together = "" if training.ranks.alone else Message(", in {n} processes", n=world)
    say(Message("going on from step {step:,} of {steps:,}{together}", step=step, steps=steps, together=together))
    if len(data_of(training.folder.about())) > 1:
        say(Message("with other data than the run began with; `evaluate` looks in all of it for what was seen"))


def goes_on(folder: RunFolder, ranks: Ranks) -> bool:
    """Did torchrun begin this run before, and start its processes again? All get the same answer.

    It does so when one died, and when a machine came or left. It counts only the first, on each machine by itself; so
    a run remembers what the launch that began it is called.
    """
    begun = folder.exists and ranks.launch is not None and folder.about().get(LAUNCH) == ranks.launch
    return ranks.any(begun or ranks.restarts > 0) and ranks.any(folder.exists)


def _start(
    data: Dataset,
    folder: RunFolder,
    request: TrainRequest,
    say: OnRemark,
    origin: Origin | None,
    *,
    ranks: Ranks,
    **about: Any,
) -> Training:
    """Choose the settings and start; what the time allows is counted from here."""
    began = time.perf_counter()
    if origin is not None:
        request = replace(request, model=origin.config(data.tokenizer))
    if not ranks.alone:  # each process would time its own steps
        if request.minutes is not None or (origin is not None and "steps" not in request.changes):
            raise UsageError("minutes are for one process, and here are several; give steps")
        request = replace(request, preset=request.preset or (None if origin else USUAL_PRESET))

    def get_ready() -> None:
        say(ProgressMessage("measuring this machine …"))
        use_fastest_threads()

    choice = choose_settings(request, measure_text(str(data.path)), get_ready)
    if choice.sentence:
        say(choice.sentence)
    counts: dict[str, int] = {}
    if origin is not None:
        origin.check(choice.model, data.tokenizer)
        about |= {"initialize": lambda model: counts.update(origin.fill(model, data.tokenizer)), "origin": origin.name}
    check_lora(choice.settings.lora, data.tokenizer, str(data.path), origin)
    seconds = choice.seconds_per_step
    training = start_run(
        choice.model, choice.settings, data, folder, timed=True, seconds_per_step=seconds, ranks=ranks, **about
    )
    training.most_steps = None if choice.design is None else choice.design.most_steps
    if request.timed and ranks.alone:
        training.deadline = began + 60 * (request.minutes or USUAL_MINUTES)
    if origin is not None:
        training.save()  # whoever is killed before the next checkpoint has the weights that it started from
        said = ", {kept:,} pieces kept, {joined:,} pieces put together, {drawn:,} pieces left to chance"
        say(Message("from {origin}{pieces}", origin=origin.name, pieces=Message(said, **counts) if counts else ""))
    return training


def check_held_out(data: Dataset) -> None:
    """Refuse data on which no model could be measured, so that none would be kept."""
    if not data["validation"].info.tokens:
        raise DataError(
            "{path} has no validation text, and the model that does best on it is the one that is kept; "
            "prepare it anew from two documents or more (in a .txt file blank lines part them), or with a "
            "validation file",
            path=data.path,
        )


def start_run(
    model: ModelConfig,
    config: TrainConfig,
    data: Dataset,
    folder: RunFolder,
    *,
    sampler: Sampler | None = None,
    ranks: Ranks = ALONE,
    timed: bool = False,
    seconds_per_step: float | None = None,
    initialize: Callable[[Any], Any] | None = None,
    on_event: OnEvent | None = None,
    on_remark: OnRemark = lambda _: None,
    **about: Any,
) -> Training:
    """A run in a new folder, ready to ``run()``; ``about`` is what else its config.json should tell.

    ``initialize`` may put other weights into the new model than those of chance.
    With ``timed`` a few small steps are timed first, to predict how long the run will take, unless that is known.
    """
    if ranks.writes:
        folder.claim()
    how: Any = {"sampler": sampler, "on_event": on_event, "on_remark": on_remark, "initialize": initialize}
    training = _open(model, config, data, folder, ranks, **how)
    if timed and seconds_per_step is None and ranks.alone:
        shape = (training.fitting.micro_batch_size, training.fitting.context_length)
        seconds_per_step = predict_seconds_per_step(model, config, *shape, training.arithmetic)
    if ranks.writes:  # only now: settings that cannot be trained leave no folder behind
        if ranks.launch is not None:
            about[LAUNCH] = ranks.launch
        make_folder(training, data.tokenizer, seconds_per_step, data=describe_data(data), **about)
    ranks.wait()
    return training


def make_folder(
    training: Training, tokenizer: Tokenizer | None, seconds_per_step: float | None = None, **about: Any
) -> None:
    """Begin the run folder of a training; ``about`` is what else its config.json should tell."""
    arithmetic, config = training.arithmetic, training.config
    machine = {"precision": arithmetic.precision, "reason": str(arithmetic.reason), "processes": training.ranks.world}
    seconds = seconds_per_step * config.steps if seconds_per_step else None
    training.folder.start(
        training.model.config,
        config.to_dict(),
        tokenizer,
        task=training.task.name,
        machine={**describe_machine(arithmetic.device), **machine},
        references=training.task.references(),
        predicted={"memory_bytes": asdict(training.fitting.plan()), "seconds": seconds},
        **about,
    )


def resume_run(
    data: Dataset, folder: RunFolder, changes: dict[str, Any], *, ranks: Ranks = ALONE, **how: Any
) -> Training:
    """The run of a folder at its last checkpoint, with some settings changed, ready to ``run()``; ``how`` as above."""
    bring_together(folder.path, ranks)
    if ranks.writes:
        folder.claim()
    model, config = resumed_settings(folder, changes)
    folder.check_data(data)
    origin = folder.about().get("origin")
    if origin is not None and not matching(folder.checkpoints):  # it would begin with weights drawn by chance
        raise CheckpointError(
            "{path} was to go on from {origin}, and saved nothing; start a new run from it",
            path=folder.path,
            origin=origin,
        )
    training = _open(model, config, data, folder, ranks, **how)
    if ranks.writes:
        folder.remember_data(data)
        if changes:
            folder.change(config.to_dict())
    ranks.wait()
    training.resume()
    return training


def _open(
    model: ModelConfig, config: TrainConfig, data: Dataset, folder: RunFolder, ranks: Ranks, **how: Any
) -> Training:
    """The training of a run, new or resumed: a data folder offers next tokens to a GPT, masked words to a BERT."""
    if not isinstance(model, GPTConfig | BERTConfig) or isinstance(model, ClassifierConfig):
        needs, instead = _OTHERS.get(model.family, _CLASSES)
        raise ConfigError(
            "a {family} model learns from {needs}, and {path} holds plain text; {instead}",
            family=model.family,
            needs=needs,
            path=data.path,
            instead=instead,
        )
    check_settings(model, config)
    task = NextToken(model, config, data) if isinstance(model, GPTConfig) else MaskedWords(model, config, data)
    return Training(model, config, task, folder, ranks=ranks, **how)
