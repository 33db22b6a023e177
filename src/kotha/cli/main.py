"""``kotha``: the one entry point.

Commands are loaded when they are called, so that help is quick and imports nothing heavy.
"""

import errno
import inspect
import io
import json
import os
import sys
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from cyclopts import App, CycloptsError, MissingArgumentError, UnusedCliTokensError

import kotha
from kotha.cli.controls import visible_controls
from kotha.cli.memory import bounded_imports
from kotha.cli.naming import in_flags
from kotha.cli.spoken import said, speaking
from kotha.cli.stopping import INTERRUPTED, StoppedError
from kotha.errors import CorpusError, KothaError, UsageError, is_short_of_memory, nearest
from kotha.i18n.catalogue import to_json

OK, FAILED, MISUSED = 0, 1, 2
_NO_MEMORY = "there is not enough memory for this; take less at a time, or a smaller model"
_UNREAD = "a file could not be read, or the output not be written"

# Name of the command, where its function or group is, and what help says of it.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("kotha.cli.demo:demo", "Stories, tokenizer, a model that learns and writes: all in one command."),
    "corpus": ("kotha.cli.corpus:app", "Write the built-in stories; look into a corpus."),
    "tokenizer": ("kotha.cli.tokenizer:app", "Train, compare, view and import tokenizers."),
    "prepare": ("kotha.cli.prepare:prepare", "Turn documents into token shards for training."),
    "presets": ("kotha.cli.presets:presets", "List the presets: their sizes, and what each is for."),
    "plan": ("kotha.cli.plan:plan", "Parameters, work, memory and time of a training, or a design for a budget."),
    "train": ("kotha.cli.train:train", "Train a model on token shards; resume where it stopped."),
    "sweep": ("kotha.cli.sweep:sweep", "Search settings by many short trainings, on one machine or several."),
    "adapt": ("kotha.cli.adapt:app", "Put a trained model to a use: tell classes of texts apart, answer."),
    "classify": ("kotha.cli.classify:classify", "Say of which class a text is, and why."),
    "evaluate": ("kotha.cli.evaluate:evaluate", "Measure a model on unseen text, beside what counting reaches."),
    "doctor": ("kotha.cli.doctor:doctor", "Say in plain words what a training curve shows, and what to try."),
    "compare": ("kotha.cli.compare:compare", "Set several models side by side, fairly across tokenizers."),
    "judge": ("kotha.cli.judge:judge", "Let people choose blindly which model writes better."),
    "generate": ("kotha.cli.generate:generate", "Let a model go on with a text."),
    "chat": ("kotha.cli.chat:chat", "Talk with a model, line by line."),
    "fill": ("kotha.cli.fill:fill", "Fill the gaps of a text, or judge whether a sentence follows another (BERT)."),
    "translate": ("kotha.cli.translate:translate", "Translate a text, or a file line by line (Seq2Seq)."),
    "index": ("kotha.cli.index:index", "Index documents, to be asked: txt, md, html, pdf, jsonl, csv, tsv, parquet."),
    "ask": ("kotha.cli.ask:ask", "Ask an index: passages that fit, and an answer with citations."),
    "card": ("kotha.cli.card:card", "Show a model's card: what it has read, its licence, what it is not for."),
    "open": ("kotha.server.command:open_studio", "Open the studio in the browser: write, look inside, train, compare."),
    "serve": ("kotha.server.command:serve", "Serve models to programs, OpenAI's clients among them, and the studio."),
    "bench": ("kotha.cli.bench:bench", "Measure this machine beside Hugging Face's implementation."),
    "inside": ("kotha.cli.inside.group:app", "Look into a model: every number on paper, every head in view."),
    "lessons": ("kotha.cli.lessons:app", "The course's questions, answered by small models trained on the spot."),
    "export": ("kotha.cli.export:export", "Take a model to Hugging Face, llama.cpp or ONNX, with proof."),
    "import": ("kotha.cli.export:import_", "Open a model from Hugging Face here, with proof."),
}


def build() -> App:
    """The command line, with nothing behind it loaded yet."""
    consoles: dict[str, Any] = {}
    if sys.stdout.isatty() or sys.stderr.isatty():  # cyclopts has colours of its own
        from kotha.cli.terminal import notes, results

        consoles = {"console": results(), "error_console": notes()}
    app = App(
        name="kotha",
        help="Small language models from raw text, Bangla first: every step open, computable by hand, and checked.",
        help_epilogue="Start with `kotha demo`. Every command has its own --help.",
        version=kotha.__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
        **consoles,
    )
    for order, (name, (target, about)) in enumerate(COMMANDS.items()):
        app.command(target, name=name, help=about, sort_key=order)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run a command; a user's mistake is one line on stderr and an exit code, never a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    _speak_utf8()
    with visible_controls(), speaking(words), bounded_imports():
        try:
            _run(words)
            sys.stdout.flush()
        except CycloptsError as error:
            return _fail(_misuse(error), MISUSED)
        except StoppedError as error:
            return _fail(str(error), error.code)
        except KothaError as error:
            if is_short_of_memory(error):
                return _fail(_NO_MEMORY, FAILED)
            text = said(error) if error.values else in_flags(str(error))
            code = MISUSED if isinstance(error, UsageError) else FAILED
            return _fail(text + _ways_on(error, words), code, error)
        except KeyboardInterrupt:
            return _fail("stopped; nothing half-written was left behind", INTERRUPTED)
        except BrokenPipeError:  # the reader of our output has gone, as in `kotha … | head`
            _drop_output()
            return FAILED
        except OSError as error:
            _drop_output()
            if is_short_of_memory(error):
                return _fail(_NO_MEMORY, FAILED)
            where = error.filename or (_UNREAD if error.errno == errno.EIO else "the output could not be written")
            return _fail(f"{where}: {error.strerror or error}", FAILED)
        except Exception as error:
            if not is_short_of_memory(error):
                raise
            return _fail(_NO_MEMORY, FAILED)
    return OK


def _speak_utf8() -> None:
    """Bangla comes out whole, whatever an old locale says of the output."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(encoding="utf-8")


def _run(words: list[str]) -> None:
    for word in words:
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise UsageError(f"the argument {word!a} is not UTF-8")
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        raise UsageError(f"there is no command {words[0]!r}{nearest(words[0], COMMANDS)}")
    build()(words, exit_on_error=False, print_error=False, result_action="return_value")


def _misuse(error: CycloptsError) -> str:
    """What was typed wrongly, in one line: a word that does not exist before one that is missing for its sake."""
    error.verbose = False
    if isinstance(error, UnusedCliTokensError):
        return f"{' '.join(error.unused_tokens or [])} is too much; a text of several words needs quotes around it"
    if not isinstance(error, MissingArgumentError) or error.argument is None:
        return str(error)[:1].lower() + str(error)[1:]
    name, command = error.argument.name, " ".join(["kotha", *(error.command_chain or ())])
    words, known = error.root_input_tokens or [], inspect.signature(error.target or _misuse).parameters
    grouped = [each.name for group in known.values() if is_dataclass(group.default) for each in fields(group.default)]
    options = [f"--{each.strip('_').replace('_', '-')}" for each in (*known, *grouped)]
    typed = [word.split("=")[0].replace("--no-", "--") for word in words if word.startswith("--")]
    unknown = next((word for word in typed if word not in options), None)
    if unknown is not None and error.target is not None:
        return f"there is no option {unknown}{nearest(unknown, options)}"
    if name in words:
        return f"{name} needs a value; see {command} --help"
    return f"{command.removeprefix('kotha ')} needs {name}; see {command} --help"


def _fail(line: str, code: int, error: KothaError | None = None) -> int:
    if place := os.environ.get("KOTHA_ERROR_FILE"):  # of who began this command, to tell it in another language
        with suppress(OSError):
            Path(place).write_text(json.dumps(to_json(error or line)), encoding="utf-8")
    with suppress(OSError):  # stderr may be on the full disk too
        print(f"kotha: {said(line)}", file=sys.stderr, flush=True)
    return code


def _ways_on(error: KothaError, words: list[str]) -> str:
    """How ``--errors`` would go on, for a command that has it."""
    ways = error.ways if isinstance(error, CorpusError) else ()
    if not ways:
        return ""
    command, *_ = build().parse_args(words, exit_on_error=False, print_error=False)
    if "errors" not in inspect.signature(command).parameters:
        return ""
    said = {"skip": ", or leave it out with --errors skip", "replace": ", or mend it with --errors replace"}
    return "".join(said[way] for way in ways)


def _drop_output() -> None:
    """What is still waiting to be written cannot be; Python would try once more at its end, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
