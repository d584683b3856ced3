"""Golden dumps of LINTER's queue: each operation, each border at which an operation goes on in another row, damage.

`EVENTLOG_GOLDEN=write` writes them anew, to be read before they are committed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.sources.linter.operations import Action, Coding
from eventlog.sources.linter.rows import QueueRow, address
from eventlog.sources.linter.tables import SourceTables
from eventlog_streams_tools.linter.dump import FollowedQueue, QueueRestart, dump_operations, text_of
from eventlog_streams_tools.linter.emulator import EmulatedOperation, EmulatorSettings
from tests.support.linter import CHAIR, NUMBER, READING, ROW, SCHEMA, TABLE, commit, ended, insert, queued, row

FOLDER = Path(__file__).resolve().parents[3] / "golden" / "linter"
BORDERS = (3399, 3400, 3401, 6800, 6801, 10200)
OWNER = {"ID": 1, "PHOTO": bytes(range(24)), "NAME": "Ida"}


def dump(rows: Iterable[QueueRow], **settings: Any) -> str:
    reading = replace(READING, **settings)
    found = dump_operations(rows, SourceTables(SCHEMA, reading), reading)
    return "".join(line + "\n" for one in found for line in text_of(one))


def check(name: str, text: str) -> None:
    file = FOLDER / f"{name}.txt"
    if os.environ.get("EVENTLOG_GOLDEN") == "write":
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def done(action: Action, **facts: Any) -> EmulatedOperation:
    return EmulatedOperation(**{"transaction": 5, "action": action, "table": NUMBER, "rowid": 3, **facts})


OPERATIONS = {
    "delete": done(Action.DELETE, before=TABLE),
    "insert": done(Action.INSERT, after=CHAIR),
    "update": done(Action.UPDATE, before=TABLE, after=CHAIR),
    "create-blob": done(Action.CREATE_BLOB, table=19, after=OWNER, column="PHOTO", blob_type=2, piece=b"\xff\xd8"),
    "insert-blob": done(Action.INSERT_BLOB, table=19, after=OWNER, column="PHOTO", blob_type=2, piece=b"\xff\xd8"),
    "clear-blob": done(Action.CLEAR_BLOB, table=19, after=OWNER, column="PHOTO", blob_type=2),
    "commit": ended(5),
    "rollback": ended(5, Action.ROLLBACK),
    "delete-blob": done(Action.DELETE_BLOB, table=19, after=OWNER, column="PHOTO", blob_type=2),
    "end": ended(5, Action.END),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation(name: str) -> None:
    coding: Coding = "list" if name in ("delete-blob", "end") else "table"
    check(name, dump(queued([OPERATIONS[name]], EmulatorSettings(coding=coding)), coding=coding))


@pytest.mark.parametrize("size", BORDERS)
def test_each_border(size: int) -> None:
    """An update whose two images have so many bytes together: seven of either are not its content."""
    first = bytes(range(256)) * 40
    texts = []
    for lengths in ("rows", "totals"):
        rows = bordering(size, first, lengths)
        assert sum(one.len1 + one.len2 for one in rows) == size * (
            len(rows) if lengths == "totals" and size > 3400 else 1
        )
        texts.append(f"-- lengths of {lengths}\n{dump(rows)}")
    check(f"border-{size}", "".join(texts))


def bordering(size: int, content: bytes, lengths: str) -> list[QueueRow]:
    """The rows of an update whose parts have `size` bytes together, the first one byte more than half of them."""
    one = size // 2 + 1
    before, after = {"ID": 1, "B": content[: min(one, 4007) - 7]}, {"ID": 1, "B": content[: min(size - one, 4007) - 7]}
    if size <= 8000:
        return queued(
            [done(Action.UPDATE, table=18, before=before, after=after)],
            EmulatorSettings(lengths="totals" if lengths == "totals" else "rows"),
        )
    from eventlog_streams_tools.linter.emulator import spread

    pieces = spread(content[:one], content[one:size], "totals" if lengths == "totals" else "rows")
    return [row(extdata=n, tabnum_src=99, len1=a, len2=b, data=data) for n, (a, b, data) in enumerate(pieces)]


def test_damage() -> None:
    rows = [
        row(syslog_addr=1, len1=-1),
        row(syslog_addr=2, data=ROW.data[:20]),
        row(syslog_addr=3, typ=6),
        row(syslog_addr=4, typ=2, len1=0, len2=0, data=b""),
        row(syslog_addr=5, oper_date=b"abc"),
        row(syslog_addr=6, data=b"\x18" + ROW.data[1:]),
        row(syslog_addr=7, extdata=1),
        commit(8, len1=2, data=b"ab"),
        row(syslog_addr=9, tabnum_src=99),
        commit(10, typ=10, len1=2, data=b"ab"),
    ]
    check("damage", dump(rows))


def point(*operations: EmulatedOperation) -> QueueRestart | None:
    restart = FollowedQueue()
    list(dump_operations(queued(operations), SourceTables(SCHEMA, READING), READING, restart.take))
    return restart.point


def addresses(operations: Sequence[EmulatedOperation]) -> list[int]:
    return [one.syslog_addr for one in queued(operations)]


def test_it_begins_behind_the_last_end_and_says_what_is_open() -> None:
    done = [insert(1, 10), insert(2, 20), ended(1), insert(2, 21), insert(3, 30), ended(3, Action.ROLLBACK)]
    found = point(*done)
    where = addresses(done)
    assert found == QueueRestart(begin=where[-1] + 1, open=1, first=where[1])
    assert found.text == (
        f"A restart begins behind {address(where[-1])} ({where[-1]}), where the last transaction ended;"
        f" 1 open transaction may continue, so the rows from {address(where[1])} ({where[1]}) on are needed."
    )


def test_without_an_open_transaction_and_without_an_end() -> None:
    over = point(insert(1, 10), ended(1))
    assert over is not None
    assert over.text.endswith("where the last transaction ended; none is open.")
    first = point(insert(1, 10), insert(1, 11))
    assert first is not None
    assert (first.begin, first.open) == (0, 1)
    assert first.text.startswith("A restart begins at the beginning: no transaction has ended; 1 open")
    assert point() is None


def test_an_action_that_nobody_knows_says_nothing() -> None:
    restart = FollowedQueue()
    restart.take(row(typ=77), None)
    assert restart.point is None


def test_a_time_that_is_none_is_told_in_the_dump_and_makes_it_damaged() -> None:
    [one] = dump_operations([row(oper_date=ROW.oper_date[:-1])], SourceTables(SCHEMA, READING), READING)
    assert one.damaged
    assert one.time.startswith("! ")


def test_a_row_that_goes_nowhere_else_is_told_without_a_target() -> None:
    assert " to REMOTE" in dump([ROW])
    assert " to " not in dump([row(dst_server="", dst_table="")])
