"""Changes that eventlog has published as JSON lines, as a resource of dlt: merged into any target of it.

    import dlt
    from eventlog_dlt import changes

    pipeline = dlt.pipeline("people", destination="duckdb", dataset_name="people")
    pipeline.run(changes("published"))

`published` is the folder of an output with sink = "files" and format = "jsonl". Which document was loaded last
stands in the pipeline's state, which a target gets with the rows: nothing is loaded twice, and nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dlt

__all__ = ["changes"]

DELETED = "eventlog_deleted"
POSITION = "eventlog_position"


@dlt.resource(name="eventlog_changes", write_disposition="merge", max_table_nesting=0)
def changes(folder: str) -> Iterator[Any]:
    """Give the changes of documents behind the last one that was loaded, in their order.

    Each table of the source becomes one of the target, with its key. A row needs all its columns: track tables
    with `--events image`, or let them be read back.
    """
    state = dlt.current.resource_state()
    for file in sorted(Path(folder).glob("*.jsonl")):
        if file.name <= state.get("document", ""):
            continue
        tables: dict[str, list[dict[str, Any]]] = {}
        keys: dict[str, list[str]] = {}
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
            change = json.loads(line)
            table = "__".join(filter(None, (change["schema"], change["table"])))
            tables.setdefault(table, []).append(_row(table, change, f"{file.stem}.{number:09d}"))
            keys[table] = [*(change["key"] or ())]
        for table, rows in tables.items():
            yield dlt.mark.with_hints(rows, _hints(table, keys[table]), create_table_variant=True)
        state["document"] = file.name


def _row(table: str, change: Mapping[str, Any], position: str) -> dict[str, Any]:
    """Make the row that a change leaves, or that went with it."""
    if change["op"] == "truncate":
        problem = f"{table} was emptied (change {change['id']}), which a merge cannot say"
        raise ValueError(f"{problem}; empty it in the target and load again.")
    gone = change["op"] == "delete"
    row = change["before"] if gone else change["after"]
    return {**(change["key"] or {}), **(row or {}), DELETED: gone, POSITION: position}


def _hints(table: str, key: list[str]) -> Any:
    """Say what dlt has to know of a table."""
    if not key:
        # Rows that no key tells apart are kept as they come.
        return dlt.mark.make_hints(table_name=table, write_disposition="append")
    return dlt.mark.make_hints(
        table_name=table,
        primary_key=key,
        write_disposition="merge",
        # Of several changes of a row in one load the last one counts.
        columns={DELETED: {"hard_delete": True}, POSITION: {"dedup_sort": "desc"}},
    )
