"""Statements that only PostgreSQL has, or that it does in its own way: MERGE, COPY, identities, cascades, partitions."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.capture.install import install
from eventlog.core.errors import InstallError
from tests.support.logged import USR, left_by, logged, run, said_of

JACK = "INSERT INTO usr VALUES (1, 'Jack', 'Frost', NULL)"
MERGE = """
MERGE INTO usr USING (VALUES (1, 'John'), (2, 'Ida'), (3, NULL)) AS come (idu, fname) ON usr.idu = come.idu
WHEN MATCHED AND come.fname IS NULL THEN DELETE
WHEN MATCHED THEN UPDATE SET fname = come.fname
WHEN NOT MATCHED THEN INSERT (idu, fname) VALUES (come.idu, come.fname)
"""
both = pytest.mark.parametrize("rows", [False, True], ids=["statement", "row"])


@pytest.fixture
def usr(postgresql: Engine) -> Engine:
    install(postgresql)
    run(postgresql, *USR)
    return postgresql


def version(engine: Engine) -> int:
    with engine.connect() as connection:
        return int(connection.execute(text("SHOW server_version_num")).scalar_one()) // 10_000


@both
def test_a_merge_is_the_inserts_updates_and_deletes_that_it_makes(usr: Engine, rows: bool) -> None:
    if version(usr) < 15:
        pytest.skip("MERGE came with PostgreSQL 15")
    run(usr, JACK, "INSERT INTO usr VALUES (3, 'Joe')")
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    assert sorted(left_by(usr, MERGE), key=str) == [
        (1, "idu=2", "fname", None, "Ida"),
        (2, "idu=1", "fname", "Jack", "John"),
        (4, "idu=3", None, None, None),
    ]


@both
def test_one_upsert_tells_what_came_and_what_changed(usr: Engine, rows: bool) -> None:
    run(usr, JACK)
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    upsert = "INSERT INTO usr VALUES (1, 'John'), (2, 'Ida') ON CONFLICT (idu) DO UPDATE SET fname = excluded.fname"
    assert sorted(left_by(usr, upsert), key=str) == [
        (1, "idu=2", "fname", None, "Ida"),
        (2, "idu=1", "fname", "Jack", "John"),
    ]


@both
def test_copy_is_an_insert_of_its_rows(usr: Engine, rows: bool) -> None:
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    raw = usr.raw_connection()
    with raw.cursor().copy("COPY usr (idu, fname) FROM STDIN") as copy:
        copy.write("1\tJack\n2\t\\N\n")
    raw.commit()
    raw.close()
    assert logged(usr) == [(1, "idu=1", "fname", None, "Jack"), (1, "idu=2", "fname", None, None)]


@both
def test_identities_serials_and_defaults_are_told_as_they_became(postgresql: Engine, rows: bool) -> None:
    install(postgresql)
    number = "k INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    run(postgresql, f"CREATE TABLE t ({number}, n SERIAL, at DATE DEFAULT '2025-03-23', s TEXT)")
    track(postgresql, ["t"], TriggerOptions(style=Style.FIELD, rows=rows))
    assert left_by(postgresql, "INSERT INTO t (s) VALUES ('x')") == [
        (1, "k=1", "n", None, "1"),
        (1, "k=1", "at", None, "2025-03-23"),
        (1, "k=1", "s", None, "x"),
    ]


@both
def test_a_key_that_cascades_takes_the_values_of_its_children_along(postgresql: Engine, rows: bool) -> None:
    install(postgresql)
    foreign = "FOREIGN KEY (idu) REFERENCES usr (idu) ON UPDATE CASCADE ON DELETE CASCADE"
    run(postgresql, USR[0], f"CREATE TABLE usr_phone (idu INTEGER, phoneno VARCHAR(32), {foreign})", JACK)
    run(postgresql, "INSERT INTO usr_phone VALUES (1, '22')")
    track(postgresql, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    found = left_by(postgresql, "UPDATE usr SET idu = 2")
    assert {(4, "idu=1", None, None, None), (1, "idu=2", "fname", None, "Jack")} < set(found)
    assert (1, "idu=2", "usr_phone.phoneno", None, "22") in found
    assert left_by(postgresql, "DELETE FROM usr") == [(4, "idu=2", None, None, None)]


def test_a_partition_that_is_added_later_is_captured_with_the_table(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT) PARTITION BY RANGE (id)")
    for rows in (False, True):
        track(postgresql, ["t"], TriggerOptions(style=Style.FIELD, rows=rows))
        low = 10 * rows
        run(postgresql, f"CREATE TABLE t{low} PARTITION OF t FOR VALUES FROM ({low}) TO ({low + 10})")
        assert left_by(postgresql, f"INSERT INTO t VALUES ({low}, 'a')") == [(1, f"id={low}", "x", None, "a")]


@pytest.mark.parametrize("style", Style)
def test_truncate_tells_the_rows_in_every_style(usr: Engine, style: Style) -> None:
    run(usr, JACK)
    track(usr, ["usr"], TriggerOptions(style=style))
    row = '{"fname":"Jack","lname":"Frost","age":null}' if style is Style.IMAGE else None
    assert left_by(usr, "TRUNCATE usr CASCADE") == [(4, "idu=1", None, row, None)]


@both
def test_sessions_that_only_repeat_others_are_not_captured_twice(usr: Engine, rows: bool) -> None:
    track(usr, ["usr"], TriggerOptions(rows=rows))
    assert left_by(usr, "SET LOCAL session_replication_role = replica", JACK) == []


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
        found = left_by(postgresql, "INSERT INTO t VALUES (1, 5), (2, 6)", "DELETE FROM t")
        assert [row[:2] for row in found] == [(5, "k=2"), (4, "k=2")]


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
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    found = left_by(usr, "INSERT INTO usr (idu, fname) VALUES (1, 'a')")
    assert [row[0] for row in found] == sorted([1, 2], reverse=first == 2)
    assert set(found) == {(1, "idu=1", "fname", None, "a"), (2, "idu=1", "age", None, "1")}


@both
def test_what_triggers_before_a_change_make_of_it_is_what_is_told(usr: Engine, rows: bool) -> None:
    loud = "BEGIN NEW.fname = upper(NEW.fname); RETURN NEW; END"
    run(
        usr,
        f"CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS '{loud}'",
        "CREATE TRIGGER z_loud BEFORE INSERT OR UPDATE ON usr FOR EACH ROW EXECUTE FUNCTION loud()",
    )
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD, rows=rows))
    found = left_by(usr, "INSERT INTO usr (idu, fname) VALUES (1, 'a')", "UPDATE usr SET fname = 'b'")
    assert found == [(1, "idu=1", "fname", None, "A"), (2, "idu=1", "fname", "A", "B")]


def test_a_parent_sees_what_is_done_to_its_heirs_through_it(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE p (id INTEGER PRIMARY KEY, x TEXT)", "CREATE TABLE c (y TEXT) INHERITS (p)")
    track(postgresql, ["p"], TriggerOptions(style=Style.FIELD))
    assert left_by(postgresql, "INSERT INTO c VALUES (1, 'a', 'b')", "UPDATE c SET x = 'z'") == []
    assert left_by(postgresql, "UPDATE p SET x = 'q'", "DELETE FROM p") == [
        (2, "id=1", "x", "z", "q"),
        (4, "id=1", None, None, None),
    ]


def test_an_heir_sees_what_is_done_to_it_through_its_parent(postgresql: Engine) -> None:
    install(postgresql)
    run(postgresql, "CREATE TABLE p (id INTEGER, x TEXT)", "CREATE TABLE c (PRIMARY KEY (id)) INHERITS (p)")
    track(postgresql, ["c"], TriggerOptions(style=Style.FIELD))
    assert left_by(postgresql, "INSERT INTO c VALUES (1, 'a')", "UPDATE p SET x = 'q'", "DELETE FROM p") == [
        (1, "id=1", "x", None, "a"),
        (2, "id=1", "x", "a", "q"),
        (4, "id=1", None, None, None),
    ]


@both
def test_a_composite_value_with_a_part_that_is_null_is_a_value(postgresql: Engine, rows: bool) -> None:
    """To IS NOT NULL it is neither there nor not."""
    install(postgresql)
    run(
        postgresql,
        "CREATE TYPE pair AS (a INTEGER, b INTEGER)",
        "CREATE TABLE p (id INTEGER PRIMARY KEY, x pair, y pair)",
        "CREATE TABLE c (p INTEGER REFERENCES p, v pair, UNIQUE (p, v))",
    )
    track(postgresql, ["p"], TriggerOptions(style=Style.FIELD, rows=rows))
    assert left_by(postgresql, "INSERT INTO p VALUES (1, '(1,)', '(,)'), (2, NULL, '(,)')") == [
        (1, "id=1", "x", None, "(1,)"),
        (1, "id=1", "y", None, "(,)"),
        (1, "id=2", "y", None, "(,)"),
    ]
    assert left_by(postgresql, "UPDATE p SET x = NULL WHERE id = 1") == [(2, "id=1", "x", "(1,)", None)]
    assert left_by(postgresql, "INSERT INTO c VALUES (1, '(,2)')") == [(1, "id=1", "c.v", None, "(,2)")]
    assert left_by(postgresql, "DELETE FROM c") == [(2, "id=1", "c.v", "(,2)", None)]


@both
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_what_has_the_key_of_a_row_that_goes_is_read_back(postgresql: Engine, style: Style, rows: bool) -> None:
    """A key that is looked at when the transaction ends: the new row comes before the old one goes."""
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE s (id INTEGER, x TEXT, PRIMARY KEY (id) DEFERRABLE INITIALLY DEFERRED)",
        "INSERT INTO s VALUES (1, 'a')",
    )
    track(postgresql, ["s"], TriggerOptions(style=style, rows=rows))
    came = (1, "id=1", "x", None, "b") if style is Style.FIELD else (5, "id=1", None, None, None)
    gone, look = (4, "id=1", None, None, None), (5, "id=1", None, None, None)
    assert left_by(postgresql, "INSERT INTO s VALUES (1, 'b')", "DELETE FROM s WHERE x = 'a'") == [came, gone, look]
    found = left_by(postgresql, "INSERT INTO s VALUES (1, 'b')", "UPDATE s SET id = 2 WHERE ctid = '(0,2)'")
    assert [row for row in found if row[1] == "id=1"] == [came, gone, look]
    assert left_by(postgresql, "DELETE FROM s WHERE id = 1") == [gone, look]
    run(postgresql, "ALTER TABLE s DROP CONSTRAINT s_pkey", "ALTER TABLE s ADD PRIMARY KEY (id)")
    assert TriggerCondition.OUTDATED in {state.state for state in trigger_states(postgresql)}


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


def test_no_date_is_too_far_to_be_logged(postgresql: Engine) -> None:
    """A date may be later than any timestamp; a trigger that took it for one would refuse the write."""
    install(postgresql)
    run(postgresql, "CREATE TABLE d (id DATE PRIMARY KEY, x DATE)")
    track(postgresql, ["d"], TriggerOptions(style=Style.FIELD))
    for day in ("5874897-12-31", "294277-01-01", "294276-12-31", "infinity", "-infinity", "9999-12-31"):
        assert left_by(postgresql, f"INSERT INTO d VALUES ('{day}', '{day}')") == [(1, f"id={day}", "x", None, day)]


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
