"""`eventlog refresh`: has every row of tables published as it is, while changes go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from eventlog.care.output_commands import name_configured_outputs
from eventlog.cli.show import say, show_json
from eventlog.cli.site import (
    MOST_JOBS,
    Site,
    complete_outputs,
    complete_tables,
    json_option,
    number_option,
    site_options,
)
from eventlog.cli.watching import RowTally, Watching, watching
from eventlog.core.errors import EX_CONFIG, OK, ConfigError, InstallError
from eventlog.core.plural import count_words
from eventlog.refresh import CHUNK_ROWS

if TYPE_CHECKING:
    from eventlog.refresh.chunks import Refresh
    from eventlog.refresh.loads import Load
    from eventlog.sql.log import Log
    from eventlog.verify.resending import Resending


class Refreshed(Struct, frozen=True, kw_only=True):
    """What was done with one table; `before` rows had been written when the load was broken off."""

    table: str
    rows: int
    before: int = 0


class RefreshedByComparison(Refreshed, frozen=True, kw_only=True):
    """So many rows were compared with what a receiver has, of which those that differ are sent."""

    compared: int
    note: str


@click.command()
@click.argument("tables", nargs=-1, required=True, metavar="TABLE...", shell_complete=complete_tables)
@click.option("--where", metavar="CONDITION", help="Only rows for which this SQL condition holds.")
@number_option("--chunk", "Rows in one transaction.", default=CHUNK_ROWS, metavar="ROWS")
@number_option(
    "--backlog",
    "Pause while this many rows wait in the log (default: never).",
    least=0,
    default=0,
    metavar="ROWS",
)
@number_option(
    "--jobs",
    "Cut each table into ranges of its key, and work on this many at the same time.",
    most=MOST_JOBS,
    default=1,
)
@click.option(
    "--output",
    "only",
    metavar="NAME",
    shell_complete=complete_outputs,
    help="Only this output gets the rows, such as a new one.",
)
@click.option("--again", is_flag=True, help="Publish every row, from the beginning.")
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
) -> int:
    """Publishes every row that tables have now: a full load, while changes continue.

    It writes one row into the log for each row of the table. An interrupted refresh continues
    where it stopped. A SCIM server is compared first, and gets only what differs.

    Example: eventlog refresh usr grp --backlog 50000
    """
    from eventlog.care.outputs import refuse_unknown
    from eventlog.refresh.chunks import Refresh
    from eventlog.refresh.loads import RefreshPace
    from eventlog.sql.connect import reading_engine

    if only is not None:
        refuse_unknown(only, name_configured_outputs(site))
    log, planned = _plan(site, tables, where, only or "")
    compared = _find_compared(site, log, tables, only or "", is_whole=where is None and not again)
    if jobs > 1 and log.dialect.lone_writer:
        what = f"{log.dialect.name} lets one session write at a time"
        click.echo(f"{what}: --jobs {jobs} is taken as 1.", err=True)
        jobs = 1
    done: list[Refreshed] = []
    reading = reading_engine(log.engine, site.config.source.reader)
    pace = RefreshPace(chunk=chunk, backlog=backlog)
    with watching() as watch:
        for load in planned:
            # A table that cannot be loaded is no reason to leave the others alone.
            try:
                work = Refresh(log, load, pace, reading=reading)
            except InstallError as error:
                say(f"{load.called} is left out: {error}", err=True)
                continue
            refreshed: Refreshed | None = None
            if compared is not None and not work.is_begun:
                refreshed = _send_differing(compared, load, watch)
            if refreshed is None:
                refreshed = _refresh_table(work, load, watch, again=again, jobs=jobs)
            done.append(refreshed)
            if not as_json:
                say(_describe(refreshed, only))
    if as_json:
        show_json(done)
    if len(done) < len(planned):
        return EX_CONFIG
    return OK


def _find_compared(site: Site, log: Log, tables: Sequence[str], only: str, *, is_whole: bool) -> Resending | None:
    """Begin to compare with the one output that gets the rows, if its receiver can be."""
    from eventlog.care.outputs import refuse_unserved
    from eventlog.verify.resending import begin_comparison

    if only:
        refuse_unserved(log, only)
    return begin_comparison(log, site.config, tables, site.schema, only) if is_whole else None


def _send_differing(compared: Resending, load: Load, watch: Watching) -> RefreshedByComparison | None:
    """Send what differs; None where every row is to be sent."""
    watch.begin(f"compare {load.called}", None, compared.verifier)
    verified = compared.send(load.called)
    proof = verified.proof
    if compared.sends_all(verified):
        differing = count_words(proof.differing, "row differs", "rows differ")
        why = proof.problem or f"At least {differing} at {compared.output}."
        say(f"{load.called}: every row is sent. {why}", err=True)
        return None
    note = " ".join(proof.notes) if not proof.compared else ""
    if proof.waiting:
        note = f"{count_words(proof.waiting, 'other is', 'others are')} on the way."
    return RefreshedByComparison(table=load.called, rows=verified.repaired, compared=proof.rows, note=note)


def _describe(refreshed: Refreshed, only: str | None) -> str:
    rows = count_words(refreshed.rows, "row waits", "rows wait")
    sentence = f"{refreshed.table}: {rows} to be published"
    if only:
        sentence += f" to {only} alone"
    if refreshed.before:
        sentence += f", {refreshed.before} of them before it was interrupted"
    if isinstance(refreshed, RefreshedByComparison):
        compared = count_words(refreshed.compared)
        return f"{sentence}, of {compared} compared with what the receiver has. {refreshed.note}".rstrip()
    return f"{sentence}."


def _plan(
    site: Site,
    tables: tuple[str, ...],
    where: str | None,
    only: str,
) -> tuple[Log, list[Load]]:
    from eventlog.refresh.loads import loads

    kind = site.config.source.kind
    if kind != "log":
        message = f"The source is {kind}, which has no event log to write into."
        hint = "Load the tables by other means; `refresh` needs the log of triggers."
        raise ConfigError(message, hint=hint)
    log = site.log_of_triggers()
    planned = loads(log.engine, log.names, tables, site.schema, where, only)
    for load in planned:
        if not load.tracked:
            say(
                f"This log has no trigger on {load.called}: what changes during the load is"
                " published only if something else logs it.",
                err=True,
            )
    return log, planned


def _refresh_table(work: Refresh, load: Load, watch: Watching, *, again: bool, jobs: int) -> Refreshed:
    from eventlog.refresh.chunks import work_on

    states = work.begin(again=again, jobs=jobs)
    before = sum(state.rows for state in states)
    tally = RowTally()
    # The total is judged by the database, and may be less than there are.
    left = max(sum(state.total for state in states) - before, 0)
    watch.begin(f"refresh {load.called}", left, tally)

    def report(rows: int) -> None:
        tally.rows = rows - before

    try:
        work_on(work, states, jobs, report)
    except KeyboardInterrupt:
        written = count_words(before + tally.rows, "row")
        reason = f"{load.called}: {written} written, and the same command continues from there"
        raise KeyboardInterrupt(reason) from None
    return Refreshed(table=load.called, rows=before + tally.rows, before=before)
