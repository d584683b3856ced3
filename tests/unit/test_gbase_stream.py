"""GBase streams: the printed dump, any cut of the bytes, and every row of the table of what a decoder must survive."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventlog.errors import DamageError, DataError, EventlogError, SourceError
from eventlog.model import Image, Op, Status
from eventlog.rules import Options, tell
from eventlog.schema import Catalog, Column, Table
from eventlog.seams import Batch
from eventlog.sources.gbase.encode import INFORMIX, record, row_record, table_record
from eventlog.sources.gbase.files import chunks_of, read_hex
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import Record
from eventlog.sources.gbase.scenario import buffers, reads, shop
from eventlog.sources.gbase.settings import GbaseSettings
from eventlog.sources.gbase.splits import in_file, read_split, splits
from eventlog.sources.gbase.stream import images

SEED = Path(__file__).parents[1] / "golden" / "gbase" / "seed.hex"
T1 = layout_of(5, "c1 integer, c2 varchar(20,0)")
OWN = GbaseSettings(tables={"5": "shop.t1"}, keys={"shop.t1": ("c1",)})
TIME = 1_742_727_439


def begin(seq: int, tx: int = 7) -> bytes:
    return record(Record.BEGINTX, seq, tx, TIME, 2005)


def commit(seq: int, tx: int = 7) -> bytes:
    return record(Record.COMMTX, seq, tx, TIME)


def row(number: Record, seq: int, c1: int | None, c2: str = "a", tx: int = 7) -> bytes:
    return row_record(number, seq, tx, T1, {"c1": c1, "c2": c2})


def insert(seq: int, c1: int, tx: int = 7) -> bytes:
    return row(Record.INSERT, seq, c1, tx=tx)


def read(*pieces: bytes, own: GbaseSettings = OWN, said: list[str] | None = None) -> list[Image]:
    """The images of the pieces, each of them a chunk."""
    report = said.append if said is not None else (lambda _: None)
    return [cast("Image", image) for batch in images(pieces, own, report=report) for image in batch.events]


def told(found: Iterable[Image]) -> list[tuple[Op, Any, Any]]:
    return [(one.op, (one.before or {}).get("c1"), (one.after or {}).get("c1")) for one in found]


def before_damage(chunks: Iterable[bytes], own: GbaseSettings = OWN) -> tuple[list[Image], EventlogError | None]:
    """What came, and the error that ended it."""
    found: list[Image] = []
    try:
        for batch in images(chunks, own):
            found += cast("list[Image]", batch.events)
    except (DamageError, SourceError) as error:
        return found, error
    return found, None


GOOD = table_record(T1) + begin(1) + insert(2, 1) + commit(3)


def test_the_printed_dump_is_one_inserted_row() -> None:
    own = GbaseSettings(tables={"111": "shop.t1"}, keys={"t1": ("c1",)})
    [batch] = images(chunks_of(SEED), own)
    [image] = cast("list[Image]", batch.events)
    assert (image.op, image.table, image.after) == (Op.ADD, "shop.t1", {"c1": 15, "c2": "abcabcabc"})
    assert image.position == (11 << 32 | 0x17460A0, 11 << 32 | 0x1746050, 0)
    assert (image.time, image.perpetrator) == (dt.datetime(2025, 3, 23, 10, 57, 19), "2005")
    assert (image.stream, image.place, image.last) == ("11:0x1746050", 1, True)
    [change] = tell([image], batch.catalog, Options()).changes
    assert (change.row.schema, change.row.table, change.row.key) == ("shop", "t1", "c1=15")


def test_the_buffers_that_the_dump_prints_give_the_same() -> None:
    lines = [line.split(maxsplit=2) for line in SEED.read_text().splitlines() if line.startswith("R")]
    printed = [f"{valid[2]} {tail[2]}" for valid, tail in zip(lines[::2], lines[1::2], strict=True)]
    own = GbaseSettings(dirty=True)
    assert [one.after for one in read(*read_hex(printed), own=own)] == [{"c1": 15, "c2": "abcabcabc"}]


@pytest.mark.parametrize("dialect", ["gbase", "informix"])
def test_any_cut_gives_the_same(dialect: str) -> None:
    minor = 0 if dialect == "gbase" else 1
    pieces = list(reads(shop(60, wide=minor == 0), minor=minor))
    data = b"".join(pieces)
    own = GbaseSettings()
    whole = read(data, own=own)
    assert len(whole) > 50
    assert read(*pieces, own=own) == whole
    assert read(*[data[at : at + 1] for at in range(len(data))], own=own) == whole
    assert read(*buffers(pieces), own=GbaseSettings(dirty=True)) == whole
    assert len({one.transaction for one in whole}) > 3
    assert [one.position for one in whole] == sorted(one.position for one in whole)
    assert sum(one.last for one in whole) == len({one.position[0] for one in whole})


def test_three_interleaved_transactions_and_a_savepoint() -> None:
    stream = [begin(1, 1), begin(2, 2), begin(3, 3), insert(4, 10, 1), insert(5, 20, 2), insert(6, 30, 3)]
    stream += [
        insert(7, 11, 1),
        record(Record.DISCARD, 7, 1),
        insert(8, 12, 1),
        commit(9, 2),
        record(Record.RBTX, 10, 3),
    ]
    found = read(table_record(T1), *stream, commit(11, 1))
    assert [(one.position[0], (one.after or {})["c1"], one.place, one.last) for one in found] == [
        (9, 20, 1, True),
        (11, 10, 1, False),
        (11, 12, 2, True),
    ]


def test_all_that_happens_to_rows() -> None:
    stream = [row(Record.UPDBEF, 2, 1, "a"), row(Record.UPDAFT, 3, 1, "b"), row(Record.DELETE, 4, 1)]
    stream += [row(Record.UPDBEF, 5, 1), row(Record.UPDAFT, 6, 2), record(Record.TRUNCATE, 7, 7, 5)]
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


# The rows of the table, in its order.


@pytest.mark.parametrize("missing", [1, 20, 35])
def test_a_stream_that_ends_inside_a_record(missing: int) -> None:
    found, error = before_damage([GOOD + commit(9)[:-missing]])
    assert (told(found), type(error)) == ([(Op.ADD, None, 1)], DamageError)
    assert f"Byte {len(GOOD)}: " in str(error)
    assert f"{missing if missing < 20 else 16 - (36 - missing) if missing > 20 else 20} byte(s)" in str(error)


@pytest.mark.parametrize("size", [0, 15, 35])
def test_a_header_that_is_too_short(size: int) -> None:
    found, error = before_damage([GOOD + size.to_bytes(4, "big") + commit(9)[4:]])
    assert isinstance(error, DamageError)
    assert (len(found), error.offset) == (1, len(GOOD))


def test_a_header_that_is_longer_than_known_is_accepted() -> None:
    longer = (40).to_bytes(4, "big") + commit(3)[4:] + b"more"
    assert len(read(table_record(T1), begin(1), insert(2, 1), longer)) == 1


@pytest.mark.parametrize("surplus", [b"", b"\1", b"\0\0\0\1\0\0\0\1"])
def test_sizes_that_do_not_fit_the_layout_end_the_row_and_nothing_else(surplus: bytes) -> None:
    good = insert(2, 1)
    bad = (36 + len(surplus)).to_bytes(4, "big") + good[4:36] + surplus + good[40:]
    found = read(table_record(T1), begin(1), bad, insert(3, 2), commit(4))
    assert told(found)[1] == (Op.ADD, None, 2)
    assert "bytes of sizes" in str(found[0].fault)
    assert good[40:].hex() in str(found[0].fault)
    catalog = Catalog([Table(name="t1", schema="shop", columns=(Column(name="c1", key=1), Column(name="c2")))])
    outcome = tell(found, catalog, Options()).others[found[0].position]
    assert (outcome.status, outcome.note) == (Status.ERROR, found[0].fault)


def test_another_packet_scheme_is_damage_or_skipped() -> None:
    other = commit(9)[:8] + (67).to_bytes(4, "big") + commit(9)[12:]
    found, error = before_damage([GOOD + other + begin(10) + insert(11, 2) + commit(12)])
    assert (len(found), "packet scheme 67" in str(error)) == (1, True)
    assert len(read(GOOD + other + begin(10) + insert(11, 2) + commit(12), own=GbaseSettings(skip_schemes=True))) == 2


def test_an_unknown_record_is_skipped_and_told() -> None:
    said: list[str] = []
    unknown = commit(9)[:12] + (77).to_bytes(4, "big") + commit(9)[16:]
    assert len(read(unknown, GOOD, said=said)) == 1
    assert said == ["Byte 0: record number 77 is not known and is left out."]


def test_a_row_without_bytes_is_one_only_without_columns() -> None:
    empty = row_record(Record.INSERT, 2, 7, layout_of(6, ""), {})
    [none] = read(table_record(layout_of(6, "")), begin(1), empty, commit(3))
    assert (none.after, none.fault) == ({}, None)
    [bad] = read(table_record(T1), begin(1), record(Record.INSERT, 2, 7, 5, 0, sizes=bytes(4)), commit(3))
    assert "0 bytes" in str(bad.fault)


def test_a_huge_record_is_refused_before_it_came() -> None:
    huge = commit(9)[:4] + (2**31).to_bytes(4, "big") + commit(9)[8:]
    assert "the limit is" in str(before_damage([GOOD + huge])[1])


def test_rows_of_an_unknown_label_are_kept_or_end_everything() -> None:
    [bare] = read(begin(1), insert(2, 1), commit(3))
    assert "nothing has described the columns of label 5" in str(bare.fault)
    assert insert(2, 1)[40:].hex() in str(bare.fault)
    with pytest.raises(DamageError, match="Byte 40: a row of label 5"):
        read(begin(1), insert(2, 1), commit(3), own=GbaseSettings(unknown_rows="fail"))


def test_a_description_that_contradicts_its_header_is_told_with_the_rows_or_ends_everything() -> None:
    wrong = bytearray(table_record(T1))
    wrong[27] = 9
    said: list[str] = []
    [bare] = read(bytes(wrong), begin(1), insert(2, 1), commit(3), said=said)
    assert "4 bytes in columns of fixed length, and the header says 9" in said[0]
    assert "the header says 9" in str(bare.fault)
    with pytest.raises(DamageError, match=r"Byte 0: .*says 9"):
        read(bytes(wrong), own=GbaseSettings(unknown_rows="fail"))


def test_a_table_described_anew_is_read_so_from_there_on() -> None:
    other = layout_of(5, "c1 integer, c3 smallint")
    later = row_record(Record.INSERT, 5, 7, other, {"c1": 2, "c3": 3})
    stream = [table_record(T1), begin(1), insert(2, 1), table_record(other), later, table_record(T1), insert(6, 4)]
    batches: list[Batch] = list(images([*stream, commit(7)], OWN))
    seen = [
        (one.after, [c.name for c in batch.catalog.tables[0].columns])
        for batch in batches
        if batch.catalog
        for one in cast("list[Image]", batch.events)
    ]
    assert seen == [
        ({"c1": 1, "c2": "a"}, ["c1", "c2"]),
        ({"c1": 2, "c3": 3}, ["c1", "c3"]),
        ({"c1": 4, "c2": "a"}, ["c1", "c2"]),
    ]


def test_transactions_that_begin_twice_or_never() -> None:
    said: list[str] = []
    found = read(table_record(T1), begin(1), insert(2, 1), begin(3), insert(4, 2), commit(5), commit(6), said=said)
    assert (told(found), len(said)) == ([(Op.ADD, None, 2)], 2)
    assert told(read(table_record(T1), insert(2, 1), commit(3))) == [(Op.ADD, None, 1)]
    assert read(table_record(T1), insert(2, 1), commit(3), own=GbaseSettings(orphans="skip")) == []


def test_updates_without_their_other_half() -> None:
    other = layout_of(6, "c1 integer")
    foreign = row_record(Record.UPDAFT, 4, 7, other, {"c1": 9})
    stream = [row(Record.UPDAFT, 2, 1), row(Record.UPDBEF, 3, 2), foreign, row(Record.UPDBEF, 5, 3), insert(6, 4)]
    stream += [row(Record.UPDAFT, 7, 4), row(Record.UPDBEF, 8, 5)]
    found = read(table_record(T1), table_record(other), begin(1), *stream, commit(9))
    assert told(found) == [
        (Op.MODIFY, None, 1),
        (Op.MODIFY, 2, None),
        (Op.MODIFY, None, 9),
        (Op.MODIFY, 3, None),
        (Op.ADD, None, 4),
        (Op.MODIFY, None, 4),
        (Op.MODIFY, 5, None),
    ]
    assert [one.last for one in found] == [False] * 6 + [True]


def test_the_end_of_an_unknown_transaction_is_only_told() -> None:
    said: list[str] = []
    assert len(read(record(Record.DISCARD, 1, 3), record(Record.RBTX, 1, 3), GOOD, said=said)) == 1
    assert len(said) == 2


def test_errors_of_the_server_are_told_or_end_the_stream() -> None:
    said: list[str] = []
    mild = record(Record.ERROR, 0, -83705, payload=b"t1\0")
    assert len(read(mild, GOOD, said=said)) == 1
    assert "-83705 (CDC_E_NOTAB): there is no such table." in said[0]
    assert "'t1'" in said[0]
    found, error = before_damage([GOOD, record(Record.ERROR, 1, -12345), GOOD])
    assert (len(found), isinstance(error, SourceError), "-12345" in str(error)) == (1, True, True)


def test_heartbeats_are_no_changes() -> None:
    assert len(read(record(Record.TIMEOUT, 0), GOOD, record(Record.TIMEOUT, 3))) == 1


def test_text_that_is_none_ends_its_row_only() -> None:
    bad = insert(2, 1)[:-1] + b"\xff"
    found = read(table_record(T1), begin(1), bad, insert(3, 2), commit(4))
    assert ("utf-8" in str(found[0].fault), told(found)[1]) == (True, (Op.ADD, None, 2))


def test_a_key_in_other_letters_and_a_schema_file() -> None:
    known = Catalog([Table(name="T1", schema="shop", number=5, columns=(Column(name="C1", type="bigint", key=1),))])
    [batch] = images([GOOD], GbaseSettings(), known)
    assert batch.catalog is not None
    [change] = tell(cast("list[Image]", batch.events), batch.catalog, Options()).changes
    assert change.row.key == "C1=1"
    assert [(column.name, column.type) for column in batch.catalog.tables[0].columns] == [
        ("C1", "bigint"),
        ("c2", "varchar(20)"),
    ]


def test_open_transactions_at_the_end_are_told() -> None:
    said: list[str] = []
    assert len(read(GOOD, begin(4), said=said)) == 1
    assert said == ["The stream ends with 1 open transaction(s), which are left out."]


def test_lines_that_are_not_hexadecimal_are_named() -> None:
    with pytest.raises(DataError, match=r"dump\.hex, line 2: '00 0x'"):
        list(read_hex(["# first", "00 0x"], origin="dump.hex"))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_flipped_bytes_end_in_images_or_in_a_typed_error(data: st.DataObject) -> None:
    stream = bytearray(b"".join(reads(shop(12, 3), cut=4000)))
    for _ in range(data.draw(st.integers(1, 4))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(st.integers(0, 255))
    found, error = before_damage([bytes(stream)])
    assert error is None or isinstance(error, DamageError | SourceError)
    assert len(found) < 100


@settings(max_examples=150, deadline=None)
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
    assert in_file(cast("DamageError", before_damage(read_split(last))[1]), last).offset == len(data)
    file.write_bytes(b"")
    assert splits(file) == []


def test_both_dialects_of_the_worked_example() -> None:
    row: dict[str, Any] = {"c1": 300, "c2": "hello"}
    gbase = "000000280000000b00000042000000280000000c0002101800000007000000050000000007000000"
    informix = "000000280000000a00000042000000280000000c0002101800000007000000050000000000000006"
    assert row_record(Record.INSERT, 0xC00021018, 7, T1, row).hex() == gbase + "0000012c000568656c6c6f"
    assert row_record(Record.INSERT, 0xC00021018, 7, T1, row, INFORMIX).hex() == informix + "0000012c0568656c6c6f"
