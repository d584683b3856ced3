"""What only PostgreSQL has: TRUNCATE, keys that swap, kept plans, partitions, foreign settings, rights, row triggers."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install, uninstall
from eventlog.sql.names import LogNames
from tests.support.logged import USR, Logged, left_by, logged, run

FILL = "INSERT INTO usr SELECT i, 'f' || i, CASE WHEN i % 2 = 0 THEN 'l' || i END, i FROM generate_series(1, 5) AS i"

READ_OF_USR = text("SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE relname = 'usr'")
"""How many rows of usr this transaction has read by scans of the whole table."""


@pytest.fixture
def usr(postgresql: Engine) -> Engine:
    install(postgresql)
    run(postgresql, *USR)
    return postgresql


Held = dict[str, dict[str, str | None]]


def replayed(rows: list[Logged], start: Held) -> Held:
    """What a consumer of the field rows holds in the end.

    Row triggers may tell of the row that takes a key before they tell of the one that leaves it. Then the key is read back,
    which brings what came.
    """
    stays = {key: dict(values) for key, values in start.items()}
    came: Held = {}
    left, unsure, read_back = set[str](), set[str](), set[str]()
    for kind, key, column, _, new in rows:
        if kind == 4:
            stays.pop(key, None)
            left.add(key)
            unsure |= {key} & came.keys()
        elif kind == 5:
            read_back.add(key)
        elif column is not None:
            (came if kind == 1 else stays).setdefault(key, {})[column] = new
    assert unsure <= read_back <= left
    return {
        key: {column: value for column, value in values.items() if value is not None}
        for key, values in {**stays, **came}.items()
    }


def standing(engine: Engine) -> Held:
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT idu, fname, lname, age::text FROM usr"))
        return {
            f"idu={row[0]}": {n: v for n, v in zip(("fname", "lname", "age"), row[1:], strict=True) if v}
            for row in rows
        }


STATEMENTS = {
    "DEFERRABLE": (
        "UPDATE usr SET idu = idu + 1",
        "UPDATE usr SET idu = 6 - idu",
        "UPDATE usr SET idu = CASE idu WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE idu END, fname = fname || idu",
        "UPDATE usr SET idu = idu + 100, lname = NULL WHERE idu > 3",
        "WITH gone AS (DELETE FROM usr WHERE idu = 5) UPDATE usr SET age = age + 1 WHERE idu < 3",
        "TRUNCATE usr CASCADE",
    ),
    "": (  # what a deferrable key cannot serve
        "INSERT INTO usr VALUES (1, 'x'), (9, 'y') ON CONFLICT (idu) DO UPDATE SET fname = excluded.fname",
        "INSERT INTO usr VALUES (1, 'x') ON CONFLICT DO NOTHING",
    ),
}


@pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])
@pytest.mark.parametrize("deferrable", STATEMENTS)
def test_the_log_says_what_the_table_says(usr: Engine, deferrable: str, rows: bool) -> None:
    key = f"ALTER TABLE usr ADD PRIMARY KEY (idu) {deferrable}"
    run(usr, "ALTER TABLE usr DROP CONSTRAINT usr_pkey CASCADE", key)
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    for statement in STATEMENTS[deferrable]:
        run(usr, "TRUNCATE usr CASCADE", FILL)
        before = standing(usr)
        assert replayed(left_by(usr, statement), before) == standing(usr), statement


def test_truncate_is_a_delete_of_every_row_and_every_value_of_a_child(usr: Engine) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    run(usr, FILL, "INSERT INTO usr_phone VALUES (1, 'a'), (2, NULL)")
    assert left_by(usr, "TRUNCATE usr_phone") == [(2, "idu=1", "usr_phone.phoneno", "a", None)]
    assert sorted(left_by(usr, "TRUNCATE usr CASCADE")) == [
        (4, f"idu={number}", None, None, None) for number in range(1, 6)
    ]


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_plans_kept_from_single_rows_do_not_slow_a_bulk_statement(usr: Engine, style: Style) -> None:
    track(usr, ["usr"], TriggerOptions(style=style))
    many = "INSERT INTO usr SELECT i, 'f' || i, 'l', i FROM generate_series(1, 20000) AS i"
    with usr.connect() as connection:
        connection.execute(text("INSERT INTO usr VALUES (0, 'zero')"))
        for number in range(8):
            connection.execute(text(f"UPDATE usr SET age = {number} WHERE idu = 0"))
        connection.execute(text(many))
        start = time.perf_counter()
        connection.execute(text("UPDATE usr SET age = age + 1"))
        used = time.perf_counter() - start
        connection.commit()
    assert used < 20, "a nested loop over the transition tables takes minutes"


def test_children_are_looked_up_by_key_also_when_the_plan_was_made_for_few(usr: Engine) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    with usr.connect() as connection:
        connection.execute(text("INSERT INTO usr (idu) VALUES (0)"))
        for _ in range(8):
            connection.execute(text("INSERT INTO usr_phone VALUES (0, 'x')"))
            connection.execute(text("DELETE FROM usr_phone"))
        connection.execute(text("INSERT INTO usr (idu) SELECT generate_series(1, 10000)"))
        connection.execute(text("INSERT INTO usr_phone SELECT idu, 'y' FROM usr"))
        before = connection.execute(READ_OF_USR).scalar_one()
        connection.execute(text("DELETE FROM usr_phone"))
        read = connection.execute(READ_OF_USR).scalar_one() - before
        connection.commit()
    assert before >= 10_000, "the INSERT above has read the table once"
    assert read < 100_000, "each scan of the parent table reads ten thousand rows"


def test_texts_do_not_depend_on_the_session(postgresql: Engine) -> None:
    install(postgresql)
    types = "d date, s timestamp, z timestamptz, f float8, i interval, b bytea, o boolean, n numeric, j jsonb, a date[], r real"
    run(postgresql, f"CREATE TABLE t (k timestamptz, {types}, PRIMARY KEY (k, d))")
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD))
    values = (
        "INSERT INTO t VALUES ('2025-03-23 10:57:19.25+00', '2025-03-01', '2025-03-23 10:57:19.25', '2025-03-23 10:57:19Z',"
        " 0.1::float8 + 0.2::float8, '1 day 2 hours', '\\xaaaa', true, 1.50, '{\"a\": 1}', '{2025-03-01}', 0.1)"
    )
    settings = (
        "SET LOCAL datestyle = 'German, DMY'",
        "SET LOCAL timezone = 'Asia/Kolkata'",
        "SET LOCAL intervalstyle = 'iso_8601'",
        "SET LOCAL extra_float_digits = -5",
        "SET LOCAL bytea_output = 'escape'",
        "SET LOCAL standard_conforming_strings = off",
        "SET LOCAL search_path = pg_catalog",
    )
    plain = left_by(postgresql, values)
    run(postgresql, "DELETE FROM t", "DELETE FROM event_log")
    foreign = values.replace("INTO t", "INTO public.t").replace("\\x", "\\\\x")
    run(postgresql, *settings, foreign)
    assert logged(postgresql) == plain
    assert {row[1] for row in plain} == {"k=2025-03-23 10:57:19.250000000+d=2025-03-01"}
    assert {row[2]: row[4] for row in plain} == {
        "s": "2025-03-23 10:57:19.250000000",
        "z": "2025-03-23 10:57:19.000000000",
        "f": "0.30000000000000004",
        "i": "1 day 02:00:00",
        "b": "qqo=",
        "o": "1",
        "n": "1.50",
        "j": '{"a": 1}',
        "a": "{2025-03-01}",
        "r": "0.1",
    }


def test_dates_beyond_the_calendars_form_are_logged_too(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE t (id INTEGER PRIMARY KEY, d date, s timestamp, z timestamptz)")
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD))
    rows = left_by(postgresql, "INSERT INTO t VALUES (1, 'infinity', '-infinity', '0044-03-15 12:00:00+00 BC')")
    assert [row[4] for row in rows] == ["infinity", "-infinity", "0044-03-15 12:00:00 BC"]


@pytest.mark.parametrize("rows", [False, True])
def test_columns_may_be_called_as_triggers_call_rows(postgresql: Engine, rows: bool) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE odd (id INTEGER PRIMARY KEY, n TEXT, o TEXT, old TEXT, new TEXT)")
    track(postgresql, ["odd"], TriggerOptions(style=Style.ROW_BACK, rows=rows))
    run(postgresql, "INSERT INTO odd VALUES (1, 'a', 'a', 'a', 'a')")
    run(postgresql, "UPDATE odd SET o = 'b'", "UPDATE odd SET new = 'b'", "UPDATE odd SET n = 'a'")
    assert [kind for kind, *_ in logged(postgresql)] == [5, 6, 6]


def test_types_whose_equality_is_not_that_of_their_texts_are_compared_as_text(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE t (n numeric PRIMARY KEY, j json, p point, m varchar(9))",
        "INSERT INTO t VALUES (1.0, '{}', '(1,2)', 'a')",
    )
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD))
    assert left_by(postgresql, "UPDATE t SET j = '{}', p = '(1,2)'") == []
    assert left_by(postgresql, "UPDATE t SET j = '[]', p = '(1,3)'") == [
        (2, "n=1.0", "j", "{}", "[]"),
        (2, "n=1.0", "p", "(1,2)", "(1,3)"),
    ]
    assert {row[:2] for row in left_by(postgresql, "UPDATE t SET n = 1.00")} == {(4, "n=1.0"), (1, "n=1.00")}


def test_writers_need_no_right_on_the_log_and_are_named(usr: Engine) -> None:
    track(usr, ["usr"])
    run(usr, "CREATE ROLE writer LOGIN", "GRANT INSERT ON usr TO writer")
    other = create_engine(usr.url.set(username="writer"))
    try:
        run(other, "INSERT INTO usr (idu) VALUES (1)")
        with other.connect() as connection, pytest.raises(Exception, match="permission denied for table event_log"):
            connection.execute(text("SELECT * FROM event_log"))
        with usr.connect() as connection:
            assert connection.execute(text("SELECT perpetrator FROM event_log")).scalars().all() == ["writer"]
    finally:
        other.dispose()
        run(usr, "DROP OWNED BY writer", "DROP ROLE writer")


def test_a_shadowing_search_path_does_not_reach_the_functions(usr: Engine) -> None:
    track(usr, ["usr"])
    run(
        usr,
        "CREATE TABLE pg_temp.event_log (LIKE public.event_log)",
        "SET search_path = pg_temp, public",
        "INSERT INTO usr (idu) VALUES (1)",
    )
    with usr.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM public.event_log")).scalar() == 1


def test_partitioned_tables_and_copy(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT) PARTITION BY RANGE (id)",
        "CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20)",
    )
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD))
    raw = postgresql.raw_connection()
    with raw.cursor().copy("COPY t FROM STDIN") as copy:
        copy.write_row((1, "a"))
    raw.commit()
    raw.close()
    assert logged(postgresql) == [(1, "id=1", "x", None, "a")]
    moved = left_by(postgresql, "UPDATE t SET id = 11")
    assert sorted(moved, key=str) == [(1, "id=11", "x", None, "a"), (4, "id=1", None, None, None)]
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD, rows=True))
    assert left_by(postgresql, "UPDATE t2 SET x = 'b'") == [(2, "id=11", "x", "a", "b")]


def test_tables_and_logs_in_schemas_of_their_own(postgresql: Engine) -> None:
    run(postgresql, "CREATE SCHEMA indirect", "CREATE SCHEMA shop")
    names = LogNames(schema="indirect")
    install(postgresql, names)
    for schema in ("indirect", "shop"):
        run(postgresql, f"CREATE TABLE {schema}.usr (id INTEGER PRIMARY KEY)")
        track(postgresql, [f"{schema}.usr"], names=names)
        run(postgresql, f"INSERT INTO {schema}.usr VALUES (1)")
    with postgresql.connect() as connection:
        found = connection.execute(text("SELECT table_name FROM indirect.event_log ORDER BY record_id")).scalars().all()
    assert found == ["usr", "shop.usr"]
    assert {state.state for state in trigger_states(postgresql, names)} == {TriggerCondition.CURRENT}


def test_a_disabled_trigger_is_told_and_tracked_again(usr: Engine) -> None:
    track(usr, ["usr"])
    run(usr, "ALTER TABLE usr DISABLE TRIGGER event_log_usr_insert")
    states = {state.name: state.state for state in trigger_states(usr)}
    assert states.pop("event_log_usr_insert") is TriggerCondition.DISABLED
    assert set(states.values()) == {TriggerCondition.CURRENT}
    assert {state.state for state in track(usr, ["usr"])} == {TriggerCondition.CURRENT}


def test_a_function_that_somebody_edited_is_outdated(usr: Engine) -> None:
    track(usr, ["usr"])
    run(
        usr,
        "CREATE OR REPLACE FUNCTION event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    )
    states = {state.name: state.state for state in trigger_states(usr)}
    assert states["event_log_usr_insert"] is TriggerCondition.OUTDATED


def test_names_longer_than_the_database_takes_are_shortened(postgresql: Engine) -> None:
    install(postgresql)
    long = "t" * 60
    run(postgresql, f"CREATE TABLE {long} (id INTEGER PRIMARY KEY)")
    names = [state.name for state in track(postgresql, [long])]
    assert len(set(names)) == 4
    assert all(len(name) <= 63 for name in names)


def test_uninstalling_takes_the_logs_own_types_off(usr: Engine) -> None:
    query = text("SELECT typname FROM pg_type WHERE typtype = 'd' AND typname LIKE 'event_log%' ORDER BY 1")
    with usr.connect() as connection:
        assert connection.execute(query).scalars().all() == ["event_log_kind", "event_log_letter"]
    uninstall(usr)
    with usr.connect() as connection:
        assert connection.execute(query).scalars().all() == []


def test_a_poll_reads_the_index_of_waiting_rows(usr: Engine) -> None:
    run(
        usr,
        "INSERT INTO event_log (table_key, event_type, table_name, status) SELECT 'idu=' || n, 6, 'usr', 'S' FROM generate_series(1, 5000) AS n",
    )
    run(usr, "ANALYZE event_log")
    with usr.connect() as connection:
        plan = connection.execute(
            text("EXPLAIN SELECT * FROM event_log WHERE status = 'N' ORDER BY record_id LIMIT 10")
        )
        assert any("event_log_new" in line for line in plan.scalars())
