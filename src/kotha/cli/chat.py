"""``kotha chat``: talk with a model in the terminal."""

import sys
from collections.abc import Iterator
from typing import Any

from kotha.cli.interrupts import raised, read_line
from kotha.cli.language import log
from kotha.cli.options import BOX, AsJson, Run, Writing
from kotha.i18n.message import Message

_PROMPT = "› "
_LEAVE, _NEW, _HELP = ("/exit", "/quit"), "/new", "/help"
_ADVICE = Message(
    "type a line to get an answer; /new starts a new conversation, Ctrl-C stops an answer, Ctrl-D or /exit quits"
)


def chat(
    run: Run = BOX,
    /,
    *,
    plain: bool = False,
    writing: Writing = Writing(),  # noqa: B008 - frozen
    as_json: AsJson = False,
) -> None:
    """Talk with a model: a line, an answer. /help says how; Ctrl-D or /exit ends the talk; --json: a line a turn.

    Args:
        plain: Continue the text instead of taking turns.
    """
    from kotha.api.model import Conversation

    writing.settings()  # a mistake is answered before the model is read
    talk = Conversation(writing.open_engine(run), plain)
    if talk.remark is not None:
        log(talk.remark)
    for turn, line in enumerate(_lines(as_json)):
        if line.strip() == _NEW:
            talk.forget()
            continue
        request = talk.ask(line, writing.tokens, writing.settings(turn), writing.stop)
        result = _answer(talk, request, shows=not as_json)
        talk.remember(result.text)
        if as_json:
            row = {"user": line, "text": result.text, "tokens": result.tokens, "stopped": result.stopped}
            row |= {"tokens_per_second": round(result.tokens_per_second, 2), "taught": talk.taught}
            from kotha.cli.terminal import print_json  # with rich, which plain text does not need

            print_json(row, indent=None)


def _lines(as_json: bool) -> Iterator[str]:
    """What the user writes, line by line, until there is no more or they leave."""
    asks = sys.stdin.isatty() and not as_json
    if asks:
        log(_ADVICE)
    while True:
        try:
            line = read_line(_PROMPT if asks else "")
        except KeyboardInterrupt:  # at the prompt: a line begun is dropped
            print(file=sys.stderr)
            log(Message("Ctrl-D or /exit leaves"))
            continue
        if line is None or line.strip() in _LEAVE:
            return
        if line.strip() == _HELP:
            log(_ADVICE)
        elif line.strip():
            yield line


def _answer(talk: Any, request: Any, shows: bool) -> Any:
    """Let the model answer; Ctrl-C ends the answer, and what was said remains."""
    engine, result = talk.engine, None
    number = engine.submit(request)
    while result is None:
        try:
            with raised():
                for event in engine.step():
                    result = event.result or result
                    if shows:
                        print(event.text, end="", flush=True)
        except KeyboardInterrupt:
            engine.cancel(number)
    if shows:
        print(flush=True)
    return result
