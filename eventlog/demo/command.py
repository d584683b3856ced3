"""`eventlog demo`: the whole circle on SQLite, in a minute and in the open."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventlog.core.errors import UsageError

if TYPE_CHECKING:
    from sqlalchemy import Engine


@click.command()
@click.option(
    "--keep",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep everything there.",
)
def demo(keep: Path | None) -> None:
    """Shows the whole program on an embedded database: installs log and triggers, changes data,
    publishes the changes.

    Example: eventlog demo --keep try-it
    """
    with _folder(keep) as folder:
        _show(folder)
        _say_what_next(folder if keep else None)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is None:
        with tempfile.TemporaryDirectory(prefix="eventlog-demo-") as name:
            yield Path(name)
        return
    # Tables and rows of another database would mix with the demo's.
    if keep.exists() and any(keep.iterdir()):
        raise UsageError(f"{keep} is not empty; the demo needs an empty folder.")
    keep.mkdir(parents=True, exist_ok=True)
    yield keep


def _show(folder: Path) -> None:
    """Describe and run the six steps."""
    from eventlog.capture.install import install
    from eventlog.capture.track import track
    from eventlog.config.outputs import default_output
    from eventlog.config.settings import Config, PublisherConfig, SourceConfig
    from eventlog.daemon.publisher import Publisher
    from eventlog.sql.connect import connect
    from eventlog.tracked.options import Style, TriggerOptions

    url = f"sqlite:///{folder / 'demo.db'}"
    engine = connect(url, may_create=True)
    # The folder may go when this is over, and with it a file that is still open.
    click.get_current_context().call_on_close(engine.dispose)
    _step(1, "a database with people, their phones, and badges")
    _run_script(engine, "tables")
    _step(2, "an event log beside them:  eventlog install")
    install(engine)
    _step(3, "triggers:  eventlog track person   and   eventlog track badge --events field")
    track(engine, ["person"])
    track(engine, ["badge"], TriggerOptions(style=Style.FIELD))
    _step(4, "somebody works with the data")
    click.echo(_run_script(engine, "changes"))
    _step(5, "what the triggers wrote into the log")
    _show_log(engine)
    _step(6, "and what is published:  eventlog run --until-empty")
    # The output writes past Python's buffer, and would come before what stands in it.
    sys.stdout.flush()
    config = Config(
        source=SourceConfig(url=url, schema="demo"),
        publisher=PublisherConfig(batch_size=128),
        output=(default_output(),),
    )
    with Publisher(config, engine=engine) as publisher:
        for _ in publisher.rounds(until_empty=True):
            pass


def _step(number: int, what: str) -> None:
    click.echo()
    click.secho(f"{number}. {what}", bold=True)


def _run_script(engine: Engine, name: str) -> str:
    """Runs one of the demo's SQL files and gives back its text, indented for reading."""
    text = files("eventlog.demo").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    script = "".join(line for line in lines if not line.startswith("--"))
    with engine.begin() as connection:
        # The driver takes one statement each time.
        for statement in script.split(";\n"):
            if statement.strip():
                connection.exec_driver_sql(statement)
    return "".join(f"   {line}\n" for line in script.strip().splitlines()).rstrip("\n")


def _show_log(engine: Engine) -> None:
    from eventlog.cli.show import show_table

    columns = {
        "id": "record_id",
        "status": "status",
        "type": "event_type",
        "table": "table_name",
        "key": "table_key",
        "column": "column_name",
        "old": "old_value",
        "new": "new_value",
    }
    query = f"SELECT {', '.join(columns.values())} FROM event_log ORDER BY record_id"
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(query).fetchall()
    show_table([*columns], [tuple(row) for row in rows], empty="")


def _say_what_next(kept: Path | None) -> None:
    from eventlog.cli.show import page

    click.echo()
    click.secho("Try next", bold=True)
    name = _name_command()
    steps = [("demo --keep try-it", "the same, and keep the database to play with")]
    if kept is not None:
        database = f"--database sqlite:///{kept / 'demo.db'}"
        steps = [
            (f"explain 3 {database}", "why a row was published or not"),
            (f"triggers {database}", "which triggers there are"),
            (f"status {database}", "the state of the log"),
        ]
    steps.append(("rules", "what the event types mean and which rule comes first"))
    steps.append(("--help", "every command"))
    width = max(len(command) for command, _ in steps)
    lines = [f"   {name} {command:{width}}   {purpose}" for command, purpose in steps]
    # A command stays in one line, for somebody copies it.
    width_there = page().width
    if width_there is not None and max(map(len, lines)) > width_there:
        lines = [f"   {name} {command}\n      {purpose}" for command, purpose in steps]
    click.echo("\n".join(lines))
    if name != "eventlog":
        click.echo("docs/tutorial.md does it step by step, in ten minutes.")


def _name_command() -> str:
    """Return the reader's command for eventlog: in a checkout it is ./dev run eventlog."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "dev").is_file() and Path.cwd() == checkout:
        return "./dev run eventlog"
    return "eventlog"
