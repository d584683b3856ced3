"""PostgreSQL follows ALTER TABLE in its own transaction: nothing is lost, no writer fails, and what was left out stays out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install, uninstall, uninstall_sql
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, track_sql, trigger_states, untrack
from eventlog.check.point import PointLevel
from eventlog.check.triggers import trigger_points
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import Table
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import list_tracked
from eventlog.tracked.options import Style, TrackRequest, TriggerOptions
from tests.support.following import Site
from tests.support.logged import USR, left_by, logged, run, unnumbered

LOG = LogNames(schema="public")
FOLLOWED = TriggerOptions(style=Style.FIELD, exclude=("age",), follow_ddl=True)
CHANGES = (
    ("INSERT INTO usr (idu) VALUES (1)", {1, 5}, "1"),
    ("INSERT INTO usr_phone (idu, phoneno) VALUES (1, 1)", {1, 6}, "1"),
    ("UPDATE usr_phone SET phoneno = 2", {1, 2, 6}, "1"),
    ("UPDATE usr SET OTHER = 2", {2, 6}, "1"),
    ("DELETE FROM usr_phone", {2, 6}, "1"),
    ("UPDATE usr SET idu = 3", {1, 2, 4, 5}, ""),
    ("DELETE FROM usr", {4}, "3"),
    ("INSERT INTO usr (idu) VALUES (2)", {1, 5}, "2"),
    ("TRUNCATE usr, usr_phone", {4}, "2"),
)
"""Statements, what they may leave in the log, and about which object."""
ALTERATIONS = [
    "ALTER TABLE usr ADD COLUMN mail text",
    "ALTER TABLE usr DROP COLUMN fname",
    "ALTER TABLE usr RENAME COLUMN fname TO called",
    "ALTER TABLE usr ALTER COLUMN fname TYPE text",
    "ALTER TABLE usr ALTER COLUMN fname TYPE integer USING NULL",
    "ALTER TABLE usr RENAME COLUMN idu TO number",
    "ALTER TABLE usr ALTER COLUMN idu TYPE bigint",
    "ALTER TABLE usr RENAME TO person",
    'ALTER TABLE usr RENAME TO "it\'s a ""person"" $eventlog \\"',
    "ALTER TABLE usr_phone ADD COLUMN kind text",
    "ALTER TABLE usr_phone RENAME COLUMN phoneno TO number",
    "ALTER TABLE usr_phone RENAME COLUMN idu TO held",
    "ALTER TABLE usr_phone RENAME TO telephone",
    "CREATE SCHEMA other; ALTER TABLE usr SET SCHEMA other; ALTER TABLE usr_phone SET SCHEMA other",
    "ALTER TABLE usr DROP CONSTRAINT usr_pkey CASCADE; ALTER TABLE usr ADD COLUMN id2 serial PRIMARY KEY",
]


@pytest.fixture
def usr(postgresql: Engine) -> Engine:
    install(postgresql)
    run(postgresql, *USR)
    return postgresql


def states(engine: Engine) -> set[TriggerCondition]:
    return {one.state for one in trigger_states(engine)}


def found(engine: Engine, query: str) -> list[str]:
    with engine.connect() as connection:
        return [str(row[0]) for row in connection.execute(text(query))]


def today(engine: Engine) -> dict[str, str]:
    """Read the present names of the test's tables and columns."""
    named = "SELECT {} FROM pg_trigger JOIN pg_attribute ON attrelid = tgrelid AND attnum = {} WHERE tgname = 'event_log_usr{}_insert'"
    tables = {"usr": "", "usr_phone": "__usr_phone"}
    called = {name: found(engine, named.format("tgrelid::regclass", 1, trigger))[0] for name, trigger in tables.items()}
    held, phoneno = (found(engine, named.format("quote_ident(attname)", number, "__usr_phone"))[0] for number in (1, 2))
    return called | {"held": held, "phoneno": phoneno, "idu": found(engine, named.format("attname", 1, ""))[0]}


def in_words_of(called: dict[str, str], change: str, other: str) -> str:
    """Put today's names into a change."""
    key = called["held"] if "usr_phone" in change and "TRUNCATE" not in change else called["idu"]
    names = {
        "idu": key,
        "phoneno": called["phoneno"],
        "usr_phone": called["usr_phone"],
        "usr": called["usr"],
        "OTHER": other,
    }
    return re.sub(r"\b(usr_phone|usr|idu|phoneno|OTHER)\b", lambda match: names[match[1]], change)


@pytest.mark.in_turn
@pytest.mark.parametrize("style, rows", [(Style.FIELD, False), (Style.FIELD, True), (Style.ROW_BACK, False)])
def test_after_an_alteration_everything_is_logged_and_no_writer_fails(
    postgresql: Engine, style: Style, rows: bool
) -> None:
    """By rows to be read back, and as before once the table is tracked anew; what was excluded is not captured in between."""
    install(postgresql)
    for alteration in ALTERATIONS if style is Style.FIELD and not rows else ALTERATIONS[2::4]:
        run(postgresql, *USR)
        track(postgresql, ["usr"], TriggerOptions(style=style, exclude=("age",), rows=rows, follow_ddl=True))
        run(postgresql, alteration)
        called = today(postgresql)
        logs_all(postgresql, called, alteration)
        assert states(postgresql) == {TriggerCondition.OUTDATED, TriggerCondition.CURRENT}, alteration
        assert all("age" not in table.attributes for table in captured(postgresql)), alteration
        if "CONSTRAINT" not in alteration:
            track(postgresql, list({one.owner for one in trigger_states(postgresql)}))
            assert states(postgresql) == {TriggerCondition.CURRENT}, alteration
        run(postgresql, f"DROP TABLE {called['usr']}, {called['usr_phone']} CASCADE", "DROP SCHEMA IF EXISTS other")
        run(postgresql, "DELETE FROM event_log_tracked")


def logs_all(engine: Engine, called: dict[str, str], alteration: str) -> None:
    """Check that each change is logged, of the right object."""
    for change, kinds, key in CHANGES:
        if "CONSTRAINT" in alteration and "usr_phone" in change:
            continue  # with the key went the foreign key, by which the child knows its parent
        left = left_by(engine, in_words_of(called, change, "mail" if "mail" in alteration else "lname"))
        assert left, (alteration, change)
        # What was the key may be a column like others.
        others = {6} if "CONSTRAINT" in alteration else set()
        assert {row[0] for row in left} <= kinds | others, (alteration, change)
        if key:
            # Where the table has another primary key now, rows are known by that.
            keys = (
                {row[1].partition("=")[0] for row in left} if "CONSTRAINT" in alteration else {row[1] for row in left}
            )
            assert keys == ({"id2"} if "CONSTRAINT" in alteration else {f"{called['idu']}={key}"}), (alteration, change)


def captured(engine: Engine) -> list[Table]:
    with engine.connect() as connection:
        return list_tracked(connection, LOG)


DOMAINS = {
    "photo bytea": "hello",
    "flag boolean": "true",
    "born date": "2024-01-02",
    "moment timestamp": "2024-01-02 03:04:05",
    "price money": "1.50",
    "code char(5)": "ab",
    "share numeric(9, 2)": "1.5",
    "bit1 bit(1)": "1",
    "pic photo": "hello",
}


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("style", [Style.FIELD, Style.IMAGE])
def test_values_of_domains_have_the_same_text_after_an_alteration(postgresql: Engine, style: Style, rows: bool) -> None:
    """Of domains over types that come with the server, and over other domains."""
    install(postgresql)
    names = [domain.split()[0] for domain in DOMAINS]
    run(postgresql, *(f"CREATE DOMAIN {domain}" for domain in DOMAINS))
    columns = ", ".join(f"the_{name} {name}" for name in names)
    run(postgresql, f"CREATE TABLE held (id integer PRIMARY KEY, {columns})")
    track(postgresql, ["held"], TriggerOptions(style=style, rows=rows, follow_ddl=True))
    values = ", ".join(f"'{value}'" for value in DOMAINS.values())
    again = (f"INSERT INTO held VALUES (1, {values})", "UPDATE held SET the_photo = 'x'", "DELETE FROM held")
    before = list(map(unnumbered, left_by(postgresql, *again)))
    assert [row for row in before if "aGVsbG8=" in (row[4] or "") and row[:2] in ((1, "id=1"), (5, "id=1"))]
    run(
        postgresql,
        "ALTER TABLE held ALTER COLUMN the_code SET DEFAULT 'x', ADD COLUMN gone text",
        "ALTER TABLE held DROP gone",
    )
    assert TriggerCondition.OUTDATED in states(postgresql)
    assert sorted(map(unnumbered, left_by(postgresql, *again)), key=str) == sorted(before, key=str)
    track(postgresql, ["held"])
    assert sorted(map(unnumbered, left_by(postgresql, *again)), key=str) == sorted(before, key=str)


KEYS = {
    "code bytea": "hello",
    "code boolean": "true",
    "code date": "2024-01-02",
    "code timestamp": "2024-01-02 03:04:05",
    "code timestamptz": "2024-01-02 03:04:05+01",
    "code money": "1.50",
    "code char(5)": "ab",
    "code numeric(9, 2)": "1.5",
    "code text": 'a,b="c" 100%s ',
    "code uuid": "6b1f1fd6-a2d4-4b7e-9d6e-2b7a3a8f4f0e",
}


@pytest.mark.in_turn
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("column", KEYS)
def test_a_key_is_written_as_before_when_its_table_is_altered(postgresql: Engine, column: str, rows: bool) -> None:
    install(postgresql)
    run(postgresql, f'CREATE TABLE held ({column}, "No %s" integer, a text, PRIMARY KEY (code, "No %s"))')
    track(postgresql, ["held"], TriggerOptions(rows=rows, follow_ddl=True))
    value = KEYS[column].replace("'", "''")
    again = (f"INSERT INTO held VALUES ('{value}', 7)", "UPDATE held SET a = 'x'", "DELETE FROM held")
    before = left_by(postgresql, *again)
    assert len(before) == 3
    run(postgresql, "ALTER TABLE held ADD COLUMN more text")
    assert left_by(postgresql, *again) == before


FUNCTION = "FUNCTION f(integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT $1'"
CONFIGURATION = "TEXT SEARCH CONFIGURATION conf"


@pytest.mark.parametrize(
    "needed, column, gone",
    [
        (FUNCTION, "integer GENERATED ALWAYS AS (f(a)) STORED", "FUNCTION f"),
        (FUNCTION, "integer GENERATED ALWAYS AS (f(a)) STORED", "ROUTINE f"),
        ("COLLATION co (locale = 'C')", "text COLLATE co", "COLLATION co"),
        ("VIEW seen AS SELECT 1 AS a", "seen", "VIEW seen"),
        (
            f"{CONFIGURATION} (COPY = simple)",
            "tsvector GENERATED ALWAYS AS (to_tsvector('conf'::regconfig, 'x')) STORED",
            CONFIGURATION,
        ),
        ("SEQUENCE nrs", "oid GENERATED ALWAYS AS ('nrs'::regclass::oid) STORED", "SEQUENCE nrs"),
    ],
)
def test_a_column_that_goes_with_what_it_depends_on_fails_no_writer(
    postgresql: Engine, needed: str, column: str, gone: str
) -> None:
    install(postgresql)
    run(postgresql, f"CREATE {needed}", f"CREATE TABLE held (id integer PRIMARY KEY, a integer, b {column})")
    track(postgresql, ["held"], TriggerOptions(style=Style.FIELD, follow_ddl=True))
    run(postgresql, f"DROP {gone} CASCADE")
    assert left_by(postgresql, "INSERT INTO held VALUES (1, 2)") == [(1, "id=1", "a", None, "2")]


def test_what_is_rolled_back_was_not_followed(usr: Engine) -> None:
    track(usr, ["usr"], FOLLOWED)
    with usr.connect() as connection:
        connection.execute(text("ALTER TABLE usr RENAME COLUMN fname TO called"))
        connection.execute(text("INSERT INTO usr (idu, called) VALUES (1, 'Ann')"))
        connection.rollback()
    assert states(usr) == {TriggerCondition.CURRENT}
    run(usr, "ALTER TABLE usr RENAME COLUMN fname TO called", "ALTER TABLE usr RENAME COLUMN called TO fname")
    assert TriggerCondition.OUTDATED in states(usr), "there and back, and still by rows, until it is tracked"
    assert {one.state for one in track(usr, ["usr"])} == {TriggerCondition.CURRENT}
    assert [row[0] for row in left_by(usr, "INSERT INTO usr (idu, fname) VALUES (1, 'Ann')")] == [1]


def test_a_transaction_with_an_older_snapshot_is_not_lost(usr: Engine) -> None:
    track(usr, ["usr"], FOLLOWED)
    run(usr, "INSERT INTO usr (idu) VALUES (1)", "DELETE FROM event_log")
    with usr.connect().execution_options(isolation_level="REPEATABLE READ") as connection:
        connection.execute(text("SELECT 1 FROM pg_class LIMIT 1"))
        run(usr, "ALTER TABLE usr RENAME COLUMN fname TO called", "ALTER TABLE usr ADD COLUMN mail text")
        connection.execute(text("UPDATE usr SET mail = 'x'"))
        connection.commit()
    assert [row[:2] for row in logged(usr)] == [(6, "idu=1")]


@pytest.mark.parametrize(
    "alteration, left",
    [
        ("ALTER TABLE usr DROP COLUMN idu CASCADE", [(6, "eventlog_key_is_gone=1")]),
        ('ALTER TABLE usr RENAME COLUMN idu TO "i=d"', [(6, "eventlog_key_is_gone=1")]),
        ("ALTER TABLE usr ALTER COLUMN idu TYPE numeric", [(5, "idu=1")]),
        ('ALTER TABLE usr RENAME TO "eventlog{1}"', [(5, "idu=1")]),
        ('ALTER TABLE usr RENAME TO "/* eventlog ddl 1 2 3 */ %s"', [(5, "idu=1")]),
    ],
)
def test_nobodys_alteration_and_nobodys_write_fails(usr: Engine, alteration: str, left: list[tuple[int, str]]) -> None:
    track(usr, ["usr"], FOLLOWED)
    run(usr, alteration)
    called = found(usr, "SELECT relation::oid::regclass FROM event_log_relation WHERE role = 'table'")[0]
    columns = found(
        usr,
        f"SELECT quote_ident(attname) FROM pg_attribute WHERE attrelid = '{called}'::regclass AND NOT attisdropped AND attnum IN (1, 3) ORDER BY attnum",
    )
    for row in ("SELECT 1", "SELECT 2"):
        run(
            usr,
            "DELETE FROM event_log",
            f"INSERT INTO {called} ({columns[0]}) {row}",
        )
        if row == "SELECT 1":
            assert [one[:2] for one in logged(usr)] == left
    run(
        usr,
        f"UPDATE {called} SET lname = 'x'",
        f"DELETE FROM {called}",
        f"TRUNCATE {called} CASCADE",
        f"DROP TABLE {called} CASCADE",
    )


def test_who_wants_to_keep_the_key_has_their_own_alteration_refused(usr: Engine) -> None:
    track(usr, ["usr"], FOLLOWED)
    with pytest.raises(DBAPIError, match=r"eventlog\.keep_key is on"):
        run(usr, "SET eventlog.keep_key = 'on'; ALTER TABLE usr DROP COLUMN idu CASCADE")
    assert states(usr) == {TriggerCondition.CURRENT}


def test_partitions_inherited_tables_and_typed_ones_follow_what_names_their_parents_alone(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE whole (id integer, fname text, PRIMARY KEY (id)) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF whole FOR VALUES FROM (0) TO (9)",
        "CREATE TABLE above (id integer PRIMARY KEY, fname text)",
        "CREATE TABLE below (PRIMARY KEY (id)) INHERITS (above)",
        "CREATE TYPE shape AS (id integer, fname text)",
        "CREATE TABLE typed OF shape (PRIMARY KEY (id))",
        "CREATE SCHEMA moved CREATE TABLE inside (id integer PRIMARY KEY, fname text)",
    )
    tables = ("low", "below", "typed", "moved.inside")
    track(postgresql, tables, TriggerOptions(style=Style.FIELD, follow_ddl=True))
    run(
        postgresql,
        "ALTER TABLE whole RENAME COLUMN fname TO called",
        "ALTER TABLE above RENAME COLUMN fname TO called",
        "ALTER TYPE shape RENAME ATTRIBUTE fname TO called CASCADE",
        "ALTER SCHEMA moved RENAME TO gone",
    )
    for table in ("low", "below", "typed", "gone.inside"):
        column = "fname" if "." in table else "called"
        left = left_by(postgresql, f"INSERT INTO {table} (id, {column}) VALUES (1, 'Ann')")
        assert left == [(1, "id=1", column, None, "Ann")], table
    assert {state.owner for state in trigger_states(postgresql) if state.state is TriggerCondition.OUTDATED} == {
        *("public.low", "public.below", "public.typed", "gone.inside")
    }


def test_a_child_that_inherits_from_its_parent_is_one_relation_of_it(postgresql: Engine) -> None:
    install(postgresql)
    run(
        postgresql,
        "CREATE TABLE above (id integer PRIMARY KEY, fname text)",
        "CREATE TABLE below (more text, FOREIGN KEY (id) REFERENCES above) INHERITS (above)",
    )
    track(postgresql, ["above"], TriggerOptions(style=Style.FIELD, follow_ddl=True, children=("below",)))
    with postgresql.connect() as connection:
        entered = connection.execute(text("SELECT table_name, role FROM event_log_relation ORDER BY role")).all()
    assert [tuple(row) for row in entered] == [("below", "child"), ("above", "table")]
    run(postgresql, "ALTER TABLE above RENAME COLUMN fname TO called")
    assert [row[:2] for row in left_by(postgresql, "INSERT INTO above VALUES (1, 'Ann')")] == [(5, "id=1")]


def test_an_error_of_the_follower_fails_nobody_and_a_cancel_passes(usr: Engine) -> None:
    track(usr, ["usr"], FOLLOWED)
    run(usr, "ALTER TABLE event_log_schema RENAME TO elsewhere")
    run(usr, "ALTER TABLE usr ADD COLUMN mail text", "ALTER TABLE event_log_relation RENAME TO nowhere")
    run(usr, "ALTER TABLE usr ADD COLUMN more text", "CREATE TABLE other (a integer)", "DROP TABLE other")
    run(usr, "ALTER TABLE nowhere RENAME TO event_log_relation", "ALTER TABLE elsewhere RENAME TO event_log_schema")
    assert TriggerCondition.OUTDATED in states(usr)
    with pytest.raises(DBAPIError, match="statement timeout"):
        run(
            usr,
            "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(9); END';"
            " CREATE EVENT TRIGGER a_slow ON ddl_command_end EXECUTE FUNCTION slow();"
            " SET statement_timeout = '300ms'; ALTER TABLE usr ADD COLUMN again text",
        )
    run(usr, "DROP EVENT TRIGGER IF EXISTS a_slow")


def test_a_renamed_column_that_was_excluded_is_never_published(
    usr: Engine, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Nor after its table has another name too, whether or not the publisher makes the triggers anew."""
    track(usr, ["usr"], FOLLOWED)
    site = Site(usr, follow=True)
    with site.publisher:
        site.poll()
        run(usr, "ALTER TABLE usr RENAME COLUMN age TO years", "INSERT INTO usr VALUES (1, 'Ann', 'Lee', 4711)")
        site.poll()
        run(usr, "ALTER TABLE usr RENAME TO person", "UPDATE person SET years = 4712, fname = 'Eve'")
        site.poll()
        run(usr, "UPDATE person SET years = 4713, fname = 'Ida'")
        site.poll()
    told = capsysbinary.readouterr().out.decode()
    assert {"Ann", "Eve", "Ida"} <= set(re.findall(r"Ann|Eve|Ida", told))
    assert "471" not in told
    assert set(found(usr, "SELECT status FROM event_log")) == {"S"}


def test_options_that_cannot_be_followed_are_refused(engine: Engine) -> None:
    install(engine)
    run(engine, USR[0])
    if engine.dialect.name != "postgresql":
        with pytest.raises(UsageError, match="no triggers on DDL"):
            track(engine, ["usr"], FOLLOWED)
        return
    run(engine, "CREATE VIEW direct AS SELECT idu AS pk_idu, fname FROM usr")
    run(
        engine,
        "CREATE FUNCTION write() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER write INSTEAD OF INSERT ON direct FOR EACH ROW EXECUTE FUNCTION write()",
    )
    with pytest.raises(UsageError, match="is a view"):
        track(engine, ["direct"], TriggerOptions(follow_ddl=True))


def test_it_is_shown_checked_kept_and_taken_off(usr: Engine) -> None:
    track(usr, ["usr"], FOLLOWED)
    name = "eventlog_public_event_log_ddl"
    assert found(usr, "SELECT evtname FROM pg_event_trigger ORDER BY 1") == [name, "eventlog_public_event_log_drop"]
    assert "--follow-ddl" in str({one.asked for one in trigger_states(usr)})
    assert {one.level for one in trigger_points(usr, LOG)} == {PointLevel.OK}
    assert track_sql(usr, ["usr"]) == ""
    for command, state in (
        (f"ALTER EVENT TRIGGER {name} DISABLE", TriggerCondition.DISABLED),
        (f"DROP EVENT TRIGGER {name}", TriggerCondition.OUTDATED),
    ):
        run(usr, command)
        assert next(one.state for one in trigger_states(usr) if one.name == name) is state
        assert {one.level for one in trigger_points(usr, LOG)} - {PointLevel.OK}
        track(usr, ["usr"])
        assert states(usr) == {TriggerCondition.CURRENT}
    run(
        usr,
        "CREATE OR REPLACE FUNCTION eventlog_ddl.public_event_log() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
    )
    assert TriggerCondition.OUTDATED in states(usr)
    track(usr, ["usr"], TrackRequest(reset=True))
    assert found(usr, "SELECT evtname FROM pg_event_trigger") == []
    track(usr, ["usr"], FOLLOWED)
    untrack(usr, ["usr"])
    assert found(usr, "SELECT proname FROM pg_proc WHERE proname LIKE 'event_log%'") == []
    track(usr, ["usr"], FOLLOWED)
    assert f"DROP EVENT TRIGGER IF EXISTS {name}" in uninstall_sql(usr)
    # Nobody agrees unless it goes.
    leaves = f"trigger {name} on ALTER TABLE"
    assert uninstall(usr, purge=True, agree=lambda leaving: leaves in leaving.lines()) == []
    assert found(usr, "SELECT proname FROM pg_proc WHERE proname LIKE 'event_log%'") == []
    assert found(usr, "SELECT evtname FROM pg_event_trigger") == []


@pytest.fixture
def installer(usr: Engine) -> Iterator[Engine]:
    """Connect as a role that may make triggers and is no superuser."""
    run(usr, "CREATE ROLE installing LOGIN", "GRANT ALL ON SCHEMA public TO installing")
    run(usr, "GRANT ALL ON ALL TABLES IN SCHEMA public TO installing")
    run(usr, "ALTER TABLE usr_phone OWNER TO installing", "ALTER TABLE usr OWNER TO installing")
    other = create_engine(usr.url.set(username="installing"))
    yield other
    other.dispose()
    run(usr, "DROP OWNED BY installing CASCADE", "DROP ROLE installing")


def untrack_as(engine: Engine) -> None:
    """Drop the triggers' functions, and so the triggers: their owner is not the registry's."""
    run(
        engine,
        *(
            f"DROP FUNCTION {name} CASCADE"
            for name in found(engine, "SELECT oid::regprocedure FROM pg_proc WHERE proname LIKE 'event_log_usr%'")
        ),
    )


def test_who_may_not_make_event_triggers_is_told_so_and_nothing_is_made(usr: Engine, installer: Engine) -> None:
    with pytest.raises(InstallError, match="Only the log's owner"):
        track(installer, ["usr"], FOLLOWED)
    assert trigger_states(usr) == []
    give_rights(usr, Roles(installer="installing"))
    with pytest.raises(InstallError, match="installing, which is no superuser, owns the registry"):
        track(installer, ["usr"], FOLLOWED)
    with pytest.raises(InstallError, match="installing, which is no superuser, owns the registry"):
        track(usr, ["usr"], FOLLOWED)
    track(usr, ["usr"], TriggerOptions(style=Style.FIELD))
    assert found(usr, "SELECT DISTINCT proowner::regrole FROM pg_proc WHERE proname LIKE 'event_log_usr%'") == [
        "installing"
    ]
    assert {state.state for state in track(installer, ["usr"])} == {TriggerCondition.CURRENT}
    for table in LOG.owners:
        run(usr, f"ALTER TABLE {table} OWNER TO postgres")
    untrack_as(usr)
    track(usr, ["usr"], FOLLOWED)
    run(installer, "ALTER TABLE usr RENAME COLUMN fname TO called")
    assert left_by(usr, "INSERT INTO usr (idu) VALUES (1)") == [(5, "idu=1", None, None, None)]


def test_a_command_about_an_untracked_table_reads_through_no_table_of_the_registry(usr: Engine) -> None:
    """With 10,000 tracked tables, whose columns and relations stand in the registry."""
    track(usr, ["usr"], FOLLOWED)
    numbers = "FROM generate_series(1000000, 1009999) AS n"
    run(
        usr,
        f"INSERT INTO event_log_tracked SELECT n, 'app', 't' || n, n, '{{}}', '[]', 'field', 1, 1, 0 {numbers}",
        f"INSERT INTO event_log_relation SELECT n, 'app', 't' || n, n, 'table' {numbers}",
        f"INSERT INTO event_log_column SELECT n, n, 1, 'id', 'id', 23, -1, 1, 0 {numbers}",
        "ANALYZE event_log_relation",
        "ANALYZE event_log_column",
        "CREATE TABLE other (a integer)",
    )
    read = "SELECT sum(seq_tup_read) FROM pg_stat_xact_user_tables WHERE relname LIKE 'event_log_%'"
    with usr.begin() as connection:
        for number in range(20):
            connection.execute(text(f"ALTER TABLE other ADD COLUMN b{number} integer"))
        connection.execute(text("CREATE TEMPORARY TABLE brief (a integer)"))
        connection.execute(text("DROP TABLE brief"))
        assert connection.execute(text(read)).scalar_one() < 10_000
