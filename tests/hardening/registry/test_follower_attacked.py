"""`--follow-ddl` attacked: nobody's DDL and nobody's writes fail by it, and what nobody tracks costs nothing.

Owners choose names that once were code, or the end of it; the publisher writes what it can; relations are renamed by commands
that are meant for others. PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from eventlog.capture.track import track
from eventlog.tracked.options import Style, TriggerOptions
from tests.hardening.quantity import scaled
from tests.hardening.registry.people import HIDDEN, LOG, People, documents, people, session
from tests.hardening.registry.test_forging_publisher import write_everything
from tests.support.logged import run

STYLES = (Style.ROW_BACK, Style.FIELD, Style.IMAGE)


@pytest.fixture
def site(postgresql: Engine) -> Iterator[People]:
    """A table of one owner's, followed; only a superuser can have that."""
    with people(postgresql) as found:
        run(
            found.admin,
            f"ALTER SCHEMA capture OWNER TO {found.admin.url.username}",
            f"GRANT CREATE ON DATABASE {found.admin.url.database} TO {found.name('owner')}",
        )
        run(
            found.owner,
            "CREATE TABLE app.t (id integer PRIMARY KEY, note text, more text)",
            "CREATE TABLE app.t_child (id integer REFERENCES app.t, place text)",
            f"GRANT ALL ON app.t, app.t_child TO {found.name('writer')}",
        )
        run(found.admin, f"REASSIGN OWNED BY {found.name('installer')} TO CURRENT_USER")
        yield found


def everybody_works(site: People) -> None:
    """DDL of others, and of who has nothing to do with any of it, goes as without eventlog."""
    for part, schema in (("stranger", "mal"), ("owner", "app"), ("admin", "public")):
        run(
            site.engine(part),
            f"CREATE TABLE {schema}.mine (id integer PRIMARY KEY, note text)",
            f"CREATE INDEX mine_note ON {schema}.mine (note)",
            f"ALTER TABLE {schema}.mine ADD COLUMN more text",
            f"ALTER TABLE {schema}.mine RENAME COLUMN more TO others",
            f"ALTER TABLE {schema}.mine ALTER COLUMN note TYPE varchar(80)",
            f"CREATE VIEW {schema}.seen AS SELECT id FROM {schema}.mine",
            f"DROP VIEW {schema}.seen",
            f"DROP TABLE {schema}.mine",
            "CREATE TEMPORARY TABLE passing (id integer) ON COMMIT DROP",
            "ALTER TABLE passing ADD COLUMN more text",
        )
    run(site.owner, "ALTER TABLE app.other ADD COLUMN IF NOT EXISTS more text")


def unlogged(site: People, *statements: str) -> list[str]:
    """Runs writes of the altered table's own writers, and gives back those that left no row in the log."""
    left = []
    for statement in statements:
        [(before,)] = site.ask("SELECT count(*) FROM capture.event_log")
        run(site.writer, statement)
        [(after,)] = site.ask("SELECT count(*) FROM capture.event_log")
        if int(str(after)) <= int(str(before)):
            left.append(statement)
    return left


def unlogged_after(site: People, change: str, table: str) -> list[str]:
    """Make the change, and return the writes to the table that are not logged afterwards."""
    execute(site.owner, change)
    key = "number" if "number" in change else "id"
    return unlogged(site, *(write.format(table=table).replace("id", key) for write in WRITES))


WRITES = (
    "INSERT INTO {table} (id) VALUES (1)",
    "UPDATE {table} SET id = 2",
    "DELETE FROM {table}",
)
NAMES = {
    "a hole": "eventlog{x",
    "a hole for columns": "eventlog{columns:field}",
    "a hole for the comment": "eventlog{ddl}",
    "the comment of a function": "/* eventlog ddl 1 2 3 */",
    "a marker": 'eventlog {"log":"capture.event_log"}',
    "the end of a text": "a$eventlog$; SELECT 1; --",
    "quotes": 'it\'s "quoted"',
    "format": "%s %I %L",
    "backslash": "a\\'b",
}


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def execute(engine: Engine, *statements: str) -> None:
    """As they are, with every sign."""
    with session(engine) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement.replace("%", "%%"))


@pytest.mark.parametrize("command", ["TABLE", "INDEX"])
def test_a_table_of_any_name_stops_nobody(site: People, command: str) -> None:
    """ALTER INDEX renames tables too, and says so to nobody who asks for ALTER TABLE."""
    track(site.admin, ["app.t"], TriggerOptions(style=Style.ROW_BACK, follow_ddl=True), LOG)
    table = "t"
    for what, name in NAMES.items():
        execute(site.owner, f"ALTER {command} app.{quoted(table)} RENAME TO {quoted(name)}")
        table = name
        everybody_works(site)
        run(site.admin, "DELETE FROM capture.event_log")
        for statement in WRITES:
            execute(site.writer, statement.format(table=f"app.{quoted(table)}"))
        assert site.ask("SELECT count(*) >= 3 FROM capture.event_log") == [(True,)], what


@pytest.mark.parametrize("style", STYLES)
def test_a_column_of_any_name_stops_nobody(site: People, style: Style) -> None:
    track(site.admin, ["app.t"], TriggerOptions(style=style, follow_ddl=True), LOG)
    column = "note"
    for number, name in enumerate(NAMES.values()):
        execute(site.owner, f"ALTER VIEW app.t RENAME COLUMN {quoted(column)} TO {quoted(name)}")
        column = name
        everybody_works(site)
        execute(site.owner, f"ALTER TABLE app.t ADD COLUMN more_{number} text")
        assert unlogged(site, *(statement.format(table="app.t") for statement in WRITES)) == []


@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_key_of_any_name_stops_nobody(site: People, style: Style) -> None:
    """A name that no table_key could carry may be refused to the owner; nobody else, and no writer, meets it."""
    track(site.admin, ["app.t"], TriggerOptions(style=style, follow_ddl=True), LOG)
    key = "id"
    for name in NAMES.values():
        with suppress(DBAPIError):
            execute(site.owner, f"ALTER VIEW app.t RENAME COLUMN {quoted(key)} TO {quoted(name)}")
            key = name
        everybody_works(site)
        [(before,)] = site.ask("SELECT count(*) FROM capture.event_log")
        for statement in WRITES:
            execute(
                site.writer,
                statement.format(table="app.t").replace("(id)", f"({quoted(key)})").replace("id =", f"{quoted(key)} ="),
            )
        assert site.ask(f"SELECT count(*) > {before} FROM capture.event_log") == [(True,)], name


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE app.t DROP CONSTRAINT t_pkey CASCADE",
        "ALTER TABLE app.t ALTER COLUMN id TYPE text USING id::text",
        'ALTER TABLE app.t RENAME COLUMN id TO "a;b,c+d=e"',
        "ALTER TABLE app.t_child RENAME TO renamed_child",
        "ALTER TABLE app.t_child DROP COLUMN id",
    ],
)
def test_what_was_refused_before_stops_nobody_else(site: People, change: str) -> None:
    """Whether the owner's own change is refused is a setting; whatever it says, others' DDL and all writes go on."""
    track(site.admin, ["app.t"], TriggerOptions(style=Style.FIELD, children=("app.t_child",), follow_ddl=True), LOG)
    try:
        execute(site.owner, change)
        done = True
    except DBAPIError as error:
        done = "eventlog" not in str(error.orig)
    everybody_works(site)
    key = "id" if "RENAME COLUMN id" not in change or not done else '"a;b,c+d=e"'
    run(site.writer, f"INSERT INTO app.t ({key}) VALUES (1)", "UPDATE app.t SET note = 'x'", "DELETE FROM app.t")
    assert site.ask("SELECT count(*) > 0 FROM capture.event_log") == [(True,)]


def test_what_the_publisher_writes_stops_nobody(site: People) -> None:
    track(site.admin, ["app.t"], TriggerOptions(style=Style.FIELD, follow_ddl=True), LOG)
    site.give()
    for number, text in enumerate(("no json", "{}", '{"raw": 1}', '{"raw": [{"relation": "x"}]}', "")):
        with session(site.publisher) as publisher:
            write_everything(site, publisher, text, "app.t")
        everybody_works(site)
        execute(site.owner, f"ALTER TABLE app.t ADD COLUMN more_{number} text")
        assert unlogged(site, *(statement.format(table="app.t") for statement in WRITES)) == []


def test_a_renamed_schema_stops_no_writer(site: People) -> None:
    track(site.admin, ["app.t"], TriggerOptions(style=Style.FIELD, follow_ddl=True), LOG)
    execute(site.owner, "ALTER SCHEMA app RENAME TO moved")
    assert unlogged(site, *(statement.format(table="moved.t") for statement in WRITES)) == []
    execute(site.owner, "ALTER TABLE moved.t SET SCHEMA moved", "ALTER SCHEMA moved RENAME TO app")
    assert unlogged(site, *(statement.format(table="app.t") for statement in WRITES)) == []


@pytest.mark.parametrize("kind", ["partition", "inheritance"])
def test_a_parent_that_is_altered_stops_no_writer_of_what_is_tracked(site: People, kind: str) -> None:
    """ALTER TABLE names the parent alone: what it does to its parts nobody is told."""
    how = "PARTITION BY LIST (id)" if kind == "partition" else ""
    part = "PARTITION OF app.whole DEFAULT" if kind == "partition" else "(PRIMARY KEY (id)) INHERITS (app.whole)"
    run(
        site.owner,
        f"CREATE TABLE app.whole (id integer NOT NULL, note text, more text) {how}",
        f"CREATE TABLE app.part {part}",
        *(["ALTER TABLE app.part ADD PRIMARY KEY (id)"] if kind == "partition" else []),
        f"GRANT ALL ON app.whole, app.part TO {site.name('writer')}",
    )
    track(site.admin, ["app.part"], TriggerOptions(style=Style.FIELD, follow_ddl=True), LOG)
    for change in (
        "ALTER TABLE app.whole RENAME COLUMN note TO said",
        "ALTER TABLE app.whole DROP COLUMN more",
        "ALTER TABLE app.whole ADD COLUMN others integer",
        "ALTER TABLE app.whole RENAME COLUMN id TO number",
    ):
        assert unlogged_after(site, change, "app.part") == []


@pytest.mark.parametrize("kind", ["partition", "inheritance", "type"])
def test_a_parent_that_a_tracked_table_gets_later_is_altered(site: People, kind: str) -> None:
    """The registry knows nothing of it from when the table was tracked."""
    columns = "(id integer, note text, more text)"
    whole, joins, alter = {
        "partition": (
            f"CREATE TABLE app.whole {columns} PARTITION BY LIST (id)",
            "ALTER TABLE app.whole ATTACH PARTITION app.later DEFAULT",
            "ALTER TABLE app.whole {} COLUMN {}",
        ),
        "inheritance": (
            f"CREATE TABLE app.whole {columns}",
            "ALTER TABLE app.later INHERIT app.whole",
            "ALTER TABLE app.whole {} COLUMN {}",
        ),
        "type": (
            f"CREATE TYPE app.whole AS {columns}",
            "ALTER TABLE app.later OF app.whole",
            "ALTER TYPE app.whole {} ATTRIBUTE {} CASCADE",
        ),
    }[kind]
    run(
        site.owner,
        whole,
        "CREATE TABLE app.later (id integer PRIMARY KEY, note text, more text)",
        f"GRANT ALL ON app.later TO {site.name('writer')}",
    )
    track(site.admin, ["app.later"], TriggerOptions(style=Style.FIELD, follow_ddl=True), LOG)
    assert unlogged_after(site, joins, "app.later") == []
    for verb, column in (("RENAME", "note TO said"), ("DROP", "more"), ("RENAME", "id TO number")):
        assert unlogged_after(site, alter.format(verb, column), "app.later") == []


def test_a_type_that_columns_stand_for_is_altered(site: People) -> None:
    """A typed table follows its type: ALTER TYPE names the type alone."""
    run(
        site.owner,
        "CREATE TYPE app.shape AS (id integer, note text)",
        "CREATE TABLE app.typed OF app.shape (PRIMARY KEY (id))",
        f"GRANT ALL ON app.typed TO {site.name('writer')}",
    )
    track(site.admin, ["app.typed"], TriggerOptions(style=Style.FIELD, follow_ddl=True), LOG)
    for change in (
        "ALTER TYPE app.shape RENAME ATTRIBUTE note TO said CASCADE",
        "ALTER TYPE app.shape ADD ATTRIBUTE more text CASCADE",
        "ALTER TYPE app.shape RENAME ATTRIBUTE id TO number CASCADE",
    ):
        assert unlogged_after(site, change, "app.typed") == []


def test_an_excluded_column_stays_hidden_whatever_it_is_called(site: People, tmp_path: Path) -> None:
    track(site.admin, ["app.usr"], TriggerOptions(style=Style.IMAGE, exclude=("secret",), follow_ddl=True), LOG)
    site.give()
    execute(site.owner, "ALTER VIEW app.usr RENAME COLUMN secret TO lname2", "ALTER TABLE app.usr ADD COLUMN x text")
    run(site.writer, f"INSERT INTO app.usr (idu, fname, lname2) VALUES (1, 'Ann', '{HIDDEN}')")
    run(site.writer, f"UPDATE app.usr SET lname2 = '{HIDDEN} too', fname = 'Eve'")
    published = documents(site.config(tmp_path, apart=True))
    assert HIDDEN not in published
    logged = site.ask("SELECT count(*) FROM capture.event_log WHERE concat(old_value, new_value) LIKE '%s3cret%'")
    assert logged == [(0,)]


def blocks_of_ddl(site: People, times: int = 5) -> int:
    """How many blocks such commands look at, which is the same on every machine."""
    query = "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
    with session(site.admin) as connection:
        connection.exec_driver_sql("DROP TABLE IF EXISTS looked")
        connection.exec_driver_sql("CREATE TEMPORARY TABLE looked (id integer)")
        for number in range(times + 1):
            connection.exec_driver_sql(f"ALTER TABLE looked ADD COLUMN c{number} integer")
            if number == 0:
                connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
                before = connection.exec_driver_sql(query).scalar_one()
        connection.exec_driver_sql("SELECT pg_stat_force_next_flush()")
        after = connection.exec_driver_sql(query).scalar_one()
    return (int(after) - int(before)) // times


def test_what_nobody_tracks_costs_no_more_with_many_tracked_tables(site: People) -> None:
    """The same DDL with and without the follower, with one table tracked and with a hundred more."""
    many = min(300, 100 * scaled(1))
    track(site.admin, ["app.t"], TriggerOptions(follow_ddl=True), LOG)
    few = blocks_of_ddl(site)
    tables = [f"many{number}" for number in range(many)]
    run(site.owner, *(f"CREATE TABLE app.{name} (id integer PRIMARY KEY, note text)" for name in tables))
    track(site.admin, [f"app.{name}" for name in tables], TriggerOptions(follow_ddl=True), LOG)
    assert blocks_of_ddl(site) <= 2 * few + 100
