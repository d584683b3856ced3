"""What a command works on, a database, a log and files, and what a shell completes of that.

An option goes before the environment, and that before the configuration file.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from eventlog.config.settings import LOG, Config, load
from eventlog.core.errors import ConfigError, DataError
from eventlog.sql.names import LogNames

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.sql.log import Log

Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT_FILE = Path("eventlog.toml")


class Site:
    """The database and the log of a command; nothing is read or opened before it is needed."""

    def __init__(
        self,
        database: str | None,
        config: Path | None,
        log: str | None,
        *,
        without_file: bool = False,
    ) -> None:
        self.database = database
        self._file = config
        self._log = log
        self._without_file = without_file

    @cached_property
    def config(self) -> Config:
        """Load the configuration, with options of the command line applied."""
        # A URL in the file may need a secret that whoever says --database does not have.
        config = load(self.file, without_url=self.database is not None)
        source = config.source
        if self.database is not None:
            source = replace(source, url=self.database)
        if self._log is not None:
            source = replace(source, log=self._log)
        return replace(config, source=source)

    @property
    def file(self) -> Path | None:
        """Return the configuration file: the given one, else the one in this folder."""
        if self._without_file:
            return None
        if self._file is None and DEFAULT_FILE.exists():
            return DEFAULT_FILE
        return self._file

    def read_again(self) -> Config:
        """Read the configuration again from file and environment."""
        # Where `cached_property` keeps it.
        self.__dict__.pop("config", None)
        return self.config

    @property
    def url(self) -> str:
        """Return the database's URL; raise ConfigError if there is none."""
        if not self.config.source.url:
            hint = "Use --database URL or --config FILE, or set EVENTLOG_DATABASE."
            if "EVENTLOG_SOURCE_URL" in os.environ:
                hint = "Two underscores part a section and its key: EVENTLOG_SOURCE__URL, not EVENTLOG_SOURCE_URL."
            raise ConfigError("No database is named.", hint=hint)
        return self.config.source.url

    def engine(self, *, may_create: bool = False) -> Engine:
        """Open the database; connections are closed when the command ends."""
        return self._open_engine(self.url, may_create=may_create)

    def _open_engine(self, url: str, *, may_create: bool = False) -> Engine:
        from eventlog.sql.connect import connect

        engine = connect(url, may_create=may_create)
        command = click.get_current_context(silent=True)
        if command is not None:
            # Outside of a command, as in tests, whoever asked has to close it.
            command.call_on_close(engine.dispose)
        return engine

    @property
    def wanted_names(self) -> LogNames:
        """Return the log's names as configured."""
        return self.config.source.wanted_names

    @property
    def schema(self) -> str | None:
        """Return the default schema of tables; None if the database has no schemas."""
        from eventlog.sql.dialect import dialect_of

        if not dialect_of(self.url).schemas:
            return None
        return self.config.source.schema

    def names(self, engine: Engine) -> LogNames:
        """Find the log in the database; raise InstallError if it or a column is missing."""
        from eventlog.sql.findlog import log_columns

        return log_columns(engine, self.wanted_names, self.config.source.columns)

    def log(self) -> Log:
        """Open the log, for a stream its publisher's; raise an error if missing or incomplete."""
        from eventlog.sql.log import Log

        engine, names = self.where_logged()
        log = Log(engine, names)
        log.check()
        return log

    @property
    def is_stream(self) -> bool:
        """Return True if the source is a stream and no database was given."""
        return self.database is None and self.config.source.kind != LOG

    @property
    def log_config(self) -> Config:
        """Return the configuration with the log as its source, for commands on rows."""
        if self.is_stream:
            return self.config
        return replace(self.config, source=replace(self.config.source, kind=LOG))

    def where_logged(self) -> tuple[Engine, LogNames]:
        """Return the engine and names of the log."""
        from eventlog.config.build import stream_log_of
        from eventlog.sql.findlog import log_columns

        if not self.is_stream:
            engine = self.engine()
            return engine, self.names(engine)
        url, names = stream_log_of(self.config.source)
        engine = self._open_engine(url)
        return engine, log_columns(engine, names)

    def log_of_triggers(self) -> Log:
        """Open the log by the schema its triggers write to."""
        from eventlog.sql.findlog import locate_log
        from eventlog.sql.log import Log

        engine = self.engine()
        with engine.connect() as connection:
            names = locate_log(connection, self.names(engine))
        log = Log(engine, names)
        log.check()
        return log


def config_option(help_text: str) -> Callable[[Command], Command]:
    """Make the option --config; `help_text` tells its use in this command."""
    return click.option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="EVENTLOG_CONFIG",
        type=click.Path(path_type=Path),
        help=help_text,
    )


def site_options(command: Command) -> Command:
    """Gives a command --database, --config and --log, and passes it a Site."""

    @click.option(
        "--database",
        "-d",
        metavar="URL",
        envvar="EVENTLOG_DATABASE",
        help="The database, as SQLAlchemy URL; instead of the configuration's.",
    )
    @config_option("A configuration file (default: eventlog.toml here, if there is one).")
    @click.option("--no-config", "without_file", is_flag=True, help="Ignore configuration files.")
    @click.option("--log", metavar="NAME", help="The event log table, with its schema if it has one.")
    # It takes along what click has noted on the command: the options of decorators below.
    @wraps(command)
    def with_site(
        *args: Any,
        database: str | None,
        config: Path | None,
        without_file: bool,
        log: str | None,
        **options: Any,
    ) -> Any:
        site = Site(database, config, log, without_file=without_file)
        return command(*args, site=site, **options)

    # Click's decorators keep the function they are given.
    return with_site  # type: ignore[return-value]  # see above


MOST_ROWS: Final = 1_000_000_000
"""Rows that an option may name."""

MOST_JOBS: Final = 15
"""So many sessions SQLAlchemy opens to a database at once, unless set otherwise."""


def number_option(
    name: str,
    help_text: str,
    *,
    least: int = 1,
    most: int = MOST_ROWS,
    default: int | None = None,
    metavar: str = "N",
) -> Callable[[Command], Command]:
    """Make an option for an integer; help shows a default other than 0."""
    return click.option(
        name,
        type=click.IntRange(least, most),
        default=default,
        # What a default of 0 means the help says in words.
        show_default=bool(default),
        metavar=metavar,
        help=help_text,
    )


json_option = click.option("--json", "as_json", is_flag=True, help="Report as JSON.")


LOOPBACK: Final = "127.0.0.1"


def read_address(text: str) -> tuple[str, int]:
    """Reads `9187`, `:9187` or `0.0.0.0:9187`; without a host only this machine can ask."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and len(port) <= 5) or int(port) > 65_535:
        raise ConfigError(f"{text!r} is no address; it is written as 127.0.0.1:9187.")
    # An IPv6 address before a port is written in brackets.
    return host.strip("[]") or LOOPBACK, int(port)


def cannot_listen(host: str, port: int, error: OSError | OverflowError, other: str) -> ConfigError:
    """Explain why nothing can listen on an address; `other` says how another one is chosen."""
    hint = f"End what listens there, or choose {other}."
    number = getattr(error, "errno", None)
    if number == errno.EADDRNOTAVAIL:
        hint = f"This machine does not have that address: choose {other}."
    elif number in (errno.EACCES, errno.EPERM):
        hint = f"This user may not take ports below 1024: choose {other}."
    elif number is not None and number < 0:  # an answer of the resolver, which Python hands on as an OSError
        hint = f"No machine has that name: choose {other}."
    # Python's socket.create_server adds the address once more.
    why = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
    return ConfigError(f"Nothing can listen on {host}:{port}: {why}.", hint=hint)


# A path, so that it is read as any other file.
STDIN: Final = Path("/dev/stdin")


class ReadFile(click.Path):
    """The path of a file to read; `-` is standard input."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, allow_dash=True)

    def convert(
        self,
        value: Any,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        if value == "-":
            return STDIN
        return super().convert(value, param, ctx)


def content_of(file: Path) -> bytes:
    """Read a file; raise DataError if unreadable."""
    try:
        return file.read_bytes()
    except OSError as error:
        message = f"{file} cannot be read: {error.strerror}."
        raise DataError(message, hint="Name a file that this user may read.") from None


def complete_tables(
    context: click.Context,
    _parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """Complete names of tables; none if the database does not answer."""
    from sqlalchemy import inspect

    given = {name: context.params.get(name) for name in ("database", "config", "log")}
    try:
        site = Site(**given, without_file=bool(context.params.get("without_file")))
        schema, bare = site.schema, incomplete
        if "." in incomplete:
            schema, _, bare = incomplete.partition(".")
        engine = site.engine()
        # The log and its companions are tables too, which nobody captures.
        names = {*inspect(engine).get_table_names(schema=schema)} - {*site.wanted_names.own}
        engine.dispose()
    except Exception:  # noqa: BLE001  # whoever presses a key is shown names, or nothing
        return []
    # A shell puts a completion in the place of the whole word.
    before = incomplete[: len(incomplete) - len(bare)]
    return [CompletionItem(before + name) for name in sorted(names) if name.startswith(bare)]


table_option = click.option(
    "--table",
    metavar="NAME",
    shell_complete=complete_tables,
    help="Only rows of this table, with its schema or without.",
)


def complete_outputs(
    context: click.Context,
    _parameter: click.Parameter,
    incomplete: str,
) -> list[CompletionItem]:
    """Complete names of outputs; none if the configuration is unreadable."""
    from eventlog.config.build import name_of

    file = context.params.get("config")
    # A command without --no-config takes no file that nobody names.
    without_file = file is None and bool(context.params.get("without_file", True))
    try:
        outputs = Site(None, file, None, without_file=without_file).config.output
    except Exception:  # noqa: BLE001  # as above
        return []
    return [CompletionItem(name) for name in map(name_of, outputs) if name.startswith(incomplete)]
