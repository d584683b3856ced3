"""What messages and change tables tell of the rows of a log, as `tests.support.random_work` compares it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.config.build import with_definitions
from eventlog.config.outputs import OutputConfig
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.model import Change, Event
from eventlog.core.rules import Decision, Round
from eventlog.core.rules.meaning import together
from eventlog.core.schema import Catalog
from eventlog.core.seams import encode
from eventlog.daemon.publisher import Publisher
from eventlog.publisher.decide import parts_of
from eventlog.qlik.change_tables.format import ChangeTableFormat
from eventlog.qlik.change_tables.rows import RowsDocument
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.qlik.messages.document import MessagesDocument
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sources.log.reading import LogSettings
from eventlog.sql.findlog import log_columns, with_schema
from eventlog.sql.names import LogNames
from eventlog.tracked.classes import list_tracked
from eventlog.tracked.options import Style, TriggerOptions
from tests.support.log_rows import LogRows, TakenRows
from tests.support.logged import run
from tests.support.messages import Count, CountedMessages
from tests.support.random_work import KEYS, TABLES, RandomWork, Told, pairs, typed

Headers = dict[str, Any]


def tracked_tables(engine: Engine, style: Style, *, rows: bool = False) -> None:
    """Create a log and track the tables of random work; `rows` chooses row triggers."""
    install(engine)
    run(engine, *TABLES)
    track(engine, list(KEYS), TriggerOptions(style=style, rows=rows))


def published(work: RandomWork, output: OutputConfig, *, rounds: int, transactions: int) -> None:
    """Works and publishes in turn; nothing is left waiting, and nothing was refused."""
    url = work.engine.url.render_as_string(hide_password=False)
    config = Config(
        source=SourceConfig(url=url),
        publisher=PublisherConfig(allow_loopback=True, query_limit=70),
        output=(output,),
    )
    with Publisher(config) as publisher:
        for _ in range(rounds):
            for _ in range(transactions):
                work.transact()
            for _ in publisher.rounds(until_empty=True):
                pass
    with work.engine.connect() as connection:
        assert set(connection.exec_driver_sql("SELECT status FROM event_log").scalars()) == {"S"}


def tracked_catalog(engine: Engine) -> Catalog:
    """Read the tracked tables with the history of their definitions."""
    with engine.connect() as connection:
        catalog = Catalog(list_tracked(connection, with_schema(connection, LogNames())))
    return with_definitions(engine, LogNames(), catalog)


def decided(asked: Round, events: Sequence[Event]) -> Decision:
    """Decide on events all written under the present definitions."""
    return together([part.decision for part in parts_of(asked, [events])])


def taken(engine: Engine) -> tuple[Catalog, TakenRows, list[Change]]:
    """Take all waiting rows as one batch and decide on it; empties the log."""
    catalog = tracked_catalog(engine)
    source = LogRows(engine, log_columns(engine, LogNames()), catalog, LogSettings(transactions=True, ends=True))
    batch = source.read(0)
    decision = decided(Round(catalog=catalog), batch.events)
    assert not decision.outcomes.others, decision.outcomes.others
    run(engine, "DELETE FROM event_log", "DELETE FROM event_log_mark WHERE name NOT LIKE 'asked%'")
    return catalog, batch, decision.changes


def messages(changes: Iterable[Change], catalog: Catalog, count: Count | None = None) -> list[tuple[Headers, Told]]:
    """Read the contents of messages, each with its headers."""
    found = []
    form = CountedMessages(settings=MessageSettings(mode="bare"), count=count or list)
    for document in encode(form, changes, catalog, ""):
        assert isinstance(document, MessagesDocument)
        for message in document.messages:
            said = json.loads(message.value or b"")
            before, row = (None if said[name] is None else pairs(typed(said[name])) for name in ("beforeData", "data"))
            table = message.topic.rpartition(".")[2]
            found.append((said["headers"], (table, said["headers"]["operation"], before, row)))
    return found


def change_rows(changes: Iterable[Change], catalog: Catalog) -> list[tuple[str, Told]]:
    """Read the contents of change tables, each with its transaction; a before-image joins its row."""
    found: list[tuple[str, Told]] = []
    for document in encode(ChangeTableFormat(settings=ChangeTableSettings()), changes, catalog, ""):
        assert isinstance(document, RowsDocument)
        for block in document.blocks:
            before = None
            own = [column.name for column in block.columns[7:]]
            for row in block.rows:
                told = pairs(typed(dict(zip(own, row[7:], strict=True))))
                if row[1] == "B":
                    before = told
                    continue
                found.append((str(row[5]), (block.table.name, str(row[4]), before, told)))
                before = None
    return found
