"""`eventlog receive`: a small receiver for trying the HTTP output out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventlog.cli.show import say, show_text
from eventlog.cli.site import LOOPBACK, read_address
from eventlog.core.errors import UsageError
from eventlog.core.plural import count_words

if TYPE_CHECKING:
    from eventlog.sinks.http.receiver import ReceivedDocument

DEFAULT_PORT = 8780


@click.command()
@click.option(
    "--port",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help=f"0: any free port (default: {DEFAULT_PORT}).",
)
@click.option(
    "--host",
    metavar="HOST",
    help=f"The address to listen on (default: {LOOPBACK}).",
)
@click.option(
    "--http",
    "address",
    metavar="HOST:PORT",
    help="Both in one, as `run` and `web` take them.",
)
@click.option(
    "--answer",
    type=click.Choice(["success", "warning", "error", "retry", "fatal"]),
    default="success",
    show_default=True,
    help="The status that every event gets.",
)
@click.option("--once", is_flag=True, help="End after one document.")
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the documents in this folder.",
)
def receive(
    port: int | None,
    host: str | None,
    address: str | None,
    answer: str,
    once: bool,
    out: Path | None,
) -> None:
    """Receives what an output with sink = "http" sends: prints the documents, and answers with a
    status for each event.

    A repeated document is reported, but not printed again.

    Example: eventlog receive --port 8780 --answer warning
    """
    # Not above: `eventlog --help` loads every command, and these take their time.
    from eventlog.sinks.http.receiver import Receiver
    from eventlog.xds.read import Level

    if address is not None and (host, port) != (None, None):
        raise UsageError("--http has host and port already.", hint="Leave out --host and --port.")
    if address is not None:
        host, port = read_address(address)
    receiver = Receiver(
        show,
        answer=Level(answer),
        host=LOOPBACK if host is None else host,
        # Not `or`: 0 means any free one.
        port=DEFAULT_PORT if port is None else port,
        folder=out,
        once=once,
    )
    click.echo(f"Listening on {receiver.url}; answering {answer!r}. Ctrl-C ends it.", err=True)
    try:
        receiver.serve()
    except KeyboardInterrupt:
        click.echo("The receiver has ended.", err=True)


def show(delivery: ReceivedDocument) -> None:
    """Prints a document on standard output, and what there is to say about it on standard error."""
    name = "without an id" if delivery.id is None else delivery.id
    again = ", which was taken before" if delivery.repeated else ""
    say(f"Document {name} with {count_words(len(delivery.events), 'event')}{again}.", err=True)
    if not delivery.repeated:
        # For the eye: a document that is kept has its bytes as they came.
        show_text(delivery.body.decode("utf-8", "replace").rstrip("\n"))
