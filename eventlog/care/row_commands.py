"""`eventlog hold`, `release`, `requeue`: operating on rows."""

from __future__ import annotations

from getpass import getuser
from typing import TYPE_CHECKING

import click

from eventlog.care.log_commands import check_statuses
from eventlog.cli.asking import agree, asking_options, can_ask
from eventlog.cli.show import say, show_done
from eventlog.cli.site import Site, json_option, site_options, table_option
from eventlog.core.errors import UsageError
from eventlog.core.plural import count_words

if TYPE_CHECKING:
    from eventlog.sql.log import Log


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--why", metavar="TEXT", default="", help="A reason, stored with user and time.")
@json_option
@site_options
def hold(site: Site, ids: tuple[str, ...], why: str, as_json: bool) -> None:
    """Holds waiting rows back until they are released. Later rows of their objects wait too.

    Example: eventlog hold 5 7-9 --why "address to be checked"
    """
    from eventlog.care.rows import describe_states, read_runs_of_ids
    from eventlog.care.rows import hold as keep

    runs, log = read_runs_of_ids(ids), site.log()
    held = keep(log, runs, by=somebody(), why=why)
    if held.rows:
        sentence = f"{count_words(held.rows, 'waiting row')} held."
    else:
        sentence = f"No row was held, for none of these waits: {describe_states(log, runs)}."
    show_done("held", held.rows, f"{sentence} {held.sentence}".rstrip(), as_json=as_json)


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every row that is held.")
@json_option
@site_options
def release(site: Site, ids: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Lets held rows be published again.

    Example: eventlog release 7-9
    """
    from eventlog.care.rows import EVERYTHING, describe_states, read_runs_of_ids
    from eventlog.care.rows import release as let_go

    # Neither of them, or both.
    if bool(ids) is every:
        raise UsageError("Say which rows are released: their numbers, or --all.")
    log, runs = site.log(), [EVERYTHING] if every else read_runs_of_ids(ids)
    count = let_go(log, runs)
    sentence = "No row was released, for none is held."
    if count:
        sentence = f"{count_words(count, 'row')} released."
    elif ids:
        sentence = f"No row was released, for none of these is held: {describe_states(log, runs)}."
    show_done("released", count, sentence, as_json=as_json)


@click.command()
@click.argument("ids", nargs=-1)
@click.option(
    "--status",
    "statuses",
    metavar="LETTERS",
    default="",
    help="Rows with one of these statuses, e.g. EW.",
)
@table_option
@asking_options
@json_option
@site_options
def requeue(
    site: Site,
    ids: tuple[str, ...],
    statuses: str,
    table: str | None,
    dry: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Publishes processed rows again: their status becomes N; reasons and attempts are deleted.

    On a terminal it asks first.

    Example: eventlog requeue --status E --table usr
    """
    from eventlog.care.rows import EVERYTHING, PROCESSED, Choice, count_requeued, describe_states, read_runs_of_ids
    from eventlog.care.rows import requeue as let_wait

    if not ids and not statuses:
        raise UsageError("Say which rows wait again: their numbers, or --status E.")
    statuses, log = resolve_statuses(statuses, PROCESSED) or PROCESSED, site.log()
    choice = Choice(statuses=statuses, table=resolve_table(log, table))
    runs = read_runs_of_ids(ids) if ids else [EVERYTHING]
    # To count reads the rows once more, so it is done only for somebody who looks at the number.
    if dry or (can_ask() and not yes):
        count = count_requeued(log, runs, choice)
        would = f"{count_words(count, 'row')} would wait again."
        if dry:
            show_done("would_requeue", count, would, as_json=as_json)
            return
        agree([would], yes=yes)
    count = let_wait(log, runs, choice)
    sentence = "No such row was processed."
    if count:
        sentence = f"{count_words(count, 'row waits', 'rows wait')} again."
    elif ids:
        sentence = f"No such row was processed: {describe_states(log, runs)}."
    show_done("requeued", count, sentence, as_json=as_json)


def resolve_table(log: Log, table: str | None) -> str:
    """Find the log's name of the table; a table without rows is a notice and no failure, for its rows may
    have gone already.
    """
    from eventlog.care.rows import table_meant

    if table is None:
        return ""
    # Of a variable that a script has not set, perhaps: every table is not meant by that.
    if not table.strip():
        raise UsageError("--table needs the name of a table.")
    name, problem = table_meant(log, table)
    if problem is not None:
        say(problem, err=True)
    return name


def somebody() -> str:
    """Name the user of the command, where the system can say it."""
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def resolve_statuses(statuses: str, known: str) -> str:
    """Check statuses against those the publisher writes; others belong to whoever parked rows with
    them.
    """
    checked = check_statuses(statuses)
    strange = [status for status in checked if status not in known]
    if strange:
        meant = strange[0].upper()
        takes = f"did you mean {meant}?" if meant in known else f"it takes {', '.join(known)}."
        raise UsageError(f"--status {strange[0]} cannot be meant here; {takes}")
    return checked
