"""``kotha``: the one entry point.

Commands are loaded when they are called, so that help is quick and imports nothing heavy.
"""

import os
import sys

from cyclopts import App, CycloptsError

import kotha
from kotha.errors import KothaError, UsageError, nearest

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130

# Name of the command, where its function or group is, and what help says of it.
COMMANDS: dict[str, tuple[str, str]] = {
    "demo": ("kotha.cli.demo:demo", "Stories, tokenizer, a model that learns and writes: all in one command."),
    "corpus": ("kotha.cli.corpus:app", "Write the built-in stories; look into a corpus."),
    "tokenizer": ("kotha.cli.tokenizer:app", "Train, compare, view and import tokenizers."),
    "prepare": ("kotha.cli.prepare:prepare", "Turn documents into token shards for training."),
    "plan": ("kotha.cli.plan:plan", "Parameters, work, memory and time of a training, or a design for a budget."),
    "train": ("kotha.cli.train:train", "Train a model on token shards; resume where it stopped."),
    "evaluate": ("kotha.cli.evaluate:evaluate", "Measure a model on unseen text, beside what counting reaches."),
    "doctor": ("kotha.cli.doctor:doctor", "Say in plain words what a training curve shows, and what to try."),
    "compare": ("kotha.cli.compare:compare", "Set several models side by side, fairly across tokenizers."),
    "generate": ("kotha.cli.generate:generate", "Let a model go on with a text."),
    "chat": ("kotha.cli.chat:chat", "Talk with a model, line by line."),
    "inside": ("kotha.cli.inside.group:app", "Look into a model: every number on paper, every head in view."),
    "export": ("kotha.cli.export:export", "Take a model to Hugging Face, llama.cpp or ONNX, with proof."),
    "import": ("kotha.cli.import_:import_", "Open a model from Hugging Face here, with proof."),
}


def build() -> App:
    """The command line, with nothing behind it loaded yet."""
    app = App(
        name="kotha",
        help="Small language models from raw text, Bangla first: every step open, computable by hand, and checked.",
        help_epilogue="Start with `kotha demo`. Every command has its own --help.",
        version=kotha.__version__,
        help_format="plaintext",
        suppress_keyboard_interrupt=False,
    )
    for order, (name, (target, about)) in enumerate(COMMANDS.items()):
        app.command(target, name=name, help=about, sort_key=order)
    return app


def main(arguments: list[str] | None = None) -> int:
    """Run a command; a user's mistake is one line on stderr and an exit code, never a traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        for word in words:
            if any("\ud800" <= character <= "\udfff" for character in word):
                raise UsageError(f"the argument {word!a} is not UTF-8")
        if words and not words[0].startswith("-") and words[0] not in COMMANDS:
            raise UsageError(f"there is no command {words[0]!r}{nearest(words[0], COMMANDS)}")
        build()(words, exit_on_error=False, result_action="return_value")
    except CycloptsError:  # already explained by cyclopts, with the nearest name
        return MISUSED
    except KothaError as error:
        print(f"kotha: {error}", file=sys.stderr)
        return MISUSED if isinstance(error, UsageError) else FAILED
    except KeyboardInterrupt:
        print("kotha: stopped; nothing half-written was left behind", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output has gone, as in `kotha … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return OK
