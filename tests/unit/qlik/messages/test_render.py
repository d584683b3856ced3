"""What stands around the values of a message."""

from __future__ import annotations

import datetime as dt

from msgspec.structs import replace

from eventlog.core.model import Transaction
from eventlog.qlik.messages.render import Moments
from tests.support.messages import inserted


def test_a_change_without_a_transaction_has_no_id_of_the_one_before() -> None:
    moments, time = Moments(), dt.datetime(2026, 1, 2, 3, 4, 5)
    first = inserted(1, customer="Ada")
    with_transaction = replace(first, transaction=Transaction(id=7, time=time), time=None)
    when, transaction = moments.of(with_transaction)
    assert transaction
    assert moments.of(replace(first, transaction=None, time=time)) == (when, "")
