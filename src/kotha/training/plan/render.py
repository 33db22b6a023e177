"""A plan for people: its tables and sentences, why a design is as it is, and the learning rate in a few lines."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from kotha.i18n.wording import count, counted, duration, passes, size
from kotha.model.config import ModelConfig
from kotha.model.parameters import count_parameters
from kotha.training.config import TrainConfig
from kotha.training.optim.schedule import learning_rate_share, schedule_steps
from kotha.training.plan.budget import ASIDE
from kotha.training.plan.design import BASE, RECIPE, TOKENS_PER_PARAMETER, Design
from kotha.training.plan.planning import TrainingPlan, plan_training
from kotha.training.plan.step_time import use_fastest_threads
from kotha.training.plan.text_size import TextSize, measure_text
from kotha.training.settings import TrainRequest, choose_settings

_PARTS = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
_INSIDE = {"one attention": "attention_per_layer", "one head": "attention_per_head"}
_INSIDE |= {"one feed-forward": "feedforward_per_layer"}
_MEMORY = ("weights", "gradients", "optimizer", "average", "activations", "loss", "base")
_LONG = 60  # a cell longer than this is a sentence
_BLOCKS = " ▁▂▃▄▅▆▇█"
# Rungs that did not fit, as many as say something.
_SHOWN = 4

Table = tuple[str, list[str], list[list[str]]]  # title, header, rows
Reason = tuple[str, str, str]  # what, its value, and why


@dataclass(frozen=True)
class PlanText:
    """All that is told of a plan."""

    title: str
    settings: TrainConfig
    tables: list[Table]
    words: list[str]
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
    found["doors"] = [{**asdict(door), "because": str(door.because)} for door in out]
    title = f"{request.preset or 'design'}: {model.family}"
    shape = f"{plan.micro_batch_size} x {plan.context_length}"
    memory = f"memory to train in {plan.precision} on {plan.gpu or plan.device}, {shape} at once"
    work = f"operations (multiply and add) for each token, context {plan.context_length}"
    exits = [[door.name, "open" if door.open else "closed", str(door.because)] for door in out]
    tables: list[Table] = [
        (title, ["part", "parameters", "share"], _parameter_rows(parameters)),
        (work, ["part", "forward", "and backward", "share"], _work_rows(plan)),
        (memory, ["part", "memory", "share"], _memory_rows(plan)),
        ("doors of kotha export", ["door", "", "because"], exits),
    ]
    if choice.design is None or text is None:
        return found, PlanText(title, settings, tables, plan_words(plan))
    found["design"] = facts = design_facts(choice.design, text)
    return found, PlanText(title, settings, [*_design_tables(facts), *tables], plan_words(plan), facts["commands"])


def plan_words(plan: TrainingPlan) -> list[str]:
    """What the tables do not say: the fullest moment, the rule of thumb, a step, the whole run."""
    work, available = plan.work, plan.memory_available_bytes
    words = [f"the parts are not all there at once; the fullest moment is {plan.memory.moment}"]
    if available is not None and plan.memory.total > available:
        words.append(f"{plan.gpu} has {size(available)}: this does not fit; try a smaller micro-batch or model")
    ratio = work.rule_of_thumb / work.training_per_token
    words.append(
        f"6 operations for each parameter, the rule of thumb, would be {count(work.rule_of_thumb)}, {ratio:.2f} "
        "times the count"
    )
    per_step = work.training_per_token * plan.tokens_per_step
    words.append(
        f"{count(work.training_per_token)} operations a token, {plan.tokens_per_step:,} tokens a step, "
        f"{per_step:.3g} a step"
    )
    epochs = "" if plan.epochs is None else f", {passes(plan.epochs)} times through the data"
    words.append(f"{counted(plan.steps, 'step')} read {count(plan.tokens)} tokens{epochs}")
    if plan.seconds_per_step is not None and plan.seconds is not None:
        where = "here" if plan.gpu is None else f"on {plan.gpu}"
        words.append(
            f"{plan.seconds_per_step:,.3g} s a step {where}, {duration(plan.seconds)} for all; "
            f"{plan.tokens_per_step / plan.seconds_per_step:,.0f} tokens a second{_share_of_peak(plan)}"
        )
        words.append(f"the time: {plan.time_source}")
    return words


def _share_of_peak(plan: TrainingPlan) -> str:
    if plan.peak_flops_per_second is None:
        return ""
    if plan.peak_share is None:
        return ", more than the peak that was timed: this machine is busy, and all of its times are guesses"
    return f", {plan.peak_share:.0%} of the peak, which is {plan.peak_flops_per_second / 1e12:,.3g} TFLOP/s"


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


def has_sentences(rows: list[list[str]]) -> bool:
    """Is there more to read than figures? Such rows are read from their left."""
    return any(len(cell) > _LONG for row in rows for cell in row)


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
    chosen = [[each["what"], each["value"], each["why"]] for each in facts["reasons"]]
    refused = [each for each in facts["considered"] if each["verdict"]]
    rows = [
        [f"{each['layers']} x {each['width']}", f"{each['parameters']:,}", each["verdict"]]
        for each in refused[-_SHOWN:]
    ]
    larger: Table = ("larger ones that do not fit", ["layers x width", "parameters", "why not"], rows)
    return [("proposed", ["", "value", "why"], chosen), *([larger] if rows else [])]


def _parameter_rows(parts: dict[str, Any]) -> list[list[str]]:
    total = parts["total"]
    rows = [[name.replace("_", " "), f"{parts[name]:,}", f"{parts[name] / total:.1%}"] for name in _PARTS]
    inside = [[f"in {what}", f"{parts[name]:,}", ""] for what, name in _INSIDE.items()]
    return [*rows, ["total", f"{total:,}", "100.0%"], *inside]


def _work_rows(plan: TrainingPlan) -> list[list[str]]:
    forward, training, total = plan.work.forward, plan.work.training, plan.work.training_per_token
    names = {"attention_scores": "attention scores", "feedforward": "feed-forward"}
    rows = []
    for part in (each for each in training if training[each]):
        figures = [count(forward[part]), count(training[part]), f"{training[part] / total:.1%}"]
        rows.append([names.get(part, part.replace("_", " ")), *figures])
    return [*rows, ["total", count(plan.work.forward_per_token), count(total), "100.0%"]]


def _memory_rows(plan: TrainingPlan) -> list[list[str]]:
    memory = asdict(plan.memory)
    rows = [[name, size(memory[name]), f"{memory[name] / memory['total']:.1%}"] for name in _MEMORY]
    return [*rows, ["total", size(memory["total"]), ""]]


# -- why a design is as it is ------------------------------------------------------------------------------------------


def reasons_for(design: Design, text: TextSize) -> list[Reason]:
    """What was chosen and why, from the vocabulary to the number of steps."""
    model, settings = design.model, design.settings
    context = settings.context_length or model.context_length
    rates = f"{settings.learning_rate:g}, Muon {settings.muon_learning_rate:g}"
    layout = (
        "RMSNorm, rotary positions, SwiGLU, QK-norm and Muon: 0.476 bits a byte on the news where the course had 0.547"
    )
    return [
        ("vocabulary", f"{model.vocab_size:,}", _vocabulary(text)),
        ("layers x width", f"{model.n_layers} x {model.d_model}", _shape(design)),
        ("heads", str(model.n_heads), f"{model.d_head} wide each, feed-forward {model.d_ff:,} wide"),
        ("layout and recipe", RECIPE, layout),
        ("context", str(context), "grows with the run: 128 served a minute on two cores, 512 beat 128 on the news"),
        (
            "batch",
            f"{settings.batch_size} x {context}",
            f"{settings.batch_size * context:,} tokens a step; smaller in a short run, so that there are more steps",
        ),
        ("at once", str(settings.micro_batch_size), f"of {settings.batch_size}: what the memory holds and is of use"),
        (
            "learning rates",
            rates,
            "measured at widths of 96 and 512, and falling with the width between and beyond them",
        ),
        (
            "dropout, weight decay",
            f"{settings.dropout:g}, {settings.weight_decay:g}",
            f"{passes(design.epochs)} passes over the text: many must be held back from memorising, a short run not",
        ),
        ("steps", f"{settings.steps:,}", _steps(design)),
    ]


def design_facts(design: Design, text: TextSize) -> dict[str, Any]:
    """The proposal, ready for JSON; beside it stand the figures of a plan for it."""
    return {
        "data": {**asdict(text), "prepared": text.prepared},
        "sizes": {**design.sizes, "vocab_size": design.model.vocab_size},
        "recipe": RECIPE,
        "settings": design.changes,
        "reasons": [{"what": what, "value": value, "why": why} for what, value, why in reasons_for(design, text)],
        "considered": [
            {"layers": each.model.n_layers, "width": each.model.d_model}
            | {"parameters": each.parameters, "verdict": each.verdict}
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


def _vocabulary(text: TextSize) -> str:
    if text.prepared:
        return "that of the data folder's tokenizer"
    return f"for {size(text.bytes)} of text; with 32 MB, 8,192 pieces gave fewer bits a byte than 32,100"


def _shape(design: Design) -> str:
    per_parameter = design.tokens / design.parameters
    seen = f"{design.parameters:,} parameters, {per_parameter:.2g} tokens seen for each"
    if per_parameter < TOKENS_PER_PARAMETER:
        return f"{seen}: the smallest step of the ladder, and more time would serve it"
    return f"{seen}: the largest step of the ladder that fits"


def _steps(design: Design) -> str:
    if design.text_ends:
        return f"{design.epochs:.0f} passes, as many as still gain; the rest of the time is not used"
    return f"what the time allows at {design.seconds_per_step:.3g} s a step, {ASIDE:.0%} kept for evaluations"
