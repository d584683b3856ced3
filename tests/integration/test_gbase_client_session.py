"""IBM's change stream client and its driver beside eventlog: a session's transactions, and documents of the publisher."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from eventlog.sources.gbase.emulator import CUSTOMER, PURCHASE, shop
from eventlog.sources.gbase.reader import RecordReader
from eventlog.sources.gbase.records import CdcRecord, frames
from eventlog.sources.gbase.settings import GBaseSettings
from tests.gbase_client import Told, classpath, framed, session
from tests.gbase_client.comparing import read_by_us, split
from tests.support.gbase_server import GBaseServer
from tests.support.gbase_streams import captured
from tests.support.servers import absent

COLUMNS = {CUSTOMER: "id,born,active,kind,name,note", PURCHASE: "id,customer,price,weight,at,place"}
TABLES = [f"{table}={columns}" for table, columns in COLUMNS.items()]
Call = list[Any]
"""A statement, and how each of its arguments is bound."""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classpath(tmp_path_factory.mktemp("client"))


def their_calls(told: list[Told]) -> tuple[list[Call], list[Call]]:
    """The same of the client, whose reading lies between."""
    calls: list[list[Call]] = [[], []]
    ended = False
    for line in told:
        ended = ended or "end" in line
        if "call" in line:
            calls[ended].append(line["call"])
    return calls[0], calls[1]


def replayed(server: GBaseServer, calls: list[Call]) -> int:
    """Makes the client's calls at the emulator, which refuses none; the number of the session."""
    for text, *bound in calls:
        [function] = re.findall(r"cdc_(\w+)\(", text)
        answer = getattr(server, function)(*(value for _, value in bound))
        assert answer == (101 if function == "opensess" else 0)
    return 101


def read_one_by_one(server: GBaseServer, number: int) -> Iterator[bytes]:
    """What the client's reads give: one record each, as it has asked for."""
    while not server.idle(number):
        yield server.read(number, 10_240)


def test_the_same_transactions_come_out(classes: str) -> None:
    """The emulator takes the client's calls, and its records give the transactions that eventlog puts together.

    Those that were rolled back and what a savepoint took back are in neither; of TRUNCATE the client's do not tell.
    """
    server = GBaseServer(wide=False)
    shop(300, emulator=server)
    tx = server.begin()
    server.row(CdcRecord.TRUNCATE, tx, CUSTOMER, {})
    server.update(tx, CUSTOMER, _customer(1), _customer(2))
    server.end(tx)
    begun, _ = their_calls(session(classes, TABLES, []))
    begun[-1][-1] = ["setLong", 1]  # from the beginning of the log, and not from now
    number = replayed(server, begun[1:])
    reads = list(read_one_by_one(server, number))
    theirs = [
        (end["seq"], end["txid"], [(row["type"], row["seq"], row["label"]) for row in rows])
        for end, rows in (line["commit"] for line in session(classes, TABLES, reads) if "commit" in line)
    ]
    ours = [one for one in _transactions(reads) if any(kind != "TRUNCATE" for kind, _, _ in one[2])]
    assert ours[-1][2].pop(0)[0] == "TRUNCATE"
    assert theirs == ours
    assert len(theirs) > 30
    kinds = {CdcRecord(frame.number) for frame in split(reads)}
    assert kinds >= {CdcRecord.RBTX, CdcRecord.DISCARD, CdcRecord.TRUNCATE}
    assert all(len(list(chain.from_iterable(frames([read])))) == 1 for read in reads)


def _customer(number: int) -> dict[str, Any]:
    return {"id": number, "born": None, "active": True, "kind": "priv", "name": "Zoë", "note": None}


def _transactions(reads: list[bytes]) -> Iterator[tuple[int, int, list[tuple[str, int, str]]]]:
    """Commit, number and records of each transaction that eventlog puts together."""
    layouts: dict[int, Any] = {}
    told = {frame.offset: read_by_us(frame, layouts) for frame in split(reads)}
    numbers = {one["seq"]: one["txid"] for one in told.values() if one["type"] == "COMMIT"}
    for committed in RecordReader(GBaseSettings()).read(split(reads)):
        rows = [(told[frame.offset]["type"], seq, str(label)) for _, seq, label, frame in committed.items]
        yield committed.seq, numbers[committed.seq], rows


PUBLISHED = {**COLUMNS, PURCHASE: "id,customer,price,weight,at,lasting,place"}


def publish(place: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the publisher with a source of GBase streams into a folder of documents."""
    names = {table: names.split(",") for table, names in PUBLISHED.items()}
    columns = ", ".join(f'"{table}" = {json.dumps(columns)}' for table, columns in names.items())
    (place / "eventlog.toml").write_text(
        f"""[source]
kind = "gbase"
[source.gbase]
{source}
tables = {{ "1" = "{CUSTOMER}", "2" = "{PURCHASE}" }}
columns = {{ {columns} }}
keys = {{ "shop.customer" = ["id"], "shop.purchase" = ["id"] }}
marks = "{place / "marks.json"}"
[publisher]
batch_size = 128
[[output]]
sink = "files"
path = "{place / "out"}"
"""
    )
    command = [sys.executable, "-m", "eventlog", "run", "--config", str(place / "eventlog.toml"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=300, check=False)


def documents(place: Path) -> list[str]:
    return [path.read_text() for path in sorted((place / "out").glob("*.xml"))]


@pytest.mark.in_turn
def test_the_publisher_reads_a_session_through_ibms_class_as_it_reads_the_file(classes: str, tmp_path: Path) -> None:
    if find_spec("jpype") is None:
        absent("jdbc", "the package JPype1 is not installed")
    live, filed = tmp_path / "live", tmp_path / "filed"
    live.mkdir()
    filed.mkdir()
    server = GBaseServer(wide=False)
    shop(120, emulator=server)
    reads = captured(server, PUBLISHED)
    (live / "reads").write_bytes(framed([*reads, reads[-1]]))
    (filed / "stream").write_bytes(b"".join(reads))
    jars = json.dumps(classes.split(":"))
    source = f'driver = "jdbc"\nurl = "jdbc:offline:{live}"\nclasspath = {jars}\nserver = "emulated"'
    run = publish(live, source, "--until-empty")
    assert run.returncode == 0, run.stderr
    run = publish(filed, f'path = "{filed / "stream"}"', "--until-empty")
    assert run.returncode == 0, run.stderr
    assert len(documents(live)) > 0
    assert documents(live) == documents(filed)
    calls = [json.loads(line) for line in (live / "calls").read_text().splitlines()]
    assert calls[0][0] == "EXECUTE FUNCTION informix.cdc_opensess(?, ?, ?, ?, ?, ?)"
    assert calls[-1] == ["EXECUTE FUNCTION informix.cdc_closesess(?)", ["setInt", 101]]
