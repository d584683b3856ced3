"""A receiver in a few lines: applies changes to a store of values, as a directory would."""

from __future__ import annotations

from collections.abc import Iterable

from eventlog.core.model import ABSENT, Cell, Change, Edit, Op, RowId
from eventlog.core.schema import Catalog

Store = dict[RowId, dict[str, set[Cell]]]


def replay(changes: Iterable[Change], catalog: Catalog, store: Store | None = None) -> Store:
    """Apply the changes to a store; a modify of an unknown object creates it, as receivers do."""
    store = {} if store is None else store
    for change in changes:
        if change.op is Op.DELETE:
            store.pop(change.row, None)
            continue
        found = catalog.find(change.row.table)
        assert found is not None
        kept = store.setdefault(change.row, {})
        for edit in change.edits:
            _apply(kept.setdefault(edit.column, set()), edit, multiple=edit.column in found.table.multiple)
    return store


def filled(store: Store) -> Store:
    """Return the store without empty attributes."""
    return {row: {name: values for name, values in kept.items() if values} for row, kept in store.items()}


def _apply(kept: set[Cell], edit: Edit, *, multiple: bool) -> None:
    if edit.reset or not multiple:
        kept.clear()
    if edit.old is not ABSENT:
        kept.discard(edit.old)
    if edit.new is not ABSENT and edit.new is not None:
        kept.update(edit.new if isinstance(edit.new, tuple) else (edit.new,))
