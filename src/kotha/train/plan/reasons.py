"""Why a design is as it is, setting by setting, in a sentence each; and the commands that run it."""

import shlex
from dataclasses import asdict
from typing import Any

from kotha.train.plan.budget import ASIDE
from kotha.train.plan.design import BASE, RECIPE, TOKENS_PER_PARAMETER, Design
from kotha.train.plan.text_size import TextSize
from kotha.wording import size

Reason = tuple[str, str, str]
"""What, its value, and why."""


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
            f"{design.epochs:.1f} passes over the text: many passes must be held back from memorising, a short run not",
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
        "considered": [asdict(each) for each in design.considered],
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
