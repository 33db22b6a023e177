"""Read conversations for instruction tuning from a file; fields that are not named are guessed.

A row has an instruction (``instruction``, ``question`` or ``prompt``) and its answer (``answer``, ``output``,
``response`` or ``completion``); an ``input`` is appended to the instruction. Alternatively, a row has ``messages``: a
list of turns with ``role`` and ``content`` whose last turn is the assistant's. Rows with the same ``story``, ``group``
or ``conversation`` belong together and are never split between training and evaluation.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kotha.errors import CorpusError, DataError
from kotha.i18n.message import Message
from kotha.text.choices import Errors
from kotha.text.corpus.columns import ColumnTable
from kotha.text.corpus.documents import read_first, read_records
from kotha.text.corpus.problems import OnProblem, ProblemReporter, Unreadable, empty_field
from kotha.text.corpus.sources import list_sources
from kotha.text.tokenizer.chat import ROLES, Turn

MESSAGES = "messages"
_INSTRUCTIONS = ("instruction", "question", "prompt", "query", "প্রশ্ন")
_ANSWERS = ("answer", "output", "response", "completion", "উত্তর")
_MORE, _GROUPS = "input", ("story", "group", "conversation")

Dialogue = tuple[Turn, ...]


@dataclass(frozen=True)
class Dialogues(ColumnTable):
    """Conversations with their groups, and the fields they were read from."""

    columns = ("turns", "groups")

    turns: tuple[Dialogue, ...]
    groups: tuple[str, ...]
    fields: tuple[str, ...] = (MESSAGES,)
    guessed: bool = False  # whether a field was guessed


def read_dialogues(
    path: str | Path,
    instruction: str | None = None,
    answer: str | None = None,
    *,
    group: str | None = None,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> Dialogues:
    """Read conversations from jsonl, csv, tsv or parquet; fields that are not named are guessed.

    A row without an instruction or an answer raises an error, or is skipped if ``errors="skip"``.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text("question,answer\\nHow many?,Two.\\n")
    ...     found = read_dialogues(file)
    >>> found.fields, found.turns[0]
    (('question', 'answer'), (Turn(role='user', text='How many?'), Turn(role='assistant', text='Two.')))
    """
    [source] = list_sources([path])
    first = read_first(source) if source.format != "parquet" else {}
    group = group or _first(first, _GROUPS)
    if instruction is None and answer is None and isinstance(first.get(MESSAGES), list):
        fields: tuple[str, ...] = (MESSAGES,)
    else:
        fields = _pair_fields(path, list(first), instruction, answer)
    turns: list[Dialogue] = []
    groups: list[str] = []
    wanted = (*fields, group or fields[-1])
    for name, (values, line) in read_records([source], wanted, errors=errors, on_problem=on_problem):
        try:
            turns.append(_messages(values[0]) if fields == (MESSAGES,) else _pair(fields, values))
            groups.append(values[-1] if group else f"row {len(groups)}")
        except Unreadable as error:
            ProblemReporter(name, errors, on_problem).report(error.reason, line=line)
    if not turns:
        raise DataError(
            "{path} contains no conversations; use rows with an instruction and its answer, or {messages}",
            path=path,
            messages=MESSAGES,
        )
    return Dialogues(tuple(turns), tuple(groups), fields, guessed=instruction is None or answer is None)


def holds_dialogues(path: str | Path) -> bool:
    """Return whether a file looks like conversations rather than documents."""
    try:
        [source] = list_sources([path])
        if source.format not in ("jsonl", "csv", "tsv") or source.path == "-" or source.repository is not None:
            return False
        first = read_first(source)
        pair = _first(first, _INSTRUCTIONS) is not None and _first(first, _ANSWERS) is not None
        return "text" not in first and (pair or isinstance(first.get(MESSAGES), list))
    except (CorpusError, DataError, OSError, ValueError):
        return False


def _first(names: Collection[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


def _pair_fields(path: str | Path, names: list[str], instruction: str | None, answer: str | None) -> tuple[str, ...]:
    """Return the names of the fields with the instruction, its optional input, and the answer."""
    if instruction is not None and answer is not None:
        return instruction, answer
    chosen = instruction or _first(names, _INSTRUCTIONS)
    reply = answer or _first(names, _ANSWERS)
    if not names:
        template = "{path} has no fields; use a csv, tsv or jsonl file with an instruction and its answer in each row"
        raise DataError(template, path=path)
    if chosen is None or reply is None:
        raise DataError(
            "{path} has {fields}, but none of the usual field names of an instruction and its answer; name the "
            "fields with instruction and answer, or use {messages}",
            path=path,
            fields=names,
            messages=MESSAGES,
        )
    return (chosen, _MORE, reply) if chosen != _MORE and _MORE in names else (chosen, reply)


def _pair(fields: tuple[str, ...], values: tuple[str, ...]) -> Dialogue:
    """Return an instruction and its answer as turns; raise Unreadable if one is empty."""
    *parts, answer = (value.strip() for value in values[: len(fields)])
    question = "\n".join(filter(None, parts))
    if not question or not answer:
        raise Unreadable(empty_field(fields[-1] if question else fields[0]))
    return Turn("user", question), Turn("assistant", answer)


def _messages(text: str) -> Dialogue:
    """Return the turns of a JSON conversation; raise Unreadable if it is invalid."""
    turns = []
    for message in json.loads(text) if text.startswith("[") else ():
        role, content = (message.get(name) if isinstance(message, dict) else None for name in ("role", "content"))
        if role not in ROLES or not isinstance(content, str) or not content.strip() or "\0" in content:
            raise Unreadable(Message("a turn needs a role (one of {roles}) and non-empty text as content", roles=ROLES))
        turns.append(Turn(role, content.strip()))
    if len(turns) < 2 or turns[-1].role != "assistant":
        raise Unreadable(
            Message(
                "expected {messages}, a list of at least two turns that ends with an assistant turn", messages=MESSAGES
            )
        )
    return tuple(turns)
