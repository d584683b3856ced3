"""A change in a child table is logged under its parent's key, as the parent's, on every database."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, tracked, trigger_states, untrack
from eventlog.capture.install import install
from eventlog.capture.track import located
from eventlog.core.errors import InstallError
from eventlog.sql.dialect import dialect_of
from tests.support.logged import USR, Logged, left_by, run

PHONE = "usr_phone.phoneno"
PHONES = ("INSERT INTO usr_phone VALUES (1, '111')", "INSERT INTO usr_phone VALUES (1, NULL)")
VALUED = (Style.FIELD, Style.FIELD_REPLACE)


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO usr (idu) VALUES (2)")
    run(engine, *PHONES)
    return engine


def followed(engine: Engine, style: Style) -> Engine:
    track(engine, ["usr"], TriggerOptions(style=style))
    return engine


def read_back(style: Style, key: str) -> Logged:
    return (6, key, None, None, None) if style is Style.ROW_BACK else (8, key, PHONE, None, None)


VALUES: dict[str, list[Logged]] = {
    "INSERT INTO usr_phone VALUES (2, '222')": [(1, "idu=2", PHONE, None, "222")],
    "INSERT INTO usr_phone VALUES (2, NULL)": [],
    "INSERT INTO usr_phone VALUES (NULL, '3')": [],
    "DELETE FROM usr_phone": [(2, "idu=1", PHONE, "111", None)],
    "UPDATE usr_phone SET phoneno = '9' WHERE phoneno = '111'": [
        (2, "idu=1", PHONE, "111", None),
        (1, "idu=1", PHONE, None, "9"),
    ],
    "UPDATE usr_phone SET phoneno = '9' WHERE phoneno IS NULL": [(1, "idu=1", PHONE, None, "9")],
    "UPDATE usr_phone SET phoneno = NULL": [(2, "idu=1", PHONE, "111", None)],
    "UPDATE usr_phone SET phoneno = phoneno": [],
    "UPDATE usr_phone SET idu = 2": [(2, "idu=1", PHONE, "111", None), (1, "idu=2", PHONE, None, "111")],
    "UPDATE usr_phone SET idu = NULL": [(2, "idu=1", PHONE, "111", None)],
}
PARENTS = {
    "INSERT INTO usr_phone VALUES (2, '222')": ["idu=2"],
    "INSERT INTO usr_phone VALUES (NULL, '3')": [],
    "DELETE FROM usr_phone WHERE phoneno = '111'": ["idu=1"],
    "UPDATE usr_phone SET phoneno = '9' WHERE phoneno = '111'": ["idu=1"],
    "UPDATE usr_phone SET phoneno = NULL": ["idu=1"],
    "UPDATE usr_phone SET phoneno = phoneno": [],
    "UPDATE usr_phone SET idu = 2 WHERE phoneno = '111'": ["idu=1", "idu=2"],
}


def left_by_each(usr: Engine, statements: Iterable[str]) -> dict[str, list[Logged]]:
    """What each statement left, on the same two rows."""
    found = {}
    for statement in statements:
        run(usr, "DELETE FROM usr_phone", *PHONES)
        found[statement] = left_by(usr, statement)
    return found


@pytest.mark.parametrize("style", VALUED)
def test_values_come_and_go_under_the_parents_key(usr: Engine, style: Style) -> None:
    assert left_by_each(followed(usr, style), VALUES) == VALUES


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD_BACK])
def test_parents_are_read_back(usr: Engine, style: Style) -> None:
    found = left_by_each(followed(usr, style), PARENTS)
    assert found == {statement: [read_back(style, key) for key in keys] for statement, keys in PARENTS.items()}


@pytest.mark.parametrize("style", Style)
def test_what_goes_with_its_parent_is_only_the_parents_delete(usr: Engine, style: Style) -> None:
    row = '{"fname":null,"lname":null,"age":null}' if style is Style.IMAGE else None
    assert left_by(followed(usr, style), "DELETE FROM usr WHERE idu = 1") == [(4, "idu=1", None, row, None)]


def test_children_of_compound_keys_follow_the_order_of_the_parents_key(engine: Engine) -> None:
    install(engine)
    run(
        engine,
        "CREATE TABLE pair (a INTEGER NOT NULL, b VARCHAR(9) NOT NULL, PRIMARY KEY (b, a))",
        "CREATE TABLE pair_tag (pa INTEGER, tag VARCHAR(9), pb VARCHAR(9), FOREIGN KEY (pb, pa) REFERENCES pair (b, a))",
        "INSERT INTO pair VALUES (7, ' q')",
    )
    track(engine, ["pair"], TriggerOptions(style=Style.FIELD))
    found = left_by(engine, "INSERT INTO pair_tag VALUES (7, 'new', ' q')")
    assert found == [(1, 'b=" q"+a=7', "pair_tag.tag", None, "new")]


def test_a_relation_is_a_column_of_its_first_table(engine: Engine) -> None:
    install(engine)
    run(
        engine,
        USR[0],
        "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY)",
        "CREATE TABLE usr_mbr_of (idu INTEGER, idg INTEGER, FOREIGN KEY (idu) REFERENCES usr (idu), FOREIGN KEY (idg) REFERENCES grp (idg))",
        "INSERT INTO usr (idu) VALUES (1)",
        "INSERT INTO grp VALUES (5)",
    )
    told: list[str] = []
    track(engine, ["usr", "grp"], TriggerOptions(style=Style.FIELD), note=told.append)
    found = left_by(engine, "INSERT INTO usr_mbr_of VALUES (1, 5)")
    assert found == [(1, "idu=1", "usr_mbr_of.idg", None, "5")]
    [said] = [text for text in told if text.startswith("usr_mbr_of refers to")]
    assert said.startswith("usr_mbr_of refers to grp too; its changes are published as changes of ")
    with pytest.raises(InstallError, match=r"usr_mbr_of is not tracked by itself, but as a part of (\w+\.)?usr\."):
        untrack(engine, ["usr_mbr_of"])


def test_a_child_may_be_named_and_may_have_a_key_of_its_own(engine: Engine) -> None:
    install(engine)
    fax = "CREATE TABLE usr_fax (id INTEGER NOT NULL PRIMARY KEY, idu INTEGER, no VARCHAR(9), FOREIGN KEY (idu) REFERENCES usr (idu))"
    run(engine, USR[0], fax, "INSERT INTO usr (idu) VALUES (1)")
    track(engine, ["usr"], TriggerOptions(style=Style.FIELD, children=("usr_fax",), exclude=("usr_fax.id",)))
    assert left_by(engine, "INSERT INTO usr_fax VALUES (3, 1, '55')") == [(1, "idu=1", "usr_fax.no", None, "55")]


def test_a_condition_on_the_parent_is_asked_for_its_children_too(usr: Engine) -> None:
    run(usr, "UPDATE usr SET age = 30 WHERE idu = 2")
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, when="age > 18"))
    changes = (
        "INSERT INTO usr_phone VALUES (1, '5')",
        "INSERT INTO usr_phone VALUES (2, '6')",
        "DELETE FROM usr_phone",
    )
    assert left_by(usr, *changes) == [(1, "idu=2", PHONE, None, "6"), (2, "idu=2", PHONE, "6", None)]


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
def test_a_parent_may_be_called_as_a_row_is_called_in_a_trigger(engine: Engine, rows: bool) -> None:
    install(engine)
    for name in ("n", "o", "new", "old", "NEW", "one", "side", "fact", "row"):
        check_logged_under_its_name(engine, name, rows)
        run(engine, "DROP TABLE kid", f"DROP TABLE {dialect_of(engine).quoted(name)}")


def check_logged_under_its_name(engine: Engine, name: str, rows: bool) -> None:
    table = dialect_of(engine).quoted(name)
    kid = f"CREATE TABLE kid (idu INTEGER, {table} VARCHAR(9), UNIQUE (idu, {table}), FOREIGN KEY (idu) REFERENCES {table} (idu))"
    run(engine, f"CREATE TABLE {table} (idu INTEGER NOT NULL PRIMARY KEY)", kid, f"INSERT INTO {table} VALUES (1), (2)")
    track(engine, [name], TriggerOptions(style=Style.FIELD, rows=rows, when="idu < 3"))
    changes = ("INSERT INTO kid VALUES (1, 'x')", "INSERT INTO kid VALUES (2, 'y')", "DELETE FROM kid WHERE idu = 1")
    expected = [
        (1, "idu=1", f"kid.{name}", None, "x"),
        (1, "idu=2", f"kid.{name}", None, "y"),
        (2, "idu=1", f"kid.{name}", "x", None),
    ]
    assert left_by(engine, *changes) == expected, name


APP = (
    "CREATE SCHEMA app",
    "CREATE TABLE app.p (id INTEGER PRIMARY KEY, x TEXT)",
    "CREATE TABLE app.k (kid INTEGER PRIMARY KEY, p INTEGER REFERENCES app.p, v TEXT)",
)


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_childs_name_means_the_same_to_who_tracks_and_to_who_reads(postgresql: Engine, style: Style) -> None:
    """`source.schema` says where tables are to whoever tracks; triggers, the publisher and `check` have only the marker."""
    install(postgresql)
    run(postgresql, *APP)
    track(postgresql, ["p"], TriggerOptions(style=style, children=("k",)), schema="app")
    assert {state.state for state in trigger_states(postgresql)} == {TriggerCondition.CURRENT}
    with postgresql.connect() as connection:
        [table] = tracked(connection, located(connection, None))
    assert [child.name for child in table.children] == ["k"]
    run(postgresql, "CREATE TABLE k (other INTEGER PRIMARY KEY)")
    assert {state.state for state in trigger_states(postgresql)} == {TriggerCondition.CURRENT}
    for names in ("k", "app.k"):
        track(postgresql, ["app.p"], TriggerOptions(style=style, children=(names,)))
        assert {state.state for state in trigger_states(postgresql)} == {TriggerCondition.CURRENT}


def test_a_child_that_is_gone_ends_neither_its_parents_capture_nor_its_sisters(engine: Engine) -> None:
    install(engine)
    run(engine, "CREATE TABLE one (id INTEGER PRIMARY KEY)")
    for name in ("k", "l"):
        run(
            engine,
            f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, o INTEGER, v INTEGER, FOREIGN KEY (o) REFERENCES one (id))",
        )
    track(engine, ["one"], TriggerOptions(children=("k", "l")))
    run(engine, "DROP TABLE k")
    states = trigger_states(engine)
    assert {state.state for state in states} == {TriggerCondition.OUTDATED}
    assert all("There is no table or view k" in str(state.note) for state in states)
    with engine.connect() as connection:
        [table] = tracked(connection, located(connection, None))
    assert [child.name for child in table.children] == ["l"]
