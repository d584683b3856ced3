"""The one home of random data: keys, events of any quality, and histories that know how they end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import strategies as st
from msgspec import Struct, field

from eventlog.core.model import REFRESH, REFRESH_FOR, Event, Kind, Row, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.policies import steps
from eventlog.policies.steps import Steps

CATALOG = Catalog(
    [
        Table(
            name="usr",
            columns=(Column(name="idu", type="integer", key=1), Column(name="fname"), Column(name="lname")),
            children=(Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="phoneno"),)),),
        )
    ]
)
PHONE = "usr_phone.phoneno"

anything = st.text(st.characters(codec=None))
"""Every code point, lone surrogates and control characters too."""
tricky = st.text(st.one_of(st.sampled_from(",;'+\"=\\<> \t\nAaé1"), st.characters(codec="utf-8")), max_size=12)
key_names = st.text(st.characters(codec="utf-8", exclude_characters=",;'+\"=\\<>"), min_size=1, max_size=8).filter(
    lambda name: name == name.strip(" ")
)
key_columns = st.dictionaries(key_names, tricky, min_size=1, max_size=4)


@st.composite
def events_of_any_quality(draw: st.DrawFn, number: int) -> Event:
    """Draw a log row as a careless trigger may write it: each column is mostly right."""
    return Event(
        position=(number,),
        kind=draw(_mostly([*Kind], [None, -1, 0, 9, 10])),
        table=draw(_mostly(["usr", "USR"], [None, "usr_phone", "nosuch", ""])),
        key=draw(_mostly(["idu=1", "idu= 1", "IDU=2", 'idu="2"'], [None, "idx=1", "nonsense", ""])),
        column=draw(_mostly(["fname", "LNAME", PHONE], [None, "phoneno", "idu", "nosuch", " "])),
        old=draw(st.none() | st.sampled_from(["a", "b"])),
        new=draw(st.none() | st.sampled_from(["a", "b"])),
        time=draw(_mostly(["2026-01-01 00:00:00", "2026-01-02 00:00:00"], [None, "soon"])),
        perpetrator=draw(_mostly([None, "app"], ["idm", "IDM ", REFRESH, f"{REFRESH_FOR}far", f"{REFRESH_FOR}near "])),
    )


def _mostly(right: Sequence[Any], wrong: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Draw a right one nine times in ten, else a wrong one."""
    return st.integers(0, 9).flatmap(lambda dice: st.sampled_from(wrong if dice == 9 else right))


@st.composite
def careless_logs(draw: st.DrawFn) -> list[Event]:
    """Draw rows of any quality, in order."""
    return [draw(events_of_any_quality(number)) for number in range(1, 1 + draw(st.integers(0, 12)))]


class History(Struct, kw_only=True):
    """What triggers wrote about a few objects, and what the tables hold in the end."""

    events: list[Event] = field(default_factory=list)
    rows: dict[RowId, dict[str, Any]] = field(default_factory=dict)

    def log(
        self, kind: Kind, key: str, column: str | None = None, old: str | None = None, new: str | None = None
    ) -> None:
        self.events.append(
            Event(
                position=(len(self.events) + 1,),
                kind=kind,
                table="usr",
                key=key,
                column=column,
                old=old,
                new=new,
                time="2026-01-01 00:00:00",
            )
        )

    @property
    def table(self) -> dict[RowId, Row]:
        """Return the rows read back after everything has happened."""
        return {row: {**values, PHONE: tuple(sorted(values[PHONE]))} for row, values in self.rows.items()}


STYLES = {
    "row-back": (Kind.INSERT_ROW_BACK, Kind.UPDATE_ROW_BACK),
    "field": (Kind.INSERT_FIELD, Kind.UPDATE_FIELD),
    "field-replace": (Kind.INSERT_FIELD, Kind.REPLACE_FIELD),
    "field-back": (Kind.INSERT_FIELD_BACK, Kind.UPDATE_FIELD_BACK),
}
values = st.none() | st.sampled_from(["", "a", "b", "c"])


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Inserts, updates, child rows and deletes of three objects, logged in any mixture of the four styles."""
    history = History()
    for _ in range(draw(st.integers(1, 12))):
        row = RowId(None, "usr", f"idu={draw(st.integers(1, 3))}")
        style = draw(st.sampled_from(sorted(STYLES)))
        if row not in history.rows:
            _insert(history, row, style, draw(values), draw(values))
            continue
        step = draw(st.sampled_from(["update", "update", "phone", "delete"]))
        if step == "update":
            _update(history, row, style, {"fname": draw(values), "lname": draw(values)})
        elif step == "phone":
            _phone(history, row, style, draw(st.sampled_from(["1", "2"])))
        else:
            del history.rows[row]
            history.log(Kind.DELETE_ROW, row.key)
    return history


def _insert(history: History, row: RowId, style: str, fname: str | None, lname: str | None) -> None:
    history.rows[row] = {"fname": fname, "lname": lname, PHONE: set()}
    kind = STYLES[style][0]
    if style == "row-back":
        history.log(kind, row.key)
        return
    filled: list[tuple[str, str | None]] = [
        (column, value) for column, value in (("fname", fname), ("lname", lname)) if value is not None
    ]
    for column, value in filled or [("fname", None)]:
        history.log(kind, row.key, column, None, value if style != "field-back" else None)


def _update(history: History, row: RowId, style: str, new: dict[str, str | None]) -> None:
    kind = STYLES[style][1]
    changed = {column: value for column, value in new.items() if history.rows[row][column] != value}
    if style == "row-back" and changed:
        history.log(kind, row.key)
    for column, value in changed.items():
        if style == "field-back":
            history.log(kind, row.key, column)
        elif style != "row-back":
            history.log(kind, row.key, column, history.rows[row][column], value)
    history.rows[row].update(changed)


def _phone(history: History, row: RowId, style: str, number: str) -> None:
    """Toggle the number, logged as the project's child triggers do."""
    phones: set[str] = history.rows[row][PHONE]
    if style == "row-back":
        history.log(Kind.UPDATE_ROW_BACK, row.key)
    elif style == "field-back":
        history.log(Kind.UPDATE_FIELD_BACK, row.key, PHONE)
    elif number in phones:
        history.log(Kind.UPDATE_FIELD, row.key, PHONE, number, None)
    else:
        history.log(Kind.INSERT_FIELD, row.key, PHONE, None, number)
    phones ^= {number}


@st.composite
def policies(draw: st.DrawFn) -> Steps:
    """Steps of all kinds, in any order that tells no attribute twice."""
    found = draw(st.lists(st.sampled_from(_STEPS), min_size=1, max_size=5, unique_by=id))
    return tuple(found)


_SECRET = "a secret of tests only"
_STEPS: Sequence[steps.Step] = (
    steps.OnlyTables(classes=("usr",)),
    steps.WithoutTables(classes=("usr_phone",)),
    steps.Keep(attributes=("fname", "Given Name", "full")),
    steps.Drop(attributes=("lname",)),
    steps.Drop(attributes=("usr_phone.*", "Telephone")),
    steps.Rename(class_name="User", attributes={"fname": "Given Name", PHONE: "Telephone"}),
    steps.Redact(attributes=("lname", "Telephone")),
    steps.Hash(attributes=("idu", "fname"), secret=_SECRET),
    steps.Encrypt(attributes=("Given Name", PHONE), secret=_SECRET),
    steps.Constant(attribute="origin", value="hr"),
    steps.Text(attributes=("fname", "Given Name"), to="upper"),
    steps.Join(attribute="full", of=("fname", "Given Name", "lname")),
    steps.Map(attributes=("lname",), values={"a": "x", "b": ""}, otherwise="other"),
    steps.Compute(attribute="greeting", expression="'Hello ' + string(new.fname)", on_error="null"),
    steps.Compute(attribute="both", expression="new.fname + new.lname"),
    steps.Where(condition="new.fname != 'a'"),
    steps.Where(condition="new.fname > 'a'", on_error="leave-out"),
    steps.Where(condition="new.lname.startsWith('b')", on_error="tell", when_leaving="delete"),
    steps.Where(condition="new.fname == 'b' || new.lname == 'c'", on_error="leave-out", when_leaving="delete"),
    steps.Number(attributes=("lname",), on_error="keep"),
    steps.Number(attributes=("Given Name",)),
    steps.Date(attributes=("fname",), form="%d.%m.%Y", on_error="null"),
    steps.Route(to="{class}_{new.lname}", otherwise="others"),
    steps.Route(to="to_{new.idu}_{new.fname}"),
    steps.Route(to="all_of_{table}", classes=("usr",)),
)


def cuts(history: History) -> st.SearchStrategy[list[int]]:
    """Draw places to cut a history's events into batches."""
    last = len(history.events) - 1
    if last < 1:
        return st.just([])
    return st.lists(st.integers(1, last), min_size=1, max_size=4).map(sorted)


def pieces(events: list[Event], places: list[int]) -> Iterator[list[Event]]:
    """Yield the batches between the cuts."""
    for start, end in zip([0, *places], [*places, len(events)], strict=True):
        yield events[start:end]


identifiers = st.sampled_from(["idu", "fname", "pk_empno", "mv_phoneno", "fk__idu__boss", "Name", "a b", "Ü"])
sql_types = st.sampled_from(["varchar", "integer", "numeric(10,2)", "bytea", "timestamp"])


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Draw a table or view with a key, and perhaps a child table with this key."""
    names = draw(st.lists(identifiers, min_size=1, max_size=5, unique=True))
    keyed = draw(st.integers(1, len(names)))
    columns = tuple(
        Column(name=name, type=draw(sql_types), key=place if place <= keyed else None, nullable=place > keyed)
        for place, name in enumerate(names, 1)
    )
    parent_key = tuple(f"parent_{number}" for number in range(keyed))
    child = Child(name="child", parent_key=parent_key, columns=(Column(name="value", type=draw(sql_types)),))
    return Table(
        name=draw(identifiers),
        columns=columns,
        schema=draw(st.none() | st.just("hr")),
        class_name=draw(st.none() | st.just("person")),
        number=draw(st.none() | st.integers(0, 99)),
        children=draw(st.sampled_from([(), (child,)])),
        view=draw(st.booleans()),
    )
