"""Which orders are the same: for the marks of a log, for an output that is complete, and for work that is gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.convert.identity import as_begun, identity_of
from eventlog.convert.settings import (
    Conversion,
    DatabaseRows,
    FilesInput,
    LogInput,
    SentMessages,
    SentTables,
    SnapshotRows,
)
from eventlog.core.schema import Catalog, Column, Table
from eventlog.policies.steps import Hash
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.database.settings import DatabaseSettings
from eventlog.sinks.kafka.settings import KafkaSettings


def tables_of(conversion: Conversion) -> list[Table]:
    return list(conversion.catalog or ())


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
    assert identity_of(with_password("new", format=form("new"))) == identity_of(ordered(format=form("old")))


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
    assert identity_of(ordered()) != identity_of(ordered(**more))


def test_a_table_that_was_altered_makes_no_other_order_of_a_log_and_its_work_keeps_the_former_one(
    tmp_path: Path,
) -> None:
    former, later = (Catalog([Table(name="t", columns=(Column(name=name),))]) for name in ("a", "b"))
    assert identity_of(ordered(catalog=later)) == identity_of(ordered(catalog=former))
    assert tables_of(as_begun(ordered(catalog=former), tmp_path)) == tables_of(ordered(catalog=former))
    assert tables_of(as_begun(ordered(catalog=later), tmp_path)) == tables_of(ordered(catalog=former))
    files = FilesInput(places=(str(tmp_path),))
    (tmp_path / "a.jsonl").touch()
    assert identity_of(replace(ordered(catalog=later), input=files)) != identity_of(
        replace(ordered(catalog=former), input=files)
    )
    assert as_begun(replace(ordered(catalog=later), input=files), tmp_path).catalog == later
