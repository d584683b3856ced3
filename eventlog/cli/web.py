"""`eventlog web`: the status page by itself."""

from __future__ import annotations

import sys

import click

from eventlog.cli.site import Site, site_options
from eventlog.config.settings import Config


@click.command()
@click.option(
    "--http", "address", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True, help="Where the page is."
)
@click.option("--read-only", is_flag=True, help="Nobody can hold, release or requeue rows.")
@site_options
def web(site: Site, address: str, read_only: bool) -> int:
    """Shows the log in a browser: backlog, lag, outcomes, every row and the reason for its status.

    Ctrl-C ends it; SIGHUP makes it read its configuration again.

    Example: eventlog web --database sqlite:///app.db
    """
    from eventlog.core.errors import ConfigError
    from eventlog.core.secrets import secrets_in
    from eventlog.daemon.logging import journal
    from eventlog.daemon.signals import requests_by_signal
    from eventlog.web.door import open_page, watched_only

    def shown(config: Config) -> Config:
        return watched_only(config) if read_only else config

    site.names(site.engine())  # says what is missing before anything listens
    secrets = list(secrets_in(site.config))
    said = journal("console" if sys.stderr.isatty() else "json", secrets=secrets)
    page = open_page(address, shown(site.config), said)

    def reload() -> None:
        try:
            config = site.read_again()
        except ConfigError as error:
            said.error("reload_failed", error=str(error))
            return
        secrets.extend(secrets_in(config))
        page.adopt(shown(config))
        said.info("reloaded")

    try:
        with requests_by_signal(page.stop, reload):
            click.echo(f"The page is at {page.url}", err=True)
            page.wait()
    finally:
        page.close()
    return 0
