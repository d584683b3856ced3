"""Queue rows from exported files: each kind of file, any order, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest

from eventlog.core.errors import DataError, UsageError
from eventlog.sources.linter.exports import export_row, export_rows, file_rows, in_order
from eventlog.sources.linter.rows import to_signed
from eventlog.sources.linter.settings import ReadingSettings
from tests.support.linter import READING, ROW, commit, ended, insert, queued, row

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
ROWS = [
    row(syslog_addr=2**63 - 64, data=ROW.data.ljust(3400, b"\0")),
    row(syslog_addr=2**63 + 5, transact_id=2**64 - 1, rowid_src=2**32 - 1),
    commit(2**63 + 9),
]
READ = [row(syslog_addr=2**63 - 64), *ROWS[1:]]


def records() -> list[dict[str, Any]]:
    """The rows as SQL tools export them: signed numbers."""
    found = [export_row(one) for one in ROWS]
    return [
        {**one, "SYSLOG_ADDR": to_signed(one["SYSLOG_ADDR"]), "TRANSACT_ID": to_signed(one["TRANSACT_ID"])}
        for one in found
    ]


def written(path: Path, kind: str) -> Path:
    """A file with the rows, of the kind that its name ends with."""
    file = path / f"queue.{kind}"
    if kind == "parquet":
        found = [{**one, "DATA": bytes.fromhex(one["DATA"])} for one in records()]
        parquet.write_table(pa.Table.from_pylist(found), file)
        return file
    if kind.startswith("jsonl"):
        lines = [json.dumps({name.lower(): value for name, value in one.items()}) for one in records()]
    else:
        lines = [",".join(line) for line in (records()[0], *(map(str, one.values()) for one in records()))]
    text = "".join(f"{line}\n" for line in lines).replace("SYSTEM", '"SYSTEM"' if "csv" in kind else "SYSTEM").encode()
    file.write_bytes(gzip.compress(text) if kind.endswith("gz") else text)
    return file


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "csv", "csv.gz", "parquet"])
def test_rows_of_each_kind_of_file_are_read(tmp_path: Path, kind: str) -> None:
    assert list(export_rows([written(tmp_path, kind)], ReadingSettings())) == READ


@pytest.mark.parametrize("limit", [1, 700, 5_000, 10_000_000])
def test_rows_in_any_order_are_sorted_in_bounded_memory(limit: int) -> None:
    rows = queued([done for tx in range(30) for done in (insert(tx, tx), ended(tx))])
    mixed = random.Random(7).sample(rows, len(rows))
    assert list(in_order(mixed, limit)) == rows
    assert list(in_order([], limit)) == []


def test_a_receiving_queue_comes_as_it_arrived(tmp_path: Path) -> None:
    rows = [export_row(row(extdata=number)) for number in (0, 1, 2, 0)]
    for one in rows:
        del one["SYSLOG_ADDR"]
    (tmp_path / "queue.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    found = list(export_rows([tmp_path / "queue.jsonl"], ReadingSettings(variant="receiving")))
    assert [(one.syslog_addr, one.extdata) for one in found] == [(1, 0), (1, 1), (1, 2), (4, 0)]


@pytest.mark.parametrize(
    "name, text, reason",
    [
        ("a.jsonl", '{"TYP": 1}', "row 1: the column OPER_DATE is missing"),
        ("b.jsonl", "{", "row 1: Input data was truncated"),
        (
            "c.csv",
            "OPER_DATE,EXTDATA,TRANSACT_ID,SYSLOG_ADDR,TYP,TABNUM_SRC,LEN1,LEN2,DATA\n00,0,x,1,1,1,1,1,00\n",
            "row 1: TRANSACT_ID is 'x', which is no number",
        ),
        (
            "d.csv",
            "OPER_DATE,EXTDATA,TRANSACT_ID,SYSLOG_ADDR,TYP,TABNUM_SRC,LEN1,LEN2,DATA\n00,0,1,\\N,1,1,1,1,00\n",
            "row 1: .*SYSLOG_ADDR None",
        ),
        ("b.jsonl", '{"DATA": ' + "[" * 99_999, "row 1: (maximum recursion depth|Stack overflow)"),
        ("e.jsonl.gz", "no gzip", "cannot be read: Not a gzipped file"),
        ("f.parquet", "no parquet", "cannot be read"),
    ],
)
def test_damaged_files_name_the_place(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=f"{name}.*{reason}"):
        list(export_rows([tmp_path / name], ReadingSettings()))


def test_a_line_that_is_too_long_is_damage(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text("[" * 64_000_001)
    with pytest.raises(DataError, match=r"row 1: the line has more than 64,000,000 bytes"):
        list(export_rows([tmp_path / "b.jsonl"], ReadingSettings()))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"neither \.jsonl nor"):
        list(export_rows([tmp_path / "queue.xml"], ReadingSettings()))
    with pytest.raises(DataError, match="No such file"):
        list(export_rows([tmp_path / "queue.csv"], ReadingSettings()))


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("TYP", None, "TYP is NULL"),
        ("TYP", "", "TYP is NULL"),
        ("DBNODE", True, "DBNODE is True, which is no text"),
        ("LEN1", 1.5, "LEN1 is 1.5, which is no number"),
        ("CHANNEL", True, "CHANNEL is True, which is no number"),
        ("DATA", [1], r"DATA is \[1\], which is no text"),
    ],
)
def test_a_cell_of_another_kind_is_refused_with_its_place(tmp_path: Path, name: str, value: object, words: str) -> None:
    path = tmp_path / "queue.jsonl"
    path.write_bytes(json.dumps({**export_row(ROW), name: value}).encode())
    with pytest.raises(DataError, match=f"row 1: {words}"):
        list(file_rows(path, READING))
