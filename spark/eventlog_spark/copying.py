"""PostgreSQL's COPY as record batches: the server writes CSV, Arrow reads it, Python touches no value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.csv

from eventlog.core.errors import DataError, SourceError

BLOCK_BYTES: Final = 2 << 20
"""How much is collected before Arrow reads it; always whole rows."""


def copied(connection: Any, query: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows that a query finds, in the transaction that a psycopg connection is in.

    In CSV an empty string stands in quotes and NULL does not, so they stay apart. libpq hands out one row at a time;
    asked by psycopg's own iterator, that alone would cost twice as much as reading them.
    """
    session = connection.pgconn
    _check(session.exec_(f"COPY ({query}) TO STDOUT (FORMAT csv)".encode()), copying=True)
    block = bytearray()
    while True:
        size, row = session.get_copy_data(0)
        if size <= 0:
            break
        block += row
        if len(block) >= BLOCK_BYTES:
            yield from _read(block, schema)
            block = bytearray()
    while (result := session.get_result()) is not None:
        _check(result, copying=False)
    if block:
        yield from _read(block, schema)


def _read(block: bytearray, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    convert = pyarrow.csv.ConvertOptions(
        column_types=schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(pa.py_buffer(block)),
            pyarrow.csv.ReadOptions(use_threads=False, column_names=schema.names, block_size=len(block) + 1),
            pyarrow.csv.ParseOptions(newlines_in_values=True),
            convert,
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"A value of the log is not what its column should hold: {error}.", hint=_ADOPTED) from error
    yield from table.to_batches()


_ADOPTED: Final = "Correct the row, or say with `columns` which column is which."


def _check(result: Any, *, copying: bool) -> None:
    from psycopg.pq import ExecStatus, error_message

    if result.status not in ((ExecStatus.COPY_OUT,) if copying else (ExecStatus.COMMAND_OK,)):
        said = error_message(result).strip().splitlines()
        raise SourceError(f"The event log cannot be read: {said[0].rstrip('.') if said else 'no answer'}.")
