"""What a person sees while a model learns: one line that moves, and one that stays for each evaluation."""

from collections.abc import Callable
from typing import Any

from rich.live import Live
from rich.text import Text

from kotha.cli.spoken import said, tell
from kotha.cli.stopping import say_at_once
from kotha.cli.terminal import notes
from kotha.i18n.message import Message
from kotha.i18n.wording import size

_SAMPLE_LETTERS = 110


class TrainingDisplay:
    """Shows the events of a run; silent in all processes but the first."""

    def __init__(self, speaks: bool = True) -> None:
        self._speaks = speaks
        self.also: Callable[[dict[str, Any]], None] | None = None  # another listener
        self._console = notes()
        self._live = Live(Text(said("starting …")), console=self._console, transient=True, refresh_per_second=4)

    def __enter__(self) -> "TrainingDisplay":
        if self._speaks and self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, text: Message | str) -> None:
        """A remark; one that ends in … tells what goes on, and is gone when that is done."""
        if self._speaks and self._console.is_terminal and str(text).endswith("…"):
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
        if self.also is not None:
            self.also(event)
        if "stopping" in event:
            line = said(f"saving after this step ({event['stopping']}) …")
            say_at_once(f"kotha: {line}")
        elif "validation" in event:
            self._console.print(evaluation_line(event))
        elif self._console.is_terminal:
            self._live.update(moving_line(event, self._console.width))


def evaluation_line(event: dict[str, Any]) -> Text:
    """An evaluation in one line, with what the model writes by now."""
    found = event["validation"]
    shown = {"bits_per_byte": "bits/byte", "bits_per_character": "bits/character", "loss_nats": "nats"}
    figures = [f"{found[key]:.4f} {unit}" for key, unit in shown.items() if key in found][:2]
    shares = [name for name in found if "accuracy" in name or name == "macro_f1"]
    figures += [f"{name.replace('_', ' ')} {found[name]:.1%}" for name in shares]
    mean = f" (mean of the last {event['average_of']})" if "average_of" in event else ""
    line = Text(said(f"step {event['step']:>6,}{mean}  validation {', '.join(figures)}"))
    sample = " ".join((event.get("sample") or "").split())
    return line.append(f"  {sample[:_SAMPLE_LETTERS]}", style="dim") if sample else line


def readable(name: str, value: Any) -> str:
    """A figure of a summary for people."""
    if name.endswith("_bytes"):
        return size(value)
    if isinstance(value, float):
        return f"{value:,.4f}" if value < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


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
    share = "" if event["peak_share"] is None else f"  {event['peak_share']:.0%} of peak"
    return said(
        f"step {done:,}/{steps:,}  loss {event['loss_nats']:.3f}  {event['tokens_per_second']:,.0f} tokens/s"
        f"{share}  {size(event['memory_bytes'])}  {minutes}:{seconds:02d} left"
    )
