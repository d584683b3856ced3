"""What the publisher says of itself: one record an occasion, with a stable `action` to search and to count by.

Law: a record never holds a password, whoever put it into a message.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Collection, MutableMapping
from typing import Any, Literal, TextIO, cast

import structlog
from structlog.stdlib import BoundLogger

Style = Literal["console", "json"]

_credentials = re.compile(r"(://[^\s/:@]*):[^\s/@]*@")
_Record = MutableMapping[str, Any]


def journal(
    style: Style, *, level: str = "info", secrets: Collection[str] = (), stream: TextIO | None = None
) -> BoundLogger:
    """A journal on standard error, or on a stream: lines for people, or JSON for programs.

    The secrets may become more: a configuration that is read again has others.
    """

    def hide(_logger: Any, _method: str, record: _Record) -> _Record:
        return {name: _hidden(value, secrets) for name, value in record.items()}

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
        processors=[structlog.stdlib.render_to_log_kwargs],
        wrapper_class=BoundLogger,
    )
    return cast("BoundLogger", logger)


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
    return msgspec.json.encode({**first, **record}, enc_hook=str).decode()


def _hidden(value: Any, secrets: Collection[str]) -> Any:
    if not isinstance(value, str):
        return value
    for secret in secrets:
        value = value.replace(secret, "***") if secret else value
    return _credentials.sub(r"\1:***@", value)
