"""The same changes leave the same log rows on every database, in each of the five styles; and what views leave."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from eventlog.capture.track import track
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.cases import FIELDS, Case, asked, came, changed, check_left, gone, installed_usr
from tests.support.logged import USR, Logged, left_by, logged, run

JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"
PEOPLE = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', 17), (2, 'Ida', 'Lee', 30), (3, 'Joe', 'Doe', 40)"
RENAMED = "UPDATE usr SET fname = 'John', lname = 'Doe', age = 7"
CASES = {
    "cases, blanks and nothing": Case(
        made=(*USR, JACK),
        tables=("usr",),
        left={
            "UPDATE usr SET fname = 'jack', lname = 'Frost '": changed(
                "idu=1", fname=("Jack", "jack"), lname=("Frost", "Frost ")
            ),
            "UPDATE usr SET fname = NULL": changed("idu=1", fname=("jack", None)),
        },
    ),
    "columns that were named": Case(
        made=(*USR, JACK),
        tables=("usr",),
        options=replace(FIELDS, columns=("LNAME",)),
        left={RENAMED: changed("idu=1", lname=("Frost", "Doe"))},
    ),
    "columns that were left out": Case(
        made=(*USR, JACK),
        tables=("usr",),
        options=TriggerOptions(exclude=("fname", "age")),
        left={RENAMED: asked(6, "idu=1"), "UPDATE usr SET age = 8": []},
    ),
    "a condition": Case(
        tables=("usr",),
        options=TriggerOptions(when="age >= 18 AND fname LIKE '%a%'"),
        left={
            PEOPLE: asked(5, "idu=2"),
            "UPDATE usr SET age = age + 1": [*asked(6, "idu=1"), *asked(6, "idu=2")],
            "UPDATE usr SET fname = 'Jo' WHERE idu = 1": asked(6, "idu=1"),
            "UPDATE usr SET lname = 'x' WHERE idu = 1": [],
            "DELETE FROM usr": gone("idu=2"),
        },
        any_order=True,
    ),
    "a compound key in its order": Case(
        made=("CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR(9) NOT NULL, c INTEGER, PRIMARY KEY (b, a))",),
        options=TriggerOptions(),
        left={
            "INSERT INTO t VALUES (1, 'x+y', 2)": asked(5, 'b="x+y"+a=1'),
            "UPDATE t SET a = 5": [*gone('b="x+y"+a=1'), *asked(5, 'b="x+y"+a=5')],
        },
    ),
    "a table that is all key": Case(
        made=("CREATE TABLE t (word VARCHAR(9) NOT NULL PRIMARY KEY)",),
        left={
            "INSERT INTO t VALUES ('red')": came("word=red", word="red"),
            "UPDATE t SET word = 'blue'": [*gone("word=red"), *came("word=blue", word="blue")],
        },
    ),
    "computed columns": Case(
        made=("CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, s INTEGER GENERATED ALWAYS AS (a + 2) STORED)",),
        left={
            "INSERT INTO t (k, a) VALUES (1, 1)": came("k=1", a="1", s="3"),
            "UPDATE t SET a = 5": changed("k=1", a=("1", "5"), s=("3", "7")),
        },
    ),
    "several tables of one transaction, in the order of its statements": Case(
        made=(*USR, "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY, name VARCHAR(9))"),
        tables=("usr", "grp"),
        left={
            (
                JACK,
                "INSERT INTO grp VALUES (1, 'a')",
                "INSERT INTO usr_phone VALUES (1, '22')",
                "UPDATE grp SET name = 'b'",
            ): [
                *came("idu=1", fname="Jack", lname="Frost"),
                *came("idg=1", name="a"),
                *came("idu=1", {"usr_phone.phoneno": "22"}),
                *changed("idg=1", name=("a", "b")),
            ]
        },
    ),
    "numbers and CHAR keys without blanks": Case(
        made=("CREATE TABLE t (a INTEGER, c CHAR(8), v NUMERIC(12,2), PRIMARY KEY (a, c))",),
        left={"INSERT INTO t VALUES (7, 'ab', 0.25)": came("a=7+c=ab", v="0.25")},
    ),
}


@pytest.fixture
def usr(engine: Engine) -> Engine:
    return installed_usr(engine)


@pytest.mark.parametrize("case", CASES)
def test_what_is_left(engine: Engine, case: str) -> None:
    check_left(engine, CASES[case])


INSERTED: dict[Style, list[Logged]] = {
    Style.ROW_BACK: asked(5, "idu=1"),
    Style.FIELD: came("idu=1", fname="Jack", lname="Frost"),
    Style.FIELD_REPLACE: came("idu=1", fname="Jack", lname="Frost"),
    Style.FIELD_BACK: asked(7, "idu=1", "fname", "lname"),
    Style.IMAGE: [(5, "idu=1", None, None, '["1","Jack","Frost",null]')],
}
UPDATED: dict[Style, list[Logged]] = {
    Style.ROW_BACK: asked(6, "idu=1"),
    Style.FIELD: changed("idu=1", fname=("Jack", "John"), age=(None, "7")),
    Style.FIELD_REPLACE: [(3, *row[1:]) for row in changed("idu=1", fname=("Jack", "John"), age=(None, "7"))],
    Style.FIELD_BACK: asked(8, "idu=1", "fname", "age"),
    Style.IMAGE: [(6, "idu=1", None, '["1","Jack","Frost",null]', '["1","John","Frost","7"]')],
}
EMPTY: dict[Style, list[Logged]] = {
    Style.ROW_BACK: asked(5, "idu=1"),
    Style.FIELD: came("idu=1", fname=None),
    Style.FIELD_REPLACE: came("idu=1", fname=None),
    Style.FIELD_BACK: asked(7, "idu=1", "fname"),
    Style.IMAGE: [(5, "idu=1", None, None, '["1",null,null,null]')],
}


@pytest.mark.parametrize("style", Style)
def test_each_style_tells_what_every_kind_of_statement_did(usr: Engine, style: Style) -> None:
    moved = [(kind, "idu=2", *rest) for kind, _, *rest in INSERTED[style]]
    row = '["1","Jack","Frost",null]' if style is Style.IMAGE else None
    deleted: Logged = (4, "idu=1", None, row, None)
    told = {
        "DELETE FROM usr WHERE idu = 7": [],
        "INSERT INTO usr (idu) VALUES (1)": EMPTY[style],
        "UPDATE usr SET fname = 'Jack', lname = 'Frost'": None,
        "UPDATE usr SET fname = 'John', lname = 'Frost', age = 7 WHERE idu = 1": UPDATED[style],
        "UPDATE usr SET fname = 'Jack', age = NULL": None,
        "UPDATE usr SET lname = 'Frost', age = NULL": [],
        "UPDATE usr SET idu = idu": [],
        "UPDATE usr SET age = 1 WHERE idu = 9": [],
        "UPDATE usr SET idu = 2 WHERE idu = 1": [deleted, *moved],
        "UPDATE usr SET idu = 1 WHERE idu = 2": None,
        "DELETE FROM usr": [deleted],
        JACK: INSERTED[style],
    }
    track(usr, ["usr"], TriggerOptions(style=style))
    for statement, rows in told.items():
        found = left_by(usr, statement)
        assert rows is None or sorted(found, key=str) == sorted(rows, key=str), statement


@pytest.mark.parametrize("style", Style)
def test_what_is_rolled_back_leaves_nothing_and_each_row_of_a_statement_is_told(usr: Engine, style: Style) -> None:
    track(usr, ["usr"], TriggerOptions(style=style))
    with usr.connect() as connection:
        connection.execute(text(JACK))
        connection.rollback()
    assert logged(usr) == []
    many = "INSERT INTO usr (idu, fname) VALUES (1, 'a'), (2, 'b'), (3, 'c')"
    found = left_by(usr, many, "UPDATE usr SET age = 5 WHERE idu > 1", "DELETE FROM usr WHERE idu < 3")
    keys = [(kind in (5, 1, 7), kind == 4, key) for kind, key, *_ in found]
    inserted = [(True, False, f"idu={number}") for number in (1, 2, 3)]
    updated = [(False, False, f"idu={number}") for number in (2, 3)]
    assert sorted(keys) == sorted([*inserted, *updated, (False, True, "idu=1"), (False, True, "idu=2")])


def test_what_is_rolled_back_to_a_savepoint_leaves_nothing(usr: Engine) -> None:
    run(usr, JACK)
    track(usr, ["usr"], FIELDS)
    with usr.connect() as connection:
        connection.execute(text("UPDATE usr SET fname = 'John'"))
        with connection.begin_nested() as part:
            connection.execute(text("UPDATE usr SET lname = 'Doe'"))
            part.rollback()
        connection.execute(text("UPDATE usr SET age = 7"))
        connection.commit()
    assert logged(usr) == changed("idu=1", fname=("Jack", "John"), age=(None, "7"))
