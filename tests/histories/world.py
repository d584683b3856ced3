"""One history: writers, operators, publishers and their outputs, one after the other as the seed
has it.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

import sqlalchemy
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.core.errors import EventlogError, UsageError
from eventlog.delivery.output import Output
from eventlog.sinks.stdout import StdoutSink
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.histories.accidents import EVERYTHING, Accidents
from tests.histories.book import Book
from tests.histories.grounds import Ground
from tests.histories.hearts import Heart, JournalHeart
from tests.histories.operators import Operators
from tests.histories.oracle import wrong_at_once, wrong_in_the_end
from tests.histories.points import GuardedSink, Points, guarded_engine, guarded_folder
from tests.histories.receiving import Desk, Receiver
from tests.histories.stage import Actor, Died, Process, Stage, set_stage
from tests.histories.targets import KINDS, Arrival, ChangeTables, Http, Stdout, Target, of_path

ALL_KINDS: Final = "xmcdhp"
MOST_TURNS: Final = 20_000
TURNS_AFTER_REST: Final = 40


class Profile(Struct, frozen=True, kw_only=True):
    """What a history may have. Settings that are not named are drawn by the seed."""

    accidents: Accidents = EVERYTHING
    kinds: str = ALL_KINDS
    """The first letters of the targets that it draws from; with `exactly` it has each of them."""
    exactly: bool = False
    rows: tuple[int, int] = (15, 50)
    publisher: dict[str, Any] = {}
    dies_at: str = ""
    """A pattern of the first point at which a publisher dies, besides those that are drawn."""
    story: Callable[[World], Iterator[None]] | None = None
    """What happens after that death, a step in each turn."""
    forgives: str = ""
    """A pattern of what is found wrong at the end and does not count, for a heart that is known to
    fail there.
    """
    heart: type[Heart] = JournalHeart


def memory() -> str | None:
    """A folder in memory, where there is one: the disk would cost nine tenths of the time, and
    shows nothing here.
    """
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108  # a folder of its own is made there


class Wrong(AssertionError):  # noqa: N818  # the kit's word for what it finds; the program has no such error
    """A history in which something is wrong: what, how to have it again, and all that happened."""

    def __init__(self, findings: Sequence[str], again: Sequence[str], happened: Sequence[str]) -> None:
        super().__init__("\n".join([*findings, *again, *happened]))
        self.findings = findings
        self.again = again


class Journal(logging.Handler):
    """What publishers say, as a part of what happens."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        known = ("output", "why", "error", "rows", "seconds", "said")
        more = [f"{name}: {value}" for name in known if (value := getattr(record, name, None)) is not None]
        self._tell(f"  it says {record.getMessage()} {', '.join(more)}".rstrip())

    @contextmanager
    def heard(self) -> Iterator[None]:
        """While it lasts nobody else hears them."""
        logger = logging.getLogger("eventlog")
        former = logger.handlers, logger.propagate, logger.level
        logger.handlers, logger.propagate = [self], False
        logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            logger.handlers, logger.propagate = former[:2]
            logger.setLevel(former[2])


class Publishing:
    """A process that publishes, its heart, and the targets that it knows."""

    def __init__(self, process: Process, heart: Heart, targets: Collection[str]) -> None:
        self.process = process
        self.heart = heart
        self.targets = frozenset(targets)
        self.asked_to_stop = False


class World:
    """One history on a ground. `run` raises Wrong with all that happened."""

    def __init__(self, seed: int, ground: Ground, receiver: Receiver, profile: Profile) -> None:
        self.seed, self.profile, self.accidents = seed, profile, profile.accidents
        self.rng = Random(seed)
        self.stage = Stage(Random(~seed))
        self.heart = profile.heart
        self.folder = Path(tempfile.mkdtemp(prefix="eventlog-history-", dir=memory()))
        self.engine = ground.fresh(self.folder)
        self.log = Log(self.engine, LogNames())
        self.points = Points(self.stage, self.rng, self.accidents, self.tell, profile.dies_at)
        self.book = Book(self.engine, self.rng, self.accidents, self.rng.randint(*profile.rows))
        self.targets: dict[str, Target] = {}
        self.configured: dict[str, Target] = {}
        self.added_at: dict[str, int] = {}
        self.told: list[str] = []
        self.publishing: list[Publishing] = []
        self._ground = ground.name
        self._receiver = receiver
        self._desks: dict[str, Desk] = {}
        self._wrong: list[str] = []
        self.before_judging: Callable[[], object] = lambda: None
        self._quiet = False
        self._starts = 0
        self.operators = Operators(self)
        self._story: Iterator[None] | None = None
        self._url = self.engine.url.render_as_string(hide_password=False)
        self._settings = self._drawn_settings()
        self._first_targets()

    # What others ask

    @property
    def config(self) -> Config:
        return Config(
            source=SourceConfig(url=self._url),
            publisher=PublisherConfig(**self._settings),
            output=tuple(target.output for target in self.configured.values()),
        )

    @property
    def names(self) -> list[str]:
        """What the outputs of the configuration are called now."""
        return [target.called[-1] for target in self.configured.values()]

    @property
    def frozen(self) -> list[Publishing]:
        return [one for one in self.publishing if one.process.frozen]

    def target_called(self, name: str) -> Target:
        return next(target for target in self.targets.values() if name in target.called)

    def count(self, target: Target, uid: int) -> int:
        """How often a row has come to a target."""
        return sum(one.uid == uid for one in target.came)

    def tell(self, what: str) -> None:
        """Notes what happens, for whoever reads a history in which something is wrong."""
        self.told.append(f"{self.book.turn if hasattr(self, 'book') else 0:5} {what}")

    # Targets

    def add_target(self, kind: str = "") -> None:
        kinds = [one for one in self.profile.kinds if one != "p" or "p" not in self._kinds_there()]
        kind = kind or self.rng.choice(kinds or ["x"])
        name = f"{kind}{len(self.targets) + 1}"
        filters = self.rng.random() < self.accidents.filters
        target = KINDS[kind](name, self.folder / name, self._arrived, filters=filters)
        self.targets[name] = self.configured[name] = target
        self.added_at[name] = self.book.turn
        if isinstance(target, Http):
            desk = Desk(target, self.rng, self.accidents, self.tell)
            desk.quiet = self._quiet
            self._receiver.desks[name] = self._desks[name] = desk
        self.tell(f"the output {name} is added" + (", which leaves b out" if filters else ""))

    def remove_target(self, name: str) -> None:
        """Takes an output out of the configuration, and gives up what is kept for it once no
        publisher has it.
        """
        target = self.configured.pop(name)
        self.tell(f"the output {name} is taken out and forgotten")
        self._end_all()
        for called in target.called:  # it may be known under a former name still
            self.excuse(target, self.heart.on_its_way(self.log).get(called, ()))  # nobody will ask for it any more
            with suppress(UsageError):  # it does not lag
                self.excuse(target, self.heart.outputs.kept_for(self.log, called))
            with suppress(UsageError):  # nobody has published to it yet
                self.heart.outputs.forget(self.log, called, self.names, by="an operator")

    def excuse(self, target: Target, records: Iterable[int]) -> None:
        """Somebody gives up these rows for it; they end with a warning."""
        for record in records:
            if record in self.book.live:
                self.book.rows[self.book.live[record]].excused.add(target.name)

    def ask_for_restart(self) -> None:
        """The publishers end, each at the end of what it is doing; the next has the configuration
        of then.
        """
        self.tell("the publishers are asked to end")
        for one in [*self.publishing]:
            one.asked_to_stop = True
            one.heart.stop()
            if one.process.frozen:
                self._kill(one)

    def _kinds_there(self) -> str:
        return "".join(target.kind for target in self.configured.values())

    def _first_targets(self) -> None:
        if self.profile.exactly:
            kinds = list(self.profile.kinds)
        else:
            kinds = self.rng.sample(self.profile.kinds, self.rng.randint(1, min(4, len(self.profile.kinds))))
        for kind in kinds:
            self.add_target(kind)

    def _drawn_settings(self) -> dict[str, Any]:
        rng = self.rng
        return {
            "allow_loopback": True,
            "wake_up": False,
            "polling_interval": 4,
            "query_limit": rng.choice((3, 8, 20)),
            "batch_size": rng.choice((1, 1, 3)),
            "on_retry": rng.choice(("stop", "object")),
            "retry_first": 0.0,
            "retry_longest": 0.0,
            "delete_from_log": rng.random() < 0.1,
            **self.profile.publisher,
        }

    def _arrived(self, target: Target, arrival: Arrival) -> None:
        self.tell(f"row {arrival.uid} has come to {target.name} in {arrival.document}")
        if (found := wrong_at_once(self, target, arrival)) is not None:
            self._wrong.append(found)

    # Publishers

    def _start(self) -> None:
        self._starts += 1
        process = Process(f"publisher {self._starts}")
        one = Publishing(process, self.heart(), self.configured)
        self.publishing.append(one)
        self.tell(f"{process.name} begins")
        config, streams = (
            self.config,
            {t.called[-1]: t.stream() for t in self.configured.values() if isinstance(t, Stdout)},
        )

        def work() -> None:
            try:
                one.heart.start(config, self._outputs(config, streams, process))
                while not one.asked_to_stop and one.heart.turn():
                    pass
            except Exception:
                one.heart.close()
                raise
            one.heart.close()

        self.stage.begin(process, work)

    def _outputs(self, config: Config, streams: dict[str, Any], process: Process) -> list[Output]:
        outputs = []
        for output in outputs_of(config):
            sink: Any = StdoutSink(streams[output.name]) if output.name in streams else output.sink
            if isinstance(self.target_called(output.name), Http):
                process.others.append(sink)
            guarded: Any = GuardedSink(sink, output.name, self.points, self.target_called(output.name).look)
            outputs.append(replace(output, sink=guarded))
        return outputs

    def _look_after_publishers(self) -> None:
        """Somebody publishes who is not frozen; who was frozen goes on some time after another one
        began.
        """
        awake = [one for one in self.publishing if not one.process.frozen]
        if not awake or (len(self.publishing) < 3 and not self._quiet and self.rng.random() < self.accidents.freezes):
            self._start()
        for one in self.frozen:
            if awake and (self._quiet or self.rng.random() < 0.01):
                self.tell(f"{one.process.name} goes on")
                one.process.frozen = False

    def _reap(self, actor: Actor) -> None:
        """What follows when a thread of a publisher has ended: the process may have."""
        one = next(one for one in self.publishing if actor.process is one.process)
        main = actor.process.actors[0]
        if actor.process.alive and not main.ended:
            return
        error = main.error
        self.stage.kill(actor.process)
        self.publishing.remove(one)
        if error is not None and not isinstance(error, Died):
            self.tell(f"{actor.process.name} ends: {type(error).__name__}: {error}")
            if not isinstance(error, (EventlogError, SQLAlchemyError)):
                raise self._account([f"{actor.process.name} ended: {error!r}"]) from error
        elif error is None:
            self.tell(f"{actor.process.name} has ended")

    def _end_all(self) -> None:
        """All publishers end at once."""
        for one in [*self.publishing]:
            self._kill(one)

    def _kill(self, one: Publishing) -> None:
        self.tell(f"{one.process.name} is killed")
        self.stage.kill(one.process)
        self.publishing.remove(one)

    # The course of things

    def run(self) -> Counter[str]:
        """The whole history; how often what happened."""
        set_stage(self.stage)
        journal = Journal(self.tell)
        shown = guarded_folder(self.points, self.folder, self._shown)
        with ExitStack() as leaving:
            leaving.callback(self._leave)
            leaving.enter_context(journal.heard())
            leaving.enter_context(shown)
            leaving.enter_context(patch.object(sqlalchemy, "create_engine", guarded_engine(self.points)))
            self._go_on()
            self._come_to_rest()
            self.before_judging()
            forgiven = re.compile(self.profile.forgives or "(?!)").search
            if wrong := [one for one in wrong_in_the_end(self) if not forgiven(one)]:
                raise self._account(wrong)
        return Counter(self.points.counts) + Counter(rows=len(self.book.rows), starts=self._starts)

    def _go_on(self) -> None:
        """Until all rows are written, and for a while after that."""
        after = self.rng.randint(0, 60)
        while not self.book.finished or after > 0:
            after -= self.book.finished
            if self.rng.random() < 0.4 and (said := self.book.write()):
                self.tell(said)
            self.operators.act()
            self._turn()

    def _come_to_rest(self) -> None:
        self.tell("all is quiet from now on")
        self._quiet = self.points.quiet = True
        for desk in self._desks.values():
            desk.quiet = True
        self.operators.calm()
        if self.rng.random() < 0.5:  # else it must come to rest without a new start
            self.ask_for_restart()
        self._until_rest()
        self.ask_for_restart()
        for _ in range(TURNS_AFTER_REST):
            self._turn()
        self._until_rest()
        self._end_all()

    def _until_rest(self) -> None:
        while self.frozen or self.book.waiting() or self.heart.left_at_rest(self.log):
            self._turn()

    def _turn(self) -> None:
        self.book.turn += 1
        if self.book.turn > MOST_TURNS:
            raise self._account(["it never comes to rest", *wrong_in_the_end(self)])
        if self.points.died and self.profile.story is not None:
            self._story = self._story or self.profile.story(self)
            next(self._story, None)
        self._look_after_publishers()
        for name in self.configured:
            if any(name not in one.targets for one in self.publishing):
                self.added_at[name] = self.book.turn  # who does not know it yet settles rows without it
        ready = self.stage.ready()
        if ready:
            actor = self.rng.choice(ready)
            self.stage.run(actor)
            self._reap(actor)
        if self._wrong:
            raise self._account(self._wrong)

    def _shown(self, what: str, path: Path) -> None:
        files = of_path(self.targets.values(), path)
        if files is not None:
            files.changed(what, path)

    def _leave(self) -> None:
        self._end_all()
        set_stage(None)
        for name in self._desks:
            self._receiver.desks.pop(name, None)
        for target in self.targets.values():
            if isinstance(target, ChangeTables):
                target.close()
        if self.engine.dialect.name == "sqlite":
            self.engine.dispose()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _account(self, findings: Sequence[str]) -> Wrong:
        """What is told of a history in which something is wrong."""
        outputs = "".join(target.kind for target in self.targets.values())
        what = f"history {self.seed} on {self._ground}, outputs {outputs}, {self._settings}"
        again = f"python -m tests.histories {self.seed} {self.seed + 1} --database {self._ground} --trace"
        return Wrong(findings, [what, again], self.told)
