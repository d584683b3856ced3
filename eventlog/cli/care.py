"""`eventlog hold`, `release`, `requeue`, `purge`: operating on rows."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from eventlog.cli.log import check_letters
from eventlog.cli.show import say, show_json
from eventlog.cli.site import Site, json_option, site_options
from eventlog.core.errors import UsageError

if TYPE_CHECKING:
    from eventlog.admin.purge import Purged
    from eventlog.sql.log import Log

NOTE_SECONDS = 10.0
"""Seconds between notes about long work where there is no terminal."""


@click.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--why", metavar="TEXT", default="", help="Noted beside the rows, with who holds them and since when.")
@json_option
@site_options
def hold(site: Site, ids: tuple[str, ...], why: str, as_json: bool) -> None:
    """Holds waiting rows back until they are released. Later rows of their objects wait behind them.

    Example: eventlog hold 5 7-9 --why "address to be checked" --database sqlite:///app.db
    """
    from eventlog.admin.rows import hold as keep
    from eventlog.admin.rows import read_runs_of_ids

    runs = read_runs_of_ids(ids)
    count = keep(_log(site), runs, by=_somebody(), why=why)
    _tell("held", count, as_json=as_json, sentence=f"{count} waiting row(s) held.")


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "every", is_flag=True, help="Every row that is held.")
@json_option
@site_options
def release(site: Site, ids: tuple[str, ...], every: bool, as_json: bool) -> None:
    """Lets held rows be published again.

    Example: eventlog release 7-9 --database sqlite:///app.db
    """
    from eventlog.admin.rows import EVERYTHING, read_runs_of_ids
    from eventlog.admin.rows import release as let_go

    if bool(ids) is every:
        raise UsageError("Say which rows are released: their numbers, or --all.")
    count = let_go(_log(site), [EVERYTHING] if every else read_runs_of_ids(ids))
    _tell("released", count, as_json=as_json, sentence=f"{count} row(s) released.")


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--status", "letters", metavar="LETTERS", default="", help="Rows with one of these letters, e.g. EW.")
@click.option("--table", metavar="NAME", help="Only rows of this table, with its schema or without.")
@json_option
@site_options
def requeue(site: Site, ids: tuple[str, ...], letters: str, table: str | None, as_json: bool) -> None:
    """Lets processed rows wait again: their letter becomes N, and attempts and reasons are forgotten.

    Example: eventlog requeue --status E --table usr --database sqlite:///app.db
    """
    from eventlog.admin.rows import EVERYTHING, PROCESSED, Choice, read_runs_of_ids
    from eventlog.admin.rows import requeue as let_wait

    if not ids and not letters:
        raise UsageError("Say which rows wait again: their numbers, or --status E.")
    letters, log = _known(letters, PROCESSED) or PROCESSED, _log(site)
    choice = Choice(letters=letters, table=_meant(log, table))
    count = let_wait(log, read_runs_of_ids(ids) if ids else [EVERYTHING], choice)
    _tell("requeued", count, as_json=as_json, sentence=f"{count} row(s) wait again.")


@click.command()
@click.option("--older-than", "age", metavar="AGE", required=True, help="By event_time, e.g. 30d, 12h or 2w.")
@click.option(
    "--archive", type=click.Path(path_type=Path, file_okay=False), help="Write the rows into this folder first."
)
@click.option(
    "--status", "letters", metavar="LETTERS", default="", help="Rows with one of these letters (default: SWE)."
)
@click.option("--table", metavar="NAME", help="Only rows of this table, with its schema or without.")
@json_option
@site_options
def purge(site: Site, age: str, archive: Path | None, letters: str, table: str | None, as_json: bool) -> None:
    """Deletes old processed rows: a few thousand at a time, with --archive after they were written to Parquet files.

    Rows that wait (N) or that stopped the publisher (F) stay, unless --status names them.

    Example: eventlog purge --older-than 30d --archive history --database sqlite:///app.db
    """
    from eventlog.admin.archive import Archive
    from eventlog.admin.purge import ENDED, Purge
    from eventlog.admin.purge import purge as take_away
    from eventlog.admin.rows import PROCESSED, read_age

    wanted = Purge(age=read_age(age), letters=_known(letters, f"N{PROCESSED}") or ENDED)
    log = _log(site)
    wanted = replace(wanted, table=_meant(log, table))
    files = None if archive is None else Archive(archive, log.name)
    done = _watched(take_away(log, wanted, files))
    if as_json:
        show_json(done)
    else:
        kept = f", {done.archived} archived in {len(done.files)} file(s) in {archive}" if archive else ""
        click.echo(f"{done.rows} row(s) deleted{kept}.")


def _meant(log: Log, table: str | None) -> str | None:
    """The table as the log names it; that nothing is about it is said and no failure, for its rows may have gone already."""
    from eventlog.admin.rows import table_meant

    if table is None:
        return None
    name, problem = table_meant(log, table)
    if problem is not None:
        say(problem, err=True)
    return name


def _log(site: Site) -> Log:
    from eventlog.sql.log import Log

    engine = site.engine()
    found = Log(engine, site.names(engine))
    found.check()
    return found


def _somebody() -> str:
    """Who runs the command, where the system can say it."""
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def _known(letters: str, known: str) -> str:
    """Letters that the publisher writes; others belong to whoever parked rows under them."""
    found = check_letters(letters)
    strange = [letter for letter in found if letter not in known]
    if strange:
        raise UsageError(f"--status {strange[0]} cannot be meant here; it takes {', '.join(known)}.")
    return found


def _watched(steps: Iterable[Purged]) -> Purged:
    """The last step; on the way it is said how far the work is: on a terminal in place, else every ten seconds."""
    from eventlog.admin.purge import Purged

    done = Purged()
    start = said = time.monotonic()
    live = sys.stderr.isatty()
    for done in steps:
        now = time.monotonic()
        if now - said >= (0.2 if live else NOTE_SECONDS):
            said = now
            text = f"{done.rows:,} rows, {done.rows / (now - start):,.0f}/s"
            click.echo(f"\r{text}" if live else text, err=True, nl=not live)
    if live and said > start:
        click.echo(err=True)
    return done


def _tell(what: str, count: int, *, as_json: bool, sentence: str) -> None:
    if as_json:
        show_json({what: count})
    else:
        click.echo(sentence)
