"""`eventlog purge`: deletes old rows, and archives them before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from eventlog.care.row_commands import resolve_statuses, resolve_table
from eventlog.cli.asking import agree, asking_options
from eventlog.cli.show import show_done, show_json, show_sentence
from eventlog.cli.site import Site, json_option, site_options, table_option
from eventlog.cli.watching import RowTally, has_terminal, watching
from eventlog.core.errors import UsageError
from eventlog.core.plural import count_words
from eventlog.sinks.store.address import is_address

if TYPE_CHECKING:
    from eventlog.purge.archive import Row
    from eventlog.purge.deleting import Purged
    from eventlog.sinks.store.objects import Bucket
    from eventlog.sql.log import Log


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
    "statuses",
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
    statuses: str,
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
    from eventlog.care.rows import PROCESSED, read_age
    from eventlog.purge import deleting
    from eventlog.purge.archive import Archive

    if hide and archive is None:
        message = "--hide is about an archive, and none is asked for."
        raise UsageError(message, hint="Add --archive FOLDER.")
    # All that may be wrong with the words, before the database is asked anything.
    target: Path | Bucket | None = None
    if archive is not None and is_address(archive):
        from eventlog.sinks.store.objects import objects_at

        target = objects_at(archive, what="--archive")
    elif archive is not None:
        target = Path(archive)
    wanted = deleting.Purge(age=read_age(age), statuses=resolve_statuses(statuses, f"N{PROCESSED}") or deleting.ENDED)
    log = site.log()
    wanted = replace(wanted, table=resolve_table(log, table))
    total = None
    # Else nobody would see the figure, and it reads all of the log.
    if dry or not yes or has_terminal():
        total = deleting.count_old(log, wanted)
    would = f"{count_words(total or 0, 'row')} would be deleted."
    if dry:
        show_done("would_delete", total or 0, would, as_json=as_json)
        return
    agree([would] if total else [], yes=yes)
    files = None
    if target is not None:
        masked = _hiding(site, log) if hide else lambda row: row
        files = Archive(target, log.name, masked, _write_definitions(site, log))
    purged = _watch(deleting.purge(log, wanted, files), total)
    if as_json:
        show_json(purged)
        return
    sentence = f"{count_words(purged.rows, 'row')} deleted"
    if archive is not None:
        count = count_words(len(purged.files), "file")
        sentence += f", {purged.archived:,} archived in {count} in {archive}"
    show_sentence(f"{sentence}.")


def _write_definitions(site: Site, log: Log) -> bytes | None:
    """Write the definitions of the log's images; None if it has none."""
    from eventlog.config.build import log_catalog_of
    from eventlog.core.schema_file import catalog_to_json

    catalog = log_catalog_of(log.engine, log.names, site.log_config)
    has_images = catalog.former is not None and catalog.former.images
    return catalog_to_json(catalog) if has_images else None


def _hiding(site: Site, log: Log) -> Callable[[Row], Row]:
    """Make a function masking an archive's row by the policies of all outputs."""
    from eventlog.config.build import log_catalog_of
    from eventlog.explain.masking import mask_of
    from eventlog.purge.archive import COLUMNS

    mask = mask_of(site.config, log_catalog_of(log.engine, log.names, site.log_config))
    if mask is None:
        raise UsageError(
            "No value is hidden from every output.",
            hint="Without --hide the archive has every value; policies of the outputs say what is hidden.",
        )

    def without_hidden(row: Row) -> Row:
        values = dict(zip(COLUMNS, row, strict=True))
        return tuple((values | mask.texts(values)).values())

    return without_hidden


def _watch(steps: Iterable[Purged], total: int | None) -> Purged:
    """Run the steps, showing progress with a bar on a terminal; return the last one."""
    from eventlog.purge.deleting import Purged

    purged, tally = Purged(), RowTally()
    with watching() as watch:
        watch.begin("purge", total, tally)
        try:
            for purged in steps:
                tally.rows = purged.rows
                watch.look()
        except KeyboardInterrupt:
            # Each step is a transaction, so what was deleted by then stays deleted.
            rows = count_words(purged.rows, "row")
            reason = f"{rows} deleted, and the same command continues from there"
            raise KeyboardInterrupt(reason) from None
    return purged
