"""Changes as rows with typed columns, from which each is made again as it was: what a DataFrame of
changes holds.
"""

from __future__ import annotations

import datetime as dt
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from eventlog.convert.forms import Rendering, TableNumbers
from eventlog.core.model import ABSENT, Change, Edit, Op, RowId, Transaction, Value, Who
from eventlog.core.schema import Catalog

EDIT: Final = pa.struct(
    [
        ("column", pa.string()),
        ("old", pa.list_(pa.string())),
        ("new", pa.list_(pa.string())),
        ("reset", pa.bool_()),
        ("old_types", pa.string()),
        ("new_types", pa.string()),
    ]
)
"""An edit: its values as text, a list of one NULL for NULL, and NULL where nobody noted any.
`old_types` and `new_types` say what the values are in Python, a letter each behind `*` where an
attribute has several; without them it is one text.
"""

CAPTURED: Final = pa.struct(
    [
        ("positions", pa.list_(pa.list_(pa.int64()))),
        ("transaction", pa.int64()),
        ("committed", pa.string()),
        ("end", pa.int64()),
        ("stream", pa.string()),
    ]
)
"""What only a captured stream knows of a change: its positions, of several numbers each, and its
transaction.
"""

CALLED: Final = pa.struct([(name, pa.string()) for name in ("schema", "table", "spelled", "key")])
"""An object that a value names as it is spelled there, and its key."""

CHANGES: Final = pa.schema(
    [
        ("position", pa.int64()),
        ("positions", pa.list_(pa.int64())),
        ("table_schema", pa.string()),
        ("table_name", pa.string()),
        ("table_key", pa.string()),
        ("event_time", pa.string()),
        ("refresh", pa.bool_()),
        ("created", pa.bool_()),
        ("route", pa.string()),
        ("edits", pa.list_(EDIT)),
        ("whole", pa.bool_()),
        ("captured", CAPTURED),
        ("who", pa.struct([("user", pa.string()), ("context", pa.string())])),
        ("called", pa.list_(CALLED)),
    ]
)
"""A change; `op` stands beside it in every form's results. Changes of a log have no `captured`; `who` is there where it
was asked for, `called` where a value names an object whose key has several spellings.
"""

SEVERAL: Final = "*"
_letters: Final[dict[type, str]] = {
    str: "s",
    bool: "b",
    int: "i",
    float: "f",
    bytes: "x",
    Decimal: "d",
    dt.datetime: "t",
    dt.date: "D",
    dt.time: "T",
    type(None): "n",
}
_readers: Final[dict[str, Callable[[str], Value]]] = {
    "s": str,
    # To `bool` every text is true that is not empty.
    "b": lambda text: text == "True",
    "i": int,
    "f": float,
    "x": b64decode,
    "d": Decimal,
    "t": dt.datetime.fromisoformat,
    "D": dt.date.fromisoformat,
    "T": dt.time.fromisoformat,
}


class ChangeForm:
    """Changes as rows."""

    schema = CHANGES

    def rendering(self, catalog: Catalog | None, numbers: TableNumbers | None = None) -> Rendering:
        """Make the renderer of single changes: each is written as it is."""
        return Rendering(CHANGES, iter, cells_of)


def changes_of(batch: pa.RecordBatch) -> Iterator[Change]:
    """Read the changes from rows of CHANGES and `op`."""
    return map(_change, batch.to_pylist())


def cells_of(change: Change) -> tuple[object, ...]:
    """Make a change's row without its position."""
    row, transaction = change.row, change.transaction
    is_of_log = all(len(position) == 1 for position in change.positions)
    captured: dict[str, object] | None = None
    if transaction is not None or change.stream is not None or not is_of_log:
        committed = None
        if transaction is not None and transaction.time is not None:
            committed = transaction.time.isoformat()
        captured = {
            "positions": list(map(list, change.positions)),
            "transaction": transaction and transaction.id,
            "committed": committed,
            "end": transaction and transaction.end,
            "stream": change.stream,
        }
    return (
        [position[0] for position in change.positions],
        row.schema,
        row.table,
        row.key,
        None if change.time is None else str(change.time),
        change.refresh,
        change.created,
        change.route,
        [_edit(edit) for edit in change.edits],
        change.whole,
        captured,
        None if change.who is None else {"user": change.who.user, "context": change.who.context},
        None if change.called is None else [_called(*item) for item in change.called.items()],
    )


def _called(row: RowId, key: str) -> dict[str, str | None]:
    return {"schema": row.schema, "table": row.table, "spelled": row.key, "key": key}


def _edit(edit: Edit) -> dict[str, object]:
    old, old_types = _texts_and_types(edit.old)
    new, new_types = _texts_and_types(edit.new)
    return {
        "column": edit.column,
        "old": old,
        "new": new,
        "reset": edit.reset,
        "old_types": old_types,
        "new_types": new_types,
    }


def _texts_and_types(cell: Any) -> tuple[list[str | None] | None, str | None]:
    """Write the values of a cell as texts, and their types' letters unless it is one text."""
    if cell is ABSENT:
        return None, None
    if cell is None or isinstance(cell, str):
        return [cell], None
    if isinstance(cell, tuple):
        letters = SEVERAL + "".join([_letters[type(value)] for value in cell])
        return list(map(_text, cell)), letters
    # By its very type: a bool is an int too, and a datetime a date.
    return [_text(cell)], _letters[type(cell)]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, float):
        # Its shortest text that gives the same number again.
        return repr(value)
    return str(value)


def _change(row: Mapping[str, Any]) -> Change:
    captured = row["captured"]
    if not captured:
        # A log's positions are one number each.
        captured = {"positions": [[position] for position in row["positions"]]}
    return Change(
        row=RowId(row["table_schema"], row["table_name"], row["table_key"]),
        op=Op(row["op"]),
        edits=tuple(
            Edit(
                column=edit["column"],
                old=_cell(edit["old"], edit["old_types"]),
                new=_cell(edit["new"], edit["new_types"]),
                reset=edit["reset"],
            )
            for edit in row["edits"]
        ),
        positions=tuple(map(tuple, captured["positions"])),
        time=row["event_time"],
        whole=row["whole"],
        transaction=_transaction(captured),
        stream=captured.get("stream"),
        refresh=row["refresh"],
        created=row["created"],
        route=row["route"],
        who=None if row["who"] is None else Who(**row["who"]),
        called=None if row["called"] is None else dict(map(_read_called, row["called"])),
    )


def _read_called(item: Mapping[str, Any]) -> tuple[RowId, str]:
    return RowId(item["schema"], item["table"], item["spelled"]), item["key"]


def _transaction(captured: Mapping[str, Any]) -> Transaction | None:
    if captured.get("transaction") is None:
        return None
    time = None
    if captured["committed"] is not None:
        time = dt.datetime.fromisoformat(captured["committed"])
    return Transaction(id=captured["transaction"], time=time, end=captured["end"])


def _cell(texts: list[str | None] | None, types: str | None) -> Any:
    if texts is None:
        return ABSENT
    if types is None:
        return texts[0]
    letters = types.removeprefix(SEVERAL)
    values = [None if text is None else _readers[letter](text) for text, letter in zip(texts, letters, strict=True)]
    if types.startswith(SEVERAL):
        return tuple(values)
    return values[0]
