"""Nothing is lost on schemas as people have them: random work, five ways to log it, and a receiver that believes nothing.

EVENTLOG_SCHEMAS says which seed is the first and how many there are; `python -m tests.hardening schemas --minutes N --seed S`
asks for so many from that one on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style, TriggerCondition, TriggerOptions, track, trigger_states
from eventlog.convert.local import convert
from eventlog.core.errors import InstallError
from tests.hardening.schemas.images import Images
from tests.hardening.schemas.replaying import Replayer, Shape
from tests.hardening.schemas.running import Run, different
from tests.support.servers import databases

FIRST, SEEDS = map(int, os.environ.get("EVENTLOG_SCHEMAS", "1 1").split())
ROUNDS = 1 if SEEDS == 1 else 8
STEPS = 35 if SEEDS == 1 else 60


PUBLISHED, CONVERTED = "published", "converted"
"""How it comes out of the log."""

FEW = (
    ("sqlite", Style.FIELD, 1, PUBLISHED),
    ("sqlite", Style.ROW_BACK, 1, CONVERTED),
    ("postgresql", Style.FIELD, 1, PUBLISHED),
    ("postgresql", Style.ROW_BACK, 1, PUBLISHED),
    ("postgresql", Style.IMAGE, 1, PUBLISHED),
    ("postgresql", Style.FIELD_BACK, 1, PUBLISHED),
    ("postgresql", Style.FIELD_REPLACE, 1, CONVERTED),
    ("newest_postgresql", Style.IMAGE, 2, PUBLISHED),
    ("mariadb", Style.FIELD, 1, PUBLISHED),
    ("mysql", Style.IMAGE, 1, PUBLISHED),
)

CHOSEN = {
    *((name, "gets row triggers,") for name in ("employee", "film", "orders", "payment", "store", "ticket")),
    *((name, "may have two") for name in ("seat", "ticket")),
}
"""What `track` says on PostgreSQL, of which tables; elsewhere there is nothing to be chosen."""


def cases() -> Iterator[tuple[str, Style, int, str]]:
    """A few of all, or all: PostgreSQL has every seed, for every action fires triggers there, and several sessions work."""
    if SEEDS == 1:
        yield from FEW
        return
    for place in range(SEEDS):
        seed = FIRST + place
        for database in (*databases(), "newest_postgresql"):
            if database == "postgresql" or place % 3 == 0:
                ways = [PUBLISHED, CONVERTED] if place == 0 else [PUBLISHED]
                yield from ((database, style, seed, way) for style in Style for way in ways)


@pytest.mark.in_turn
@pytest.mark.parametrize("database, style, seed, way", list(cases()))
def test_a_receiver_has_what_the_tables_have(
    request: pytest.FixtureRequest, tmp_path: Path, database: str, style: Style, seed: int, way: str
) -> None:
    """At the end of every round, whatever was rolled back, refused, cascaded or truncated in it."""
    engine: Engine = request.getfixturevalue(database)
    folder = tmp_path / "documents"
    folder.mkdir()
    with closing(Run(engine, folder, style, seed, images=way == PUBLISHED)) as work:
        if way == CONVERTED:
            work.work(STEPS * ROUNDS)
            assert work.convert(partial(convert, jobs=1)) == []
            return
        for _ in range(ROUNDS):
            assert work.round(STEPS) == []


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
    place = "<association>id=1,table=t,schema=s</association>"
    receiver = Replayer(strict=True)
    receiver.take(
        [f"<input><modify event-id='1'>{place}</modify><delete event-id='2'>{place}</delete></input>".encode()]
    )
    receiver.take([f"<input><delete event-id='3'>{place}</delete></input>".encode()])
    assert [wrong.split(" ", 2)[:2] for wrong in receiver.wrong] == [["1", "modifies"], ["3", "deletes"]]
    assert different({("t", "id=1"): {"x": {"a"}}}, receiver.filled()) == [
        "('t', 'id=1'): tables {'x': {'a'}}, receiver None"
    ]


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
