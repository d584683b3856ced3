"""The annotated dump: the printed session as its annotation has it, damaged streams, and the two commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from eventlog.cli.main import main
from eventlog.core.errors import EX_DATA
from eventlog.sources.gbase.files import chunks_of
from eventlog.sources.gbase.images import images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog_streams_tools.gbase.dump import Entry, entries
from eventlog_streams_tools.gbase.emulator import reads, record, row_record, shop, table_record
from tests.support.examples import examples

SEED = Path(__file__).parents[3] / "golden" / "gbase" / "seed.hex"
T1 = layout_of(5, "c1 integer, c2 varchar(20,0)")
ROW = row_record(CdcRecord.INSERT, 2, 7, T1, {"c1": 300, "c2": "hello"})


def dumped(*chunks: bytes, dirty: bool = False) -> list[Entry]:
    return list(entries(chunks, GBaseSettings(dirty=dirty)))


def said(entry: Entry) -> dict[str, str]:
    return {line.name: line.value for line in entry.lines}


def test_the_printed_session_is_told_as_its_annotation_has_it() -> None:
    found = list(entries(chunks_of(SEED), GBaseSettings()))
    assert [entry.title.split()[1].rstrip(",") for entry in found] == [
        "CDC_REC_TABSCHEM",
        "CDC_REC_TIMEOUT",
        "CDC_REC_TIMEOUT",
        "CDC_REC_BEGINTX",
        "CDC_REC_INSERT",
        "CDC_REC_COMMTX",
    ]
    assert [entry.damaged for entry in found] == [False] * 6
    table, _, _, start, row, end = map(said, found)
    assert (table["userdata"], table["fixed_bytes"], table["nvar"]) == ("111", "4", "1")
    assert table["payload"] == "'c1 integer, c2 varchar(20,0)'"
    assert (start["seq"], start["txid"], start["user"]) == ("11:0x1746018", "39", "2005")
    assert start["time"] == end["time"] == "1742727439 = 2025-03-23 10:57:19 UTC"
    assert row["size of c2"] == "11 (little-endian)"
    assert (row["c1 integer"], row["c2 varchar(20,0)"]) == ("= 15", "= 'abcabcabc'")


def test_the_printed_buffers_are_six_records_in_their_order() -> None:
    """As the document prints them: each with what earlier reads left in it, the third like the second."""
    parts: dict[str, str] = {}
    for line in SEED.read_text().splitlines():
        label, _, rest = line.partition("#")[0].strip().partition(" ")
        if label:
            parts[label] = parts.get(label, "") + rest.partition(" ")[2]
    found = dumped(*(bytes.fromhex(text) for text in parts.values()), dirty=True)
    assert [entry.title.split(",")[0] for entry in found if entry.title != "left over in the buffer"] == [
        "200 CDC_REC_TABSCHEM",
        "201 CDC_REC_TIMEOUT",
        "201 CDC_REC_TIMEOUT",
        "1 CDC_REC_BEGINTX",
        "40 CDC_REC_INSERT",
        "2 CDC_REC_COMMTX",
    ]
    assert len(found) == 12
    assert [entry.offset for entry in found] == sorted(entry.offset for entry in found)
    assert not any(entry.damaged for entry in found)


def test_the_lines_hold_every_byte_once() -> None:
    stream = b"".join(reads(shop(40)))
    assert b"".join(line.data for entry in dumped(stream) for line in entry.lines) == stream


def test_what_is_left_over_in_a_buffer_is_shown_as_such() -> None:
    found = dumped(table_record(T1) + b"left", ROW + bytes(20), dirty=True)
    assert [entry.title.split(",")[0] for entry in found] == [
        "200 CDC_REC_TABSCHEM",
        "left over in the buffer",
        "40 CDC_REC_INSERT",
        "no record",
    ]
    assert (found[1].lines[0].data, found[3].lines[0].data) == (b"left", bytes(20))
    assert said(found[2])["c2 varchar(20,0)"] == "= 'hello'"


def test_rows_that_cannot_be_read_are_shown_as_bytes_with_the_reason() -> None:
    [unknown] = dumped(ROW)
    assert "nothing has described the columns of label 5" in str(unknown.problem)
    assert said(unknown)["payload"] == ""
    wrong = ROW[:-1] + b"\xff"
    [_, bad] = dumped(table_record(T1), wrong)
    assert (bad.damaged, bad.problem) == (True, None)
    assert said(bad)["c2 varchar(20,0)"].startswith("! is none: 'utf-8'")


def test_nulls_errors_and_odd_times_are_told() -> None:
    null = row_record(CdcRecord.DELETE, 2, 7, T1, {"c1": None, "c2": None})
    [_, row, error, commit] = dumped(
        table_record(T1),
        null,
        record(CdcRecord.ERROR, 1, -83713, payload=b"why\0"),
        record(CdcRecord.COMMTX, 3, 7, 1 << 60),
    )
    assert (said(row)["c1 integer"], said(row)["c2 varchar(20,0)"]) == ("= NULL", "= NULL")
    assert "CDC_E_LSN" in said(error)["code"]
    assert said(error)["payload"] == "'why'"
    assert "is no time" in said(commit)["time"]


@examples(100, deadline=None)
@given(st.data())
def test_a_dump_of_any_bytes_ends(data: st.DataObject) -> None:
    stream = bytearray(b"".join(reads(shop(8, 4))))
    for _ in range(data.draw(st.integers(1, 6))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(stream)))
    found = dumped(bytes(stream[:cut]), bytes(stream[cut:]))
    assert 0 < len(found) < 200


def test_the_command_shows_a_file_and_says_when_it_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "capture.bin"
    file.write_bytes(table_record(T1) + ROW)
    good = CliRunner().invoke(main, ["decode", "gbase", str(file)], standalone_mode=False)
    assert good.return_value == 0
    assert "= 'hello'" in good.output
    assert good.output.endswith("2 entries, 0 of them damaged.\n")
    assert "A restart begins at 0:0x2 (2), where the earliest of 1 open transaction began." in good.output
    told = CliRunner().invoke(main, ["decode", "gbase", str(file), "--json"], standalone_mode=False)
    assert json.loads(told.output.splitlines()[-1]) == {"restart": {"begin": 2, "done": None, "open": 1}}
    refused = CliRunner().invoke(main, ["decode", "gbase", str(file), "--dirty"], standalone_mode=False)
    assert "does not say where a read ends" in str(refused.exception)
    file.write_bytes(table_record(T1) + ROW[:-1])
    bad = CliRunner().invoke(main, ["decode", "gbase", str(file), "--json"], standalone_mode=False)
    assert bad.return_value == EX_DATA
    assert json.loads(bad.output.splitlines()[-1])["title"] == "incomplete record"


@pytest.mark.parametrize("name, extra", [("a.bin", []), ("a.hex", ["--dirty"]), ("a.bin", ["--dialect", "informix"])])
def test_an_emulated_stream_is_read(tmp_path: Path, name: str, extra: list[str]) -> None:
    file = tmp_path / name
    cut = [] if "--dirty" in extra else ["--cut", "3000"]  # in such a file each read ends with a record
    made = CliRunner().invoke(main, ["emulate", "gbase", "--rows", "50", "--out", str(file), *cut, *extra])
    assert made.output.startswith("50 changed rows in ")
    own = GBaseSettings(dirty="--dirty" in extra)
    events = [event for batch in images(chunks_of(file), own) for event in batch.images]
    assert len(events) > 30
