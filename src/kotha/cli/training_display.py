"""The display for a training run: a progress line that is updated in place, and a line per evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.live import Live
from rich.text import Text

from kotha.cli.interrupts import say_at_once
from kotha.cli.language import log, translate
from kotha.cli.terminal import notes
from kotha.i18n.message import Message, ProgressMessage
from kotha.i18n.message import Text as Remark
from kotha.i18n.numbers import Size

_SAMPLE_CHARACTERS = 110
# Labels for the figures of a summary, by key.
_LABELS = {
    name.replace(" ", "_"): Message(name)
    for name in (
        *("accuracy", "best step", "bits per byte", "bits per character", "device", "loss nats", "macro f1"),
        *("micro batch size", "peak memory bytes", "precision", "processes", "seconds", "steps", "stopped", "tokens"),
        "tokens per second",
    )
}
_UNITS = {
    "bits_per_byte": "{value:.4f} bits/byte",
    "bits_per_character": "{value:.4f} bits/character",
    "loss_nats": "{value:.4f} nats",
}


@contextmanager
def training_display(prints: bool = True, many: bool = False) -> Iterator[dict[str, Any]]:
    """Yield ``on_event`` and ``on_remark`` for a training run; without ``prints``, they show nothing.

    For one of ``many`` runs, only the progress line and an early stop are shown.
    """
    console = notes()
    live = Live(Text(translate(Message("starting …"))), console=console, transient=True, refresh_per_second=4)
    is_live = prints and console.is_terminal

    def show_remark(text: Remark) -> None:
        if is_live and isinstance(text, ProgressMessage):  # replaced by the next one
            live.update(Text(translate(text)))
        elif prints:
            log(text)

    def show_event(event: dict[str, Any]) -> None:
        if "stopping" in event:
            line = translate(Message("saving after this step ({stopping}) …", stopping=event["stopping"]))
            say_at_once(f"kotha: {line}")
        elif "validation" in event:
            if not many:
                console.print(evaluation_line(event))
        elif console.is_terminal:
            live.update(progress_line(event, f"{translate(event['trial'])}  " if many else stage_of(event)))

    with live if is_live else nullcontext():
        yield {"on_event": show_event, "on_remark": show_remark}


def evaluation_line(event: dict[str, Any]) -> Text:
    """Format an evaluation in one line, with a sample from the model."""
    found = event["validation"]
    figures = [Message(unit, value=found[key]) for key, unit in _UNITS.items() if key in found][:2]
    shares = [name for name in found if "accuracy" in name or name == "macro_f1"]
    figures += [Message("{name} {share:.1%}", name=label(name), share=found[name]) for name in shares]
    line = Text(stage_of(event))
    line.append(translate(Message("step {step:>6,}  validation {figures}", step=event["step"], figures=figures)))
    sample = " ".join((event.get("sample") or "").split())
    return line.append(f"  {sample[:_SAMPLE_CHARACTERS]}", style="dim") if sample else line


def stage_of(event: dict[str, Any]) -> str:
    """Return the current stage of a run with teachers, as the start of a line."""
    if "stage" not in event:
        return ""
    return translate(Message("stage {stage}/{stages}  ", stage=event["stage"], stages=event["stages"]))


def label(name: str) -> Remark:
    """Return the label for a figure in a summary."""
    return _LABELS.get(name) or name.replace("_", " ")


def readable(name: str, value: Any) -> Remark:
    """Format a figure in a summary for display."""
    if name.endswith("_bytes"):
        return Message("{size}", size=Size(value))
    if isinstance(value, float):
        return f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
    if isinstance(value, bool):
        return Message("True") if value else Message("False")
    return f"{value:,}" if isinstance(value, int) else str(value)


def progress_line(event: dict[str, Any], start: str = "") -> Text:
    """Format a step in one line: progress, loss, speed, memory and remaining time; a long line is truncated."""
    done, steps, share = event["step"], event["steps"], event["peak_share"]
    left = (steps - done) * event["tokens"] / max(1, done) / max(1e-9, event["tokens_per_second"])
    minutes, seconds = divmod(round(left), 60)
    line = (
        "step {done:,}/{steps:,}  loss {loss_nats:.3f}  {tokens_per_second:,.0f} tokens/s  {size}  "
        "{minutes}:{seconds:02d} left{peak}"
    )
    values = {name: event[name] for name in ("steps", "loss_nats", "tokens_per_second")}
    values["size"] = str(Size(event["memory_bytes"]))  # with the digits of the other figures
    values["peak"] = "" if share is None else Message("  {share} of peak", share=f"{share:.0%}")
    message = Message(line, done=done, minutes=minutes, seconds=seconds, **values)
    return Text(start + translate(message), no_wrap=True, overflow="ellipsis")
