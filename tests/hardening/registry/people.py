"""Everybody who has a part in a log on PostgreSQL, each with a login of their own, and what tells whose code ran as whom.

A canary is a function that takes nobody's rights: it counts whose code ran as which role, in a sequence, whose numbers stay
taken where a transaction is rolled back, and in one that only reads by a call that the server itself counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count, product
from pathlib import Path
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.config.settings import Config, SourceConfig
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TrackRequest
from tests.integration.publishing import publish_all
from tests.support.logged import run

LOG = LogNames(table="event_log", schema="capture")
PARTS = ("owner", "tenant", "writer", "installer", "publisher", "reader", "stranger")
"""Tables belong to the owner; a tenant owns one table in a schema of its own, and a stranger has no part in anything."""
HIDDEN = "s3cret"
"""What stands in every column that nobody may see."""
TABLES = (
    "CREATE TABLE app.usr (idu integer PRIMARY KEY, fname varchar(40), lname varchar(40), secret varchar(40))",
    "CREATE TABLE app.private (id integer PRIMARY KEY, salary integer)",
    "CREATE TABLE app.other (id integer PRIMARY KEY, note varchar(40))",
)
TENANTS = "CREATE TABLE own.mine (id integer PRIMARY KEY, note varchar(40), more text, secret varchar(40))"
CANARY = """
CREATE FUNCTION canary.sing(place text) RETURNS text VOLATILE LANGUAGE plpgsql AS $$
DECLARE singer text := split_part(place, ':', 1) || ' as ' || current_user;
BEGIN
  EXECUTE format('SELECT canary.%I()', singer);
  BEGIN PERFORM nextval(format('canary.%I', singer)); EXCEPTION WHEN OTHERS THEN NULL; END;
  RETURN place;
END $$
"""
"""Takes whose code it is called by, and where that stands. Nothing in it is looked up in anybody's search path."""
TRAP = (
    "CREATE FUNCTION {schema}.trap(place text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS"
    " $$ BEGIN RETURN canary.sing('{part}: ' || place) IS NOT NULL; END $$"
)
"""What an attacker calls immutable, so that the server asks it already when it plans."""
_numbers = count(1)


class People(Struct, frozen=True, kw_only=True):
    """A log that the installer made, a table that it tracks for its owner, rights as `eventlog rights` gives them."""

    admin: Engine
    engines: Mapping[str, Engine]

    def __getattr__(self, part: str) -> Engine:
        try:
            return self.engines[part]
        except KeyError:
            raise AttributeError(part) from None

    def name(self, part: str) -> str:
        return str(self.engine(part).url.username)

    def engine(self, part: str) -> Engine:
        return self.admin if part == "admin" else self.engines[part]

    def url(self, part: str) -> str:
        return self.engine(part).url.render_as_string(hide_password=False)

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with self.admin.connect() as connection:
            return [tuple(row) for row in connection.execute(text(sql.replace(":", "\\:")))]

    def sung(self) -> dict[tuple[str, str], int]:
        """Whose code ran as which part, and how often."""
        query = (
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = 'canary' AND last_value IS NOT NULL"
            " UNION ALL SELECT funcname, calls FROM pg_stat_user_functions WHERE schemaname = 'canary' AND funcname <> 'sing'"
        )
        parts = {str(engine.url.username): part for part, engine in (("admin", self.admin), *self.engines.items())}
        found = {}
        for name, number in self.ask(query):
            whose, _, role = str(name).partition(" as ")
            found[whose, parts[role]] = int(str(number))
        return found

    def config(self, folder: Path, *, apart: bool = False, **source: Any) -> Config:
        """A publisher's that writes documents into a folder; `apart` has it read with the reader."""
        settings: dict[str, Any] = {"url": self.url("publisher"), "log": "capture.event_log", "schema": "app", **source}
        if apart:
            settings["reader"] = self.url("reader")
        return Config(source=SourceConfig(**settings), output=(FilesOutput(path=str(folder)),))

    def track(self, *tables: str, part: str = "installer", **asked: Any) -> None:
        """Tracks tables anew with these options, and gives the rights that go with them."""
        track(self.engine(part), tables or ["app.usr"], TrackRequest(reset=True, **asked), LOG)
        self.give()

    def give(self) -> None:
        """The rights of all as `eventlog rights` gives them."""
        give_rights(self.admin, Roles(publisher=self.name("publisher"), writer=self.name("writer")), LOG)
        give_rights(self.admin, Roles(reader=self.name("reader")), LOG)

    def statuses(self) -> str:
        """The statuses of the log's rows, in their order."""
        return "".join(str(status) for (status,) in self.ask("SELECT status FROM capture.event_log ORDER BY record_id"))


@contextmanager
def people(admin: Engine) -> Iterator[People]:
    """Roles without any right but those of their part, gone again afterwards: roles belong to the server."""
    number = next(_numbers)
    names = {part: f"{part}_registry_{number}" for part in PARTS}
    run(admin, *(f"CREATE ROLE {name} LOGIN" for name in names.values()))
    engines = {part: create_engine(admin.url.set(username=name)) for part, name in names.items()}
    found = People(admin=admin, engines=engines)
    try:
        run(admin, *_places(names, str(admin.url.username), str(admin.url.database)))
        admin.dispose()  # what counts calls is set when a session begins
        run(engines["owner"], *TABLES, *_rights(names))
        run(engines["tenant"], TENANTS, f"GRANT ALL ON own.mine TO {names['writer']}")
        for part, schema in (("owner", "app"), ("tenant", "own"), ("stranger", "mal")):
            trap = TRAP.format(schema=schema, part=part)
            run(engines[part], trap, f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC")
        give_rights(admin, Roles(installer=names["installer"]), LOG, ["app.usr", "app.other", "own.mine"])
        install(engines["installer"], LOG)
        found.track(exclude=("secret",))
        yield found
    finally:
        for engine in engines.values():
            engine.dispose()
        listed = ", ".join(names.values())
        run(admin, f"DROP OWNED BY {listed} CASCADE", f"DROP ROLE {listed}")


def places_of(site: People, twin: Engine) -> None:
    """Makes the same places in another database of the same server, where nobody knows of eventlog."""
    names = {part: site.name(part) for part in PARTS}
    run(twin, *_places(names, site.name("admin"), str(twin.url.database)))
    twin.dispose()
    for part, statements in (
        ("owner", (*TABLES, *_rights(names))),
        (
            "tenant",
            (TENANTS, f"GRANT ALL ON own.mine TO {names['writer']}", f"GRANT SELECT ON own.mine TO {names['reader']}"),
        ),
    ):
        engine = create_engine(site.engine(part).url.set(database=twin.url.database))
        run(engine, *statements)
        engine.dispose()
    for schema, part in (("own", "tenant"), ("mal", "stranger")):
        engine = create_engine(site.engine(part).url.set(database=twin.url.database))
        run(engine, TRAP.format(schema=schema, part=part), f"GRANT USAGE ON SCHEMA {schema} TO PUBLIC")
        engine.dispose()


def _places(names: Mapping[str, str], admin: str, database: str) -> Iterator[str]:
    yield f"ALTER DATABASE {database} SET track_functions = 'all'"
    yield f"CREATE SCHEMA app AUTHORIZATION {names['owner']}"
    yield f"CREATE SCHEMA own AUTHORIZATION {names['tenant']}"
    yield f"CREATE SCHEMA mal AUTHORIZATION {names['stranger']}"
    yield "CREATE SCHEMA capture"
    yield "CREATE SCHEMA canary"
    yield "GRANT USAGE ON SCHEMA canary, app TO PUBLIC"
    yield CANARY
    for whose, name in product(PARTS, (admin, *names.values())):
        yield f'CREATE SEQUENCE canary."{whose} as {name}"'
        # What a session has counted it tells at once, and not when it ends.
        told = "BEGIN PERFORM pg_stat_force_next_flush(); END"
        yield f'CREATE FUNCTION canary."{whose} as {name}"() RETURNS void LANGUAGE plpgsql AS $${told}$$'
    yield "GRANT ALL ON ALL SEQUENCES IN SCHEMA canary TO PUBLIC"


def _rights(names: Mapping[str, str]) -> Iterator[str]:
    yield f"GRANT SELECT, INSERT, UPDATE, DELETE ON app.usr, app.other TO {names['writer']}"


@contextmanager
def session(engine: Engine) -> Iterator[Connection]:
    """A session in which each statement is a transaction: temporary objects live as long as it does."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        yield connection


def documents(config: Config) -> str:
    """All that comes out of a publisher who publishes all that waits."""
    publish_all(config)
    folder = Path(config.output[0].path)  # type: ignore[attr-defined]  # a folder
    return "\n".join(file.read_text() for file in sorted(folder.rglob("*")) if file.is_file())
