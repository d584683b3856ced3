"""PostgreSQL databases with another encoding than UTF-8: SQL_ASCII, which keeps any bytes, and Latin-1."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.cli.main import exit_code
from eventlog.core.errors import OK
from eventlog.sql.connect import connect
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import config_of, publish_all, url_of
from tests.support.logged import with_bare_names
from tests.support.servers import postgresql_database
from tests.support.xds_events import read_events

TABLE = "übung"


@contextmanager
def with_encoding(server: str, admin: Engine, encoding: str) -> Iterator[Engine]:
    """A database with this encoding, as `eventlog` opens it."""
    settings = f" ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with postgresql_database(server, admin, settings) as plain:
        engine = with_bare_names(connect(url_of(plain)))
        yield engine
        engine.dispose()


def texts_in(folder: Path) -> list[str]:
    """The texts of a column `said` in the order in which they were published."""
    documents = [read_events(path.read_bytes()) for path in sorted(folder.glob("*.xml"))]
    attributes = [attribute for events in documents for event in events for attribute in event.attributes]
    return [value.text for one in attributes if one.name == "said" for step in one.steps for value in step.values]


def tracked(engine: Engine, *options: str) -> tuple[LogTable, str]:
    """A table whose name and texts have letters beyond ASCII; and what stands between INSERT and the values."""
    where = ("--database", url_of(engine))
    log = LogTable(engine)
    log.run(f'CREATE TABLE "{TABLE}" (id text PRIMARY KEY, said text)')
    assert exit_code(["install", *where]) == OK
    assert exit_code(["track", TABLE, *options, *where]) == OK
    return log, f'INSERT INTO "{TABLE}" VALUES'


NO_TEXT = "convert_from('\\x78ff'::bytea, 'SQL_ASCII')"


@pytest.mark.parametrize("events", ["field", "row-back"])
def test_one_row_with_bytes_that_are_no_text_ends_and_all_others_are_published(
    postgresql_server: str, postgresql_admin: Engine, tmp_path: Path, events: str
) -> None:
    with with_encoding(postgresql_server, postgresql_admin, "SQL_ASCII") as engine:
        log, insert = tracked(engine, "--events", events)
        for number in range(1, 8):
            key = NO_TEXT if number == 3 else f"'{number}'"
            said = NO_TEXT if number == 5 else f"'größer {number}'"
            log.run(f"{insert} ({key}, {said})")
        publish_all(config_of(engine, tmp_path / "out"))
        assert texts_in(tmp_path / "out") == [f"größer {number}" for number in (1, 2, 4, 6, 7)]
        noted = {status: note for status, _, note in log.outcomes().values()}
        assert ("x\\udcff" if events == "field" else "table_key has bytes that are no UTF-8 text") in noted["E"]
        assert "'id=5'" in noted["W"]
        assert "the value is left out" in noted["W"]
        assert exit_code(["status", "--database", url_of(engine)]) == OK


def test_a_database_in_latin_1_is_published_as_it_was(
    postgresql_server: str, postgresql_admin: Engine, tmp_path: Path
) -> None:
    with with_encoding(postgresql_server, postgresql_admin, "LATIN1") as engine:
        log, insert = tracked(engine)
        log.run(f"{insert} ('é', 'größer')")
        publish_all(config_of(engine, tmp_path / "out"))
        assert set(log.statuses().values()) == {"S"}
        assert texts_in(tmp_path / "out") == ["größer"]
