"""`eventlog emulate linter` and `eventlog decode linter`, and the way from one to a published document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from eventlog.core.errors import EX_DATA, DataError
from eventlog.core.schema_file import catalog_to_json
from eventlog.delivery.output import Output
from eventlog.sinks.files import FileSink
from eventlog.sources.linter.queue import open_session
from eventlog.sources.linter.settings import LinterSettings
from eventlog.sources.linter.source import LinterReader
from eventlog.xds.write import XdsFormat
from eventlog_streams_tools.linter.commands import decode, emulate
from eventlog_streams_tools.linter.emulator import SAMPLE_SCHEMA
from tests.support.captured import StreamPublisher
from tests.support.sinks import opened


def called(command: object, *arguments: object) -> Result:
    result = CliRunner().invoke(command, [str(one) for one in arguments], standalone_mode=False)  # type: ignore[arg-type]  # click's own
    if result.exception is not None:
        raise result.exception
    return result


def test_the_sample_is_decoded_with_its_schema(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_bytes(catalog_to_json(SAMPLE_SCHEMA))
    (tmp_path / "queue.jsonl").write_text(called(emulate).output)
    shown = called(decode, tmp_path / "queue.jsonl", "--schema", tmp_path / "schema.json")
    assert "ID=7 NAME='Table' PRICE=12345.678 N=NULL" in shown.output
    assert shown.output.endswith("7 operations, 0 of them damaged.\n")
    lines = called(decode, tmp_path / "queue.jsonl", "--json").output.splitlines()
    assert "A restart begins behind " in shown.output
    assert "where the last transaction ended; none is open." in shown.output
    assert list(json.loads(lines.pop())) == ["restart"]
    assert [json.loads(line)["action"] for line in lines] == [
        *("INSERT", "INSERT", "COMMIT", "UPDATE", "COMMIT", "DELETE", "ROLLBACK")
    ]


def test_a_damaged_operation_is_shown_and_ends_with_65(tmp_path: Path) -> None:
    lines = called(emulate).output.splitlines()
    (tmp_path / "queue.jsonl").write_text(json.dumps({**json.loads(lines[0]), "LEN1": -1}) + "\n")
    result = called(decode, tmp_path / "queue.jsonl")
    assert "! LEN1 or LEN2 is negative." in result.output
    assert result.return_value == EX_DATA


def test_what_the_emulator_writes_is_published(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'queue.db'}"
    assert called(emulate, "--database", url).output == "7 rows written to DISPATCH_QUEUE.\n"
    settings = LinterSettings()
    output = Output(name="files", format=XdsFormat(), sink=opened(FileSink(tmp_path / "out", ".xml")))
    reader = LinterReader(open_session(url, settings), SAMPLE_SCHEMA, settings)
    publisher = StreamPublisher(reader, tmp_path / "log.db", [output])
    publisher.run()
    assert publisher.left() == {}
    texts = "".join(file.read_text() for file in sorted((tmp_path / "out").glob("*.xml")))
    assert "<association>ID=7,table=T,schema=SHOP</association>" in texts
    assert '<remove-value><value type="int">2</value></remove-value><add-value><value type="int">5</value>' in texts
    publisher.close()


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    for command in (decode, emulate):
        with pytest.raises(DataError, match=r"none.jsonl"):
            called(command, tmp_path / "none.jsonl")
    with pytest.raises(DataError, match=r"none.json cannot be read"):
        called(decode, tmp_path / "queue.jsonl", "--schema", tmp_path / "none.json")
