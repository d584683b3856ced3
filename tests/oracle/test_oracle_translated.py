"""Level oracle-translated: what Oracle's triggers log, run on PostgreSQL by ora2pg and orafce, is what the native ones log.

It shows the logic of the generated PL/SQL in another engine, not Oracle; ora2pg.py says what it cannot show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from sqlalchemy import Engine, text

from eventlog.capture.plan import plan
from eventlog.capture.render import render
from eventlog.capture.track import track, untrack
from eventlog.core.errors import KeySyntaxError
from eventlog.core.rules.images import decode_image, encode_image
from eventlog.core.schema import Child, Table
from eventlog.core.tablekey import TableKey, parse
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.names import LogNames
from eventlog.tracked.options import VALUED, Style, TriggerOptions
from tests.oracle import ora2pg
from tests.oracle.generated import columns
from tests.support.logged import run

TABLES = """
CREATE TABLE usr (idu INTEGER NOT NULL, code VARCHAR(40) NOT NULL, fname VARCHAR(64), abbr CHAR(5),
  shares NUMERIC, born TIMESTAMP(0), seen TIMESTAMP(6), met TIMESTAMP(6) WITH TIME ZONE, photo BYTEA,
  PRIMARY KEY (idu, code));
CREATE TABLE usr_phone (idu INTEGER, code VARCHAR(40), phoneno VARCHAR(32), kind VARCHAR(8),
  UNIQUE (idu, code, phoneno),
  FOREIGN KEY (idu, code) REFERENCES usr (idu, code) DEFERRABLE INITIALLY DEFERRED)
"""
REPEATED = ("USR_PHONE.KIND",)
"""What `track` finds in the catalog: two phones of a user may be of one kind, and no number is there twice."""
KEY = ("IDU:NUMBER(10,0)", "CODE:VARCHAR2(40)")
USR = Table(
    name="USR",
    columns=columns(
        *KEY,
        *("FNAME:VARCHAR2(64)", "ABBR:CHAR(5)", "SHARES:NUMBER", "BORN:DATE", "SEEN:TIMESTAMP(6)"),
        *("MET:TIMESTAMP(6) WITH TIME ZONE", "PHOTO:RAW(200)"),
        keys=2,
    ),
    children=(
        Child(
            name="USR_PHONE",
            parent_key=("IDU", "CODE"),
            columns=columns(*KEY, "PHONENO:VARCHAR2(32)", "KIND:VARCHAR2(8)"),
        ),
    ),
)
CHANGES = [
    "INSERT INTO usr (idu, code) VALUES (1, 'plain')",
    (
        "INSERT INTO usr VALUES (2, ', ; '' + \" = \\ < >', 'Ida', 'ab', 0.5, '2025-03-23 10:57:19',"
        " '2025-03-23 10:57:19.25', '2025-03-23 10:57:19.25+03', '\\xaaaa')"
    ),
    (
        "INSERT INTO usr (idu, code, fname, shares) SELECT n, repeat(' ', n) || 'x', 'many ' || n, n - 4.25"
        " FROM generate_series(3, 6) AS n"
    ),
    "UPDATE usr SET fname = 'Jack'",
    "UPDATE usr SET fname = 'Jack', shares = shares",
    "UPDATE usr SET fname = 'JACK', abbr = 'x', shares = -0.25 WHERE idu < 4",
    "UPDATE usr SET fname = NULL, photo = '\\x' || decode(repeat('bb', 100), 'hex') WHERE idu = 2",
    "UPDATE usr SET born = NULL, seen = seen + INTERVAL '1 microsecond', met = met AT TIME ZONE 'UTC' WHERE idu = 2",
    "UPDATE usr SET shares = 120000, met = '1999-12-31 23:59:59+00' WHERE idu > 4",
    "INSERT INTO usr_phone VALUES (1, 'plain', '22', 'home'), (1, 'plain', NULL, NULL), (NULL, NULL, '9', NULL)",
    "UPDATE usr_phone SET phoneno = '23' WHERE phoneno = '22'",
    "UPDATE usr_phone SET kind = kind",
    "UPDATE usr_phone SET idu = 3, code = '   x' WHERE phoneno = '23'",
    "DELETE FROM usr_phone WHERE idu = 3",
    "DELETE FROM usr_phone",
    "UPDATE usr SET code = 'a=b' WHERE idu = 1",
    "UPDATE usr SET idu = 99, fname = 'moved' WHERE idu = 2",
    (
        "MERGE INTO usr USING (VALUES (1, 'a=b'), (7, 'new')) AS given (i, c) ON idu = i AND code = c"
        " WHEN MATCHED THEN UPDATE SET fname = 'merged' WHEN NOT MATCHED THEN INSERT (idu, code) VALUES (i, c)"
    ),
    "DELETE FROM usr WHERE idu > 4",
    "DELETE FROM usr",
]
Row = tuple[Any, ...]


def changed(engine: Engine, changes: Iterable[str] = CHANGES, log: str = "event_log") -> list[Row]:
    """What the log holds after the changes, with names in lower case, as PostgreSQL has them."""
    for change in changes:
        with engine.begin() as connection:
            connection.exec_driver_sql(change)
    listed = "event_type, table_name, table_key, column_name, old_value, new_value, status, perpetrator"
    with engine.begin() as connection:
        rows = connection.execute(text(f"SELECT {listed} FROM {log} ORDER BY record_id")).all()
        assert connection.execute(text(f"SELECT COUNT(*) FROM {log} WHERE event_time IS NULL")).scalar() == 0
        connection.execute(text(f"DELETE FROM {log}"))
    return [_lower(*row) for row in rows]


def _lower(kind: int, table: str, key: str, column: str | None, *rest: Any) -> Row:
    """Write a row as both do: Oracle's triggers leave out the blanks that fill a CHAR."""
    old, new, *others = rest
    if column is None:  # images, as one of the two escapes them
        old, new = (text and _image_without_blanks(*decode_image(text) or (0, [text])) for text in (old, new))
    elif column.lower() == "abbr":
        old, new = (text and text.rstrip(" ") for text in (old, new))
    parts = TableKey.parse(key).parts
    folded = TableKey.of((name.lower(), value) for name, value in parts)
    return (kind, table.lower(), str(folded), column.lower() if column else None, old, new, *others)


def _image_without_blanks(number: int, texts: Sequence[str | None]) -> str:
    return encode_image(number, [text and text.rstrip(" ") for text in texts])


def fresh(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS usr_phone; DROP TABLE IF EXISTS usr; {TABLES}")


def native(engine: Engine, options: TriggerOptions, changes: Iterable[str] = CHANGES) -> list[Row]:
    fresh(engine)
    track(engine, ["usr"], TriggerOptions(style=options.style, when=options.when, rows=True))
    found = changed(engine, changes)
    untrack(engine, ["usr"])
    return found


def put(engine: Engine, folder: Path, table: Table, options: TriggerOptions, names: LogNames | None = None) -> None:
    """Makes Oracle's triggers for a table, translated."""
    triggers = render(plan(table, options), ORACLE, names or LogNames())
    with engine.begin() as connection:
        ora2pg.load(connection, ora2pg.translated(triggers, folder))


@pytest.mark.in_turn
@pytest.mark.parametrize("when", [None, "shares IS NULL OR shares < 1000"])
@pytest.mark.parametrize("style", list(Style))
def test_the_same_changes_give_the_same_rows(database: Engine, tmp_path: Path, style: Style, when: str | None) -> None:
    options = TriggerOptions(style=style, when=when)
    expected = native(database, options)
    assert len(expected) > 30
    fresh(database)
    put(database, tmp_path, USR, replace(options, repeated=REPEATED))
    found = changed(database)
    left = [place for place, row in enumerate(found) if looks_back(found, place)]
    assert len(left) == (0 if when else 2)  # two of the changes move a row to another key
    assert [row for place, row in enumerate(found) if place not in left] == expected


@pytest.mark.parametrize("style", list(Style))
def test_a_key_that_the_log_cannot_hold_fails_no_writer(database: Engine, tmp_path: Path, style: Style) -> None:
    fresh(database)
    run(database, "ALTER TABLE usr ALTER code TYPE text")
    put(database, tmp_path, USR, TriggerOptions(style=style, repeated=REPEATED))
    long = "INSERT INTO usr (idu, code, fname) VALUES (1, repeat('x', 3989) || 'ü', 'a')"
    changes = (long, "INSERT INTO usr (idu, code, fname) VALUES (2, repeat('x', 3989), 'a')")
    run(database, *changes)
    with database.connect() as connection:
        keys = connection.exec_driver_sql("SELECT DISTINCT table_key FROM event_log ORDER BY 1").scalars().all()
    assert [key[:40] for key in keys] == ["=longer than 4000 bytes: IDU=1+CODE=xxxx", f"IDU=2+CODE={'x' * 29}"]
    with pytest.raises(KeySyntaxError, match="longer than 4000 bytes"):
        parse(keys[0])


def looks_back(rows: list[Row], place: int) -> bool:
    """Whether a row of the log reads back what stands under the key that a row left just before."""
    ended = [key for kind, _, key, *_ in rows[:place] if kind == 4]
    return rows[place][0] == 5 and ended[-1:] == [rows[place][2]]


@pytest.mark.parametrize("style", VALUED)
def test_the_end_of_a_childs_value_is_logged_without_it_where_others_may_have_it(
    database: Engine, tmp_path: Path, style: Style
) -> None:
    fresh(database)
    put(database, tmp_path, USR, TriggerOptions(style=style, repeated=REPEATED))
    changes = (
        "INSERT INTO usr (idu, code) VALUES (1, 'a')",
        "INSERT INTO usr_phone VALUES (1, 'a', '22', 'home'), (1, 'a', '23', 'home')",
        "DELETE FROM event_log",
        "DELETE FROM usr_phone WHERE phoneno = '22'",
        "UPDATE usr_phone SET kind = 'work'",
    )
    assert logged(database, *changes) == [
        (2, "USR_PHONE.PHONENO", "22", None),
        (8, "USR_PHONE.KIND", None, None),
        (8, "USR_PHONE.KIND", None, None),
        (1, "USR_PHONE.KIND", None, "work"),
    ]


@pytest.mark.in_turn
@pytest.mark.parametrize("when", [None, "fname = 'A'"])
@pytest.mark.parametrize("style", [style for style in Style if style is not Style.ROW_BACK])
def test_what_stands_under_a_key_that_is_left_is_read_back_by_native_triggers_alone(
    database: Engine, tmp_path: Path, style: Style, when: str | None
) -> None:
    again = (
        "INSERT INTO usr (idu, code, fname) VALUES (1, 'a', 'A'); INSERT INTO usr_phone VALUES (1, 'a', '22', 'home')",
        (
            "WITH gone AS (DELETE FROM usr RETURNING idu, code, fname)"
            " INSERT INTO usr (idu, code, fname) SELECT idu, code, fname FROM gone"
        ),
    )
    options = TriggerOptions(style=style, when=when)
    expected = native(database, options, again)
    [looked] = [place for place, row in enumerate(expected) if row[0] == 5 and row[5] is None]
    assert expected[looked - 1][0] == 4
    fresh(database)
    put(database, tmp_path, USR, replace(options, repeated=REPEATED))
    assert changed(database, again) == [*expected[:looked], *expected[looked + 1 :]]


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [style for style in Style if style is not Style.IMAGE])
def test_a_key_that_may_be_deferred_is_read_back_when_a_row_leaves_it(
    database: Engine, tmp_path: Path, style: Style
) -> None:
    deferred = "CREATE TABLE seat (id INTEGER PRIMARY KEY DEFERRABLE INITIALLY DEFERRED, row_name VARCHAR(9))"
    swap = (
        "INSERT INTO seat VALUES (1, 'A'), (2, 'A')",
        "UPDATE seat SET id = 3 - id",
        "INSERT INTO seat VALUES (1, 'A'); DELETE FROM seat WHERE ctid = (SELECT min(ctid) FROM seat WHERE id = 1)",
    )
    with database.begin() as connection:
        connection.exec_driver_sql(deferred)
    track(database, ["seat"], TriggerOptions(style=style, rows=True))
    expected = changed(database, swap)
    with database.begin() as connection:
        connection.exec_driver_sql(f"DROP TABLE seat; {deferred}")
    assert any(row[0] == 5 and number and expected[number - 1][0] == 4 for number, row in enumerate(expected))
    seat = Table(name="SEAT", columns=columns("ID:NUMBER(10,0)", "ROW_NAME:VARCHAR2(9)", keys=1))
    put(database, tmp_path, seat, TriggerOptions(style=style, deferred=True))
    assert changed(database, swap) == expected


@pytest.mark.parametrize("style", list(Style))
def test_keys_that_one_statement_shifts_are_read_back_and_deletes_pay_nothing(
    database: Engine, tmp_path: Path, style: Style
) -> None:
    """Oracle looks at a key when the statement ends, so no constraint stands in for it here, where rows are looked at."""
    with database.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE seat (id INTEGER, row_name VARCHAR(9))")
        connection.exec_driver_sql("INSERT INTO seat VALUES (1, 'A'), (2, 'B')")
    seat = Table(name="SEAT", columns=columns("ID:NUMBER(10,0)", "ROW_NAME:VARCHAR2(9)", keys=1))
    put(database, tmp_path, seat, TriggerOptions(style=style))
    came = {Style.ROW_BACK: 5, Style.IMAGE: 5, Style.FIELD_BACK: 7}.get(style, 1)
    shifted = logged(database, "UPDATE seat SET id = id + 1", columns="event_type, table_key")
    one, two, three = ("ID=1", "ID=2", "ID=3")
    assert shifted == [(4, one), (came, two), (5, one), (4, two), (came, three), (5, two)]
    gone = logged(database, "DELETE FROM event_log", "DELETE FROM seat", columns="event_type, table_key")
    assert gone == [(4, two), (4, three)]


@pytest.mark.parametrize("style", VALUED)
def test_blanks_that_fill_a_char_are_in_its_values_and_in_no_key(
    database: Engine, tmp_path: Path, style: Style
) -> None:
    """PostgreSQL's own CHAR loses them on the way through a function, so a text that is filled already stands for it."""
    with database.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE plate (k VARCHAR(5), v VARCHAR(5), n VARCHAR(5))")
    plate = Table(name="PLATE", columns=columns("K:CHAR(5)", "V:CHAR(5)", "N:NCHAR(5)", keys=1))
    put(database, tmp_path, plate, TriggerOptions(style=style))
    changes = (
        "INSERT INTO plate VALUES ('ab   ', 'x    ', NULL)",
        "UPDATE plate SET n = '     '",
        "UPDATE plate SET v = NULL, k = 'ab   '",
    )
    rows = logged(database, *changes, columns="table_key, coalesce(old_value, '') || coalesce(new_value, '')")
    assert {key for key, _ in rows} == {"K=ab"}
    told = "".join(values for _, values in rows if values)
    assert (told.count("x    ") >= 2, told.count("     ") >= 1) == (True, True)


STORY = Table(name="TALE", columns=columns("K:VARCHAR2(4000)", "STORY:CLOB", "TITLE:VARCHAR2(64)", keys=1))


@pytest.fixture
def tale(database: Engine) -> Engine:
    with database.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE tale (k TEXT PRIMARY KEY, story TEXT, title TEXT)")
    return database


@pytest.fixture
def tracked(tale: Engine, tmp_path: Path) -> Engine:
    put(tale, tmp_path, STORY, TriggerOptions())
    return tale


def logged(engine: Engine, *changes: str, columns: str = "event_type, column_name, old_value, new_value") -> list[Row]:
    with engine.begin() as connection:
        for change in changes:
            connection.exec_driver_sql(change)
        return [tuple(row) for row in connection.execute(text(f"SELECT {columns} FROM event_log ORDER BY record_id"))]


def test_a_column_that_triggers_cannot_read_is_read_back(tale: Engine, tmp_path: Path) -> None:
    put(tale, tmp_path, STORY, TriggerOptions(style=Style.FIELD))
    rows = logged(
        tale,
        "INSERT INTO tale VALUES ('1', 'once', 'A')",
        "UPDATE tale SET title = 'B'",
        "UPDATE tale SET story = 'upon', title = 'B'",
        "INSERT INTO tale VALUES ('2', NULL, NULL)",
    )
    assert rows == [
        (7, "STORY", None, None),
        (1, "TITLE", None, "A"),
        (2, "TITLE", "A", "B"),
        (8, "STORY", None, None),
        (7, "STORY", None, None),
    ]


def test_numbers_come_from_the_sequence_where_the_log_has_one(tale: Engine, tmp_path: Path) -> None:
    put(tale, tmp_path, STORY, TriggerOptions(), LogNames(sequence="log_numbers"))
    changes = ("CREATE SEQUENCE log_numbers START 1000", "INSERT INTO tale VALUES ('1')", "DELETE FROM tale")
    assert logged(tale, *changes, columns="record_id, event_type") == [(1000, 5), (1001, 4)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), unique=True))
def test_a_key_parses_back_to_the_value_that_the_row_has(tracked: Engine, keys: list[str]) -> None:
    with tracked.begin() as connection:
        connection.exec_driver_sql("DELETE FROM tale; DELETE FROM event_log")
        for key in keys:
            connection.execute(text("INSERT INTO tale (k) VALUES (:k)"), {"k": key})
    rows = logged(tracked, columns="table_key")
    assert [TableKey.parse(row[0]).columns for row in rows] == [{"K": key} for key in keys]
