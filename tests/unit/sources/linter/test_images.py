"""LINTER's operations as images of committed transactions, and everything that a decoder must survive."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.errors import DataError
from eventlog.core.model import Image, Op, Reason, Transaction
from eventlog.core.rules import Options
from eventlog.sources.linter.images import CommittedRows
from eventlog.sources.linter.operations import Action
from eventlog.sources.linter.rows import QueueRow, oper_date
from eventlog.sources.linter.tables import RawCodec
from eventlog.sources.linter.telling import group_rows
from eventlog.sources.stream.images import decide_images
from eventlog.sources.stream.spill import spill_to
from eventlog_streams_tools.linter.emulator import EmulatedOperation, EmulatorSettings, LinterEmulator
from tests.support.linter import (
    CHAIR,
    NEW,
    NUMBER,
    OLD,
    READING,
    ROW,
    SCHEMA,
    TABLE,
    commit,
    ended,
    insert,
    queued,
    row,
    told,
)

COMMITTED = Transaction(id=5, time=dt.datetime(2024, 3, 15, 10, 20, 30, 500000), end=ROW.syslog_addr + 100)


def only(rows: list[QueueRow], reports: list[str] | None = None, **settings: Any) -> Image:
    [image] = told(rows, reports, **settings)
    return image


def faulty(image: Image) -> str:
    """The fault of an image, which ends as an error with that note."""
    outcome = decide_images([image], CommittedRows(SCHEMA, READING).catalog, Options()).outcomes.others[image.position]
    assert (outcome.reason, outcome.note) == (Reason.INVALID, image.fault)
    assert image.fault is not None
    return image.fault


def test_the_update_of_the_specification() -> None:
    assert only([ROW, commit()]) == Image(
        position=(ROW.syslog_addr + 100, ROW.syslog_addr, 0),
        op=Op.MODIFY,
        table="SHOP.T",
        before=TABLE,
        after=CHAIR,
        time=COMMITTED.time,
        transaction=COMMITTED,
        place=1,
        last=True,
        stream="3:0x00012A40",
    )


def test_what_is_put_back_and_what_is_ignored_changes_no_image() -> None:
    reports: list[str] = []
    assert only([row(data=(OLD + NEW).rstrip(b"\0")), commit()], pad_data=True).after == CHAIR
    assert told([ROW, commit(typ=10, len1=3, data=b"abc")], reports) == []
    assert reports == ["ROLLBACK at 3:0x00012AA4 comes with 3 + 0 bytes, which are ignored."]


@pytest.mark.parametrize("what", [{"len1": 3, "data": b"abc"}, {"len2": 1, "data": b"a"}, {"blobatr": 0x0202}])
def test_a_commit_with_a_row_or_a_blob_stops_and_names_the_coding(what: dict[str, Any]) -> None:
    with pytest.raises(DataError, match=r"TYP 4 at 3:0x00012AA4 .* COMMIT .* coding 'table'") as caught:
        told([ROW, commit(**what)])
    assert 'coding = "list"' in str(caught.value.hint)
    assert told([ROW, commit(**what)], coding="auto") == []


def test_an_insert_and_a_delete() -> None:
    added = only([row(typ=2, len1=len(NEW), len2=0, data=NEW), commit()])
    assert (added.op, added.before, added.after) == (Op.ADD, None, CHAIR)
    deleted = only([row(typ=1, len1=len(OLD), len2=0, data=OLD), commit()])
    assert (deleted.op, deleted.before, deleted.after) == (Op.DELETE, TABLE, None)


def test_a_changed_key_ends_one_object_and_begins_another() -> None:
    done = EmulatedOperation(transaction=5, action=Action.UPDATE, table=NUMBER, before=TABLE, after={**CHAIR, "ID": 8})
    first, second, third = told(queued([done, insert(5, 9), ended(5)]))
    assert [(one.op, one.place, one.last, one.position[2]) for one in (first, second, third)] == [
        (Op.DELETE, 1, False, 0),
        (Op.ADD, 2, False, 1),
        (Op.ADD, 3, True, 0),
    ]


def test_transactions_come_in_the_order_of_their_commits() -> None:
    rows = queued([insert(1, 10), insert(2, 20), insert(1, 11), insert(2, 21), ended(2), ended(1)])
    found = told(rows)
    assert [
        (one.transaction.id, one.after["ID"], one.place, one.last) for one in found if one.transaction and one.after
    ] == [
        (2, 20, 1, False),
        (2, 21, 2, True),
        (1, 10, 1, False),
        (1, 11, 2, True),
    ]
    assert [one.position for one in found] == sorted(one.position for one in found)


def test_what_is_rolled_back_is_not_told_and_its_number_may_come_again() -> None:
    rows = queued([insert(1, 10), ended(1, Action.ROLLBACK), insert(1, 11), ended(1)])
    assert [one.after["ID"] for one in told(rows) if one.after] == [11]


def test_a_commit_without_operations_is_empty_and_operations_without_commit_stay_pending() -> None:
    committed = CommittedRows(SCHEMA, READING)
    assert list(committed.images(queued([ended(1), ended(2, Action.ROLLBACK), insert(3, 30)]))) == []
    assert committed.pending == 1
    committed.close()
    assert committed.pending == 0


def test_rows_of_one_operation_may_come_in_any_order_until_the_transaction_ends() -> None:
    done = EmulatedOperation(transaction=5, action=Action.INSERT, table=18, after={"ID": 1, "B": bytes(3990)})
    first, second, end = queued([done, ended(5)])
    later = queued([done, insert(5, 9), ended(5)])
    assert only([second, first, end]).after == {"ID": 1, "B": bytes(3990)}
    found = told([later[1], later[2], later[0], later[3]])
    assert [one.table for one in found] == ["WIDE", "SHOP.T"]


def test_an_incomplete_operation_is_an_error_when_its_transaction_ends_and_the_rest_goes_on() -> None:
    done = EmulatedOperation(transaction=5, action=Action.INSERT, table=18, after={"ID": 1, "B": bytes(3990)})
    first, _, other, end = queued([done, insert(5, 9), ended(5)])
    held = CommittedRows(SCHEMA, READING)
    assert list(held.images([first])) == []
    broken, whole = told([first, other, end])
    assert "The record ends after 3,400 bytes" in faulty(broken)
    assert whole.after == {**TABLE, "ID": 9}
    second = queued([done])[1]
    assert "The row with EXTDATA 0 is missing." in faulty(only([second, end]))


@pytest.mark.parametrize(
    "other, reason",
    [
        ({"len1": -1}, "LEN1 or LEN2 is negative. Row 3 of table 17, raw: 0807"),
        ({"len1": 0, "len2": 0}, "lacks an image"),
        ({"len2": 0}, "UPDATE with parts of 29 and 0 bytes lacks an image"),
        ({"typ": 2, "len1": 0, "len2": 0}, "INSERT without an image of its row"),
        ({"typ": 1, "len1": 0, "len2": 0}, "DELETE without an image of its row"),
        ({"typ": 2}, "INSERT with 29 bytes in part 2"),
        ({"oper_date": b"12345"}, "OPER_DATE has 5 bytes"),
        ({"data": OLD[:7] + b"\x98" + OLD[8:] + NEW}, "Column NAME: 98f2eeeb"),
        ({"len1": 30, "len2": 28}, "Behind the last column there is more: 1 byte"),
    ],
)
def test_what_cannot_be_read_keeps_its_raw_parts_and_says_why(other: dict[str, Any], reason: str) -> None:
    reports: list[str] = []
    image, after = told([row(**other), row(syslog_addr=ROW.syslog_addr + 50), commit()], reports)
    assert reason in faulty(image)
    assert after.after == CHAIR
    assert (image.before is None and image.after is None) == ("an image" in reason and not other.get("len1", 1))


@pytest.mark.parametrize("typ", [0, 5, 6, 11])
def test_an_unknown_typ_is_skipped_and_reported_once(typ: int) -> None:
    reports: list[str] = []
    assert only([ROW, row(typ=typ), row(typ=typ), commit()], reports).after == CHAIR
    assert reports == [f"TYP {typ} at 3:0x00012A40 is not known to coding table; such rows are skipped."]
    lost: list[int] = []
    list(CommittedRows(SCHEMA, READING, lose=lost.append).images([row(typ=typ), row(typ=typ)]))
    assert lost == [1, 1]


@pytest.mark.parametrize("coding", ["list", "auto"])
def test_an_end_that_does_not_say_how_is_never_applied_silently(coding: str) -> None:
    reports: list[str] = []
    rows = [ROW, commit(typ=5)]
    assert "which does not say how; see unknown_end" in faulty(only(rows, reports, coding=coding))
    assert "TYP 5 does not say how" in reports[-1]
    assert only(rows, coding=coding, unknown_end="commit").after == CHAIR
    assert told(rows, coding=coding, unknown_end="rollback") == []


def test_several_destinations_are_filtered_or_told_once() -> None:
    settings = EmulatorSettings(destinations=(("A", "SYSTEM", ""), ("B", "SYSTEM", "")))
    wide = EmulatedOperation(transaction=1, action=Action.INSERT, table=18, after={"ID": 1, "B": bytes(3990)})
    rows = queued([insert(1, 10), wide, ended(1)], settings)
    assert len(rows) == 8
    everything = told(rows)
    assert [one.place for one in everything] == [1, 2]
    assert told(rows, destination="B") == everything
    assert told(rows, destination="C") == []
    mixed = sorted(rows, key=lambda one: (one.syslog_addr, one.extdata, one.dst_server))
    assert told(mixed) == everything


def test_transactions_of_several_nodes_with_one_number_are_told_apart() -> None:
    one, two = (
        LinterEmulator(SCHEMA, READING),
        LinterEmulator(SCHEMA, READING, EmulatorSettings(node="SECOND", address=2**33)),
    )
    rows = [*one.rows(insert(1, 10)), *two.rows(insert(1, 20)), *one.rows(ended(1)), *two.rows(ended(1))]
    assert [one.after["ID"] for one in told(rows) if one.after] == [10, 20]


def test_no_schema_for_the_table_gives_the_bytes() -> None:
    image = only([row(tabnum_src=99), commit()])
    assert (image.table, image.before, image.after) == (
        "TABLE_99",
        {"ROWID_SRC": 3, "DATA": OLD.hex()},
        {"ROWID_SRC": 3, "DATA": NEW.hex()},
    )
    committed = CommittedRows(SCHEMA, READING)
    changes = decide_images(
        list(committed.images([row(tabnum_src=99), commit()])), committed.catalog, Options()
    ).changes
    assert [str(change.row.key) for change in changes] == ["ROWID_SRC=3"]


def test_a_site_codec_may_raise_anything() -> None:
    committed = CommittedRows(SCHEMA, READING)
    broken = committed.tables[NUMBER]

    class Failing(RawCodec):
        def decode(self, data: bytes, /) -> dict[str, Any]:
            raise ZeroDivisionError("oops")

    committed.tables[NUMBER] = replace(broken, codec=Failing())
    [image] = committed.images([ROW, commit()])
    assert faulty(image).startswith("ZeroDivisionError: oops.")
    assert image.before == {"DATA": OLD.hex()}
    assert image.after == {"DATA": NEW.hex()}


def test_time_that_runs_back_is_reported() -> None:
    reports: list[str] = []
    early = oper_date(dt.datetime(2024, 3, 15, 9))
    rows = [ROW, commit(), row(syslog_addr=2**40), commit(2**40 + 1, oper_date=early)]
    assert len(told(rows, reports)) == 2
    assert "OPER_DATE runs against SYSLOG_ADDR" in reports[0]
    assert len(told([ROW, commit(oper_date=b"")], reports)) == 1
    assert "has no time: OPER_DATE has 0 bytes" in reports[1]


def test_a_transaction_larger_than_the_memory_is_told_whole() -> None:
    rows = queued([*[insert(1, key) for key in range(500)], ended(1)])
    spilled = CommittedRows(SCHEMA, type(READING)(code_page="cp1251", spill_bytes=20_000), spill=spill_to(QueueRow))
    assert list(spilled.images(rows)) == told(rows)


def test_a_blob_operation_names_a_column_of_its_table() -> None:
    wrong = EmulatedOperation(transaction=1, action=Action.CLEAR_BLOB, table=NUMBER, after=TABLE, column="PHOTO")
    with pytest.raises(DataError, match="CLEAR BLOB names the column PHOTO, which table 17 does not have"):
        queued([wrong])
    assert list(group_rows([])) == []


def test_what_ended_before_the_place_was_handed_out() -> None:
    rows = queued([insert(1, 10), insert(1, 11), ended(1), insert(2, 20), ended(2)])
    everything = told(rows)
    for place, image in enumerate(everything):
        committed = CommittedRows(SCHEMA, READING)
        committed.begin = image.position[0]
        assert list(committed.images(rows)) == everything[0 if place < 2 else 2 :]
