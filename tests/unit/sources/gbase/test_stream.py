"""GBase streams: the printed dump, any cut of the bytes, and every row of the table of what a decoder must survive."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import DamageError, DataError
from eventlog.core.model import Op
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.gbase.files import chunks_of, read_hex, read_split, splits
from eventlog.sources.gbase.images import images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.images import decide_images
from eventlog_streams_tools.gbase.emulator import INFORMIX, buffers, reads, record, row_record, shop, table_record
from tests.support.examples import examples
from tests.support.gbase_streams import GOOD, OWN, SEED, T1, before_damage, begin, commit, insert, read, row, told


def test_the_printed_dump_is_one_inserted_row() -> None:
    own = GBaseSettings(tables={"111": "shop.t1"}, keys={"t1": ("c1",)})
    [batch] = images(chunks_of(SEED), own)
    [image] = batch.images
    assert (image.op, image.table, image.after) == (Op.ADD, "shop.t1", {"c1": 15, "c2": "abcabcabc"})
    assert image.position == (11 << 32 | 0x17460A0, 11 << 32 | 0x1746050, 0)
    assert (image.time, image.perpetrator) == (dt.datetime(2025, 3, 23, 10, 57, 19), "2005")
    assert (image.stream, image.place, image.last) == ("11:0x1746050", 1, True)
    [change] = decide_images([image], batch.catalog, Options()).changes
    assert (change.row.schema, change.row.table, change.row.key) == ("shop", "t1", "c1=15")


def test_the_buffers_that_the_dump_prints_give_the_same() -> None:
    lines = [line.split(maxsplit=2) for line in SEED.read_text().splitlines() if line.startswith("R")]
    printed = [f"{valid[2]} {tail[2]}" for valid, tail in zip(lines[::2], lines[1::2], strict=True)]
    own = GBaseSettings(dirty=True)
    assert [one.after for one in read(*read_hex(printed), own=own)] == [{"c1": 15, "c2": "abcabcabc"}]


@pytest.mark.parametrize("dialect", ["gbase", "informix"])
def test_any_cut_gives_the_same(dialect: str) -> None:
    minor = 0 if dialect == "gbase" else 1
    pieces = list(reads(shop(60, wide=minor == 0), minor=minor))
    data = b"".join(pieces)
    own = GBaseSettings()
    whole = read(data, own=own)
    assert len(whole) > 50
    assert read(*pieces, own=own) == whole
    assert read(*[data[at : at + 1] for at in range(len(data))], own=own) == whole
    assert read(*buffers(pieces), own=GBaseSettings(dirty=True)) == whole
    assert len({one.transaction for one in whole}) > 3
    assert [one.position for one in whole] == sorted(one.position for one in whole)
    assert sum(one.last for one in whole) == len({one.position[0] for one in whole})


def test_three_interleaved_transactions_and_a_savepoint() -> None:
    stream = [begin(1, 1), begin(2, 2), begin(3, 3), insert(4, 10, 1), insert(5, 20, 2), insert(6, 30, 3)]
    stream += [
        insert(7, 11, 1),
        record(CdcRecord.DISCARD, 7, 1),
        insert(8, 12, 1),
        commit(9, 2),
        record(CdcRecord.RBTX, 10, 3),
    ]
    found = read(table_record(T1), *stream, commit(11, 1))
    assert [(one.position[0], (one.after or {})["c1"], one.place, one.last) for one in found] == [
        (9, 20, 1, True),
        (11, 10, 1, False),
        (11, 12, 2, True),
    ]


def test_all_that_happens_to_rows() -> None:
    stream = [row(CdcRecord.UPDBEF, 2, 1, "a"), row(CdcRecord.UPDAFT, 3, 1, "b"), row(CdcRecord.DELETE, 4, 1)]
    stream += [row(CdcRecord.UPDBEF, 5, 1), row(CdcRecord.UPDAFT, 6, 2), record(CdcRecord.TRUNCATE, 7, 7, 5)]
    found = read(table_record(T1), begin(1), *stream, commit(8))
    assert told(found) == [
        (Op.MODIFY, 1, 1),
        (Op.DELETE, 1, None),
        (Op.DELETE, 1, None),
        (Op.ADD, None, 2),
        (Op.TRUNCATE, None, None),
    ]
    assert [one.position[1:] for one in found] == [(3, 0), (4, 0), (6, 0), (6, 1), (7, 0)]
    assert [one.place for one in found] == [1, 2, 3, 4, 5]


def test_a_key_in_other_letters_and_a_schema_file() -> None:
    known = Catalog([Table(name="T1", schema="shop", number=5, columns=(Column(name="C1", type="bigint", key=1),))])
    [batch] = images([GOOD], GBaseSettings(), known)
    assert batch.catalog is not None
    [change] = decide_images(batch.images, batch.catalog, Options()).changes
    assert change.row.key == "C1=1"
    assert [(column.name, column.type) for column in batch.catalog.tables[0].columns] == [
        ("C1", "bigint"),
        ("c2", "varchar(20)"),
    ]


def test_lines_that_are_not_hexadecimal_are_named() -> None:
    with pytest.raises(DataError, match=r"dump\.hex, line 2: '00 0x'"):
        list(read_hex(["# first", "00 0x"], origin="dump.hex"))


@examples(150, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=5))
def test_rubbish_ends_in_a_typed_error(chunks: list[bytes]) -> None:
    found, error = before_damage(chunks)
    assert found == []
    assert (error is None) == (not b"".join(chunks))


def test_a_file_is_split_where_no_transaction_is_open(tmp_path: Path) -> None:
    file = tmp_path / "capture.bin"
    later = layout_of(5, "c1 integer, c2 varchar(30,0)")
    data = GOOD + b"".join(
        begin(10 * n) + insert(10 * n + 1, n) + (table_record(later) if n == 30 else b"") + commit(10 * n + 2)
        for n in range(1, 60)
    )
    file.write_bytes(data)
    found = splits(file, size=900)
    assert len(found) > 4
    assert [one.start for one in found[1:]] == [one.end for one in found[:-1]]
    assert [image for one in found for image in read(*read_split(one), own=OWN)] == read(data)
    file.write_bytes(data + b"rubbish" * 5)
    last = splits(file, size=900)[-1]
    assert last.in_file(cast("DamageError", before_damage(read_split(last))[1]).offset) == len(data)
    file.write_bytes(b"")
    assert splits(file) == []


def test_both_dialects_of_the_worked_example() -> None:
    row: dict[str, Any] = {"c1": 300, "c2": "hello"}
    gbase = "000000280000000b00000042000000280000000c0002101800000007000000050000000007000000"
    informix = "000000280000000a00000042000000280000000c0002101800000007000000050000000000000006"
    assert row_record(CdcRecord.INSERT, 0xC00021018, 7, T1, row).hex() == gbase + "0000012c000568656c6c6f"
    assert row_record(CdcRecord.INSERT, 0xC00021018, 7, T1, row, INFORMIX).hex() == informix + "0000012c0568656c6c6f"
