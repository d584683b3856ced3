"""The rows that changes add up to: change tables of a database or of files, folded in their order
into a temporary file.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Compared
from eventlog.core.errors import DataError
from eventlog.core.sql_types import Category, category
from eventlog.qlik.change_tables.folding import ChangeRow, Emptied, Moved, fold
from eventlog.sinks.database.mirror import HEADER_ENDINGS, Origin


class FoldedChanges:
    """Applies changes to the rows of one table. Names are those of the target, in whatever case."""

    def __init__(self, compared: Compared, names: Sequence[str]) -> None:
        self.side = ScratchSide(compared)
        folded = {name.casefold(): name for name in names}
        self.key = tuple([folded.get(name.casefold(), name) for name in compared.key])
        self._indexes = {}
        for index, name in enumerate(compared.names):
            if name.casefold() in folded:
                self._indexes[folded[name.casefold()]] = index

    def take(self, rows: Iterable[ChangeRow]) -> None:
        """Applies rows of a change table, in the order of their change_seq."""
        with self.side.working():
            for step in fold(rows, self.key):
                if isinstance(step, Emptied):
                    self.side.empty()
                elif isinstance(step, Moved):
                    self._move(step)
                else:
                    for key, net in step.rows.items():
                        # It was deleted.
                        if net.values is None:
                            self.side.change(key, None, whole=True)
                        else:
                            self._set(key, net.values, whole=net.whole)

    def load(self, rows: Iterable[dict[str, Any]]) -> None:
        """Takes whole rows as they are, such as those of a full load."""
        with self.side.working():
            for row in rows:
                self._set(tuple([row[name] for name in self.key]), row, whole=True)

    def _set(self, key: Sequence[Any], values: dict[str, Any], *, whole: bool) -> None:
        # Columns of the key have no place, and others may not be compared.
        cells = {}
        for name, value in values.items():
            if name in self._indexes:
                cells[self._indexes[name]] = value
        self.side.change(key, cells, whole=whole)

    def _move(self, step: Moved) -> None:
        """Give a row its new key, with its former values."""
        # A part of the key that the change does not have stays as it was.
        parts = zip(self.key, step.former, strict=True)
        key = tuple([step.values.get(name, former) for name, former in parts])
        self.side.move(step.former, key)
        self._set(key, step.values, whole=False)


def origin_of(names: Sequence[str], prefix: str, compared: Compared, where: object) -> Origin:
    """Describe a change table with these columns and this prefix of header columns; raise DataError where
    its rows cannot be summed up.
    """
    headers = {}
    for ending in HEADER_ENDINGS:
        if f"{prefix}{ending}" in names:
            headers[ending] = f"{prefix}{ending}"
    for needed in ("change_seq", "change_oper"):
        if needed not in headers:
            raise DataError(
                f"{where} has no {prefix}{needed}, without which its rows cannot be put together.",
                hint="Add it to change_tables.headers.",
            )
    folded = {name.casefold(): name for name in names}
    missing = [name for name in compared.key if name.casefold() not in folded]
    if missing:
        raise DataError(
            f"{where} has no column {missing[0]}, which is part of the key.",
            hint="Publish the table again with `eventlog refresh`.",
        )
    key = tuple([folded[name.casefold()] for name in compared.key])
    return Origin(table=None, headers=headers, key=key, names=tuple(names))


def cells_of(column: Any) -> list[Any]:
    """Read the values of an Arrow column; single-precision numbers with the fewest exact digits."""
    if str(column.type) == "float":
        column = column.cast("string")
    return list(column.to_pylist())


def octets(compared: Compared) -> frozenset[str]:
    """Name the columns with bytes, in small letters: JSON has them in hexadecimal."""
    names = (*compared.key, *compared.names)
    kinds = zip(names, compared.types, strict=True)
    return frozenset(name.casefold() for name, kind in kinds if category(kind) is Category.OCTET)


def read_hex(value: Any) -> Any:
    """Decode hexadecimal; anything else stays, and so differs."""
    try:
        return bytes.fromhex(value)
    except (TypeError, ValueError):
        return value
