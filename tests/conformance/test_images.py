"""The trigger style `image`: whole rows before and after, on every database, and random transactions against a model."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from sqlalchemy import Engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.check.examine import check
from eventlog.check.point import PointLevel
from eventlog.cli.main import main
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.model import Change, Op
from eventlog.core.rules import Options, Round
from eventlog.core.rules.images import decode_image
from eventlog.core.seams import encode
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.qlik.messages.write import MessageFormat
from eventlog.sinks.outputs import FilesOutput
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.dialect import dialect_of, offers
from eventlog.sql.findlog import log_columns
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from eventlog.xds.write import XdsFormat
from tests.support import told as seen
from tests.support.log_rows import LogRows
from tests.support.logged import USR, left_by, run
from tests.support.random_work import Had, RandomWork, by_object, had_in
from tests.support.servers import databases

IMAGE = TriggerOptions(style=Style.IMAGE)
ODD = "a\"b\\c'd\n{ü}\U0001f600"


@pytest.fixture
def usr(engine: Engine) -> Engine:
    """Track a table with images."""
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], IMAGE)
    return engine


def changes_of(engine: Engine, **options: Any) -> list[Change]:
    run(engine, "DELETE FROM event_log_mark WHERE name <> ''")
    names = log_columns(engine, LogNames())
    catalog = seen.tracked_catalog(engine)
    events = LogRows(engine, names, catalog, LogSettings(transactions=True)).read(0).events
    return seen.decided(Round(catalog=catalog, options=Options(**options)), events).changes


def told(engine: Engine, *statements: str) -> list[tuple[str, Any, Any]]:
    """Run statements and return their messages: operation, row before, row after."""
    run(engine, "DELETE FROM event_log")
    run(engine, *statements)
    return messages_of(engine, changes_of(engine))


def messages_of(engine: Engine, changes: list[Change]) -> list[tuple[str, Any, Any]]:
    found = []
    for document in encode(
        MessageFormat(settings=MessageSettings(mode="bare")), changes, seen.tracked_catalog(engine), ""
    ):
        assert isinstance(document, MessagesDocument)
        for message in document.messages:
            said = json.loads(message.value or b"")
            found.append((said["headers"]["operation"], said["beforeData"], said["data"]))
    return found


def row(idu: int, fname: str | None = None, lname: str | None = None, age: int | None = None) -> dict[str, Any]:
    return {"idu": idu, "fname": fname, "lname": lname, "age": age}


def test_a_delete_brings_any_text(usr: Engine) -> None:
    with usr.begin() as connection:
        connection.execute(text("INSERT INTO usr VALUES (1, :odd, '', NULL)"), {"odd": ODD})
    assert told(usr, "DELETE FROM usr") == [("DELETE", None, row(1, ODD, ""))]


def test_xds_says_what_changed_and_nothing_else(usr: Engine) -> None:
    catalog = seen.tracked_catalog(usr)
    for statement, said in (
        ("INSERT INTO usr VALUES (1, 'Jack', NULL, 3)", ["fname", "age"]),
        ("UPDATE usr SET fname = 'John'", ["fname"]),
        ("UPDATE usr SET lname = 'Doe', age = NULL", ["lname", "age"]),
        ("DELETE FROM usr", []),
    ):
        run(usr, "DELETE FROM event_log", statement)
        [change] = changes_of(usr)
        [document] = encode(XdsFormat(), [change], catalog, "")
        body = document.body.decode()  # type: ignore[union-attr]  # it is no refusal
        assert [name for name in ("fname", "lname", "age") if f'attr-name="{name}"' in body] == said, body
        assert change.op != Op.DELETE or XdsFormat().fragment(change, catalog).count("<") == 4


def test_coalesced_a_transactions_changes_keep_the_whole_row(usr: Engine) -> None:
    run(usr, "INSERT INTO usr VALUES (1, 'Jack', NULL, 3)", "DELETE FROM event_log")
    run(usr, "UPDATE usr SET fname = 'x'", "UPDATE usr SET age = 4", "UPDATE usr SET fname = 'Jack'")
    [one] = messages_of(usr, changes_of(usr, coalesce=True))
    assert one == ("UPDATE", row(1, "Jack", None, 3), row(1, "Jack", None, 4))


def test_what_is_left_out_and_a_condition_hold(engine: Engine) -> None:
    install(engine)
    run(engine, *USR)
    track(engine, ["usr"], TriggerOptions(style=Style.IMAGE, exclude=("lname",), when="age > 2"))
    [(kind, key, column, old, new)] = left_by(engine, "INSERT INTO usr VALUES (1, 'a', 'b', 1), (2, 'c', 'd', 5)")
    assert (kind, key, column, old, decode_image(new or "")) == (5, "idu=2", None, None, (1, ["c", "5"]))
    assert left_by(engine, "UPDATE usr SET lname = 'x'") == []
    [(_, key, _, old, _)] = left_by(engine, "DELETE FROM usr")
    assert (key, decode_image(old or "")) == ("idu=2", (1, ["c", "5"]))


def test_a_table_that_is_all_key_and_a_compound_key(engine: Engine) -> None:
    install(engine)
    run(engine, "CREATE TABLE pair (a INTEGER NOT NULL, b INTEGER NOT NULL, PRIMARY KEY (a, b))")
    track(engine, ["pair"], IMAGE)
    assert told(engine, "INSERT INTO pair VALUES (1, 2)") == [("INSERT", None, {"a": 1, "b": 2})]
    assert told(engine, "DELETE FROM pair") == [("DELETE", None, {"a": 1, "b": 2})]


def test_check_warns_where_an_output_needs_images_that_a_style_cannot_give(sqlite: Engine) -> None:
    install(sqlite)
    run(sqlite, *USR)
    track(sqlite, ["usr"])
    assert said(sqlite, "xds") == []
    [(level, words)] = said(sqlite, "change-tables")
    assert (level, "lack rows before a change" in words) == (PointLevel.WARNING, True)
    track(sqlite, ["usr"], IMAGE)
    assert [level for level, _ in said(sqlite, "messages")] == [PointLevel.OK]


def said(engine: Engine, form: Any) -> list[tuple[PointLevel, str]]:
    url = engine.url.render_as_string(hide_password=False)
    config = Config(source=SourceConfig(url=url), output=(FilesOutput(path=".", format=form),))
    return [(point.level, point.said) for point in check(lambda: config) if point.name == "images"]


@pytest.mark.parametrize("style, recommended", [("field", True), ("image", False)])
def test_track_recommends_images_where_an_output_needs_them(
    sqlite: Engine, tmp_path: Path, style: str, recommended: bool
) -> None:
    install(sqlite)
    run(sqlite, *USR)
    config = tmp_path / "eventlog.toml"
    url = sqlite.url.render_as_string(hide_password=False)
    config.write_text(f'[source]\nurl = "{url}"\n[[output]]\nsink = "files"\npath = "o"\nformat = "messages"\n')
    found = CliRunner().invoke(main, ["track", "usr", "--events", style, "--config", str(config)])
    assert found.exit_code == 0, found.output
    assert ("--events image" in found.output) is recommended


TRANSACTIONS = int(os.environ.get("EVENTLOG_TRANSACTIONS", "60"))
"""On PostgreSQL the database's own log is the judge too: tests/integration/test_wal2json.py."""
A_ROUND = 60
SEED = os.environ.get("EVENTLOG_SEED", "20")


@pytest.mark.in_turn
@pytest.mark.parametrize("database", [*databases(), "postgresql, row triggers"])
def test_messages_and_change_tables_say_what_the_tables_went_through(
    database: str, request: pytest.FixtureRequest
) -> None:
    name, _, kind = database.partition(", ")
    engine: Engine = request.getfixturevalue(name)
    truncates = offers(dialect_of(engine), "truncate_trigger")
    seen.tracked_tables(engine, Style.IMAGE, rows=bool(kind))
    work = RandomWork(engine, Random(SEED), truncates=truncates, watched=True)
    had: Counter[str] = Counter()
    for start in range(0, TRANSACTIONS, A_ROUND):
        for _ in range(min(A_ROUND, TRANSACTIONS - start)):
            work.transact()
        expected = by_object([change for transaction in work.told for change in transaction])
        catalog, _, changes = seen.taken(engine)
        assert by_object([said for _, said in seen.messages(changes, catalog)]) == expected
        assert by_object([said for _, said in seen.change_rows(changes, catalog)]) == expected
        had.update(had_in(work.told))
        had.update(change[1] for transaction in work.told for change in transaction)
        work.told.clear()
    had.update(work.had)
    wanted = set(Had).difference(() if truncates else (Had.TRUNCATED,))
    assert min(had[what] for what in ("INSERT", "UPDATE", "DELETE")) > TRANSACTIONS // 4
    assert not [what for what in wanted if not had[what]], had
