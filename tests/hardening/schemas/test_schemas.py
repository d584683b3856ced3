"""Nothing is lost on schemas as people have them: random work, five ways to log it, and a receiver that believes nothing.

EVENTLOG_SCHEMAS says which seed is the first and how many there are; `python -m tests.hardening schemas --minutes N --seed S`
asks for so many from that one on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from enum import Enum, auto
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.installed import TriggerCondition
from eventlog.capture.track import track, trigger_states
from eventlog.convert.local import convert
from eventlog.core.errors import InstallError
from eventlog.tracked.options import Style, TriggerOptions
from tests.hardening.schemas.history import History
from tests.hardening.schemas.images import Images
from tests.hardening.schemas.replaying import Replayer, Shape
from tests.hardening.schemas.running import Run, different
from tests.support.logged import run
from tests.support.servers import databases

FIRST, SEEDS = map(int, os.environ.get("EVENTLOG_SCHEMAS", "1 1").split())
ROUNDS = 1 if SEEDS == 1 else 8
STEPS = 35 if SEEDS == 1 else 60


class Way(Enum):
    """How it comes out of the log: by a publisher, by one that is killed, by a conversion."""

    PUBLISHED = auto()
    KILLED = auto()
    CONVERTED = auto()


FEW = (
    ("sqlite", Style.FIELD, 1, Way.PUBLISHED),
    ("sqlite", Style.ROW_BACK, 1, Way.CONVERTED),
    ("postgresql", Style.FIELD, 1, Way.PUBLISHED),
    ("postgresql", Style.ROW_BACK, 1, Way.PUBLISHED),
    ("postgresql", Style.IMAGE, 1, Way.PUBLISHED),
    ("postgresql", Style.FIELD_BACK, 1, Way.KILLED),
    ("postgresql", Style.FIELD_REPLACE, 1, Way.CONVERTED),
    ("newest_postgresql", Style.IMAGE, 2, Way.PUBLISHED),
    ("mariadb", Style.FIELD, 1, Way.PUBLISHED),
    ("mysql", Style.IMAGE, 1, Way.PUBLISHED),
)


CHOSEN = {
    *((name, "gets row triggers,") for name in ("employee", "film", "orders", "payment", "store", "ticket")),
    *((name, "may have two") for name in ("seat", "ticket")),
}
"""What `track` says on PostgreSQL, of which tables; elsewhere there is nothing to be chosen."""


def cases() -> Iterator[tuple[str, Style, int, Way]]:
    """A few of all, or all: PostgreSQL has every seed, for every action fires triggers there, and several sessions work."""
    if SEEDS == 1:
        yield from FEW
        return
    for place in range(SEEDS):
        seed = FIRST + place
        for database in (*databases(), "newest_postgresql"):
            if database == "postgresql" or place % 3 == 0:
                ways = list(Way) if place == 0 else [Way.PUBLISHED]
                yield from ((database, style, seed, way) for style in Style for way in ways)


@pytest.mark.in_turn
@pytest.mark.parametrize("database, style, seed, way", list(cases()))
def test_a_receiver_has_what_the_tables_have(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style, seed: int, way: Way
) -> None:
    """At the end of every round, whatever was rolled back, refused, cascaded or truncated in it."""
    engine: Engine = request.getfixturevalue(database)
    folder = tmp_path / "documents"
    folder.mkdir()
    with closing(Run(engine, folder, style, seed, images=way is not Way.CONVERTED)) as work:
        if way is Way.CONVERTED:
            work.work(STEPS * ROUNDS)
            assert work.convert(partial(convert, jobs=1)) == []
            return
        for _ in range(ROUNDS):
            assert (work.killed(STEPS) if way is Way.KILLED else work.round(STEPS)) == []


@pytest.mark.in_turn
@pytest.mark.parametrize("database", databases())
def test_every_table_may_be_tracked_with_defaults(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    """Those without a key are told with their parents; alone they are refused in words. What is chosen for a table is said."""
    engine: Engine = request.getfixturevalue(database)
    with closing(Run(engine, tmp_path / "documents", TriggerOptions().style, 1)) as work:
        told = {(one.split()[0], " ".join(one.split()[1:4])) for one in work.remarks}
        assert told == (CHOSEN if database == "postgresql" else set())
        assert {one.state for one in trigger_states(engine)} == {TriggerCondition.CURRENT}
        assert {one.table for one in trigger_states(engine)} >= {one.name for one in work.tables if one.shape.key}
        for one in work.tables:
            if not one.shape.key and one.name != "customer_phone":  # all of its columns are a key
                with pytest.raises(InstallError, match=f"{one.name} has no primary key"):
                    track(engine, [one.name])
        assert work.round(10) == []


def test_the_replayer_tells_of_what_cannot_be() -> None:
    def told(inner: str) -> list[bytes]:
        return [f"<nds><input>{inner}</input></nds>".encode()]

    place = "<association>id=1,table=t,schema=s</association>"
    receiver = Replayer(strict=True)
    receiver.take(
        told(
            f"<modify event-id='1'>{place}</modify><delete event-id='2'><association>id=2,table=t</association></delete>"
        )
    )
    assert [wrong.split(" ", 2)[1] for wrong in receiver.wrong] == ["modifies", "deletes"]
    gone = "<modify-attr attr-name='x'><remove-value><value>a</value></remove-value></modify-attr>"
    receiver.take(told(f"<modify event-id='3'>{place}{gone}</modify>"))
    assert receiver.wrong[-1] == "x of ('t', 'id=1') loses ['a'], and has []"
    assert different({("t", "id=1"): {"x": {"a"}}}, receiver.filled()) == [
        "('t', 'id=1'): tables {'x': {'a'}}, receiver {}"
    ]


def test_the_replayer_tells_of_a_value_that_was_read_back_and_never_was(sqlite: Engine) -> None:
    """One that comes late is right, and what is told next may take away what went before; an old one is wrong."""
    run(
        sqlite,
        "CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT)",
        "CREATE TABLE event_log (record_id, event_type, column_name, old_value, new_value)",
        "INSERT INTO t VALUES (1, 'old')",
    )
    history = History(sqlite, [Shape(name="t", columns=(("id", "INTEGER"), ("x", "TEXT")), key=("id",))])
    history.note()
    run(sqlite, "UPDATE t SET x = 'now'")
    run(sqlite, "INSERT INTO event_log VALUES (7, 5, NULL, NULL, NULL), (8, 2, 'x', 'old', 'now')")
    history.note()
    run(sqlite, "UPDATE t SET x = 'late'")
    history.note()

    def told(number: int, inner: str) -> bytes:
        place = "<association>id=1,table=t</association>"
        change = f"<modify-attr attr-name='x'>{inner}</modify-attr>"
        return f"<input><modify event-id='{number}'>{place}{change}</modify></input>".encode()

    def read(value: str) -> bytes:
        return told(7, f"<remove-all-values/><add-value><value>{value}</value></add-value>")

    moved = told(8, "<remove-value><value>old</value></remove-value><add-value><value>now</value></add-value>")
    for value, wrong in (("now", []), ("late", []), ("old", ["{'old'}"]), ("never", ["{'never'}"])):
        receiver = Replayer(strict=True, past=history)
        receiver.take([read(value), moved])
        assert [one.partition(" as ")[2].partition(", which")[0] for one in receiver.wrong] == wrong


def test_the_replayer_of_images_tells_of_what_is_not_so(tmp_path: Path) -> None:
    def message(sequence: str, operation: str, mask: str, **data: object) -> str:
        headers = {"operation": operation, "changeSequence": sequence, "columnMask": mask}
        return json.dumps({"topic": "t", "value": {"headers": headers, "data": data}})

    lines = [message("2", "INSERT", "7", k=1, x="1.50", y=True), message("1", "UPDATE", "5", k=1, x="not told", y=None)]
    (tmp_path / "1.jsonl").write_text("\n".join(lines))
    (tmp_path / "t__ct").mkdir()
    rows = ["header__change_oper,header__change_mask,header__change_seq,k,x,y", "B,,3,1,old,\\N", "U,10,3,1,2,\\N"]
    (tmp_path / "t__ct" / "3.csv").write_text("\n".join([*rows, "I,38,4,2,\\N,z", "D,08,5,2,\\N,\\N"]))
    consumer = Images(tmp_path, [Shape(name="t", columns=(), key=("k",))])
    consumer.take()
    assert consumer.differences({("t", "k=1"): {"x": {"2.0"}}}) == ["1.jsonl: 1 of t comes after 2"]
    [_, found] = consumer.differences({("t", "k=1"): {"x": {"3"}, "c.v": {"of a child"}}})
    assert found.endswith("('t', 'k=1'): tables {'x': {'3'}}, consumer {'x': {'2'}}")
