"""Changes by the shapes of rows are those of the rules and the writer, to the byte; and most rows take this way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.convert import by_shape
from eventlog.convert import step as stepping
from eventlog.convert.by_shape import RowsByShape, by_shape_of
from eventlog.convert.rows import PLACED, ROWS, Placing
from eventlog.convert.settings import ChangeRows, Conversion, FilesInput
from eventlog.convert.step import CHANGE, kind_of, step
from eventlog.core.model import REFRESH, REFRESH_FOR, Edit, Event, Kind
from eventlog.core.rules import Options, lifetimes
from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.policies.steps import Redact
from eventlog.xds import shapes, write
from eventlog.xds.shapes import SYMBOLS, LogRowShape, Shapes, shapes_of
from eventlog.xds.values import not_digits, special
from eventlog.xds.write import XdsFormat
from tests.support.converting import LogRow, log_row, row_of
from tests.support.daily import daily
from tests.support.examples import examples
from tests.support.shares import met, shares
from tests.support.strategies import careless_logs, tricky

USR = Table(
    name="usr",
    schema="hr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname"),
        Column(name="lname", type="varchar(20)"),
        Column(name="age", type="integer"),
        Column(name="since", type="timestamp"),
        Column(name="active", type="boolean"),
        Column(name="boss", type="integer", references="usr"),
    ),
    children=(Child(name="usr_phone", parent_key=("idu",), columns=(Column(name="phoneno"),)),),
)
NOTES = Table(name="notes", columns=(Column(name="code", type="varchar(9)", key=1), Column(name="text")))
TABLES = Catalog([USR, NOTES])
CONVERSION = Conversion(input=FilesInput(places=()), destination=Path("nowhere"), catalog=TABLES)
COLUMNS = ["fname", "lname", "age", "since", "active", "boss", "usr_phone.phoneno"]

values = (
    st.none()
    | tricky
    | st.sampled_from(
        [
            "1",
            "007",
            "+7",
            "1.0",
            "",
            "true",
            "2025-03-01 10:00:00",
            "2025-02-30 10:00:00",
            "R&D",
            "a\rb",
            "\ufffe",
            "\x01",
        ]
    )
)


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Rows of a few objects, nearly all as triggers write fields."""
    events = []
    usual = st.sampled_from([1, 1, 1, 2, 2, 2, 2, 3, 4] if draw(st.integers(0, 3)) else [*Kind, None, 9])
    for number in range(1, 1 + draw(st.integers(1, 14))):
        kind = draw(usual)
        table, key = draw(
            st.sampled_from(
                [("usr", "idu=1"), ("usr", "idu=2"), ("usr", "idu=3"), ("notes", "code=a&b"), ("notes", "code=x")]
                + [("USR", "idu=1"), ("usr", "idu= 1"), ("usr", "x"), ("nosuch", "a=1"), ("usr", "*")][
                    : draw(st.integers(0, 5))
                ]
            )
        )
        column = draw(st.sampled_from(COLUMNS if table != "notes" else ["text"]))
        is_row = kind in (Kind.DELETE_ROW, Kind.INSERT_ROW_BACK, Kind.UPDATE_ROW_BACK)
        old, new = (None, None) if is_row and draw(st.integers(0, 9)) else (draw(values), draw(values))
        events.append(
            Event(
                position=(number,),
                kind=kind,
                table=table,
                key=key,
                column=None if is_row else column,
                old=None if kind == Kind.INSERT_FIELD else old,
                new=new,
                time=draw(st.sampled_from(["2026-01-01"] * 9 + [None])),
                perpetrator=draw(st.sampled_from(["app"] * 7 + [None, "me", REFRESH, f"{REFRESH_FOR}far"])),
            )
        )
    return events


def placed(rows: Sequence[LogRow], catalog: Catalog | None) -> pa.RecordBatch:
    """Rows in the order of their objects."""
    batch = pa.RecordBatch.from_pylist([{"problem": None} | row for row in rows], schema=ROWS)
    ordered = Placing(catalog).place(batch).sort_by([("object", "ascending"), ("record_id", "ascending")])
    return ordered.cast(PLACED)


def never(_batches: Any) -> Any:
    raise AssertionError("an object too large for a chunk")


def results(events: Sequence[Event], conversion: Conversion, *, by_rules: bool = False) -> list[dict[str, Any]]:
    """All results of the step, in the order of positions."""
    batch = placed(list(map(row_of, events)), conversion.catalog)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stepping, "FEW_ROWS", 0)
        if by_rules:
            patch.setattr(stepping, "by_shape_of", lambda _: None)
        found = [row for results in step([batch], conversion, never) for row in results.to_pylist()]
    return sorted(found, key=lambda row: (row["kind"] != CHANGE, row["position"]))


@pytest.fixture
def unlearned() -> Iterator[None]:
    """Nothing is known of any shape."""
    shapes._kept_shapes.cache_clear()  # as in a process that begins
    yield
    shapes._kept_shapes.cache_clear()  # what a test has learned may be wrong


forms = st.builds(
    XdsFormat,
    time_syntax=st.sampled_from([1, 2, 3]),
    on_value=st.sampled_from(["omit", "refuse"]),
    enable_refs=st.booleans(),
    envelope=st.booleans(),
)


@daily
@shares(changes=0.7, shaped=0.2)
@given(logs() | careless_logs(), forms, st.booleans(), st.sampled_from([None, "me"]))
@examples(150)
def test_changes_by_shape_are_those_of_the_rules(
    events: list[Event], form: XdsFormat, described: bool, user: str | None
) -> None:
    conversion = replace(CONVERSION, catalog=TABLES if described else None, format=form, options=Options(user=user))
    expected = results(events, conversion, by_rules=True)
    assert results(events, conversion) == expected
    shaped = by_shape_of(conversion)
    assert shaped is not None
    met(
        changes=any(row["kind"] == CHANGE for row in expected),
        shaped=bool(shaped.write(placed(list(map(row_of, events)), conversion.catalog)).columns),
    )


def _edit_by_value(event: Event, row: Any) -> Edit:
    made = edit(event, row)
    return replace(made, reset=True) if event.new == "1" else made


def _say_by_value(screened: Any, events: list[Event]) -> list[Event]:
    return [event for event in saying_something(screened, events) if event.new != ""]


edit, saying_something = lifetimes.edit, lifetimes.saying_something


@pytest.mark.in_turn
@pytest.mark.parametrize("rule, broken", [("edit", _edit_by_value), ("saying_something", _say_by_value)])
@pytest.mark.usefixtures("unlearned")
def test_a_rule_that_looks_at_a_value_is_found(
    rule: str, broken: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifetimes, rule, broken)
    enough = settings(max_examples=5_000, database=None, phases=[Phase.generate])

    def is_told(events: list[Event]) -> bool:
        return results(events, CONVERSION) != results(events, CONVERSION, by_rules=True)

    assert is_told(find(logs(), is_told, settings=enough))


def usual_rows() -> list[LogRow]:
    """Objects are inserted, updated twice and deleted; some values need escaping, or have a type."""
    rows: list[LogRow] = []
    for idu in range(1, 6):
        key = {"table_key": f"idu={idu}"}
        told = {"fname": "R&D", "age": "7", "since": "2025-03-01 10:00:00", "boss": "1", "active": "t"}
        rows += [
            log_row(len(rows) + place, **key, column_name=column, new_value=value)
            for place, (column, value) in enumerate(told.items(), 1)
        ]
        for old, new in (("a", None), (None, "b"), (None, None)):
            update = {"event_type": 2, "column_name": "lname", "old_value": old, "new_value": new}
            rows.append(log_row(len(rows) + 1, **key, **update))
        age = {"event_type": 2, "column_name": "age", "old_value": "7", "new_value": "+8"}
        rows.append(log_row(len(rows) + 1, **key, **age))
        rows.append(log_row(len(rows) + 1, **key, event_type=4, column_name=None, new_value=None))
    return rows


def test_usual_rows_never_become_events(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "events_of", never)
    batch = placed(usual_rows(), TABLES)
    found = list(step([batch], CONVERSION, never))
    changes = [row for batch in found if kind_of(batch) == CHANGE for row in batch.to_pylist()]
    assert [change["op"] for change in changes[:4]] == ["add", "modify", "modify", "delete"]
    assert len(changes) == 20
    outcomes = [row["reason"] for batch in found if kind_of(batch) != CHANGE for row in batch.to_pylist()]
    assert (outcomes.count("published"), outcomes.count("nothing")) == (45, 5)


@pytest.mark.usefixtures("unlearned")
@pytest.mark.parametrize(
    "change",
    [
        {"event_type": 6, "column_name": None, "new_value": None},
        {"table_key": "*", "event_type": 4, "column_name": None, "new_value": None},
        {"table_name": "USR_PHONE", "column_name": "phoneno"},
        {"column_name": "age", "new_value": "seven"},
        {"new_value": "\x01"},
        {"new_value": "\x01", "old_value": "&", "event_type": 2},
        {"event_type": 4, "column_name": None, "old_value": '["7","a"]', "new_value": None},
        {"column_name": SYMBOLS[0]},
        {"perpetrator": f"{REFRESH_FOR}far"},
        {"perpetrator": "ME "},
        {"event_time": None},
    ],
    ids=str,
)
def test_what_has_no_shape_goes_through_the_rules(change: LogRow) -> None:
    conversion = replace(CONVERSION, options=Options(user="me"))
    rows = [*usual_rows(), log_row(100, **{"table_key": "idu=9", **change})]
    shaped = RowsByShape(conversion, XdsFormat()).write(placed(rows, TABLES))
    assert shaped.rest.column("record_id").to_pylist() == [100]
    assert len(shaped.columns["position"]) == 20


def test_a_table_that_cannot_be_written_has_no_shape() -> None:
    row = {"table_name": "a\x01", "table_key": "id=1"}
    rows = placed([log_row(1, table_name="a", table_key="id=1"), log_row(2, **row), log_row(3, table_key="x=3")], None)
    shaped = RowsByShape(replace(CONVERSION, catalog=None), XdsFormat()).write(rows)
    assert shaped.rest.column("record_id").to_pylist() == [2]


@pytest.mark.usefixtures("unlearned")
def test_a_text_that_is_more_than_its_rows_has_no_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "element", lambda *arguments: f"<!-- a remark -->{write.element(*arguments)}")
    rows = placed(usual_rows(), TABLES)
    shaped = RowsByShape(CONVERSION, XdsFormat()).write(rows)
    assert not shaped.columns
    assert len(shaped.rest) == len(rows)


def test_several_values_of_one_column_go_through_the_rules() -> None:
    phone = {"table_key": "idu=9", "column_name": "usr_phone.phoneno"}
    rows = [*usual_rows(), log_row(100, **phone, new_value="1"), log_row(101, **phone, new_value="2")]
    shaped = RowsByShape(CONVERSION, XdsFormat()).write(placed(rows, TABLES))
    assert shaped.rest.column("record_id").to_pylist() == [100, 101]


def test_rows_of_former_definitions_go_through_the_rules() -> None:
    former = replace(NOTES, columns=(*NOTES.columns, Column(name="gone")))
    known = Definitions(
        [Definition(table=former, today=NOTES), Definition(table=NOTES, first=200, today=NOTES)], TABLES
    )
    conversion = replace(CONVERSION, catalog=Catalog(TABLES, former=known))
    note = log_row(100, table_name="notes", table_key="code=x", column_name="gone")
    shaped = RowsByShape(conversion, XdsFormat()).write(placed([*usual_rows(), note], TABLES))
    assert shaped.rest.column("record_id").to_pylist() == [100]


def test_two_objects_of_one_number_go_through_the_rules() -> None:
    rows = placed([log_row(1), log_row(2, table_key="idu=2"), log_row(3, table_key="idu=3")], TABLES)
    alike = pa.array([5, 5, 6], pa.int64())
    rows = rows.set_column(rows.schema.get_field_index("object"), PLACED.field("object"), alike)
    shaped = RowsByShape(CONVERSION, XdsFormat()).write(rows)
    assert len(shaped.rest) == 2


@pytest.mark.parametrize(
    "other",
    [
        {"format": XdsFormat(who=True)},
        {"format": ChangeRows()},
        {"who": True},
        {"steps": (Redact(attributes=("fname",)),)},
        {"transactions": "whole"},
        {"options": Options(coalesce=True)},
    ],
    ids=str,
)
def test_what_may_depend_on_values_or_transactions_is_not_by_shape(other: dict[str, Any]) -> None:
    assert by_shape_of(replace(CONVERSION, **other)) is None


def test_images_and_large_rows_cost_no_look_at_their_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = placed(usual_rows(), TABLES)
    monkeypatch.setattr(by_shape, "MOST_BYTES", 10)
    assert len(RowsByShape(CONVERSION, XdsFormat()).write(rows).rest) == len(rows)


@pytest.mark.usefixtures("unlearned")
def test_a_chunk_learns_few_shapes_and_the_next_one_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_shape, "MOST_LEARNED_SHAPES", 3)
    rows = placed(usual_rows(), TABLES)
    left = [len(RowsByShape(CONVERSION, XdsFormat()).write(rows).rest) for _ in range(4)]
    assert left == sorted(left, reverse=True)
    assert (left[0], left[-1]) == (len(rows), 0)


@pytest.mark.usefixtures("unlearned")
def test_few_shapes_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST_KEPT_SHAPES", 2)
    known = Shapes(TABLES, Options(), XdsFormat())
    several = [LogRowShape(1, "usr", column, old=False, new=True) for column in ("fname", "lname", "age")]
    for shape in several:
        known.learn(shape, "idu=1")
    assert [known.find(shape) is not None for shape in several] == [False, False, True]
    assert results(list(map(_event, usual_rows())), CONVERSION) == results(
        list(map(_event, usual_rows())), CONVERSION, by_rules=True
    )


def _event(row: LogRow) -> Event:
    return Event(
        position=(row["record_id"],),
        kind=row["event_type"],
        table=row["table_name"],
        key=row["table_key"],
        column=row["column_name"],
        old=row["old_value"],
        new=row["new_value"],
        time=row["event_time"],
    )


def test_equal_catalogs_share_what_was_learned() -> None:
    # Each task of a worker brings its own.
    assert shapes_of(Catalog(list(TABLES)), Options(), XdsFormat()) is shapes_of(TABLES, Options(), XdsFormat())
    assert shapes_of(TABLES, Options(), XdsFormat(time_syntax=1)) is not shapes_of(TABLES, Options(), XdsFormat())


def test_arrow_finds_the_characters_that_python_finds() -> None:
    characters = [chr(code) for code in range(0x11000) if not 0xD800 <= code < 0xE000]
    found = pc.match_substring_regex(pa.array(characters), by_shape.SPECIAL).to_pylist()
    assert found == [special(character) is not None for character in characters]
    texts = ["", "0", "12", "-1", "1.0", "١", "1a", " 1"]
    assert pc.ascii_is_decimal(pa.array(texts)).to_pylist() == [not_digits(text) is None for text in texts]
