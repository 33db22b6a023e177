"""Write docs/reference: all commands, public names, formats and errors, from the help texts and docstrings.

``make reference`` writes the pages; ``--check`` only reports whether they are up to date. The pages are not edited by
hand. The entry for a command is its help text, with the lines in docs/reference/tour.md that use it and their output; a
test runs the tour and compares the output (``make outputs`` updates it). The Python examples come from the docstrings
and are also run as tests. A format is described by the docstring of the module that reads and writes it.
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
_COLUMNS = "100"  # the terminal width for help texts
# The members to document: the public methods of a class, including inherited ones.
_CLASSES_IN_FULL = ("Index", "LanguageModel", "Run", "Tokenizer")
# Modules whose docstrings describe file formats, by the name of the format.
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
# The modules with the errors that can occur in server responses.
_ERRORS = (
    "kotha.errors",
    "kotha.server.errors",
    "kotha.server.jobs.table",
)
# Translations of their docstrings, by paragraph.
_IN_BANGLA = {
    "An error that the user can fix, as a message: an English template and its values.": (
        "যে ত্রুটি নিজে ঠিক করা যায়। বার্তাটি থাকে ইংরেজি ছাঁচ আর তাতে বসানোর মান হিসেবে।"
    ),
    "A template without values is literal, braces included (see ``kotha.i18n.message``).": (
        "মান না থাকলে ছাঁচটি যেমন আছে তেমনই দেখানো হয়, বন্ধনীসহ (`kotha.i18n.message` দেখুন)।"
    ),
    "A wrong argument or a wrong combination of arguments (exit code 2).": (
        "আর্গুমেন্ট ভুল, অথবা যে আর্গুমেন্টগুলো দেওয়া হয়েছে সেগুলো একসঙ্গে চলে না। কমান্ড শেষ হয় ২ দিয়ে।"
    ),
    "A setting with an invalid value.": "কোনো সেটিংসে এমন মান আছে, যা চলবে না।",
    "An input document or file that cannot be read; a reader can skip it if it is ``skippable``.": (
        "কোনো ডকুমেন্ট বা ফাইল পড়া যায়নি। `skippable` হলে সেটি বাদ দিয়ে বাকিগুলো পড়া যায়।"
    ),
    "A tokenizer that cannot be trained, read or used.": "টোকেনাইজার শেখানো, পড়া বা ব্যবহার করা যায়নি।",
    "A data folder that is broken, incomplete or of the wrong kind.": "ডেটার ফোল্ডার ভাঙা, অসম্পূর্ণ বা অন্য ধরনের।",
    "A checkpoint or run folder that cannot be used.": "চেকপয়েন্ট বা রানের ফোল্ডার ব্যবহার করা যায়নি।",
    "A training run that cannot continue.": "প্রশিক্ষণ আর এগোতে পারে না।",
    "A rejected request, with its HTTP status.": "সার্ভার যে অনুরোধ ফিরিয়ে দিয়েছে, সঙ্গে HTTP-এর স্ট্যাটাস।",
    "No job or file has this id.": "এই নম্বরে কোনো কাজ বা ফাইল নেই।",
    "The request conflicts with the state of the jobs.": "কাজগুলো এখন যে অবস্থায়, তাতে অনুরোধটি রাখা যায় না।",
}


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
    """Return the pages by name."""
    made = {"commands.md": commands(), "python.md": python(), "formats.md": formats()}
    return made | {"errors.md": errors(), "errors.bn.md": errors_bn()}


# -- commands ------------------------------------------------------------------------------------------------------


def commands() -> str:
    """Return the page of commands: the help text of each, and the lines in the tour that use it with their output."""
    from scripts.book.examples import examples

    from kotha.cli.main import COMMANDS

    shown = examples((ROOT / "docs" / "reference" / "tour.md").read_text(encoding="utf-8"))
    text = f"# Every command\n\n{MADE.format('help of the commands')} "
    text += (
        "The examples are those of [the tour](tour.md), in another order; a test runs them and compares the outputs. "
    )
    text += "`…` stands for omitted text.\n"
    for name in COMMANDS:
        for words in ([name], *([name, part] for part in _parts(name))):
            text += f"\n{'#' * (1 + len(words))} kotha {' '.join(words)}\n\n```\n{told(words)}\n```\n"
            for each in shown:
                if each.command.split()[1 : 1 + len(words)] == words and (len(words) > 1 or not _parts(name)):
                    text += f"\n```console\n$ {each.command}\n{each.shown}\n```\n"
    return text


def _parts(name: str) -> list[str]:
    """Return the commands in a group, as listed in its help text."""
    group = told([name]).partition("\nCommands:\n")[2].partition("\n\n")[0]
    return [found for found in re.findall(r"^  ([a-z][\w-]*)\s", group, re.MULTILINE) if not found.startswith("-")]


def told(words: list[str]) -> str:
    """Return the help text of a command without frames."""
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
    """Return the page of public names, with their parameters and docstrings."""
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
    """Return the parameters, with the star that precedes keyword-only ones."""
    named = [each for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    starred = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
    texts = [str(each) for each in parameters]
    if named and not starred:
        texts.insert(parameters.index(named[0]), "*")
    return texts


def _as_markdown(docstring: str) -> str:
    """Convert a docstring to Markdown: examples as blocks, ``names`` as code, and escaped angle brackets."""
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
    """Return the page of file formats, by folder."""
    plain = "All of them are plain: JSON, safetensors, numbers in a row, SQLite. Nothing in a folder is ever executed."
    text = f"# Formats on disk\n\n{MADE.format('modules that read and write them')} {plain}\n"
    for title, module in _FORMATS.items():
        told = inspect.getdoc(import_module(module)) or ""
        text += f"\n## {title}\n\n{_as_markdown(told.replace('::' + chr(10) * 2, ''))}\n"
    return text


# -- errors --------------------------------------------------------------------------------------------------------


def errors() -> str:
    """Return the page of errors, with the name and the meaning of each."""
    text = (
        f"# Errors by name\n\n[বাংলায়](errors.bn.md)\n\n{MADE.format('classes')} "
        "Every error of ours is a `KothaError`: it says what was wrong, the value, and what to do. "
        "The command line shows it in one line and ends with 1, after a wrong argument with 2; "
        "a server answers with a code, a `type` and the same sentence (see [the server](../serving.md)).\n"
    )
    for name, found in _kinds():
        text += f"\n## {name}\n\nOf `{found.__module__}`, a kind of `{found.__mro__[1].__name__}`.\n\n"
        text += _as_markdown(inspect.getdoc(found) or "") + "\n"
    return text


def errors_bn() -> str:
    """Return the page of errors in Bangla, with example messages from the program's catalogue."""
    import kotha
    from kotha.i18n.catalogue import translate

    text = (
        "# ত্রুটির নাম\n\n[In English](errors.md)\n\n"
        "`make reference` এই পাতা বানায়, তাই এটি না বদলে `scripts/reference.py` বদলান। "
        "Kotha-এর নিজের প্রতিটি ত্রুটি একটি `KothaError`: কী ভুল, মানটি কত আর কী করতে হবে, তা বলে। "
        "কমান্ডে ত্রুটি দেখায় এক লাইনে, তারপর কমান্ড শেষ হয় 1 দিয়ে, আর্গুমেন্ট ভুল হলে 2 দিয়ে। "
        "`KOTHA_LANGUAGE=bn` অথবা `--language bn` দিলে লাইনটি বাংলায় আসে। "
        "সার্ভার দেয় একটি স্ট্যাটাস, একটি `type` আর একই বার্তা ([সার্ভার](../serving.bn.md))।\n"
    )
    for name, found in _kinds():
        text += f"\n## {name}\n\n`{found.__module__}` মডিউলে, একধরনের `{found.__mro__[1].__name__}`।\n"
        for paragraph in (inspect.getdoc(found) or "").split("\n\n"):
            is_code = paragraph.startswith(">>>")
            text += f"\n{_as_markdown(paragraph) if is_code else _IN_BANGLA[paragraph]}\n"
        if found is kotha.KothaError:
            try:
                kotha.load("nowhere")
            except kotha.KothaError as error:
                text += f"\nবাংলায় এই বার্তা: “{translate(error, 'bn')}”\n"
    return text


def _kinds() -> Iterator[tuple[str, type[Exception]]]:
    from kotha.errors import KothaError

    for module in _ERRORS:
        for name, found in vars(import_module(module)).items():
            if inspect.isclass(found) and issubclass(found, KothaError) and found.__module__ == module:
                yield name, found


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    sys.exit(main())
