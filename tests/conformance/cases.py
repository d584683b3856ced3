"""Rows of the log in few words, and cases of what statements leave of a table that is tracked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.logged import USR, Logged, left_by, run

FIELDS = TriggerOptions(style=Style.FIELD)
CURRENT = {TriggerCondition.CURRENT}


def came(key: str, values: Mapping[str, str | None] | None = None, /, **more: str | None) -> list[Logged]:
    """Make the rows for the fields of an inserted row."""
    return [(1, key, column, None, value) for column, value in {**(values or {}), **more}.items()]


def changed(
    key: str,
    values: Mapping[str, tuple[str | None, str | None]] | None = None,
    /,
    **more: tuple[str | None, str | None],
) -> list[Logged]:
    """Make the rows for the fields of an updated row, old and new."""
    return [(2, key, column, old, new) for column, (old, new) in {**(values or {}), **more}.items()]


def gone(*keys: str) -> list[Logged]:
    """Make the rows for deleted rows."""
    return [(4, key, None, None, None) for key in keys]


def asked(kind: int, key: str, *columns: str) -> list[Logged]:
    """Make the rows for a row to be read back, or for some of its columns."""
    return [(kind, key, column, None, None) for column in columns or (None,)]


class Case(Struct, frozen=True, kw_only=True):
    """Statements that make tables, which of them are tracked and how, and the rows that statements leave then, in turn."""

    made: tuple[str, ...] = USR
    tables: tuple[str, ...] = ("t",)
    options: TriggerOptions = FIELDS
    left: Mapping[str | tuple[str, ...], Sequence[Logged]]
    any_order: bool = False


def check_left(engine: Engine, case: Case, *, rows: bool = False) -> None:
    """Run the case's statements and check the log; with `rows`, under triggers for each row."""
    install(engine)
    run(engine, *case.made)
    track(engine, [*case.tables], replace(case.options, rows=rows))
    assert states(engine) == CURRENT
    for statements, expected in case.left.items():
        several = (statements,) if isinstance(statements, str) else statements
        found = left_by(engine, *several)
        if case.any_order:
            assert sorted(found, key=str) == sorted(expected, key=str), statements
        else:
            assert found == [*expected], statements


def states(engine: Engine, names: LogNames | None = None) -> set[TriggerCondition]:
    """Return the conditions of the existing triggers."""
    return {one.state for one in trigger_states(engine, names)}


def installed_usr(engine: Engine) -> Engine:
    """Make a log, and tables without tracking."""
    install(engine)
    run(engine, *USR)
    return engine
