"""Places rows: every row gets the number of its object, so that an object's rows can be brought together anywhere."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc

from eventlog.convert.columns import PLACED
from eventlog.core.errors import DataError
from eventlog.core.model import RowId
from eventlog.core.rules.identity import Identities
from eventlog.core.rules.meaning import MEANING
from eventlog.core.schema import Catalog

ROW_KINDS = pa.array([int(kind) for kind, meaning in MEANING.items() if meaning.row and kind is not None], pa.int64())


class Placing:
    """Gives rows the numbers of their objects; keeps what it has looked up within one batch only."""

    def __init__(self, catalog: Catalog | None) -> None:
        self._identities = Identities(catalog)

    def place(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of ROWS with their objects: PLACED."""
        kinds = pc.fill_null(pc.is_in(rows.column("event_type"), value_set=ROW_KINDS), False)
        tables = _codes(rows.column("table_name"))
        keys = _codes(rows.column("table_key"))
        combined = pc.add(pc.multiply(keys.indices, len(tables.dictionary) * 2), pc.multiply(tables.indices, 2))
        met = pc.add(combined, pc.cast(kinds, pa.int64())).dictionary_encode()
        numbers = self._numbers(met.dictionary.to_pylist(), tables.dictionary.to_pylist(), keys.dictionary.to_pylist())
        objects = pa.array(numbers, pa.int64()).take(met.indices)
        return pa.RecordBatch.from_arrays([*rows.columns, objects], schema=PLACED)

    def _numbers(self, met: list[int], tables: list[str | None], keys: list[str | None]) -> list[int]:
        """The object of each combination of table_name, table_key and row event that occurs."""
        return [
            self.number_of(tables[code // 2 % len(tables)], keys[code // 2 // len(tables)], row_event=code % 2 == 1)
            for code in met
        ]

    def number_of(self, table: str | None, key: str | None, *, row_event: bool) -> int:
        """The number of the object that the texts of a row mean; texts that mean none have a number of their own."""
        try:
            return object_number(self._identities.identify(table, key, row_event=row_event)[2])
        except DataError:
            return _hash(f"?\0{table}\0{key}")


def object_number(row: RowId) -> int:
    """The number of an object."""
    return _hash(f"{row.schema}\0{row.table}\0{row.key}")


def bucket_of(objects: pa.Array, buckets: int) -> pa.Array:
    """The bucket of each object among `buckets`, a power of two."""
    return pc.bit_wise_and(objects, buckets - 1)


def _hash(text: str) -> int:
    """A number of 62 bits, quickly made; the rules tell objects apart themselves, should two have the same."""
    data = text.encode("utf-8", "surrogatepass")
    return crc32(data) >> 1 << 31 ^ crc32(data[::-1])


def _codes(texts: pa.Array) -> Any:
    """The texts as 64 bit codes and what they stand for; NULL is a text of its own."""
    encoded = texts.dictionary_encode(null_encoding="encode")
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(pa.int64()), encoded.dictionary)
