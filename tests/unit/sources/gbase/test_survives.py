"""What a GBase decoder must survive: a test for every row of the specification's table, in its order."""

from __future__ import annotations

import pytest

from eventlog.core.errors import DamageError, SourceError
from eventlog.core.model import Op, Status
from eventlog.core.plural import count_words
from eventlog.core.rules import Options
from eventlog.core.schema import Catalog, Column, Table
from eventlog.sources.gbase.images import images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.reader import RecordReader
from eventlog.sources.gbase.records import CdcRecord, Framer
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog.sources.stream.images import decide_images
from eventlog.sources.stream.source import ImageBatch
from eventlog_streams_tools.gbase.emulator import record, row_record, table_record
from tests.support.gbase_streams import GOOD, OWN, T1, before_damage, begin, commit, insert, read, row, told


@pytest.mark.parametrize("missing", [1, 20, 35])
def test_a_stream_that_ends_inside_a_record(missing: int) -> None:
    found, error = before_damage([GOOD + commit(9)[:-missing]])
    assert (told(found), type(error)) == ([(Op.ADD, None, 1)], DamageError)
    assert f"Byte {len(GOOD)}: " in str(error)
    left = missing if missing < 20 else 16 - (36 - missing) if missing > 20 else 20
    assert f"{count_words(left, 'byte')} more should follow" in str(error)


@pytest.mark.parametrize("size", [0, 15, 35])
def test_a_header_that_is_too_short(size: int) -> None:
    found, error = before_damage([GOOD + size.to_bytes(4, "big") + commit(9)[4:]])
    assert isinstance(error, DamageError)
    assert (len(found), error.offset) == (1, len(GOOD))


def test_a_header_that_is_longer_than_known_is_accepted_and_a_heartbeat_is_no_change() -> None:
    longer = (40).to_bytes(4, "big") + commit(3)[4:] + b"more"
    beat = record(CdcRecord.TIMEOUT, 0)
    assert len(read(table_record(T1), beat, begin(1), insert(2, 1), longer, beat)) == 1


def test_a_huge_record_is_refused_before_it_came() -> None:
    huge = commit(9)[:4] + (2**31).to_bytes(4, "big") + commit(9)[8:]
    assert "the limit is" in str(before_damage([GOOD + huge])[1])


@pytest.mark.parametrize("surplus", [b"", b"\1", b"\0\0\0\1\0\0\0\1"])
def test_sizes_that_do_not_fit_the_layout_end_the_row_and_nothing_else(surplus: bytes) -> None:
    good = insert(2, 1)
    bad = (36 + len(surplus)).to_bytes(4, "big") + good[4:36] + surplus + good[40:]
    found = read(table_record(T1), begin(1), bad, insert(3, 2), commit(4))
    assert told(found)[1] == (Op.ADD, None, 2)
    assert "bytes of sizes" in str(found[0].fault)
    assert good[40:].hex() in str(found[0].fault)
    catalog = Catalog([Table(name="t1", schema="shop", columns=(Column(name="c1", key=1), Column(name="c2")))])
    outcome = decide_images(found, catalog, Options()).outcomes.others[found[0].position]
    assert (outcome.status, outcome.note) == (Status.ERROR, found[0].fault)


def test_another_packet_scheme_is_damage_or_skipped() -> None:
    other = commit(9)[:8] + (67).to_bytes(4, "big") + commit(9)[12:]
    found, error = before_damage([GOOD + other + begin(10) + insert(11, 2) + commit(12)])
    assert (len(found), "packet scheme 67" in str(error)) == (1, True)
    said: list[str] = []
    own = GBaseSettings(skip_schemes=True)
    assert len(read(GOOD + other + begin(10) + insert(11, 2) + commit(12), own=own, said=said)) == 2
    assert said == ["Left out, as skip_schemes says: 1 record of other packet schemes."]


def test_an_unknown_record_is_skipped_and_told() -> None:
    said: list[str] = []
    unknown = commit(9)[:12] + (77).to_bytes(4, "big") + commit(9)[16:]
    assert len(read(unknown, GOOD, said=said)) == 1
    assert said == ["Byte 0: record number 77 is not known and is left out."]
    lost: list[int] = []
    assert len(list(images([unknown, GOOD, unknown], OWN, lose=lost.append))) == 1
    assert lost == [1, 1]
    with pytest.raises(DamageError, match="Byte 0: record number 77 is not known"):
        read(unknown, own=GBaseSettings(unknown_rows="fail"))


def test_a_row_without_bytes_is_one_only_without_columns() -> None:
    empty = row_record(CdcRecord.INSERT, 2, 7, layout_of(6, ""), {})
    [none] = read(table_record(layout_of(6, "")), begin(1), empty, commit(3))
    assert (none.after, none.fault) == ({}, None)
    [bad] = read(table_record(T1), begin(1), record(CdcRecord.INSERT, 2, 7, 5, 0, sizes=bytes(4)), commit(3))
    assert "0 bytes" in str(bad.fault)


def test_rows_of_an_unknown_label_are_kept_or_end_everything() -> None:
    [bare] = read(begin(1), insert(2, 1), commit(3))
    assert "nothing has described the columns of label 5" in str(bare.fault)
    assert insert(2, 1)[40:].hex() in str(bare.fault)
    with pytest.raises(DamageError, match="Byte 40: a row of label 5"):
        read(begin(1), insert(2, 1), commit(3), own=GBaseSettings(unknown_rows="fail"))


def test_a_description_that_contradicts_its_header_is_told_with_the_rows_or_ends_everything() -> None:
    wrong = bytearray(table_record(T1))
    wrong[27] = 9
    said: list[str] = []
    [bare] = read(bytes(wrong), begin(1), insert(2, 1), commit(3), said=said)
    assert "4 bytes in columns of fixed length, and the header says 9" in said[0]
    assert "the header says 9" in str(bare.fault)
    with pytest.raises(DamageError, match=r"Byte 0: .*says 9"):
        read(bytes(wrong), own=GBaseSettings(unknown_rows="fail"))


def test_a_table_described_anew_is_read_so_from_there_on() -> None:
    other = layout_of(5, "c1 integer, c3 smallint")
    later = row_record(CdcRecord.INSERT, 5, 7, other, {"c1": 2, "c3": 3})
    stream = [table_record(T1), begin(1), insert(2, 1), table_record(other), later, table_record(T1), insert(6, 4)]
    batches: list[ImageBatch] = list(images([*stream, commit(7)], OWN))
    seen = [
        (one.after, [c.name for c in batch.catalog.tables[0].columns])
        for batch in batches
        if batch.catalog
        for one in batch.images
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
    assert read(table_record(T1), insert(2, 1), commit(3), own=GBaseSettings(orphans="skip")) == []


def test_updates_without_their_other_half() -> None:
    other = layout_of(6, "c1 integer")
    foreign = row_record(CdcRecord.UPDAFT, 4, 7, other, {"c1": 9})
    stream = [
        row(CdcRecord.UPDAFT, 2, 1),
        row(CdcRecord.UPDBEF, 3, 2),
        foreign,
        row(CdcRecord.UPDBEF, 5, 3),
        insert(6, 4),
    ]
    stream += [row(CdcRecord.UPDAFT, 7, 4), row(CdcRecord.UPDBEF, 8, 5)]
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


def test_a_table_described_anew_is_another_version() -> None:
    wider = layout_of(5, "c1 integer, c3 date, c2 varchar(20,0)")
    row = row_record(CdcRecord.INSERT, 5, 7, wider, {"c1": 2, "c2": "b", "c3": None})
    stream = [GOOD, table_record(T1), begin(4), table_record(wider), row, commit(6)]
    batches = list(images(stream, OWN))
    assert [one.catalog and one.catalog.tables[0].version for one in batches] == [1, 2]
    known = Catalog([Table(name="t1", schema="shop", columns=(), version=7)])
    assert [one.catalog and one.catalog.tables[0].version for one in images(stream, OWN, known)] == [7, 8]


def test_the_end_of_an_unknown_transaction_is_only_told() -> None:
    said: list[str] = []
    assert len(read(record(CdcRecord.DISCARD, 1, 3), record(CdcRecord.RBTX, 1, 3), GOOD, said=said)) == 1
    assert len(said) == 2


def test_errors_of_the_server_are_told_or_end_the_stream() -> None:
    said: list[str] = []
    mild = record(CdcRecord.ERROR, 0, -83705, payload=b"t1\0")
    assert len(read(mild, GOOD, said=said)) == 1
    assert "-83705 (CDC_E_NOTAB): there is no such table." in said[0]
    assert "'t1'" in said[0]
    fatal = [GOOD, record(CdcRecord.ERROR, 1, -12345), GOOD]
    found, error = before_damage(fatal)
    assert (len(found), isinstance(error, DamageError), "-12345" in str(error)) == (1, True, True)
    live = RecordReader(GBaseSettings(), live=True)
    with pytest.raises(SourceError, match="-12345"):
        list(live.read(Framer().feed(b"".join(fatal))))


@pytest.mark.parametrize("flag", [0, 1])
def test_a_stream_that_ends_with_an_error_of_the_server_is_damaged(flag: int) -> None:
    found, error = before_damage([GOOD, record(CdcRecord.ERROR, flag, -83705)])
    assert len(found) == 1
    assert isinstance(error, DamageError)
    assert error.offset == len(GOOD)
    assert "-83705" in str(error)


@pytest.mark.parametrize("behind", [record(CdcRecord.TIMEOUT, 0), table_record(T1) + begin(9) + insert(10, 3), GOOD])
def test_an_error_with_something_behind_it_is_only_told(behind: bytes) -> None:
    assert before_damage([GOOD, record(CdcRecord.ERROR, 0, -83705), behind])[1] is None


def test_text_that_is_none_ends_its_row_only() -> None:
    bad = insert(2, 1)[:-1] + b"\xff"
    found = read(table_record(T1), begin(1), bad, insert(3, 2), commit(4))
    assert ("utf-8" in str(found[0].fault), told(found)[1]) == (True, (Op.ADD, None, 2))
