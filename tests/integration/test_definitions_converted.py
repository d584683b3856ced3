"""A conversion reads rows by the definitions of their time: what it makes is what a publisher makes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import Engine, text

from eventlog.capture import Style
from eventlog.cli.main import exit_code
from eventlog.convert import step
from tests.support.altered_logs import altered_log, convert, published, said, url_of


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "database, style",
    [
        ("postgresql", Style.IMAGE),
        ("postgresql", Style.FIELD),
        ("postgresql", Style.ROW_BACK),
        ("postgresql", Style.FIELD_BACK),
        ("mariadb", Style.IMAGE),
        ("sqlite", Style.IMAGE),
        ("sqlite", Style.FIELD),
    ],
)
def test_a_log_with_alterations_gives_what_the_publisher_makes_of_it(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: str, style: Style
) -> None:
    engine: Engine = request.getfixturevalue(database)
    altered_log(engine, style)
    convert(url_of(engine), tmp_path / "whole", "--engine", "local", "--jobs", "1")
    monkeypatch.setattr(step, "CHUNK_ROWS", 2)
    convert(url_of(engine), tmp_path / "pieces", "--engine", "local", "--jobs", "1")
    published(engine, tmp_path / "published")
    expected = said(tmp_path / "published")
    for folder in ("whole", "pieces"):
        found = said(tmp_path / folder)
        for name, what in expected.items():
            assert found[name] == what, (folder, name)


@pytest.mark.in_turn
@pytest.mark.parametrize(
    "database, style, by",
    [
        ("postgresql", Style.IMAGE, "--schema"),
        ("sqlite", Style.IMAGE, "--schema"),
        ("sqlite", Style.IMAGE, "--database"),
        ("postgresql", Style.ROW_BACK, "--database"),
    ],
)
def test_an_archive_of_such_a_log_is_told_as_the_publisher_tells_it(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    database: str,
    style: Style,
    by: str,
) -> None:
    engine: Engine = request.getfixturevalue(database)
    altered_log(engine, style)
    with engine.connect() as connection:
        found = connection.execute(text("SELECT * FROM event_log ORDER BY record_id")).mappings()
        rows = [dict(row) | {"event_time": str(row["event_time"])} for row in found]
    archive = tmp_path / "archive.parquet"
    parquet.write_table(pa.Table.from_pylist(rows), archive)
    assert exit_code(["catalog", "--database", url_of(engine)]) == 0
    schema = tmp_path / "schema.json"
    schema.write_text(capsys.readouterr().out)
    convert(str(archive), tmp_path / "converted", by, str(schema) if by == "--schema" else url_of(engine))
    published(engine, tmp_path / "published")
    assert said(tmp_path / "converted") == said(tmp_path / "published")
