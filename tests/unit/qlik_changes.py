"""A small table with a child, and changes of it, for tests of values."""

from __future__ import annotations

import datetime as dt

from eventlog.model import Change, Edit, Op, RowId
from eventlog.schema import Child, Column, Table

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


def change(op: Op, *edits: Edit, key: str = "idu=1", table: str = "usr", whole: bool = False) -> Change:
    return Change(row=RowId(None, table, key), op=op, edits=edits, positions=((1,),), whole=whole)
