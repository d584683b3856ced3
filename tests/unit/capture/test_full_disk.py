"""SQLite on a full disk undoes the whole transaction: `track` says so, wherever that happens."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event

from eventlog.capture.install import install
from eventlog.capture.track import track, trigger_states
from eventlog.core.errors import InstallError


def test_a_disk_that_is_full_when_the_publisher_is_told(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    install(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE usr (idu INTEGER PRIMARY KEY)")

    def undo(cursor: Any, statement: str, _parameters: Any, _context: Any) -> None:
        if "event_log_mark" in statement and not statement.lstrip().startswith("SELECT"):
            cursor.connection.rollback()
            raise sqlite3.OperationalError("database or disk is full")

    event.listen(engine, "do_execute", undo)
    with pytest.raises(InstallError, match=r"^Nothing was tracked: database or disk is full\."):
        track(engine, ["usr"])
    event.remove(engine, "do_execute", undo)
    assert trigger_states(engine) == []
    track(engine, ["usr"])
    assert {str(state.state) for state in trigger_states(engine)} == {"CURRENT"}
    engine.dispose()
