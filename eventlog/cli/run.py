"""`eventlog run`: the publisher."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from eventlog.cli.site import Site, site_options
from eventlog.config import Config, FilesOutput
from eventlog.errors import EX_UNAVAILABLE, OK


@click.command()
@click.option("--once", is_flag=True, help="One cycle.")
@click.option("--until-empty", is_flag=True, help="Until nothing is left that can be published now.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write the documents into this folder.")
@site_options
def run(site: Site, once: bool, until_empty: bool, out: Path | None) -> int:
    """Publishes waiting rows: to the configured outputs, else to standard output.

    Example: eventlog run --database sqlite:///app.db --until-empty --out documents
    """
    from eventlog.daemon import Publisher

    config = _with_folder(site.config, out)
    site.url  # noqa: B018  # says what is missing before anything is opened
    with Publisher(config) as publisher, publisher.stopped_by_signals():
        if once:
            reports = iter([publisher.run_once()])
        else:
            reports = publisher.rounds(until_empty=until_empty)
        for report in reports:
            if report.events:
                click.echo(f"{report.events} rows, {report.changes} changes, {report.documents} documents", err=True)
            if report.fatal:
                click.echo("eventlog: a receiver answered 'fatal'; the publisher stops.", err=True)
                return EX_UNAVAILABLE
    return OK


def _with_folder(config: Config, out: Path | None) -> Config:
    return config if out is None else replace(config, output=(FilesOutput(path=str(out)),))
