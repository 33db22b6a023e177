"""The tables and sentences of ``kotha plan``, for the terminal and for its page."""

from typing import Any

from kotha.train.config import TrainConfig
from kotha.wording import duration, size

_PARTS = ("token_embedding", "segments", "positions", "attention", "feedforward", "norms", "head")
_MEMORY = ("weights", "gradients", "optimizer", "average", "activations", "loss", "base")
_LONG = 60  # a cell longer than this is a sentence
_BLOCKS = " ▁▂▃▄▅▆▇█"

Table = tuple[str, list[str], list[list[str]]]
"""Title, header, rows."""


def plan_tables(name: str, parameters: dict[str, Any], found: dict[str, Any]) -> list[Table]:
    """Parameters, work and memory, part by part; and which doors the model can pass when it has learned."""
    shape = f"{found['micro_batch_size']} x {found['context_length']}"
    where = found["gpu"] or found["device"]
    memory = f"memory to train in {found['precision']} on {where}, {shape} at once"
    work = f"operations (multiply and add) for each token, context {found['context_length']}"
    return [
        (name, ["part", "parameters", "share"], _parameter_rows(parameters)),
        (work, ["part", "forward", "forward and backward", "share"], _work_rows(found["flops"])),
        (memory, ["part", "size", "share"], _memory_rows(found["memory_bytes"])),
        ("doors: kotha export --to", ["door", "", "because"], _door_rows(found["doors"])),
    ]


def plan_words(found: dict[str, Any]) -> list[str]:
    """What the tables do not say: the fullest moment, the rule of thumb, a step, the whole run."""
    flops, memory = found["flops"], found["memory_bytes"]
    words = [f"the parts are not all there at once; the fullest moment is {memory['moment']}"]
    available = found["memory_available_bytes"]
    if available is not None and memory["total"] > available:
        words.append(f"{found['gpu']} has {size(available)}: this does not fit; try a smaller micro-batch or model")
    rule = f"{flops['rule_of_thumb_per_token']:,.0f}, {flops['rule_of_thumb_ratio']:.2f} times the count"
    words.append(f"6 operations for each parameter, the rule of thumb, would be {rule}")
    tokens = f"{found['tokens_per_step']:,} tokens a step"
    words.append(f"{found['flops_per_token']:,.0f} operations a token, {tokens}, {flops['per_step']:.3g} a step")
    epochs = "" if found["epochs"] is None else f", {found['epochs']:.1f} times through the data"
    words.append(f"{found['steps']:,} steps are {found['tokens']:,} tokens{epochs}")
    if found["seconds_per_step"] is not None:
        where = "here" if found["gpu"] is None else f"on {found['gpu']}"
        speed = f"{found['tokens_per_step'] / found['seconds_per_step']:,.0f} tokens a second"
        words.append(
            f"{found['seconds_per_step']:,.3g} s a step {where}, {duration(found['seconds'])} for all; {speed}, "
            f"{found['peak_share']:.0%} of the peak, {found['peak_flops_per_second'] / 1e12:,.3g} TFLOP/s"
        )
        words.append(f"the time: {found['time_source']}")
    return words


def schedule_lines(settings: TrainConfig, columns: int = 60, rows: int = 4) -> list[str]:
    """The learning rate over the run, drawn in blocks: the highest line first, then the steps."""
    from kotha.train.optimize.schedule import learning_rate_share
    from kotha.train.show.curves import schedule_steps

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


def in_columns(title: str, rows: list[list[str]]) -> str:
    """Rows whose last cell is a sentence, as plain lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]) - 1)]
    lines = [[*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]] for row in rows]
    return "\n".join([title, *("  " + "  ".join(cells) for cells in lines)])


def _door_rows(doors: list[dict[str, Any]]) -> list[list[str]]:
    return [[door["name"], "open" if door["open"] else "closed", door["because"]] for door in doors]


def _parameter_rows(parts: dict[str, Any]) -> list[list[str]]:
    total = parts["total"]
    rows = [[name.replace("_", " "), f"{parts[name]:,}", f"{parts[name] / total:.1%}"] for name in _PARTS]
    rows.append(["total", f"{total:,}", "100.0%"])
    inside = {
        "one attention": "attention_per_layer",
        "one head": "attention_per_head",
        "one feed-forward": "feedforward_per_layer",
    }
    return rows + [[f"in {what}", f"{parts[name]:,}", ""] for what, name in inside.items()]


def _work_rows(flops: dict[str, Any]) -> list[list[str]]:
    forward, training = flops["forward_per_token"], flops["training_per_token"]
    total = flops["training_per_token_total"]
    names = {"attention_scores": "attention scores (grow with the context)", "feedforward": "feed-forward"}
    rows = []
    for part in (each for each in training if training[each]):
        figures = [f"{forward[part]:,.0f}", f"{training[part]:,.0f}", f"{training[part] / total:.1%}"]
        rows.append([names.get(part, part.replace("_", " ")), *figures])
    return [*rows, ["total", f"{flops['forward_per_token_total']:,.0f}", f"{total:,.0f}", "100.0%"]]


def _memory_rows(memory: dict[str, Any]) -> list[list[str]]:
    rows = [[name, size(memory[name]), f"{memory[name] / memory['total']:.1%}"] for name in _MEMORY]
    return [*rows, ["total", size(memory["total"]), ""]]
