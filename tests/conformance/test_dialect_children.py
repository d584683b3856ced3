"""A change in a child table is logged under its parent's key, as the parent's; and what `track` says of foreign keys."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states, untrack
from eventlog.core.errors import InstallError
from eventlog.sql.dialect import dialect_of
from eventlog.sql.findlog import locate_log
from eventlog.tracked.classes import list_tracked
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.cases import CURRENT, FIELDS, Case, asked, came, changed, check_left, gone, states
from tests.support.logged import USR, Logged, left_by, logged, run, said_of

PHONE = "usr_phone.phoneno"
PHONES = ("INSERT INTO usr_phone VALUES (1, '111')", "INSERT INTO usr_phone VALUES (1, NULL)")
VALUED = (Style.FIELD, Style.FIELD_REPLACE)
LOST = changed("idu=1", {PHONE: ("111", None)})
VALUES: dict[str, list[Logged]] = {
    "INSERT INTO usr_phone VALUES (2, '222')": came("idu=2", {PHONE: "222"}),
    "INSERT INTO usr_phone VALUES (2, NULL)": [],
    "INSERT INTO usr_phone VALUES (NULL, '3')": [],
    "DELETE FROM usr_phone": LOST,
    "UPDATE usr_phone SET phoneno = '9' WHERE phoneno = '111'": [*LOST, *came("idu=1", {PHONE: "9"})],
    "UPDATE usr_phone SET phoneno = '9' WHERE phoneno IS NULL": came("idu=1", {PHONE: "9"}),
    "UPDATE usr_phone SET phoneno = NULL": LOST,
    "UPDATE usr_phone SET phoneno = phoneno": [],
    "UPDATE usr_phone SET idu = 2": [*LOST, *came("idu=2", {PHONE: "111"})],
    "UPDATE usr_phone SET idu = NULL": LOST,
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
TAGS = (
    "CREATE TABLE p (id INTEGER NOT NULL PRIMARY KEY, x VARCHAR(9))",
    "CREATE TABLE tag (p INTEGER, v VARCHAR(9), once VARCHAR(9), UNIQUE (p, once), FOREIGN KEY (p) REFERENCES p (id))",
    "INSERT INTO p VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO tag VALUES (1, 'v', 'one'), (1, 'v', 'two')",
)
TAG = asked(8, "id=1", "tag.v")
CASES = {
    "the order of a compound key": Case(
        made=(
            "CREATE TABLE t (a INTEGER NOT NULL, b VARCHAR(9) NOT NULL, PRIMARY KEY (b, a))",
            "CREATE TABLE tag (pa INTEGER, tag VARCHAR(9), pb VARCHAR(9), FOREIGN KEY (pb, pa) REFERENCES t (b, a))",
            "INSERT INTO t VALUES (7, ' q')",
        ),
        left={"INSERT INTO tag VALUES (7, 'new', ' q')": came('b=" q"+a=7', {"tag.tag": "new"})},
    ),
    "a child that is named and has a key of its own": Case(
        made=(
            USR[0],
            "CREATE TABLE fax (id INTEGER NOT NULL PRIMARY KEY, idu INTEGER, no VARCHAR(9), FOREIGN KEY (idu) REFERENCES usr (idu))",
            "INSERT INTO usr (idu) VALUES (1)",
        ),
        tables=("usr",),
        options=replace(FIELDS, children=("fax",), exclude=("fax.id",)),
        left={"INSERT INTO fax VALUES (3, 1, '55')": came("idu=1", {"fax.no": "55"})},
    ),
    "a condition on the parent": Case(
        made=(*USR, "INSERT INTO usr (idu, age) VALUES (1, 10), (2, 30)"),
        tables=("usr",),
        options=replace(FIELDS, when="age > 18"),
        left={
            "INSERT INTO usr_phone VALUES (1, '5'), (2, '6')": came("idu=2", {PHONE: "6"}),
            "DELETE FROM usr_phone": changed("idu=2", {PHONE: ("6", None)}),
        },
    ),
    # A receiver has such a value once, and would lose it with the first of the two.
    "a value that may be there twice": Case(
        made=TAGS,
        tables=("p",),
        left={
            "DELETE FROM tag WHERE once = 'two'": [*changed("id=1", {"tag.once": ("two", None)}), *TAG],
            "INSERT INTO tag VALUES (1, 'v', NULL)": came("id=1", {"tag.v": "v"}),
            "UPDATE tag SET v = 'w' WHERE once IS NULL": [*TAG, *came("id=1", {"tag.v": "w"})],
            "UPDATE tag SET p = 2 WHERE once IS NULL": [*TAG, *came("id=2", {"tag.v": "w"})],
            "UPDATE tag SET v = NULL WHERE p = 2": asked(8, "id=2", "tag.v"),
        },
        any_order=True,
    ),
}


@pytest.fixture
def usr(engine: Engine) -> Engine:
    install(engine)
    run(engine, *USR, "INSERT INTO usr (idu) VALUES (1), (2)", *PHONES)
    return engine


def left_by_each(usr: Engine, style: Style, statements: Iterable[str]) -> dict[str, list[Logged]]:
    """Run each statement on the same two rows, and return the log of each."""
    track(usr, ["usr"], TriggerOptions(style=style))
    found = {}
    for statement in statements:
        run(usr, "DELETE FROM usr_phone", *PHONES)
        found[statement] = left_by(usr, statement)
    return found


@pytest.mark.parametrize("style", VALUED)
def test_values_come_and_go_under_the_parents_key(usr: Engine, style: Style) -> None:
    assert left_by_each(usr, style, VALUES) == VALUES


@pytest.mark.parametrize("style, kind, columns", [(Style.ROW_BACK, 6, ()), (Style.FIELD_BACK, 8, (PHONE,))])
def test_parents_are_read_back(usr: Engine, style: Style, kind: int, columns: tuple[str, ...]) -> None:
    found = left_by_each(usr, style, PARENTS)
    assert found == {
        statement: [row for key in keys for row in asked(kind, key, *columns)] for statement, keys in PARENTS.items()
    }


@pytest.mark.parametrize("style", Style)
def test_what_goes_with_its_parent_is_only_the_parents_delete(usr: Engine, style: Style) -> None:
    row = '["1",null,null,null]' if style is Style.IMAGE else None
    track(usr, ["usr"], TriggerOptions(style=style))
    assert left_by(usr, "DELETE FROM usr WHERE idu = 1") == [(4, "idu=1", None, row, None)]


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_left(engine: Engine, case: str, rows: bool) -> None:
    check_left(engine, CASES[case], rows=rows)


def test_a_relation_is_a_column_of_its_first_table(engine: Engine) -> None:
    install(engine)
    member = "idu INTEGER, idg INTEGER, FOREIGN KEY (idu) REFERENCES usr (idu), FOREIGN KEY (idg) REFERENCES grp (idg)"
    run(engine, USR[0], "CREATE TABLE grp (idg INTEGER NOT NULL PRIMARY KEY)", f"CREATE TABLE member ({member})")
    run(engine, "INSERT INTO usr (idu) VALUES (1)", "INSERT INTO grp VALUES (5)")
    [said] = [one for one in said_of(engine, ["usr", "grp"], FIELDS) if one.startswith("member refers to")]
    assert said.startswith("member refers to grp too; its changes are published as changes of ")
    track(engine, ["usr", "grp"], FIELDS)
    assert left_by(engine, "INSERT INTO member VALUES (1, 5)") == came("idu=1", {"member.idg": "5"})
    with pytest.raises(InstallError, match=r"member is not tracked by itself, but as a part of (\w+\.)?usr\."):
        untrack(engine, ["member"])


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
def test_a_parent_may_be_called_as_a_row_is_called_in_a_trigger(engine: Engine, rows: bool) -> None:
    for name in ("n", "o", "new", "old", "NEW", "one", "side", "fact", "row"):
        table = dialect_of(engine).quote(name)
        columns = f"idu INTEGER, {table} VARCHAR(9), UNIQUE (idu, {table}), FOREIGN KEY (idu) REFERENCES {table} (idu)"
        case = Case(
            made=(f"CREATE TABLE {table} (idu INTEGER NOT NULL PRIMARY KEY)", f"CREATE TABLE kid ({columns})")
            + (f"INSERT INTO {table} VALUES (1), (2)",),
            tables=(name,),
            options=replace(FIELDS, when="idu < 3"),
            left={
                "INSERT INTO kid VALUES (1, 'x')": came("idu=1", {f"kid.{name}": "x"}),
                "DELETE FROM kid WHERE idu = 1": changed("idu=1", {f"kid.{name}": ("x", None)}),
            },
        )
        check_left(engine, case, rows=rows)
        run(engine, "DROP TABLE kid", f"DROP TABLE {table}", "DELETE FROM event_log_tracked")


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_childs_name_means_the_same_to_who_tracks_and_to_who_reads(postgresql: Engine, style: Style) -> None:
    """`source.schema` says where tables are to whoever tracks; triggers, the publisher and `check` have only the marker."""
    install(postgresql)
    run(postgresql, "CREATE SCHEMA app", "CREATE TABLE app.p (id INTEGER PRIMARY KEY, x TEXT)")
    run(postgresql, "CREATE TABLE app.k (kid INTEGER PRIMARY KEY, p INTEGER REFERENCES app.p, v TEXT)")
    track(postgresql, ["p"], TriggerOptions(style=style, children=("k",)), schema="app")
    assert states(postgresql) == CURRENT
    with postgresql.connect() as connection:
        [table] = list_tracked(connection, locate_log(connection, None))
    assert [child.name for child in table.children] == ["k"]
    run(postgresql, "CREATE TABLE k (other INTEGER PRIMARY KEY)")
    assert states(postgresql) == CURRENT
    for names in ("k", "app.k"):
        track(postgresql, ["app.p"], TriggerOptions(style=style, children=(names,)))
        assert states(postgresql) == CURRENT


def test_a_child_that_is_gone_ends_neither_its_parents_capture_nor_its_sisters(engine: Engine) -> None:
    install(engine)
    run(engine, "CREATE TABLE one (id INTEGER PRIMARY KEY)")
    for name in ("k", "l"):
        columns = "id INTEGER PRIMARY KEY, o INTEGER, v INTEGER, FOREIGN KEY (o) REFERENCES one (id)"
        run(engine, f"CREATE TABLE {name} ({columns})")
    track(engine, ["one"], TriggerOptions(children=("k", "l")))
    run(engine, "DROP TABLE k")
    assert states(engine) == {TriggerCondition.OUTDATED}
    assert all("There is no table or view k" in str(state.note) for state in trigger_states(engine))
    with engine.connect() as connection:
        [table] = list_tracked(connection, locate_log(connection, None))
    assert [child.name for child in table.children] == ["l"]


def test_a_unique_index_more_or_less_makes_triggers_outdated(engine: Engine) -> None:
    install(engine)
    run(engine, *TAGS)
    track(engine, ["p"], FIELDS)
    run(engine, "DELETE FROM tag", "CREATE UNIQUE INDEX no_more ON tag (v, p)")
    assert TriggerCondition.OUTDATED in states(engine)
    track(engine, ["p"], FIELDS)
    run(engine, "INSERT INTO tag VALUES (1, 'v', NULL)")
    assert left_by(engine, "DELETE FROM tag") == changed("id=1", {"tag.v": ("v", None)})


def test_what_is_unique_for_a_part_or_only_in_the_end_is_not_unique(postgresql: Engine) -> None:
    install(postgresql)
    columns = "p INTEGER REFERENCES p, a TEXT, b TEXT, c TEXT, d TEXT, UNIQUE (p, b) DEFERRABLE, UNIQUE (p, d)"
    run(postgresql, "CREATE TABLE p (id INTEGER PRIMARY KEY)", f"CREATE TABLE c ({columns})")
    run(postgresql, "CREATE UNIQUE INDEX ON c (p, a) WHERE a <> ''", "CREATE UNIQUE INDEX ON c (p, lower(c))")
    [said] = said_of(postgresql, ["p"], FIELDS)
    assert "twice under one parent (a, b, c)" in said


@pytest.mark.parametrize("database", ["sqlite", "mariadb"])
def test_a_replaced_row_keeps_its_children(request: pytest.FixtureRequest, database: str) -> None:
    """Where foreign keys are looked at, such a parent is refused or its children go with it."""
    engine: Engine = request.getfixturevalue(database)
    install(engine)
    run(engine, *TAGS)
    track(engine, ["p"], FIELDS)
    with engine.connect() as connection:
        embedded = dialect_of(engine).embedded
        connection.exec_driver_sql("PRAGMA recursive_triggers = ON" if embedded else "SET foreign_key_checks = 0")
        connection.execute(text("REPLACE INTO p VALUES (1, 'new')"))
        connection.execute(text("REPLACE INTO p VALUES (2, 'new')"))
        connection.commit()
        connection.invalidate()
    first, second = came("id=1", x="new"), came("id=2", x="new")
    assert logged(engine) == [*gone("id=1"), *asked(5, "id=1"), *first, *gone("id=2"), *second]


TABLES = (
    "CREATE TABLE p (id INTEGER NOT NULL PRIMARY KEY)",
    """CREATE TABLE t (id INTEGER NOT NULL PRIMARY KEY, p INTEGER,
       FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE c (p INTEGER, v INTEGER, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
    """CREATE TABLE d (p INTEGER, v INTEGER,
       FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)""",
    "CREATE TABLE plain (id INTEGER NOT NULL PRIMARY KEY, p INTEGER, FOREIGN KEY (p) REFERENCES p (id))",
)


def test_what_foreign_keys_do_is_logged_or_it_is_said_that_it_is_not(engine: Engine) -> None:
    install(engine)
    run(engine, *TABLES)
    seen = dialect_of(engine).ddl.cascades_fire_triggers
    said = "t is changed by foreign keys when p is changed, and this database fires no trigger then: such changes are not logged."
    assert said_of(engine, ["t"]) == ([] if seen else [said])
    assert said_of(engine, ["plain"]) == []
    track(engine, ["p", "t"])
    run(engine, "INSERT INTO p VALUES (1)", "INSERT INTO t VALUES (7, 1)")
    told = [row for row in left_by(engine, "DELETE FROM p") if row[1] == "id=7"]
    assert told == ([(4, "id=7", None, None, None)] if seen else [])


def test_what_goes_with_its_own_parent_needs_no_word(engine: Engine) -> None:
    """The parent's delete says it all, and where values are read back so does the change of its key."""
    install(engine)
    run(engine, *TABLES)
    assert said_of(engine, ["p"]) == []
    with_values = [one for one in said_of(engine, ["p"], FIELDS) if "is changed by" in one]
    assert [one.split()[0] for one in with_values] == ([] if dialect_of(engine).ddl.cascades_fire_triggers else ["d"])


def test_a_value_that_may_be_there_twice_is_spoken_of_where_values_are_told(engine: Engine) -> None:
    install(engine)
    run(engine, *TABLES, "CREATE UNIQUE INDEX once ON c (v, p)")
    said = [one for one in said_of(engine, ["p"], FIELDS) if "value twice" in one]
    assert said == [
        (
            "d may have the same value twice under one parent (v). So, when such a value is deleted, the values that are left are"
            " read back. A unique index that also has p makes this unnecessary."
        )
    ]
    assert not any("value twice" in one for one in said_of(engine, ["p"], TriggerOptions(style=Style.FIELD_BACK)))
