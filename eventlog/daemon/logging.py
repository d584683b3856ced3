"""What the publisher says of itself: one record an occasion, with a stable `action` to search and to count by.

Law: a record never holds a password, whoever put it into a message, and a line holds nothing that a terminal obeys.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection, Mapping, MutableMapping
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.stdlib import BoundLogger

from eventlog.core.secrets import masked, visible

Style = Literal["console", "json"]

_Record = MutableMapping[str, Any]


def journal(
    style: Style, *, level: str = "info", secrets: Collection[str] = (), stream: TextIO | None = None
) -> BoundLogger:
    """A journal on standard error, or on a stream: lines for people, or JSON for programs.

    The secrets may become more: a configuration that is read again has others.
    """
    _tame_libraries()

    def hide(_logger: Any, _method: str, record: _Record) -> _Record:
        return {name: _hidden(value, secrets, raw=style == "json") for name, value in record.items()}

    shown: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
        structlog.processors.EventRenamer("action"),
        hide,
        _renderer(style, stream or sys.stderr),
    ]
    logger = structlog.wrap_logger(
        structlog.PrintLogger(stream or sys.stderr),
        processors=shown,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    return cast("BoundLogger", logger)


def library_journal() -> BoundLogger:
    """A journal for those who use eventlog as a library: the standard logger `eventlog`, which says what they want."""
    logger = structlog.wrap_logger(
        logging.getLogger("eventlog"),
        processors=[_discreet, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=BoundLogger,
    )
    return cast("BoundLogger", logger)


class _Discreet(logging.Formatter):
    """What a library, or a module of ours, warns of where nobody has set up loggers."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(masked(super().format(record)), lines=True)


def _tame_libraries() -> None:
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Discreet())


def _discreet(_logger: Any, _method: str, record: _Record) -> _Record:
    return {name: _hidden(value, (), raw=False) for name, value in record.items()}


def _renderer(style: Style, stream: TextIO) -> Any:
    if style == "json":
        return _in_one_line
    return structlog.dev.ConsoleRenderer(
        colors=stream.isatty() and not os.environ.get("NO_COLOR"),
        event_key="action",
        timestamp_key="time",
        sort_keys=False,
        exception_formatter=structlog.dev.plain_traceback,
    )


def _in_one_line(_logger: Any, _method: str, record: _Record) -> str:
    import msgspec

    first = {name: record[name] for name in ("time", "level", "action") if name in record}
    line = msgspec.json.encode({**first, **record}, enc_hook=str).decode()
    return visible(line, json=True)


def _hidden(value: Any, secrets: Collection[str], *, raw: bool) -> Any:
    """The value without secrets; in JSON the rest is kept as it is, for there its writing is made harmless."""
    if isinstance(value, bool | int | float | None):
        return value
    if isinstance(value, Mapping):
        return {str(key): _hidden(one, secrets, raw=raw) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(one, secrets, raw=raw) for one in value]
    text = masked(str(value), secrets)
    return text if raw else visible(text)
