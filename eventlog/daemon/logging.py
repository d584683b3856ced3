"""What the publisher says of itself: one record an occasion, with a stable `action` to search and
to count by.

Law: a record never holds a password, whoever put it into a message, and a line holds nothing that a
terminal obeys.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final, Literal, TextIO, cast

import msgspec
import structlog
from structlog.stdlib import BoundLogger

from eventlog.core.secrets import mask_secrets, visible

Style = Literal["console", "json"]

_Record = MutableMapping[str, Any]

OURS: Final = frozenset({"action", "level", "time"})
"""What a record says in our own words alone: nothing in it can be a secret, and alerts look for it."""


def journal(
    style: Style, *, level: str = "info", secrets: Collection[str] = (), stream: TextIO | None = None
) -> BoundLogger:
    """Make a log on standard error, or on a stream: lines for people, or JSON for programs.

    The secrets may become more: a configuration that is read again has others.
    """

    def hide(_logger: Any, _method: str, record: _Record) -> _Record:
        return {
            name: value if name in OURS else _hide_secrets(value, secrets, raw=style == "json")
            for name, value in record.items()
        }

    def in_one_line(_logger: Any, _method: str, record: _Record) -> str:
        # A dict keeps the first place of a key, so these three stand in front.
        first = {name: record[name] for name in ("time", "level", "action") if name in record}
        line = msgspec.json.encode({**first, **record}, enc_hook=str).decode()
        return visible(line, json=True)

    def put_error_behind(_logger: Any, _method: str, record: _Record) -> _Record:
        # A person reads a sentence, and no value in quotes.
        error = record.pop("error", None)
        return record if error is None else {**record, "action": f"{record['action']}: {error}"}

    renderer: Any = in_one_line
    if style != "json":
        colors = (stream or sys.stderr).isatty() and not os.environ.get("NO_COLOR")
        renderer = structlog.dev.ConsoleRenderer(
            colors=colors,
            event_key="action",
            timestamp_key="time",
            sort_keys=False,
            exception_formatter=structlog.dev.plain_traceback,
        )
    shown: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.EventRenamer("action"),
        # Behind the renamer, so that `action` has its name, and before all becomes one text.
        hide,
        *([] if style == "json" else [put_error_behind]),
        renderer,
    ]
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream or sys.stderr),
        processors=shown,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    # What a library says is seldom the news, and no line comes between the records that is none. Python
    # uses this one where nobody has set up a handler, so whoever has keeps his own.
    logging.lastResort = cast("Any", _JournalHandler(cast("BoundLogger", logger)))
    return cast("BoundLogger", logger)


def library_journal() -> BoundLogger:
    """Make a log for users of the library: the standard logger `eventlog`, configured by them."""

    def discreet(_logger: Any, _method: str, record: _Record) -> _Record:
        return {name: _hide_secrets(value, (), raw=False) for name, value in record.items()}

    logger = structlog.wrap_logger(
        logging.getLogger("eventlog"),
        processors=[structlog.stdlib.filter_by_level, discreet, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=BoundLogger,
    )
    return cast("BoundLogger", logger)


class _JournalHandler(logging.Handler):
    """What a library, or a module of ours, says where nobody has set up loggers: a record like all others."""

    def __init__(self, journal: BoundLogger) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.exc_info is not None and record.exc_info[1] is not None:
            message = f"{message}: {record.exc_info[1]}"
        said = " ".join(message.split())
        if record.name.partition(".")[0] == "eventlog":
            self._journal.warning("noticed", said=said)
        else:
            self._journal.warning("library", name=record.name, said=said)


class _DetailHandler(logging.Handler):
    """Records documents, which modules below this one log."""

    def __init__(self, journal: BoundLogger) -> None:
        super().__init__(logging.DEBUG)
        self._journal = journal

    def emit(self, record: logging.LogRecord) -> None:
        self._journal.debug(record.getMessage(), **getattr(record, "facts", {}))


@contextmanager
def log_in_detail(journal: BoundLogger) -> Iterator[None]:
    """Log each statement sent to a database and each document sent to an output, during the block.

    Only documents are logged with values: a statement may have values an output hides.
    """
    from sqlalchemy import Engine, event

    from eventlog.core.detail import DOCUMENTS

    def log_statement(_connection: Any, _cursor: Any, sql: str, values: Any, _context: Any, many: bool) -> None:
        journal.debug("statement", sql=" ".join(sql.split()), times=len(values) if many else 1)

    handler, former = _DetailHandler(journal), DOCUMENTS.level
    event.listen(Engine, "before_cursor_execute", log_statement)
    DOCUMENTS.addHandler(handler)
    DOCUMENTS.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        DOCUMENTS.setLevel(former)
        DOCUMENTS.removeHandler(handler)
        event.remove(Engine, "before_cursor_execute", log_statement)


@contextmanager
def log_library_warnings(journal: BoundLogger) -> Iterator[None]:
    """Turn Python's own prints into records: warnings, errors of threads and unraisable ones."""

    def log_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
        journal.warning("library", name=category.__name__, said=" ".join(str(message).split()))

    def log_failure(error: BaseException | None, name: str) -> None:
        message = f"{type(error).__name__}: {error}"
        journal.warning("library", name=name, said=" ".join(message.split()))

    former = warnings.showwarning, threading.excepthook, sys.unraisablehook
    warnings.showwarning = cast("Any", log_warning)
    threading.excepthook = lambda args: log_failure(args.exc_value, args.thread.name if args.thread else "thread")
    sys.unraisablehook = lambda args: log_failure(args.exc_value, "unraisable")
    try:
        yield
    finally:
        warnings.showwarning, threading.excepthook, sys.unraisablehook = former


def _hide_secrets(value: Any, secrets: Collection[str], *, raw: bool) -> Any:
    """Hide secrets in a value; in JSON the rest is kept as it is, for there its writing is made harmless."""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): _hide_secrets(inner, secrets, raw=raw) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_hide_secrets(inner, secrets, raw=raw) for inner in value]
    text = mask_secrets(str(value), secrets)
    return text if raw else visible(text)
