"""One run: writers write, publishers hand over to each other, and in the end the outputs are held against the ledger."""

from __future__ import annotations

import random
import re
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import URL, Engine, text
from sqlalchemy.exc import DBAPIError

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.hardening.ledger.book import Ledger
from tests.hardening.ledger.breaking import Breakable, BreakableFiles, tables_behind, trouble
from tests.hardening.ledger.checking import FIELDS, IMAGES, READ_BACK, Finding, LogRow, Shown, check
from tests.hardening.ledger.conversions import Conversions
from tests.hardening.ledger.outputs import ChangeFiles, ChangeTables, MessageFiles, Output, XdsFiles, called
from tests.hardening.ledger.people import People, people
from tests.hardening.ledger.publishers import Command, has_locked, within
from tests.hardening.ledger.stream import KafkaMessages, KafkaXds, Receiver, StandardOutput, receiving
from tests.hardening.ledger.team import HANDOVERS, Team, kill
from tests.hardening.ledger.writers import TABLES, Writer, at_work
from tests.hardening.proxy import Proxy
from tests.support.at_rest import RECORDED, find_left

LOCAL: Final = ("XDS files", "change files", "message files", "change tables", "stdout")
KAFKA: Final = ("Kafka XDS", "Kafka messages")
HTTP: Final = ("HTTP",)
DEAD: Final = "a dead receiver"
DEAD_SECONDS: Final = (20.0, 40.0)
ALIVE_SECONDS: Final = (5.0, 15.0)
DRAIN: Final = 60.0
"""Seconds in which a row must be settled or an output must grow, once nobody writes any more; however many rows wait."""

LONGEST_DRAIN: Final = 900.0
"""Seconds after which a publisher is at fault that writes again and again and settles too little."""

STYLES: Final = {FIELDS: Style.FIELD, READ_BACK: Style.ROW_BACK, IMAGES: Style.IMAGE}
OCCUPIED: Final = 75


class Cell(Struct, frozen=True, kw_only=True):
    """What is tried together: outputs, handovers one after the other, what is special about the history at each of them.

    `late`, `big`, `requeue`, `hold`, `release`, `pause` and `future` are histories; there are always some late commits and
    a large transaction.
    """

    outputs: Sequence[str]
    handovers: Sequence[str]
    histories: Sequence[str] = ("late",)
    seed: int = 1
    objects: int = 400
    moods: str = "success warning error retry silent away"
    faulty: bool = False
    """Each output is away now and then, for so long that it lags behind the others."""

    def __str__(self) -> str:
        first = "local" if tuple(self.outputs) == LOCAL else "+".join(self.outputs)
        return f"{first}, {'+'.join(self.handovers)}, {'+'.join(self.histories)}, seed {self.seed}"

    @property
    def has_operators(self) -> bool:
        """Whether somebody calls outputs by name."""
        return "pause" in self.histories or not {"convert", "convert by Spark"}.isdisjoint(self.handovers)

    def steps(self) -> Iterator[tuple[str, str]]:
        """Each handover with its history; these begin anew where there are fewer of them."""
        return zip(self.handovers, cycle(self.histories), strict=False)


class Servers(Struct, frozen=True):
    """What a run needs of others: the addresses of Kafka, whether it is a real one, and what crashes the database."""

    kafka: str = ""
    real: bool = True
    crash: Callable[[], None] | None = None


class Report(Struct, frozen=True):
    """What came of a run."""

    findings: Sequence[Finding]
    shown: Sequence[Shown]
    ledger: Ledger
    log: Sequence[LogRow]
    again: Counter[int]
    takeovers: Sequence[float] = ()

    def __repr__(self) -> str:
        return f"{len(self.findings)} findings"

    def __str__(self) -> str:
        kinds = Counter(map(_kind, self.findings))
        told = [f"{len(self.ledger)} versions, {len(self.log)} rows; {dict(kinds)}"]
        first = [str(one) for kind in kinds for one in [one for one in self.findings if _kind(one) == kind][:3]]
        return "\n".join([*told, *first, *self._story()])

    def _story(self) -> list[str]:
        """Everything about the first object of which there is something to say: its rows, and where it was seen."""
        one = next((one for one in self.findings if one.place and one.output), None)
        if one is None:
            return []
        mine = sorted([row for row in self.log if row.place == one.place], key=lambda row: row.record)
        rows = [f"{row.record}{row.letter}{row.kind} {row.reason}".rstrip() for row in mine]
        seen = [
            f"{change.op}{change.number} of {change.record} at {change.where}"
            for shown in self.shown
            if shown.output == one.output
            for change in shown.seen
            if change.place == one.place
        ]
        return [f"rows: {', '.join(rows)}", f"seen: {', '.join(seen)}"]


class Run:
    """A cell on a database, in a folder of its own."""

    def __init__(self, cell: Cell, engine: Engine, folder: Path, servers: Servers | None = None) -> None:
        self.cell = cell
        self.engine = engine
        self.folder = folder
        self.servers = servers or Servers()
        self.dice = random.Random(cell.seed)
        self.ledger = Ledger()
        self.again: Counter[int] = Counter()
        self.program = ""
        """What publishers do before they begin."""
        self.outputs: list[Output] = []
        self.writers: list[Writer] = []
        self.paused: set[str] = set()
        url = engine.url.render_as_string(hide_password=False)
        self.conversions = Conversions(folder, url, self._command, self.dice)
        self._proxies: dict[str, Proxy] = {}
        self._stack = ExitStack()

    @contextmanager
    def open(self) -> Iterator[None]:
        """A log, and the outputs."""
        with self._stack:
            prepare(self.engine, TABLES, STYLES)
            self.outputs = [self._output(name) for name in self.cell.outputs]
            yield

    def report(self) -> Report:
        """Does all of it."""
        with self.open():
            self.writers = [Writer(self.engine, self.ledger, number, self.cell.seed) for number in range(1, 4)]
            team = Team(self.config, self.start, self._cut, self._locks, self.dice)
            self._stack.callback(team.kill)
            works = [*self._works(), *[self._watching(output) for output in self.outputs], *self._troubles()]
            with at_work(*works):
                for handover, history in self.cell.steps():
                    self._one(team, handover, history)
            self._drain(team)
        return self._judged(team)

    def config(self, name: str) -> Path:
        """A configuration for a publisher of this name."""
        file = self.folder / f"{name}.toml"
        if file.exists():  # somebody may be reading it
            return file
        url = self.engine.url
        if "cut" in self.cell.handovers:
            if name not in self._proxies:
                assert url.host is not None
                assert url.port is not None
                self._proxies[name] = self._stack.enter_context(Proxy(url.host, url.port))
            url = url.set(host="127.0.0.1", port=self._proxies[name].port)
        outputs = [self._named(output) for output in self.outputs]
        return write_config(file, url, outputs, handle_future_events="future" in self.cell.histories)

    def _named(self, output: Output) -> str:
        """An output's part of the configuration; it has a name of its own where somebody asks for it by name."""
        configured = output.config()
        if not self.cell.has_operators:
            return configured
        return f'name = "{called(output.name)}"\n' + re.sub(r"^name = .*\n", "", configured)

    def start(self, config: Path, *options: str) -> Command:
        """A publisher with this configuration."""
        stdout = next((one for one in self.outputs if isinstance(one, StandardOutput)), None)
        out = None if stdout is None else stdout.collect(f"{config.stem}-{self.dice.getrandbits(40)}")
        arguments = ("run", "--config", str(config), "--log-format", "json", *options)
        return Command(self.folder, *arguments, out=out, program=self.program)

    def _cut(self, publisher: Command) -> None:
        """Cuts what goes through the proxy of this publisher."""
        self._proxies[publisher.config.stem].reset()

    def _locks(self, publisher: Command) -> bool:
        """Whether nobody else can write to the log's database because of this publisher."""
        if self.engine.dialect.name != "sqlite":
            return False
        return has_locked(publisher.process.pid, Path(str(self.engine.url.database)))

    def _one(self, team: Team, handover: str, history: str) -> None:
        """A handover while rows wait, and what the history has for it."""
        if handover == "once":
            team.end()
        else:
            team.grow()
        before = [output.grown() for output in self.outputs]
        self._by_writer().big(self.cell.objects * (2 if history == "big" else 1))
        self._special(history)
        if handover == "once":
            self._overlapping(3)
            return
        within(lambda: [output.grown() for output in self.outputs] != before, 5, pause=0.002)
        time.sleep(self.dice.uniform(0, 0.25))
        if handover == "crash":
            assert self.servers.crash is not None
            self.servers.crash()
        elif handover in ("convert", "convert by Spark"):
            team.kill()
            self.conversions.once(self.paused, by_spark=handover != "convert")
        elif handover == "retry and kill":
            self._receiver.provoke(5)
            time.sleep(0.1)
            kill(team)
        elif handover != "none":
            HANDOVERS[handover](team)
        team.fallen()
        time.sleep(self.dice.uniform(0.2, 0.5))
        team.fallen()

    @property
    def _receiver(self) -> Receiver:
        return next(output for output in self.outputs if isinstance(output, Receiver))

    def _overlapping(self, times: int) -> None:
        """`run --once` four at a time, until nothing waits."""
        for _ in range(times):
            if not waiting(self.engine):
                return
            four = [self.start(self.config("once"), "--once") for _ in range(4)]
            for one in four:
                code = one.end()
                assert code in (0, OCCUPIED), f"{one.name} ended with {code}: {one.said}"

    def _special(self, history: str) -> None:
        """What makes the history what it is, while rows wait."""
        if history == "future":
            self._by_writer().future()
        elif history == "hold":  # the first row of a change: were it the second, it would be told in two
            some = self._records("status = 'N' AND (column_name IS NULL OR column_name = 'version')")
            if some:
                self._care("hold", *map(str, self.dice.sample(some, min(6, len(some)))))
        elif history == "release":
            self._care("release", "--all")
        elif history == "pause" and self.conversions.open is None:
            self._pause()
        elif history == "requeue":
            self._requeue()

    def _pause(self) -> None:
        """Somebody pauses an output, or lets one go on."""
        name = self.dice.choice([output.name for output in self.outputs])
        if name in self.paused:
            self._resume(name)
        else:
            self._care("outputs", "pause", called(name))
            self.paused.add(name)

    def _resume(self, name: str) -> None:
        self._care("outputs", "resume", called(name))
        self.paused.remove(name)

    def _requeue(self) -> None:
        """Lets some versions that were published be published again: both rows of each."""
        asked = text(
            f"SELECT table_key, column_name, record_id FROM event_log WHERE status = 'S' AND table_name = '{FIELDS}'"
            " AND event_type IN (1, 2) ORDER BY record_id"
        )
        open_ones: dict[str, int] = {}
        pairs: list[tuple[int, int]] = []
        with self.engine.connect() as connection:
            for key, column, record in connection.execute(asked):
                if column == "version":
                    open_ones[key] = record
                elif key in open_ones:
                    pairs.append((open_ones.pop(key), record))
        records = [record for pair in self.dice.sample(pairs, min(10, len(pairs))) for record in pair]
        if records:
            self._care("requeue", *map(str, records))
            self.again.update(records)

    def _care(self, *words: str) -> None:
        one = self._command(*words)
        code = one.end()
        assert code == 0, f"{' '.join(words)} ended with {code}: {one.said}"

    def _command(self, *words: str) -> Command:
        return Command(self.folder, *words, "--config", str(self.config("eventlog0")))

    def _works(self) -> list[Callable[[], None]]:
        """What the writers do all the time: many small transactions, and some that commit late."""
        _, quick, slow = self.writers
        alone = self.engine.dialect.name == "sqlite"
        held = 0.05 if alone else 0.6

        def small() -> None:
            quick.small()
            time.sleep(quick.dice.uniform(0.005, 0.05))

        def late() -> None:
            slow.small(held=slow.dice.uniform(0, held))
            time.sleep(0.3 if alone else slow.dice.uniform(0, 0.1))

        return [small, late]

    def _troubles(self) -> list[Callable[[], None]]:
        """What goes wrong with the outputs all the time, each by itself."""
        if not self.cell.faulty:
            return []
        breakable = [output for output in self.outputs if isinstance(output, Breakable)]
        return [
            trouble(
                output,
                random.Random(f"{self.cell.seed} {output.name}"),
                *((ALIVE_SECONDS, DEAD_SECONDS) if output.name == DEAD else ()),
            )
            for output in breakable
        ]

    def _watching(self, output: Output) -> Callable[[], None]:
        def look() -> None:
            output.grown()
            time.sleep(0.05)

        return look

    def _by_writer(self) -> Writer:
        return self.writers[0]

    def _drain(self, team: Team) -> None:
        """Lets one publisher finish what waits, and ends it.

        Of two, each takes the log from the other where a batch lasts long and a renewal of the lease of half a second
        comes late, as on a machine with much else to do; what was being written then is begun anew each time.
        """
        if "hold" in self.cell.histories:
            self._care("release", "--all")
        if self.conversions.open is not None:
            team.kill()
            self.conversions.finish()
        for name in sorted(self.paused):
            self._resume(name)
        team.shrink()
        last: object = None
        began = moved = time.monotonic()
        while left := waiting(self.engine):
            now = (left, [output.grown() for output in self.outputs])
            if now != last:
                last, moved = now, time.monotonic()
            if time.monotonic() > min(moved + DRAIN, began + LONGEST_DRAIN):
                break
            team.fallen(1)
            time.sleep(0.1)
        team.end()

    def _judged(self, team: Team) -> Report:
        mixed = len(self.outputs) > 1 and any(isinstance(output, Receiver) for output in self.outputs)
        shown = [replace(output.shown(), may_lag=mixed) for output in self.outputs]
        log = read_log(self.engine)
        merged = [self.conversions.beside(one) for one in shown]
        found = [*team.found, *check(self.ledger, log, merged, self.again), *left_in_journal(self.engine)]
        for output, one in zip(self.outputs, shown, strict=True):
            if isinstance(output, XdsFiles):
                found += self.conversions.overtaking(one, output.folder, self.again)
        for output in self.outputs:
            found += output.watched()
        return Report(found, shown, self.ledger, log, self.again, team.times)

    def _records(self, condition: str) -> list[int]:
        asked = text(f"SELECT record_id FROM event_log WHERE {condition} ORDER BY record_id")
        with self.engine.connect() as connection:
            return list(connection.scalars(asked))

    def _output(self, name: str) -> Output:
        if name == "HTTP":
            return self._stack.enter_context(receiving(Receiver(self.cell.seed, self.cell.moods)))
        if name == People.name:
            return self._stack.enter_context(people(self.ledger, self.again, self.cell.seed))
        if name == DEAD:
            return self._stack.enter_context(receiving(Receiver(self.cell.seed, "success", name=DEAD)))
        if name in KAFKA:
            made = KafkaXds if name == "Kafka XDS" else KafkaMessages
            return made(self.servers.kafka, real=self.servers.real)
        if name == "change tables":
            url = target_beside(self.engine, self.folder)
            has_port = self.cell.faulty and self.engine.dialect.name != "sqlite"
            return self._stack.enter_context(tables_behind(url)) if has_port else ChangeTables(url)
        if name == XdsFiles.name:
            kind = BreakableFiles if self.cell.faulty else XdsFiles
            return kind(self.folder, replaces="future" not in self.cell.histories)
        made_here = {one.name: one for one in (ChangeFiles, MessageFiles, StandardOutput)}
        return made_here[name](self.folder)


def _kind(finding: Finding) -> str:
    return f"{finding.what} in {finding.output}" if finding.output else finding.what


def prepare(engine: Engine, statements: Sequence[str], styles: Mapping[str, Style]) -> None:
    """A log, and tables that are tracked in these styles."""
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA journal_mode=wal")
        for statement in statements:
            connection.execute(text(statement))
    install(engine, LogNames())
    for table, style in styles.items():
        track(engine, [table], TriggerOptions(style=style), LogNames())


def write_config(file: Path, url: URL | str, outputs: Iterable[str], **publisher: object) -> Path:
    """A configuration for publishers that try again and take over soon."""
    if not isinstance(url, str):
        url = url.render_as_string(hide_password=False)
    settings = {"lease": 0.5, "polling_interval": 1, "query_limit": 500, "batch_size": 1, **publisher}
    said = "".join(f"{name} = {str(value).lower()}\n" for name, value in settings.items())
    file.write_text(
        f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\nretry_first = 0.05\nretry_longest = 0.2\n{said}'
        + "".join(f"[[output]]\n{output}" for output in outputs)
    )
    return file


def target_beside(engine: Engine, folder: Path) -> str:
    """Where change tables go: into the same database, or another one where databases are files."""
    if engine.dialect.name != "sqlite":
        return engine.url.render_as_string(hide_password=False)
    with closing(sqlite3.connect(folder / "target.db")) as connection:
        connection.execute("PRAGMA journal_mode=wal")
    return f"sqlite:///{folder / 'target.db'}"


def waiting(engine: Engine) -> int:
    """How many rows wait; one, as long as the server does not answer."""
    try:
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT count(*) FROM event_log WHERE status = 'N'")).scalar_one())
    except DBAPIError:
        return 1


def left_in_journal(engine: Engine) -> Iterator[Finding]:
    """What the journal must not have at rest, and records that say other than the letters."""
    with engine.connect() as connection:
        for table, rows in find_left(lambda asked: connection.execute(text(asked)).all()).items():
            yield Finding(what=f"left in event_log_{table}", why=f"{len(rows)}, {rows[0]} first")
        for record, kept, letter, reason in connection.execute(text(RECORDED)):
            if kept != letter:
                why = f"{kept} {reason}"
                yield Finding(what="a record says otherwise", record=record, letter=letter or "", why=why)


def read_log(engine: Engine) -> list[LogRow]:
    """The rows of the log, and why they ended."""
    asked = text(
        "SELECT entry.record_id, entry.status, entry.event_type, entry.table_name, entry.table_key, entry.column_name,"
        " entry.new_value, kept.reason, entry.eventlog_context FROM event_log AS entry"
        " LEFT JOIN event_log_outcome AS kept ON kept.record_id = entry.record_id"
    )
    with engine.connect() as connection:
        return [
            LogRow(
                record=row[0],
                letter=row[1],
                kind=row[2],
                place=(row[3], int(row[4].rpartition("=")[2])),
                column=row[5],
                value=row[6],
                reason=row[7] or "",
                who=row[8].decode() if isinstance(row[8], bytes) else row[8] or "",
            )
            for row in connection.execute(asked)
        ]
