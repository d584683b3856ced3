"""`eventlog web`: the status page by itself."""

from __future__ import annotations

import sys

import click

from eventlog.cli.site import Site, site_options


@click.command()
@click.option(
    "--http", "address", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="Where the page is."
)
@click.option("--read-only", is_flag=True, help="Nobody can hold, release or requeue rows.")
@site_options
def web(site: Site, address: str, read_only: bool) -> int:
    """Shows the log in a browser: backlog, lag, outcomes, every row and why it ended so. Ctrl-C ends it.

    Example: eventlog web --database sqlite:///app.db
    """
    from eventlog.daemon.signals import requests_by_signal
    from eventlog.journal import journal
    from eventlog.web.door import open_page

    site.names(site.engine())  # says what is missing before anything listens
    page = open_page(address, site.config, journal("console" if sys.stderr.isatty() else "json"), read_only=read_only)
    try:
        click.echo(f"The page is at {page.url}", err=True)
        with requests_by_signal(page.stop):
            page.wait()
    finally:
        page.close()
    return 0
