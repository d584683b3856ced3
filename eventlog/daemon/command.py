"""`eventlog run`: the publisher."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from threading import Timer
from typing import TYPE_CHECKING, Final, TextIO, cast

import click
from msgspec.structs import replace

from eventlog.cli.mishaps import INTERRUPTED, TERMINATED, describe_trace, in_words
from eventlog.cli.site import Site, site_options
from eventlog.cli.watching import RowTally, StandardError, has_terminal, watching
from eventlog.config.outputs import output_to
from eventlog.config.settings import Config
from eventlog.core.errors import UsageError

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

    from eventlog.core.plugins import ServedEndpoint
    from eventlog.daemon.health import PublisherHealth
    from eventlog.daemon.logging import Style
    from eventlog.daemon.service import Ending

Adopt = Callable[[Config], None]


log_format_option = click.option(
    "--log-format",
    type=click.Choice(["console", "json"]),
    default="console",
    show_default=True,
    help="Lines for people, or JSON for programs.",
)


@click.command()
@click.option("--once", is_flag=True, help="One cycle.")
@click.option("--until-empty", is_flag=True, help="Until nothing is left to publish now.")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Write the documents into this folder, or to an address; with --look a folder.",
)
@click.option("--look", is_flag=True, help="Show the documents that would go out next, and take nothing.")
@click.option(
    "--no-policies",
    is_flag=True,
    help="With --out: without the policies of the outputs.",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    help="Serve the status page, /metrics, /health and /ready.",
)
@log_format_option
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The lowest level of journal records; debug has each statement and each document.",
)
@site_options
def run(
    site: Site,
    once: bool,
    until_empty: bool,
    look: bool,
    out: str | None,
    no_policies: bool,
    http: str | None,
    log_format: Style,
    log_level: str,
) -> int:
    """Publishes waiting rows: to the configured outputs, else to standard output.

    It runs until SIGTERM or SIGINT; SIGHUP makes it read its configuration again.

    Example: eventlog run --until-empty --out documents
    """
    if look:
        return _look(site, out, [once, until_empty, no_policies, http is not None])
    from eventlog.daemon.health import PublisherHealth
    from eventlog.daemon.logging import journal as make_journal
    from eventlog.daemon.logging import log_in_detail, log_library_warnings
    from eventlog.daemon.signals import Systemd

    secrets: list[str] = []
    journal = make_journal(log_format, level=log_level, secrets=secrets, stream=cast("TextIO", StandardError()))
    # `check` warns of weak secrets; a publisher that stays does once more, for nobody may have called it.
    learn = learning(secrets, journal, warns=not (once or until_empty))

    def read(again: bool = True) -> Config:
        written = site.read_again() if again else site.config
        config = _with_folder(written, out, no_policies=no_policies)
        # Before anything of it can come into the journal.
        learn(config)
        return config

    def publish() -> Ending:
        config = read(again=False)
        if config.source.kind == "log":
            site.url  # noqa: B018  # says what is missing before anything is opened
        systemd = Systemd()
        vitals = PublisherHealth(watched=http is not None, on_move=systemd.alive)
        with _trace_batches(config), _serve_watch(http, config, vitals, journal) as adopt:
            if once or until_empty:
                total = None if once else _backlog(site, config)
                return _some_cycles(config, journal, vitals, once=once, total=total)
            from eventlog.daemon.service import Service
            from eventlog.daemon.signals import requests_by_signal

            service = Service(read, journal, vitals, systemd, adopt)
            with (
                _answer_signals(service.stop) as stop,
                requests_by_signal(stop, service.reload, idle=lambda: service.connects),
            ):
                return service.run(config)

    detail = log_in_detail(journal) if log_level == "debug" else nullcontext()
    with log_library_warnings(journal), detail:
        return _run_to_end(publish).enter(journal)


def _look(site: Site, out: str | None, others: Collection[bool]) -> int:
    """Shows what would go out next: on standard output, or in a folder for each output."""
    from pathlib import Path

    from eventlog.core.plural import count_words
    from eventlog.daemon.look import look, write_documents
    from eventlog.sinks.stdout import StdoutSink

    if any(others):
        raise UsageError("--look publishes nothing; --out is the only other option that it takes.")
    for output, documents, rows in look(site.config, site.engine()):
        if out is None:
            StdoutSink().commit("", documents)
        else:
            write_documents(Path(out), output, documents)
        said = f"{count_words(len(documents), 'document')} of {count_words(rows, 'row')}"
        click.echo(f"{output.name}: {said} would go out next; nothing was taken.", err=True)
    return 0


def _run_to_end(publish: Callable[[], Ending]) -> Ending:
    """Run to the end; turn errors into the message and exit code of a command."""
    from eventlog.daemon.service import STOPPED, Ending
    from eventlog.daemon.signals import StoppedIdle, Terminated

    try:
        return publish()
    except StoppedIdle:
        return STOPPED
    except Terminated:
        sentence = "Ended at once by a second SIGTERM. The current batch comes again."
        return Ending(exit_code=TERMINATED, error=sentence)
    except KeyboardInterrupt:
        sentence = "Interrupted. If a batch was in hand, it comes again."
        return Ending(exit_code=INTERRUPTED, error=sentence)
    except Exception as error:  # noqa: BLE001  # whatever it was, the journal ends with a record
        if click.get_current_context().obj["debug"]:
            click.echo(describe_trace(error), err=True, nl=False)
        sentence, code = in_words(error)
        # A record of the journal is one line.
        return Ending(exit_code=code, error=sentence.replace("\n", ". "))


HINT_SECONDS: Final = 1.0
"""After which somebody at a terminal reads why the end does not come; mostly it comes sooner."""

HINT: Final = b"The current batch is finished first; Ctrl-C again interrupts it, and the batch comes again.\n"


@contextmanager
def _answer_signals(stop: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Yield the function to request the end; if it takes long, a terminal shows why."""
    # A signal may come in the middle of another write, so these go past Python's buffers.
    hint = Timer(HINT_SECONDS, lambda: os.write(sys.stderr.fileno(), HINT))
    hint.daemon = True

    def ask_to_stop() -> None:
        stop()
        # A thread can be started once; a second signal ends the publisher at once.
        if has_terminal() and hint.ident is None:
            # The terminal has written ^C there.
            os.write(sys.stderr.fileno(), b"\n")
            hint.start()

    try:
        yield ask_to_stop
    finally:
        hint.cancel()


def _backlog(site: Site, config: Config) -> int | None:
    """Count waiting rows; None if there is no progress bar, or documents go to the same terminal."""
    if not has_terminal() or config.source.kind != "log":
        return None
    # Without an output documents go to standard output.
    to_stdout = not config.output or any(output.sink == "stdout" for output in config.output)
    if to_stdout and sys.stdout.isatty():
        return None
    from eventlog.sql.log import Log

    engine = site.engine()
    log = Log(engine, site.names(engine))
    with log.transaction() as connection:
        return int(log.rows(connection, log.query("count_waiting"))[0][0])


def _some_cycles(
    config: Config,
    journal: BoundLogger,
    vitals: PublisherHealth,
    *,
    once: bool,
    total: int | None,
) -> Ending:
    """Run one cycle, or as many as there is work for; with a progress bar if `total` is known."""
    from eventlog.daemon.publisher import Publisher
    from eventlog.daemon.service import STOPPED, ending_of
    from eventlog.daemon.signals import requests_by_signal

    tally = RowTally()
    with (
        Publisher(config, journal=journal, vitals=vitals) as publisher,
        _answer_signals(publisher.stop) as stop,
        requests_by_signal(stop),
        nullcontext() if total is None else watching() as watch,
    ):
        if watch is not None:
            watch.begin("publish", total, tally)
        for report in publisher.once() if once else publisher.rounds(until_empty=True):
            tally.rows += sum(report.statuses.values())
            if publisher.is_over(report):
                return ending_of(report)
    return STOPPED


def learning(secrets: list[str], journal: BoundLogger, *, warns: bool) -> Callable[[Config], None]:
    """Make a function hiding a configuration's secrets; with `warns` it reports weak ones once."""
    from eventlog.config.weak_secrets import MEND, WEAK, find_secrets

    warned: set[str] = set()

    def learn(config: Config) -> None:
        known = find_secrets(config)
        # The journal has this very list, so it hides them from now on.
        secrets.extend(known.words)
        for setting in known.weak:
            if warns and setting not in warned:
                journal.warning("weak_secret", setting=setting, why=f"{WEAK} {MEND}")
        warned.update(known.weak)

    return learn


@contextmanager
def _trace_batches(config: Config) -> Iterator[None]:
    """Trace each batch while the publisher runs, if configured."""
    if not config.publisher.traces:
        yield
        return
    from eventlog.core.packages import require

    exporter = "opentelemetry.exporter.otlp.proto.http"
    require("publisher.traces", "opentelemetry", "opentelemetry.sdk", exporter)
    from eventlog.daemon.traces import switch_on_traces as spans

    with spans(config.source.log if config.source.kind == "log" else config.source.kind):
        yield


@contextmanager
def _serve_watch(
    address: str | None,
    config: Config,
    vitals: PublisherHealth,
    journal: BoundLogger,
) -> Iterator[Adopt]:
    """Serve an address for watching the publisher; yield the function to adopt other
    configurations.
    """
    if address is None:
        yield lambda _config: None
        return
    from eventlog.core.plugins import EndpointOrder
    from eventlog.core.registry import load_offer, offers

    order = EndpointOrder(address=address, config=config, vitals=vitals, journal=journal)
    # One after the other: the first that serves takes the port, and ours does.
    served: Iterator[ServedEndpoint | None] = (load_offer(offer).open(order) for offer in offers("endpoints"))
    endpoint = next(filter(None, served))
    journal.info("watched_at", port=endpoint.port)
    try:
        yield endpoint.adopt
    finally:
        endpoint.close()


def _with_folder(config: Config, out: str | None, *, no_policies: bool) -> Config:
    """Replace the outputs by a folder; raise UsageError if it would reveal hidden values."""
    if no_policies and out is None:
        why = "which takes the place of the outputs and their policies"
        raise UsageError(f"--no-policies needs --out, {why}.")
    if out is None:
        return config
    if not no_policies and any(output.steps or output.policies for output in config.output):
        raise UsageError(
            "--out takes the place of the configured outputs, and of their policies.",
            hint="Use --no-policies with it to publish everything, or leave out --out.",
        )
    return replace(config, output=(output_to("files", path=out),))
