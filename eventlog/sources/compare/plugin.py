"""The source `compare`: tables without triggers, compared with what was published of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from eventlog.core.errors import ConfigError
from eventlog.core.plugins import Finding, SourceOrder, SourcePlugin
from eventlog.core.plural import count_words
from eventlog.sources.compare.settings import CompareSettings

if TYPE_CHECKING:
    from eventlog.sources.stream.source import StreamReader


def _reader(order: SourceOrder) -> StreamReader:
    from eventlog.sources.compare.reader import open_reader

    return open_reader(order)


def _findings(order: SourceOrder) -> Iterator[Finding]:
    """Yield whether the compared tables are readable and have keys."""
    from eventlog.sources.compare.reader import tables_at
    from eventlog.sql.connect import connect, make_readable_url
    from eventlog.sql.reflect import refuse_unknown_schema

    engine = connect(order.reader or order.url)
    try:
        if order.schema is not None:
            refuse_unknown_schema(engine, order.schema)
        tables = tables_at(engine, order.captured, order.schema, order.settings)
        keyless = [table.whole for table in tables if not table.key]
        if keyless or not len(tables):
            what = f"{keyless[0]} has no key" if keyless else "No table has a key"
            raise ConfigError(f"{what}, so its rows cannot be compared.", hint="Name others in source.tables.")
        yield Finding(message=f"{count_words(len(tables), 'table')} of {make_readable_url(engine.url)} can be compared")
    finally:
        engine.dispose()


COMPARE: Final = SourcePlugin(
    settings=CompareSettings,
    build=_reader,
    marks=lambda settings: settings.position,
    prefix="eventlog_compare",
    title="comparison",
    check=_findings,
)
