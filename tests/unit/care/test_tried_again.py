"""Of two that wait for each other the database ends one: that one tries again, a few times."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from eventlog.care.rows import TRIES, retry_in_transaction
from eventlog.core.errors import SourceError
from eventlog.sql.dialect import dialect_of
from eventlog.sql.log import Log

LOG = cast("Log", SimpleNamespace(dialect=dialect_of("sqlite://")))


def busy() -> SourceError:
    error = SourceError("The event log cannot be used: database is locked.")
    error.__cause__ = RuntimeError("database is locked")
    return error


@pytest.mark.parametrize("failures", range(TRIES + 1))
def test_what_a_lock_has_stopped_is_tried_again(failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eventlog.care.rows.is_held_up", lambda _dialect, error: "locked" in str(error))
    calls: list[int] = []

    @retry_in_transaction
    def work(_log: Log, number: int) -> int:
        calls.append(number)
        if len(calls) <= failures:
            raise busy()
        return number

    if failures < TRIES:
        assert work(LOG, 7) == 7
        assert len(calls) == failures + 1
    else:
        with pytest.raises(SourceError, match="locked"):
            work(LOG, 7)
        assert len(calls) == TRIES
