"""What only PostgreSQL has: keys that swap, cascades, kept plans, foreign settings, rights, schemas, triggers that are set."""

from __future__ import annotations

import time

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install, uninstall
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.check.triggers import trigger_points
from eventlog.core.errors import UsageError
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.conformance.cases import CURRENT, FIELDS, changed, gone, installed_usr, states
from tests.support.logged import Logged, left_by, logged, run, said_of

FILL = "INSERT INTO usr SELECT i, 'f' || i, CASE WHEN i % 2 = 0 THEN 'l' || i END, i FROM generate_series(1, 5) AS i"
READ_OF_USR = text("SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_xact_user_tables WHERE relname = 'usr'")
"""How many rows of usr this transaction has read by scans of the whole table."""
ALWAYS = TriggerOptions(always=True)
REPLICA = "SET LOCAL session_replication_role = replica"
Held = dict[str, dict[str, str | None]]


@pytest.fixture
def usr(postgresql: Engine) -> Engine:
    return installed_usr(postgresql)


def replayed(rows: list[Logged], start: Held) -> Held:
    """Replay the field rows as a consumer does, and return its rows.

    Row triggers may tell of the row taking a key before the one leaving it. Then the key is read back, and brings the
    new row.
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


def held(engine: Engine, table: str, key: str) -> Held:
    """Read a table's rows without empty values."""
    with engine.connect() as connection:
        rows = [dict(row) for row in connection.execute(text(f"SELECT * FROM {table}")).mappings()]
    return {
        f"{key}={row.pop(key)}": {name: str(value) for name, value in row.items() if value is not None} for row in rows
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
    track(usr, ["usr"], replace(FIELDS, rows=rows))
    for statement in STATEMENTS[deferrable]:
        run(usr, "TRUNCATE usr CASCADE", FILL)
        before = held(usr, "usr", "idu")
        assert replayed(left_by(usr, statement), before) == held(usr, "usr", "idu"), statement


ACTS = "ON UPDATE CASCADE ON DELETE CASCADE"
SHAPES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "a tree": (
        (
            f"CREATE TABLE t (tid INTEGER PRIMARY KEY, up INTEGER REFERENCES t {ACTS}, x TEXT)",
            "INSERT INTO t VALUES (1, NULL, 'a'), (2, 1, 'b'), (3, 2, 'c'), (4, 4, 'd')",
        ),
        (
            "UPDATE t SET tid = tid + 10",
            "UPDATE t SET x = 'y', tid = tid + 10 WHERE tid = 12",
            "DELETE FROM t WHERE tid = 22",
        ),
    ),
    "two keys to one parent": (
        (
            "CREATE TABLE p (pid INTEGER PRIMARY KEY)",
            f"CREATE TABLE t (tid INTEGER PRIMARY KEY, a INTEGER REFERENCES p {ACTS}, b INTEGER REFERENCES p {ACTS})",
            "INSERT INTO p VALUES (1), (2), (3)",
            "INSERT INTO t VALUES (1, 1, 2), (2, 2, 1), (3, 1, 1), (4, 3, NULL)",
        ),
        ("UPDATE p SET pid = pid + 10", "DELETE FROM p WHERE pid IN (11, 13)"),
    ),
    "one deletes, the other clears": (
        (
            "CREATE TABLE p (pid INTEGER PRIMARY KEY)",
            "CREATE TABLE t (tid INTEGER PRIMARY KEY, a INTEGER REFERENCES p ON DELETE CASCADE)",
            "ALTER TABLE t ADD b INTEGER REFERENCES p ON DELETE SET NULL",
            "INSERT INTO p VALUES (1), (2), (3)",
            "INSERT INTO t VALUES (1, 1, 2), (2, 2, 1), (3, 1, 1), (4, 3, 2)",
        ),
        ("DELETE FROM p WHERE pid < 3",),
    ),
}


def believing_nothing(rows: list[Logged], begin: Held) -> Held:
    """Replay the log strictly: fail at each row that does not fit."""
    store = {key: dict(row) for key, row in begin.items()}
    for kind, key, column, old, new in rows:
        if not key.startswith("tid="):
            continue
        if kind == 4:
            assert store.pop(key, None) is not None, f"{key} ends and is not there"
            continue
        assert kind == 1 or key in store, f"{key} changes and is not there"
        row = store.setdefault(key, {})
        assert column is not None
        assert kind == 1 or row.get(column) == old, f"{column} of {key} was {row.get(column)} and not {old}"
        row.pop(column, None) if new is None else row.update({column: new})
    return store


@pytest.mark.parametrize("shape", SHAPES)
def test_where_foreign_keys_act_the_log_says_what_the_table_says(postgresql: Engine, shape: str) -> None:
    made, done = SHAPES[shape]
    install(postgresql)
    run(postgresql, *made)
    track(postgresql, ["t"], FIELDS)
    for one in done:
        before = held(postgresql, "t", "tid")
        assert believing_nothing(left_by(postgresql, one), before) == held(postgresql, "t", "tid")


def test_track_chooses_row_triggers_where_foreign_keys_act_and_says_why(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, *SHAPES["two keys to one parent"][0])
    run(postgresql, "CREATE TABLE o (oid INTEGER PRIMARY KEY REFERENCES p ON DELETE CASCADE)")
    track(postgresql, ["p", "t", "o"])
    [said] = said_of(postgresql, ["p", "t", "o"])
    assert said.startswith(
        "t gets row triggers, because foreign keys may change one of its rows twice when p is changed; "
    )
    assert "because" not in " ".join(said_of(postgresql, ["t"], TriggerOptions(rows=True)))
    with postgresql.connect() as connection:
        query = "SELECT relname, bool_or(tgtype & 1 = 1) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
        found = connection.execute(text(f"{query} WHERE tgname LIKE 'event\\_log%' GROUP BY relname"))
        assert sorted(map(tuple, found)) == [("o", False), ("p", False), ("t", True)]
    run(postgresql, "ALTER TABLE o ADD up INTEGER REFERENCES o ON UPDATE CASCADE")
    assert TriggerCondition.OUTDATED in states(postgresql), "a foreign key came later"


def test_truncate_is_a_delete_of_every_row_and_every_value_of_a_child(usr: Engine) -> None:
    track(usr, ["usr"], FIELDS)
    run(usr, FILL, "INSERT INTO usr_phone VALUES (1, 'a'), (2, NULL)")
    assert left_by(usr, "TRUNCATE usr_phone") == changed("idu=1", {"usr_phone.phoneno": ("a", None)})
    assert sorted(left_by(usr, "TRUNCATE usr CASCADE")) == gone(*(f"idu={number}" for number in range(1, 6)))


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_plans_kept_from_single_rows_do_not_slow_a_bulk_statement(usr: Engine, style: Style) -> None:
    track(usr, ["usr"], TriggerOptions(style=style))
    with usr.connect() as connection:
        connection.execute(text("INSERT INTO usr VALUES (0, 'zero')"))
        for number in range(8):
            connection.execute(text(f"UPDATE usr SET age = {number} WHERE idu = 0"))
        connection.execute(text("INSERT INTO usr SELECT i, 'f' || i, 'l', i FROM generate_series(1, 20000) AS i"))
        start = time.perf_counter()
        connection.execute(text("UPDATE usr SET age = age + 1"))
        used = time.perf_counter() - start
        connection.commit()
    assert used < 20, "a nested loop over the transition tables takes minutes"


def test_children_are_looked_up_by_key_also_when_the_plan_was_made_for_few(usr: Engine) -> None:
    track(usr, ["usr"], FIELDS)
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
    track(postgresql, ["t"], FIELDS)
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


def test_a_session_that_refuses_escaped_quotes_may_write(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE t (k text PRIMARY KEY, v text)")
    track(postgresql, ["t"], FIELDS)
    assert left_by(postgresql, "SET LOCAL backslash_quote = off", "INSERT INTO t VALUES ('it''s', 'x')") == [
        (1, 'k="it\'s"', "v", None, "x")
    ]


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
    run(usr, "CREATE TABLE pg_temp.event_log (LIKE public.event_log)", "SET search_path = pg_temp, public")
    run(usr, "SET search_path = pg_temp, public", "INSERT INTO usr (idu) VALUES (1)")
    with usr.connect() as connection:
        assert connection.execute(text("SELECT COUNT(*) FROM public.event_log")).scalar() == 1


def test_rows_that_are_copied_in_are_logged(usr: Engine) -> None:
    for rows in (False, True):
        run(usr, "DELETE FROM usr", "DELETE FROM event_log")
        track(usr, ["usr"], replace(FIELDS, rows=rows))
        raw = usr.raw_connection()
        with raw.cursor().copy("COPY usr (idu, fname) FROM STDIN") as copy:
            copy.write("1\tJack\n2\t\\N\n")
        raw.commit()
        raw.close()
        assert logged(usr)[-2:] == [(1, "idu=1", "fname", None, "Jack"), (1, "idu=2", "fname", None, None)]


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
    assert states(postgresql, names) == CURRENT


OTHER = "CREATE OR REPLACE FUNCTION event_log_usr_insert() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"


@pytest.mark.parametrize(
    "options, done, condition",
    [
        (TriggerOptions(), "ALTER TABLE usr DISABLE TRIGGER event_log_usr_insert", TriggerCondition.DISABLED),
        (ALWAYS, "ALTER TABLE usr ENABLE TRIGGER event_log_usr_insert", TriggerCondition.DISABLED),
        (TriggerOptions(), OTHER, TriggerCondition.OUTDATED),
    ],
    ids=["disabled", "set back", "edited"],
)
def test_a_trigger_that_somebody_altered_is_told_and_made_good(
    usr: Engine, options: TriggerOptions, done: str, condition: TriggerCondition
) -> None:
    track(usr, ["usr"], options)
    run(usr, done)
    found = {state.name: state.state for state in trigger_states(usr)}
    assert found.pop("event_log_usr_insert") is condition
    assert set(found.values()) == CURRENT
    assert {state.state for state in track(usr, ["usr"])} == CURRENT


@pytest.mark.parametrize("rows", [False, True])
def test_a_replicated_change_is_logged_by_triggers_that_fire_always(usr: Engine, rows: bool) -> None:
    track(usr, ["usr"], TriggerOptions(rows=rows, always=True))
    run(usr, REPLICA, "INSERT INTO usr (idu) VALUES (2)")
    run(usr, "INSERT INTO usr (idu) VALUES (3)")
    assert [row[1] for row in logged(usr)] == ["idu=2", "idu=3"]


def test_that_they_fire_always_is_kept_and_said_until_it_is_taken_back(usr: Engine) -> None:
    track(usr, ["usr"], ALWAYS)
    assert {one.asked for one in track(usr, ["usr"])} == {"--events row-back --always"}
    run(usr, "ALTER TABLE usr ENABLE TRIGGER event_log_usr_insert")
    mends = {point.mend for point in trigger_points(usr, LogNames(schema="public"))}
    assert mends == {"Run `eventlog track public.usr --events row-back --always --reset`."}
    assert {one.asked for one in track(usr, ["usr"], TrackRequest(reset=True))} == {"--events row-back"}
    assert left_by(usr, REPLICA, "INSERT INTO usr (idu) VALUES (1)") == []


def test_a_view_cannot_fire_always(usr: Engine) -> None:
    run(
        usr,
        "CREATE VIEW person AS SELECT idu AS pk_idu, fname FROM usr",
        "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER writes INSTEAD OF INSERT ON person FOR EACH ROW EXECUTE FUNCTION nothing()",
    )
    with pytest.raises(UsageError, match="is a view; --always is for tables"):
        track(usr, ["person"], ALWAYS)


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
