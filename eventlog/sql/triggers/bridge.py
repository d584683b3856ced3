"""What a database makes of a trigger's function when its table is altered, so that it goes on: prepared when the table is tracked.

The bridge logs rows to be read back. It names no column but those of the key, and these by their numbers, so that the database
has to put in nothing but names. The event trigger in `postgresql/triggers.sql` does that; `eventlog track` makes the whole trigger.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.schema import Child
from eventlog.sql.triggers.marker import Marker
from eventlog.sql.triggers.plan import ChildPlan, Numbered, Style, TriggerPlan

HERE: Final = "eventlog{ddl}"
"""Where the bridge's own comment goes."""
SCHEMA: Final = "eventlog{}"
"""In place of a schema, so that a table with its schema is told from the bare name of a row."""


class Bridge(Struct, frozen=True, kw_only=True):
    """A function in two parts, with numbers in place of names; the trigger's table, the class's, its key, and its marker."""

    head: str
    body: str
    name: str
    parent: int
    key: list[int]
    marker: Marker


def bridge_plan(plan: TriggerPlan) -> TriggerPlan:
    """The plan by row-back, with every name that may change replaced by a number, and without all other columns."""
    own, *others = plan.numbered
    key = tuple(
        replace(column, name=_column(own, place), key=place + 1) for place, column in enumerate(plan.table.key_columns)
    )
    children = [_child(child.child, numbered) for child, numbered in zip(plan.children, others, strict=True)]
    table = replace(plan.table, name=_table(own), schema=SCHEMA, columns=key, children=tuple(children))
    return TriggerPlan(
        table=table,
        options=replace(plan.options, style=Style.ROW_BACK, columns=(), exclude=()),
        watched=(),
        children=tuple([ChildPlan(child=child, watched=()) for child in children]),
    )


def _child(child: Child, numbered: Numbered) -> Child:
    by_name = {column.name: column for column in child.columns}
    names = tuple([_column(numbered, place) for place in range(len(child.parent_key))])
    columns = [replace(by_name[held], name=name) for held, name in zip(child.parent_key, names, strict=True)]
    return Child(name=_table(numbered), parent_key=names, columns=tuple(columns))


def bridge_comment(bridge: Bridge, this: Numbered, own: Numbered) -> str:
    """A comment that the event trigger reads: what to watch, how that looks now, and the bridge."""
    keys = [
        [one.number, number, kind] for one in {this.number: this, own.number: own}.values() for number, kind in one.keys
    ]
    told = b64encode(msgspec.json.encode({"keys": keys, **msgspec.to_builtins(bridge)})).decode()
    return f"/* eventlog ddl {this.watch} {this.shape} {told} */"


def watching(
    this: int,
    numbers: Sequence[int] | None,
    own: int | None = None,
    key: Sequence[int] = (),
    looked_at: Sequence[tuple[int, Sequence[int]]] = (),
) -> str:
    """What to watch of a trigger's own table, all of it or some columns, and of the parent of a child table its key.

    `looked_at` are tables with columns that the trigger asks for, and that may go: the bridge asks for none of them.
    """
    watch: list[list[object]] = [[this, None if numbers is None else sorted(numbers)]]
    if own is not None:
        watch.append([own, sorted(key)])
    watch += [[other, sorted(columns), True] for other, columns in looked_at]
    return msgspec.json.encode(watch).decode()


def _table(numbered: Numbered) -> str:
    return f"eventlog{{{numbered.number}}}"


def _column(numbered: Numbered, place: int) -> str:
    return f"eventlog{{{numbered.number}.{numbered.keys[place][0]}}}"
