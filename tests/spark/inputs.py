"""Logs as files: rows of random histories, cut and mixed as archives may be, and what the engines make of them."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
from hypothesis import strategies as st
from msgspec.structs import replace
from pyarrow import parquet

from eventlog.convert.settings import Conversion, FilesInput
from eventlog.core.model import Event, RowId
from eventlog.sql.names import STANDARD
from tests.support.converting import comparable
from tests.support.strategies import CATALOG, PHONE, History, events_of_any_quality, histories

Row = tuple[object, ...]
NUMBERS = ("record_id", "event_type")


@st.composite
def many_histories(draw: st.DrawFn) -> History:
    """Histories of many objects, each of which ran beside the others; and rows that careless triggers wrote."""
    whole = History()
    waiting: list[list[Event]] = []
    for place, history in enumerate(draw(st.lists(histories(), min_size=1, max_size=12))):
        for row, values in history.rows.items():
            whole.rows[RowId(None, "usr", _moved(row.key, place))] = values
        waiting.append([replace(event, key=_moved(event.key or "", place)) for event in reversed(history.events)])
    waiting += [[draw(events_of_any_quality(number))] for number in range(draw(st.integers(0, 8)))]
    mix = Random(draw(st.integers(0, 2**32)))
    while waiting := [events for events in waiting if events]:
        position = (len(whole.events) + 1,)
        whole.events.append(replace(mix.choice(waiting).pop(), position=position))
    return whole


def _moved(key: str, place: int) -> str:
    return f"idu={int(key.removeprefix('idu=')) + 1000 * (place + 1)}"


def rows_of(events: Iterable[Event]) -> list[Row]:
    """The events as rows of a log, in the order of STANDARD."""
    return [
        (
            *(event.position[0], "N", event.kind, event.time, event.perpetrator),
            *(event.table, event.key, event.column, event.old, event.new),
        )
        for event in events
    ]


def write_rows(path: Path, rows: Sequence[Row], names: Sequence[str] = STANDARD) -> Path:
    """Writes a file of the kind that its name says, with the columns in the order of the names."""
    places = [STANDARD.index(name) for name in names]
    ordered = [tuple(row[place] for place in places) for row in rows]
    if path.suffix == ".parquet":
        types = [pa.int64() if name in NUMBERS else pa.string() for name in names]
        columns = [pa.array([row[place] for row in ordered], kind) for place, kind in enumerate(types)]
        parquet.write_table(pa.table(columns, names=list(names)), path)
        return path
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        if ".jsonl" in path.suffixes:
            file.writelines(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in ordered)
        else:
            writer = csv.writer(file)
            writer.writerow(names)
            # Quoting in Python cannot tell NULL from a text, so an empty text stands as it is and NULL as \N.
            writer.writerows([r"\N" if value is None else value for value in row] for row in ordered)
    return path


def write_snapshot(folder: Path, history: History) -> Path:
    """The tables as the history leaves them: one file for usr, one for its phones."""
    folder.mkdir()
    users = [
        {"idu": _idu(row), "fname": values["fname"], "lname": values["lname"]} for row, values in history.rows.items()
    ]
    phones = [{"idu": _idu(row), "phoneno": phone} for row, values in history.rows.items() for phone in values[PHONE]]
    types = [("idu", pa.int64()), ("fname", pa.string()), ("lname", pa.string())]
    parquet.write_table(pa.Table.from_pylist(users, pa.schema(types)), folder / "usr.parquet")
    (folder / "usr_phone.jsonl").write_text("".join(json.dumps(phone) + "\n" for phone in phones))
    return folder


def order(source: Path, destination: Path, **settings: object) -> Conversion:
    """A conversion of everything in a folder, of the tables that random histories speak of."""
    found = FilesInput(places=(str(source),))
    return replace(Conversion(input=found, destination=destination, catalog=CATALOG), **settings)


def output(folder: Path) -> dict[str, bytes]:
    """All files that a conversion left, by name; at an address outcomes are a folder."""
    return {path.name: comparable(path.name, path.read_bytes()) for path in folder.iterdir() if path.is_file()}


def _idu(row: RowId) -> int:
    return int(row.key.removeprefix("idu="))
