"""A plan for people: its tables and sentences, why a design is as it is, and the learning rate in a few lines."""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kotha.i18n.message import Message, Plural, Text
from kotha.i18n.numbers import Amount, Count, Duration, Size
from kotha.model.config import ModelConfig
from kotha.model.parameters import count_parameters
from kotha.report.single_file import training_page
from kotha.training.config import TrainConfig
from kotha.training.optim import learning_rate_share, schedule_steps
from kotha.training.plan.design import BASE, RECIPE, TOKENS_PER_PARAMETER, Design
from kotha.training.plan.planning import ASIDE, TextSize, TrainingPlan, measure_text, plan_training
from kotha.training.plan.rules import times
from kotha.training.plan.step_time import use_fastest_threads
from kotha.training.start import TrainRequest, choose_settings

_TOLD = json.loads(Path(__file__).with_name("render.json").read_text(encoding="utf-8"))
_POINTS = 400  # of a drawn schedule
_ON_PAGE = (
    *("preset", "config", "parameters", "precision", "device", "context_length", "micro_batch_size", "gpu"),
    *("memory_available_bytes", "memory_bytes", "flops", "tokens_per_step", "steps", "tokens", "epochs"),
    *("seconds_per_step", "seconds", "time_source", "peak_flops_per_second", "peak_share", "doors"),
)
_LONG = 60  # a cell longer than this is a sentence
_BLOCKS = " ▁▂▃▄▅▆▇█"
# Rungs that did not fit, as many as say something.
_SHOWN = 4

Rows = list[list[Text]]
Table = tuple[Text, list[Text], Rows]  # title, header, rows
Reason = tuple[Message, Text, Message]  # what, its value, and why


@dataclass(frozen=True)
class PlanText:
    """All that is told of a plan."""

    title: Text
    settings: TrainConfig
    tables: list[Table]
    words: list[Message]
    commands: list[str] = field(default_factory=list)


def tell_plan(
    request: TrainRequest,
    data: str | TextSize | None,
    doors: Callable[[ModelConfig], Sequence[Any]],
    *,
    timed: bool = True,
    before_timing: Callable[[], Any] = use_fastest_threads,
) -> tuple[dict[str, Any], PlanText]:
    """Plan what is asked for: ready for JSON, and as it is told; ``doors`` say where a model can go.

    ``before_timing`` settles how this machine shall compute before it is timed.
    """
    text = measure_text(data) if isinstance(data, str) else data
    timed_here = request.minutes is not None and request.gpu is None
    choice = choose_settings(request, text, before_timing if timed_here else lambda: None)
    model, settings = choice.model, choice.settings
    plan = plan_training(
        model,
        settings,
        request.device,
        timed=timed,
        seconds_per_step=choice.seconds_per_step,
        gpu=request.gpu,
        train_tokens=None if text is None else text.tokens_with(getattr(model, "vocab_size", 1)),
    )
    parameters, out = asdict(count_parameters(model)), doors(model)
    found = {"preset": request.preset, "config": model.to_dict(), "parameters": parameters, **plan.to_dict()}
    found["doors"] = [asdict(door) for door in out]
    design = Message("design: {family}", family=model.family)
    title = design if request.preset is None else f"{request.preset}: {model.family}"
    tables = [*_plan_tables(title, parameters, plan), _door_table(out)]
    if choice.design is None or text is None:
        return found, PlanText(title, settings, tables, plan_words(plan))
    found["design"] = facts = design_facts(choice.design, text)
    return found, PlanText(title, settings, [*_design_tables(facts), *tables], plan_words(plan), facts["commands"])


def plan_words(plan: TrainingPlan) -> list[Message]:
    """What the tables do not say: the fullest moment, the rule of thumb, a step, the whole run."""
    work, available = plan.work, plan.memory_available_bytes
    moment = Message(plan.memory.moment)
    words = [Message("the parts are not all there at once; the fullest moment is {moment}", moment=moment)]
    if available is not None and plan.memory.total > available:
        small = "{gpu} has {memory}: this does not fit; try a smaller micro-batch or model"
        words.append(Message(small, gpu=plan.gpu, memory=Size(available)))
    many = "" if plan.epochs is None else Message(", {times} times through the data", times=times(plan.epochs))
    words += [
        Message(
            "6 operations for each parameter, the rule of thumb, would be {thumb}, {ratio:.2f} times the count",
            thumb=Count(work.rule_of_thumb),
            ratio=work.rule_of_thumb / work.training_per_token,
        ),
        Message(
            "{work} operations a token, {tokens:,} tokens a step, {per_step:.3g} a step",
            work=Count(work.training_per_token),
            tokens=plan.tokens_per_step,
            per_step=work.training_per_token * plan.tokens_per_step,
        ),
        Plural(
            "{n} step read {tokens} tokens{times}",
            "{n:,} steps read {tokens} tokens{times}",
            n=plan.steps,
            tokens=Count(plan.tokens),
            times=many,
        ),
    ]
    if plan.seconds_per_step is None or plan.seconds is None:
        return words
    whole = Message(
        "{seconds:,.3g} s a step {where}, {time} for all; {speed:,.0f} tokens a second{share}",
        seconds=plan.seconds_per_step,
        where=Message("here") if plan.gpu is None else Message("on {gpu}", gpu=plan.gpu),
        time=Duration(plan.seconds),
        speed=plan.tokens_per_step / plan.seconds_per_step,
        share=_share_of_peak(plan),
    )
    return [*words, whole, Message("the time: {source}", source=plan.time_source)]


def _share_of_peak(plan: TrainingPlan) -> Text:
    if plan.peak_flops_per_second is None:
        return ""
    if plan.peak_share is None:
        return Message(", more than the peak that was timed: this machine is busy, and all of its times are guesses")
    return Message(
        ", {share:.0%} of the peak, which is {peak:,.3g} TFLOP/s",
        share=plan.peak_share,
        peak=plan.peak_flops_per_second / 1e12,
    )


def plan_page(found: dict[str, Any], settings: TrainConfig) -> str:
    """One offline page as HTML, of what ``tell_plan`` found, drawn as the studio's design room draws it."""
    data = {name: found[name] for name in _ON_PAGE}
    data |= {"design": found.get("design"), "schedule": drawn_schedule(settings)}
    return training_page("plan", "What a training needs, before it starts", data, made_by="kotha plan")


def drawn_schedule(settings: TrainConfig) -> dict[str, Any]:
    """The learning rate over a run that is still to come: the schedule's name, its corners, and points to draw."""
    return {
        "name": settings.schedule,
        "steps": settings.steps,
        "warmup": settings.warmup_steps,
        "rate": settings.learning_rate,
        "muon_rate": settings.muon_learning_rate if settings.optimizer == "muon" else None,
        "last_share": learning_rate_share(settings.steps, settings),
        "points": [[step, learning_rate_share(step, settings)] for step in schedule_steps(settings, _POINTS)],
    }


def schedule_lines(settings: TrainConfig, columns: int = 60, rows: int = 4) -> list[str]:
    """The learning rate over the run, drawn in blocks: the highest line first, then the steps."""
    places = schedule_steps(settings, columns)
    shares = [learning_rate_share(step, settings) for step in places]
    lines = []
    for row in reversed(range(rows)):
        filled = (min(1.0, max(0.0, share * rows - row)) for share in shares)
        bars = "".join(_BLOCKS[round(each * (len(_BLOCKS) - 1))] for each in filled)
        label = f"{settings.learning_rate:.1e}" if row == rows - 1 else "0" if row == 0 else ""
        lines.append(f"{label:>8} {bars}")
    ends = f"{'1':<{max(1, len(places) - len(f'{settings.steps:,}'))}}{settings.steps:,}"
    return [*lines, f"{'step':>8} {ends}"]


def has_sentences(rows: Rows) -> bool:
    """Is there more to read than figures? Such rows are read from their left."""
    return any(len(str(cell)) > _LONG for row in rows for cell in row)


def in_columns(title: str, rows: list[list[str]], width: Callable[[str], int] = len) -> str:
    """Rows whose last cell is a sentence, as plain lines; ``width`` says how wide a text is where it will stand."""
    widths = [max(width(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = [
        [*(cell + " " * (wide - width(cell)) for cell, wide in zip(row[:-1], widths, strict=True)), row[-1]]
        for row in rows
    ]
    return "\n".join([title, *("  " + "  ".join(cells) for cells in lines)])


def _design_tables(facts: dict[str, Any]) -> list[Table]:
    """The choice with its reasons, and what did not fit."""
    chosen: Rows = [[each["what"], each["value"], each["why"]] for each in facts["reasons"]]
    refused = [each for each in facts["considered"] if each["verdict"]]
    rows: Rows = [
        [f"{each['layers']} x {each['width']}", f"{each['parameters']:,}", each["verdict"]]
        for each in refused[-_SHOWN:]
    ]
    header: list[Text] = [Message("layers x width"), Message("parameters"), Message("why not")]
    proposed: Table = (Message("proposed"), ["", Message("value"), Message("why")], chosen)
    return [proposed, *([(Message("larger ones that do not fit"), header, rows)] if rows else [])]


def _plan_tables(title: Text, parameters: dict[str, Any], plan: TrainingPlan) -> list[Table]:
    part, share, total = Message("part"), Message("share"), Message("total")
    called: dict[str, list[tuple[str, Message]]] = {
        kind: [(name, Message(label)) for name, label in _TOLD[kind].items()]
        for kind in ("parameters", "inside", "work", "memory")
    }
    whole = parameters["total"]
    of_parameters: Rows = [
        [what, f"{parameters[name]:,}", f"{parameters[name] / whole:.1%}"] for name, what in called["parameters"]
    ]
    of_parameters.append([total, f"{whole:,}", "100.0%"])
    of_parameters += [[what, f"{parameters[name]:,}", ""] for name, what in called["inside"]]
    forward, training, all_work = plan.work.forward, plan.work.training, plan.work.training_per_token
    of_work: Rows = [
        [what, _count(forward[name]), _count(training[name]), f"{training[name] / all_work:.1%}"]
        for name, what in called["work"]
        if training[name]
    ]
    of_work.append([total, _count(plan.work.forward_per_token), _count(all_work), "100.0%"])
    memory = asdict(plan.memory)
    of_memory: Rows = [
        [what, amount(Size(memory[name])), f"{memory[name] / memory['total']:.1%}"] for name, what in called["memory"]
    ]
    of_memory.append([total, amount(Size(memory["total"])), ""])
    work = Message("operations (multiply and add) for each token, context {n}", n=plan.context_length)
    where = Message(
        "memory to train in {precision} on {device}, {shape} at once",
        precision=plan.precision,
        device=plan.gpu or plan.device,
        shape=f"{plan.micro_batch_size} x {plan.context_length}",
    )
    return [
        (title, [part, Message("parameters"), share], of_parameters),
        (work, [part, Message("forward"), Message("and backward"), share], of_work),
        (where, [part, Message("memory"), share], of_memory),
    ]


def _door_table(doors: Sequence[Any]) -> Table:
    rows: Rows = [[door.name, Message("open") if door.open else Message("closed"), door.because] for door in doors]
    return Message("doors of kotha export"), [Message("door"), "", Message("because")], rows


def _count(value: float) -> Message:
    return amount(Count(value))


def amount(value: Amount) -> Message:
    """An amount in a cell of its own."""
    return Message("{n}", n=value)


# -- why a design is as it is ------------------------------------------------------------------------------------------


def reasons_for(design: Design, text: TextSize) -> list[Reason]:
    """What was chosen and why, from the vocabulary to the number of steps."""
    model, settings = design.model, design.settings
    context, each = settings.context_length or model.context_length, design.tokens / design.parameters
    rung = Message("the largest step of the ladder that fits")
    if each < TOKENS_PER_PARAMETER:
        rung = Message("the smallest step of the ladder, and more time would serve it")
    values = {
        **{**vars(model), **vars(settings), "context": context, "recipe": RECIPE, "inner": model.d_ff},
        **{"width": model.d_head, "tokens": settings.batch_size * context, "parameters": design.parameters},
        **{"each": each, "rung": rung, "size": Size(text.bytes), "epochs": design.epochs, "aside": ASIDE},
        **{"times": times(design.epochs), "seconds": design.seconds_per_step},
    }
    second = {"vocabulary": text.prepared, "steps": design.text_ends}
    return [
        (Message(what), value.format_map(values), Message(whys[second.get(what, False)], **values))
        for what, value, *whys in _TOLD["reasons"]
    ]


def design_facts(design: Design, text: TextSize) -> dict[str, Any]:
    """The proposal, ready for JSON; beside it stand the figures of a plan for it."""
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
    """The lines that make this design, from a corpus or from a data folder."""
    lines, data = [], text.path
    if not text.prepared:
        path, pieces, data = shlex.quote(text.path), design.model.vocab_size, "data"
        lines.append(f"kotha tokenizer train {path} --kind unigram --vocab-size {pieces} --out tokenizer")
        lines.append(f"kotha prepare {path} --tokenizer tokenizer --out data")
    changes = {name: value for name, value in design.changes.items() if name != "steps" and value is not None}
    words = " ".join(f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
                     for name, value in {**design.sizes, **changes}.items())  # fmt: skip
    start = f"kotha train {shlex.quote(data)} --out run --preset {BASE} --recipe {RECIPE}"
    return [*lines, f"{start} --steps {design.changes['steps']} --set {words}"]
