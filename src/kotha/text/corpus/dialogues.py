"""Conversations to learn from, out of a file of instruction pairs: fields are guessed where nobody names them.

A row is an instruction and its answer, by any of the names that such files have (``instruction``/``answer``,
``question``, ``prompt``; ``output``, ``response``, ``completion``; beside an instruction an ``input`` goes below it),
or ``messages``: a list of turns with ``role`` and ``content``, the last of them the assistant's. Rows that share a
``story``, ``group`` or ``conversation`` belong together and are never divided between learning and measuring.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kotha.errors import CorpusError, DataError
from kotha.i18n.message import Message
from kotha.text.corpus.columns import ColumnTable
from kotha.text.corpus.documents import (
    MAX_DOCUMENT_BYTES,
    OnProblem,
    field_names,
    open_source,
    read_records,
    text_bytes,
)
from kotha.text.corpus.problems import Complaints, Errors, Unreadable, empty_field
from kotha.text.corpus.records import json_lines
from kotha.text.corpus.sources import Source, list_sources
from kotha.text.tokenizer.chat import ROLES, Turn

MESSAGES = "messages"
_INSTRUCTIONS = ("instruction", "question", "prompt", "query", "প্রশ্ন")
_ANSWERS = ("answer", "output", "response", "completion", "উত্তর")
_MORE, _GROUPS = "input", ("story", "group", "conversation")

Dialogue = tuple[Turn, ...]


@dataclass(frozen=True)
class Dialogues(ColumnTable):
    """Conversations, each with what it belongs to, and the fields that they came from."""

    columns = ("turns", "groups")

    turns: tuple[Dialogue, ...]
    groups: tuple[str, ...]
    fields: tuple[str, ...] = (MESSAGES,)
    guessed: bool = False  # whether the fields were not named but found


def read_dialogues(
    path: str | Path,
    instruction: str | None = None,
    answer: str | None = None,
    *,
    group: str | None = None,
    errors: Errors = "stop",
    on_problem: OnProblem | None = None,
) -> Dialogues:
    """Read jsonl, csv, tsv or parquet; a field that is not named is guessed. A row without an answer is a problem.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.csv"
    ...     _ = file.write_text("question,answer\\nHow many?,Two.\\n")
    ...     found = read_dialogues(file)
    >>> found.fields, found.turns[0]
    (('question', 'answer'), (Turn(role='user', text='How many?'), Turn(role='assistant', text='Two.')))
    """
    [source] = list_sources([path])
    complaints = Complaints(source.name, errors, on_problem)
    fields: tuple[str, ...] = (MESSAGES,)
    if instruction is None and answer is None and _has_messages(source):
        rows = list(_read_messages(source, complaints, group))
    else:
        known = [] if source.format == "parquet" else field_names(path)
        fields = _pair_fields(path, known, instruction, answer)
        rows = list(_read_pairs(path, fields, group or _first(known, _GROUPS), complaints))
    if not rows:
        raise DataError(
            "{path} holds no conversation; give rows with an instruction and its answer, or {messages}",
            path=path,
            messages=MESSAGES,
        )
    turns = tuple(each for each, _ in rows)
    groups = tuple(name or f"row {place}" for place, (_, name) in enumerate(rows))
    return Dialogues(turns, groups, fields, guessed=instruction is None or answer is None)


def holds_dialogues(path: str | Path) -> bool:
    """Whether a file looks like conversations, and not like documents with a text each."""
    try:
        [source] = list_sources([path])
        if source.format not in ("jsonl", "csv", "tsv") or source.path == "-" or source.repository is not None:
            return False
        names = field_names(path)
        pair = _first(names, _INSTRUCTIONS) is not None and _first(names, _ANSWERS) is not None
        return "text" not in names and (pair or _has_messages(source))
    except (CorpusError, DataError, OSError, ValueError):
        return False


def _first(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


# -- instruction and answer -------------------------------------------------------------------------------------------


def _pair_fields(path: str | Path, names: list[str], instruction: str | None, answer: str | None) -> tuple[str, ...]:
    """The fields of an instruction, what may stand below it, and the answer."""
    if instruction is not None and answer is not None:
        return instruction, answer
    chosen = instruction or _first(names, _INSTRUCTIONS)
    reply = answer or _first(names, _ANSWERS)
    if chosen is None or reply is None:
        raise DataError(
            "{path} has {fields}, and none that is known as an instruction with its answer; name them with "
            "instruction and answer, or give {messages}",
            path=path,
            fields=names or Message("no fields"),
            messages=MESSAGES,
        )
    return (chosen, _MORE, reply) if chosen != _MORE and _MORE in names else (chosen, reply)


def _read_pairs(
    path: str | Path, fields: tuple[str, ...], group: str | None, complaints: Complaints
) -> Iterator[tuple[Dialogue, str]]:
    wanted = (*fields, group) if group is not None else fields
    for _, (values, line) in read_records([path], wanted, errors=complaints.errors, on_problem=complaints.note):
        *asked, answer = (value.strip() for value in values[: len(fields)])
        question = "\n".join(filter(None, asked))
        empty = fields[0] if not question else fields[-1] if not answer else None
        if empty is not None:
            complaints.report(empty_field(empty), line=line)
            continue
        yield (Turn("user", question), Turn("assistant", answer)), values[-1] if group is not None else ""


# -- messages ---------------------------------------------------------------------------------------------------------


def _json_rows(source: Source, complaints: Complaints) -> Iterator[tuple[Any, int]]:
    try:
        with open_source(source) as file:
            for value, line, _ in json_lines(text_bytes(file, source), MAX_DOCUMENT_BYTES, complaints):
                yield value, line
    except Unreadable as error:
        complaints.report_unreadable(error)


def _has_messages(source: Source) -> bool:
    if source.format != "jsonl" or source.path == "-" or source.repository is not None:
        return False
    first, _ = next(_json_rows(source, Complaints(source.name, "skip")), ({}, 0))
    return isinstance(first, dict) and isinstance(first.get(MESSAGES), list)


def _read_messages(source: Source, complaints: Complaints, group: str | None) -> Iterator[tuple[Dialogue, str]]:
    for value, line in _json_rows(source, complaints):
        try:
            turns = _turns(value)
        except Unreadable as error:
            complaints.report(error.reason, line=line)
            continue
        name = next((value[each] for each in ([group] if group else _GROUPS) if each in value), "")
        if (sound := complaints.mend(tuple(turn.text for turn in turns), line=line, escapes=True)) is not None:
            said = tuple(Turn(turn.role, text) for turn, text in zip(turns, sound, strict=True))
            yield said, name if isinstance(name, str) else json.dumps(name)


def _turns(value: Any) -> Dialogue:
    """The turns of a row; an Unreadable says what is wrong with them."""
    messages = value.get(MESSAGES) if isinstance(value, dict) else None
    if not isinstance(messages, list) or not messages:
        raise Unreadable(Message("expected {messages}, a list of turns", messages=MESSAGES))
    turns = []
    for message in messages:
        role, text = (message.get(name) if isinstance(message, dict) else None for name in ("role", "content"))
        if role not in ROLES or not isinstance(text, str) or not text.strip():
            raise Unreadable(Message("a turn needs a role out of {roles}, and content that is a text", roles=ROLES))
        turns.append(Turn(role, text.strip()))
    if turns[-1].role != "assistant" or len(turns) < 2:
        raise Unreadable(Message("the last turn must be the assistant's answer to another"))
    return tuple(turns)
