"""`eventlog refresh`: has every row of tables told as it is, while changes go on."""

from __future__ import annotations

from typing import Final

import click
from msgspec import Struct

from eventlog.admin.refresh import CHUNK_ROWS, GO_ON, Load, Refresh, RefreshPace, work_on
from eventlog.cli.outputs import configured
from eventlog.cli.show import say, show_json
from eventlog.cli.site import Site, complete_outputs, complete_tables, json_option, site_options
from eventlog.cli.watching import RowTally, Watching, watching
from eventlog.core.errors import ConfigError
from eventlog.core.plural import counted
from eventlog.sql.connect import reading_engine
from eventlog.sql.log import Log

MOST_JOBS: Final = 15
"""So many sessions SQLAlchemy opens to a database at once, unless told otherwise."""


MOST_ROWS: Final = 1_000_000_000
"""Rows that an option may name."""


class Refreshed(Struct, frozen=True, kw_only=True):
    """What was done with one table; `before` rows had been written when the load was broken off."""

    table: str
    rows: int
    before: int = 0


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...", shell_complete=complete_tables)
@click.option("--where", metavar="CONDITION", help="Only rows for which this SQL condition holds.")
@click.option(
    "--chunk",
    type=click.IntRange(1, MOST_ROWS),
    default=CHUNK_ROWS,
    show_default=True,
    metavar="ROWS",
    help="Rows in one transaction.",
)
@click.option(
    "--backlog",
    type=click.IntRange(0, MOST_ROWS),
    default=0,
    metavar="ROWS",
    help="Pause while this many rows wait in the log (default: never).",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST_JOBS),
    default=1,
    show_default=True,
    metavar="N",
    help="Cut each table into ranges of its key, and work on this many at the same time.",
)
@click.option(
    "--output",
    "only",
    metavar="NAME",
    shell_complete=complete_outputs,
    help="Only this output of the configuration gets the rows, such as one that was added later.",
)
@click.option("--again", is_flag=True, help="Start again from the beginning, even after an interrupted refresh.")
@json_option
@site_options
def refresh(
    site: Site,
    tables: tuple[str, ...],
    where: str | None,
    chunk: int,
    backlog: int,
    jobs: int,
    only: str | None,
    again: bool,
    as_json: bool,
) -> None:
    """Publishes every row that tables have now: a full load, while changes go on.

    It writes one row into the log for each row of the table. A refresh that was interrupted continues where it stopped.

    Example: eventlog refresh usr grp --backlog 50000 --database sqlite:///app.db
    """
    from eventlog.admin.outputs import refuse_unknown, refuse_unserved

    if only is not None:
        refuse_unknown(only, configured(site))
    log, found = _planned(site, tables, where, only or "")
    if only is not None:
        refuse_unserved(log, only)
    jobs = _possible(jobs, log)
    done = []
    reading = reading_engine(log.engine, site.config.source.reader)
    with watching() as watch:
        for load in found:
            work = Refresh(log, load, RefreshPace(chunk=chunk, backlog=backlog), reading=reading)
            one = _refreshed(work, load, watch, again=again, jobs=jobs)
            done.append(one)
            if not as_json:
                on = f", {one.before} of them before it was interrupted" if one.before else ""
                to = f" to {only} alone" if only else ""
                say(
                    f"{one.table}: {counted(one.rows, 'row')} {'waits' if one.rows == 1 else 'wait'} to be published{to} as they are{on}."
                )
    if as_json:
        show_json(done)


def _planned(site: Site, tables: tuple[str, ...], where: str | None, only: str) -> tuple[Log, list[Load]]:
    from eventlog.admin.refresh import loads
    from eventlog.sql.triggers import located

    kind = site.config.source.kind
    if kind != "log":
        hint = "Load the tables by other means; `refresh` needs the log of triggers."
        raise ConfigError(f"The source is {kind}, which has no event log to write into.", hint=hint)
    engine = site.engine()
    with engine.connect() as connection:
        names = located(connection, site.names(engine))
    log = Log(engine, names)
    log.check()
    found = loads(engine, names, tables, site.schema, where, only)
    for load in found:
        if not load.tracked:
            say(
                f"No trigger of this log stands on {load.called}: what changes meanwhile is published only if"
                " something else logs it.",
                err=True,
            )
    return log, found


def _possible(jobs: int, log: Log) -> int:
    if jobs == 1 or not log.dialect.lone_writer:
        return jobs
    click.echo(f"{log.dialect.name} lets one session write at a time: --jobs {jobs} is taken as 1.", err=True)
    return 1


def _refreshed(work: Refresh, load: Load, watch: Watching, *, again: bool, jobs: int) -> Refreshed:
    stands = work.begin(again=again, jobs=jobs)
    before = sum(stand.rows for stand in stands)
    tally = RowTally()
    watch.begin(f"refresh {load.called}", max(sum(stand.total for stand in stands) - before, 0), tally)

    def tell(rows: int) -> None:
        tally.rows = rows - before

    try:
        work_on(work, stands, jobs, tell)
    except KeyboardInterrupt:
        say(f"{load.called}: {counted(before + tally.rows, 'row')} written. {GO_ON}", err=True)
        raise
    return Refreshed(table=load.called, rows=before + tally.rows, before=before)
