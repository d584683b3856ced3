"""Recognise a conversion that was ordered before: one that is complete is not done again, one that was interrupted
is gone on with, and one whose rows are to be marked finds its output.

The identity of an order is the same whatever engine does the work and however many processes it has.
No password counts, for a new one is the same order. The tables of a log's database do not count: it is still the
same order when one was altered. It stands in `_SUCCESS`, names the folder of the
work, and beside an output whose rows are not marked yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from eventlog.convert.commit import IDENTITY, SUCCESS, Destination, Summary
from eventlog.convert.settings import Conversion, FilesInput, LogInput, SnapshotRows
from eventlog.core.errors import DataError, UsageError
from eventlog.core.model import Status
from eventlog.core.schema_file import catalog_from_json, catalog_to_json
from eventlog.core.secrets import is_secret, mask_secrets
from eventlog.durable_files import write_file

if TYPE_CHECKING:
    from eventlog.convert.marks import MarkedOutput


def identity_of(conversion: Conversion) -> str:
    """Hash an order and its input: equal for conversions with equal output; empty if the input is
    gone.

    A conversion resumed while it sent needs its input no more.
    """
    asked: Any = conversion.input
    source: object
    try:
        if isinstance(asked, FilesInput):
            source = [_files(asked.paths), asked.clock]
        elif isinstance(asked, LogInput):
            # Whether rows are marked afterwards changes nothing of the output.
            source = without_secrets(replace(asked, mark=False))
        else:
            source = [_files(map(Path, asked.places)), without_secrets(asked.settings)]
    except (DataError, UsageError):
        return ""
    read_back: object
    if isinstance(conversion.read_back, SnapshotRows):
        read_back = _files([conversion.read_back.folder])
    else:
        read_back = without_secrets(conversion.read_back)
    catalog = ""
    if conversion.catalog is not None and not isinstance(asked, LogInput):
        catalog = catalog_to_json(conversion.catalog).decode()
    parts = [source, read_back, without_secrets(conversion.format)]
    parts += [conversion.options, conversion.part_events]
    # The secrets of steps count: they are long, and what is made with others is something else.
    parts += [conversion.steps, conversion.after, catalog, conversion.gathers]
    return blake2b(msgspec.json.encode(parts, enc_hook=str), digest_size=16).hexdigest()


def takes_waiting_rows(conversion: Conversion) -> bool:
    """Return True for a conversion whose rows can be marked: those of a log that wait, and no others."""
    source = conversion.input
    return isinstance(source, LogInput) and set(source.statuses) == {Status.NEW.value}


def as_begun(conversion: Conversion, work: Path) -> Conversion:
    """Return a conversion of a log with the tables that it was begun with, which its work folder keeps.

    What was decided by these is sent by them, if a table was altered since.
    """
    if not isinstance(conversion.input, LogInput) or conversion.catalog is None:
        return conversion
    kept = work / "tables.json"
    if not kept.exists():
        write_file(kept, catalog_to_json(conversion.catalog))
    return replace(conversion, catalog=catalog_from_json(kept.read_bytes(), origin=str(kept)))


def complete(conversion: Conversion, output: MarkedOutput | None = None) -> Summary | None:
    """Return the summary if the output holds this very conversion; None if it is to be done, also for rows that wait.

    The output is a folder where nobody says otherwise.
    """
    output = output or Destination(conversion.destination)
    success = None if conversion.overwrite else output.read(SUCCESS)
    if success is None or not is_its_end(success, conversion) or _rows_wait(conversion):
        return None
    return msgspec.json.decode(success, type=Summary)


def is_its_end(success: bytes, conversion: Conversion) -> bool:
    """Return True if this very conversion wrote a `_SUCCESS`."""
    try:
        identity = msgspec.json.decode(success, type=dict[str, Any]).get(IDENTITY)
        msgspec.json.decode(success, type=Summary)
    except msgspec.DecodeError:
        # Spark and others write a `_SUCCESS` too, which is empty or something else.
        return False
    return bool(identity) and identity == identity_of(conversion)


def _rows_wait(conversion: Conversion) -> bool:
    """Return True if a log has new rows for this order: they are not in the complete output."""
    if not isinstance(conversion.input, LogInput):
        return False
    from eventlog.convert.reading import read_log
    from eventlog.convert.taken import choose_rows

    taken = choose_rows(conversion.input, conversion.catalog)
    return any(len(taken.keep(batch)) for batch in read_log(conversion.input))


def _files(paths: Iterable[Path]) -> list[tuple[str, int, int]]:
    """Describe existing files by their sizes and times."""
    # Not their contents: to read a terabyte once more only to see that nothing changed takes hours.
    described = []
    for path in paths:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file():
                status = file.stat()
                described.append((str(file.resolve()), status.st_size, status.st_mtime_ns))
    return described


def without_secrets(value: object) -> object:
    """Return settings without their secrets: a new password makes no other order."""
    return _without_secrets(msgspec.to_builtins(value, enc_hook=str))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        shown = {}
        for name, item in value.items():
            # What is no text and has none is no secret.
            if item is None or isinstance(item, int | float):
                shown[name] = item
            elif not is_secret(str(name)):
                shown[name] = _without_secrets(item)
        return shown
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    if isinstance(value, str):
        # A password may stand in the middle of a URL.
        return mask_secrets(value)
    return value
