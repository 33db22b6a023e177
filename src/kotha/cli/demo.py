"""``kotha demo``: the whole way, on the built-in corpus, with no network."""

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.padding import Padding
from rich.text import Text

from kotha.cli.flags import InLanguage, flag
from kotha.cli.spoken import said, spoken_language
from kotha.cli.stopping import check_stopped
from kotha.cli.terminal import Table, notes, print_commands, print_parts, progress, results
from kotha.cli.training_display import TrainingDisplay
from kotha.i18n.message import Message
from kotha.i18n.message import Text as Remark
from kotha.i18n.numbers import Language

if TYPE_CHECKING:
    from kotha.api.demo import Demonstration, DemoStep


def demo(
    *,
    out: Annotated[Path, flag("Folder for everything that is made.")] = Path("kotha-demo"),
    documents: Annotated[int, flag("How many stories to write.")] = 3000,
    vocab_size: Annotated[int, flag("Pieces of the tokenizer.")] = 8192,
    minutes: Annotated[float, flag("How long to train, about.")] = 2.0,
    seed: Annotated[int, flag("Which stories, and which first weights.")] = 0,
    language: InLanguage = "en",
) -> None:
    """Write Bangla stories, learn a tokenizer from them, train a model on them, and let it write its own."""
    from kotha.api.demo import Demonstration, Quoted

    made, console = Demonstration(out, documents, vocab_size, minutes, seed), results()
    for number, step in enumerate(made.steps(), 1):
        heading = said(Message("{number}. {name}", number=number, name=step.name))
        console.print(f"\n[bold green]{heading}[/]  [dim]{said(step.about)}[/]")
        for told in _watched(made, step):
            if isinstance(told, Quoted):
                console.print(Padding(told, (0, 0, 1, 2)), markup=False)
            else:
                print_parts(told)
    commands = next_steps(str(out), _program(), minutes, spoken_language())
    report = str(made.report(commands))
    leads = Text(said(Message("Report: {path} (open it in a browser)", path=report)))
    leads.highlight_words([report], "bold")
    console.print("", leads, sep="\n")
    print_commands(Message("Three things to try next:"), [command for _, command in commands[:3]])


def next_steps(folder: str, program: str, minutes: float, language: Language = "en") -> list[tuple[Message, str]]:
    """What a newcomer may want to try, in order of curiosity: in words, and as a command to copy."""
    here, read = shlex.quote(folder), "--text 'নদীর ধারে'"
    spoken = "" if language == "en" else f" --language {language}"
    run = f"{here}/run"
    steps = [
        (Message("Let it go on with your own words"), f"generate {run} 'নদীর ধারে' --temperature 0.3{spoken}"),
        (
            Message("Give it five times as long to learn"),
            f"train {here}/data --minutes {5 * minutes:.3g} --out {here}/longer{spoken}",
        ),
        (
            Message("Watch a text of your own pass through it"),
            f"inside flow {run} {read} --html {here}/mine.html{spoken}",
        ),
        (
            Message("Compute one of its heads by hand"),
            f"inside worksheet --run {run} {read} --xlsx {here}/head.xlsx{spoken}",
        ),
        (Message("Hear what its curve says"), f"doctor {run} --language bn"),
        (Message("Take it to other programs"), f"export {run} --to hf --out {here}/hf"),
    ]
    return [(words, f"{program} {command}") for words, command in steps]


def _watched(made: "Demonstration", step: "DemoStep") -> "list[Remark | Table]":
    """Do a step while its progress is seen."""
    if step.meanwhile is not None:
        with notes().status(said(step.meanwhile)):
            return step.work()
    if step.work != made.train:
        with progress() as advance:
            made.listeners = {"on_progress": advance}
            return step.work()
    with TrainingDisplay() as display:
        made.listeners = {"on_event": display.show, "on_remark": display.say}
        told = step.work()
    check_stopped(made.summary, "train", made.out / "data", "--out", made.out / "run", "--resume")
    return told


def _program() -> str:
    """How this program is called from here: by name, or by path where its environment is not switched on."""
    if shutil.which("kotha"):
        return "kotha"
    path = Path(sys.executable).with_name("kotha")
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))
