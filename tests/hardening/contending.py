"""Transactions that get in each other's way on purpose, and a ledger of what they wrote for good and what was undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Lock, Thread

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.core.model import Document, Outcome
from eventlog.delivery.output import Output
from eventlog.xds.write import XdsFormat
from tests.hardening.replaying import account_for_log, replay_xds, tables
from tests.support.memory import UnaskedSink

PATIENCE = 60.0
DEADLOCK, SERIALIZATION = "40P01", "40001"
Work = Callable[[Connection, str], None]


class Ledger:
    """The words of transactions that committed, of what was undone, and how often each refusal came."""

    def __init__(self) -> None:
        self.kept: set[str] = set()
        self.undone: set[str] = set()
        self.refusals: Counter[str] = Counter()
        self._lock = Lock()

    def keep(self, word: str) -> None:
        with self._lock:
            self.kept.add(word)

    def undo(self, word: str, state: str = "") -> None:
        with self._lock:
            self.undone.add(word)
            self.refusals[state] += 1

    def check(self, engine: Engine, bodies: Sequence[bytes], *, every_word: bool) -> None:
        """Documents say what the tables hold, nothing that was undone, and `every_word` that was written for good."""
        store, told = replay_xds(bodies)
        assert store == tables(engine)
        account_for_log(engine, told)
        said = b"".join(bodies).decode()
        assert [word for word in sorted(self.undone) if f">{word}<" in said] == []
        missing = [word for word in sorted(self.kept) if f">{word}<" not in said]
        assert not every_word or missing == []


class Received(UnaskedSink):
    """A receiver that keeps each document once, in the order in which they came."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}

    @property
    def bodies(self) -> list[bytes]:
        return list(self.documents.values())

    def output(self, batch_size: int = 3) -> list[Output]:
        return [Output(format=XdsFormat(batch_size=batch_size), sink=self)]

    def last(self) -> str:
        return next(reversed(self.documents), "")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        for document in documents:
            self.documents.setdefault(document.id, document.body)
        return ()


def by_name(folder: Path) -> list[bytes]:
    """Documents as somebody reads them who goes through a folder by names."""
    return [path.read_bytes() for path in sorted(folder.glob("*.xml"))]


def attempt(engine: Engine, ledger: Ledger, level: str, word: str, work: Work, tries: int = 3) -> None:
    """Does work in a transaction; a victim of others tries again with another word, and gives up in the end."""
    for number in range(tries):
        mine = f"{word}.{number}"
        try:
            with engine.connect().execution_options(isolation_level=level) as connection:
                connection.exec_driver_sql("SET LOCAL deadlock_timeout = '20ms'")
                work(connection, mine)
                connection.commit()
        except DBAPIError as error:
            state = str(getattr(error.orig, "sqlstate", ""))
            ledger.undo(mine, state)
            if state not in (DEADLOCK, SERIALIZATION):
                raise
        else:
            ledger.keep(mine)
            return


def name(connection: Connection, idu: int, word: str) -> None:
    """Gives a user another first name."""
    connection.execute(text("UPDATE usr SET fname = :word WHERE idu = :idu"), {"word": word, "idu": idu})


class Meeting:
    """Where two transactions wait for each other once; who tries again goes straight through."""

    def __init__(self) -> None:
        self._barrier = Barrier(2)

    def wait(self, word: str) -> None:
        if word.endswith(".0"):
            with suppress(BrokenBarrierError):
                self._barrier.wait(PATIENCE)


def deadlock(engine: Engine, ledger: Ledger, word: str, one: int, two: int) -> list[Callable[[], None]]:
    """Two transactions that each want what the other has."""
    met = Meeting()

    def of(first: int, second: int) -> Work:
        def work(connection: Connection, mine: str) -> None:
            name(connection, first, mine)
            met.wait(mine)
            name(connection, second, mine)

        return work

    return [
        lambda: attempt(engine, ledger, "READ COMMITTED", f"{word}a", of(one, two)),
        lambda: attempt(engine, ledger, "REPEATABLE READ", f"{word}b", of(two, one)),
    ]


def overtaken(engine: Engine, ledger: Ledger, word: str, one: int, two: int) -> list[Callable[[], None]]:
    """A transaction that changes another row first, and then one that has changed since its snapshot."""
    seen, changed = Meeting(), Meeting()

    def slow(connection: Connection, mine: str) -> None:
        name(connection, two, mine)
        seen.wait(mine)
        changed.wait(mine)
        name(connection, one, mine)

    def quick() -> None:
        seen.wait(".0")
        attempt(engine, ledger, "READ COMMITTED", f"{word}q", lambda connection, mine: name(connection, one, mine))
        changed.wait(".0")

    return [lambda: attempt(engine, ledger, "REPEATABLE READ", f"{word}s", slow), quick]


def skewed(engine: Engine, ledger: Ledger, word: str, one: int, two: int) -> list[Callable[[], None]]:
    """Two serializable transactions that each read what the other writes: one fails when it commits, or before."""
    read, written = Meeting(), Meeting()

    def of(mine_is: int) -> Work:
        def work(connection: Connection, mine: str) -> None:
            connection.execute(text("SELECT count(fname) FROM usr WHERE idu IN (:a, :b)"), {"a": one, "b": two})
            read.wait(mine)
            name(connection, mine_is, mine)
            written.wait(mine)

        return work

    return [
        lambda: attempt(engine, ledger, "SERIALIZABLE", f"{word}x", of(one)),
        lambda: attempt(engine, ledger, "SERIALIZABLE", f"{word}y", of(two)),
    ]


def half_undone(engine: Engine, ledger: Ledger, word: str, one: int, two: int) -> list[Callable[[], None]]:
    """A transaction that goes back to a savepoint and on from there, and one that is rolled back as a whole."""

    def goes_on(connection: Connection, mine: str) -> None:
        name(connection, one, mine)
        with connection.begin_nested() as savepoint:
            name(connection, two, f"{mine}.back")
            savepoint.rollback()
        ledger.undo(f"{mine}.back")

    def rolled_back() -> None:
        with engine.connect() as connection:
            name(connection, two, f"{word}r")
            connection.rollback()
        ledger.undo(f"{word}r")

    return [lambda: attempt(engine, ledger, "READ COMMITTED", f"{word}g", goes_on), rolled_back]


def together(works: Sequence[Callable[[], None]]) -> None:
    """Does everything at once; what one raised is raised here."""
    raised: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised again below
            raised.append(error)

    threads = [Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(3 * PATIENCE)
        assert not thread.is_alive()
    if raised:
        raise raised[0]


@contextmanager
def held_open(engine: Engine, ledger: Ledger, idu: int, word: str) -> Iterator[Connection]:
    """A transaction that has written, drawn its numbers, and commits only when the block ends."""
    with engine.connect() as connection:
        name(connection, idu, word)
        yield connection
        connection.commit()
        ledger.keep(word)
