"""``kotha chat``: chat with a model in the terminal."""

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
    """Chat with a model, one line per turn.

    /help shows the commands; Ctrl-D or /exit quits. A model answers only if it was trained with `kotha finetune
    instruct`; otherwise it continues the text. --json prints one line per turn.

    Example: `kotha chat assistant`

    Args:
        plain: Continue each line as plain text instead of answering it.
    """
    from kotha.api.engine import Conversation, open_engine

    writing.settings()  # report wrong settings before the model is loaded
    conversation = Conversation(open_engine(run, 1, writing.weights), plain)
    if conversation.remark is not None:
        log(conversation.remark)
    for turn, line in enumerate(_lines(as_json)):
        if line.strip() == _NEW:
            conversation.forget()
            continue
        request = conversation.ask(line, writing.tokens, writing.settings(turn), writing.stop)
        result = _answer(conversation, request, stream=not as_json)
        conversation.remember(result.text)
        if as_json:
            row = {"user": line, "text": result.text, "tokens": result.tokens, "stopped": result.stopped}
            row |= {
                "tokens_per_second": round(result.tokens_per_second, 2),
                "instruction_tuned": conversation.instruction_tuned,
            }
            from kotha.cli.terminal import print_json  # imports rich, which plain text does not need

            print_json(row, indent=None)


def _lines(as_json: bool) -> Iterator[str]:
    """Yield lines from the user until the input ends or the user quits."""
    interactive = sys.stdin.isatty() and not as_json
    if interactive:
        log(_ADVICE)
    while True:
        try:
            line = read_line(_PROMPT if interactive else "")
        except KeyboardInterrupt:  # Ctrl-C at the prompt discards the current line
            print(file=sys.stderr)
            log(Message("Ctrl-D or /exit quits"))
            continue
        if line is None or line.strip() in _LEAVE:
            return
        if line.strip() == _HELP:
            log(_ADVICE)
        elif line.strip():
            yield line


def _answer(conversation: Any, request: Any, stream: bool) -> Any:
    """Generate an answer; Ctrl-C stops it and keeps the text so far."""
    engine, result = conversation.engine, None
    number = engine.submit(request)
    while result is None:
        try:
            with raised():
                for event in engine.step():
                    result = event.result or result
                    if stream:
                        print(event.text, end="", flush=True)
        except KeyboardInterrupt:
            engine.cancel(number)
    if stream:
        print(flush=True)
    return result
