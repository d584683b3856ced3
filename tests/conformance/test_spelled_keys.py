"""Keys that a database takes for one row are one object, whoever spells them: rows of the log that somebody else writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon import Publisher
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.dialect import dialect_of
from tests.support.logged import run

KEYS = [
    ("INTEGER", "1", ["k=1", "K=01", 'k="+1"', "k= 1"], "k=1"),
    ("NUMERIC(10,2)", "1.5", ["k=1.5", "k=1.50", "K=01.500"], "k=1.50"),
    ("CHAR(5)", "'ab'", ["k=ab", 'k="ab "', 'K="ab   "'], "k=ab"),
    ("DATE", "'2024-01-05'", ["k=2024-01-05", 'K="2024-01-05 00:00:00"'], "k=2024-01-05"),
]


@pytest.mark.parametrize("kind, literal, keys, canonical", KEYS)
def test_one_row_is_one_object(
    engine: Engine, tmp_path: Path, kind: str, literal: str, keys: list[str], canonical: str
) -> None:
    if not dialect_of(engine).typed_columns and ("CHAR" in kind or kind == "DATE"):
        pytest.skip("there these are different texts, and rows")
    install(engine)
    run(engine, f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v VARCHAR(9))")
    track(engine, ["t"])
    run(engine, f"INSERT INTO t VALUES ({literal}, 'x')")
    with engine.begin() as connection:
        added = text("INSERT INTO event_log (event_type, table_name, table_key) VALUES (6, 't', :key)")
        for key in keys:
            connection.execute(added, {"key": key})
    source = SourceConfig(url=engine.url.render_as_string(hide_password=False))
    output = FilesOutput(path=str(tmp_path))
    with Publisher(
        Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=(output,))
    ) as publisher:
        publisher.run_once()
    [published] = [file.read_text() for file in tmp_path.glob("*.xml")]
    assert published.count("<modify ") == 1
    assert f"<association>{canonical},table=t" in published
    with engine.connect() as connection:
        reasons = connection.execute(text("SELECT reason FROM event_log_outcome ORDER BY record_id")).scalars().all()
        assert {*connection.execute(text("SELECT status FROM event_log")).scalars()} == {"S"}
    assert reasons.count("superseded") == len(keys)
