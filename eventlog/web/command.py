"""`eventlog web`: the status page by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO, cast

import click

from eventlog.cli.show import say
from eventlog.cli.site import Site, site_options
from eventlog.cli.watching import StandardError
from eventlog.config.settings import Config
from eventlog.core.errors import UsageError
from eventlog.daemon.command import learning, log_format_option

if TYPE_CHECKING:
    from eventlog.daemon.logging import Style


@click.command()
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="The address of the page (default: 127.0.0.1:8080).",
)
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="The port alone, on 127.0.0.1, as `receive` takes it.",
)
@click.option("--read-only", is_flag=True, help="Nobody can hold, release or requeue rows.")
@log_format_option
@site_options
def web(site: Site, address: str | None, port: int | None, read_only: bool, log_format: Style) -> int:
    """Shows the log in a browser: backlog, lag, outcomes, every row and the reason for its status.

    Ctrl-C ends it; SIGHUP makes it read its configuration again.

    Example: eventlog web
    """
    from eventlog.core.errors import ConfigError
    from eventlog.daemon.logging import journal
    from eventlog.daemon.signals import requests_by_signal
    from eventlog.web.open_page import make_read_only, open_page

    def restrict(config: Config) -> Config:
        return make_read_only(config) if read_only else config

    # Both at once could name two places.
    if address is not None and port is not None:
        raise UsageError("--http has the port already.", hint="Leave out --port.")
    where = address or str(8080 if port is None else port)
    site.where_logged()  # says what is missing before anything listens
    secrets: list[str] = []
    page_journal = journal(log_format, secrets=secrets, stream=cast("TextIO", StandardError()))
    learn = learning(secrets, page_journal, warns=False)
    learn(site.config)
    page = open_page(where, restrict(site.log_config), page_journal)

    def reload() -> None:
        try:
            site.read_again()
            config = site.log_config
        except ConfigError as error:
            page_journal.error("reload_failed", error=str(error))
            return
        learn(config)
        page.adopt(restrict(config))
        page_journal.info("reloaded")

    asked: list[bool] = []

    def reload_if_asked() -> None:
        if asked:
            asked.clear()
            reload()

    try:
        # Never from the handler: it may have interrupted who writes a line of the log, and would
        # wait for that one's lock.
        with requests_by_signal(page.stop, lambda: asked.append(True)):
            say(f"The page is at {page.url}", err=True, link=page.url)
            page.wait(reload_if_asked)
    finally:
        page.close()
    click.echo("The page has ended.", err=True)
    return 0
