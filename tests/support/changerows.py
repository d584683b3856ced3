"""Changes of a small table for tests of change tables, and the documents that they make."""

from __future__ import annotations

import datetime as dt
from typing import Any

from eventlog.core.model import Change, Edit, Op, RowId, Transaction
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.sinks.change_files.settings import RowFileSettings

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(10)"),
        Column(name="pay", type="numeric(10,2)"),
        Column(name="photo", type="blob"),
        Column(name="since", type="timestamp"),
    ),
)
GRP = Table(name="grp", columns=(Column(name="idg", type="integer", key=1), Column(name="name", type="text")))
CATALOG = Catalog([USR, GRP])
CSV = RowFileSettings().choose_files("csv")
JSON = RowFileSettings().choose_files("json")
AT = dt.datetime(2024, 5, 6, 7, 8, 9, 120_000)


def told(number: int, op: Op, key: int, table: str = "usr", *, minutes: int = 0, **columns: Any) -> Change:
    """Make a change of fields; a column is given as `new` or as `(old, new)`."""
    name = {"usr": "idu", "grp": "idg"}[table]
    pairs = {column: cell if isinstance(cell, tuple) else (None, cell) for column, cell in columns.items()}
    edits = [Edit(column=column, old=old, new=new) for column, (old, new) in pairs.items()]
    at = AT + dt.timedelta(minutes=minutes)
    return Change(
        row=RowId(None, table, f"{name}={key}"),
        op=op,
        edits=tuple(edits),
        positions=((number,),),
        time=at,
        transaction=Transaction(id=number, time=at),
    )


def documents(
    *changes: Change, after: str = "", catalog: Catalog = CATALOG, size: int = 10_000, **chosen: Any
) -> list[RowsDocument]:
    """Encode changes to documents, none refused."""
    form = ChangeTableFormat(settings=ChangeTableSettings(**chosen), rows_of_a_document=size)
    found = list(encode(form, changes, catalog, after))
    made = [one for one in found if isinstance(one, RowsDocument)]
    assert made == found
    return made
