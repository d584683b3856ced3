"""What is known of the row of a change: from its edits, its key, and what was read beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from eventlog.core.errors import DataError
from eventlog.core.model import ABSENT, Change, Op, Row
from eventlog.core.tablekey import parse


def rows(change: Change, keys: Mapping[str, str], names: Collection[str]) -> tuple[Row, Row]:
    """Return the row before and after a change, as far as known, with these attributes.

    Of a delete both are the deleted row. `keys` maps names in keys to attributes.
    """
    old: dict[str, Any] = {}
    new: dict[str, Any] = {}
    if change.row.key and keys:
        # A key says what the object is called before and after alike; what was read beside it is as
        # it is now.
        try:
            key = {keys.get(name, name): text for name, text in parse(change.row.key).parts}
        except DataError:
            key = {}  # nobody has said what the key is; the rest is known all the same
        old.update(key)
        new.update(key)
    if change.beside is not None:
        old.update(change.beside)
        new.update(change.beside)
    for edit in change.edits:
        column = edit.column
        if column not in names:
            continue
        if edit.new is not ABSENT:
            new[column] = edit.new
        # A reset without an old value says that nobody knows what was there before.
        if edit.old is not ABSENT and not (edit.reset and edit.old is None):
            old[column] = edit.old
        else:
            old.pop(column, None)
    if change.op is Op.DELETE:
        return old, old
    return old, new
