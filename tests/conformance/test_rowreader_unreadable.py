"""Rows that cannot be read back, on each database: one of them keeps no other from being read, and says why; and their size."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.core.errors import SourceError
from eventlog.core.model import Reason, RowId, Unreadable
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.sql.rows import Room, SqlRowReader

INTEGER = Column(name="id", type="integer", key=1)
TALL = {"sqlite": "TEXT", "postgresql": "TEXT", "mysql": "LONGTEXT"}
FAILS = {
    "sqlite": "json_extract(said, '$.a')",
    "postgresql": "1 / (said = '1')::integer",
    "mysql": "CASE WHEN said = '1' THEN 1 ELSE 9223372036854775807 + id END",
}
"""What fails for one row of a view: malformed JSON, a division by zero, a number that is too large."""
GOOD = {"sqlite": '{"a": 5}', "postgresql": "1", "mysql": "1"}
ROOM = Room(share=10_000, value_limit=20_000)


def run(engine: Engine, *statements: str, rows: Any = None) -> None:
    with engine.begin() as connection:
        for sql in statements:
            connection.execute(text(sql), rows)


def wanted(table: str, keys: range | list[int], *attributes: str) -> dict[RowId, frozenset[str]]:
    return {RowId(None, table, f"id={key}"): frozenset(attributes) for key in keys}


@pytest.fixture
def view(engine: Engine) -> Table:
    """Make a view of eleven objects with an expression failing for the fourth and the ninth."""
    name = engine.dialect.name if engine.dialect.name != "mariadb" else "mysql"
    run(engine, f"CREATE TABLE base (id INTEGER NOT NULL PRIMARY KEY, said VARCHAR(20), more {TALL[name]})")
    for key in range(1, 12):
        said = "bad" if key in (4, 9) else GOOD[name]
        run(engine, "INSERT INTO base VALUES (:id, :said, :more)", rows={"id": key, "said": said, "more": f"m{key}"})
    run(engine, f"CREATE VIEW people AS SELECT id, more, {FAILS[name]} AS risky FROM base")
    columns = (INTEGER, Column(name="more", type="text"), Column(name="risky", type="integer"))
    return Table(name="people", columns=columns)


@pytest.mark.parametrize("room", [None, ROOM])
def test_an_object_that_cannot_be_read_is_named_with_its_column_and_all_others_are_read(
    engine: Engine, view: Table, room: Room | None
) -> None:
    reader = SqlRowReader(engine, Catalog([view]), room)
    found = reader.rows(wanted("people", range(1, 13), "more", "risky"))
    bad = {row.key: said for row, said in found.items() if isinstance(said, Unreadable)}
    assert sorted(bad) == ["id=4", "id=9"]
    assert len(found) == 11
    one = bad["id=4"]
    assert (one.reason, one.row) == (Reason.INVALID, {"more": "m4"})
    assert one.note.startswith("people id=4 cannot be read back: column risky: ")
    good = found[RowId(None, "people", "id=3")]
    assert isinstance(good, dict)
    assert good["more"] == "m3"


def test_columns_that_can_be_read_are_whoever_else_asks_for_one_that_cannot(engine: Engine, view: Table) -> None:
    reader = SqlRowReader(engine, Catalog([view]))
    asked = wanted("people", [3, 4], "more") | wanted("people", [9], "risky")
    found = reader.rows(asked)
    assert [found[row] for row in list(asked)[:2]] == [{"more": "m3"}, {"more": "m4"}]
    assert isinstance(found[RowId(None, "people", "id=9")], Unreadable)


@pytest.mark.parametrize("room", [None, ROOM])
def test_a_table_that_is_not_as_it_was_is_for_the_caller_to_hear_of(engine: Engine, room: Room | None) -> None:
    run(
        engine,
        "CREATE TABLE people (id INTEGER NOT NULL PRIMARY KEY, more VARCHAR(9))",
        "INSERT INTO people VALUES (1, 'a')",
    )
    columns = (INTEGER, Column(name="more", type="text"), Column(name="gone", type="text"))
    reader = SqlRowReader(engine, Catalog([Table(name="people", columns=columns)]), room)
    with pytest.raises(SourceError) as raised:
        reader.rows(wanted("people", [1], "more", "gone"))
    assert not raised.value.may_pass
    with pytest.raises(SourceError):
        SqlRowReader(engine, Catalog([Table(name="nobody", columns=columns)]), room).rows(wanted("nobody", [1], "more"))


def test_a_table_that_may_not_be_read_is_told_and_others_are_read(postgresql: Engine) -> None:
    run(
        postgresql,
        "CREATE TABLE secret (id integer PRIMARY KEY, more text)",
        "CREATE TABLE people (id integer PRIMARY KEY, more text)",
        "INSERT INTO people VALUES (1, 'a')",
        "CREATE ROLE reads_some LOGIN",
        "GRANT SELECT ON people TO reads_some",
    )
    columns = (INTEGER, Column(name="more", type="text"))
    catalog = Catalog([Table(name=name, columns=columns) for name in ("secret", "people")])
    engine = create_engine(postgresql.url.set(username="reads_some"))
    try:
        found = SqlRowReader(engine, catalog).rows(wanted("secret", [1, 2], "more") | wanted("people", [1], "more"))
    finally:
        engine.dispose()
        run(postgresql, "DROP OWNED BY reads_some", "DROP ROLE reads_some")
    assert found[RowId(None, "people", "id=1")] == {"more": "a"}
    said = [found[RowId(None, "secret", f"id={key}")] for key in (1, 2)]
    assert [one.reason for one in said if isinstance(one, Unreadable)] == [Reason.NO_RIGHT] * 2
    assert isinstance(said[0], Unreadable)
    assert "secret may not be read back: permission denied for table secret" in said[0].note


@pytest.fixture
def tall(engine: Engine) -> Table:
    """Make objects with values of several lengths, in a table with a child."""
    kind = TALL[engine.dialect.name if engine.dialect.name != "mariadb" else "mysql"]
    run(
        engine,
        f"CREATE TABLE people (id INTEGER NOT NULL PRIMARY KEY, more {kind}, short VARCHAR(9))",
        f"CREATE TABLE people_said (id INTEGER, said {kind})",
    )
    lengths = {1: 10, 2: 6000, 3: 10, 4: 6000, 5: 15_000, 6: 25_000, 7: None}
    for key, length in lengths.items():
        values = {"id": key, "more": None if length is None else "x" * length, "short": f"s{key}"}
        run(engine, "INSERT INTO people VALUES (:id, :more, :short)", rows=values)
        run(engine, "INSERT INTO people_said VALUES (:id, :said)", rows={"id": key, "said": "y" * (key % 3)})
    columns = (INTEGER, Column(name="more", type="text"), Column(name="short", type="varchar(9)"))
    child = Child(name="people_said", parent_key=("id",), columns=(INTEGER, Column(name="said", type="text")))
    return Table(name="people", columns=columns, children=(child,))


def told(found: Any) -> dict[str, Any]:
    """Return the length of each value read, or the reason why it was not."""
    return {
        row.key: said.reason if isinstance(said, Unreadable) else len(said["more"] or "") for row, said in found.items()
    }


def test_what_is_read_back_has_room_or_waits_in_order(engine: Engine, tall: Table) -> None:
    reader = SqlRowReader(engine, Catalog([tall]), ROOM)
    found = reader.rows(wanted("people", range(1, 9), "more", "short", "people_said.said"))
    assert told(found) == {
        "id=1": 10,
        "id=2": 6000,
        "id=3": 10,
        "id=4": Reason.NO_ROOM,
        "id=5": Reason.NO_ROOM,
        "id=6": Reason.INVALID,
        "id=7": 0,
    }
    assert found[RowId(None, "people", "id=2")] == {"more": "x" * 6000, "short": "s2", "people_said.said": ("yy",)}
    too_large = found[RowId(None, "people", "id=6")]
    assert isinstance(too_large, Unreadable)
    assert too_large.note.startswith("The row id=6 of people has 2500")
    assert too_large.note.endswith("more than publisher.value_limit, which is 20000. Raise it and requeue the row.")
