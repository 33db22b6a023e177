"""What a person sees while a model learns: one line that moves, and one that stays for each evaluation."""

from typing import Any

from rich.live import Live
from rich.text import Text

from kotha.cli.spoken import said, tell
from kotha.cli.stopping import say_at_once
from kotha.cli.terminal import notes
from kotha.i18n.message import Message, ProgressMessage
from kotha.i18n.message import Text as Remark
from kotha.i18n.numbers import Size

_SAMPLE_LETTERS = 110


class TrainingDisplay:
    """Shows the events of a run; silent in all processes but the first."""

    def __init__(self, speaks: bool = True) -> None:
        self._speaks = speaks
        self._console = notes()
        self._live = Live(
            Text(said(Message("starting …"))), console=self._console, transient=True, refresh_per_second=4
        )

    def __enter__(self) -> "TrainingDisplay":
        if self._speaks and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: Remark) -> None:
        """Show a remark; one about work under way is gone when the next comes."""
        if self._speaks and self._console.is_terminal and isinstance(text, ProgressMessage):
            self._live.update(Text(said(text)))
        elif self._speaks:
            tell(text)

    def pass_by(self, event: dict[str, Any]) -> None:
        """An event of one run among many: only the line that moves tells of it, and whether it stops."""
        if "stopping" in event:
            self.show(event)
        elif "validation" not in event and self._console.is_terminal:
            self._live.update(moving_line(event, self._console.width, f"{said(event['trial'])}  "))

    def show(self, event: dict[str, Any]) -> None:
        """An event of the run."""
        if "stopping" in event:
            line = said(Message("saving after this step ({stopping}) …", stopping=event["stopping"]))
            say_at_once(f"kotha: {line}")
        elif "validation" in event:
            self._console.print(evaluation_line(event))
        elif self._console.is_terminal:
            self._live.update(moving_line(event, self._console.width))


def evaluation_line(event: dict[str, Any]) -> Text:
    """An evaluation in one line, with what the model writes by now."""
    found = event["validation"]
    shown = {
        "bits_per_byte": "{value:.4f} bits/byte",
        "bits_per_character": "{value:.4f} bits/character",
        "loss_nats": "{value:.4f} nats",
    }
    figures = [Message(unit, value=found[key]) for key, unit in shown.items() if key in found][:2]
    shares = [name for name in found if "accuracy" in name or name == "macro_f1"]
    figures += [Message("{name} {share:.1%}", name=label(name), share=found[name]) for name in shares]
    mean = Message(" (mean of the last {n})", n=event["average_of"]) if "average_of" in event else ""
    line = Text(
        said(Message("step {step:>6,}{mean}  validation {figures}", step=event["step"], mean=mean, figures=figures))
    )
    sample = " ".join((event.get("sample") or "").split())
    return line.append(f"  {sample[:_SAMPLE_LETTERS]}", style="dim") if sample else line


# The figures of a summary by their keys, as a person calls them.
_LABELS = {
    "accuracy": Message("accuracy"),
    "best_step": Message("best step"),
    "bits_per_byte": Message("bits per byte"),
    "bits_per_character": Message("bits per character"),
    "device": Message("device"),
    "loss_nats": Message("loss nats"),
    "macro_f1": Message("macro f1"),
    "micro_batch_size": Message("micro batch size"),
    "peak_memory_bytes": Message("peak memory bytes"),
    "precision": Message("precision"),
    "processes": Message("processes"),
    "seconds": Message("seconds"),
    "steps": Message("steps"),
    "stopped": Message("stopped"),
    "tokens": Message("tokens"),
    "tokens_per_second": Message("tokens per second"),
}


def label(name: str) -> Remark:
    """How a person calls a figure of a summary."""
    return _LABELS.get(name) or name.replace("_", " ")


def readable(name: str, value: Any) -> Remark:
    """A figure of a summary for people."""
    if name.endswith("_bytes"):
        return Message("{size}", size=Size(value))
    if isinstance(value, float):
        return f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
    if isinstance(value, bool):
        return Message("True") if value else Message("False")
    return f"{value:,}" if isinstance(value, int) else str(value)


def moving_line(event: dict[str, Any], width: int, start: str = "") -> Text:
    """A step in a line that moves: it never wraps, and where it is too long the share of the peak goes first."""
    lines = [Text(start + step_line(each)) for each in (event, {**event, "peak_share": None})]
    line = next((each for each in lines if each.cell_len <= width), lines[-1])
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def step_line(event: dict[str, Any]) -> str:
    """A step in one line: how far, how well, how fast, how much memory, how long still."""
    done, steps = event["step"], event["steps"]
    left = (steps - done) * event["tokens"] / max(1, done) / max(1e-9, event["tokens_per_second"])
    minutes, seconds = divmod(round(left), 60)
    told = {name: event[name] for name in ("loss_nats", "tokens_per_second")}
    told |= {"done": done, "steps": steps, "minutes": minutes, "seconds": seconds}
    told["size"] = str(Size(event["memory_bytes"]))  # with the digits of the other figures
    share = event["peak_share"]
    told["peak"] = "" if share is None else Message("  {share} of peak", share=f"{share:.0%}")
    line = (
        "step {done:,}/{steps:,}  loss {loss_nats:.3f}  {tokens_per_second:,.0f} tokens/s{peak}  {size}  "
        "{minutes}:{seconds:02d} left"
    )
    return said(Message(line, **told))
