"""The same changes leave the same log rows on every database, in each of the five styles."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerOptions, track
from eventlog.capture.install import install
from tests.support.logged import USR, Logged, left_by, logged, run

JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR)
    return engine


def followed(engine: Engine, style: Style, *before: str, **options: object) -> Engine:
    """The tables with what stood there before they were tracked."""
    run(engine, *before)
    track(engine, ["usr"], TriggerOptions(style=style, **options))  # type: ignore[arg-type]  # each test says options of its own
    return engine


INSERTED: dict[Style, list[Logged]] = {
    Style.ROW_BACK: [(5, "idu=1", None, None, None)],
    Style.FIELD: [(1, "idu=1", "fname", None, "Jack"), (1, "idu=1", "lname", None, "Frost")],
    Style.FIELD_REPLACE: [(1, "idu=1", "fname", None, "Jack"), (1, "idu=1", "lname", None, "Frost")],
    Style.FIELD_BACK: [(7, "idu=1", "fname", None, None), (7, "idu=1", "lname", None, None)],
    Style.IMAGE: [
        (1, "idu=1", "fname", None, "Jack"),
        (1, "idu=1", "lname", None, "Frost"),
        (1, "idu=1", "age", None, None),
    ],
}
UPDATED: dict[Style, list[Logged]] = {
    Style.ROW_BACK: [(6, "idu=1", None, None, None)],
    Style.FIELD: [(2, "idu=1", "fname", "Jack", "John"), (2, "idu=1", "age", None, "7")],
    Style.FIELD_REPLACE: [(3, "idu=1", "fname", "Jack", "John"), (3, "idu=1", "age", None, "7")],
    Style.FIELD_BACK: [(8, "idu=1", "fname", None, None), (8, "idu=1", "age", None, None)],
    Style.IMAGE: [
        (2, "idu=1", "fname", "Jack", "John"),
        (2, "idu=1", "lname", "Frost", "Frost"),
        (2, "idu=1", "age", None, "7"),
    ],
}
EMPTY: dict[Style, list[Logged]] = {
    Style.ROW_BACK: [(5, "idu=1", None, None, None)],
    Style.FIELD: [(1, "idu=1", "fname", None, None)],
    Style.FIELD_REPLACE: [(1, "idu=1", "fname", None, None)],
    Style.FIELD_BACK: [(7, "idu=1", "fname", None, None)],
    Style.IMAGE: [(1, "idu=1", column, None, None) for column in ("fname", "lname", "age")],
}


def deleted(style: Style) -> Logged:
    """What tells that Jack is gone."""
    return (4, "idu=1", None, '{"fname":"Jack","lname":"Frost","age":null}' if style is Style.IMAGE else None, None)


@pytest.mark.parametrize("style", Style)
def test_each_style_tells_what_every_kind_of_statement_did(usr: Engine, style: Style) -> None:
    came = [(kind, "idu=2", *rest) for kind, _, *rest in INSERTED[style]]
    told = {
        "DELETE FROM usr WHERE idu = 7": [],
        "INSERT INTO usr (idu) VALUES (1)": EMPTY[style],
        "UPDATE usr SET fname = 'Jack', lname = 'Frost'": None,
        "UPDATE usr SET fname = 'John', lname = 'Frost', age = 7 WHERE idu = 1": UPDATED[style],
        "UPDATE usr SET fname = 'Jack', age = NULL": None,
        "UPDATE usr SET lname = 'Frost', age = NULL": [],
        "UPDATE usr SET idu = idu": [],
        "UPDATE usr SET age = 1 WHERE idu = 9": [],
        "UPDATE usr SET idu = 2 WHERE idu = 1": [deleted(style), *came],
        "UPDATE usr SET idu = 1 WHERE idu = 2": None,
        "DELETE FROM usr": [deleted(style)],
        JACK: INSERTED[style],
    }
    followed(usr, style)
    for statement, rows in told.items():
        found = left_by(usr, statement)
        assert rows is None or sorted(found, key=str) == sorted(rows, key=str), statement


@pytest.mark.parametrize("style", Style)
def test_what_is_rolled_back_leaves_nothing_and_each_row_of_a_statement_is_told(usr: Engine, style: Style) -> None:
    followed(usr, style)
    with usr.connect() as connection:
        connection.execute(text(JACK))
        connection.rollback()
    assert logged(usr) == []
    many = "INSERT INTO usr (idu, fname) VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    found = left_by(usr, many, "UPDATE usr SET age = 5 WHERE idu > 1", "DELETE FROM usr WHERE idu < 3")
    keys = [(kind in (5, 1, 7), kind == 4, key) for kind, key, *_ in found]
    each = 3 if style is Style.IMAGE else 1  # one column of each row has a value, and one changes
    inserted = [(True, False, f"idu={number}") for number in (1, 2, 3)] * each
    updated = [(False, False, f"idu={number}") for number in (2, 3)] * each
    assert sorted(keys) == sorted([*inserted, *updated, (False, True, "idu=1"), (False, True, "idu=2")])


def test_a_change_back_to_null_has_no_new_value(usr: Engine) -> None:
    found = left_by(followed(usr, Style.FIELD, JACK), "UPDATE usr SET fname = NULL")
    assert found == [(2, "idu=1", "fname", "Jack", None)]


def test_upper_and_lower_case_and_blanks_at_the_end_are_changes(usr: Engine) -> None:
    found = left_by(followed(usr, Style.FIELD, JACK), "UPDATE usr SET fname = 'jack', lname = 'Frost '")
    assert found == [(2, "idu=1", "fname", "Jack", "jack"), (2, "idu=1", "lname", "Frost", "Frost ")]


def test_columns_and_exclude_say_what_is_watched(usr: Engine) -> None:
    change = "UPDATE usr SET fname = 'John', lname = 'Doe', age = 7"
    only = left_by(followed(usr, Style.FIELD, JACK, columns=("LNAME",)), change)
    assert only == [(2, "idu=1", "lname", "Frost", "Doe")]
    run(usr, "UPDATE usr SET fname = 'Jack', lname = 'Frost', age = NULL")
    found = left_by(followed(usr, Style.ROW_BACK, exclude=("fname", "age")), change, "UPDATE usr SET age = 8")
    assert found == [(6, "idu=1", None, None, None)]


def test_a_condition_says_which_rows_matter(usr: Engine) -> None:
    followed(usr, Style.ROW_BACK, when="age >= 18 AND fname LIKE '%a%'")
    start = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', 17), (2, 'Ida', 'Lee', 30), (3, 'Joe', 'Doe', 40)"
    grown = (
        "UPDATE usr SET age = age + 1",
        "UPDATE usr SET fname = 'Jo' WHERE idu = 1",
        "UPDATE usr SET lname = 'x' WHERE idu = 1",
    )
    expected = [(5, "idu=2"), (6, "idu=1"), (6, "idu=2"), (6, "idu=1"), (4, "idu=2")]
    found = left_by(usr, start, *grown, "DELETE FROM usr")
    assert sorted((kind, key) for kind, key, *_ in found) == sorted(expected)


def test_the_log_rows_say_who_and_what_and_wait_to_be_published(usr: Engine) -> None:
    followed(usr, Style.ROW_BACK)
    run(usr, JACK)
    with usr.connect() as connection:
        row = connection.execute(text("SELECT status, table_name, event_time FROM event_log")).one()
    assert row[:2] == ("N", "usr")
    assert row[2] is not None


def test_compound_keys_stand_in_the_order_of_the_key(usr: Engine) -> None:
    run(usr, "CREATE TABLE pair (a INTEGER NOT NULL, b VARCHAR(9) NOT NULL, c INTEGER, PRIMARY KEY (b, a))")
    track(usr, ["pair"])
    found = left_by(usr, "INSERT INTO pair VALUES (1, 'x+y', 2)", "UPDATE pair SET a = 5", "DELETE FROM pair")
    assert [key for _, key, *_ in found[-1:]] == ['b="x+y"+a=5']
    assert {(kind, key) for kind, key, *_ in found} == {
        (5, 'b="x+y"+a=1'),
        (4, 'b="x+y"+a=1'),
        (5, 'b="x+y"+a=5'),
        (4, 'b="x+y"+a=5'),
    }


def test_a_table_that_is_all_key_tells_its_key_as_a_field(usr: Engine) -> None:
    run(usr, "CREATE TABLE tag (word VARCHAR(9) NOT NULL PRIMARY KEY)")
    track(usr, ["tag"], TriggerOptions(style=Style.FIELD))
    found = left_by(usr, "INSERT INTO tag VALUES ('red')", "UPDATE tag SET word = 'blue'", "DELETE FROM tag")
    assert sorted(found, key=str) == sorted(
        [
            (1, "word=red", "word", None, "red"),
            (4, "word=red", None, None, None),
            (1, "word=blue", "word", None, "blue"),
            (4, "word=blue", None, None, None),
        ],
        key=str,
    )


def test_a_transaction_over_several_tables_is_told_in_the_order_of_its_statements(usr: Engine) -> None:
    run(usr, "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(9))")
    track(usr, ["usr", "grp"], TriggerOptions(style=Style.FIELD))
    found = left_by(
        usr,
        JACK,
        "INSERT INTO grp VALUES (1, 'a')",
        "INSERT INTO usr_phone VALUES (1, '22')",
        "UPDATE grp SET name = 'b'",
    )
    expected = [
        *INSERTED[Style.FIELD],
        (1, "idg=1", "name", None, "a"),
        (1, "idu=1", "usr_phone.phoneno", None, "22"),
        (2, "idg=1", "name", "a", "b"),
    ]
    assert found == expected
    with usr.connect() as connection:
        connection.execute(text("UPDATE usr SET fname = 'John'"))
        connection.execute(text("DELETE FROM grp"))
        connection.rollback()
    with usr.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM event_log")).scalar() == len(expected)


def test_what_is_rolled_back_to_a_savepoint_leaves_nothing(usr: Engine) -> None:
    followed(usr, Style.FIELD, JACK)
    with usr.connect() as connection:
        connection.execute(text("UPDATE usr SET fname = 'John'"))
        with connection.begin_nested() as part:
            connection.execute(text("UPDATE usr SET lname = 'Doe'"))
            part.rollback()
        connection.execute(text("UPDATE usr SET age = 7"))
        connection.commit()
    assert [row[2:] for row in logged(usr)] == [("fname", "Jack", "John"), ("age", None, "7")]


def test_computed_columns_are_columns_like_others(usr: Engine) -> None:
    run(
        usr,
        "CREATE TABLE t (k INTEGER NOT NULL PRIMARY KEY, a INTEGER, s INTEGER GENERATED ALWAYS AS (a + 2) STORED)",
    )
    track(usr, ["t"], TriggerOptions(style=Style.FIELD))
    found = left_by(usr, "INSERT INTO t (k, a) VALUES (1, 1)", "UPDATE t SET a = 5")
    assert [(row[0], row[2], row[3], row[4]) for row in found] == [
        (1, "a", None, "1"),
        (1, "s", None, "3"),
        (2, "a", "1", "5"),
        (2, "s", "3", "7"),
    ]
