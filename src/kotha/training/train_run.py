"""A training run from request to report: choose the settings, train the model and any teachers, write the report."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from kotha.artifacts.run_folder import SUMMARY, RunFolder
from kotha.errors import UsageError
from kotha.i18n.message import Message, OnRemark, ProgressMessage
from kotha.text.shards import Dataset
from kotha.training.distributed import ALONE, Ranks
from kotha.training.initial_weights import check_lora
from kotha.training.loop import Training
from kotha.training.plan.step_time import use_fastest_threads
from kotha.training.plan.text_size import measure_text
from kotha.training.reporting.report import write_report
from kotha.training.request import USUAL_MINUTES, USUAL_PRESET, TrainRequest, choose_settings
from kotha.training.start import check_held_out, resume_run, start_run
from kotha.training.teachers import stage_results, train_teachers


def train_run(
    data: Dataset,
    folder: RunFolder,
    request: TrainRequest | None = None,
    *,
    resume: bool = False,
    on_remark: OnRemark | None = None,
    on_ready: Callable[[Training], None] | None = None,
    ranks: Ranks = ALONE,
    **how: Any,
) -> dict[str, Any]:
    """Train a run from request to report, and return the summary.

    With ``resume``, the run continues from the last checkpoint in the folder, with the changes in the request.
    ``on_ready`` is called with the `Training` before its first step. ``how`` takes ``on_event``, ``sampler`` and
    further entries for the run's config.
    """
    request, say = request or TrainRequest(), on_remark or (lambda _: None)
    if resume:
        request.check_resumes()
    elif ranks.writes:
        folder.check_new()  # fail early; not in other processes, because the first process may have created the folder
    check_held_out(data)
    threads = torch.get_num_threads()
    how |= {"on_remark": say, "ranks": ranks}
    try:
        training = resume_run(data, folder, request.changes, **how) if resume else _start(data, folder, request, **how)
        chosen = training.arithmetic
        message = "{precision} on {device} ({reason})"
        say(Message(message, precision=chosen.precision, device=chosen.device, reason=chosen.reason))
        if on_ready is not None:
            on_ready(training)
        ready = train_teachers(training, data, timed=not resume, **how)
        summary = training.run() if ready else training.finish(stopped=True)
        if ranks.writes and (results := stage_results(folder)):
            summary["stages"] = results
            folder.write(SUMMARY, summary)
    finally:
        folder.release()
        torch.set_num_threads(threads)
    if ranks.writes:
        write_report(folder.path)
    return summary


def _start(data: Dataset, folder: RunFolder, request: TrainRequest, **how: Any) -> Training:
    """Choose the settings and start a run; the time limit starts here."""
    began, alone, say, tokenizer = time.perf_counter(), how["ranks"].alone, how["on_remark"], data.tokenizer
    origin = request.origin
    if not alone:  # each process would measure different times
        if request.minutes is not None or (origin is not None and "steps" not in request.changes):
            raise UsageError("minutes works only with a single process, but several are running; use steps")
        request = replace(request, preset=request.preset or (None if origin else USUAL_PRESET))

    def get_ready() -> None:
        say(ProgressMessage("measuring the speed of this machine …"))
        use_fastest_threads()

    choice = choose_settings(request, measure_text(str(data.path)) if request.timed else None, get_ready, tokenizer)
    if choice.sentence:
        say(choice.sentence)
    counts: dict[str, int] = {}
    if origin is not None:
        origin.check(choice.model, tokenizer)
        how |= {"initialize": lambda model: counts.update(origin.initialize(model, tokenizer)), "origin": origin.name}
    if choice.settings.lora is not None:
        check_lora(choice.settings.lora, tokenizer, str(data.path), origin)
    stages = [stage.to_dict() for stage in choice.stages] if len(choice.stages) > 1 else []
    training = start_run(
        choice.model, choice.settings, data, folder, seconds_per_step=choice.seconds_per_step, stages=stages, **how
    )
    training.most_steps = choice.most_steps
    if request.timed and alone:
        training.deadline = began + 60 * (request.minutes or USUAL_MINUTES)
    if origin is not None:
        training.save()  # a run killed before its next checkpoint can resume from these weights
        kept = ", {kept:,} pieces kept, {joined:,} averaged from old pieces, {drawn:,} initialized randomly"
        say(
            Message(
                "initial weights: {origin}{pieces}",
                origin=origin.name,
                pieces=Message(kept, **counts) if counts else "",
            )
        )
    return training
