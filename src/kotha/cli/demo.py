"""``kotha demo``: the whole way, on the built-in corpus, with no network."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from kotha.cli.interrupts import stopped
from kotha.cli.language import spoken_language, translate
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
    """Write Bangla stories, learn a tokenizer from them, train a model on them, and let it write its own.

    Args:
        out: Output folder.
        documents: Number of stories to write.
        vocab_size: Vocabulary size of the tokenizer.
        minutes: Approximate training time in minutes.
        seed: Random seed for the stories and the initial weights.
    """
    from kotha.api.demo import Demonstration

    made = Demonstration(out, documents, vocab_size, minutes, seed)
    for number, step in enumerate(made.steps(), 1):
        heading = translate(Message("{number}. {name}", number=number, name=step.name))
        print_parts(Text.assemble("\n", (heading, "bold green"), "  ", (translate(step.about), "dim")))
        for told in _watched(made, step):
            print_parts(told)
    commands = next_steps(str(out), _program(), minutes)
    report = str(made.report(commands))
    leads = Text(translate(Message("Report: {path} (open it in a browser)", path=report)))
    leads.highlight_words([report], "bold")
    print_parts("", leads, Commands(Message("Three things to try next:"), [line for _, line in commands[:3]]))


def next_steps(folder: str, program: str, minutes: float) -> list[tuple[Message, str]]:
    """What a newcomer may want to try, in order of curiosity: in words, and as a command to copy."""
    from kotha.api.demo_page import TOLD

    here, language = shlex.quote(folder), spoken_language()
    values: Any = {"here": here, "run": f"{here}/run", "minutes": 5 * minutes}
    values["spoken"] = "" if language == "en" else f" --language {language}"
    return [(Message(words), f"{program} {command.format(**values)}") for words, command in TOLD["next"]]


def _watched(made: "Demonstration", step: "DemoStep") -> "list[Remark | Table]":
    """Do a step while its progress is seen."""
    if step.meanwhile is not None:
        with status(step.meanwhile):
            return step.work()
    if step.work != made.train:
        with progress() as advance:
            made.listeners = {"on_progress": advance}
            return step.work()
    with training_display() as made.listeners:
        told = step.work()
    if error := stopped(made.summary, "train", made.out / "data", "--out", made.out / "run", "--resume"):
        raise error
    return told


def _program() -> str:
    """How this program is called from here: by name, or by path where its environment is not switched on."""
    if shutil.which("kotha"):
        return "kotha"
    path = Path(sys.executable).with_name("kotha")
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
