"""A function or an operator that fits a call better than the server's own, in a schema that is searched for names, is run by
no session of eventlog's: neither a publisher's nor an installer's nor a superuser's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from sqlalchemy import Engine, create_engine

from eventlog.cli.main import exit_code
from tests.hardening.registry.planted import plant
from tests.integration.publishing import url_of
from tests.support.logged import run

TABLES = {
    part: f"CREATE TABLE public.{name} (idu integer NOT NULL PRIMARY KEY, fname varchar(40), tag name, at timestamptz)"
    for part, name in (("installer", "usr"), ("admin", "grp"))
}
"""Whose they are: what the owner of the log lays down is run for nobody else."""
QUIET = "SET search_path = pg_catalog"


class Site(Struct, frozen=True, kw_only=True):
    """A database whose planter may create where everybody looks for names."""

    admin: Engine
    installer: Engine
    publisher: Engine
    folder: Path
    schema: str

    def do(self, *statements: str) -> None:
        run(self.admin, QUIET, *statements)

    def ask(self, sql: str) -> object:
        with self.admin.connect() as connection:
            connection.exec_driver_sql(QUIET)
            return connection.exec_driver_sql(sql).scalar()

    def command(self, role: Engine, *words: str) -> None:
        where = ["--config", str(self.config(role))]
        if words[0] in ("install", "track", "untrack", "rights", "triggers"):
            where = ["--database", url_of(role), "--log", "public.event_log"]
        assert exit_code([*words, *where]) in (0, None), words
        assert not self.ask("SELECT is_called FROM planter.ran"), f"{words} of {role.url.username}"

    def config(self, role: Engine) -> Path:
        file = self.folder / f"{role.url.username}.toml"
        file.write_text(
            f'[source]\nurl = "{url_of(role)}"\nlog = "public.event_log"\nschema = "public"\n'
            f'[[output]]\nsink = "files"\npath = "{self.folder / "out"}"\n'
        )
        return file


@pytest.fixture(params=["public", "own"])
def roles(request: pytest.FixtureRequest, postgresql_admin: Engine) -> Iterator[dict[str, str]]:
    """The roles by what they do. They go when their database is gone, for thousands of objects have no locks enough."""
    roles = {part: f"{part}_{request.param}" for part in ("planter", "installer", "publisher")}
    yield roles
    with postgresql_admin.connect() as connection:
        for role in roles.values():
            connection.exec_driver_sql(f"DROP ROLE {role}")


@pytest.fixture
def site(roles: dict[str, str], postgresql: Engine, tmp_path: Path) -> Iterator[Site]:
    where = roles["planter"].rpartition("_")[2]
    made = [f"CREATE ROLE {role} LOGIN" for role in roles.values()]
    # The schema that a role searches first is called like it.
    homes = ["public"] if where == "public" else ["postgres", roles["installer"], roles["publisher"]]
    if where != "public":
        made += [f"CREATE SCHEMA {home} AUTHORIZATION {roles['planter']}" for home in homes]
        made += [f"GRANT USAGE ON SCHEMA {home} TO PUBLIC" for home in homes]
    else:
        made.append(f"GRANT CREATE ON SCHEMA public TO {roles['planter']}")
    made += [f"CREATE SCHEMA planter AUTHORIZATION {roles['planter']}", *TABLES.values()]
    made += [f"GRANT CREATE ON SCHEMA public TO {roles['installer']}", f"ALTER TABLE usr OWNER TO {roles['installer']}"]
    run(postgresql, *made)
    engines = {part: create_engine(postgresql.url.set(username=role)) for part, role in roles.items()}
    run(
        engines["planter"],
        "GRANT USAGE ON SCHEMA planter TO PUBLIC",
        "CREATE SEQUENCE planter.ran",
        "GRANT ALL ON SEQUENCE planter.ran TO PUBLIC",
        "CREATE FUNCTION planter.step(text, anyelement) RETURNS text LANGUAGE sql"
        " AS $$SELECT pg_catalog.nextval('planter.ran')::text$$",
    )
    for home in homes:
        assert plant(engines["planter"], home) > 1_000
    postgresql.dispose()
    parts = {part: engine for part, engine in engines.items() if part != "planter"}
    yield Site(admin=postgresql, folder=tmp_path, schema=homes[0], **parts)
    for engine in (*engines.values(), postgresql):
        engine.dispose()


def test_nothing_that_a_stranger_planted_is_run(site: Site) -> None:
    site.command(site.installer, "install")
    site.command(site.installer, "track", "public.usr", "--when", "idu > 0")
    site.command(site.admin, "track", "public.grp")
    site.command(site.admin, "rights", "--publisher", str(site.publisher.url.username))
    for table in ("usr", "grp"):
        site.do(f"INSERT INTO public.{table} VALUES (1, 'Ann', 'a', now()), (2, 'Bob', 'b', now())")
    for role in (site.publisher, site.admin):
        site.command(role, "status")
        site.command(role, "check")
    site.command(site.publisher, "run", "--until-empty")
    assert site.ask("SELECT count(*) FROM public.event_log WHERE status = 'S'")
    for role, table in ((site.installer, "public.usr"), (site.admin, "public.grp")):
        site.command(role, "triggers")
        site.command(role, "refresh", table)
        site.command(role, "log")
        site.command(site.publisher, "run", "--until-empty")
        site.command(role, "verify", table, "--against", url_of(site.admin), "--into", "public")
        site.command(role, "purge", "--older-than", "0s", "--yes")
    site.command(site.admin, "untrack", "public.usr", "--yes")
