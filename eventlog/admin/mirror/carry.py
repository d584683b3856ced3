"""Carries the steps out: deletes first, then inserts, then updates, each for many rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import Connection, Table
from sqlalchemy.sql.elements import ColumnElement

from eventlog.admin.mirror.fold import Key, Moved, Nets, Step, Values

ASKED_KEYS: Final = 200
"""Keys that one query asks for; Oracle's and SQLite's limits for bound values are above it for keys of five columns."""


class Carrier:
    """Does what steps say to one mirror, in the transaction of the connection."""

    def __init__(self, connection: Connection, table: Table, key: tuple[str, ...]) -> None:
        self._connection = connection
        self._table = table
        self._key = key

    def do(self, step: Step) -> None:
        """Carries one step out."""
        if isinstance(step, Nets):
            self._nets(step)
        elif isinstance(step, Moved):
            self._move(step)
        else:
            self._connection.execute(self._table.delete())

    def _move(self, step: Moved) -> None:
        """Gives a row its new key; what stands under that goes, because the source cannot have had both."""
        key = tuple(step.values.get(name, former) for name, former in zip(self._key, step.former, strict=True))
        self._delete([key], but=step.former)
        if self._existing([step.former]):
            self._update(sorted(step.values), [(step.former, step.values)])
        else:
            self._connection.execute(self._table.insert(), [dict(zip(self._key, key, strict=True)) | step.values])

    def _nets(self, step: Nets) -> None:
        gone = [key for key, net in step.rows.items() if net.values is None or net.whole]
        patched = {key: net.values for key, net in step.rows.items() if net.values is not None and not net.whole}
        there = self._existing(list(patched))
        inserts = [net.values for net in step.rows.values() if net.values is not None and net.whole]
        inserts += [values for key, values in patched.items() if key not in there]
        self._delete(gone)
        if inserts:
            names = [column.name for column in self._table.columns]
            self._connection.execute(self._table.insert(), [{name: row.get(name) for name in names} for row in inserts])
        groups: dict[tuple[str, ...], list[tuple[Key, Values]]] = {}
        for key, values in patched.items():
            names = [name for name in values if name not in self._key]
            if key in there and names:
                groups.setdefault(tuple(names), []).append((key, values))
        for columns, rows in groups.items():
            self._update(columns, rows)

    def _delete(self, keys: Iterable[Key], but: Key | None = None) -> None:
        rows = [self._bound(key) for key in keys if key != but]
        if rows:
            self._connection.execute(self._table.delete().where(*self._matched()), rows)

    def _update(self, columns: Sequence[str], rows: Iterable[tuple[Key, Values]]) -> None:
        changed = self._table.update().where(*self._matched())
        changed = changed.values({name: sa.bindparam(f"new_{place}") for place, name in enumerate(columns)})
        bound = [
            self._bound(key) | {f"new_{place}": values[name] for place, name in enumerate(columns)}
            for key, values in rows
        ]
        self._connection.execute(changed, bound)

    def _existing(self, keys: Sequence[Key]) -> set[Key]:
        """Which of the keys the mirror has."""
        columns = [self._table.c[name] for name in self._key]
        found: set[Key] = set()
        for start in range(0, len(keys), ASKED_KEYS):
            asked = keys[start : start + ASKED_KEYS]
            if len(columns) == 1:
                condition: ColumnElement[bool] = columns[0].in_([key[0] for key in asked])
            else:
                pairs = [sa.and_(*[c == cell for c, cell in zip(columns, key, strict=True)]) for key in asked]
                condition = sa.or_(*pairs)
            found |= {tuple(row) for row in self._connection.execute(sa.select(*columns).where(condition))}
        return found

    def _matched(self) -> list[Any]:
        return [self._table.c[name] == sa.bindparam(f"key_{place}") for place, name in enumerate(self._key)]

    def _bound(self, key: Key) -> dict[str, Any]:
        return {f"key_{place}": cell for place, cell in enumerate(key)}
