"""Where things are read from and written to: standard input, other schemas, folders that cannot be, files from elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command import eventlog, expect_refused, ok
from tests.support.gbase_streams import SEED

DOCUMENT = '<nds dtdversion="2.0"><input><delete class-name="usr"><association>a=1</association></delete></input></nds>'
ROW = {
    "record_id": 1,
    "table_key": "idu=1",
    "status": "N",
    "event_type": 4,
    "event_time": "2025-03-23T10:57:19",
    "perpetrator": None,
    "table_name": "usr",
    "column_name": None,
    "old_value": None,
    "new_value": None,
}


def piped(content: bytes, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "eventlog", *arguments], input=content, capture_output=True, check=False, timeout=300
    )


def test_a_document_is_checked_from_standard_input() -> None:
    done = piped(DOCUMENT.encode(), "validate", "-")
    assert (done.returncode, done.stdout) == (0, b"1 document, 0 problems.\n")


def test_a_stream_is_decoded_from_standard_input() -> None:
    from eventlog.sources.gbase.files import read_hex

    stream = b"".join(read_hex(SEED.read_text().splitlines()))
    done = piped(stream, "decode", "gbase", "-")
    assert done.returncode == 0
    assert done.stdout.endswith(b"6 entries, 0 of them damaged.\n")


@pytest.mark.parametrize("content", [b"", b"\r\n", b"\xef\xbb\xbf"])
def test_a_topic_without_messages_is_not_damaged(content: bytes) -> None:
    done = piped(content, "decode", "messages", "-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_messages_may_come_from_another_system() -> None:
    done = piped(
        b'\xef\xbb\xbf{"data":{"id":1},"beforeData":null,"headers":{"operation":"REFRESH"}}\r\n',
        "decode",
        "messages",
        "-",
    )
    assert done.stdout.startswith(b"line 1: REFRESH"), done.stderr


def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    (tmp_path / "bad.xml").write_text(DOCUMENT.replace("<association>a=1</association>", ""))
    done = eventlog("validate", "nothing.xml", "bad.xml", cwd=tmp_path)
    assert done.returncode == 65
    assert "nothing.xml: the file cannot be read: No such file or directory." in done.stdout
    assert "bad.xml:1: <delete> has no <association>" in done.stdout
    told = json.loads(eventlog("validate", "--json", "nothing.xml", "bad.xml", cwd=tmp_path).stdout)
    assert [problem["line"] for problem in told["problems"]] == [None, 1]


def test_hexadecimal_text_may_come_from_another_system(tmp_path: Path) -> None:
    text = "\ufeff" + SEED.read_text().replace("\n", "\r\n")
    (tmp_path / "seed.hex").write_bytes(text.encode())
    assert "6 entries, 0 of them damaged." in ok("decode", "gbase", "seed.hex", cwd=tmp_path)


def test_labels_may_be_said_in_one_go(tmp_path: Path) -> None:
    words = ("--tables", "111=shop.t1,112=shop.t2", "--key", "shop.t1=c1", "--out", tmp_path / "out")
    assert ok("convert", "gbase", SEED, *words) == "1 row, 1 change, 1 part (S 1).\n"
    assert "table=t1,schema=shop" in (tmp_path / "out" / "part-00000.xml").read_text()


def test_a_code_page_is_said_where_a_queue_is_converted_as_where_it_is_looked_at(tmp_path: Path) -> None:
    """The worked example of the reference: a row of T in the code page 1251."""
    image = "08070000000400d1f2eeeb0200000000000000012345678000000000" + "00"
    row = {"OPER_DATE": "4055836e8000", "EXTDATA": 0, "DBNODE": "DB", "TRANSACT_ID": 1, "SYSLOG_ADDR": 12884978240}
    row |= {"TYP": 2, "BLOBATR": 0, "CHANNEL": 1, "TABNUM_SRC": 17, "ROWID_SRC": 5, "LEN1": 29, "LEN2": 0}
    row |= {"DST_SERVER": "S", "DST_OWNER": "O", "DST_TABLE": "T", "DATA": image}
    commit = row | {"SYSLOG_ADDR": 12884978300, "TYP": 4, "LEN1": 0, "DATA": ""}
    (tmp_path / "queue.jsonl").write_text(f"{json.dumps(row)}\n{json.dumps(commit)}\n")
    types = {"ID": "int", "NAME": "varchar(20)", "PRICE": "decimal", "N": "smallint"}
    columns = [{"name": name, "type": kind, "key": 1 if name == "ID" else None} for name, kind in types.items()]
    (tmp_path / "schema.json").write_text(json.dumps({"tables": [{"name": "T", "number": 17, "columns": columns}]}))
    words = ("--schema", "schema.json", "--code-page", "cp1251", "--out", "out")
    assert ok("convert", "linter", "queue.jsonl", *words, cwd=tmp_path) == "1 row, 1 change, 1 part (S 1).\n"
    told = (tmp_path / "out" / "part-00000.xml").read_text(encoding="utf-8")
    assert '<add-attr attr-name="NAME"><value type="string">Стол</value></add-attr>' in told
    assert '<add-attr attr-name="PRICE"><value type="string">12345.678</value></add-attr>' in told


@pytest.mark.parametrize("name", ["", ".", "app."])
def test_a_log_has_a_name(name: str, tmp_path: Path) -> None:
    expect_refused(
        78, "is no name of a log table", "install", "--database", f"sqlite:///{tmp_path / 'app.db'}", "--log", name
    )


def test_a_schema_that_there_is_not_is_named(tmp_path: Path) -> None:
    expect_refused(
        78,
        "There is no schema indirect in the database.",
        "install",
        "--database",
        f"sqlite:///{tmp_path / 'app.db'}",
        "--log",
        "indirect.event_log",
    )
    ok("install", "--database", f"sqlite:///{tmp_path / 'app.db'}", "--log", "MAIN.event_log")


def test_a_table_of_a_schema_that_there_is_not_is_no_table(tmp_path: Path) -> None:
    where = ("--database", f"sqlite:///{tmp_path / 'app.db'}")
    ok("install", *where)
    for command in ("track", "catalog"):
        expect_refused(78, "There is no table or view rows.jsonl in the database.", command, "rows.jsonl", *where)
    assert "rows.jsonl is not tracked" in eventlog("untrack", "rows.jsonl", *where).stderr


def test_a_folder_that_can_never_be_is_no_reason_to_try_again(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(ROW))
    expect_refused(
        69,
        "rows.jsonl/inside cannot be written: Not a directory.",
        "convert",
        "rows.jsonl",
        "--out",
        "rows.jsonl/inside",
        cwd=tmp_path,
    )
    done = eventlog("convert", "rows.jsonl", "--out", "-", cwd=tmp_path)
    assert done.returncode == 64
    assert not (tmp_path / "-").exists()
