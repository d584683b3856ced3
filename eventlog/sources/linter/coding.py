"""Which operation a TYP is. The document gives two codings that contradict each other; `auto` decides row by row."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final, Literal

from eventlog.sources.linter.rows import QueueRow

Coding = Literal["table", "list", "auto"]


class Action(StrEnum):
    """What a queue row says was done."""

    DELETE = "DELETE"
    INSERT = "INSERT"
    UPDATE = "UPDATE"
    COMMIT = "COMMIT"
    ROLLBACK = "ROLLBACK"
    END = "COMMIT or ROLLBACK"
    CREATE_BLOB = "CREATE BLOB"
    INSERT_BLOB = "INSERT BLOB"
    CLEAR_BLOB = "CLEAR BLOB"
    DELETE_BLOB = "DELETE BLOB"


_ROWS: Final = {1: Action.DELETE, 2: Action.INSERT, 3: Action.UPDATE}
_LATER: Final = {7: Action.CREATE_BLOB, 8: Action.INSERT_BLOB, 9: Action.CLEAR_BLOB, 10: Action.ROLLBACK}
TABLE: Final = {**_ROWS, 4: Action.COMMIT, **_LATER}
"""The coding of the column's description, which is taken to be the real one: it tells COMMIT from ROLLBACK."""

LIST: Final = {**_ROWS, 4: Action.DELETE_BLOB, 5: Action.END}
"""The coding of the list at the document's end."""

ROW_ACTIONS: Final = frozenset(_ROWS.values())
BLOB_ACTIONS: Final = frozenset({Action.CREATE_BLOB, Action.INSERT_BLOB, Action.CLEAR_BLOB, Action.DELETE_BLOB})


def reading(coding: Coding, report: Callable[[str], None]) -> Callable[[QueueRow], Action | None]:
    """Tells the action of a row, or None for a TYP that the coding does not have; `auto` reports each kind of choice."""
    if coding == "table":
        return lambda row: TABLE.get(row.typ)
    if coding == "list":
        return lambda row: LIST.get(row.typ)
    reported: set[Action] = set()

    def choose(row: QueueRow) -> Action | None:
        action = chosen(row)
        if row.typ in (4, 5) and action is not None and action not in reported:
            reported.add(action)
            coding = "table" if action is Action.COMMIT else "list"
            report(
                f"TYP {row.typ} with parts of {row.len1} and {row.len2} bytes is read as {action} (coding {coding})."
            )
        return action

    return choose


def chosen(row: QueueRow) -> Action | None:
    """The action that `auto` takes: a TYP 4 with a row or a BLOB column is the list's, else it is a COMMIT."""
    if row.typ == 4:
        return Action.COMMIT if row.len1 == 0 == row.len2 and row.blobatr == 0 else Action.DELETE_BLOB
    return TABLE.get(row.typ) or LIST.get(row.typ)


def typ_of(action: Action, coding: Coding) -> int:
    """The TYP that says so; the table's where the coding decides row by row."""
    codes = LIST if coding == "list" else TABLE | {5: Action.END} if action is Action.END else TABLE
    if action is Action.DELETE_BLOB and coding == "auto":
        codes = LIST
    return {known: typ for typ, known in codes.items()}[action]
