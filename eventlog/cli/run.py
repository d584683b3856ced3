"""`eventlog run`: the publisher."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from eventlog.cli.mishaps import INTERRUPTED, in_words, traced
from eventlog.cli.site import Site, site_options
from eventlog.config.settings import Config, FilesOutput

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

    from eventlog.daemon.endpoint import Endpoint
    from eventlog.daemon.logging import Style
    from eventlog.daemon.service import Ending
    from eventlog.daemon.vitals import PublisherHealth
    from eventlog.web.server import PageServer

Adopt = Callable[[Config], None]


@click.command()
@click.option("--once", is_flag=True, help="One cycle.")
@click.option("--until-empty", is_flag=True, help="Until nothing is left that can be published now.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Write the documents into this folder.")
@click.option("--http", metavar="HOST:PORT", help="The status page, /metrics, /health and /ready are there.")
@click.option("--log-format", type=click.Choice(["console", "json"]), help="Default: console on a terminal, else json.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much the journal says.",
)
@site_options
def run(
    site: Site,
    once: bool,
    until_empty: bool,
    out: Path | None,
    http: str | None,
    log_format: Style | None,
    log_level: str,
) -> int:
    """Publishes waiting rows: to the configured outputs, else to standard output.

    It goes on until SIGTERM or SIGINT; SIGHUP makes it read its configuration again.

    Example: eventlog run --database sqlite:///app.db --until-empty --out documents
    """
    from eventlog.core.secrets import secrets_in
    from eventlog.daemon.systemd import Systemd
    from eventlog.daemon.vitals import PublisherHealth

    secrets: list[str] = []
    journal = _journal(secrets, log_format, log_level, lasting=not (once or until_empty))

    def read(again: bool = True) -> Config:
        new = _with_folder(site.read_again() if again else site.config, out)
        secrets.extend(secrets_in(new))
        return new

    def publish() -> Ending:
        config = read(again=False)
        if config.source.kind == "log":
            site.url  # noqa: B018  # says what is missing before anything is opened
        systemd = Systemd()
        vitals = PublisherHealth(watched=http is not None, on_move=systemd.alive)
        with _watched(http, config, vitals, journal) as adopt:
            if once or until_empty:
                return _some_cycles(config, journal, vitals, once=once)
            from eventlog.daemon.service import Service
            from eventlog.daemon.signals import requests_by_signal

            service = Service(read, journal, vitals, systemd, adopt)
            with requests_by_signal(service.stop, service.reload):
                return service.run(config)

    return _ended(publish).enter(journal)


def _ended(publish: Callable[[], Ending]) -> Ending:
    """How it ended, whatever that was: errors become the sentence and the exit code that a command ends with."""
    from eventlog.daemon.service import Ending

    try:
        return publish()
    except KeyboardInterrupt:
        return Ending(exit_code=INTERRUPTED, error="Interrupted in the midst of a batch, which comes again.")
    except Exception as error:  # noqa: BLE001  # whatever it was, the journal ends with a record
        if click.get_current_context().obj["debug"]:
            click.echo(traced(error), err=True, nl=False)
        said, code = in_words(error)
        return Ending(exit_code=code, error=said.replace("\n", ". "))


def _some_cycles(config: Config, journal: BoundLogger, vitals: PublisherHealth, *, once: bool) -> Ending:
    """One cycle, or as many as there is work for."""
    from eventlog.daemon.publisher import Publisher
    from eventlog.daemon.service import STOPPED, ending_of
    from eventlog.daemon.signals import requests_by_signal

    with Publisher(config, journal=journal, vitals=vitals) as publisher, requests_by_signal(publisher.stop):
        for report in publisher.rounds(until_empty=True):
            if publisher.is_over(report):
                return ending_of(report)
            if once:
                break
    return STOPPED


def _journal(secrets: Collection[str], style: Style | None, level: str, *, lasting: bool) -> BoundLogger:
    from eventlog.daemon.logging import journal

    chosen: Style = style or ("json" if lasting and not sys.stderr.isatty() else "console")
    return journal(chosen, level=level, secrets=secrets)


@contextmanager
def _watched(address: str | None, config: Config, vitals: PublisherHealth, journal: BoundLogger) -> Iterator[Adopt]:
    """An address to watch the publisher at, while it runs; what is yielded is told of other configurations."""
    if address is None:
        yield lambda _config: None
        return
    endpoint = _endpoint(address, config, vitals, journal)
    journal.info("watched_at", port=endpoint.port)
    try:
        yield endpoint.adopt
    finally:
        endpoint.close()


def _endpoint(address: str, config: Config, vitals: PublisherHealth, journal: BoundLogger) -> Endpoint | PageServer:
    """The status page with what programs ask; only the latter without the extra, a log, or a guard where others come."""
    from eventlog.daemon.endpoint import Endpoint, read_address
    from eventlog.web.door import can_be_opened, open_page
    from eventlog.web.guard import is_open_door

    if config.source.kind != "log" or not can_be_opened():
        return Endpoint(address, vitals)
    if is_open_door(read_address(address)[0], config.web):
        journal.warning("page_off", why="others reach this address; the page needs web.token or web.user_header there")
        return Endpoint(address, vitals)
    return open_page(address, config, journal, vitals)


def _with_folder(config: Config, out: Path | None) -> Config:
    return config if out is None else replace(config, output=(FilesOutput(path=str(out)),))
