"""The product's tables for operators, in every database: what eventlog knows stands there, and nothing that it does not."""

from __future__ import annotations

import datetime as dt
from typing import Any

from sqlalchemy import Engine, create_engine, text

from eventlog.core.model import Op
from eventlog.sinks.database.attrep import SLOT_SECONDS
from eventlog.sinks.database.sink import DatabaseSettings, DatabaseSink
from tests.support.changerows import documents, told
from tests.support.sinks import opened, tenure

EVERY: Any = ("status", "history", "suspended_tables", "apply_exceptions")
ADD = told(1, Op.ADD, 1, fname="Jack")
MORE = told(2, Op.ADD, 2, fname="Joe")


def sink(engine: Engine, **chosen: Any) -> DatabaseSink:
    settings = DatabaseSettings(url="", control_tables=EVERY, **chosen)
    return opened(DatabaseSink(settings, create_engine(engine.url)), tenure())


def rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [
            {name.lower(): value for name, value in row._mapping.items()} for row in connection.execute(text(query))
        ]


def run(engine: Engine, statement: str) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement))


def test_without_the_setting_there_are_none(engine: Engine) -> None:
    one = opened(DatabaseSink(DatabaseSettings(url=""), create_engine(engine.url)))
    one.commit("", documents(ADD))
    one.close()
    with engine.connect() as connection:
        names = engine.dialect.get_table_names(connection)
    assert "usr__ct" in names
    assert not {f"attrep_{name}" for name in EVERY} & set(names)


def test_the_status_says_how_far_a_task_is_and_when_it_ended(engine: Engine) -> None:
    one = sink(engine)
    one.commit("a", documents(ADD))
    one.commit("a", documents(ADD))  # a repeat is no progress
    [said] = rows(engine, "SELECT * FROM attrep_status")
    assert (said["server_name"], said["task_name"], said["task_status"]) == (
        "eventlog",
        "eventlog",
        "CHANGE PROCESSING",
    )
    assert str(said["source_timestamp_applied"]).startswith("2024-05-06 07:08:09")
    assert [said["pending_changes"], said["disk_swap_size"], said["source_tail_position"]] == [None, None, None]
    one.close()
    [said] = rows(engine, "SELECT * FROM attrep_status")
    assert said["task_status"] == "NOT RUNNING"
    assert said["source_timestamp_applied"] is not None


def test_who_was_replaced_does_not_say_that_the_task_ended(engine: Engine) -> None:
    former = sink(engine)
    former.commit("a", documents(ADD))
    later = opened(DatabaseSink(DatabaseSettings(url="", control_tables=EVERY), create_engine(engine.url)), tenure(2))
    former.close()
    assert [one["task_status"] for one in rows(engine, "SELECT * FROM attrep_status")] == ["CHANGE PROCESSING"]
    later.close()


def test_the_history_counts_rows_in_stretches_of_time(engine: Engine) -> None:
    one = sink(engine)
    made = documents(ADD)
    one.commit("a", made)
    one.commit("b", documents(MORE, told(3, Op.MODIFY, 2, fname=("Joe", "Jim")), after=made[-1].id))
    one.close()
    slots = rows(engine, "SELECT * FROM attrep_history")
    assert sum(slot["timeslot_records"] for slot in slots) == 4  # the update has a before image
    for slot in slots:
        assert (slot["timeslot_type"], slot["timeslot_duration"]) == ("CHANGE PROCESSING", SLOT_SECONDS)
        assert slot["timeslot_latency"] > 0
        assert slot["timeslot_volume"] is None
        assert dt.datetime.fromisoformat(str(slot["timeslot"])).timestamp() % SLOT_SECONDS == 0


def test_a_table_that_takes_no_rows_is_suspended_until_it_does(engine: Engine) -> None:
    run(engine, "CREATE TABLE usr__ct (x INTEGER)")
    one = sink(engine)
    made = documents(ADD)
    one.commit("a", made)
    one.commit("b", documents(MORE, after=made[-1].id))
    [said] = rows(engine, "SELECT * FROM attrep_suspended_tables")
    assert (said["table_owner"].strip(), said["table_name"]) == ("", "usr")
    assert "is no change table" in said["suspend_reason"]
    refused = rows(engine, "SELECT * FROM attrep_apply_exceptions")
    assert {(one["task_name"], one["table_name"], one["statement"]) for one in refused} == {("eventlog", "usr", None)}
    assert len(refused) == 2
    assert all("is no change table" in one["error"] and one["error_time"] for one in refused)
    run(engine, "DROP TABLE usr__ct")
    again = sink(engine)
    again.commit("c", documents(told(4, Op.ADD, 4, fname="Ada"), after=one.last()))
    assert rows(engine, "SELECT * FROM attrep_suspended_tables") == []
    again.close()
    one.close()
