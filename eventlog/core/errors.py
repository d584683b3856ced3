"""What can go wrong, sorted by whose fault it is.

Every error is one or two sentences (what, where, what to do), knows the exit code it ends a command
with (sysexits) and pickles. Without a message of its own an error says its docstring. What a
driver, a broker or a receiver has said may be part of it, so no message holds a password or
anything that a terminal would obey.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from eventlog.core.secrets import make_readable

OK: Final = 0
EX_USAGE: Final = 64
EX_DATA: Final = 65
EX_UNAVAILABLE: Final = 69
EX_TRY_AGAIN: Final = 75
EX_CONFIG: Final = 78


class EventlogError(Exception):
    """Something went wrong in eventlog. A more precise message is missing; please report it."""

    exit_code: int = 70

    def __init__(self, message: str | None = None, *, hint: str | None = None) -> None:
        self.message = make_readable(message or str(self.__doc__))
        self.hint = None if hint is None else make_readable(hint)
        super().__init__(self.message)

    def __str__(self) -> str:
        if self.hint:
            return f"{self.message} {self.hint}"
        return self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are pickled with their arguments, which here are not those of every class's
        # `__init__`: processes of a conversion hand them on.
        return type(self).__new__, (type(self), self.message), self.__dict__.copy()


class UsageError(EventlogError):
    """The command was called in a way that it does not understand; see --help."""

    exit_code = EX_USAGE


class ConfigError(EventlogError):
    """The configuration cannot be used."""

    exit_code = EX_CONFIG


class InstallError(EventlogError):
    """The database does not hold what eventlog needs there; `eventlog install` puts it there."""

    exit_code = EX_CONFIG


class DataError(EventlogError):
    """The data cannot be read."""

    exit_code = EX_DATA


class KeySyntaxError(DataError):
    """A table_key does not follow its grammar. `column` counts characters from 1."""

    def __init__(self, problem: str, *, text: str, column: int) -> None:
        self.text = text
        self.column = column
        super().__init__(f"table_key {shorten(text)!r}, column {column}: {problem}.")


class XmlError(DataError):
    """XML from outside cannot be accepted. `line` counts from 1."""

    def __init__(self, problem: str, *, line: int) -> None:
        self.problem = problem
        self.line = line
        super().__init__(f"Line {line}: {problem}.")


class DamageError(DataError):
    """A stream of bytes is damaged. `offset` is where the record begins that cannot be read."""

    def __init__(self, problem: str, *, offset: int) -> None:
        self.problem = problem
        self.offset = offset
        super().__init__(f"Byte {offset}: {problem}.")


class ExpressionError(DataError):
    """The format has no way to express the data."""


class MachineError(EventlogError):
    """A machine did not do its part. `may_pass` says whether trying again makes sense."""

    exit_code = EX_UNAVAILABLE

    def __init__(
        self,
        message: str | None = None,
        *,
        hint: str | None = None,
        may_pass: bool = True,
    ) -> None:
        super().__init__(message, hint=hint)
        self.may_pass = may_pass
        self.exit_code = EX_TRY_AGAIN if may_pass else EX_UNAVAILABLE


class SourceError(MachineError):
    """The source of changes cannot be read."""


class ChangedError(SourceError):
    """A table is not as it was when it was looked at; another look is all that it takes."""


class OccupiedError(SourceError):
    """Another publisher works on this event log."""


class SinkError(MachineError):
    """The sink does not take documents."""


class OutputError(SinkError):
    """Something is wrong with an output; another try would not help."""

    def __init__(self, message: str | None = None, *, hint: str | None = None, exit_code: int = EX_UNAVAILABLE) -> None:
        super().__init__(message, hint=hint, may_pass=False)
        self.exit_code = exit_code


_promise = re.compile(r"(?P<before>[.;]?) ?It is tried again(?: with [^.;]*)?(?:\.|; (?P<rest>\w))", re.IGNORECASE)


def without_promise(message: str) -> str:
    """Drop the promise of another try from an error's message, for places where nobody tries again."""

    def without(promise: re.Match[str]) -> str:
        end = "." if promise["before"] else ""
        if promise["rest"]:
            return f"{end} {promise['rest'].upper()}"
        return end

    return _promise.sub(without, message).strip()


def value_shown(value: object) -> str:
    """Format a value for a message: short, and safe for a log or a database."""
    if isinstance(value, str):
        return repr(shorten(value))
    if isinstance(value, bytes | bytearray | memoryview):
        return f"binary data ({memoryview(value).nbytes} bytes)"
    try:
        return shorten(repr(value))
    except ValueError:  # Python does not write integers of more than 4300 digits
        return "a number of thousands of digits"


def shorten(text: str, limit: int = 80) -> str:
    """Cut text to its beginning and note how much is left out: no message repeats a value of 10 MB."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… ({len(text) - limit} more characters)"


@contextmanager
def name_file(path: object) -> Iterator[None]:
    """Puts the file's name into errors of the operating system: where one is written, they lack it."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise
