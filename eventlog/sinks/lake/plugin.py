"""The sinks `delta` and `iceberg`: tables of a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from eventlog.core.plugins import Finding, Need, SinkOrder, SinkPlugin
from eventlog.core.seams import Sink
from eventlog.sinks.lake.settings import DeltaSettings, IcebergSettings, LakeSettings
from eventlog.sinks.store.address import MODULE, is_address
from eventlog.sinks.store.findings import target_findings

if TYPE_CHECKING:
    from eventlog.sinks.lake.sink import LakeTables


class DeltaOutput(
    DeltaSettings,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="delta",
):
    """Tables of Delta Lake."""


class IcebergOutput(
    IcebergSettings,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="sink",
    tag="iceberg",
):
    """Tables of Apache Iceberg."""


def _sink(order: SinkOrder) -> Sink:
    return lake_sink(order.output)


def lake_sink(output: LakeSettings) -> Sink:
    """Make the sink of a lake's output."""
    from eventlog.sinks.lake.sink import LakeSink

    return LakeSink(output, lake_tables(output))


def lake_tables(output: LakeSettings) -> LakeTables:
    """Open the tables of a lake's output."""
    if isinstance(output, DeltaSettings):
        from eventlog.sinks.lake.delta import DeltaTables

        return DeltaTables(output)
    from eventlog.sinks.lake.iceberg import IcebergTables

    assert isinstance(output, IcebergSettings)
    return IcebergTables(output)


def needs_of(output: LakeSettings) -> Iterator[Need]:
    """Yield the modules this output requires."""
    library = "deltalake" if output.sink == "delta" else "pyiceberg"
    for module in (library, "pyarrow"):
        yield Need(f'An output with sink = "{output.sink}"', module)
    if is_address(output.path):
        scheme = output.path.partition("://")[0]
        yield Need(f'An output with path = "{scheme}://…"', MODULE)


def _findings(output: LakeSettings) -> Iterable[Finding]:
    yield from target_findings(output.path, output.store)


def _place(output: LakeSettings) -> str:
    path = output.path if is_address(output.path) else Path(output.path).resolve()
    return f"{output.sink} {path} {output.task}"


DELTA: Final = SinkPlugin(
    settings=DeltaOutput,
    build=_sink,
    place=_place,
    formats=("change-tables",),
    check=_findings,
    needs=needs_of,
)
ICEBERG: Final = SinkPlugin(
    settings=IcebergOutput,
    build=_sink,
    place=_place,
    formats=("change-tables",),
    check=_findings,
    needs=needs_of,
)
