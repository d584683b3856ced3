"""A whole session of IBM's change stream client beside one of eventlog: the calls, and the transactions that come out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from eventlog.sources.gbase.drivers import JdbcDriver
from eventlog.sources.gbase.emulator import CUSTOMER, PURCHASE, shop
from eventlog.sources.gbase.reader import RecordReader
from eventlog.sources.gbase.records import CdcRecord, frames
from eventlog.sources.gbase.session import CaptureSession
from eventlog.sources.gbase.settings import GBaseSettings
from tests.gbase_client import Told, classpath, session
from tests.gbase_client.comparing import read_by_us, split
from tests.support.gbase_server import GBaseServer

COLUMNS = {CUSTOMER: "id,born,active,kind,name,note", PURCHASE: "id,customer,price,weight,at,place"}
TABLES = [f"{table}={columns}" for table, columns in COLUMNS.items()]
Call = list[Any]
"""A statement, and how each of its arguments is bound."""


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    return classpath(tmp_path_factory.mktemp("client"))


class Noting:
    """A connection of Java's kind that notes what is asked: its statements and their rows are itself."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def prepareStatement(self, text: str) -> Noting:  # noqa: N802  # Java's name
        self.calls.append([text.lower().replace(", ", ",")])
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._note(name, *arguments)

    def _note(self, name: str, *arguments: Any) -> Any:
        if name.startswith("set"):
            self.calls[-1].append([name, arguments[1]])
        if name == "getLong":
            return 101 if "opensess" in self.calls[-1][0] else 0
        return self


def our_calls() -> tuple[list[Call], list[Call]]:
    """What eventlog asks of a server through JDBC when a session begins, and when it ends."""
    driver = object.__new__(JdbcDriver)
    noted = driver._connection = Noting()
    tables = {str(label): table for label, table in enumerate(COLUMNS, start=1)}
    columns = {table: tuple(names.split(",")) for table, names in COLUMNS.items()}
    own = GBaseSettings(tables=tables, columns=columns, server="emulated", timeout=5, max_records=1)
    opened = CaptureSession(driver, own, 0)
    begun, noted.calls = noted.calls, []
    opened.close()
    return begun, noted.calls


def their_calls(told: list[Told]) -> tuple[list[Call], list[Call]]:
    """The same of the client, whose reading lies between."""
    calls: list[list[Call]] = [[], []]
    ended = False
    for line in told:
        ended = ended or "end" in line
        if "call" in line:
            calls[ended].append(line["call"])
    return calls[0], calls[1]


def test_a_session_begins_with_the_same_calls(classes: str) -> None:
    """The client asks the server for its name, which eventlog is told; and it takes one record a read, where 256 may be."""
    begun, _ = their_calls(session(classes, TABLES, []))
    assert begun.pop(0) == ["SELECT env_value FROM sysmaster:sysenv where env_name = 'INFORMIXSERVER'"]
    assert begun == our_calls()[0]
    assert begun[0][1:] == [["setString", "emulated"], *(["setInt", number] for number in (0, 5, 1, 1, 1))]
    assert begun[-1][1:] == [["setInt", 101], ["setLong", 0]]


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
