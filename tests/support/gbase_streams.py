"""The words in which tests write GBase streams: records of one small table, and what is read from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from eventlog.core.errors import DamageError, EventlogError, SourceError
from eventlog.core.model import Image, Op
from eventlog.sources.gbase.images import images
from eventlog.sources.gbase.layout import layout_of
from eventlog.sources.gbase.records import CdcRecord
from eventlog.sources.gbase.settings import GBaseSettings
from eventlog_streams_tools.gbase.emulator import record, row_record, table_record
from tests.support.gbase_server import GBaseServer

SEED = Path(__file__).parents[1] / "golden" / "gbase" / "seed.hex"
T1 = layout_of(5, "c1 integer, c2 varchar(20,0)")
OWN = GBaseSettings(tables={"5": "shop.t1"}, keys={"shop.t1": ("c1",)})
TIME = 1_742_727_439


def begin(seq: int, tx: int = 7) -> bytes:
    return record(CdcRecord.BEGINTX, seq, tx, TIME, 2005)


def commit(seq: int, tx: int = 7) -> bytes:
    return record(CdcRecord.COMMTX, seq, tx, TIME)


def row(number: CdcRecord, seq: int, c1: int | None, c2: str = "a", tx: int = 7) -> bytes:
    return row_record(number, seq, tx, T1, {"c1": c1, "c2": c2})


def insert(seq: int, c1: int, tx: int = 7) -> bytes:
    return row(CdcRecord.INSERT, seq, c1, tx=tx)


def read(*pieces: bytes, own: GBaseSettings = OWN, said: list[str] | None = None) -> list[Image]:
    """Read the images of the pieces, each one a chunk."""
    report = said.append if said is not None else (lambda _: None)
    return [image for batch in images(pieces, own, report=report) for image in batch.images]


def told(found: Iterable[Image]) -> list[tuple[Op, Any, Any]]:
    return [(one.op, (one.before or {}).get("c1"), (one.after or {}).get("c1")) for one in found]


def before_damage(chunks: Iterable[bytes], own: GBaseSettings = OWN) -> tuple[list[Image], EventlogError | None]:
    """Read images up to an error; return both."""
    found: list[Image] = []
    try:
        for batch in images(chunks, own):
            found += batch.images
    except (DamageError, SourceError) as error:
        return found, error
    return found, None


def captured(server: GBaseServer, columns: Mapping[str, str], *, most: int = 256) -> list[bytes]:
    """Read a session of version (1, 1) from the beginning of the log to a heartbeat."""
    session = server.opensess("", 0, 0, most, 1, 1)
    for label, table in enumerate(columns, start=1):
        server.startcapture(session, 0, table, columns[table], label)
    server.activatesess(session, 1)
    found = []
    while not server.idle(session):
        found.append(server.read(session, 65_536))
    return [*found, server.read(session, 65_536)]


GOOD = table_record(T1) + begin(1) + insert(2, 1) + commit(3)
