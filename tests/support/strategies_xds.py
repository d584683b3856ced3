"""Random data for the XDS tests: changes of any kind with values of any kind, the impossible ones too."""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

from hypothesis import strategies as st

from eventlog.core.model import ABSENT, Change, Edit, Op, RowId
from eventlog.core.schema import Catalog, Child, Column, Table

TYPES = {
    "fname": "varchar(64)",
    "age": "integer",
    "pay": "numeric(10,2)",
    "photo": "bytea",
    "active": "boolean",
    "born": "date",
    "rises": "time",
    "seen": "timestamp",
}
USR = Table(
    name="usr",
    schema="indirect",
    columns=(
        Column(name="idu", type="integer", key=1),
        *(Column(name=name, type=kind) for name, kind in TYPES.items()),
        Column(name="manager", type="integer", references="usr"),
        Column(name="room", type="varchar(9)", references="room"),
        Column(name="seat", type="varchar(9)", references="seat"),
    ),
    children=(Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="phoneno"),)),),
)
ROOM = Table(name="room", class_name="Ro<om", columns=(Column(name="no", key=1),))
SEAT = Table(name="seat", columns=(Column(name="row", key=1), Column(name="place", key=2)))
CATALOG = Catalog((USR, ROOM, SEAT))

any_text = st.text(st.characters(codec=None), max_size=20) | st.text(
    "<>&\"'\r\n\t \x00\x1f\ud83d\ufffe\uffffé😀a", max_size=8
)
"""Every code point, and often those that matter to XML: reserved, white, forbidden, halves of pairs."""
xml_text = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
        lambda c: c >= " " or c in "\t\r\n"
    ),
    max_size=20,
)
"""What XML 1.0 can carry."""
zones = st.none() | st.integers(-14 * 60, 14 * 60).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
logged = st.one_of(
    any_text,
    st.integers(-9, 9**9).map(str),
    st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode()),
    st.sampled_from(["true", "F", "yes", "2"]),
    st.datetimes().map(str),
    st.dates().map(str),
    st.times().map(str),
)
read_back = st.one_of(
    st.integers(),
    st.floats(),
    st.decimals(),
    st.booleans(),
    st.binary(max_size=9),
    st.datetimes(timezones=zones),
    st.dates(),
    st.times(timezones=zones),
)
cells = st.one_of(st.none(), logged, read_back, st.lists(logged | read_back | st.none(), max_size=3).map(tuple))
fitting: dict[str, st.SearchStrategy[Any]] = {
    "fname": xml_text,
    "age": st.integers(-(10**20), 10**20) | st.integers().map(str),
    "pay": st.decimals(allow_nan=False, allow_infinity=False) | xml_text,
    "photo": st.binary(max_size=20),
    "active": st.booleans() | st.sampled_from("01tfyn"),
    "born": st.dates(dt.date(1970, 1, 1), dt.date(2106, 2, 6)),
    "rises": st.times(),
    "seen": st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(2106, 2, 6)),
    "manager": st.integers(0, 99),
    "room": xml_text,
    "seat": xml_text,
    "usr_phone.phoneno": st.sampled_from("abc") | xml_text,
    "unknown": xml_text,
}


@st.composite
def edits(draw: st.DrawFn, *, fit: bool) -> Edit:
    """Draw an edit; with `fit` its values suit the column and XML."""
    column = draw(st.sampled_from(list(fitting)) | (st.nothing() if fit else any_text))
    value = (st.none() | fitting[column]) if fit else cells
    maybe = st.just(ABSENT) | value
    return Edit(column=column, old=draw(maybe), new=draw(maybe), reset=draw(st.booleans()))


@st.composite
def changes(draw: st.DrawFn, number: int = 1, *, fit: bool, values_fit: bool | None = None) -> Change:
    """Draw a change of one to three events; with `fit` it can be expressed, unless it is empty.

    `values_fit` overrides it for values.
    """
    table = draw(st.sampled_from(["usr", "room", "direct.log"]) | (st.nothing() if fit else any_text))
    schema = draw(st.none() | st.sampled_from(["indirect", "a,b"])) if table != "usr" else "indirect"
    positions = tuple((number * 10 + n,) for n in range(draw(st.integers(1, 3))))
    key = draw(st.sampled_from(["idu=1", 'idu="a+b"', "a=1+b=<&>"]) | (xml_text if fit else any_text))
    found = draw(st.lists(edits(fit=fit if values_fit is None else values_fit), max_size=5))
    return Change(
        row=RowId(schema, table, key),
        op=draw(st.sampled_from([Op.ADD, Op.MODIFY, Op.DELETE])),
        edits=tuple(found),
        positions=positions,
    )
