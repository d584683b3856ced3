"""PostgreSQL's own log as the judge: a database whose tables are tracked, and of which wal2json tells every change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.logged import run


@contextmanager
def judged_database(server: str, name: str, tables: list[str], *statements: str) -> Iterator[Engine]:
    """Make a database by the statements, track these tables, add a slot called `judge`."""
    admin = create_engine(server + "postgres", isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine = create_engine(server + name)
    try:
        install(engine)
        run(engine, *statements)
        track(engine, tables, TriggerOptions(style=Style.IMAGE))
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_create_logical_replication_slot('judge', 'wal2json')"))
        yield engine
        with engine.begin() as connection:
            connection.execute(text("SELECT pg_drop_replication_slot('judge')"))
    finally:
        engine.dispose()
        admin.dispose()


def asked_of_wal2json(*tables: str) -> str:
    """Return the query for changes of the tables since the last query."""
    return (
        "SELECT data FROM pg_logical_slot_get_changes('judge', NULL, NULL, 'format-version', '2',"
        f" 'include-xids', 'true', 'include-transaction', 'false', 'add-tables', '{','.join(tables)}')"
    )
