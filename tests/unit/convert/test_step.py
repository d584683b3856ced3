"""The step that every engine runs: results for whole objects, however the rows are cut, without a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from eventlog.convert import step as stepping
from eventlog.convert.rows import PLACED, ROWS, Placing, object_text
from eventlog.convert.settings import Conversion, FilesInput, MessageFiles, TableFiles
from eventlog.convert.step import CHANGE, DUPLICATE, ENDING, OUTCOME, REFUSAL, Reread, kind_of, step
from eventlog.core.model import Event, Kind, RowId
from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.schema import Catalog, Column, Table
from eventlog.policies.steps import Redact
from tests.support.converting import LogRow, log_row, row_of
from tests.support.daily import daily
from tests.support.examples import examples
from tests.support.strategies import CATALOG, careless_logs

CONVERSION = Conversion(input=FilesInput(places=()), destination=Path("nowhere"), catalog=CATALOG)
ALTERED = Event(
    position=(0,), kind=Kind.INSERT_FIELD, table="usr", key="idu=1", column="idu", new="a", time="2026-01-01"
)
"""A value that is left out because it is none of the column's type."""


@contextmanager
def in_memory(batches: Iterable[pa.RecordBatch]) -> Iterator[Reread]:
    """Keeps the pieces of a large object as a list."""
    kept = list(batches)
    yield lambda: kept


def results(
    rows: list[LogRow], size: int = 1000, conflicts: tuple[int, ...] = (), conversion: Conversion = CONVERSION
) -> list[pa.RecordBatch]:
    """The results of rows that come in the order of their objects, in batches of this size."""
    told = [{"problem": None} | row for row in rows]
    placed = Placing(conversion.catalog).place(pa.RecordBatch.from_pylist(told, schema=ROWS))
    ordered = placed.sort_by([("object", "ascending"), ("record_id", "ascending")])
    batches = [ordered.slice(start, size) for start in range(0, len(ordered), size)]
    return list(step([batch.cast(PLACED) for batch in batches], conversion, in_memory, conflicts=conflicts))


def told(found: Iterable[pa.RecordBatch]) -> list[tuple[object, ...]]:
    """Results, without the text of changes, in the order of positions."""
    names = ("position", "kind", "object", "op", "status", "reason")
    rows = [tuple(row[name] for name in names) for batch in found for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row[0] is None, row[0] or 0, str(row[1])))


def test_every_row_has_a_result_that_says_what_it_is() -> None:
    rows = [
        log_row(1),
        log_row(1),
        log_row(2, table_key="nonsense"),
        log_row(3, table_key="idu=3", new_value="\u0001"),
        log_row(4, table_key="idu=4", event_type=4, column_name=None, new_value=None),
        log_row(5, table_key="idu=5"),
        log_row(6, table_key="idu=6", event_type=None, problem="event_type is 'x'."),
        log_row(None, problem="record_id is NULL; it must be a number."),
    ]
    assert told(results(rows, conflicts=(5,))) == [
        (1, CHANGE, "usr idu=1", "add", None, None),
        (1, DUPLICATE, None, None, None, None),
        (1, OUTCOME, None, None, "S", "published"),
        (2, OUTCOME, None, None, "E", "invalid"),
        (3, CHANGE, "usr idu=3", "add", None, None),
        (3, REFUSAL, None, None, "W", "altered"),
        (4, CHANGE, "usr idu=4", "delete", None, None),
        (4, OUTCOME, None, None, "S", "published"),
        (5, OUTCOME, None, None, "E", "invalid"),
        (6, OUTCOME, None, None, "E", "invalid"),
        (None, OUTCOME, None, None, "E", "invalid"),
    ]


@daily
@given(careless_logs(), st.integers(1, 4), st.integers(1, 4))
@example([ALTERED], 1, 1)
@examples(40)
def test_results_do_not_depend_on_how_rows_are_cut(events: list[Event], size: int, chunk: int) -> None:
    rows = [row_of(event) for event in events]
    whole = told(results(rows))
    with pytest.MonkeyPatch.context() as patch:
        for size_of in ("CHUNK_ROWS", "SHAPED_ROWS"):
            patch.setattr(stepping, size_of, chunk)
        assert told(results(rows, size)) == whole
    kinds = Counter(row[1] for row in whole)
    assert kinds[OUTCOME] + kinds[REFUSAL] + kinds[DUPLICATE] == len(rows)


def test_an_object_is_told_with_its_schema_where_it_has_one() -> None:
    assert object_text(RowId("hr", "usr", "idu=1")) == "hr.usr idu=1"


def test_refusals_come_with_outcomes() -> None:
    for first in (OUTCOME, REFUSAL):
        assert kind_of(pa.RecordBatch.from_pylist([{"kind": first}, {"kind": OUTCOME}])) == OUTCOME


def test_without_tables_keys_are_taken_as_they_stand() -> None:
    without_tables = told(results([log_row(1)], conversion=replace(CONVERSION, catalog=None)))
    assert [row[1] for row in without_tables] == [CHANGE, OUTCOME]


ID = Column(name="id", key=1)


def test_rows_are_read_by_the_definitions_of_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    former = Table(name="person", columns=(ID, Column(name="post"), Column(name="fax")), gone=("fax",))
    today = Table(name="person", columns=(ID, Column(name="mail")))
    city = Table(name="city", columns=(ID, Column(name="name")))
    tables = Catalog([today, city])
    definitions = [
        Definition(table=former, today=today, renamed={"post": "mail"}),
        Definition(table=today, today=today, first=5),
    ]
    catalog = Catalog(tables, former=Definitions(definitions, tables))
    conversion = replace(CONVERSION, catalog=catalog)

    def row(number: int, table: str, key: int, column: str) -> LogRow:
        return log_row(
            number, event_type=2, table_name=table, table_key=f"id={key}", column_name=column, new_value=f"<{number}>"
        )

    rows = [
        *[
            row(1, "person", 1, "post"),
            row(2, "city", 1, "name"),
            row(3, "person", 1, "fax"),
            row(4, "person", 2, "fax"),
        ],
        *[row(5, "person", 1, "mail"), row(6, "person", 1, "mail"), row(7, "person", 2, "mail")],
    ]

    def written(found: list[pa.RecordBatch]) -> dict[int, list[str]]:
        """The attributes of each change, by its last row."""
        changes = [one for batch in found if stepping.kind_of(batch) == CHANGE for one in batch.to_pylist()]
        return {one["position"]: re.findall(r'attr-name="(\w+)"', one["text"]) for one in changes}

    whole = results(rows, conversion=conversion)
    assert written(whole) == {2: ["name"], 3: ["mail", "fax"], 4: ["fax"], 5: ["mail"], 6: ["mail"], 7: ["mail"]}
    assert {one[4] for one in told(whole) if one[1] == OUTCOME} == {"S"}
    monkeypatch.setattr(stepping, "CHUNK_ROWS", 2)
    monkeypatch.setattr(stepping, "SHAPED_ROWS", 2)
    pieces = results(rows, 1, conversion=conversion)
    assert written(pieces) == written(whole)
    assert told(pieces) == told(whole)
    for form in (MessageFiles(), TableFiles()):
        assert told(results(rows, 1, conversion=replace(conversion, format=form)))
    # Steps name columns as they are called today, so what has no such name is left out.
    stepped = replace(conversion, steps=(Redact(attributes=("mail",)),))
    assert written(results(rows, conversion=stepped)) == {
        2: ["name"],
        3: ["mail"],
        5: ["mail"],
        6: ["mail"],
        7: ["mail"],
    }


def test_whole_transactions_say_where_they_end() -> None:
    rows = [log_row(number, eventlog_transaction=number % 2) for number in range(1, 6)]
    whole = replace(CONVERSION, format=MessageFiles(), transactions="whole")
    kinds = [kind_of(batch) for batch in results(rows, conversion=whole)]
    assert ENDING in kinds
    assert CHANGE in kinds
    nothing = [kind_of(batch) for batch in results([log_row(1, table_key="nonsense")], conversion=whole)]
    assert nothing == [OUTCOME]
