"""``kotha plan`` backwards: a design for a budget, as JSON, as tables and as the commands that run it."""

import shlex
from typing import Any, Literal

from kotha.cli.plan_tables import Table
from kotha.errors import UsageError
from kotha.wording import duration, size

# Rungs that did not fit, as many as say something.
_SHOWN = 4


def design_for(
    data: str | None,
    memory_gb: float | None,
    minutes: float | None,
    gpu: str | None,
    device: str | None,
    precision: Literal["auto", "float32", "bfloat16", "float16"] | None,
) -> tuple[Any, Any]:
    """The material and the design for a budget."""
    from kotha.train.plan.budget import place_here, place_on
    from kotha.train.plan.design import propose
    from kotha.train.plan.gpus import gpu_named
    from kotha.train.plan.material import measure_material

    if data is None or minutes is None:
        raise UsageError("a design needs --data and --minutes, and --memory-gb where not all memory may be used")
    if minutes <= 0 or (memory_gb is not None and memory_gb <= 0):
        raise UsageError("--minutes and --memory-gb take numbers above 0")
    memory = None if memory_gb is None else int(memory_gb * 1e9)
    chosen = None if gpu is None else gpu_named(gpu)
    material = measure_material(data)
    place = (
        place_here(memory, minutes, device, precision or "auto")
        if chosen is None
        else place_on(chosen, memory, minutes, precision or "auto")
    )
    return material, propose(material, place, {} if precision is None else {"precision": precision})


def design_facts(material: Any, design: Any) -> dict[str, Any]:
    """The proposal, ready for JSON; beside it stand the figures of a plan for it."""
    from dataclasses import asdict

    from kotha.train.plan.reasons import reasons_for

    reasons = reasons_for(design, material)
    return {
        "data": {**asdict(material), "prepared": material.prepared},
        "sizes": {**design.sizes, "vocab_size": design.model.vocab_size},
        "recipe": design.recipe,
        "settings": design.changes,
        "reasons": [{"what": what, "value": value, "why": why} for what, value, why in reasons],
        "considered": [asdict(each) for each in design.considered],
        "commands": commands(material, design),
    }


def design_tables(facts: dict[str, Any]) -> list[Table]:
    """The choice with its reasons, and what did not fit."""
    chosen = [[each["what"], each["value"], each["why"]] for each in facts["reasons"]]
    refused = [each for each in facts["considered"] if each["verdict"]]
    rows = [
        [f"{each['layers']} x {each['width']}", f"{each['parameters']:,}", each["verdict"]]
        for each in refused[-_SHOWN:]
    ]
    tables: list[Table] = [("proposed", ["", "value", "why"], chosen)]
    return (
        [*tables, ("larger ones that do not fit", ["layers x width", "parameters", "why not"], rows)]
        if rows
        else tables
    )


def design_words(facts: dict[str, Any], found: dict[str, Any], memory_gb: float | None) -> list[str]:
    """What the budget turns into."""
    allowed = "" if memory_gb is None else f" of {memory_gb:g} GB"
    took = "" if found["seconds"] is None else f", {duration(found['seconds'])} of steps"
    return [
        f"{size(found['memory_bytes']['total'])}{allowed} planned{took}, {found['epochs']:.1f} times through the data"
    ]


def commands(material: Any, design: Any) -> list[str]:
    """The lines that make this design, from a corpus or from a data folder."""
    from kotha.train.plan.design import BASE

    lines, data = [], material.path
    if not material.prepared:
        text = shlex.quote(material.path)
        pieces = design.model.vocab_size
        lines.append(f"kotha tokenizer train {text} --kind unigram --vocab-size {pieces} --out tokenizer")
        lines.append(f"kotha prepare {text} --tokenizer tokenizer --out data")
        data = "data"
    changes = {name: value for name, value in design.changes.items() if name != "steps" and value is not None}
    words = " ".join(f"--set {name}={value:g}" if isinstance(value, float) else f"--set {name}={value}"
                     for name, value in {**design.sizes, **changes}.items())  # fmt: skip
    steps = design.changes["steps"]
    start = f"kotha train {shlex.quote(data)} --out run --preset {BASE} --recipe {design.recipe} --steps {steps}"
    return [*lines, f"{start} {words}"]
