"""``kotha demo``: the whole pipeline on the built-in corpus, without a network."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kotha.cli.interrupts import stopped
from kotha.cli.language import current_language, translate
from kotha.cli.terminal import Commands, Table, print_parts, progress, status
from kotha.cli.training_display import training_display
from kotha.i18n.message import Message
from kotha.i18n.message import Text as Remark

if TYPE_CHECKING:
    from kotha.api.demo import Demonstration, DemoStep


def demo(
    *,
    out: Path = Path("kotha-demo"),
    documents: int = 3000,
    vocab_size: int = 8192,
    minutes: float = 2.0,
    seed: int = 0,
) -> None:
    """Generate Bangla stories, train a tokenizer and a small model on them, and generate text with the model.

    Everything is written to --out: the stories, the tokenizer, the data folder, the run folder, pages that show what
    happens inside the model, and report.html, which links to all of them. No network is needed.

    Example: `kotha demo --minutes 5 --out my-demo`

    Args:
        out: Output folder.
        documents: Number of stories to write.
        vocab_size: Vocabulary size of the tokenizer.
        minutes: Approximate training time in minutes.
        seed: Random seed for the stories and the initial weights.
    """
    from kotha.api.demo import Demonstration

    demonstration = Demonstration(out, documents, vocab_size, minutes, seed)
    for number, step in enumerate(demonstration.steps(), 1):
        heading = translate(Message("{number}. {name}", number=number, name=step.name))
        print_parts(Text.assemble("\n", (heading, "bold green"), "  ", (translate(step.about), "dim")))
        for part in _run_step(demonstration, step):
            print_parts(part)
    commands = next_steps(str(out), _program(), minutes)
    report = str(demonstration.report(commands))
    line = Text(translate(Message("Report: {path} (open it in a browser)", path=report)))
    line.highlight_words([report], "bold")
    print_parts("", line, Commands(Message("Three things to try next:"), [line for _, line in commands[:3]]))


def next_steps(folder: str, program: str, minutes: float) -> list[tuple[Message, str]]:
    """Return suggestions for what to try next, as descriptions with commands to copy."""
    from kotha.api.demo_page import TEXTS

    here, language = shlex.quote(folder), current_language()
    values: Any = {"here": here, "run": f"{here}/run", "minutes": 5 * minutes}
    values["spoken"] = "" if language == "en" else f" --language {language}"
    return [(Message(words), f"{program} {command.format(**values)}") for words, command in TEXTS["next"]]


def _run_step(demonstration: "Demonstration", step: "DemoStep") -> "list[Remark | Table]":
    """Run a step and show its progress."""
    if step.meanwhile is not None:
        with status(step.meanwhile):
            return step.work()
    if step.work != demonstration.train:
        with progress() as advance:
            demonstration.listeners = {"on_progress": advance}
            return step.work()
    with training_display() as demonstration.listeners:
        parts = step.work()
    if error := stopped(
        demonstration.summary, "train", demonstration.out / "data", "--out", demonstration.out / "run", "--resume"
    ):
        raise error
    return parts


def _program() -> str:
    """Return the command that runs this program: its name, or its path if it is not on PATH."""
    if shutil.which("kotha"):
        return "kotha"
    path = Path(sys.executable).with_name("kotha")
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
