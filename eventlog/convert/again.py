"""A conversion that is complete and is given again: it is as it was, and nothing is done or sent a second time.

`_SUCCESS` holds an identity of the order and of its input. It is the same whatever engine does the work and however many
processes it has. No password stands in it, for a new one is the same order.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from eventlog.convert.commit import IDENTITY, SUCCESS, Summary
from eventlog.convert.inputs import input_files
from eventlog.convert.settings import Conversion, FilesInput, LogInput, SnapshotRows
from eventlog.core.errors import UsageError
from eventlog.core.schema_file import catalog_to_json
from eventlog.core.secrets import is_secret, masked


def identity_of(conversion: Conversion) -> str:
    """What is the same for orders that make the same of the same input; empty where the input is gone.

    A conversion whose sending is gone on with needs its input no more.
    """
    try:
        source = _input(conversion.input)
    except UsageError:
        return ""
    back = conversion.read_back
    catalog = "" if conversion.catalog is None else catalog_to_json(conversion.catalog).decode()
    snapshot = _files([back.folder]) if isinstance(back, SnapshotRows) else _open(back)
    told = [source, snapshot, _open(conversion.format), conversion.options, conversion.part_events]
    # The secrets of steps count: they are long, and what is made with others is something else.
    told += [conversion.steps, conversion.after, catalog]
    told += ["whole"] if conversion.gathers else []
    return blake2b(msgspec.json.encode(told, enc_hook=str), digest_size=16).hexdigest()


def complete(conversion: Conversion) -> Summary | None:
    """What this very conversion did that its folder holds already; None where it is to be done."""
    ended = conversion.destination / SUCCESS
    if conversion.overwrite or not ended.is_file():
        return None
    return same(ended.read_bytes(), conversion)


def same(told: bytes, conversion: Conversion) -> Summary | None:
    """What this very conversion did, by a `_SUCCESS`; None where another one did it, or where rows wait."""
    if not is_its_end(told, conversion) or _rows_wait(conversion):
        return None
    return msgspec.json.decode(told, type=Summary)


def is_its_end(told: bytes, conversion: Conversion) -> bool:
    """Whether this very conversion wrote a `_SUCCESS`."""
    try:
        found = msgspec.json.decode(told, type=dict[str, Any]).get(IDENTITY)
        msgspec.json.decode(told, type=Summary)
    except msgspec.DecodeError:  # another program wrote it
        return False
    return bool(found) and found == identity_of(conversion)


def _rows_wait(conversion: Conversion) -> bool:
    """Whether a log has rows for this order now: then it is another conversion than the one that is complete."""
    if not isinstance(conversion.input, LogInput):
        return False
    from eventlog.convert.reading import read_log
    from eventlog.convert.rows import Placing
    from eventlog.convert.withheld import withheld_of

    withheld, placing = withheld_of(conversion.input, conversion.catalog), Placing(conversion.catalog)
    return any(len(withheld.divide(placing.place(batch))[0]) for batch in read_log(conversion.input))


def _input(source: Any) -> object:
    if isinstance(source, FilesInput):
        return [_files(input_files(source)), source.statuses, source.clock]
    if isinstance(source, LogInput):
        return _open(msgspec.structs.replace(source, mark=False))
    return [_files(map(Path, source.places)), _open(source.settings)]


def _files(places: Iterable[Path]) -> list[tuple[str, int, int]]:
    """The files that stand there, with their sizes and times."""
    found = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    return [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in found if file.is_file()]


def _open(value: object) -> object:
    """Settings without what is secret in them."""
    return _without_secrets(msgspec.to_builtins(value, enc_hook=str))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_secrets(one) for name, one in value.items() if not is_secret(str(name))}
    if isinstance(value, list | tuple):
        return [_without_secrets(one) for one in value]
    return masked(value) if isinstance(value, str) else value
