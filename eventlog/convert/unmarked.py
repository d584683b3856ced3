"""What a conversion of a log leaves beside its output until the log's rows are marked: whose order it was.

    _UNMARKED   no row is marked yet; nothing is lost when the output is made anew
    _MARKING    some rows may be marked: the output has what a further conversion would not find any more

Both go when all rows are marked, so whoever was interrupted goes on by giving the same order again.
"""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from eventlog.convert.settings import Conversion, LogInput
from eventlog.core.durable_files import flush_folder
from eventlog.core.model import Status

UNMARKED: Final = "_UNMARKED"
MARKING: Final = "_MARKING"


def order_of(conversion: Conversion) -> str | None:
    """What is the same for orders that convert the same waiting rows in the same way; nothing else can be marked."""
    source = conversion.input
    if not isinstance(source, LogInput) or set(source.statuses) != {Status.NEW.value}:
        return None
    from eventlog.sql.connect import read_url, shown_url

    address = shown_url(read_url(source.url))
    told = [replace(source, url=address, mark=False), conversion.options, conversion.format, conversion.part_events]
    return blake2b(msgspec.json.encode(told, enc_hook=str), digest_size=16).hexdigest()


def waits_for_marks(conversion: Conversion) -> bool:
    """Whether the complete output of this very order is there, and rows of it are not marked.

    Who says to overwrite it gets it made anew as long as nothing is lost by that.
    """
    names = (MARKING,) if conversion.overwrite else (UNMARKED, MARKING)
    found = [conversion.destination / name for name in names]
    return any(file.is_file() and file.read_text().strip() == order_of(conversion) for file in found)


def begin_marking(folder: Path) -> None:
    """Notes that rows may be marked from now on."""
    if (folder / UNMARKED).exists():
        (folder / UNMARKED).replace(folder / MARKING)
        flush_folder(folder)


def end_marking(folder: Path) -> None:
    """Notes that all rows are marked."""
    (folder / MARKING).unlink(missing_ok=True)
    flush_folder(folder)
