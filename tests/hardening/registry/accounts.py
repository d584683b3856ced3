"""Everybody who has a part in a log on MariaDB or MySQL, each with an account of their own, and what tells whose code ran as whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from msgspec import Struct
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from eventlog.sql.names import LogNames
from eventlog.tracked.options import TrackRequest
from tests.hardening.registry.people import HIDDEN
from tests.support.logged import run

_numbers = count(1)
USR = "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), lname VARCHAR(40), secret VARCHAR(40))"
ROW = f"INSERT INTO usr VALUES (1, 'Ann', 'Lee', '{HIDDEN}')"
CHANGE = "UPDATE usr SET fname = 'Eve'"
PARTS = ("installer", "writer", "publisher", "stranger")


class Accounts(Struct, frozen=True, kw_only=True):
    """A database with a log, a database of a stranger's, and a connection for each part."""

    admin: Engine
    home: str
    engines: dict[str, Engine]
    log: LogNames

    def ask(self, sql: str) -> list[tuple[object, ...]]:
        with self.admin.connect() as connection:
            return [tuple(row) for row in connection.execute(text(sql))]

    def sung(self) -> list[tuple[object, ...]]:
        """As whom the stranger's function ran; its table keeps what is rolled back."""
        return self.ask(f"SELECT DISTINCT who FROM {self.home}.heard")

    def statuses(self) -> str:
        return "".join(str(letter) for (letter,) in self.ask("SELECT status FROM event_log ORDER BY record_id"))


@contextmanager
def accounts_on(admin: Engine) -> Iterator[Accounts]:
    """A log that the installer made, which tracks a table but for its hidden column; accounts are gone again afterwards."""
    number, database = next(_numbers), admin.url.database
    names = {part: f"{part}_forged_{number}" for part in PARTS}
    home = f"{database}_mal"
    run(admin, *(f"CREATE USER '{name}'@'%'" for name in names.values()), USR, f"CREATE DATABASE {home}")
    run(
        admin,
        "CREATE TABLE mine (id INTEGER NOT NULL PRIMARY KEY, note VARCHAR(40))",
        "CREATE TABLE private (id INTEGER NOT NULL PRIMARY KEY, salary INTEGER)",
        f"GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON mine TO '{names['stranger']}'",
        f"GRANT ALL ON {home}.* TO '{names['stranger']}'",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON usr TO '{names['writer']}'",
        f"CREATE TABLE {home}.heard (who VARCHAR(200)) ENGINE = MyISAM",
        f"CREATE FUNCTION {home}.trap(place TEXT) RETURNS INTEGER SQL SECURITY INVOKER MODIFIES SQL DATA"
        f" BEGIN INSERT INTO {home}.heard VALUES (CURRENT_USER()); RETURN 1; END",
    )
    for part in PARTS[:3]:
        run(admin, f"GRANT INSERT ON {home}.heard TO '{names[part]}'", f"GRANT EXECUTE ON {home}.* TO '{names[part]}'")
    engines = {part: create_engine(admin.url.set(username=name)) for part, name in names.items()}
    log = LogNames()
    give_rights(admin, Roles(installer=f"{names['installer']}@%"), tables=["usr"])
    install(engines["installer"])
    track(engines["installer"], ["usr"], TrackRequest(exclude=("secret",)))
    give_rights(admin, Roles(writer=names["writer"], publisher=names["publisher"]))
    yield Accounts(admin=admin, home=home, engines=engines, log=log)
    for engine in engines.values():
        engine.dispose()
    run(admin, *(f"DROP USER '{name}'@'%'" for name in names.values()))
