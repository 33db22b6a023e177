"""docs/reference: every command, public name, format and error, from the help and the docstrings themselves.

``make reference`` writes the pages; ``--check`` only says whether they are fresh. Nobody edits them. A command's entry
is its own help, with the lines of docs/reference/tour.md that use it; a test runs the tour. The examples of Python are
those of the docstrings, which are run as well. A format is described by the module that reads and writes it.
"""

import argparse
import contextlib
import inspect
import io
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "reference"
MADE = "Made by `make reference` from the {}; edit those, not this page."
_COLUMNS = "100"  # how wide the help believes its terminal to be
# What a reader of a class wants to know of: its own public methods, those of its parents included.
_CLASSES_IN_FULL = ("Index", "LanguageModel", "Run", "Tokenizer")
# Modules that tell what their files hold, by the name that a reader looks for.
_FORMATS = {
    "A data folder": "kotha.text.shards",
    "A tokenizer": "kotha.text.tokenizer.tokenizer",
    "A run folder": "kotha.artifacts.run_folder",
    "A checkpoint": "kotha.training.checkpoint",
    "A model folder": "kotha.artifacts.model_folder",
    "An adapter": "kotha.training.adapter",
    "An index": "kotha.retrieval.sqlite_store",
    "A judging": "kotha.evaluation.judge.session",
    "A job of the server": "kotha.server.jobs.store",
}
# Where errors are that a reader of a server's answers meets.
_ERRORS = (
    "kotha.errors",
    "kotha.server.errors",
    "kotha.server.jobs.table",
)


def main(arguments: list[str] | None = None) -> int:
    """Write the pages, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page is not fresh")
    only_check = parser.parse_args(arguments).check
    stale = [name for name, text in pages().items() if not _is(PAGES / name, text)]
    if only_check and stale:
        print(f"docs/reference is not what the program says ({', '.join(stale)}); run: make reference", file=sys.stderr)
        return 1
    PAGES.mkdir(exist_ok=True)
    for name in stale:
        (PAGES / name).write_text(pages()[name], encoding="utf-8")
    return 0


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


@cache
def pages() -> dict[str, str]:
    """The pages by their names."""
    return {"commands.md": commands(), "python.md": python(), "formats.md": formats(), "errors.md": errors()}


# -- commands ------------------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its help, and the lines of the tour that use it."""
    from kotha.cli.main import COMMANDS

    tour = (ROOT / "docs" / "reference" / "tour.md").read_text(encoding="utf-8")
    shown = [line for line in tour.splitlines() if line.startswith("kotha ")]
    text = f"# Every command\n\n{MADE.format('help of the commands')} "
    text += "The examples come from [the tour](tour.md); a test runs them.\n"
    for name in COMMANDS:
        for words in ([name], *([name, part] for part in _parts(name))):
            text += f"\n{'#' * (1 + len(words))} kotha {' '.join(words)}\n\n```\n{told(words)}\n```\n"
            examples = [line for line in shown if line.split()[1 : 1 + len(words)] == words]
            if examples and (len(words) > 1 or not _parts(name)):
                text += "\n```sh\n" + "\n".join(examples) + "\n```\n"
    return text


def _parts(name: str) -> list[str]:
    """The commands of a group, as its help lists them."""
    group = told([name]).partition("\nCommands:\n")[2].partition("\n\n")[0]
    return [found for found in re.findall(r"^  ([a-z][\w-]*)\s", group, re.MULTILINE) if not found.startswith("-")]


def told(words: list[str]) -> str:
    """The help of a command without its frames."""
    from kotha.cli.main import main as kotha

    printed = io.StringIO()
    with _narrow(), contextlib.redirect_stdout(printed):
        assert kotha([*words, "--help"]) == 0
    lines = [_unframed(line) for line in printed.getvalue().splitlines()]
    return "\n".join(lines).partition("\nStart with `kotha demo`")[0].strip()


def _unframed(line: str) -> str:
    if line.startswith("╭"):
        return line.strip("╭─╮ ") + ":"
    return "" if line.startswith("╰") else re.sub(r"^│ ?(.*?)\s*│$", r"  \1", line).rstrip()


@contextlib.contextmanager
def _narrow() -> Iterator[None]:
    before = {name: os.environ.pop(name, None) for name in ("COLUMNS", "KOTHA_LANGUAGE")}
    os.environ["COLUMNS"] = _COLUMNS
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        os.environ.update({name: value for name, value in before.items() if value is not None})


# -- Python --------------------------------------------------------------------------------------------------------


def python() -> str:
    """Every public name with what it takes and its docstring."""
    import kotha

    text = f"# Every public name\n\n{MADE.format('docstrings')} A name is loaded when it is first used.\n"
    for name in kotha.__all__:
        found = getattr(import_module(kotha._MODULES[name]), name)
        text += f"\n## kotha.{name}\n{_described(name, found)}"
        if inspect.isclass(found) and name in _CLASSES_IN_FULL:
            for member, each in inspect.getmembers_static(found):
                if not member.startswith("_") and _documented(each):
                    text += f"\n### {name}.{member}\n{_described(f'.{member}', each)}"
    return text


def _documented(member: Any) -> bool:
    inner = (
        getattr(member, "__func__", None) or getattr(member, "fget", None) or getattr(member, "func", None) or member
    )
    return (callable(inner) or isinstance(member, property)) and bool(inspect.getdoc(inner))


def _described(name: str, found: Any) -> str:
    inner = getattr(found, "__func__", None) or getattr(found, "fget", None) or getattr(found, "func", None) or found
    is_value = (
        isinstance(found, property)
        or hasattr(found, "func")
        or (inspect.isclass(found) and issubclass(found, Exception))
    )
    signature = "" if is_value else _signature(name, found if inspect.isclass(found) else inner)
    return f"{signature}\n{_as_markdown(inspect.getdoc(inner) or '')}\n"


def _signature(name: str, found: Any) -> str:
    try:
        taken = list(inspect.signature(found).parameters.values())
    except ValueError:
        return ""
    shown = [each.replace(annotation=inspect.Parameter.empty) for each in taken if each.name not in ("self", "cls")]
    written = str(inspect.Signature(shown))
    if len(written) + len(name) > 100:
        written = "(\n    " + ",\n    ".join(map(str, _marked(shown))) + ",\n)"
    return f"\n```\n{name}{written}\n```\n"


def _marked(parameters: list[inspect.Parameter]) -> list[str]:
    """The parameters, with the star behind which they go by their names."""
    named = [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    starred = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    texts = [str(each) for each in parameters]
    if named and not starred:
        texts.insert(parameters.index(named[0]), "*")
    return texts


def _as_markdown(docstring: str) -> str:
    """A docstring's examples as blocks, its ``names`` as code; angle brackets are no tags."""
    parts = []
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith(">>>"):
            parts.append(f"```pycon\n{paragraph}\n```")
        elif paragraph.startswith("    "):
            parts.append(f"```\n{inspect.cleandoc(paragraph)}\n```")
        else:
            parts.append(paragraph.replace("``", "`"))
    return "\n\n".join(parts)


# -- formats -------------------------------------------------------------------------------------------------------


def formats() -> str:
    """What is on disk, folder by folder."""
    plain = "All of them are plain: JSON, safetensors, numbers in a row, SQLite. Nothing in a folder is ever executed."
    text = f"# Formats on disk\n\n{MADE.format('modules that read and write them')} {plain}\n"
    for title, module in _FORMATS.items():
        told = inspect.getdoc(import_module(module)) or ""
        text += f"\n## {title}\n\n{_as_markdown(told.replace('::' + chr(10) * 2, ''))}\n"
    return text


# -- errors --------------------------------------------------------------------------------------------------------


def errors() -> str:
    """Every error by its name, and what it means."""
    text = (
        f"# Errors by name\n\n{MADE.format('classes')} Every error of ours is a `KothaError`: it says what was wrong, "
        "the value, and what to do. "
        "The command line shows it in one line and ends with 1, after a wrong argument with 2; "
        "a server answers with a code, a `type` and the same sentence (see [the server](../serving.md)).\n"
    )
    from kotha.errors import KothaError

    for module in _ERRORS:
        home = import_module(module)
        for name, found in vars(home).items():
            if inspect.isclass(found) and issubclass(found, KothaError) and found.__module__ == module:
                parent = found.__mro__[1].__name__
                text += f"\n## {name}\n\nOf `{module}`, a kind of `{parent}`.\n\n"
                text += _as_markdown(inspect.getdoc(found) or "") + "\n"
    return text


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    sys.exit(main())
