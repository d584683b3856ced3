"""Columns come, go, and change name and type at random under writers: what a publisher that follows leaves open is one poll.

With an event trigger nothing is left open. Without its clock: between two polls anything may happen, and after each of them nothing may be lost and no writer fail.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
from msgspec import Struct
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.installed import TriggerCondition, history
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track, trigger_states
from eventlog.check.point import PointLevel
from eventlog.check.triggers import trigger_points
from eventlog.core.errors import EventlogError
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.following import ChangingTable, Site
from tests.support.logged import logged, run

STEPS = 8


class Writer(Thread):
    """Writes to another row of the table all the time, whatever happens to it; counts how often that failed."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(daemon=True)
        self.engine = engine
        self.ended = Event()
        self.written = self.failed = 0

    def run(self) -> None:
        while not self.ended.wait(0.01):
            try:
                with self.engine.begin() as connection:
                    connection.execute(
                        text("UPDATE usr SET secret = :value WHERE idu = 2"), {"value": str(self.written)}
                    )
                self.written += 1
            except DBAPIError:
                self.failed += 1


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [Style.FIELD, Style.FIELD_BACK, Style.ROW_BACK])
@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_what_changes_between_two_polls_is_followed_at_the_second(
    request: pytest.FixtureRequest, database: str, style: Style
) -> None:
    engine: Engine = request.getfixturevalue(database)
    install(engine)
    seed = random.SystemRandom().randrange(10**6)
    table, site = ChangingTable(engine, seed), Site(engine, follow=True)
    track(engine, ["usr"], TriggerOptions(style=style, exclude=("secret",)))
    writer = Writer(engine)
    with site.publisher:
        site.poll()
        writer.start()
        try:
            for step in range(STEPS):
                follow_one(engine, table, site, f"seed {seed}, step {step}")
        finally:
            writer.ended.set()
            writer.join()
    assert writer.written
    assert "secret" not in {row[2] for row in logged(engine)}
    versions = [one.version for one in history(engine, LogNames())]
    assert versions == list(range(1, len(versions) + 1))


def follow_one(engine: Engine, table: ChangingTable, site: Site, where: str) -> None:
    """One change: the journal names it at the next poll, and from then on each column is captured and no write fails."""
    wanted = table.change()
    said = {one["event"]: one for one in site.poll()}
    for _ in range(3):  # a lock that did not come in time is tried for again
        if said.get("triggers_behind") is None:
            break
        said = {one["event"]: one for one in site.poll()} | said
    told = said.get("table_changed", {})
    assert {what: told[what] for what in ("added", "gone", "retyped") if what in told} in (wanted, {}), where
    assert told or "retyped" in wanted, where
    assert {one.state for one in trigger_states(engine)} == {TriggerCondition.CURRENT}, where
    for column in table.columns:
        before = len(logged(engine))
        try:
            run(engine, f"UPDATE usr SET {column} = '{where} {column}' WHERE idu = 1")
        except (DBAPIError, EventlogError) as error:
            pytest.fail(f"{where}: {error}")
        assert len(logged(engine)) == before + 1, (where, column)


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_with_an_event_trigger_nothing_is_lost_and_no_writer_fails(postgresql: Engine, style: Style) -> None:
    """Nobody polls, and nobody tracks anew: each change is logged right after the ALTER TABLE, and in every moment of it."""
    install(postgresql)
    seed = random.SystemRandom().randrange(10**6)
    table = ChangingTable(postgresql, seed)
    track(postgresql, ["usr"], TriggerOptions(style=style, follow_ddl=True))
    writer = Writer(postgresql)
    writer.start()
    try:
        for step in range(STEPS):
            table.change()
            for column in table.columns:
                before = told_of_first(postgresql)
                run(postgresql, f"UPDATE usr SET {column} = '{step} {column}' WHERE idu = 1")
                assert told_of_first(postgresql) == before + 1, f"seed {seed}, step {step}, {column}"
    finally:
        writer.ended.set()
        writer.join()
    assert (writer.failed, writer.written > 0) == (0, True), f"seed {seed}"
    kinds = {row[0] for row in logged(postgresql) if row[1] == "idu=1"}
    assert kinds == ({2} if style is Style.FIELD else {6}), "in its style"
    assert {one.state for one in track(postgresql, ["usr"])} == {TriggerCondition.CURRENT}


def told_of_first(engine: Engine) -> int:
    """How many rows of the log are about the row that only the test writes to."""
    return sum(row[1] == "idu=1" for row in logged(engine))


class Parts(Struct, frozen=True, kw_only=True):
    """A connection for everybody who has a part in it, with the rights that `eventlog rights` gives and no others."""

    admin: Engine
    owner: Engine
    installer: Engine
    publisher: Engine
    writer: Engine


@contextmanager
def parts(admin: Engine, *, installs: bool) -> Iterator[Parts]:
    """The parts, with a table of the owner's; where the publisher `installs` it is the installer too."""
    names = {part: f"{part}_{admin.url.database}" for part in ("owner", "installer", "publisher", "writer")}
    many_schemas = dialect_of(admin).schemas
    accounts = names if many_schemas else {part: f"'{name}'@'%'" for part, name in names.items()}
    login = "CREATE ROLE {} LOGIN" if many_schemas else "CREATE USER {}"
    run(admin, *(login.format(account) for account in accounts.values()))
    right = "USAGE, CREATE ON SCHEMA public" if many_schemas else f"ALL ON {admin.url.database}.*"
    run(admin, f"GRANT {right} TO {accounts['owner']}")
    engines = {part: create_engine(admin.url.set(username=name)) for part, name in names.items()}
    if installs:
        engines["installer"].dispose()
        engines["installer"] = engines["publisher"]
    try:
        yield Parts(admin=admin, **engines)
    finally:
        for engine in engines.values():
            engine.dispose()
        listed = ", ".join(accounts.values())
        if many_schemas:
            run(admin, f"DROP OWNED BY {listed} CASCADE", f"DROP ROLE {listed}")
        else:
            run(admin, f"DROP USER {listed}")


def tracked_by_parts(found: Parts, seed: int, style: Style) -> ChangingTable:
    """A table that its owner made, and a log and triggers that the installer made; rights as in the manual, in its order."""
    table = ChangingTable(found.owner, seed)
    run(
        found.owner if dialect_of(found.owner).schemas else found.admin,
        f"GRANT SELECT, UPDATE ON usr TO {_account(found.writer)}",
    )
    give_rights(found.admin, Roles(installer=_role(found.installer)), tables=["usr"])
    install(found.installer)
    track(found.installer, ["usr"], TriggerOptions(style=style, exclude=("secret",)))
    give_rights(found.admin, Roles(writer=_role(found.writer), publisher=_role(found.publisher)))
    return table


def _role(engine: Engine) -> str:
    return str(engine.url.username)


def _account(engine: Engine) -> str:
    return _role(engine) if dialect_of(engine).schemas else f"'{_role(engine)}'@'%'"


@pytest.mark.in_turn
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_a_publisher_with_the_rights_of_an_installer_follows(
    request: pytest.FixtureRequest, database: str, style: Style
) -> None:
    seed = random.SystemRandom().randrange(10**6)
    with parts(request.getfixturevalue(database), installs=True) as found:
        table = tracked_by_parts(found, seed, style)
        site, writer = Site(found.publisher, follow=True), Writer(found.writer)
        with site.publisher:
            site.poll()
            writer.start()
            try:
                for step in range(STEPS):
                    follow_one(found.admin, table, site, f"seed {seed}, step {step}")
            finally:
                writer.ended.set()
                writer.join()
        assert writer.written


@pytest.mark.in_turn
@pytest.mark.parametrize("database", ["postgresql", "mariadb"])
def test_a_publisher_with_least_rights_says_what_it_may_not_and_goes_on(
    request: pytest.FixtureRequest, database: str
) -> None:
    """Whoever alters the table tracks it anew, with the rights of the installer; until then each change is said once."""
    seed = random.SystemRandom().randrange(10**6)
    with parts(request.getfixturevalue(database), installs=False) as found:
        table = tracked_by_parts(found, seed, Style.FIELD)
        site = Site(found.publisher, follow=True)
        with site.publisher:
            site.poll()
            for step in range(STEPS // 2):
                where = f"seed {seed}, step {step}"
                table.change()
                said = [one for one in site.poll() if one["event"] == "triggers_behind"]
                outdated = {one.state for one in trigger_states(found.admin)} != {TriggerCondition.CURRENT}
                assert len(said) <= 1, where
                if database == "postgresql":
                    assert ["permission denied" in one["why"] for one in said] == [True] * outdated, (where, said)
                else:  # it is told of no triggers, only of columns
                    assert all("cannot see the triggers of usr" in one["why"] for one in said), (where, said)
                assert [one for one in site.poll() if one["event"] == "triggers_behind"] == [], where
                points = {one.level for one in trigger_points(found.publisher, LogNames())}
                assert (points != {PointLevel.OK}) == (outdated or database == "mariadb"), where
                track(found.installer, ["usr"])
                site.poll()
                run(found.writer, f"UPDATE usr SET {table.columns[0]} = '{where}'")
                site.poll()
                with found.admin.connect() as connection:
                    assert connection.execute(text("SELECT count(*) FROM event_log WHERE status <> 'S'")).scalar() == 0
        versions = [one.version for one in history(found.admin, LogNames())]
        assert versions == list(range(1, len(versions) + 1))
