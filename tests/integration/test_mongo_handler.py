"""MongoDB's handler of Qlik's messages takes ours: what it writes is what the tables hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine

from eventlog.capture import Style
from eventlog.core.model import Change, Edit, Op
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.outputs import FilesOutput
from tests.mongo_handler import classpath, handled
from tests.support.messages import change, messages
from tests.support.random_work import KEYS, RandomWork, standing, typed
from tests.support.told import published, tracked_tables

NAMES = ("customer", "amount", "placed_on", "note")
Rows = dict[int, dict[str, Any]]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classpath(tmp_path_factory.mktemp("handler"))


def values(random: Random) -> dict[str, Any]:
    return {
        "customer": random.choice(["Ada", "Żółć", 'a "b"', ""]),
        "amount": random.choice([None, "19.90", "0.00", "-12345678.91"]),
        "placed_on": random.choice([None, "2024-05-06", "1969-12-31"]),
        "note": random.choice([None, "x" * 200, "\\N"]),
    }


def history(seed: int, length: int) -> tuple[list[Change], Rows]:
    """Whole images of random inserts, updates, some of which change nothing, and deletes; and the rows in the end."""
    random, rows, found = Random(seed), Rows(), list[Change]()
    while len(found) < length:
        key = random.randrange(10)
        old = rows.get(key)
        if old is None:
            new = rows[key] = values(random)
            found.append(change(key, Op.ADD, tuple([Edit(column=name, new=new[name]) for name in NAMES])))
        elif random.random() < 0.3:
            del rows[key]
            found.append(change(key, Op.DELETE, tuple([Edit(column=name, old=old[name]) for name in NAMES])))
        else:
            new = rows[key] = random.choice([values(random), old, {**old, "note": None}])
            edits = tuple([Edit(column=name, old=old[name], new=new[name]) for name in NAMES])
            found.append(change(key, Op.MODIFY, edits))
    return found, rows


def applied(written: list[dict[str, Any]]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The documents of a collection that takes what the handler says, by their keys."""
    store: dict[tuple[Any, ...], dict[str, Any]] = {}
    for one in written:
        if one["does"] == "nothing":
            continue
        key = tuple(one["filter"]["_id"].values())
        if one["does"] == "ReplaceOneModel":
            assert key not in store
            store[key] = {name: value for name, value in one["row"].items() if name != "_id"}
        elif one["does"] == "UpdateOneModel":
            store[key].update(one["row"]["$set"])
        else:
            assert one["does"] == "DeleteOneModel"
            del store[key]
    return store


@pytest.mark.in_turn
def test_what_a_real_log_tells_of_random_work_is_written_as_the_tables_hold_it(
    classes: str, postgresql: Engine, tmp_path: Path
) -> None:
    """From triggers by a publisher to files, in several rounds; with keys that change, NULLs, savepoints and TRUNCATE."""
    tracked_tables(postgresql, Style.IMAGE)
    work = RandomWork(postgresql, Random(20), truncates=True)
    output = FilesOutput(path=str(tmp_path), format="messages", messages=MessageSettings(mode="bare"))
    published(work, output, rounds=3, transactions=20)
    said = [json.loads(line) for file in sorted(tmp_path.glob("*.jsonl")) for line in file.read_text().splitlines()]
    with postgresql.connect() as connection:
        rows = standing(connection)
    found = {}
    for table, key in KEYS.items():
        told = [one["value"] for one in said if one["topic"].endswith(table)]
        written = handled(classes, [{"key": key_of(one, key), "value": one} for one in told])
        assert not [one for one in written if "error" in one]
        assert {"ReplaceOneModel", "UpdateOneModel", "DeleteOneModel"} <= {one["does"] for one in written}
        found.update({(table, place): typed(row) for place, row in applied(written).items()})
    assert found == rows
    assert len(rows) > 2


def key_of(message: Mapping[str, Any], key: tuple[str, ...]) -> dict[str, Any]:
    """The document that a converter makes of the key: `avro_key = true` writes it so."""
    return {name: message["data"][name] for name in key}


def test_a_key_that_is_no_document_is_refused_by_it(classes: str) -> None:
    """So the page says which keys it wants."""
    changes, _ = history(seed=1, length=1)
    [one] = messages(changes, mode="bare")
    assert one.key is not None
    [told] = handled(classes, [{"key": one.key.decode(), "value": json.loads(one.value or b"")}])
    assert "Could not convert key" in told["error"]
