"""Records of one or more fields out of text files: txt, jsonl, csv and tsv.

Every reader has the same shape: bytes and the wanted fields in, ``(values, position)`` out, one value a field, the
position being the line on which the record starts. All of them hold one record at a time.

- **txt**: one or more blank lines end a document. A document over the limit is cut at a line end, or, within one
  endless line, at a character.
- **jsonl**: an object with the fields on each line, or, where one field is wanted, a string. Beside another field,
  a whole number, a boolean or a list is taken as it is written: labels are often numbers.
- **csv**: RFC 4180 with a header row: quoted cells may hold commas, line ends and doubled quotes.
- **tsv**: as registered with IANA: a header row, tabs between cells, and a quote is a quote. Parallel corpora are full
  of cells like ``"Who is it?" "It's me."``, which the rules of csv would misread.

Fields that are all digits are columns by number, from 1, of a csv or tsv file without a header row.
"""

import codecs
import csv
import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from kotha.i18n.message import Message
from kotha.text.corpus.problems import Complaints, Unreadable, missing
from kotha.text.corpus.streams import TextBytes

Record = tuple[tuple[str, ...], int]
Row = tuple[list[str], int]
Reader = Callable[[TextBytes, tuple[str, ...], int, Complaints], Iterator[Record]]


def read_txt(stream: TextBytes, fields: tuple[str, ...], limit: int, complaints: Complaints) -> Iterator[Record]:
    """Paragraphs of a text file, parted by blank lines."""
    for data, line, offset in _paragraphs(stream, limit):
        text = complaints.decode(data, line, offset)
        if text is not None and (sound := complaints.mend((text,), line=line)) is not None:
            yield (sound[0].replace("\r\n", "\n").rstrip("\r\n"),), line


def _paragraphs(stream: TextBytes, limit: int) -> Iterator[tuple[bytes, int, int]]:
    """Bytes, first line and byte offset of each run of lines that are not blank, none longer than the limit."""
    parts: list[bytes] = []
    size = first = start = 0
    carry, number, offset, at_line_start = b"", 1, stream.offset, True
    while piece := carry + stream.file.readline(limit - len(carry)):
        carry = b""
        if len(piece) >= limit and not piece.endswith(b"\n") and (cut := _unfinished(piece)):
            piece, carry = piece[:-cut], piece[-cut:]
        blank = at_line_start and _is_blank(piece)
        if parts and (blank or size + len(piece) > limit):
            yield b"".join(parts), first, start
            parts, size = [], 0
        if not blank:
            if not parts:
                first, start = number, offset
            parts.append(piece)
            size += len(piece)
        offset += len(piece)
        at_line_start = piece.endswith(b"\n")
        number += at_line_start
    if parts:
        yield b"".join(parts), first, start


def _is_blank(line: bytes) -> bool:
    """Whether a line is only white space; a short one may hold Unicode's, such as a no-break space."""
    return line.isspace() or (len(line) <= 16 and line.decode("utf-8", "replace").isspace())


def _unfinished(data: bytes) -> int:
    """How many bytes at the end start a UTF-8 character without ending it.

    >>> _unfinished("ক".encode()[:2]), _unfinished("ক".encode())
    (2, 0)
    """
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data[-3:])
    return len(decoder.getstate()[0])


def read_jsonl(stream: TextBytes, fields: tuple[str, ...], limit: int, complaints: Complaints) -> Iterator[Record]:
    """One JSON object, or string, on each line."""
    for value, line, text in json_lines(stream, limit, complaints):
        try:
            values = _pick(value, fields)
        except Unreadable as error:  # a missing field
            complaints.report(error.reason, line=line)
        else:
            if (sound := complaints.mend(values, line=line, escapes="\\u" in text)) is not None:
                yield sound, line


def _lines(stream: TextBytes, limit: int, complaints: Complaints) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not blank."""
    for line, offset, data in stream.lines(limit):
        if data is None:
            reason = Message("the line is longer than {limit:,} bytes", limit=limit)
            complaints.report(reason, line=line, byte_offset=offset)
        elif data.strip(b" \r\n") and (text := complaints.decode(data, line, offset)) is not None:
            yield line, text


def json_lines(stream: TextBytes, limit: int, complaints: Complaints) -> Iterator[tuple[Any, int, str]]:
    """What each line holds, the line's number, and the line."""
    for line, text in _lines(stream, limit, complaints):
        if text.isspace():
            continue
        try:
            value = json.loads(text)
        except json.JSONDecodeError as error:
            reason = Message("not valid JSON ({why} at column {column})", why=error.msg, column=error.pos + 1)
            complaints.report(reason, line=line)
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists without end
            complaints.report(Message("not valid JSON ({why})", why=str(error)), line=line)
        else:
            yield value, line, text


def _pick(value: Any, fields: tuple[str, ...]) -> tuple[str, ...]:
    alone = len(fields) == 1
    if isinstance(value, str) and alone:
        return (value,)
    if not isinstance(value, dict):
        found = json.dumps(value)[:40]
        raise Unreadable(Message("expected an object with {fields}, found {found}", fields=fields, found=found))
    for field in fields:
        if field not in value:
            raise Unreadable(missing(field, value, alone))
        if not isinstance(value[field], str if alone else str | int | list):
            found = json.dumps(value[field])[:40]
            raise Unreadable(Message("the field '{field}' is {found}, not a string", field=field, found=found))
    cells = (value[field] for field in fields)
    return tuple(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells)


def _tsv_rows(stream: TextBytes, limit: int, complaints: Complaints) -> Iterator[Row]:
    return ((text.rstrip("\r\n").split("\t"), line) for line, text in _lines(stream, limit, complaints))


class _RowTooLong(Exception):  # noqa: N818 - a signal through csv.reader, never shown to a user
    pass


def _csv_rows(stream: TextBytes, limit: int, complaints: Complaints) -> Iterator[Row]:
    csv.field_size_limit(max(csv.field_size_limit(), limit))  # the module's one knob is global: only ever raised
    lines = stream.lines(limit)
    line = size = 0  # where the row began, and how long it is so far
    dropped = False

    def next_line() -> str:
        nonlocal line, size, dropped
        number, offset, data = next(lines)
        line = line or number
        size += len(data or b"")
        if data is None or size > limit + 2:
            raise _RowTooLong
        text = complaints.decode(data, number, offset)
        dropped = dropped or text is None
        return data.decode("utf-8", "replace") if text is None else text

    rows = csv.reader(iter(next_line, None), strict=True)
    while True:
        line, size, dropped = 0, 0, False
        try:
            row = next(rows)
        except StopIteration:
            return
        except _RowTooLong:
            reason = Message("the row is longer than {limit:,} bytes (an unclosed quote?)", limit=limit)
            complaints.report(reason, line=line)
        except csv.Error as error:
            complaints.report(Message("not valid CSV ({why})", why=str(error)), line=line)
        else:
            if row and not dropped:
                yield row, line


_ROWS: dict[str, Callable[[TextBytes, int, Complaints], Iterator[Row]]] = {"csv": _csv_rows, "tsv": _tsv_rows}


def _read_table(
    format: str, stream: TextBytes, fields: tuple[str, ...], limit: int, complaints: Complaints
) -> Iterator[Record]:
    """Rows of cells, of which the first may name the columns."""
    rows = _ROWS[format](stream, limit, complaints)
    for header, first_line in rows:
        by_number = all(field.isdecimal() and len(field) < 10 for field in fields)
        columns = [_column(header, field, by_number, alone=len(fields) == 1) for field in fields]
        for row, line in chain([(header, first_line)], rows) if by_number else rows:
            if len(row) != len(header):
                reason = Message("the row has {n} cells, the first row has {first}", n=len(row), first=len(header))
                complaints.report(reason, line=line)
            elif (sound := complaints.mend(tuple(row[column] for column in columns), line=line)) is not None:
                yield sound, line


def _column(header: list[str], field: str, by_number: bool, alone: bool) -> int:
    names = [str(number) for number in range(1, len(header) + 1)] if by_number else [name.strip() for name in header]
    if names.count(field) == 1:
        return names.index(field)
    if by_number:
        reason = Message("no column {field}: the first row has {n}, counted from 1", field=field, n=len(header))
    elif field in names:
        n = names.count(field)
        reason = Message("{n} columns are named '{field}'; name one by its number", n=n, field=field)
    else:
        reason = missing(field, header, alone)
        reason = Message("{reason}; without a header, name it by its number", reason=reason)
    raise Unreadable(reason)


def first_record(format: str, stream: TextBytes, limit: int, complaints: Complaints) -> dict[str, Any]:
    """The first record of a file by field, or its header; nothing of plain text."""
    if format == "jsonl":
        first, _, _ = next(json_lines(stream, limit, complaints), ({}, 0, ""))
        return first if isinstance(first, dict) else {}
    header, _ = next(_ROWS[format](stream, limit, complaints), ([], 0)) if format in _ROWS else ([], 0)
    return {name.strip(): "" for name in header}


READERS: dict[str, Reader] = {
    "txt": read_txt,
    "jsonl": read_jsonl,
    "csv": partial(_read_table, "csv"),
    "tsv": partial(_read_table, "tsv"),
}
