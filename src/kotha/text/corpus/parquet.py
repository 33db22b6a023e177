"""Rows of a parquet file, a small batch at a time.

Not bounded here: Arrow decodes a page of a column whole. Writers make pages of about 1 MB, but a hostile file may claim
up to 2 GiB for one, and Arrow sets that aside before it finds the claim false. The sizes in the footer are limited.
"""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from kotha.errors import CorpusError, library
from kotha.i18n.message import Message
from kotha.text.corpus.problems import Complaints, Unreadable, foreign, missing
from kotha.text.corpus.records import Record

_BATCH_BYTES = 4 << 20
_MOST_ROWS = 1024
_FOOTER_STRING = 64 << 20
_FOOTER_LIST = 1 << 20


def read_parquet(
    file: BinaryIO,
    size: int,
    fields: tuple[str, ...],
    limit: int,
    complaints: Complaints,
    on_bytes: Callable[[int], None] | None = None,
) -> Iterator[Record]:
    """Rows of a parquet file, counted from 1; ``on_bytes`` hears of its ``size`` as if rows were all alike."""
    if not file.seekable():
        raise Unreadable(Message("a parquet file is read from its end, so it cannot come through a pipe"))
    if not file.read(1):
        raise Unreadable(Message("the file is empty"))
    row = told = 0
    for total, columns in _batches(file, fields):
        for cells in zip(*columns, strict=True):
            row += 1
            values = _texts(cells, fields, limit, row, complaints)
            if values is not None:
                yield values, row
        if on_bytes is not None:
            told, before = size * row // total, told
            on_bytes(told - before)


def _batches(file: BinaryIO, fields: tuple[str, ...]) -> Iterator[tuple[int, list[list[bytes | None]]]]:
    """How many rows there are, and some of them by column; whatever the decoder raises of broken bytes is Unreadable.

    Cells are bytes, so that bad UTF-8 in one of them spoils only that one.
    """
    needed = "reading parquet needs pyarrow: pip install 'kotha[parquet]'"
    pa, pq = (library(name, needed, CorpusError) for name in ("pyarrow", "pyarrow.parquet"))
    limits = {"thrift_string_size_limit": _FOOTER_STRING, "thrift_container_size_limit": _FOOTER_LIST}
    try:
        with pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20, **limits) as table:
            for field in fields:
                _check_column(pa, table.schema_arrow, field, alone=len(fields) == 1)
            groups = [table.metadata.row_group(index) for index in range(table.num_row_groups)]
            longest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
            rows = max(1, min(_MOST_ROWS, _BATCH_BYTES // max(1, longest)))  # a few megabytes, as the footer says
            for batch in table.iter_batches(rows, columns=list(dict.fromkeys(fields)), use_threads=False):
                cells = [batch.column(field).cast(pa.large_string()).cast(pa.large_binary()) for field in fields]
                for column in cells:
                    column.validate(full=True)
                yield table.metadata.num_rows, [column.to_pylist() for column in cells]
    except Unreadable:
        raise
    except Exception as error:
        ours = type(error).__module__.startswith("pyarrow") or isinstance(error, ValueError)
        why = " ".join(str(error).split())[:200] if ours else foreign(error)
        raise Unreadable(Message("not a readable parquet file ({why})", why=why)) from error


def _check_column(pa: Any, schema: Any, field: str, alone: bool) -> None:
    found = [column.type for column in schema if column.name == field]
    if len(found) != 1:
        twice = Message("{n} columns are named '{field}'", n=len(found), field=field)
        raise Unreadable(twice if found else missing(field, schema.names, alone))
    inner = found[0].value_type if pa.types.is_dictionary(found[0]) else found[0]
    if inner not in (pa.string(), pa.large_string(), pa.string_view()):
        raise Unreadable(Message("the column '{field}' holds {kind}, not strings", field=field, kind=str(found[0])))


def _texts(
    cells: tuple[Any, ...], fields: tuple[str, ...], limit: int, row: int, complaints: Complaints
) -> tuple[str, ...] | None:
    texts = []
    for field, cell in zip(fields, cells, strict=True):
        text = None
        if cell is None:
            complaints.report(Message("'{field}' is null, not a string", field=field), row=row)
        elif len(cell) > limit:
            complaints.report(Message("'{field}' is over {limit:,} bytes", field=field, limit=limit), row=row)
        else:
            text = complaints.decode(cell, row=row)
        if text is None:
            return None
        texts.append(text)
    return complaints.mend(tuple(texts), row=row)
