"""Render a training plan as JSON, tables, sentences and a page, including the reasons for its design."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from kotha.errors import UsageError
from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.numbers import Amount, Count, Duration, Size
from kotha.model.config import ModelConfig
from kotha.model.parameters import count_parameters
from kotha.report.single_file import training_page
from kotha.report.table import Table
from kotha.training.config import TrainConfig
from kotha.training.device import available_memory, choose_arithmetic, share_of_peak
from kotha.training.optim import learning_rate_share, schedule_steps
from kotha.training.plan.design import ASIDE, BASE, RECIPE, TOKENS_PER_PARAMETER, Design
from kotha.training.plan.memory import largest_micro_batch, plan_memory, planned_conditions
from kotha.training.plan.rules import times
from kotha.training.plan.step_time import (
    GPU,
    Work,
    arithmetic_of,
    count_work,
    peak_of,
    predict_seconds_per_step,
    tokens_per_step,
    use_fastest_threads,
)
from kotha.training.plan.text_size import TextSize, measure_text
from kotha.training.request import TrainRequest, choose_settings

_TEXTS = json.loads(Path(__file__).with_name("render.json").read_text(encoding="utf-8"))
_POINTS = 400  # points on the curve of the schedule
_NOT_ON_PAGE = ("compiled", "flops_per_token")
# How many of the larger sizes that did not fit are shown.
_SHOWN = 4

Rows = list[list[Text]]
Reason = tuple[Message, Text, Message]  # name, value, reason


@dataclass(frozen=True)
class TrainingPlan:
    """A training plan and its presentation."""

    found: dict[str, Any]
    settings: TrainConfig
    stages: Text = ""  # the stages that `kotha train` would run, unless it is a single ordinary model

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        return self.found

    def tables(self) -> list[Table]:
        """Return the design with its reasons; parameters, operations and memory by part; and export formats."""
        found, design = self.found, self.found.get("design")
        rows: Rows = [
            [each["name"], Message("available") if each["supported"] else Message("unavailable"), each["details"]]
            for each in found["export_targets"]
        ]
        formats = Table(Message("export formats (kotha export)"), [Message("format"), "", Message("reason")], rows)
        return [*([] if design is None else _design_tables(design)), *_plan_tables(found), formats]

    def sentences(self) -> list[Message]:
        """Return sentences about peak memory, the rule of thumb, the time per step and the time of the run."""
        plan = self.found
        flops, memory, available = plan["flops"], plan["memory_bytes"], plan["memory_available_bytes"]
        n = plan["tokens_per_step"]
        values = {
            "moment": Message(memory["moment"]),
            "thumb": Count(flops["rule_of_thumb_per_token"]),
            "ratio": flops["rule_of_thumb_ratio"],
            "work": Count(plan["flops_per_token"]),
            "tokens": n,
            "per_step": flops["per_step"],
        }
        words = [Message(each, **values) for each in _TEXTS["sentences"]]
        if available is not None and memory["total"] > available:
            small = "{gpu} has only {memory}, so this model does not fit; try a smaller micro-batch or a smaller model"
            words.append(Message(small, gpu=plan["gpu"], memory=Size(available)))
        epochs, pace = plan["epochs"], plan["seconds_per_step"]
        words.append(
            Plural(
                "{n} step processes {tokens} tokens{times}",
                "{n:,} steps process {tokens} tokens{times}",
                n=plan["steps"],
                tokens=Count(plan["tokens"]),
                times="" if epochs is None else Message(", {times} passes over the data", times=times(epochs)),
            )
        )
        if pace is None:
            return words
        share, peak = plan["peak_share"], plan["peak_flops_per_second"]
        of_peak: Text = ""
        if share is not None:
            of_peak = Message(", {share:.0%} of the peak of {peak:,.3g} TFLOP/s", share=share, peak=peak / 1e12)
        elif peak:
            of_peak = Message(", more than the measured peak: this machine is busy, so all times are rough estimates")
        total = Message(
            "{seconds:,.3g} s per step {where}, {time} in total; {speed:,.0f} tokens per second{share}",
            seconds=pace,
            where=Message("here") if plan["gpu"] is None else Message("on {gpu}", gpu=plan["gpu"]),
            time=Duration(plan["seconds"]),
            speed=n / pace,
            share=of_peak,
        )
        words += [total, Message("source of the times: {source}", source=plan["time_source"])]
        more = Message(
            "the time is enough for more than this model; kotha train would use it for: {stages}", stages=self.stages
        )
        return [*words, more] if self.stages else words

    def page(self) -> str:
        """Return the plan as a self-contained HTML page, drawn by the studio's code."""
        data = {name: value for name, value in self.found.items() if name not in _NOT_ON_PAGE}
        data |= {"design": self.found.get("design"), "schedule": drawn_schedule(self.settings)}
        return training_page("plan", "Requirements of a training run", data, made_by="kotha plan")


def describe_plan(
    request: TrainRequest,
    data: str | TextSize | None,
    export_formats: Callable[[ModelConfig], Sequence[Any]],
    *,
    timed: bool = True,
    before_timing: Callable[[], Any] = use_fastest_threads,
) -> TrainingPlan:
    """Plan a request; ``export_formats`` returns the formats to which a model can be exported.

    ``before_timing`` is called to choose the number of threads before this machine is timed.
    """
    text = measure_text(data) if isinstance(data, str) else data
    timed_here = request.minutes is not None and request.gpu is None
    choice = choose_settings(request, text, before_timing if timed_here else lambda: None)
    model, settings, pace = choice.model, choice.settings, choice.seconds_per_step
    if choice.stages and choice.design is not None:  # the tables show a single ordinary model
        model, settings, pace = choice.design.model, choice.design.settings, choice.design.seconds_per_step
    tokens = None if text is None else text.tokens_with(getattr(model, "vocab_size", 1))
    plan = plan_training(model, settings, request.device, timed=timed, pace=pace, gpu=request.gpu, train_tokens=tokens)
    found = {"preset": request.preset, "config": model.to_dict(), "parameters": asdict(count_parameters(model)), **plan}
    found["export_targets"] = [asdict(each) for each in export_formats(model)]
    if choice.design is not None and text is not None:
        found["design"] = design_facts(choice.design, text)
    return TrainingPlan(found, settings, choice.sentence if choice.stages else "")


def plan_training(
    model: ModelConfig,
    training: TrainConfig,
    device: str | None = None,
    *,
    timed: bool = True,
    pace: float | None = None,
    gpu: GPU | None = None,
    train_tokens: int | None = None,
) -> dict[str, Any]:
    """Return the memory, operations and time of a training run as JSON types.

    On this machine, the time is measured with a few short steps, unless ``pace`` gives the seconds per step. For a
    named ``gpu``, it is estimated. For an unnamed GPU that is not present, it is unknown. ``train_tokens`` is the
    number of tokens in an epoch.
    """
    if training.dropout is not None:
        model = model.replace(dropout=training.dropout)
    if gpu is not None and device == "cpu":
        conflict = "gpu {gpu} and device cpu contradict each other; remove one of them"
        raise UsageError(conflict, gpu=gpu.title)
    here = gpu is None and (device != "cuda" or torch.cuda.is_available())
    arithmetic = choose_arithmetic(training.precision, device) if here else arithmetic_of(training.precision, gpu)
    how = planned_conditions(model, training, arithmetic)
    named = None if gpu is None else gpu.memory
    available, context = available_memory(arithmetic.device) if here else named, how.context_length
    size = training.micro_batch_size or training.batch_size
    if available is not None:
        size = largest_micro_batch(model, training, available, how)
    peak: float | None = None
    if gpu is not None or (here and timed):
        pace = pace or predict_seconds_per_step(model, training, size, context, arithmetic, gpu)
        peak = peak_of(arithmetic, gpu)
    source = Message("a few short steps on this machine")
    if gpu is not None:
        source = Message("an estimate based on measurements on an H200; see benchmarks/results")
    work, n = count_work(model, context), tokens_per_step(model, training, context)
    each, tokens = work.training_per_token, n * training.steps
    return {
        "precision": arithmetic.precision,
        "device": how.device,
        "compiled": how.compiled,
        "context_length": context,
        "micro_batch_size": size,
        "gpu": None if gpu is None else gpu.title,
        "memory_available_bytes": named,
        "tokens_per_step": n,
        "steps": training.steps,
        "seconds_per_step": pace,
        "time_source": source if peak else None,
        "peak_flops_per_second": peak,
        "memory_bytes": asdict(plan_memory(model, training, size, how)),
        "flops_per_token": each,
        "flops": _work(work, n),
        "tokens": tokens,
        "epochs": tokens / train_tokens if train_tokens else None,
        "seconds": None if pace is None else pace * training.steps,
        # The MFU; None if the machine was busy when its peak was measured.
        "peak_share": share_of_peak(each * n / pace, peak) if pace and peak else None,
    }


def _work(work: Work, tokens_per_step: int) -> dict[str, Any]:
    """Return the number of operations: by part, in total, per step, and by the rule of thumb."""
    each, thumb = work.training_per_token, 6 * work.parameters
    return {
        "forward_per_token": work.forward,
        "training_per_token": work.training,
        "forward_per_token_total": sum(work.forward.values()),
        "training_per_token_total": each,
        "per_step": each * tokens_per_step,
        "rule_of_thumb_per_token": thumb,
        "rule_of_thumb_ratio": thumb / each,
    }


def drawn_schedule(settings: TrainConfig) -> dict[str, Any]:
    """Return the learning rate schedule of a planned run: its name, its key values, and points to draw."""
    return {
        "name": settings.schedule,
        "steps": settings.steps,
        "warmup": settings.warmup_steps,
        "rate": settings.learning_rate,
        "muon_rate": settings.muon_learning_rate if settings.optimizer == "muon" else None,
        "last_share": learning_rate_share(settings.steps, settings),
        "points": [[step, learning_rate_share(step, settings)] for step in schedule_steps(settings, _POINTS)],
    }


def _design_tables(facts: dict[str, Any]) -> list[Table]:
    """Return tables of the design with its reasons, and of the larger sizes that did not fit."""
    chosen: Rows = [list(each.values()) for each in facts["reasons"]]
    refused = [each for each in facts["considered"] if each["verdict"]]
    rows: Rows = [
        [f"{each['layers']} x {each['width']}", f"{each['parameters']:,}", each["verdict"]]
        for each in refused[-_SHOWN:]
    ]
    header: list[Text] = [Message("layers x width"), Message("parameters"), Message("why not")]
    proposed = Table(Message("proposed"), ["", Message("value"), Message("why")], chosen)
    return [proposed, *([Table(Message("larger models that do not fit"), header, rows)] if rows else [])]


def _plan_tables(found: dict[str, Any]) -> list[Table]:
    part, share, family = Message("part"), Message("share"), found["config"]["family"]
    title = f"{found['preset']}: {family}" if found["preset"] else Message("design: {family}", family=family)
    parameters, flops = found["parameters"], found["flops"]
    passes = [flops[name] | {"total": flops[f"{name}_total"]} for name in ("forward_per_token", "training_per_token")]
    inside: Rows = [[Message(what), f"{parameters[name]:,}", ""] for name, what in _TEXTS["inside"].items()]
    work = Message("operations (multiply and add) per token, context {n}", n=found["context_length"])
    where = Message(
        "memory to train in {precision} on {device}, in micro-batches of {shape}",
        precision=found["precision"],
        device=found["gpu"] or found["device"],
        shape=f"{found['micro_batch_size']} x {found['context_length']}",
    )
    memory = _part_rows("memory", lambda value: amount(Size(value)), found["memory_bytes"])
    memory[-1][-1] = ""  # no share for the total, because not all parts are in memory at once
    counts = [*_part_rows("parameters", "{:,}".format, parameters), *inside]
    return [
        Table(title, [part, Message("parameters"), share], counts),
        Table(
            work,
            [part, Message("forward"), Message("forward and backward"), share],
            _part_rows("work", lambda value: amount(Count(value)), *passes),
        ),
        Table(where, [part, Message("memory"), share], memory),
    ]


def _part_rows(kind: str, form: Callable[[Any], Text], *columns: dict[str, Any]) -> Rows:
    """Return a row for each part and for the total: its values, and the share of the last value."""
    last = columns[-1]
    return [
        [Message(what), *(form(each[name]) for each in columns), f"{last[name] / last['total']:.1%}"]
        for name, what in {**_TEXTS[kind], "total": "total"}.items()
        if last[name] or kind != "work"
    ]


def amount(value: Amount) -> Message:
    """Format an amount as a table cell."""
    return Message("{n}", n=value)


# -- reasons for a design ----------------------------------------------------------------------------------------------


def reasons_for(design: Design, text: TextSize) -> list[Reason]:
    """Return the choices and their reasons, from the vocabulary to the number of steps."""
    model, settings = design.model, design.settings
    context, each = settings.context_length or model.context_length, design.tokens / design.parameters
    rung = Message("the largest standard size that fits")
    if each < TOKENS_PER_PARAMETER:
        rung = Message("the smallest standard size; more time would help")
    values = {
        **{**vars(model), **vars(settings), "context": context, "recipe": RECIPE, "inner": model.d_ff},
        **{"width": model.d_head, "tokens": settings.batch_size * context, "parameters": design.parameters},
        **{"each": each, "rung": rung, "size": Size(text.bytes), "epochs": design.epochs, "aside": ASIDE},
        **{"times": times(design.epochs), "seconds": design.seconds_per_step},
    }
    second = {"vocabulary": text.prepared, "steps": design.text_ends}
    return [
        (Message(what), value.format_map(values), Message(whys[second.get(what, False)], **values))
        for what, value, *whys in _TEXTS["reasons"]
    ]


def design_facts(design: Design, text: TextSize) -> dict[str, Any]:
    """Return the proposed design as JSON types."""
    return {
        "data": {**asdict(text), "prepared": text.prepared},
        "sizes": {**design.sizes, "vocab_size": design.model.vocab_size},
        "recipe": RECIPE,
        "settings": design.changes,
        "reasons": [dict(zip(("what", "value", "why"), each, strict=True)) for each in reasons_for(design, text)],
        "considered": [
            {"layers": each.model.n_layers, "width": each.model.d_model}
            | {"parameters": each.parameters, "verdict": each.verdict or ""}
            for each in design.considered
        ],
        "commands": commands_for(design, text),
    }


def commands_for(design: Design, text: TextSize) -> list[str]:
    """Return the commands that train this design, from a corpus or from a data folder."""
    lines, data = [], text.path
    if not text.prepared:
        path, pieces, data = shlex.quote(text.path), design.model.vocab_size, "data"
        lines.append(f"kotha tokenizer train {path} --kind unigram --vocab-size {pieces} --out tokenizer")
        lines.append(f"kotha prepare {path} --tokenizer tokenizer --out data")
    changes = {**design.sizes, **design.changes}
    steps = changes.pop("steps")
    values = {name: f"{value:g}" if isinstance(value, float) else value for name, value in changes.items()}
    words = " ".join(f"{name}={value}" for name, value in values.items() if value is not None)
    start = f"kotha train {shlex.quote(data)} --out run --preset {BASE} --recipe {RECIPE}"
    return [*lines, f"{start} --steps {steps} --set {words}"]
