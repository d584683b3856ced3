"""How long it takes to prove that two tables are equal, or what differs in them, and what goes over the wire for that."""

from __future__ import annotations

import random
import resource
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Final

from msgspec import Struct
from sqlalchemy import URL, Engine, create_engine, make_url, text

from bench import postgresql
from bench.ending import at_end
from bench.measure import Benchmark, Contestant, Target, Timings
from bench.peers import symmetric
from bench.peers.checksums import Checksums
from eventlog.compare.columns import selection_of
from eventlog.compare.engine import Comparison
from eventlog.compare.known import Ends, Recognition
from eventlog.compare.ranges import Range
from eventlog.compare.scratch import ScratchSide
from eventlog.compare.sides import Totals
from eventlog.compare.tables import Selection, TableSide
from tests.support.reflected import reflect_table
from tests.support.servers_mysql import mariadb_running

ROWS: Final = 1_000_000
QUICK: Final = 2_000
MOST_SECONDS: Final = 30
MOST_MEGABYTES: Final = 200
SHARE: Final = 0.05
IDLE: Final = 0.3
IDLE_CYCLE: Final = "an idle cycle without triggers"
FLOOR: Final = "one SELECT of each row's quickest hash"
DATA_DIFF: Final = "0.1 % changed, data-diff's published method"

DBCOMPARE: Final = "0.1 % changed, SymmetricDS's dbcompare"

COLUMNS: Final = (
    "id bigint PRIMARY KEY, name varchar(60), mail varchar(80), city varchar(40), pay numeric(12,2), size integer,"
    " active boolean, born date, seen {timestamp}, note varchar(100)"
)
FILLED: Final = {
    "PostgreSQL": "SELECT n, 'First Last ' || n, 'user' || n || '@example.org', 'City ' || n % 1000, n % 100000 / 7.0, n % 500,"
    " n % 2 = 0, date '1970-01-01' + (n % 20000), timestamp '2024-01-01' + n * interval '1.000123 s',"
    " 'a note about this person ' || md5(n::text) FROM generate_series(1, {rows}) AS n",
    "MariaDB": "SELECT seq, concat('First Last ', seq), concat('user', seq, '@example.org'), concat('City ', seq % 1000),"
    " seq % 100000 / 7.0, seq % 500, seq % 2 = 0, date '1970-01-01' + interval (seq % 20000) day,"
    " timestamp '2024-01-01 00:00:00' + interval seq second, concat('a note about this person ', md5(seq)) FROM seq_1_to_{rows}",
}
TIMESTAMPS: Final = {"PostgreSQL": "timestamp", "MariaDB": "datetime(6)"}


class Wire:
    """Passes connections on to a server, and counts the bytes."""

    def __init__(self, port: int) -> None:
        self.bytes = 0
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                for end in (client, server):  # else each small packet waits for the answer to the one before it
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for there, back in ((client, server), (server, client)):
                    Thread(target=self._pass, args=(there, back), daemon=True).start()

    def _pass(self, there: socket.socket, back: socket.socket) -> None:
        with suppress(OSError):
            while data := there.recv(1 << 16):
                self.bytes += len(data)
                back.sendall(data)
        for end in (there, back):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Pair(Struct, kw_only=True):
    """Two tables of a server, one that equals the first, and one in which every thousandth row is another one."""

    name: str
    engine: Engine
    wire: Wire
    rows: int
    carried: dict[str, int] = {}

    def side(self, table: str) -> TableSide:
        found = reflect_table(self.engine, table)
        place, compared = selection_of(found)
        return TableSide(self.engine, Selection(table=found, columns=place.columns), compared)

    def proved(self, label: str, there: str, differing: int) -> None:
        """A proof; it must find so many rows."""
        before = self.wire.bytes
        _, compared = selection_of(reflect_table(self.engine, "usr"))
        found = sum(1 for _ in Comparison(self.side("usr"), self.side(there), compared).differences())
        assert found == differing, (found, differing)
        self.carried[label] = self.wire.bytes - before

    def summed(self) -> None:
        """One SELECT that reads each row of a table with the quickest hash that the server has: no cycle can do with less."""
        with self.side("usr").snapshot() as snapshot:
            assert snapshot.totals(Range(buckets=1)).rows == self.rows

    def checksummed(self, differing: int) -> None:
        """The same proof by the method that data-diff published."""
        names = [column.name for column in reflect_table(self.engine, "usr").columns]
        with self.engine.connect() as connection:
            assert Checksums(connection, self.name, "id", names).differing("usr", "other") == differing

    def dbcompared(self) -> None:
        """The same proof by SymmetricDS."""
        assert symmetric.differing(self.engine.url, "usr", "other") == self.rows // 1000

    def read(self, label: str) -> None:
        """Every row of both tables."""
        before = self.wire.bytes
        assert [sum(1 for _ in self.side(table).every()) for table in ("usr", "equal")] == [
            self.rows,
            self.rows,
        ]
        self.carried[label] = self.wire.bytes - before


def pair(name: str, url: URL, rows: int) -> Pair:
    """The tables, made."""
    wire = Wire(url.port or 0)
    engine = create_engine(url.set(host="127.0.0.1", port=wire.port))
    at_end(engine.dispose)
    dice = random.Random(1)  # noqa: S311  # which rows change is no secret
    changed = ", ".join(map(str, dice.sample(range(1, rows + 1), rows // 1000)))
    with engine.begin() as connection:
        for table in ("usr", "equal", "other"):
            connection.execute(text(f"CREATE TABLE {table} ({COLUMNS.format(timestamp=TIMESTAMPS[name])})"))
        connection.execute(text(f"INSERT INTO usr {FILLED[name].format(rows=rows)}"))
        for table in ("equal", "other"):
            connection.execute(text(f"INSERT INTO {table} SELECT * FROM usr"))
        connection.execute(text(f"UPDATE other SET note = 'another one' WHERE id IN ({changed})"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for table in ("usr", "equal", "other"):
            connection.execute(text(f"ANALYZE {'TABLE' if name == 'MariaDB' else ''} {table}"))
    return Pair(name=name, engine=engine, wire=wire, rows=rows, carried={})


def benchmark(*, quick: bool) -> Benchmark:
    """Tables of ten columns on one server, each proved against another one."""
    rows = QUICK if quick else ROWS
    running = mariadb_running()
    mariadb = running.__enter__()
    at_end(partial(running.__exit__, None, None, None))
    with create_engine(mariadb).begin() as connection:
        connection.execute(text("CREATE DATABASE proved"))
    pairs = [
        pair("PostgreSQL", make_url(postgresql.url()), rows),
        pair("MariaDB", mariadb.set(database="proved"), rows),
    ]
    contestants = [made for one in pairs for made in _contestants(one)]
    contestants += map(_cycle, pairs)
    for one in pairs:
        contestants.append(Contestant(name=f"{one.name}, {FLOOR}", run=one.summed, units=rows))
        method = partial(one.checksummed, rows // 1000)
        contestants.append(Contestant(name=f"{one.name}, {DATA_DIFF}", run=method, units=rows))
    if symmetric.jars() is not None:
        contestants.append(Contestant(name=f"PostgreSQL, {DBCOMPARE}", run=pairs[0].dbcompared, units=rows))
    return Benchmark(
        name="verify",
        question="how long does it take to prove that two tables are equal?",
        unit="row",
        contestants=contestants,
        targets=partial(_targets, pairs=pairs),
        note="Ten columns, a key of one whole number; both tables on one server of the same two cores, through a proxy that counts bytes."
        f" SymmetricDS's dbcompare, {'of 3.15.22, is timed with the start of Java' if symmetric.jars() else 'which `./dev fetch dbcompare` gets, is not here'}.",
    )


def _contestants(one: Pair) -> list[Contestant]:
    runs: dict[str, Callable[[str], None]] = {
        "every row of both read": one.read,
        "equal": partial(one.proved, there="equal", differing=0),
        "0.1 % of the rows changed": partial(one.proved, there="other", differing=one.rows // 1000),
    }
    return [
        Contestant(
            name=f"{one.name}, {what}",
            run=partial(run, what),
            units=one.rows,
            floor=place == 0 and one.name == "PostgreSQL",
        )
        for place, (what, run) in enumerate(runs.items())
    ]


class Remembered:
    """Ranges that are known, as the state of a source without triggers has them."""

    def __init__(self) -> None:
        self._known: dict[Ends, Totals] = {}

    def read_known(self) -> dict[Ends, Totals]:
        return {**self._known}

    def keep(self, ends: Ends, totals: Totals) -> None:
        self._known[ends] = totals


def _cycle(one: Pair) -> Contestant:
    """An idle cycle of a source without triggers: the table against the state that it left."""
    _, compared = selection_of(reflect_table(one.engine, "usr"))
    state, remembered = ScratchSide(compared), Remembered()
    at_end(state.close)
    state.write(one.side("usr").every())

    def run() -> None:
        known = Recognition(remembered)
        assert not list(Comparison(one.side("usr"), state, compared, known=known).differences())

    run()  # the first one remembers
    return Contestant(name=f"{one.name}, {IDLE_CYCLE}", run=run, units=one.rows)


def _targets(timings: Timings, *, pairs: list[Pair]) -> list[Target]:
    found: list[Target] = []
    for one in pairs:
        full, equal, changed = (timings[f"{one.name}, {what}"] for what in one.carried)
        idle, floor = timings[f"{one.name}, {IDLE_CYCLE}"], timings[f"{one.name}, {FLOOR}"]
        share = one.carried["0.1 % of the rows changed"] / one.carried["every row of both read"]
        found += [
            Target(
                promise=f"{one.name}: a proof in less than {MOST_SECONDS} s",
                measured=f"{equal.median:.1f} s equal, {changed.median:.1f} s with 0.1 % changed",
                reached=max(equal.median, changed.median) < MOST_SECONDS,
            ),
            Target(
                promise=f"{one.name}: at most {SHARE:.0%} of the bytes of reading both",
                measured=f"{share:.1%}, {one.carried['0.1 % of the rows changed'] / 1e6:.1f} MB",
                reached=share <= SHARE,
            ),
            Target(
                promise=f"{one.name}: a proof of equal tables at most {IDLE:g} times the time of reading both",
                measured=f"{equal.median / full.median:.2f} times",
                reached=equal.median <= IDLE * full.median,
            ),
            Target(
                promise=f"{one.name}: an idle cycle at most {IDLE:g} times the time of reading the table",
                measured=f"{2 * idle.median / full.median:.2f} times, the floor {2 * floor.median / full.median:.2f}",
                reached=2 * idle.median <= IDLE * full.median,
            ),
        ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found.append(
        Target(
            promise=f"never more than {MOST_MEGABYTES} MB",
            measured=f"{peak:.0f} MB",
            reached=peak < MOST_MEGABYTES,
        )
    )
    return found
