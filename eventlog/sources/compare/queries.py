"""Queries that are compared as tables are: their rows are read once in each cycle, into a temporary file.

A query has no index by which its rows could be found, and to ask it range by range would do all of its work each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared
from eventlog.compare.streamed import StreamedSide
from eventlog.compare.tables import TableSide
from eventlog.core.errors import DataError


class QuerySide(StreamedSide):
    """The rows of a query."""

    def __init__(self, rows: TableSide, name: str, compared: Compared) -> None:
        super().__init__(compared, lambda _: self.every())
        self._rows = rows
        self._name = name
        self._key = compared.key

    def every(self) -> Iterator[Sequence[Any]]:
        """Yield all rows, the key's values first."""
        key = self._key
        for row in self._rows.every():
            if None in row[: len(key)]:
                name = key[row.index(None)]
                raise DataError(
                    f"The query {self._name} gives a row whose {name} is NULL, which is part of its key.",
                    hint=f"Leave such rows out in source.compare.queries.{self._name}.sql.",
                )
            yield row

    def fill(self) -> ScratchSide:
        scratch = super().fill()
        doubled = scratch.find_doubled_key()
        if doubled is not None:
            key = ", ".join([f"{name}={cell}" for name, cell in zip(self._key, doubled, strict=True)])
            raise DataError(
                f"The query {self._name} gives several rows with {key}.",
                hint=f"Name more columns in source.compare.queries.{self._name}.key.",
            )
        return scratch
