"""The method that data-diff published: sums of MD5 over segments of keys, bisected where they differ, rows at the end.

Its documentation gives 32 segments at a time, and 16,384 rows below which a segment is read. Written anew from that
description, one segment after the other, while the program asks for several at once; the program itself is not asked.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, text

SEGMENTS: Final = 32
READ_ROWS: Final = 16_384

SUMS: Final = {
    "PostgreSQL": "sum(('x' || substring(md5(concat_ws('|', {columns})), 18))::bit(60)::bigint)",
    "MariaDB": "sum(CAST(CONV(SUBSTRING(md5(concat_ws('|', {columns})), 18), 16, 10) AS UNSIGNED))",
}


class Checksums:
    """Compares two tables of one server, which have a key of one whole number."""

    def __init__(self, connection: Connection, database: str, key: str, columns: list[str]) -> None:
        self._connection = connection
        self._key = key
        self._columns = ", ".join(columns)
        told = ", ".join([f"COALESCE(CAST({one} AS char(200)), '<null>')" for one in columns])
        self._sum = SUMS[database].format(columns=told)

    def differing(self, left: str, right: str) -> int:
        """How many keys have rows that differ."""
        [(low, high)] = self._asked(f"SELECT min({self._key}), max({self._key}) FROM {left}", {})  # our names
        return self._divided(
            left, right, int(low), int(high) + 1
        )  # the whole has no sum of its own: it is divided at once

    def _divided(self, left: str, right: str, low: int, high: int) -> int:
        step = max((high - low) // SEGMENTS, 1)
        return sum(self._within(left, right, at, min(at + step, high)) for at in range(low, high, step))

    def _within(self, left: str, right: str, low: int, high: int) -> int:
        sums = [self._segment(table, low, high) for table in (left, right)]
        if sums[0] == sums[1]:
            return 0
        if max(rows for rows, _ in sums) < READ_ROWS:
            mine, other = [self._rows(table, low, high) for table in (left, right)]
            return len({row[0] for row in mine ^ other})
        return self._divided(left, right, low, high)

    def _segment(self, table: str, low: int, high: int) -> tuple[int, int]:
        query = f"SELECT count(*), {self._sum} FROM {table} WHERE {self._key} >= :low AND {self._key} < :high"
        [(rows, total)] = self._asked(query, {"low": low, "high": high})
        return int(rows), int(total or 0)

    def _rows(self, table: str, low: int, high: int) -> set[tuple[Any, ...]]:
        query = f"SELECT {self._columns} FROM {table} WHERE {self._key} >= :low AND {self._key} < :high"
        return set(self._asked(query, {"low": low, "high": high}))

    def _asked(self, query: str, bounds: dict[str, int]) -> list[tuple[Any, ...]]:
        escaped = query.replace("::", "\\:\\:")
        return [tuple(row) for row in self._connection.execute(text(escaped), bounds)]
