"""Read records of one or more fields from a file: txt, jsonl, csv, tsv and parquet.

`RecordReader` has a method for each format that converts bytes to ``(values, position)``: one value per field, and the
record's first line or its row. Only one record (for parquet, a small batch) is in memory at a time.

- **txt**: one or more blank lines end a document. A document over the size limit is split at a line end.
- **jsonl**: each line is an object with the fields. If only one field is requested, a line may also be a string. If
  several are requested, integers, booleans and lists are accepted and converted to JSON text, because labels are often
  numbers.
- **csv**: RFC 4180 with a header row. Quoted cells may contain commas, line ends and doubled quotes.
- **tsv**: as registered with IANA, with a header row, tabs between cells, and quotes as ordinary characters. Parallel
  corpora have many cells like ``"Who is it?" "It's me."``, which csv rules would misread.
- **parquet**: columns of strings. The size of a value is not limited, because Arrow decodes a whole column page.
  Writers make pages of about 1 MB, but a malicious file may declare a page of up to 2 GiB, which Arrow allocates before
  it detects the error. The sizes declared in a file's footer are limited.

Field names that consist of digits select columns by number, from 1, in a csv or tsv file without a header row.
"""

import csv
import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, BinaryIO

from kotha.errors import CorpusError, InstallCommand, library
from kotha.i18n.message import Message
from kotha.text.corpus.problems import ProblemReporter, Unreadable, foreign, missing
from kotha.text.corpus.streams import TextBytes

Record = tuple[tuple[str, ...], int]
Row = tuple[list[str], int]

_BATCH_BYTES = 4 << 20
_MOST_ROWS = 1024
_LIMITS = {"thrift_string_size_limit": 64 << 20, "thrift_container_size_limit": 1 << 20}


class RecordReader:
    """Reads the requested fields of one file; records longer than the limit are reported as problems."""

    def __init__(self, format: str, fields: tuple[str, ...], limit: int, complaints: ProblemReporter) -> None:
        self.format, self.fields, self.limit, self.complaints = format, fields, limit, complaints
        self._alone = len(fields) == 1

    def read(self, stream: TextBytes) -> Iterator[Record]:
        """Yield the records of a file."""
        readers = {"txt": self._txt, "jsonl": self._jsonl}
        return readers.get(self.format, self._table)(stream)

    def first(self, stream: TextBytes) -> dict[str, Any]:
        """Return the first jsonl record, or the header (as keys) of csv or tsv; empty for txt."""
        if self.format == "jsonl":
            found, _, _ = next(self._json_lines(stream), ({}, 0, ""))
            return found if isinstance(found, dict) else {}
        header, _ = next(self._rows(stream), ([], 0)) if self.format != "txt" else ([], 0)
        return {name.strip(): "" for name in header}

    def _lines(self, stream: TextBytes) -> Iterator[tuple[int, str]]:
        """Yield the number and text of each line that is not blank."""
        for line, data in self._bounded(stream):
            if data.strip(b" \r\n") and (text := self.complaints.decode(data, line)) is not None:
                yield line, text

    def _bounded(self, stream: TextBytes) -> Iterator[tuple[int, bytes]]:
        """Yield the number and bytes of each line within the size limit; report all other lines."""
        for line, data in stream.lines(self.limit):
            if data is None:
                reason = Message("the line is longer than {limit:,} bytes", limit=self.limit)
                self.complaints.report(reason, line=line)
            else:
                yield line, data

    # -- txt ----------------------------------------------------------------------------------------------------------

    def _txt(self, stream: TextBytes) -> Iterator[Record]:
        for data, line in self._paragraphs(stream):
            text = self.complaints.decode(data, line)
            if text is not None and self.complaints.are_sound((text,), line=line):
                yield (text.replace("\r\n", "\n").rstrip("\r\n"),), line

    def _paragraphs(self, stream: TextBytes) -> Iterator[tuple[bytes, int]]:
        """Yield the bytes and first line number of each run of non-blank lines; a run over the limit is split."""
        paragraph, first = bytearray(), 0
        for number, line in self._bounded(stream):
            blank = _is_blank(line)
            if paragraph and (blank or len(paragraph) + len(line) > self.limit):
                yield bytes(paragraph), first
                paragraph.clear()
            if not blank:
                first = first if paragraph else number
                paragraph += line
        if paragraph:
            yield bytes(paragraph), first

    # -- jsonl --------------------------------------------------------------------------------------------------------

    def _jsonl(self, stream: TextBytes) -> Iterator[Record]:
        for value, line, text in self._json_lines(stream):
            try:
                values = self._pick(value)
            except Unreadable as error:  # a missing field
                self.complaints.report(error.reason, line=line)
            else:
                if self.complaints.are_sound(values, line=line, escapes="\\u" in text):
                    yield values, line

    def _json_lines(self, stream: TextBytes) -> Iterator[tuple[Any, int, str]]:
        """Yield each line's JSON value, line number and text."""
        for line, text in self._lines(stream):
            if text.isspace():
                continue
            try:
                value = json.loads(text)
            except json.JSONDecodeError as error:
                reason = Message("not valid JSON ({why} at column {column})", why=error.msg, column=error.pos + 1)
                self.complaints.report(reason, line=line)
            except (ValueError, RecursionError) as error:  # numbers with thousands of digits, deep nesting
                self.complaints.report(Message("not valid JSON ({why})", why=str(error)), line=line)
            else:
                yield value, line, text

    def _pick(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) and self._alone:
            return (value,)
        if not isinstance(value, dict):
            found = json.dumps(value)[:40]
            raise Unreadable(
                Message("expected an object with {fields}, found {found}", fields=self.fields, found=found)
            )
        for field in self.fields:
            if field not in value:
                raise Unreadable(missing(field, value, self._alone))
            if not isinstance(value[field], str if self._alone else str | int | list):
                found = json.dumps(value[field])[:40]
                raise Unreadable(Message("the field '{field}' is {found}, not a string", field=field, found=found))
        cells = (value[field] for field in self.fields)
        return tuple(cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells)

    # -- csv and tsv --------------------------------------------------------------------------------------------------

    def _table(self, stream: TextBytes) -> Iterator[Record]:
        """Yield rows of cells; the first is the header, unless fields are column numbers."""
        rows = self._rows(stream)
        for header, first_line in rows:
            by_number = all(field.isdecimal() and len(field) < 10 for field in self.fields)
            columns = [self._column(header, field, by_number) for field in self.fields]
            for row, line in chain([(header, first_line)], rows) if by_number else rows:
                if len(row) != len(header):
                    reason = Message(
                        "the row has {n} cells, but the first row has {first}", n=len(row), first=len(header)
                    )
                    self.complaints.report(reason, line=line)
                elif self.complaints.are_sound(cells := tuple(row[c] for c in columns), line=line):
                    yield cells, line

    def _column(self, header: list[str], field: str, by_number: bool) -> int:
        names = [str(n) for n in range(1, len(header) + 1)] if by_number else [name.strip() for name in header]
        n = names.count(field)
        if n == 1:
            return names.index(field)
        if by_number:
            reason = Message("no column {field}: the first row has columns 1 to {n}", field=field, n=len(header))
        elif n:
            reason = Message("{n} columns are named '{field}'; use a column number instead", n=n, field=field)
        else:
            reason = missing(field, header, self._alone)
            reason = Message("{reason}; if the file has no header, use the column number", reason=reason)
        raise Unreadable(reason)

    def _rows(self, stream: TextBytes) -> Iterator[Row]:
        if self.format == "csv":
            return self._csv_rows(stream)
        return ((text.rstrip("\r\n").split("\t"), line) for line, text in self._lines(stream))

    def _csv_rows(self, stream: TextBytes) -> Iterator[Row]:
        csv.field_size_limit(max(csv.field_size_limit(), self.limit))  # a global setting: only ever increased
        lines = stream.lines(self.limit)
        line = size = 0  # first line of the current row, and its length so far
        dropped = False

        def next_line() -> str:
            nonlocal line, size, dropped
            number, data = next(lines)
            line = line or number
            size += len(data or b"")
            if data is None or size > self.limit + 2:
                raise _RowTooLong
            text = self.complaints.decode(data, number)
            dropped = dropped or text is None
            return text or data.decode("utf-8", "replace")

        rows = csv.reader(iter(next_line, None), strict=True)
        while True:
            line, size, dropped = 0, 0, False
            try:
                row = next(rows)
            except StopIteration:
                return
            except _RowTooLong:
                reason = Message("the row is longer than {limit:,} bytes (an unclosed quote?)", limit=self.limit)
                self.complaints.report(reason, line=line)
            except csv.Error as error:
                self.complaints.report(Message("not valid CSV ({why})", why=str(error)), line=line)
            else:
                if row and not dropped:
                    yield row, line

    # -- parquet ------------------------------------------------------------------------------------------------------

    def parquet(self, file: BinaryIO, size: int, on_bytes: Callable[[int], None] | None) -> Iterator[Record]:
        """Yield the rows of a parquet file; ``on_bytes`` gets shares of ``size`` in proportion to the rows read."""
        if not file.seekable():
            raise Unreadable(
                Message("a parquet file cannot be read from a pipe or a web server; save it to a file first")
            )
        if not file.read(1):
            raise Unreadable(Message("the file is empty"))
        row = reported = 0
        for total, columns in self._batches(file):
            for cells in zip(*columns, strict=True):
                row += 1
                if None in cells:
                    field = self.fields[cells.index(None)]
                    self.complaints.report(Message("'{field}' is null, not a string", field=field), row=row)
                elif self.complaints.are_sound(cells, row=row):
                    yield cells, row
            if on_bytes is not None:
                reported, before = size * row // total, reported
                on_bytes(reported - before)

    def _batches(self, file: BinaryIO) -> Iterator[tuple[int, list[list[str | None]]]]:
        """Yield batches of rows by column, with the total number of rows; decoder errors become Unreadable."""
        needed = Message("reading parquet needs pyarrow; install it with: {command}", command=InstallCommand("parquet"))
        pa, pq = (library(name, needed, CorpusError) for name in ("pyarrow", "pyarrow.parquet"))
        try:
            with pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, **_LIMITS) as table:
                for field in self.fields:
                    self._check_column(pa, table.schema_arrow, field)
                groups = [table.metadata.row_group(index) for index in range(table.num_row_groups)]
                longest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
                rows = max(1, min(_MOST_ROWS, _BATCH_BYTES // max(1, longest)))  # a few megabytes, by the footer
                for batch in table.iter_batches(rows, columns=list(dict.fromkeys(self.fields)), use_threads=False):
                    batch.validate(full=True)
                    yield table.metadata.num_rows, [batch.column(field).to_pylist() for field in self.fields]
        except Unreadable:
            raise
        except Exception as error:  # Arrow raises many exception types
            safe = type(error).__module__.startswith("pyarrow") or isinstance(error, ValueError)
            why = " ".join(str(error).split())[:200] if safe else foreign(error)
            raise Unreadable(Message("not a readable parquet file ({why})", why=why)) from error

    def _check_column(self, pa: Any, schema: Any, field: str) -> None:
        found = [column.type for column in schema if column.name == field]
        if len(found) != 1:
            ambiguous = Message("{n} columns are named '{field}'", n=len(found), field=field)
            raise Unreadable(ambiguous if found else missing(field, schema.names, self._alone))
        inner = found[0].value_type if pa.types.is_dictionary(found[0]) else found[0]
        if inner not in (pa.string(), pa.large_string(), pa.string_view()):
            raise Unreadable(
                Message("the column '{field}' contains {kind}, not strings", field=field, kind=str(found[0]))
            )


class _RowTooLong(Exception):  # noqa: N818 - a signal through csv.reader, never shown to a user
    pass


def _is_blank(line: bytes) -> bool:
    """Return whether a line is only white space; in short lines, Unicode spaces (no-break space) count too."""
    return line.isspace() or (len(line) <= 16 and line.decode("utf-8", "replace").isspace())
