"""Statements of a proof that are under way when it has to end."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import sqlalchemy as sa

from eventlog.verify.breaking import Breaker


class Connection:
    """A connection of a driver."""

    def __init__(self, done: Event) -> None:
        self.cancel: Callable[[], None] = done.set


def test_statements_under_way_are_broken_off(tmp_path: Path) -> None:
    breaker, done = Breaker(), Event()
    engine = breaker.watch(sa.create_engine(f"sqlite:///{tmp_path / 'x.db'}"))
    breaker._taken(Connection(done), None, None)
    breaker._taken(object(), None, None)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n"
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql(endless)
        except sa.exc.OperationalError as error:
            errors.append(error)

    thread = Thread(target=work)
    thread.start()
    while thread.is_alive():
        breaker.break_off()
        thread.join(0.1)
    assert done.wait(10)
    assert isinstance(errors[0], sa.exc.OperationalError)
    assert isinstance(errors[0].orig, sqlite3.OperationalError)
    engine.dispose()
