"""The sinks `delta` and `iceberg`: tables of a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from eventlog.core.plugins import Finding, Need, SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.sinks.lake.settings import DeltaSettings, IcebergSettings, LakeSettings
from eventlog.sinks.store.address import MODULE, is_address
from eventlog.sinks.store.findings import place_findings


class DeltaOutput(DeltaSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="delta"):
    """Tables of Delta Lake."""


class IcebergOutput(
    IcebergSettings, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="sink", tag="iceberg"
):
    """Tables of Apache Iceberg."""


def _delta(order: SinkOrder) -> Sink:
    from eventlog.sinks.lake.delta import DeltaTables
    from eventlog.sinks.lake.sink import LakeSink

    return LakeSink(order.output, DeltaTables(order.output))


def _iceberg(order: SinkOrder) -> Sink:
    from eventlog.sinks.lake.iceberg import IcebergTables
    from eventlog.sinks.lake.sink import LakeSink

    return LakeSink(order.output, IcebergTables(order.output))


def _iceberg_needs(output: IcebergOutput) -> Iterator[Need]:
    yield Need('An output with sink = "iceberg"', "pyiceberg")
    yield from _needs(output)


def _delta_needs(output: DeltaOutput) -> Iterator[Need]:
    yield Need('An output with sink = "delta"', "deltalake")
    yield from _needs(output)


def _needs(output: LakeSettings) -> Iterator[Need]:
    yield Need(f'An output with sink = "{output.sink}"', "pyarrow")
    if is_address(output.path):
        yield Need(f'An output with path = "{output.path.partition("://")[0]}://…"', MODULE)


def _findings(output: LakeSettings) -> Iterable[Finding]:
    yield from place_findings(output.path, output.store)


def _place(output: LakeSettings) -> str:
    path = output.path if is_address(output.path) else Path(output.path).resolve()
    return f"{output.sink} {path} {output.task}"


DELTA: Final = SinkPlugin(
    settings=DeltaOutput,
    build=_delta,
    place=_place,
    formats=("change-tables",),
    check=_findings,
    needs=_delta_needs,
)
ICEBERG: Final = SinkPlugin(
    settings=IcebergOutput,
    build=_iceberg,
    place=_place,
    formats=("change-tables",),
    check=_findings,
    needs=_iceberg_needs,
)
