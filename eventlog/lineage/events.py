"""Run events of OpenLineage 2.0.2, as its file transport writes them: an object a line. Pure, but for the file.

The library would bring an HTTP client for transports that are not used here; what is written is this one object.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal
from uuid import uuid4

from msgspec import Struct

from eventlog.core.errors import SinkError
from eventlog.version import VERSION

PRODUCER: Final = f"https://pypi.org/project/eventlog-cdc/{VERSION}"
SCHEMA: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
INPUTS: Final = "https://openlineage.io/spec/facets/1-0-0/InputStatisticsInputDatasetFacet.json#/$defs/InputStatisticsInputDatasetFacet"
JOB: Final = "https://openlineage.io/spec/facets/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet"
FAULT: Final = "https://openlineage.io/spec/facets/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet"

RunState = Literal["START", "RUNNING", "COMPLETE", "FAIL"]


class Run(Struct, frozen=True, kw_only=True):
    """One run of a job, which reads tables of the database `source` and writes to `outputs`, by their names."""

    job: str
    namespace: str
    source: str
    outputs: tuple[str, ...]
    kind: Literal["STREAMING", "BATCH"] = "STREAMING"
    id: str = ""


def begin_run(run: Run) -> Run:
    """Give the run an id of its own."""
    return Run(
        job=run.job,
        namespace=run.namespace,
        source=run.source,
        outputs=run.outputs,
        kind=run.kind,
        id=str(uuid4()),
    )


def write_event(
    run: Run, state: RunState, tables: Mapping[str, int | None], when: dt.datetime, fault: str = ""
) -> dict[str, Any]:
    """Describe a run: the rows it has read of each table, None where nobody has counted them."""
    facets: dict[str, Any] = {}
    if fault:
        facets["errorMessage"] = _facet(FAULT, message=fault, programmingLanguage="Python")
    return {
        "eventTime": when.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "eventType": state,
        "producer": PRODUCER,
        "schemaURL": SCHEMA,
        "run": {"runId": run.id, "facets": facets},
        "job": {
            "namespace": run.namespace,
            "name": run.job,
            "facets": {"jobType": _facet(JOB, processingType=run.kind, integration="EVENTLOG", jobType="PUBLISHER")},
        },
        "inputs": [
            {
                "namespace": run.source,
                "name": table,
                "inputFacets": {} if rows is None else {"inputStatistics": _facet(INPUTS, rowCount=rows)},
            }
            for table, rows in sorted(tables.items())
        ],
        "outputs": [{"namespace": run.namespace, "name": name} for name in run.outputs],
    }


def append_event(file: Path, event: Mapping[str, Any]) -> None:
    """Append an event as one line; raise SinkError if impossible."""
    try:
        with file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(event, ensure_ascii=False) + "\n")
    except OSError as error:
        raise SinkError(
            f"The lineage file {file} cannot be written: {error.strerror}.", hint="lineage.file names it."
        ) from None


def differ(before: Mapping[str, int], now: Mapping[str, int]) -> Sequence[str]:
    """List the tables with rows read since."""
    return [table for table, rows in now.items() if rows != before.get(table, 0)]


def _facet(schema: str, **fields: object) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": schema, **fields}
