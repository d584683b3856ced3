"""Opens databases, limits how long their sessions wait, and says why one cannot be used."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from eventlog.core.errors import ConfigError
from eventlog.core.file_forms import find_form
from eventlog.core.packages import installing, is_there, missing
from eventlog.core.registry import names
from eventlog.core.secrets import mask_secrets
from eventlog.sql.access import IS_SET, LOCKED, WrongValue, find_advice, is_lasting, is_locked, statements_of
from eventlog.sql.dialect import Dialect, dialect_of, drivers, statement, texts
from eventlog.sql.pooler import IS_POOLED, set_at_begin, watch

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.engine import URL, ExceptionContext

REFUSED: Final = "Waiting will not help: see to user, password and database in the URL, and to who may connect."
SILENT: Final = "See that the server runs and takes connections there."
UNOPENED: Final = "See that its folder is there, and that this user may read and write it."
"""What to check where no connection can be made."""

PLACES = frozenset({"host", "port", "unix_socket", "service_name", "dbname"})
"""Options in a URL that say where a database is."""

HEADER_BYTES: Final = 1 << 10
"""By so much of its beginning a file is recognized that is no database."""

_readers: WeakKeyDictionary[Engine, dict[str, Engine]] = WeakKeyDictionary()
LOCK_WAIT_SECONDS = 30
"""How long a statement waits for somebody else's lock before it gives up: never for ever."""


def connect(url: str, *, may_create: bool = False) -> Engine:
    """Make an engine for the database. Create a SQLite file only with `may_create`."""
    from sqlalchemy import create_engine
    from sqlalchemy.exc import NoSuchModuleError

    parsed = read_url(url)
    _refuse_slips(parsed)
    dialect = dialect_of(parsed)
    # SQLAlchemy's own choice of a driver need not be the one that our extra brings.
    if "+" not in parsed.drivername and dialect.driver.module and is_there(dialect.driver.module):
        parsed = parsed.set(drivername=f"{parsed.drivername}+{dialect.driver.module}")
    arguments: dict[str, object] = {}
    program = dialect.driver.program_argument
    if program is not None and parsed.get_driver_name() == dialect.driver.module and program not in parsed.query:
        arguments[program] = PROGRAM
    if dialect.embedded:
        arguments["timeout"] = LOCK_WAIT_SECONDS
        if not may_create and (missing_name := missing_file(parsed)) is not None:
            hint = "Name one that is there; for a new log `eventlog install` makes it."
            raise ConfigError(f"There is no database file {missing_name}.", hint=hint)
        _refuse_other_file(parsed, dialect)
        _refuse_without_rights(parsed)
    # PyMySQL writes a text in Latin-1; bytes it leaves as they are.
    is_latin = dialect.driver.latin_driver and parsed.drivername.endswith(dialect.driver.latin_driver)
    if is_latin and parsed.password:
        arguments["password"] = str(parsed.password).encode()
    try:
        if parsed.query:
            from eventlog.sql.url_options import refuse_unknown

            refuse_unknown(parsed, dialect)
        engine = create_engine(parsed, connect_args=arguments)
    except ModuleNotFoundError as error:
        what = f"A URL that begins with {parsed.drivername}:"
        if error.name == dialect.driver.module or dialect.driver.extra is None:
            raise missing(what, error.name, drivers()) from None
        # A driver that no extra brings may be the default of whoever reads URLs, and not meant.
        hint = f"Install it, or write {_usual_name(dialect)}: in the URL, for which there is:"
        message = f"{what} needs the package {error.name}, which is not installed."
        raise ConfigError(message, hint=f"{hint} {installing(dialect.driver.extra)}.") from None
    except NoSuchModuleError:
        hint = f"Begin the URL with {_usual_name(dialect)}: instead."
        raise ConfigError(f"There is no driver {parsed.drivername}.", hint=hint) from None
    _advise_who_cannot_connect(engine, dialect)
    if dialect.driver.behind_pooler is not None:
        watch(engine, dialect.driver.behind_pooler, statements_of(dialect, "session"), IS_SET)
    if dialect.driver.prepare is not None:
        dialect.driver.prepare(engine)
    if dialect.driver.untaught_words:
        # SQLAlchemy may make another preparer when it connects, so the class knows the words too.
        usual = engine.dialect.preparer
        reserved = {"reserved_words": usual.reserved_words | dialect.driver.untaught_words}
        engine.dialect.preparer = type(usual.__name__, (usual,), reserved)
        # The one for this dialect was made with the former class.
        engine.dialect.identifier_preparer = engine.dialect.preparer(engine.dialect)
    if dialect.driver.login_package or parsed.query:
        _say_what_it_refuses(engine, dialect.driver.login_package)
    return engine


def reading_engine(
    engine: Engine,
    reader: str,
    statement_timeout: float | None = None,
    lock_timeout: float | None = None,
) -> Engine:
    """Make an engine with the login `reader` for captured tables; disposed with `engine`."""
    if not reader:
        return engine
    return _beside(engine, "reader", reader, statement_timeout, lock_timeout)


def connect_for_read_back(
    engine: Engine,
    reader: str,
    statement_timeout: float | None,
    lock_timeout: float | None,
    wait: float,
) -> Engine:
    """Make an engine for reading rows back, waiting at most `wait` seconds for a lock.

    It is a separate one, so that this limits no other statement and costs none.
    """
    dialect = dialect_of(engine)
    if dialect.embedded:  # its one file is locked for all statements alike
        return reading_engine(engine, reader, statement_timeout, lock_timeout)
    answer = min(wait * ANSWER_WAITS, statement_timeout or STATEMENT_SECONDS)
    lock_wait = min(wait, lock_timeout or LOCK_SECONDS) if _has_limit(dialect, "lock_timeout") else None
    url = reader or engine.url.render_as_string(hide_password=False)
    return _beside(engine, "read back", url, answer, lock_wait)


def _beside(
    engine: Engine, purpose: str, url: str, statement_timeout: float | None, lock_timeout: float | None
) -> Engine:
    """Make an engine kept with another one and disposed with it."""
    from sqlalchemy import event

    # Kept by its engine and not for ever, so that both end together.
    kept = _readers.setdefault(engine, {})
    if purpose not in kept:
        reading = connect(url)
        limit_sessions(reading, statement_timeout, lock_timeout)
        event.listen(engine, "engine_disposed", lambda _: reading.dispose())
        kept[purpose] = reading
    return kept[purpose]


def _usual_name(dialect: Dialect) -> str:
    """Return the beginning of a URL with the driver of eventlog's extra."""
    if dialect.driver.module:
        return f"{dialect.name}+{dialect.driver.module}"
    return dialect.name


def read_url(url: str) -> URL:
    """Parse a URL; raise ConfigError when it is none. A password never gets into the message."""
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # a port that is no number, and may be a password
        raise ConfigError("The database URL cannot be read.", hint=_explain_url(url)) from None
    if parsed.drivername in names("databases"):
        dialect = dialect_of(parsed)
        if parsed.drivername in dialect.driver.other_names:
            return parsed.set(drivername=_usual_name(dialect))
    return parsed


_WRITTEN: Final = "It is written as SQLAlchemy has it: postgresql+psycopg://user@host/database or sqlite:///file.db."


def _explain_url(url: str) -> str:
    """Explain a malformed URL without its possibly secret parts."""
    bare = url.strip()
    if bare[:1] in ("'", '"'):
        return "It begins with a quote: leave out the quotes around it."
    if bare.startswith("jdbc:"):
        return f"It is one of JDBC. {_WRITTEN}"
    if "://" not in bare:
        is_file = bare.endswith((".db", ".sqlite", ".sqlite3")) or Path(bare).is_file()
        return "A file of SQLite is written as sqlite:/// and its path." if is_file else _WRITTEN
    return f"Its port is no number, or a user or password has a / or : that is not written as %2F or %3A. {_WRITTEN}"


def _refuse_slips(url: URL) -> None:
    """Raise ConfigError for a valid URL that is surely a mistake."""
    if "@" in (url.host or ""):
        # What stands there is a part of a password, which is not shown.
        raise ConfigError(
            "The database URL has an @ in its user or password.",
            hint="Write it as %40; a secret from the environment or a file is written so by itself.",
        )
    if url.port is not None and url.port > 65_535:
        raise ConfigError("The port in the database URL is above 65535.", hint="Correct it.")


def address_of(url: URL) -> str:
    """Write a database's address for people: without user and options, perhaps secret."""
    from sqlalchemy.engine import URL

    query = {name: value for name, value in url.query.items() if name in PLACES}
    backend = url.get_backend_name()
    address = URL.create(backend, host=url.host, port=url.port, database=url.database, query=query)
    return address.render_as_string()


def make_readable_url(url: str | URL) -> str:
    """Write a URL for people: without a password, wherever in it one stands."""
    parsed = read_url(url) if isinstance(url, str) else url
    return mask_secrets(parsed.render_as_string(hide_password=True))


def _why_unopened(dialect: Dialect, error: BaseException) -> str:
    """Say what to see to where no connection can be made."""
    if not dialect.embedded:
        return REFUSED if is_lasting(error) else SILENT
    return LOCKED if is_locked(dialect, error) else find_advice([dialect], error) or UNOPENED


def _advise_who_cannot_connect(engine: Engine, dialect: Dialect) -> None:
    """Note advice on each failed connection's error, for `find_connection_hint`."""
    from sqlalchemy import event

    def advise(context: ExceptionContext) -> None:
        error = context.sqlalchemy_exception
        # No connection was there yet: it could not be made.
        if context.connection is None and error is not None:
            words = str(context.original_exception)
            blamed = [name for name in engine.url.query if _blames(words, name)]
            if blamed:
                error.add_note(WrongValue(f"See to the value of {', '.join(blamed)} in the database URL."))
                return
            error.add_note(_why_unopened(dialect, context.original_exception))

    event.listen(engine, "handle_error", advise)


def _blames(words: str, option: str) -> bool:
    """Return True if the words of libpq or psycopg blame the value of this option."""
    blaming = (
        f"invalid {option} value",
        f"value for {option}",
        f'option "{option}"',
        f"{option} parameter must be",  # up to libpq 13
    )
    return any(blame in words for blame in blaming)


def _say_what_it_refuses(engine: Engine, login_package: str | None) -> None:
    """Explain a driver's own refusals: a wrong option, or a login without its package."""
    usual = engine.dialect.connect
    options = ", ".join(engine.url.query)

    def log_in(*positional: Any, **named: Any) -> Any:
        try:
            return usual(*positional, **named)
        except RuntimeError as error:  # as PyMySQL raises where it lacks the package for a login
            if login_package is None:
                raise
            hint = f"pip install {login_package} brings it; a connection with TLS does without."
            raise ConfigError(f"The driver cannot log in: {str(error).rstrip('.')}.", hint=hint) from None
        except UnicodeError:
            raise  # of a user or a password, not of an option
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            # A driver has its own class for what a server says; with Python's it trips over what it
            # was given.
            if not options:
                raise
            problem = f"The driver {engine.driver} cannot use an option of the database URL"
            hint = f"See to the value of each: {options}."
            # What the system says of a file; other words of a driver may hold the value, which may be secret.
            if isinstance(error, OSError) and error.strerror:
                problem = f"{problem}: {error.strerror}"
            raise ConfigError(f"{problem}.", hint=hint) from None

    # SQLAlchemy's event for this keeps other listeners, such as those that limit sessions, from
    # being asked.
    engine.dialect.connect = log_in  # type: ignore[method-assign]  # of this engine's dialect alone


def _refuse_other_file(url: URL, dialect: Dialect) -> None:
    """Raise ConfigError if an embedded database's file is a folder or no database."""
    if url.host:
        raise ConfigError(f"A file of {dialect.name} is written with three slashes: {dialect.name}:/// and its path.")
    path = Path(url.database or "")
    if not url.database or url.database.startswith((":", "file:")) or not path.exists():
        return
    if path.is_dir():
        raise ConfigError(f"{path} is a folder and no database file.", hint="Name the file in it.")
    if dialect.driver.is_database is None or dialect.driver.is_database(path):
        return
    with path.open("rb") as file:
        form = find_form(file.read(HEADER_BYTES))
    raise ConfigError(f"{path} {form or 'is no database file'}.", hint="Name another file.")


def _refuse_without_rights(url: URL) -> None:
    """Raise ConfigError if this user can neither read an embedded database's file nor make it.

    The file is not opened: to close it again would end SQLite's locks in this process.
    """
    if not url.database or url.database.startswith((":", "file:")):
        return
    path = Path(url.database)
    folder = path.parent
    if path.exists():
        if not os.access(path, os.R_OK):
            raise ConfigError(f"The database file {path} cannot be read: Permission denied.", hint=UNOPENED)
    elif not folder.is_dir():
        hint = "Make it, or name another place."
        raise ConfigError(f"There is no folder {folder} for the database file {path.name}.", hint=hint)
    elif not os.access(folder, os.W_OK | os.X_OK):
        message = f"The database file {path.name} cannot be made: this user may not write into {folder.absolute()}."
        raise ConfigError(message, hint="Name another place.")


def missing_file(url: URL) -> str | None:
    """Return an embedded database's file if missing: connecting would create it."""
    name = url.database
    if not dialect_of(url).embedded or not name or name == ":memory:" or name.startswith("file:"):
        return None
    return None if Path(name).exists() else name


STATEMENT_SECONDS: Final = 300.0
LOCK_SECONDS: Final = 30.0
"""The defaults; ConfigError comes only where somebody asks for a limit that the database cannot
keep.
"""

ANSWER_SECONDS: Final = 30
"""A driver that would wait for ever waits for an answer so much longer than a statement may run."""

ANSWER_WAITS: Final = 6
"""Reading rows back may take so many times as long as it may wait for a lock."""

PROGRAM: Final = "eventlog"
"""What sessions are called."""

IDLE_LEASES: Final = 2
"""A transaction may be idle for so many leases: between two statements of it a large batch is
computed, and machines stutter.
"""

SHORTEST_SECONDS: Final = 1.0
"""No lease counts as shorter here."""

PROBES: Final = 3
"""After so many probes without an answer a connection counts as dead."""


def limit_sessions(
    engine: Engine,
    statement_timeout: float | None,
    lock_timeout: float | None,
    lease: float | None = None,
) -> None:
    """Set limits on each future session of the engine, and prepare it for reading.

    With a `lease`, a client frozen or cut off while it holds row locks loses its session within two
    of them, as far as the database can do that.
    """
    from sqlalchemy import event

    dialect = dialect_of(engine)
    _refuse(dialect, statement_timeout=statement_timeout, lock_timeout=lock_timeout)
    seconds = statement_timeout or STATEMENT_SECONDS
    settings = _settings(dialect, seconds, lock_timeout or LOCK_SECONDS, lease)
    arguments = dict(dialect.driver.connect_arguments)
    if lease is not None:
        # Nobody waits for a connection on which none answers: two leases, and never longer than
        # usual.
        shortest = max(lease, SHORTEST_SECONDS)
        for name, per_second in dialect.driver.lease_arguments.items():
            arguments[name] = min(arguments[name], ceil(shortest * per_second))
    if dialect.driver.answer_argument is not None:
        arguments[dialect.driver.answer_argument] = ceil(seconds) + ANSWER_SECONDS

    set_at_begin(engine, settings)

    def limit(connection: Any, record: Any) -> None:
        if IS_POOLED in record.info:
            return
        if dialect.driver.limits_calls:
            connection.call_timeout = round(seconds * 1000)
        if dialect.driver.names_sessions:
            # Where a DBA looks at sessions: what each is for.
            connection.module = PROGRAM
            connection.action = "read" if lease is None else "publish"
        cursor = connection.cursor()
        for setting in settings:
            cursor.execute(setting)
        cursor.close()
        # Some settings hold only from the end of a transaction on.
        connection.commit()
        record.info[IS_SET] = True

    def hurry(_dialect: Any, _record: Any, _positional: Any, given: dict[str, Any]) -> None:
        for name, value in arguments.items():
            given.setdefault(name, value)  # what the URL says comes first

    event.listen(engine, "do_connect", hurry)
    event.listen(engine, "connect", limit)


def _has_limit(dialect: Dialect, name: str) -> bool:
    """Return True if sessions of the database can have this limit."""
    # A limit is there where the statement that sets limits has a hole for it.
    hole = f"/* {name.removesuffix('timeout')}"
    limits = texts(dialect).get("session_limits", "")
    return hole in limits or (dialect.driver.limits_calls and name == "statement_timeout")


def _refuse(dialect: Dialect, **wanted: float | None) -> None:
    for name, seconds in wanted.items():
        if seconds is not None and not _has_limit(dialect, name):
            raise ConfigError(
                f"source.{name} cannot be set: {dialect.name} has no such limit for a session; leave it out."
            )


def idle_seconds(lease: float) -> float:
    """Return how long a client may be silent in a transaction blocking the lease."""
    return max(lease, SHORTEST_SECONDS) * IDLE_LEASES


def _settings(dialect: Dialect, statement_seconds: float, lock_seconds: float, lease: float | None) -> list[str]:
    """List the settings of a new session; limits come last, for they are the narrower ones.

    With a lease nobody waits for its client much longer than that.
    """
    limits = statement(
        dialect,
        "session_limits",
        statement_ms=str(round(statement_seconds * 1000)),
        statement_s=f"{statement_seconds:.3f}",
        lock_ms=str(round(lock_seconds * 1000)),
        lock_s=str(ceil(lock_seconds)),
    )
    settings = [*statements_of(dialect, "session"), limits]
    if lease is not None:
        seconds, idle = max(lease, SHORTEST_SECONDS), idle_seconds(lease)
        limits = statement(
            dialect,
            "lease_limits",
            idle_ms=str(round(idle * 1000)),
            idle_s=str(ceil(idle)),
            silent_s=str(ceil(seconds)),
            probe_s=str(ceil(seconds / PROBES)),
            probes=str(PROBES),
            unheard_ms=str(round(seconds * 2000)),
        )
        settings.append(limits)
    # A database may lack one of them.
    return [setting for setting in settings if setting]
