"""`run --log-level debug` tells each statement and each document, without secrets and without values in statements."""

from __future__ import annotations

import io
import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.core.detail import DOCUMENTS
from eventlog.daemon.logging import journal, log_in_detail
from tests.integration.publishing import config_of, publish_all, site

SECRET = "swordfish-of-1984"
VALUE = "Jacqueline"


@pytest.mark.parametrize("level", ["debug", "info"])
def test_each_statement_and_each_document_is_told(sqlite: Engine, tmp_path: Path, level: str) -> None:
    log = site(sqlite)
    log.run("INSERT INTO usr (idu, fname, lname) VALUES (1, :value, :secret)", {"value": VALUE, "secret": SECRET})
    for number in (1, 2):
        log.write(
            number, event_type=2, column_name=("fname", "lname")[number - 1], new_value=(VALUE, SECRET)[number - 1]
        )
    said = io.StringIO()
    records = journal("json", level=level, secrets=[SECRET], stream=said)
    with log_in_detail(records) if level == "debug" else nullcontext():
        publish_all(config_of(sqlite, tmp_path / "out"), journal=records)
    lines = [json.loads(line) for line in said.getvalue().splitlines()]
    documents = [line for line in lines if line["action"] == "document"]
    statements = [line["sql"] for line in lines if line["action"] == "statement"]
    if level == "info":
        assert (documents, statements) == ([], [])
        return
    files = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.xml"))
    assert sum(line["rows"] for line in documents) == 2
    assert VALUE in "".join(line["body"] for line in documents)
    assert SECRET in files, "the output gets it"
    assert SECRET not in said.getvalue(), "and whoever reads the journal does not"
    assert any("event_log" in sql for sql in statements)
    assert not [sql for sql in statements if VALUE in sql or SECRET in sql]
    said.truncate(0)
    assert not DOCUMENTS.handlers
    publish_all(config_of(sqlite, tmp_path / "out"))
    assert said.getvalue() == "", "it ends with its block"
