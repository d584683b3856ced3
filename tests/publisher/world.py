"""Random histories of the journal and its consumers on a real database, and an oracle apart from them.

The targets are models that a publisher can be replaced at, or real sinks; what they took is what the oracle counts. At
named points the publisher dies, or an error passes and it lives on, also after a commit. Writers commit late,
operators hold, release, delete and set back rows at any moment, outputs come, go and give up rows, and a frozen
publisher wakes when another one has the lock.
"""

from __future__ import annotations

import collections
import json
import random
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Engine, text

from eventlog.core.backoff import Backoff
from eventlog.core.errors import OccupiedError, SinkError, SourceError
from eventlog.core.seams import Tenure
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.sources.log.reading import LogSettings
from eventlog.sources.marks import RowRanges
from eventlog.sql.findlog import log_columns
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.publisher.actors import (
    LONGEST_DELAY,
    Kill,
    PassingError,
    Publisher,
    Row,
    TestConsumer,
    TestJournal,
    WorldDecider,
    tables_with_images,
)
from tests.publisher.breaking import Statements
from tests.publisher.forgetting import Disk
from tests.publisher.judging import judge, judge_retries, judge_sending, waits
from tests.publisher.keeping import change_outputs, excuse, keep
from tests.publisher.laws import TWICE
from tests.publisher.looking import Looks
from tests.publisher.operating import let_go, operate, sent_again
from tests.publisher.real import REAL, hidden_in
from tests.publisher.restoring import Standbys
from tests.publisher.starting import draw_latest, draw_shapes, take_lock
from tests.publisher.targets import KINDS, ModelFormat, ModelSink, Target
from tests.publisher.writing import OpenWriters, end_one, write

FIRST_KINDS = [*KINDS]
MOST_OUTPUTS = 5
"""So many outputs a history begins with at most."""

OPERATIONS = [*["hold"] * 3, "delete", *["letter"] * 2, "back", *["undo"] * 2]


class World:
    """One history."""

    retried: dict[tuple[str, int], int]
    """When rows may be offered again that an output did not take."""
    stopped_until: dict[str, int | None]
    """Until when outputs may send nothing, because something comes again."""
    stopped_at: dict[str, int]
    """When each output was last told that something comes again."""
    anew: set[int]
    """Rows that were set back while they waited for another attempt: that may be forgotten, for they are new."""
    served: list[str] | None
    """The outputs of the configuration that a publisher has begun with; None where those are all."""
    raises: bool
    log: Log
    refused: float
    odd: float
    redefined: float
    strangers: float
    stranger: random.Random
    shares: float
    undoing: float
    calls_objects: bool
    latest: random.Random
    shift: int
    clock_set: int
    jumps: float
    writers: OpenWriters
    asks_writers: bool
    disk: Disk
    standbys: Standbys
    looks: Looks
    statements: Statements
    mute: frozenset[str]
    later: random.Random
    answers_later: bool
    imaged: random.Random
    images: float
    readings = 0
    """How often objects were read back."""
    forgetting = ""
    """The output that somebody is about to forget, in several transactions."""
    working = ""
    """The output that a publisher works with, or worked with last."""
    released: dict[str, tuple[int, set[tuple[str, str]]]]
    """When a row of an object was last released, and the plans that there were by then."""

    def __init__(self, seed: int, engine: Engine) -> None:
        self.rng = rng = random.Random(seed)
        self.seed, self.engine = seed, engine
        self.names = log_columns(engine, LogNames())  # which knows the column that names the transaction
        self.counts: collections.Counter[str] = collections.Counter()
        self.kills, self.faults = rng.choice([(0, 0), (0.015, 0), (0, 0.02), (0.01, 0.015), (0.01, 0.015)])
        self.freezes = bool(self.kills or self.faults) or rng.random() < 0.5
        self.busy_operator = rng.choice([0, 1, 1])
        self.total, self.now, self.quiet, self.inside = rng.randint(20, 90), 0, False, False
        self.rows: dict[int, Row] = {}
        self.live: dict[int, list[Row]] = {}
        self.open: list[tuple[list[int], str]] = []
        self.busy: set[str] = set()
        self.next = 1
        self.held: dict[int, set[tuple[str, str]]] = {}
        self.held_late = set[int]()  # had their letter before: a target that forgets them gets them again
        self.targets: dict[str, Target] = {}
        self.added: dict[str, tuple[set[int], set[int], set[int]]] = {}
        self.frozen: list[Any] = []
        self.retried, self.stopped_until, self.stopped_at, self.anew, self.released = {}, {}, {}, set(), {}
        self.away: set[str] = set()
        self.denied: set[str] = set()
        """Tables that nobody may read just now."""
        self.were_denied: set[str] = set()
        self.takes_rights = rng.choice([0, 0, 0.05])
        self.slow = rng.choice(["", "f", "t", "b", "r"])
        self.on_retry: Literal["stop", "object"] = rng.choice(["object", "object", "stop"])
        self.limit = rng.choice([3, 8, 20])
        self.max_attempts = rng.choice([0, 0, 1, 3])
        self.stubborn = rng.choice([0.12, 0.12, 0.6, 0.9] if self.max_attempts else [0.12, 0.12, 0.6])
        self.mixed = rng.random() < 0.5
        self.late_back = rng.random() < 0.7
        """Whether somebody sets a row back by hand when all is at rest, and tells nobody."""
        self.restless = rng.choice([0.02, 0.02, 0.1])
        """How likely outputs come and go, are paused or away."""
        self.query_bytes = rng.choice([32_000_000, 32_000_000, 6_000])
        self.commits, self.transaction_rows = rng.choice(
            [(0.6, [1]), (0.6, [1, 2]), (0.25, [1, 3, 6, 9]), (0.1, [9, 20])]
        )
        """How likely a writer commits, and how many rows it has written then."""
        self.several = rng.choice([0, 0, 0.3])
        """How likely a change gets one row more before it is committed, perhaps behind rows of others."""
        self.hasty = rng.choice([0, 0.02, 0.1])
        """How likely somebody commits between two statements of a publisher, where the database lets writers be."""
        self.last_key = rng.choice([1, 3, 3, 20])
        self.busiest = rng.choice([0, 0, 0.8])
        """How likely a row is of one object, which somebody may hold: many come behind it then."""
        self.operations = [*OPERATIONS, *["release"] * rng.choice([2, 2, 0])]
        self.first = rng.sample(FIRST_KINDS, rng.randint(1, MOST_OUTPUTS))
        self.publisher: Publisher | None = None
        self.freezer: threading.Thread | None = None
        self.in_transaction = 0
        self.given_up: set[str] = set()
        """Objects of which somebody gave up a row: what a receiver calls them nobody may have read."""
        self.forgotten: set[str] = set()
        self.trace: list[tuple[Any, ...]] = []
        self.dead = False
        """Whether the process has died that is being unwound: nothing that it does reaches anybody."""
        self.leaving = ExitStack()
        asking = self.leaving.enter_context(engine.connect().execution_options(isolation_level="AUTOCOMMIT"))
        self._driver: Any = asking.connection.driver_connection
        self.folder = Path()
        self._draw_more()

    def _draw_more(self) -> None:
        self.more = more = random.Random(~self.seed)
        """Draws what the kit learnt later, so that histories which have none of it stay as they were."""
        self.looks_again = self.seed % 3 == 0
        """Whether whatever was read ahead was read long ago."""
        self.real = more.choice([{}, {}, *REAL])
        """Kinds of targets with real sinks, in place of models."""
        self.nameless = more.choice([0, 0, 0, 0.05])
        """How likely a row names no object."""
        self.unreadable, self.largest = more.choice([0.05, 0.05, 0.3]), more.choice([1, 2, 3])
        self.keepers = more.choice([0, 0, 0.04])
        self.deletes = more.random() < 0.1
        """Whether rows leave the log when they are published."""
        self.hesitant = more.choice([0, 0, 0.5])
        """How likely somebody takes rows away whose documents go again as they are, or gives them back."""
        if self.hesitant:
            self.unreadable, self.stubborn, self.max_attempts = 0.4, 0.6, 0
            self.first = ["r", *[name for name in self.first if name != "r"]]
        draw_shapes(self, more)
        draw_latest(self)

    # --- the database as a writer, an operator and the oracle see it ---------------------------------------------------

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        cursor = self._driver.cursor()  # which needs a tenth of the time that SQLAlchemy would
        cursor.execute(sql)
        rows = list(cursor.fetchall())
        cursor.close()
        return rows

    def run_sql(self, sql: str, rows: Sequence[dict[str, Any]] = (), **values: Any) -> None:
        was, self.inside = self.inside, True
        with self.engine.begin() as connection:
            connection.execute(text(sql), rows or values)
        self.inside = was

    # --- what happens at a point ---------------------------------------------------------------------------------------

    def point(self, what: str) -> None:
        """Pass a point of a publisher; it may die here, or something may go wrong."""
        if self.inside:
            if what == "committed" and self.forgetting and self.more.random() < 0.5:
                self._goes_on_without(self.forgetting)
            return
        if self.dead:
            raise Kill(what)
        self.trace.append((self.now, "point", what))
        if what == "committed":
            judge_retries(self)
        if self.quiet:
            return
        if what != "commit":
            self.meanwhile()
        draw = self.rng.random()
        if draw < self.kills:
            self.counts["kills"] += 1
            self.trace.append((self.now, "dies"))
            self.dead = True
            raise Kill(what)
        if draw < self.kills + self.faults:
            late = what in ("committed", "tabled", "parted", "answered", "written", "shown", "named the plan", "hidden")
            self.counts["ambiguous" if late else "errors"] += 1
            self.trace.append((self.now, "fails"))
            raise PassingError(what)

    @property
    def clock(self) -> int:
        """Return the database's clock in milliseconds; `now` is the publisher's own, and nobody sets it."""
        return self.now + self.shift

    def set_clock(self) -> None:
        """Set the database's clock back by hours, or forward; never once the world is quiet."""
        hours = -2 if self.quiet else self.latest.choice([-2, -2, 1])
        former = self.clock
        self.shift += hours * 3_600_000
        self.counts["clock set back" if hours < 0 else "clock set forward"] += 1
        self.trace.append((self.now, "clock", hours))
        self.clock_set = len(self.trace)
        # What the former clock said of rows that have gone since is no time any more, and what was due by it may
        # have been taken: `judge_retries` notes again which rows wait still.
        self.retried = {key: due for key, due in self.retried.items() if former < due <= self.clock + LONGEST_DELAY}

    def meanwhile(self) -> None:
        """Act for others while a publisher is in the middle of something."""
        if self.busy_operator and self.rng.random() < 0.03:
            operate(self, inside=True)
        if self.looks_again and self.publisher is not None and self.more.random() < 0.1:
            operate(self, what="letter", among=self.publisher.looked_at())
        if self.more.random() < self.keepers:
            keep(self, between=False)
        thread = threading.current_thread()
        if self.freezer is thread and self.rng.random() < 0.15:
            self.freezer = None
            self.counts["frozen"] += 1
            thread.stopped.set()  # type: ignore[attr-defined]  # the thread is ours
            thread.go_on.wait()  # type: ignore[attr-defined]  # the thread is ours

    def before_a_look(self) -> None:
        """End a transaction at random before a publisher reads, and after it has read last."""
        if self.open and not (self.inside or self.quiet) and self.rng.random() < self.hasty:
            self.counts["committed between"] += 1
            end_one(self)

    def fail(self, *what: object) -> None:
        tail = "\n".join(map(str, self.trace[-60:]))
        raise AssertionError(f"history {self.seed}: {what}\n{tail}")

    def note_given_up(self) -> None:
        """Note the objects of rows that are given up: what a receiver answered that nobody could read is not asked for again."""
        sql = "SELECT record_id, note, answers FROM event_log_outcome"
        records = {int(record) for record, note, answers in self.ask(sql) if "Given up" in f"{note} {answers}"}
        self.given_up |= {one.object for one in self.rows.values() if one.record in records}

    # --- what the oracle sees at once ------------------------------------------------------------------------------------

    def arrived(self, target: Target, uid: int, record: int, plan: str) -> None:
        row = self.rows[uid]
        self.trace.append((self.clock, "arrived", target.name, uid, record, row.object, plan))
        # To an output that was forgotten a publisher that was frozen may still write what it had planned.
        if target.name[0] == "p" or target.name in self.forgotten:
            return
        row.came.setdefault(target.name, (len(self.trace), plan))
        if len(row.alike) > 1 and not row.setbacks:
            self.fail("came, and shares its number", target.name, uid, record)
        if record in self.held.keys() - self.held_late and (target.name, plan) not in self.held[record]:
            self.fail("a held row left", target.name, record, plan)
        if row.allowed is not None and (target.name, plan) not in row.allowed:
            self.fail("a row left that was gone or had a letter", target.name, uid)
        if sum(one.uid == uid for one in target.came) > row.setbacks + target.repeats[uid]:
            if self.standbys.excuses(target):
                target.repeats[uid] += 1
                return
            self.fail(TWICE, target.name, uid, record)

    def sending(self, name: str, records: Sequence[int]) -> None:
        judge_sending(self, name, records)

    def plans_with(self, record: int) -> set[tuple[str, str]]:
        found = self.ask("SELECT output, plan, records FROM event_log_planned")
        return {
            (output, plan) for output, plan, records in found if record in RowRanges(map(tuple, json.loads(records)))
        }

    def plans_carrying(self, record: int) -> set[tuple[str, str]]:
        """Find plans with this row in a document sent again as it was, until its answer can be read; the row may be set
        back since.
        """
        found = self.ask("SELECT output, plan, covers FROM event_log_planned WHERE covers IS NOT NULL")
        return {
            (output, plan)
            for output, plan, covers in found
            if any(record == position[0] for several in json.loads(covers).values() for position in several)
        }

    def may_go(self, record: int) -> set[tuple[str, str]] | None:
        """Return the plans by which a removed row may still come; None for any: it has a batch, or was read ahead."""
        batches = self.ask("SELECT records FROM event_log_batch")
        sealed = any(record in RowRanges(map(tuple, json.loads(records))) for (records,) in batches)
        if self.publisher is not None:
            sealed |= record in (self.publisher.made_ahead() if self.looks_again else self.publisher.read_ahead())
        return None if sealed else self.plans_with(record) | self.plans_carrying(record)

    # --- outputs -----------------------------------------------------------------------------------------------------------

    def outputs(self) -> list[str]:
        return [str(name) for (name,) in self.ask("SELECT name FROM event_log_output ORDER BY name")]

    # --- publishers ----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take the lock with a new publisher."""
        self.counts["starts"] += 1
        number = self.counts["starts"]
        self.trace.append((self.now, "publisher", number))
        was, self.inside = self.inside, True
        tenure = Tenure(log="log", name="the log", epoch=number)
        lock = take_lock(self, tenure)
        self.inside = was
        settings = LogSettings(
            backoff=Backoff(first=LONGEST_DELAY / 1000, longest=LONGEST_DELAY / 1000),
            query_bytes=self.query_bytes,
            transactions=True,
            who=True,
            ends=True,
            delete_from_log=self.deletes,
        )
        journal = TestJournal(self.log, lock, settings, tables_with_images() if self.images else None)
        journal.world = self
        self.publisher = Publisher(journal, tenure, self)

    def turns(self, publisher: Publisher) -> None:
        """Give one turn to some outputs, in any order."""
        if self.rng.random() < 0.3:
            publisher.journal.sweep()
        if self.more.random() < self.redefined:
            publisher.decider = WorldDecider(self)
        names = [name for name in self.outputs() if name not in self.away and name in (self.served or [name])]
        for name in self.rng.sample(names, len(names)):
            if name == self.slow and not self.quiet and self.rng.random() < 0.9:
                continue
            if name in self.outputs():
                consumer = self.consumer(publisher, name)
                consumer.decider = publisher.decider
                consumer.looks_unread(self.rng.random() < 0.3)
                self.working = name
                turn = consumer.turn(publisher.tenure)
                if turn.stale is not None:
                    consumer.decider.looks.note(turn.stale)  # the tables are as they were

    def consumer(self, publisher: Publisher, name: str) -> TestConsumer:
        if name not in publisher.consumers:
            kind = self.kind(name)
            sink: Any = kind(self.targets[name], self)
            form = kind.format(name, self.mixed, self.largest)
            if isinstance(form, ModelFormat):
                form.raises = self.raises
            output = Output(format=form, sink=sink, name=name)
            strictness = Strictness(on_retry=self.on_retry)
            settings = ConsumerSettings(limit=self.limit, strictness=strictness, max_attempts=self.max_attempts)
            consumer = TestConsumer(publisher.journal, output, publisher.decider, settings)
            consumer.world = self
            publisher.consumers[name] = consumer
        return publisher.consumers[name]

    def kind(self, name: str) -> type[ModelSink]:
        return self.real.get(name[0]) or KINDS[name[0]]

    def hidden(self, name: str) -> list[str]:
        """List the files and objects of plans a target still hides."""
        target = self.targets[name]
        return [*map(str, target.hidden), *target.manifest, *(hidden_in(self.folder / name) if self.real else [])]

    def turns_in_a_thread(self, publisher: Publisher) -> None:
        """Give turns to a publisher in a thread, perhaps frozen at a point; it wakes when another one has the lock."""

        def work() -> None:
            try:
                self.turns(publisher)
            except BaseException as error:  # noqa: BLE001  # raised by who waits for it
                thread.error = error
            thread.stopped.set()

        thread: Any = threading.Thread(target=work, daemon=True)
        thread.stopped, thread.go_on, thread.error = threading.Event(), threading.Event(), None
        self.freezer = thread
        thread.start()
        thread.stopped.wait()
        self.freezer = None
        if thread.is_alive() and self.counts["frozen"] > self.counts["woken"] + len(self.frozen):
            self.frozen.append(thread)
            self.publisher = None
            return
        thread.join()
        if thread.error:
            raise thread.error

    def wake(self) -> None:
        thread = self.frozen.pop(0)
        self.counts["woken"] += 1
        self.trace.append((self.now, "a frozen publisher wakes"))
        thread.stopped.clear()
        thread.go_on.set()
        thread.join()
        self.dead = False
        if isinstance(thread.error, OccupiedError):
            self.counts["refused"] += 1
        elif thread.error is not None and not isinstance(thread.error, (Kill, PassingError, SinkError, SourceError)):
            raise thread.error

    def run(self) -> collections.Counter[str]:
        rng, idle = self.rng, 0
        self.quiet = True
        self.start()
        for name in self.first:
            self.targets[name] = Target(self, name)
            assert self.publisher is not None
            self.publisher.journal.serve([(name, ())])
        self.quiet = False
        while True:
            self.now += 1
            if not self.quiet and self.latest.random() < self.jumps:
                self.set_clock()
            write(self)
            if not self.quiet and self.busy_operator and rng.random() < 0.12:
                operate(self)
            if not self.quiet and self.more.random() < self.hesitant:
                what = self.more.choice(["letter", "undo"])
                operate(self, what=what, among=sent_again(self, left=what == "undo"))
            if not self.quiet and rng.random() < self.takes_rights:
                self.denied = set(rng.sample("AB", rng.choice([0, 0, 1, 2])))
                self.were_denied |= self.denied
            self.cycle()
            if self.standbys.happened and (self.quiet or self.latest.random() < 0.1):
                self.standbys.resume()
            if self.quiet:
                self.looks.rest()
            else:
                self.looks.between_turns()
            if not self.quiet and self.more.random() < self.keepers:
                keep(self, between=True)
            done = len(self.rows) >= self.total or self.now > 3 * self.total + 50
            if done and not self.open and not self.quiet and rng.random() < 0.2:
                self.calm()
            if self.quiet:
                idle += 1
                if not waits(self) and idle > 3:
                    if self.mute:
                        self.mute, idle = frozenset(), 0
                        continue
                    if not self.late_back:
                        break
                    self.late_back, idle = False, 0
                    operate(self, what="back")
                if idle > 400:
                    self.fail("never at rest", waits(self))
        self.start()
        assert self.publisher is not None
        self.turns(self.publisher)
        judge(self)
        return self.counts

    def cycle(self) -> None:
        rng = self.rng
        try:
            if self.publisher is None:
                self.start()
            assert self.publisher is not None
            if not self.quiet and self.busy_operator and rng.random() < self.restless:
                change_outputs(self)
            if self.frozen and rng.random() < 0.2:
                self.wake()
            elif self.freezes and not self.quiet and rng.random() < 0.08 and not self.frozen:
                self.turns_in_a_thread(self.publisher)
            else:
                self.turns(self.publisher)
        except Kill:
            self.publisher, self.dead = None, False
        except (PassingError, SinkError):
            pass
        except OccupiedError:
            self.publisher = None
        except SourceError as error:
            if error.__cause__ is None or not isinstance(error.__cause__, PassingError):
                raise

    def _goes_on_without(self, name: str) -> None:
        """Work with all outputs but this one, which is about to be forgotten."""
        was = self.busy_operator, self.freezes, self.keepers, self.away
        self.busy_operator, self.freezes, self.keepers, self.away = 0, False, 0, {*self.away, name}
        self.inside, self.forgetting = False, ""
        self.counts["went on while an output was forgotten"] += 1
        self.cycle()
        self.inside = True
        excuse(self, name)
        self.forgetting = name
        self.busy_operator, self.freezes, self.keepers, self.away = was

    def calm(self) -> None:
        """End all disturbance; release everything that waits for somebody."""
        while self.frozen:
            self.wake()
        self.quiet, self.away, self.denied = True, set(), set()
        if self.jumps:
            self.set_clock()
        # Else it must come to rest without a new start, if it has all outputs.
        if self.rng.random() < 0.5 or self.served is not None:
            self.publisher = None
        for record in sorted(self.held):
            let_go(self, record)
        self.held.clear()
        if self.publisher is None:
            self.run_sql("UPDATE event_log_output SET paused = NULL")
            return
        for name in self.outputs():  # not by SQL: what memory knows must suffice to come to rest
            self.publisher.journal.pause(name, None)
