"""The headers of data messages that are made once for many: times and transactions as messages write them."""

from __future__ import annotations

import datetime as dt
from typing import Final

from eventlog.core.model import Change, Transaction
from eventlog.qlik.change_seq import utc

_ID_BITS: Final = (1 << 128) - 1


class Moments:
    """Remembers the last time and the last transaction, which neighbours mostly share."""

    __slots__ = ("_text", "_transaction", "_transaction_text", "_when")

    def __init__(self) -> None:
        self._when: object = None
        self._text = ""
        self._transaction: Transaction | None = None
        self._transaction_text = ""

    def of(self, change: Change) -> tuple[str, str]:
        """The timestamp and the transactionId of a change."""
        when, transaction = change.time, change.transaction
        if transaction is not self._transaction:
            self._transaction = transaction
            self._transaction_text = "" if transaction is None else transaction_id(transaction)
        if when is None and transaction is not None:
            when = transaction.time
        if when is not self._when and when != self._when:
            self._when = when
            self._text = timestamp(when)
        return self._text, self._transaction_text


def timestamp(when: dt.datetime | str | None) -> str:
    """A time in UTC to the millisecond, without a zone; empty where nobody can read it."""
    at = utc(when)
    return "" if at is None else at.isoformat("T", "milliseconds")


def transaction_id(transaction: Transaction) -> str:
    """A transaction's number as 32 hex digits, the most significant first."""
    return f"{transaction.id & _ID_BITS:032X}"
