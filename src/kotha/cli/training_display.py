"""The display for a training run: a progress line that is updated in place, and a line per evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from rich.live import Live
from rich.text import Text

from kotha.api.progress import evaluation_message, sample_of, stage_message
from kotha.cli.interrupts import say_at_once
from kotha.cli.language import log, translate
from kotha.cli.terminal import notes
from kotha.i18n.message import Message, ProgressMessage
from kotha.i18n.message import Text as Remark
from kotha.i18n.numbers import Size


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
            live.update(
                progress_line(event, f"{translate(event['trial'])}  " if many else translate(stage_message(event)))
            )

    with live if is_live else nullcontext():
        yield {"on_event": show_event, "on_remark": show_remark}


def evaluation_line(event: dict[str, Any]) -> Text:
    """Format an evaluation in one line, with a sample from the model."""
    line = Text(translate(stage_message(event)) + translate(evaluation_message(event)))
    sample = sample_of(event)
    return line.append(f"  {sample}", style="dim") if sample else line


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
