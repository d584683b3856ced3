"""What a driver's error means: whether waiting cures it, who has locked what, whether a right is missing."""

from __future__ import annotations

from eventlog.sql.dialect import Dialect, dialects


def is_lasting(error: BaseException | None) -> bool:
    """Whether a driver's error has a number that waiting does not cure; PyMySQL has one class for deadlocks and typing errors.

    So has sqlite3, which tells the number apart from the text, with details in its higher bits. Who was turned away at
    the door will be turned away again: to try the same password for ever only locks the account.
    """
    if _is_refusal(error):
        return True
    number = _number_of(error)
    passing = frozenset[int]().union(*(dialect.passing_errors for dialect in dialects()))
    return isinstance(number, int) and number > 0 and number not in passing


def is_locked(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that another process has locked the whole database."""
    return _number_of(error) in dialect.locked_errors


def is_held_up(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that somebody else holds a lock: what was begun can be tried again as it was."""
    told = error.args[0] if error is not None and error.args else None
    codes = {getattr(error, "sqlstate", None), getattr(told, "code", None)} | (
        {told} if isinstance(told, int) else set()
    )
    return not codes.isdisjoint(dialect.lock_codes | dialect.deadlock_codes) or is_locked(dialect, error)


def _number_of(error: BaseException | None) -> object:
    told = (getattr(error, dialect.error_number, None) for dialect in dialects() if dialect.error_number)
    number = next((number for number in told if isinstance(number, int)), None)
    if number is not None:
        return number & 0xFF
    return error.args[0] if error is not None and error.args else None


def _is_refusal(error: BaseException | None) -> bool:
    """Whether a server has refused a connection for good, as far as only its words say so."""
    said = str(error)
    if "FATAL" not in said and "no password supplied" not in said:
        return False
    return any(words in said for dialect in dialects() for words in dialect.refusals)


def is_passing(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error has a code that waiting may cure, where the driver's class does not say so."""
    told = error.args[0] if error is not None and error.args else None
    codes = {getattr(told, name, None) for name in ("code", "full_code")} | {getattr(error, "sqlstate", None)}
    return not codes.isdisjoint(dialect.passing_codes) or bool(getattr(told, "isrecoverable", False))


def is_denied(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error says that a right is missing."""
    told = error.args[0] if error is not None and error.args else None
    codes = {getattr(error, "sqlstate", None), getattr(told, "code", None)} | (
        {told} if isinstance(told, int) else set()
    )
    return not codes.isdisjoint(dialect.denied_codes)


def is_of_value(dialect: Dialect, error: BaseException | None) -> bool:
    """Whether a driver's error has a code that speaks of a value, where the driver's class does not say so."""
    told = error.args[0] if error is not None and error.args else None
    return getattr(told, "code", None) in dialect.value_codes
