"""What statements leave that only PostgreSQL has, or does in its own way: by triggers for each statement and for each row."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, track_sql, trigger_states
from eventlog.core.errors import InstallError
from eventlog.sql.reflect import reflect
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.cases import (
    CURRENT,
    FIELDS,
    Case,
    asked,
    came,
    changed,
    check_left,
    gone,
    installed_usr,
    states,
)
from tests.support.logged import USR, Logged, left_by, logged, run, said_of
from tests.support.reflected import reflect_table

ROW_BACK = TriggerOptions()
JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"
MERGE = """
MERGE INTO usr USING (VALUES (1, 'John'), (2, 'Ida'), (3, NULL)) AS come (idu, fname) ON usr.idu = come.idu
WHEN MATCHED AND come.fname IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET fname = come.fname
WHEN NOT MATCHED THEN INSERT (idu, fname) VALUES (come.idu, come.fname)
"""
UPSERT = "INSERT INTO usr VALUES (1, 'John'), (2, 'Ida') ON CONFLICT (idu) DO UPDATE SET fname = excluded.fname"
IN_PARTS = (
    "CREATE TABLE t (id INTEGER, region TEXT, x TEXT, PRIMARY KEY (id, region)) PARTITION BY LIST (region)",
    "CREATE TABLE ta PARTITION OF t FOR VALUES IN ('a')",
    "CREATE TABLE tb PARTITION OF t FOR VALUES IN ('b') PARTITION BY RANGE (id)",
    "CREATE TABLE tb1 PARTITION OF tb FOR VALUES FROM (0) TO (10)",
    # Its columns stand in another order, and one is lost.
    "CREATE TABLE tc (x TEXT, region TEXT NOT NULL, gone INTEGER, id INTEGER NOT NULL, PRIMARY KEY (id, region))",
    "ALTER TABLE tc DROP COLUMN gone",
)
IN_WORDS = (
    "CREATE TABLE word (id INTEGER, region TEXT, w TEXT, FOREIGN KEY (id, region) REFERENCES t, UNIQUE (id, region, w))"
    " PARTITION BY LIST (w)"
)
FIRST = "INSERT INTO t VALUES (1, 'a', 'x')"
MOVES = "MERGE INTO t USING (VALUES (1)) AS come (id) ON t.id = come.id WHEN MATCHED THEN UPDATE SET region = 'b'"
SEAT = "CREATE TABLE s (id INTEGER, x TEXT, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED)"
TAKEN = ("INSERT INTO s VALUES (1, 'b')", "DELETE FROM s WHERE x = 'a'")
OWNER = (
    "CREATE TABLE p (id INTEGER NOT NULL PRIMARY KEY, x VARCHAR(9))",
    "CREATE TABLE tag (p INTEGER, v VARCHAR(9), FOREIGN KEY (p) REFERENCES p (id))",
    "INSERT INTO p VALUES (1, 'a'), (2, 'b')",
    "INSERT INTO tag VALUES (1, 'v')",
)
ANEW = "WITH gone AS (DELETE FROM p WHERE id = 1 RETURNING 1) INSERT INTO p SELECT 1, '{}' FROM gone"
LOUD = (
    "CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.fname = upper(NEW.fname); RETURN NEW; END'",
    "CREATE TRIGGER z_loud BEFORE INSERT OR UPDATE ON usr FOR EACH ROW EXECUTE FUNCTION loud()",
)
COMPOSED = (
    "CREATE TYPE pair AS (a INTEGER, b INTEGER)",
    "CREATE TABLE p (id INTEGER PRIMARY KEY, x pair, y pair)",
    "CREATE TABLE c (p INTEGER REFERENCES p, v pair, UNIQUE (p, v))",
)
VIRTUAL = 'CREATE TABLE t (k INTEGER PRIMARY KEY, a INTEGER, "V %" INTEGER GENERATED ALWAYS AS (coalesce(a, 0) + 1) VIRTUAL, s TEXT)'
NEEDS = {
    "a merge": 15,
    "a merge that moves a row": 15,
    "a column that is computed when it is read": 18,
    "a virtual column that is watched": 18,
    "virtual columns of a child and beside a key": 18,
}
"""The versions of PostgreSQL with which that came."""
DAYS = ("5874897-12-31", "294277-01-01", "294276-12-31", "infinity", "-infinity", "9999-12-31")
CASES = {
    "a merge": Case(
        made=(*USR, JACK, "INSERT INTO usr VALUES (3, 'Joe')"),
        tables=("usr",),
        left={MERGE: [*came("idu=2", fname="Ida"), *changed("idu=1", fname=("Jack", "John")), *gone("idu=3")]},
        any_order=True,
    ),
    "an upsert": Case(
        made=(*USR, JACK),
        tables=("usr",),
        left={UPSERT: [*came("idu=2", fname="Ida"), *changed("idu=1", fname=("Jack", "John"))]},
        any_order=True,
    ),
    "identities, serials and defaults as they became": Case(
        made=(
            "CREATE TABLE t (k INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, n SERIAL, at DATE DEFAULT '2025-03-23', s TEXT)",
        ),
        left={"INSERT INTO t (s) VALUES ('x')": came("k=1", n="1", at="2025-03-23", s="x")},
    ),
    "a session that only repeats others is not captured twice": Case(
        tables=("usr",), left={("SET LOCAL session_replication_role = replica", JACK): []}
    ),
    "what triggers before a change make of it": Case(
        made=(*USR, *LOUD),
        tables=("usr",),
        left={
            "INSERT INTO usr (idu, fname) VALUES (1, 'a')": came("idu=1", fname="A"),
            "UPDATE usr SET fname = 'b'": changed("idu=1", fname=("A", "B")),
        },
    ),
    "a composite value with a part that is null": Case(
        made=COMPOSED,  # to IS NOT NULL it is neither there nor not
        tables=("p",),
        left={
            "INSERT INTO p VALUES (1, '(1,)', '(,)'), (2, NULL, '(,)')": [
                *came("id=1", x="(1,)", y="(,)"),
                *came("id=2", y="(,)"),
            ],
            "UPDATE p SET x = NULL WHERE id = 1": changed("id=1", x=("(1,)", None)),
            "INSERT INTO c VALUES (1, '(,2)')": came("id=1", {"c.v": "(,2)"}),
            "DELETE FROM c": changed("id=1", {"c.v": ("(,2)", None)}),
        },
    ),
    "columns that are called as triggers call rows": Case(
        made=("CREATE TABLE t (id INTEGER PRIMARY KEY, n TEXT, o TEXT, old TEXT, new TEXT)",),
        options=ROW_BACK,
        left={
            "INSERT INTO t VALUES (1, 'a', 'a', 'a', 'a')": asked(5, "id=1"),
            ("UPDATE t SET o = 'b'", "UPDATE t SET new = 'b'", "UPDATE t SET n = 'a'"): asked(6, "id=1") * 2,
        },
    ),
    "types whose equality is not that of their texts": Case(
        made=("CREATE TABLE t (n numeric PRIMARY KEY, j json, p point)", "INSERT INTO t VALUES (1.0, '{}', '(1,2)')"),
        left={
            "UPDATE t SET j = '{}', p = '(1,2)'": [],
            "UPDATE t SET j = '[]', p = '(1,3)'": changed("n=1.0", j=("{}", "[]"), p=("(1,2)", "(1,3)")),
            "UPDATE t SET n = 1.00": [*gone("n=1.0"), *came("n=1.00", j="[]", p="(1,3)")],
        },
    ),
    "times beyond the calendar's form": Case(
        made=("CREATE TABLE t (id INTEGER PRIMARY KEY, d date, s timestamp, z timestamptz)",),
        left={
            "INSERT INTO t VALUES (1, 'infinity', '-infinity', '0044-03-15 12:00:00+00 BC')": came(
                "id=1", d="infinity", s="-infinity", z="0044-03-15 12:00:00 BC"
            )
        },
    ),
    "a date that is later than any timestamp": Case(
        made=("CREATE TABLE t (id DATE PRIMARY KEY, x DATE)",),
        left={f"INSERT INTO t VALUES ('{day}', '{day}')": came(f"id={day}", x=day) for day in DAYS},
    ),
    "a row that moves to another partition": Case(
        made=(*IN_PARTS, FIRST),
        left={
            "UPDATE t SET region = 'b', x = 'y'": [*gone("id=1+region=a"), *came("id=1+region=b", x="y")],
            "UPDATE tb1 SET x = 'z'": changed("id=1+region=b", x=("y", "z")),
            "TRUNCATE tb1": [],
        },
    ),
    "a row that moves and is read back": Case(
        made=(*IN_PARTS, FIRST),
        options=ROW_BACK,
        left={"UPDATE t SET region = 'b'": [*gone("id=1+region=a"), *asked(5, "id=1+region=b")]},
    ),
    "a merge that moves a row": Case(
        made=(*IN_PARTS, FIRST), left={MOVES: [*gone("id=1+region=a"), *came("id=1+region=b", x="x")]}
    ),
    "partitions that come and go": Case(
        made=(*IN_PARTS, FIRST),
        left={
            "INSERT INTO tc (id, region, x) VALUES (7, 'c', 'q')": [],
            ("ALTER TABLE t ATTACH PARTITION tc FOR VALUES IN ('c')", "UPDATE tc SET x = 'w'"): changed(
                "id=7+region=c", x=("q", "w")
            ),
            "UPDATE t SET region = 'c' WHERE id = 1": [*gone("id=1+region=a"), *came("id=1+region=c", x="x")],
            ("CREATE TABLE td PARTITION OF t FOR VALUES IN ('d')", "INSERT INTO t VALUES (1, 'd')"): came(
                "id=1+region=d", x=None
            ),
            ("ALTER TABLE t DETACH PARTITION tc", "UPDATE tc SET x = 'v'", "DROP TABLE tc"): [],
        },
    ),
    "a truncated table tells the rows of its partitions": Case(
        made=(*IN_PARTS, FIRST, "INSERT INTO t VALUES (1, 'b', 'x')"),
        left={"TRUNCATE t": gone("id=1+region=a", "id=1+region=b")},
        any_order=True,
    ),
    "a child with partitions, and one of a parent with them": Case(
        made=(
            *(*IN_PARTS, FIRST),
            IN_WORDS,
            "CREATE TABLE word_1 PARTITION OF word FOR VALUES IN ('x', 'y')",
        ),
        left={
            "INSERT INTO word VALUES (1, 'a', 'x')": came("id=1+region=a", {"word.w": "x"}),
            "UPDATE word_1 SET w = 'y'": [
                *changed("id=1+region=a", {"word.w": ("x", None)}),
                *came("id=1+region=a", {"word.w": "y"}),
            ],
        },
    ),
    "a key that another row has when its own goes": Case(
        made=(SEAT, "INSERT INTO s VALUES (1, 'a')"),
        tables=("s",),
        left={
            TAKEN: [*came("id=1", x="b"), *gone("id=1"), *asked(5, "id=1")],
            "DELETE FROM s WHERE id = 1": [*gone("id=1"), *asked(5, "id=1")],
        },
    ),
    "a key that another row has, of rows that are read back": Case(
        made=(SEAT, "INSERT INTO s VALUES (1, 'a')"),
        tables=("s",),
        options=ROW_BACK,
        left={TAKEN: [*asked(5, "id=1"), *gone("id=1"), *asked(5, "id=1")]},
    ),
    "a parent that goes and comes in one statement": Case(
        made=OWNER,
        tables=("p",),
        left={
            ANEW.format("c"): [*gone("id=1"), *asked(5, "id=1"), *came("id=1", x="c")],
            ANEW.replace("1", "2").format("d"): [*gone("id=2"), *came("id=2", x="d")],
        },
    ),
    "a parent that a condition leaves out is not looked for": Case(
        made=OWNER,
        tables=("p",),
        options=replace(FIELDS, when="x <> 'secret'"),
        left={
            ANEW.format("c"): [*gone("id=1"), *asked(5, "id=1"), *came("id=1", x="c")],
            ANEW.format("secret"): gone("id=1"),
        },
    ),
    "a column that is computed when it is read": Case(
        made=(VIRTUAL,),
        left={
            "INSERT INTO t (k, a) VALUES (1, 1)": came("k=1", a="1", **{"V %": "2"}),
            "INSERT INTO t (k) VALUES (2)": came("k=2", {"V %": "1"}),
            "UPDATE t SET a = 5 WHERE k = 1": changed("k=1", {"a": ("1", "5"), "V %": ("2", "6")}),
            "UPDATE t SET s = 'x' WHERE k = 1": changed("k=1", s=(None, "x")),
            "UPDATE t SET k = 3 WHERE k = 2": [*came("k=3", {"V %": "1"}), *gone("k=2")],
        },
        any_order=True,
    ),
    "a virtual column that is watched": Case(
        made=(VIRTUAL,),
        options=TriggerOptions(columns=("V %",), when='"V %" < 9'),
        left={
            "INSERT INTO t (k, a) VALUES (1, 1), (2, 20)": asked(5, "k=1"),
            "UPDATE t SET a = 2, s = 'x'": [*asked(6, "k=1"), *asked(6, "k=2")],
            "UPDATE t SET s = 'y'": [],
            "UPDATE t SET a = NULL WHERE k = 2": asked(6, "k=2"),
            "DELETE FROM t WHERE k = 2": gone("k=2"),
        },
    ),
    "virtual columns of a child and beside a key": Case(
        made=(
            "CREATE TABLE t (k INTEGER PRIMARY KEY, v INTEGER GENERATED ALWAYS AS (k + 1) VIRTUAL)",
            "CREATE TABLE word (k INTEGER REFERENCES t, w TEXT, loud TEXT GENERATED ALWAYS AS (upper(w)) VIRTUAL)",
        ),
        left={
            "INSERT INTO t VALUES (1)": came("k=1", v="2"),
            "INSERT INTO word VALUES (1, 'x')": came("k=1", {"word.w": "x", "word.loud": "X"}),
        },
    ),
}


@pytest.fixture
def usr(postgresql: Engine) -> Engine:
    return installed_usr(postgresql)


@pytest.mark.in_turn
@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_left(postgresql: Engine, case: str, rows: bool) -> None:
    with postgresql.connect() as connection:
        version = int(connection.execute(text("SHOW server_version_num")).scalar_one()) // 10_000
    if version < NEEDS.get(case, 0):
        pytest.skip(f"it came with PostgreSQL {NEEDS[case]}")
    check_left(postgresql, CASES[case], rows=rows)
    assert states(postgresql) == CURRENT


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
def test_a_key_that_cascades_takes_the_values_of_its_children_along(postgresql: Engine, rows: bool) -> None:
    install(postgresql)
    foreign = "FOREIGN KEY (idu) REFERENCES usr (idu) ON UPDATE CASCADE ON DELETE CASCADE"
    run(postgresql, USR[0], f"CREATE TABLE usr_phone (idu INTEGER, phoneno VARCHAR(32), {foreign})", JACK)
    run(postgresql, "INSERT INTO usr_phone VALUES (1, '22')")
    track(postgresql, ["usr"], replace(FIELDS, rows=rows))
    found = left_by(postgresql, "UPDATE usr SET idu = 2")
    assert {*gone("idu=1"), *came("idu=2", {"fname": "Jack", "usr_phone.phoneno": "22"})} < set(found)
    assert left_by(postgresql, "DELETE FROM usr") == gone("idu=2")


def test_heirs_are_seen_through_their_parent_alone(postgresql: Engine) -> None:
    case = Case(
        made=("CREATE TABLE p (id INTEGER PRIMARY KEY, x TEXT)", "CREATE TABLE c (y TEXT) INHERITS (p)"),
        tables=("p",),
        left={
            ("INSERT INTO c VALUES (1, 'a', 'b')", "UPDATE c SET x = 'z'"): [],
            "UPDATE p SET x = 'q'": changed("id=1", x=("z", "q")),
            "DELETE FROM p": gone("id=1"),
        },
    )
    check_left(postgresql, case)


@pytest.mark.parametrize("style", Style)
def test_truncate_tells_the_rows_in_every_style(usr: Engine, style: Style) -> None:
    run(usr, JACK)
    track(usr, ["usr"], TriggerOptions(style=style))
    row = '["1","Jack","Frost",null]' if style is Style.IMAGE else None
    assert left_by(usr, "TRUNCATE usr CASCADE") == [(4, "idu=1", None, row, None)]


@pytest.mark.parametrize("name", ["found", "new", "old", "tg_op"])
def test_a_condition_that_a_trigger_would_misread_is_refused_before_it_fails_a_writer(
    postgresql: Engine, name: str
) -> None:
    install(postgresql)
    run(postgresql, f'CREATE TABLE t (k INTEGER PRIMARY KEY, "{name}" INTEGER)')
    for rows in (False, True):
        with pytest.raises(InstallError, match=f'"{name}" is ambiguous.*with the table'):
            track(postgresql, ["t"], TriggerOptions(when=f'"{name}" > 5', rows=rows))
        track(postgresql, ["t"], TriggerOptions(when=f't."{name}" > 5', rows=rows))
        assert left_by(postgresql, "INSERT INTO t VALUES (1, 5), (2, 6)", "DELETE FROM t") == [
            *asked(5, "k=2"),
            *gone("k=2"),
        ]


TOUCH = """
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.age IS NULL THEN UPDATE usr SET age = 1 WHERE idu = NEW.idu; END IF;
  RETURN NULL;
END $$
"""


@pytest.mark.parametrize("rows, name, first", [(False, "z_touch", 2), (True, "a_touch", 2), (True, "z_touch", 1)])
def test_whoever_writes_to_the_row_again_after_a_change_is_heard_by_the_order_of_triggers(
    usr: Engine, rows: bool, name: str, first: int
) -> None:
    run(usr, TOUCH, f"CREATE TRIGGER {name} AFTER INSERT ON usr FOR EACH ROW EXECUTE FUNCTION touch()")
    track(usr, ["usr"], replace(FIELDS, rows=rows))
    both = [*came("idu=1", fname="a"), *changed("idu=1", age=(None, "1"))]
    expected = both if first == 1 else both[::-1]
    assert left_by(usr, "INSERT INTO usr (idu, fname) VALUES (1, 'a')") == expected


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("options", [FIELDS, ROW_BACK], ids=["field", "row-back"])
def test_a_key_that_passes_between_transactions_is_read_back(
    postgresql: Engine, options: TriggerOptions, rows: bool
) -> None:
    """The one that takes it is logged before the one that leaves it, and neither sees the other."""
    install(postgresql)
    run(postgresql, SEAT, "INSERT INTO s VALUES (1, 'a')")
    track(postgresql, ["s"], replace(options, rows=rows))
    with postgresql.connect() as leaves, postgresql.connect() as takes:
        takes.execute(text(TAKEN[0]))
        leaves.execute(text(TAKEN[1]))
        leaves.commit()
        takes.commit()
    first = came("id=1", x="b") if options is FIELDS else asked(5, "id=1")
    assert logged(postgresql) == [*first, *gone("id=1"), *asked(5, "id=1")]
    run(postgresql, "ALTER TABLE s DROP CONSTRAINT s_pkey", "ALTER TABLE s ADD PRIMARY KEY (id)")
    assert TriggerCondition.OUTDATED in states(postgresql)


def test_rows_of_partitions_that_change_keys_are_told_once(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE s (id INTEGER, x TEXT, PRIMARY KEY (id) DEFERRABLE) PARTITION BY RANGE (id)",
        "CREATE TABLE s1 PARTITION OF s FOR VALUES FROM (0) TO (9)",
        "CREATE TABLE s2 PARTITION OF s FOR VALUES FROM (9) TO (99)",
        "INSERT INTO s VALUES (1, 'a'), (2, 'b'), (11, 'c')",
    )
    track(postgresql, ["s"], FIELDS)
    for change in ("id = 3 - id WHERE id < 9", "id = 12 - id WHERE id IN (1, 11)"):
        kinds = [row[0] for row in left_by(postgresql, f"UPDATE s SET {change}")]
        assert [kinds.count(kind) for kind in (1, 4, 5)] == [2, 2, 2], change


def test_values_of_children_are_not_told_of_parents_that_may_have_ended(postgresql: Engine) -> None:
    install(postgresql)
    filled = ("INSERT INTO p VALUES (1)", "INSERT INTO c VALUES (1, 'x')")
    run(postgresql, "CREATE TABLE p (pid INTEGER PRIMARY KEY)")
    run(postgresql, "CREATE TABLE c (p INTEGER REFERENCES p, v TEXT, UNIQUE (p, v))", *filled)
    track(postgresql, ["p"], FIELDS)
    end, read = gone("pid=1"), asked(8, "pid=1", "c.v")
    assert left_by(postgresql, "TRUNCATE p CASCADE") == end
    run(postgresql, *filled)
    assert left_by(postgresql, "TRUNCATE c") == changed("pid=1", {"c.v": ("x", None)})
    # Who has emptied the parent before in the same transaction has it locked still.
    told: list[Logged] = [*end, *came("pid=1", {"pid": "1", "c.v": "x"}), *read]
    assert left_by(postgresql, "TRUNCATE p CASCADE", *filled, "TRUNCATE c") == told
    run(postgresql, filled[1])
    assert left_by(postgresql, "TRUNCATE c, p") == [*read, *end]


def test_a_partitioned_table_is_one_class_with_triggers_that_are_made_once(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *IN_PARTS)
    assert [found.name for found in reflect(postgresql) if not found.name.startswith("event_log")] == ["t", "tc"]
    made = track(postgresql, ["t"])
    assert track_sql(postgresql, ["t"]) == ""
    assert trigger_states(postgresql) == made


def test_another_formula_of_a_virtual_column_makes_triggers_outdated(postgresql: Engine) -> None:
    with postgresql.connect() as connection:
        if int(connection.execute(text("SHOW server_version_num")).scalar_one()) < 180_000:
            pytest.skip("virtual columns came with PostgreSQL 18")
    install(postgresql)
    run(postgresql, VIRTUAL)
    [column] = [column for column in reflect_table(postgresql, "t").columns if column.formula]
    assert (column.name, column.type) == ("V %", "INTEGER")
    track(postgresql, ["t"], FIELDS)
    run(postgresql, 'ALTER TABLE t ALTER COLUMN "V %" SET EXPRESSION AS (a + 2)')
    outdated = {one.name for one in trigger_states(postgresql) if one.state is TriggerCondition.OUTDATED}
    assert any(name.endswith("update") for name in outdated)


def test_whoever_truncates_what_their_snapshot_does_not_show_is_warned(usr: Engine) -> None:
    """Their trigger sees no more than they do; the rows of others go all the same."""
    run(usr, JACK)
    track(usr, ["usr"])
    for level, warned in (("READ COMMITTED", False), ("REPEATABLE READ", True), ("SERIALIZABLE", True)):
        notices: list[str] = []
        with usr.connect() as connection:
            driver: Any = connection.connection.driver_connection
            driver.add_notice_handler(lambda notice, heard=notices: heard.append(notice.message_primary))
            connection.execute(text(f"SET TRANSACTION ISOLATION LEVEL {level}"))
            connection.execute(text("TRUNCATE usr CASCADE"))
            connection.rollback()
        assert any("rows of public.usr that others have committed" in notice for notice in notices) is warned


def test_what_is_no_table_or_is_an_odd_one_is_called_by_its_name(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE UNLOGGED TABLE u (id INTEGER PRIMARY KEY)",
        "CREATE TABLE pa (id INTEGER PRIMARY KEY)",
        "CREATE TABLE ch (x INTEGER) INHERITS (pa)",
        "CREATE RULE other AS ON INSERT TO pa DO INSTEAD INSERT INTO ch VALUES (new.id)",
        "CREATE TABLE pt (id INTEGER PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE pt1 PARTITION OF pt DEFAULT",
        "CREATE MATERIALIZED VIEW mv AS SELECT * FROM u",
        "CREATE FOREIGN DATA WRAPPER w",
        "CREATE SERVER s FOREIGN DATA WRAPPER w",
        "CREATE FOREIGN TABLE ft (id INTEGER) SERVER s",
    )
    said = {name: " ".join(said_of(postgresql, [name])) for name in ("u", "pa", "pt1")}
    assert said["u"] == "u is UNLOGGED: a crash of the server empties it without a row in the log."
    assert "what is written to ch itself is not logged" in said["pa"]
    assert "has the rule other, which does something INSTEAD" in said["pa"]
    assert "pt1 is a partition of pt: track that one" in said["pt1"]
    for name, what in (("mv", "a materialised view"), ("ft", "a foreign table"), ("u_pkey", "an index")):
        with pytest.raises(InstallError, match=f"{name} is {what}"):
            track(postgresql, [name])
