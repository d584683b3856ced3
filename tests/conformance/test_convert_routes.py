"""Conversions by routes: every change stands in the folder, topic or table that its own values name, whatever the form."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastavro import reader

from eventlog.convert import writing
from eventlog.convert.settings import MessageFiles, TableFiles, Target
from eventlog.core.model import Event
from eventlog.core.outputs import PlaceKind
from eventlog.core.schema import Catalog, Column, Table
from eventlog.policies import steps
from eventlog.policies.steps import place_steps
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.xds.write import XdsFormat
from tests.support.changerows import CSV
from tests.support.converting import converted, outcomes_of, row_of, write_parquet

CITIES = ("Rome", "Oslo", "a/../b", "", "Köln")
COUNT = 40
CATALOG = Catalog(
    [
        Table(name=name, columns=(Column(name="idu", type="integer", key=1), Column(name="city", type="varchar(20)")))
        for name in ("usr", "grp")
    ]
)
MESSAGES = MessageSettings(topic="{table}")


@pytest.fixture(autouse=True, params=[1, 200])
def few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "MOST_OPEN_PLACES", request.param)


def city_of(number: int) -> str:
    return CITIES[number % len(CITIES)]


def convert(folder: Path, target: Target, kind: PlaceKind, otherwise: str = "others") -> Path:
    rows = [
        row_of(
            Event(
                position=(number,),
                kind=1,
                table="usr" if number % 3 else "grp",
                key=f"idu={number}",
                column="city",
                new=f"{city_of(number)}",
                time="2026-01-01 00:00:00",
            )
        )
        for number in range(1, COUNT + 1)
    ]
    source = write_parquet(folder / "log.parquet", rows)
    some = place_steps((steps.Route(to="in_{new.city}", otherwise=otherwise),), kind, "a conversion")
    out = folder / "out"
    converted(source, out, catalog=CATALOG, target=target, steps=some, part_events=15)
    return out


def found_in(out: Path, pattern: str, number: str) -> dict[str, list[int]]:
    """Find the numbers in the files of each folder."""
    found: dict[str, list[int]] = {}
    for path in sorted(out.rglob(pattern)):
        numbers = map(int, re.findall(number, path.read_text()))
        found.setdefault(path.parent.relative_to(out).as_posix(), []).extend(numbers)
    return {name: sorted(numbers) for name, numbers in found.items()}


def expected(valid: dict[str, str], rest: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number in range(1, COUNT + 1):
        found.setdefault(valid.get(city_of(number), rest), []).append(number)
    return found


def test_documents_stand_in_folders(tmp_path: Path) -> None:
    out = convert(tmp_path, XdsFormat(), "folder")
    valid = {"Rome": "in_Rome", "Oslo": "in_Oslo", "a/../b": "in_a%2f..%2fb", "Köln": "in_Köln"}
    assert found_in(out, "part-*.xml", r'event-id="(\d+)"') == expected(valid, "others")
    for path in out.rglob("*.xml"):
        assert path.read_text().count("</nds>") == 1
    assert {one["status"] for one in outcomes_of(out)} == {"S"}


def test_messages_stand_in_topics(tmp_path: Path) -> None:
    out = convert(tmp_path, MessageFiles(settings=MESSAGES), "topic")
    found: dict[str, list[int]] = {}
    for path in out.rglob("*.jsonl"):
        for line in path.read_text().splitlines():
            found.setdefault(path.parent.name, []).append(json.loads(line)["data"]["idu"])
    assert {name: sorted(numbers) for name, numbers in found.items()} == expected(
        {"Rome": "in_Rome", "Oslo": "in_Oslo"}, "others"
    )


def test_avro_of_several_tables_stands_in_a_topic_with_a_file_for_each_schema(tmp_path: Path) -> None:
    out = convert(tmp_path, MessageFiles(settings=MessageSettings(topic="{table}", encoding="avro")), "topic")
    found: dict[str, list[int]] = {}
    for path in out.rglob("*.avro"):
        with path.open("rb") as file:
            records: list[Any] = list(reader(file))
            found.setdefault(path.parent.name, []).extend(record["data"]["idu"] for record in records)
    assert {name: sorted(numbers) for name, numbers in found.items()} == expected(
        {"Rome": "in_Rome", "Oslo": "in_Oslo"}, "others"
    )


def test_rows_stand_in_tables(tmp_path: Path) -> None:
    out = convert(tmp_path, TableFiles(files=CSV), "table")
    valid = {"Rome": "in_Rome__ct", "Oslo": "in_Oslo__ct", "Köln": "in_Köln__ct"}
    assert found_in(out, "part-*.csv", r"(?m),(\d+),[^,]*$") == expected(valid, "others__ct")


def test_without_another_place_the_reason_is_told_of_each_row(tmp_path: Path) -> None:
    out = convert(tmp_path, XdsFormat(), "folder", otherwise="")
    refused = [one for one in outcomes_of(out) if one["status"] == "E"]
    assert [one["position"] for one in refused] == [number for number in range(1, COUNT + 1) if not city_of(number)]
    assert {one["note"] for one in refused} == {
        "step 1 of the policy: `to` gives no folder, because a value in it is empty."
    }
