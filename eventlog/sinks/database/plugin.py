"""The sink `database`: change tables in a database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from eventlog.core.errors import ConfigError
from eventlog.core.outputs import Places
from eventlog.core.plugins import Finding, SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.qlik.change_tables.settings import ChangeTableSettings
from eventlog.sinks.database.settings import DatabaseSettings


class DatabaseOutput(
    DatabaseSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="database"
):
    """Change tables in a database."""

    format: Literal["change-tables"] = "change-tables"
    change_tables: ChangeTableSettings = ChangeTableSettings()

    @property
    def places(self) -> Places:
        """Name the output's places: tables of a database."""
        return "table", "a database", ()


def _sink(order: SinkOrder) -> Sink:
    from eventlog.sinks.database.sink import DatabaseSink

    return DatabaseSink(order.output)


def _place(output: DatabaseOutput) -> str:
    from eventlog.sql.connect import make_readable_url, read_url

    # The task is a part of the place: two of them may stand in one schema.
    return f"database {make_readable_url(read_url(output.url))} {output.schema or ''} {output.task}"


def _findings(output: DatabaseOutput) -> Iterator[Finding]:
    from eventlog.sinks.database.control import try_tables
    from eventlog.sinks.database.mirror_keys import loose_mirrors
    from eventlog.sql.access import find_losses, in_our_words
    from eventlog.sql.connect import connect, missing_file, read_url
    from eventlog.sql.dialect import dialect_of

    missing = missing_file(read_url(output.url))
    if missing is not None:
        mend = "The publisher makes it; is the path right?"
        yield Finding(message=f"The database {missing} does not exist.", mend=mend)
        return
    yield Finding(message=try_tables(output))
    engine = connect(output.url)
    try:
        with in_our_words(engine, "The database of the change tables"), engine.connect() as connection:
            for level, problem, mend in find_losses(connection, dialect_of(engine)):
                if level == "failure":
                    raise ConfigError(problem, hint=mend)
                yield Finding(message=problem, mend=mend)
        for problem, mend in loose_mirrors(engine, output.schema):
            yield Finding(message=problem, mend=mend)
    finally:
        engine.dispose()


DATABASE: Final = SinkPlugin(
    settings=DatabaseOutput,
    build=_sink,
    place=_place,
    formats=("change-tables",),
    check=_findings,
)
