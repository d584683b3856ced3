"""`eventlog hold`, `release`, `requeue`, `purge`: operating on rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from eventlog.cli.asking import agree, asking_options, can_ask
from eventlog.cli.log import check_letters
from eventlog.cli.show import say, show_done, show_json, show_sentence
from eventlog.cli.site import Site, json_option, site_options, table_option
from eventlog.core.errors import UsageError
from eventlog.core.plural import counted
from eventlog.sinks.store.address import is_address

if TYPE_CHECKING:
    from eventlog.admin.purge import Purged
    from eventlog.sinks.store.objects import Bucket
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
    from eventlog.admin.rows import hold as keep
    from eventlog.admin.rows import read_runs_of_ids

    runs = read_runs_of_ids(ids)
    held = keep(site.log(), runs, by=somebody(), why=why)
    sentence = "No row was held, for none of these waits."
    if held.rows:
        sentence = f"{counted(held.rows, 'waiting row')} held."
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
    from eventlog.admin.rows import EVERYTHING, read_runs_of_ids
    from eventlog.admin.rows import release as let_go

    # Neither of them, or both.
    if bool(ids) is every:
        raise UsageError("Say which rows are released: their numbers, or --all.")
    count = let_go(site.log(), [EVERYTHING] if every else read_runs_of_ids(ids))
    sentence = "No row was released, for none is held."
    if count:
        sentence = f"{counted(count, 'row')} released."
    show_done("released", count, sentence, as_json=as_json)


@click.command()
@click.argument("ids", nargs=-1)
@click.option(
    "--status",
    "letters",
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
    letters: str,
    table: str | None,
    dry: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Publishes processed rows again: their status becomes N; reasons and attempts are deleted.

    On a terminal it asks first.

    Example: eventlog requeue --status E --table usr
    """
    from eventlog.admin.rows import EVERYTHING, PROCESSED, Choice, count_requeued, read_runs_of_ids
    from eventlog.admin.rows import requeue as let_wait

    if not ids and not letters:
        raise UsageError("Say which rows wait again: their numbers, or --status E.")
    letters, log = _known(letters, PROCESSED) or PROCESSED, site.log()
    choice = Choice(letters=letters, table=_meant(log, table))
    runs = read_runs_of_ids(ids) if ids else [EVERYTHING]
    # To count reads the rows once more, so it is done only for somebody who looks at the number.
    if dry or (can_ask() and not yes):
        count = count_requeued(log, runs, choice)
        would = f"{counted(count, 'row')} would wait again."
        if dry:
            show_done("would_requeue", count, would, as_json=as_json)
            return
        agree([would], yes=yes)
    count = let_wait(log, runs, choice)
    sentence = "No such row was processed."
    if count:
        waits = "waits" if count == 1 else "wait"
        sentence = f"{counted(count, 'row')} {waits} again."
    show_done("requeued", count, sentence, as_json=as_json)


@click.command()
@click.option("--older-than", "age", metavar="AGE", required=True, help="By event_time, e.g. 30d, 12h or 2w.")
@click.option(
    "--archive",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the rows into this folder first, or to an address: s3://….",
)
@click.option(
    "--hide",
    is_flag=True,
    help="With --archive: leave out values that policies hide from every output.",
)
@click.option(
    "--status",
    "letters",
    metavar="LETTERS",
    default="",
    help="Rows with one of these statuses (default: SWE).",
)
@table_option
@asking_options
@json_option
@site_options
def purge(
    site: Site,
    age: str,
    archive: str | None,
    hide: bool,
    letters: str,
    table: str | None,
    dry: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Deletes old processed rows, a few thousand at a time. With --archive they are written to
    Parquet files first.

    Rows with N or F stay, unless --status names them. It says how many rows would be deleted, and
    asks.

    Example: eventlog purge --older-than 30d --archive history --yes
    """
    from eventlog.admin.purge import ENDED, Archive, Purge, count_old
    from eventlog.admin.purge import purge as take_away
    from eventlog.admin.rows import PROCESSED, read_age
    from eventlog.cli.watching import watched

    if hide and archive is None:
        message = "--hide is about an archive, and none is asked for."
        raise UsageError(message, hint="Add --archive FOLDER.")
    # All that may be wrong with the words, before the database is asked anything.
    place: Path | Bucket | None = None
    if archive is not None and is_address(archive):
        from eventlog.sinks.store.objects import objects_at

        place = objects_at(archive, what="--archive")
    elif archive is not None:
        place = Path(archive)
    wanted = Purge(age=read_age(age), letters=_known(letters, f"N{PROCESSED}") or ENDED)
    log = site.log()
    wanted = replace(wanted, table=_meant(log, table))
    total = None
    # Else nobody would see the figure, and it reads all of the log.
    if dry or not yes or watched():
        total = count_old(log, wanted)
    would = f"{counted(total or 0, 'row')} would be deleted."
    if dry:
        show_done("would_delete", total or 0, would, as_json=as_json)
        return
    agree([would] if total else [], yes=yes)
    files = None
    if place is not None:
        files = Archive(place, log.name, _hiding(site, log) if hide else lambda row: row)
    purged = _watched(take_away(log, wanted, files), total)
    if as_json:
        show_json(purged)
        return
    sentence = f"{counted(purged.rows, 'row')} deleted"
    if archive is not None:
        count = counted(len(purged.files), "file")
        sentence += f", {purged.archived:,} archived in {count} in {archive}"
    show_sentence(f"{sentence}.")


def _hiding(site: Site, log: Log) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """What leaves out of a row of an archive what policies hide from every output."""
    from eventlog.admin.masking import mask_of
    from eventlog.config.build import log_catalog_of

    mask = mask_of(site.config, log_catalog_of(log.engine, log.names, site.log_config))
    if mask is None:
        raise UsageError(
            "No value is hidden from every output.",
            hint="Without --hide the archive has every value; policies of the outputs say what is hidden.",
        )
    return mask.archived


def _meant(log: Log, table: str | None) -> str:
    """The table as the log names it; that nothing is about it is said and no failure, for its rows
    may have gone already.
    """
    from eventlog.admin.rows import table_meant

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
    """Who runs the command, where the system can say it."""
    try:
        return getuser()
    except (KeyError, OSError):
        return ""


def _known(letters: str, known: str) -> str:
    """Letters that the publisher writes; others belong to whoever parked rows under them."""
    checked = check_letters(letters)
    strange = [letter for letter in checked if letter not in known]
    if strange:
        takes = f"it takes {', '.join(known)}"
        raise UsageError(f"--status {strange[0]} cannot be meant here; {takes}.")
    return checked


def _watched(steps: Iterable[Purged], total: int | None) -> Purged:
    """The last step; on the way it is said how far the work is, with a bar on a terminal."""
    from eventlog.admin.purge import Purged
    from eventlog.cli.watching import RowTally, watching

    purged, tally = Purged(), RowTally()
    with watching() as watch:
        watch.begin("purge", total, tally)
        try:
            for purged in steps:
                tally.rows = purged.rows
                watch.look()
        except KeyboardInterrupt:
            # Each step is a transaction, so what was deleted by then stays deleted.
            rows = counted(purged.rows, "row")
            reason = f"{rows} deleted, and the same command continues from there"
            raise KeyboardInterrupt(reason) from None
    return purged
