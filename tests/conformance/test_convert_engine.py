"""Which engine `convert --engine auto` takes for a database: Spark only where its rows are worth the start."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine

from eventlog.convert import ordering
from eventlog.convert.command import convert
from eventlog.convert.ordering import order_of, worth_spark
from tests.conformance.event_logs import installed


@pytest.mark.parametrize("statuses, worth", [(None, False), ("X", True), ("NX", True), ("E", False)])
def test_a_database_is_for_spark_from_so_many_rows_on(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, statuses: str | None, worth: bool
) -> None:
    log = installed(engine)
    log.write_all(range(1, 6))
    log.run("UPDATE event_log SET status = 'X' WHERE record_id > 1")
    monkeypatch.setattr(ordering, "SPARK_ROWS", 4)
    said = [engine.url.render_as_string(hide_password=False), "--out", "documents"]
    said += [] if statuses is None else ["--status", statuses]
    order = order_of(convert.make_context("convert", said).params)
    assert worth_spark(order) is worth
