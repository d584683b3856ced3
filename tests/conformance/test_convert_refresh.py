"""Bulk conversion of a log with rows of a full load: what the daemon's formats give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import fastavro
import pytest

from eventlog.convert.settings import MessageFiles
from eventlog.core.model import REFRESH, RowId
from eventlog.qlik.messages.settings import MessageSettings
from tests.support.converting import converted, log_row, write_parquet, write_snapshot
from tests.support.strategies import CATALOG, PHONE

HELD = {RowId(None, "usr", f"idu={key}"): {"fname": "Jack", "lname": None, PHONE: ()} for key in (1, 2)}


def written(folder: Path, encoding: Literal["json", "avro"]) -> list[dict[str, Any]]:
    rows = [
        log_row(1, event_type=5, column_name=None, new_value=None, perpetrator=REFRESH),
        log_row(2, column_name="lname", new_value="Frost", table_key="idu=3"),
        log_row(3, event_type=5, column_name=None, new_value=None, perpetrator=REFRESH, table_key="idu=2"),
    ]
    source, snapshot = write_parquet(folder / "log.parquet", rows), write_snapshot(folder / "snapshot", HELD)
    form = MessageFiles(settings=MessageSettings(topic="{table}", encoding=encoding, mode="bare"))
    converted(source, folder / "out", catalog=CATALOG, read_back=snapshot, target=form)
    [part] = folder.glob("out/usr/part-*")
    if encoding == "json":
        return [json.loads(line) for line in part.read_bytes().splitlines()]
    with part.open("rb") as file:
        return [record for record in fastavro.reader(file) if isinstance(record, dict)]


@pytest.mark.parametrize("encoding", ["json", "avro"])
def test_rows_of_a_full_load_have_no_number_and_leave_a_gap(tmp_path: Path, encoding: Literal["json", "avro"]) -> None:
    told = [(one["headers"]["operation"], one["headers"]["changeSequence"][16:]) for one in written(tmp_path, encoding)]
    assert told == [("REFRESH", ""), ("INSERT", f"{2:019d}"), ("REFRESH", "")]
