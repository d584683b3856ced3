"""Which orders are the same: for the marks of a log, for an output that is complete, and for work that is gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.convert.identity import identity_of, order_of
from eventlog.convert.settings import Conversion, DatabaseRows, LogInput, SentMessages, SentTables, SnapshotRows
from eventlog.core.schema import Catalog
from eventlog.policies.steps import Hash
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.settings import DatabaseSettings
from eventlog.sinks.kafka.settings import KafkaSettings


def names_of(conversion: Conversion) -> list[str | None]:
    """What the order is called for each purpose."""
    return [order_of(conversion), identity_of(conversion)]


def ordered(**more: Any) -> Conversion:
    url = "postgresql+psycopg://app:old@db/app"
    source = LogInput(url=url)
    rest = {"catalog": Catalog([]), "read_back": DatabaseRows(url=url)}
    return Conversion(input=source, destination=Path("out"), **{**rest, **more})


def with_password(word: str, **more: Any) -> Conversion:
    url = f"postgresql+psycopg://app:{word}@db/app"
    return replace(ordered(**more), input=LogInput(url=url), read_back=DatabaseRows(url=url))


@pytest.mark.parametrize(
    "form",
    [
        lambda word: SentTables(into=DatabaseSettings(url=f"mysql+pymysql://a:{word}@b/c")),
        lambda word: SentMessages(
            settings=MessageSettings(),
            into=KafkaSettings(servers="k:9092", options={"sasl.password": word}),
        ),
    ],
    ids=["database", "kafka"],
)
def test_a_new_password_makes_no_other_order(form: Any) -> None:
    """Else nobody could go on with what was interrupted while it was sent."""
    assert names_of(with_password("new", format=form("new"))) == names_of(ordered(format=form("old")))


@pytest.mark.parametrize(
    "more",
    [
        {"steps": (Hash(attributes=("salary",), secret="a secret of some length"),)},
        {"read_back": SnapshotRows(folder=Path("elsewhere"))},
        {"read_back": DatabaseRows(url="postgresql+psycopg://app@other/app")},
    ],
    ids=["policies", "snapshot", "another database"],
)
def test_what_makes_another_output_is_another_order(more: dict[str, Any]) -> None:
    names = zip(names_of(ordered()), names_of(ordered(**more)), strict=True)
    assert all(one != other for one, other in names)
