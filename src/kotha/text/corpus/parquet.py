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
    for total, columns in _guarded(_batches(file, fields)):
        for cells in zip(*columns, strict=True):
            row += 1
            values = _texts(cells, fields, limit, row, complaints)
            if values is not None:
                yield values, row
        if on_bytes is not None:
            told, before = size * row // total, told
            on_bytes(told - before)


def _guarded(batches: Iterator[tuple[int, list[list[Any]]]]) -> Iterator[tuple[int, list[list[Any]]]]:
    """Turn whatever the decoder raises on broken bytes into Unreadable: it uses many exception types."""
    try:
        yield from batches
    except (CorpusError, Unreadable):
        raise
    except Exception as error:
        ours = type(error).__module__.startswith("pyarrow") or isinstance(error, ValueError)
        why = " ".join(str(error).split())[:200] if ours else foreign(error)
        raise Unreadable(Message("not a readable parquet file ({why})", why=why)) from error


def _batches(file: BinaryIO, fields: tuple[str, ...]) -> Iterator[tuple[int, list[list[Any]]]]:
    needed = "reading parquet needs pyarrow: pip install 'kotha[parquet]'"
    pa, pq = (library(name, needed, CorpusError) for name in ("pyarrow", "pyarrow.parquet"))
    with pq.ParquetFile(
        file,
        pre_buffer=False,
        buffer_size=1 << 20,
        thrift_string_size_limit=_FOOTER_STRING,
        thrift_container_size_limit=_FOOTER_LIST,
    ) as table:
        schema = table.schema_arrow
        for field in fields:
            _check_column(pa, schema, field, alone=len(fields) == 1)
        columns_wanted = list(dict.fromkeys(fields))
        for batch in table.iter_batches(_batch_rows(table.metadata), columns=columns_wanted, use_threads=False):
            columns = [_as_bytes(pa, batch.column(batch.schema.get_field_index(field))) for field in fields]
            yield table.metadata.num_rows, columns


def _batch_rows(metadata: Any) -> int:
    """Rows for a batch of a few megabytes, going by what the footer says of the largest rows."""
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    longest = max((group.total_byte_size // max(1, group.num_rows) for group in groups), default=0)
    return int(max(1, min(_MOST_ROWS, _BATCH_BYTES // max(1, longest))))


def _check_column(pa: Any, schema: Any, field: str, alone: bool) -> None:
    found = [column.type for column in schema if column.name == field]
    if len(found) != 1:
        twice = Message("{n} columns are named '{field}'", n=len(found), field=field)
        raise Unreadable(twice if found else missing(field, schema.names, alone))
    inner = found[0].value_type if pa.types.is_dictionary(found[0]) else found[0]
    if not (pa.types.is_string(inner) or pa.types.is_large_string(inner) or inner == pa.string_view()):
        raise Unreadable(Message("the column '{field}' holds {kind}, not strings", field=field, kind=str(found[0])))


def _as_bytes(pa: Any, column: Any) -> list[bytes | None]:
    """The cells as bytes, so that bad UTF-8 in one of them spoils only that one."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    cells = column.cast(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary())
    cells.validate(full=True)
    values: list[bytes | None] = cells.to_pylist()
    return values


def _texts(
    cells: tuple[Any, ...], fields: tuple[str, ...], limit: int, row: int, complaints: Complaints
) -> tuple[str, ...] | None:
    texts = []
    for field, cell in zip(fields, cells, strict=True):
        if cell is None:
            complaints.report(Message("'{field}' is null, not a string", field=field), row=row)
            return None
        if len(cell) > limit:
            complaints.report(Message("'{field}' is over {limit:,} bytes", field=field, limit=limit), row=row)
            return None
        if (text := complaints.decode(cell, row=row)) is None:
            return None
        texts.append(text)
    return complaints.mend(tuple(texts), row=row)
