"""What the owner of a captured table or of a type tries: to run code with the rights of who installed, or who publishes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count, product
from pathlib import Path

import pytest
from msgspec import Struct
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states
from eventlog.care.flow import unread_tables
from eventlog.check.examine import check
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.model import RowId
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import loads
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.sql.reflect import reflect
from eventlog.sql.rows import SqlRowReader
from eventlog.tracked.options import Style, TriggerOptions
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import publish_all
from tests.support.logged import Logged, logged, run

_numbers = count(1)
LOG = LogNames(table="event_log", schema="capture")


class Stage(Struct, frozen=True, kw_only=True):
    """A log that a superuser installed, the owner of the captured tables, and somebody who writes to them."""

    admin: Engine
    owner: Engine
    writer: Engine

    @property
    def trusted(self) -> set[str]:
        return {str(engine.url.username) for engine in (self.owner, self.writer)}

    def own(self, *statements: str) -> None:
        """What the owner does; then the writer may write to all its tables."""
        run(self.owner, *statements, f"GRANT ALL ON ALL TABLES IN SCHEMA app TO {self.writer.url.username}")

    def caught(self) -> set[tuple[str, str]]:
        """In whose name code of the owner's ran, and from where, when it was neither the owner's nor the writer's."""
        with self.admin.connect() as connection:
            found = connection.execute(text("SELECT DISTINCT who, place FROM public.caught"))
            return {(who, place) for who, place in found if who not in self.trusted}

    def logged(self) -> list[Logged]:
        return logged(self.admin, LOG)


NOTE = "BEGIN INSERT INTO public.caught VALUES (current_user, $1); RETURN $1; END"
TRAPS = (
    f"CREATE FUNCTION app.note(text) RETURNS text VOLATILE LANGUAGE plpgsql AS $${NOTE}$$",
    # What may stand in an index must be called immutable, and does what it likes all the same.
    "CREATE FUNCTION app.trap(text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$BEGIN RETURN app.note($1); END$$",
    "CREATE FUNCTION app.trapped(text) RETURNS boolean IMMUTABLE LANGUAGE sql AS $$ SELECT app.trap($1) IS NOT NULL $$",
    "CREATE TYPE app.mood AS ENUM ('low', 'high')",
    "CREATE TYPE app.place AS (street text, number integer)",
    "CREATE DOMAIN app.feeling AS app.mood",
    "CREATE DOMAIN app.code AS varchar(10)",
)
TYPES = {
    "app.mood": "'low'",
    "app.place": "ROW('Elm', 1)::app.place",
    "app.feeling": "'low'",
    "app.mood[]": "ARRAY['low']::app.mood[]",
}
"""Types of the owner's, with a value of each."""
CASTS = ("app.mood", "app.place", "app.mood[]")


def cast_traps(kind: str, *targets: str) -> Iterator[str]:
    """Casts of the owner's types to types of the database, which statements would use without being told."""
    for number, source in enumerate(CASTS):
        for target in targets or ("text", "varchar"):
            value = f"app.trap('a cast')::{target}"
            name = f"app.cast_{number}_{target}"
            yield f"CREATE FUNCTION {name}({source}) RETURNS {target} IMMUTABLE LANGUAGE sql AS $$ SELECT {value} $$"
            yield f"CREATE CAST ({source} AS {target}) WITH FUNCTION {name}({source}) {kind}"


@pytest.fixture
def stage(postgresql: Engine) -> Iterator[Stage]:
    """Roles without any right but on the schema `app`, which is the owner's."""
    with roles(postgresql) as found:
        yield found


@contextmanager
def roles(admin: Engine) -> Iterator[Stage]:
    number = next(_numbers)
    owner, writer = f"mallory_{number}", f"bob_{number}"
    run(
        admin,
        *(f"CREATE ROLE {name} LOGIN" for name in (owner, writer)),
        f"CREATE SCHEMA app AUTHORIZATION {owner}",
        "CREATE SCHEMA capture",
        "CREATE TABLE public.caught (who text, place text)",
        "GRANT INSERT ON public.caught TO PUBLIC",
        "GRANT USAGE ON SCHEMA app TO PUBLIC",
    )
    engines = [create_engine(admin.url.set(username=name)) for name in (owner, writer)]
    run(engines[0], *TRAPS)
    install(admin, LOG)
    try:
        yield Stage(admin=admin, owner=engines[0], writer=engines[1])
    finally:
        for engine in engines:
            engine.dispose()
        run(admin, f"DROP OWNED BY {owner}, {writer} CASCADE", f"DROP ROLE {owner}, {writer}")


def changes(table: str, value: str) -> list[str]:
    changed = [
        f"INSERT INTO app.usr (idu, fname, kind) VALUES (1, 'Ann', {value})",
        "UPDATE app.usr SET fname = 'Eve'",
        "UPDATE app.usr SET kind = NULL",
        "UPDATE app.usr SET idu = 2",
        "DELETE FROM app.usr",
        f"INSERT INTO app.usr (idu, fname, kind) VALUES (3, 'Cid', {value})",
        "TRUNCATE app.usr",
    ]
    return [statement.replace("app.usr", table) for statement in changed]


def write(engine: Engine, statements: Sequence[str]) -> None:
    """Each statement in a session of its own: what is planned for the first time is planned anew."""
    for statement in statements:
        run(engine, statement)
        engine.dispose()


# Each kind of cast with each kind of trigger; whose the table is takes turns. --long asks all.
@pytest.mark.parametrize(
    "owned, rows, kind",
    [
        pytest.param(owned, rows, kind, marks=() if (owned == rows) == (kind != "AS ASSIGNMENT") else pytest.mark.long)
        for owned, rows, kind in product([False, True], [False, True], ["", "AS ASSIGNMENT", "AS IMPLICIT"])
    ],
)
def test_a_cast_of_the_owners_runs_with_no_rights_but_the_writers(
    stage: Stage, rows: bool, owned: bool, kind: str
) -> None:
    """Whether the table is the owner's too, or only the type."""
    tables = (
        f"app.usr_{number} (idu INTEGER PRIMARY KEY, fname VARCHAR(40), kind {column})"
        for number, column in enumerate(TYPES)
    )
    stage.own(*(f"CREATE TABLE {table}" for table in tables))
    for number in range(len(TYPES)):
        table, style = f"app.usr_{number}", [Style.ROW_BACK, Style.FIELD][number % 2]
        if not owned:
            run(stage.admin, f"ALTER TABLE {table} OWNER TO CURRENT_USER")
        track(stage.admin, [table], TriggerOptions(style=style, rows=rows), LOG)
    run(stage.owner, *cast_traps(kind))
    for number, value in enumerate(TYPES.values()):
        write(stage.writer, changes(f"app.usr_{number}", value))
    assert stage.caught() == set()
    assert [row for row in stage.logged() if row[2] == "kind"] == [
        (1, "idu=1", "kind", None, "(Elm,1)"),
        (2, "idu=1", "kind", "(Elm,1)", None),
        (1, "idu=3", "kind", None, "(Elm,1)"),
        (1, "idu=1", "kind", None, "{low}"),
        (2, "idu=1", "kind", "{low}", None),
        (1, "idu=3", "kind", None, "{low}"),
    ]


@pytest.mark.parametrize("rows", [False, True])
def test_a_key_of_the_owners_type_runs_nothing_with_other_rights(stage: Stage, rows: bool) -> None:
    stage.own(
        "CREATE TABLE app.usr (idu app.mood PRIMARY KEY, fname VARCHAR(40))",
        "CREATE TABLE app.usr_phone (idu app.mood REFERENCES app.usr ON DELETE CASCADE, phoneno VARCHAR(32), UNIQUE (idu, phoneno))",
    )
    track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD, rows=rows), LOG)
    stage.own(*cast_traps("AS ASSIGNMENT"))
    write(
        stage.owner,
        [
            "INSERT INTO app.usr VALUES ('low', 'Ann')",
            "INSERT INTO app.usr_phone VALUES ('low', '555')",
            "UPDATE app.usr_phone SET phoneno = '556'",
            "DELETE FROM app.usr_phone",
            "UPDATE app.usr SET idu = 'high'",
        ],
    )
    assert stage.caught() == set()
    told = stage.logged()
    assert told[:5] == [
        (1, "idu=low", "fname", None, "Ann"),
        (1, "idu=low", "usr_phone.phoneno", None, "555"),
        *sorted(
            [
                (2, "idu=low", "usr_phone.phoneno", "555", None),
                (1, "idu=low", "usr_phone.phoneno", None, "556"),
            ],
            reverse=True,
        ),
        (2, "idu=low", "usr_phone.phoneno", "556", None),
    ]
    left = [(4, "idu=low", None, None, None), (5, "idu=low", None, None, None)]
    assert sorted(told[5:], key=str) == [(1, "idu=high", "fname", None, "Ann"), *left]
    assert told.index(left[0]) < told.index(left[1])


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_a_column_that_gets_the_owners_type_later_runs_nothing_with_other_rights(
    stage: Stage, style: Style, rows: bool
) -> None:
    stage.own("CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40), kind VARCHAR(10))")
    track(stage.admin, ["app.usr"], TriggerOptions(style=style, rows=rows), LOG)
    write(stage.writer, ["INSERT INTO app.usr VALUES (1, 'Ann', 'low')"])
    stage.own(
        *cast_traps("AS IMPLICIT"),
        "ALTER TABLE app.usr ALTER kind TYPE app.mood USING CAST(kind::text AS app.mood)",
    )
    for statement in ("UPDATE app.usr SET kind = 'high'", "INSERT INTO app.usr VALUES (2, 'Bob', 'low')"):
        # Where rows are compared byte by byte there is nothing to stop.
        guarded = style is Style.FIELD
        with pytest.raises(DBAPIError, match="a type of somebody's own making") if guarded else nullcontext():
            run(stage.writer, statement)
    assert stage.caught() == set()
    outdated = {one.state for one in trigger_states(stage.admin, LOG)} & {TriggerCondition.OUTDATED}
    assert bool(outdated) is (style is Style.FIELD), "triggers that name no column do not age with one"
    track(stage.admin, ["app.usr"], TriggerOptions(style=style, rows=rows), LOG)
    write(stage.writer, ["UPDATE app.usr SET kind = 'high'"])
    assert stage.caught() == set()
    assert len(stage.logged()) >= 2


def test_the_types_of_the_database_may_still_change_under_the_triggers(stage: Stage) -> None:
    stage.own("CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40))")
    track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD), LOG)
    stage.own("ALTER TABLE app.usr ALTER idu TYPE bigint, ALTER fname TYPE text")
    run(stage.writer, "INSERT INTO app.usr VALUES (1, 'Ann')")
    assert stage.logged() == [(1, "idu=1", "fname", None, "Ann")]


PLANNED = (
    "CREATE INDEX ON app.usr (app.trap('an index'))",
    "CREATE INDEX ON app.usr (fname) WHERE app.trapped('a partial index')",
    "CREATE STATISTICS app.guessed ON (app.trap('statistics')), fname FROM app.usr",
    "ALTER TABLE app.usr ADD CHECK (app.trapped('a check'))",
    "CREATE POLICY mine ON app.usr USING (app.trapped('a policy'))",
    "ALTER TABLE app.usr ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
)
"""What the server may run as soon as a query of the table is planned."""


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("style", [Style.ROW_BACK, Style.FIELD])
def test_planning_a_query_of_the_owners_table_runs_nothing_with_other_rights(
    stage: Stage, style: Style, rows: bool
) -> None:
    stage.own(
        "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40))",
        "CREATE TABLE app.usr_phone (idu INTEGER REFERENCES app.usr ON DELETE CASCADE, phoneno VARCHAR(32))",
        *PLANNED[:4],
        *(
            trap.replace("app.usr", "app.usr_phone").replace("fname", "phoneno").replace("guessed", "more")
            for trap in PLANNED[:4]
        ),
    )
    track(stage.admin, ["app.usr"], TriggerOptions(style=style, rows=rows, when="fname <> 'nobody'"), LOG)
    track(stage.admin, ["app.usr"], TriggerOptions(style=style, rows=rows), LOG)
    write(
        stage.writer,
        [
            "INSERT INTO app.usr VALUES (1, 'Ann'), (2, 'Bob')",
            "INSERT INTO app.usr_phone VALUES (1, '555'), (2, '666')",
            "UPDATE app.usr_phone SET phoneno = '556' WHERE idu = 1",
            "DELETE FROM app.usr_phone WHERE idu = 1",
            "UPDATE app.usr SET idu = 3 WHERE idu = 1",
        ],
    )
    write(stage.owner, ["TRUNCATE app.usr CASCADE"])
    assert stage.caught() == set()
    gone = [row[1] for row in stage.logged() if row[0] == 4]
    assert sorted(gone) == ["idu=1", "idu=2", "idu=3"]


def test_a_policy_on_the_parent_loses_nothing_and_runs_nothing_with_other_rights(stage: Stage) -> None:
    stage.own(
        "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40))",
        "CREATE TABLE app.usr_phone (idu INTEGER REFERENCES app.usr ON DELETE CASCADE, phoneno VARCHAR(32), UNIQUE (idu, phoneno))",
        "INSERT INTO app.usr VALUES (1, 'Ann')",
    )
    track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD), LOG)
    stage.own(*PLANNED[4:])
    write(stage.writer, ["INSERT INTO app.usr_phone VALUES (1, '555')", "DELETE FROM app.usr_phone"])
    assert stage.caught() == set()
    assert stage.logged() == [
        (1, "idu=1", "usr_phone.phoneno", None, "555"),
        (2, "idu=1", "usr_phone.phoneno", "555", None),
    ]


@pytest.mark.parametrize("condition", ["kind = 'low'", "kind <> 'high'", "app.trap(fname) IS NOT NULL"])
def test_a_condition_is_asked_with_the_writers_rights(stage: Stage, condition: str) -> None:
    stage.own("CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40), kind app.mood)")
    stage.own(*cast_traps("AS IMPLICIT"))
    track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD, when=condition), LOG)
    write(stage.writer, changes("app.usr", "'low'")[:2])
    assert stage.caught() == set()
    assert (1, "idu=1", "kind", None, "low") in stage.logged()


def test_what_the_reading_trigger_hands_over_is_not_for_a_writer_to_say(stage: Stage) -> None:
    stage.own("CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40))")
    track(stage.admin, ["app.usr"], TriggerOptions(style=Style.FIELD, when="fname = 'Ann'"), LOG)
    forged = '[[["idu=9", 1, "fname", null, "forged"]]]'
    run(
        stage.writer,
        f"SELECT set_config('eventlog.facts', '{forged}', false)",
        "INSERT INTO app.usr VALUES (1, 'Ann'), (2, 'Bob')",
    )
    assert stage.logged() == [(1, "idu=1", "fname", None, "Ann")]


HANGING = (
    "CREATE TRIGGER mine AFTER INSERT ON strangers.usr REFERENCING NEW TABLE AS new_rows"
    " FOR EACH STATEMENT EXECUTE FUNCTION capture.event_log_app_usr_insert()"
)
OWN = ("event_log", "event_log_outcome", "event_log_mark", "event_log_schema", "event_log_version")
READ = ("CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40))", "INSERT INTO app.usr VALUES (1, 'Ann')")
"""A table that is read back."""


@pytest.fixture
def publishing(stage: Stage) -> Iterator[Publishing]:
    """Besides, a publisher with the rights that `eventlog rights` gives, and a login that may only read."""
    number = next(_numbers)
    names = (f"publisher_{number}", f"reader_{number}")
    run(stage.admin, *(f"CREATE ROLE {name} LOGIN" for name in names))
    stage.own(*READ)
    track(stage.admin, ["app.usr"], TriggerOptions(), LOG)
    give_rights(stage.admin, Roles(publisher=names[0]), LOG)  # it may read too, for the tests without a reader
    give_rights(stage.admin, Roles(reader=names[1]), LOG)
    urls = [stage.admin.url.set(username=name).render_as_string(hide_password=False) for name in names]
    try:
        yield Publishing(stage=stage, publisher=urls[0], reader=urls[1])
    finally:
        run(stage.admin, f"DROP OWNED BY {', '.join(names)} CASCADE", f"DROP ROLE {', '.join(names)}")


class Publishing(Struct, frozen=True, kw_only=True):
    """A stage with a publisher and a reader, by the URLs with which they connect."""

    stage: Stage
    publisher: str
    reader: str

    def config(self, folder: Path, *, apart: bool) -> Config:
        reader = self.reader if apart else ""
        source = SourceConfig(url=self.publisher, reader=reader, log="capture.event_log", schema="app", tables=("usr",))
        return Config(source=source, output=(FilesOutput(path=str(folder)),))

    def ran_as(self) -> set[str]:
        """Who of the two ran code of the owner's."""
        who = {name for name, _ in self.stage.caught()}
        return {name.partition("_")[0] for name in who if name.startswith(("publisher", "reader"))}


def publish(config: Config) -> list[str]:
    """The documents that come out."""
    publish_all(config)
    return [file.read_text() for file in Path(config.output[0].path).glob("*.xml")]  # type: ignore[attr-defined]  # a folder


def test_a_policy_stops_the_publisher_in_words_and_does_not_run(publishing: Publishing, tmp_path: Path) -> None:
    run(publishing.stage.writer, "UPDATE app.usr SET fname = 'Eve'")
    publishing.stage.own(*PLANNED[4:])
    assert publish(publishing.config(tmp_path, apart=False)) == []
    assert publishing.ran_as() == set()
    log = LogTable(publishing.stage.admin)
    assert log.ask("SELECT status FROM capture.event_log") == [("N",)]  # until somebody may read the table
    known = Log(publishing.stage.admin, LOG)
    with known.transaction() as connection:
        [note] = unread_tables(connection, known).values()
    assert 'policy for table "usr"' in note
    assert "BYPASSRLS" in note
    assert [one for one in check(lambda: publishing.config(tmp_path, apart=False)) if 'table "usr"' in one.said]


@pytest.mark.parametrize("apart", [False, True])
def test_with_a_reader_of_its_own_nothing_of_an_owners_runs_as_the_publisher(
    publishing: Publishing, tmp_path: Path, apart: bool
) -> None:
    publishing.stage.own(*PLANNED[:4])
    run(publishing.stage.writer, "UPDATE app.usr SET fname = 'Eve'")
    config = publishing.config(tmp_path, apart=apart)
    (document,) = publish(config)
    assert "Eve" in document
    assert publishing.ran_as() == ({"reader"} if apart else {"publisher"})
    owners = [point for point in check(lambda: config) if point.name == "owners"]
    assert any(point.said.startswith("To read app.usr runs what mallory") for point in owners) is not apart
    assert any("a superuser" in point.said for point in owners)


def test_the_reader_reaches_nothing_but_captured_tables(publishing: Publishing) -> None:
    reader = create_engine(publishing.reader)
    for statement in (
        "SELECT * FROM capture.event_log",
        "UPDATE capture.event_log SET status = 'S'",
        "DELETE FROM capture.event_log",
        "SELECT * FROM capture.event_log_mark",
        "UPDATE app.usr SET fname = 'x'",
    ):
        with pytest.raises(DBAPIError, match="permission denied"):
            run(reader, statement)
    reader.dispose()


def test_a_refresh_reads_with_the_reader(publishing: Publishing) -> None:
    publishing.stage.own(*PLANNED[:4])
    publisher, reader = create_engine(publishing.publisher), create_engine(publishing.reader)
    run(publishing.stage.admin, f"GRANT INSERT ON capture.event_log TO {publisher.url.username}")
    load = loads(publisher, LOG, ["usr"], "app", None)[0]
    work = Refresh(Log(publisher, LOG), load, reading=reader)
    assert [stand.rows for stand in work.steps(work.begin())] == [1]
    assert publishing.ran_as() == {"reader"}
    publisher.dispose()
    reader.dispose()


def test_a_type_of_the_owners_is_read_back_without_its_casts(stage: Stage) -> None:
    stage.own(
        "CREATE TABLE app.usr (idu app.mood PRIMARY KEY, kind app.mood, place app.place)",
        "INSERT INTO app.usr VALUES ('low', 'high', ROW('Elm', 1))",
        *cast_traps("AS ASSIGNMENT"),
    )
    catalog = reflect(stage.admin, ["usr"], "app")
    wanted = RowId(schema="app", table="usr", key="idu=low")
    found = SqlRowReader(stage.admin, catalog).rows({wanted: frozenset({"kind", "place"})})
    assert found == {wanted: {"kind": "high", "place": "(Elm,1)"}}
    assert stage.caught() == set()


def test_an_owner_who_changes_is_told(stage: Stage, tmp_path: Path) -> None:
    run(stage.admin, "CREATE TABLE app.usr (idu INTEGER PRIMARY KEY, fname VARCHAR(40))")
    track(stage.admin, ["app.usr"], TriggerOptions(), LOG)
    source = SourceConfig(
        url=stage.admin.url.render_as_string(hide_password=False), log="capture.event_log", schema="app"
    )
    config = Config(source=source, output=(FilesOutput(path=str(tmp_path)),))
    run(stage.admin, f"ALTER TABLE app.usr OWNER TO {stage.owner.url.username}")
    said = [point for point in check(lambda: config) if point.name == "triggers"]
    assert [point for point in said if "is OUTDATED" in point.said and "eventlog track app.usr" in str(point.mend)]
    track(stage.admin, ["app.usr"], TriggerOptions(), LOG)
    assert [point.level for point in check(lambda: config) if point.name == "triggers"] == ["ok"]


def test_a_login_without_rights_reaches_nothing(stage: Stage) -> None:
    stage.own(*READ)
    track(stage.admin, ["app.usr"], TriggerOptions(), LOG)
    run(
        stage.admin,
        f"CREATE SCHEMA strangers AUTHORIZATION {stage.writer.url.username}",
        "GRANT USAGE ON SCHEMA capture TO PUBLIC",
    )
    run(stage.writer, "CREATE TABLE strangers.usr (idu integer)")
    run(stage.owner, f"REVOKE ALL ON app.usr FROM {stage.writer.url.username}")
    for statement in (
        *(f"SELECT * FROM capture.{table}" for table in OWN),
        *(f"DELETE FROM capture.{table}" for table in OWN),
        *(f"LOCK TABLE capture.{table}" for table in OWN),
        "INSERT INTO capture.event_log (event_type, table_name, table_key) VALUES (4, 'app.usr', 'idu=1')",
        "UPDATE capture.event_log SET status = 'S'",
        "UPDATE app.usr SET fname = 'x'",
        "SELECT capture.event_log_app_usr_insert()",
        HANGING,
    ):
        with pytest.raises(DBAPIError, match="permission denied"):
            run(stage.writer, statement)


def test_casts_between_types_of_the_server_cannot_be_replaced(stage: Stage) -> None:
    """What lets triggers keep them."""
    run(
        stage.owner,
        "CREATE FUNCTION app.mine(integer) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT app.trap('mine') $$",
    )
    with pytest.raises(DBAPIError, match="must be owner of type"):
        run(stage.owner, "CREATE CAST (integer AS text) WITH FUNCTION app.mine(integer)")
    with pytest.raises(DBAPIError, match="permission denied for schema pg_catalog"):
        run(stage.owner, "CREATE FUNCTION pg_catalog.concat(text) RETURNS text LANGUAGE sql AS $$ SELECT $1 $$")
