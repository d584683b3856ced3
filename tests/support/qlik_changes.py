"""A small table with a child, and changes of it, for tests of values."""

from __future__ import annotations

import datetime as dt

from msgspec import Struct

from eventlog.core.model import Change, Edit, Op, RowId, Value
from eventlog.core.schema import Child, Column, Table
from eventlog.qlik.readings import reading
from eventlog.qlik.values import NEVER, RowBuilder, TableValues

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(64)"),
        Column(name="born", type="date"),
        Column(name="pay", type="numeric(10,2)"),
    ),
    children=(Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="phoneno"),)),),
)
VIEW = Table(
    name="view_usr",
    view=True,
    columns=(Column(name="pk_empno", type="integer"), Column(name="sv_fname"), Column(name="mv_phoneno")),
)
UTC = dt.UTC


class Images(Struct, frozen=True, kw_only=True):
    """What a change says, by the names of the columns: only those that are known stand in `before` and `after`."""

    before: dict[str, Value] | None
    after: dict[str, Value] | None
    changed: frozenset[str]
    present: frozenset[str]
    """The columns that are known before it or after it."""


def images_of(made: Change, table: Table = USR) -> Images:
    values = TableValues(table)
    teller = RowBuilder(values, [(NEVER, reading(column)) for column in values.columns], None)
    before, after, changed, had, has = teller.images(made)

    def names(bits: int) -> dict[str, int]:
        return {name: place for place, name in enumerate(values.names) if bits >> place & 1}

    return Images(
        before=None if before is None else {name: before[place] for name, place in names(had).items()},
        after=None if after is None else {name: after[place] for name, place in names(has).items()},
        changed=frozenset(names(changed)),
        present=frozenset(names(had | has)),
    )


def change(op: Op, *edits: Edit, key: str = "idu=1", table: str = "usr", whole: bool = False) -> Change:
    return Change(row=RowId(None, table, key), op=op, edits=edits, positions=((1,),), whole=whole)
