"""Everybody attacks at random, beside a publisher who works and commands that others run.

Each statement runs on a second database too, which has the same roles and tables and no eventlog: what fails beside eventlog
alone is eventlog's doing. `EVENTLOG_ATTACK=SEED` repeats one history, EVENTLOG_HARDENING=17 makes a thousand statements of each.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import URL, Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError

from eventlog.capture.track import track
from eventlog.cli.main import exit_code
from eventlog.daemon.publisher import Publisher
from eventlog.tracked.options import TriggerOptions
from tests.hardening.quantity import scaled
from tests.hardening.registry.attacking import Attacker
from tests.hardening.registry.people import HIDDEN, LOG, People, people, places_of, session
from tests.support.logged import run
from tests.support.servers import postgresql_database

ATTACKERS = ("tenant", "writer", "reader", "publisher", "stranger")
ROUND = 40
"""Statements between two rounds of the publisher; each fourth round somebody runs commands too."""
LAST_ROUNDS = 8
LONGEST_SECONDS = 90
"""Of a round, which takes one, on a machine that is busy with other things."""
ALLOWED = {("tenant", "writer"), ("tenant", "reader")}
"""Whose code runs as whom, beside those whose it is: who writes to a table runs what stands on it, and who reads it too, as
docs/explanation/security.md says."""
COMMANDS = (
    ("refresh", "app.usr", "--json"),
    ("track", "app.usr"),
    ("track", "own.mine"),
    ("triggers",),
    ("verify", "app.usr", "--against", "{twin}", "--wait", "0"),
    ("check",),
)


class Battle:
    """One history: attackers with a session each in both databases, and what they must not bring about."""

    def __init__(
        self,
        site: People,
        twin: Engine,
        folder: Path,
        seed: int,
        capsys: pytest.CaptureFixture[str],
        *,
        followed: bool,
    ) -> None:
        self.site, self.twin, self.capsys = site, twin, capsys
        self.dice = Random(seed)
        self.attackers = {part: Attacker(part, Random(f"{seed} {part}")) for part in ATTACKERS}
        self.config = site.config(folder / "out", apart=True)
        self.commanders = ("admin",) if followed else ("admin", "installer")
        self.folder = folder
        self.faults: list[str] = []
        self.changes = self.loaded = 0
        self.done: Counter[str] = Counter()
        self.sessions: dict[str, tuple[Connection, Connection]] = {}

    def open(self, stack: ExitStack) -> None:
        for part in ATTACKERS:
            ours = stack.enter_context(session(self.site.engine(part)))
            other = self.site.engine(part).url.set(database=self.twin.url.database)
            theirs = stack.enter_context(session(stack.enter_context(engine_at(other))))
            self.sessions[part] = (ours, theirs)
            for statement in self.attackers[part].start():
                self.attack(part, statement)

    def attack(self, part: str, statement: str) -> None:
        """Runs a statement in both databases; it may fail in ours where it fails in the other too."""
        ours, theirs = self.sessions[part]
        alone, _ = attempt(theirs, statement)
        here, changed = attempt(ours, statement)
        self.done[f"{part} {'did' if here is None else 'tried'}"] += 1
        if here is not None and alone is None and "capture." not in statement:
            self.faults.append(f"{part}: {statement}\n  {here}")
        # A change of nothing but the hidden column is nobody's to know.
        if here is None and re.match(r"(INSERT INTO|UPDATE|DELETE FROM) app\.usr (?!SET secret)", statement):
            self.changes += changed

    def command(self, part: str, *arguments: str) -> None:
        """Somebody's command: about a table that nobody attacks it ends well."""
        self.capsys.readouterr()
        url, twin = self.site.url(part), self.twin.url.render_as_string(hide_password=False)
        words = [word.format(twin=twin) for word in arguments]
        where = ["--log", "capture.event_log", "--config", str(self.file(url))]
        if "--against" in words:
            where += ["--into", "app"]
        code = exit_code([*words, *where])
        said = self.capsys.readouterr()
        about = " ".join(arguments)
        if "Traceback" in said.out + said.err or code not in self.expected(arguments):
            self.faults.append(f"{part}: eventlog {about}: {code}\n  {said.out}{said.err}")
        if arguments[0] == "refresh" and code == 0:
            self.loaded += sum(table["rows"] for table in json.loads(said.out))

    @staticmethod
    def expected(arguments: tuple[str, ...]) -> set[int]:
        if arguments[0] in ("check", "triggers") or "own.mine" in arguments:
            return {0, 1, 69, 78}
        return {0}

    def file(self, url: str) -> Path:
        file = self.folder / "eventlog.toml"
        reader = f'reader = "{self.site.url("reader")}"'
        output = f'[[output]]\nname = "near"\nsink = "files"\npath = "{self.folder / "near"}"'
        file.write_text(f'[source]\nurl = "{url}"\n{reader}\nlog = "capture.event_log"\nschema = "app"\n{output}\n')
        return file

    def fight(self, statements: int) -> None:
        with ExitStack() as stack:
            self.open(stack)
            publisher = stack.enter_context(Publisher(self.config))
            order = [part for part in ATTACKERS for _ in range(statements)]
            self.dice.shuffle(order)
            for number, part in enumerate(order, 1):
                self.attack(part, self.attackers[part].statement())
                if number % ROUND == 0:
                    self.publish(publisher)
                if number % (4 * ROUND) == 0:
                    self.command(self.dice.choice(self.commanders), *self.dice.choice(COMMANDS))
                    self.site.give()
            # A table of the tenant's may be one that nobody can read now: its rows wait, and the others do not.
            for _ in range(LAST_ROUNDS):
                self.publish(publisher)

    @staticmethod
    def publish(publisher: Publisher) -> None:
        """One round, which ends: a publisher that only looks again is a failure too."""

        def over(_number: int, _frame: object) -> None:
            raise TimeoutError("a round of the publisher does not end")

        former = signal.signal(signal.SIGALRM, over)
        signal.alarm(LONGEST_SECONDS)
        try:
            publisher.run_once()
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, former)

    def published(self) -> str:
        return "\n".join(file.read_text() for file in sorted((self.folder / "out").rglob("*.xml")))


@contextmanager
def engine_at(url: URL) -> Iterator[Engine]:
    engine = create_engine(url)
    try:
        yield engine
    finally:
        engine.dispose()


@contextmanager
def another_database(server: str, admin: Engine) -> Iterator[Engine]:
    """A database that is gone in the end, whatever happens: the roles that have something there are to go too."""
    with ExitStack() as stack:
        twin = stack.enter_context(postgresql_database(server, admin))
        failed: BaseException | None = None
        try:
            yield twin
        except BaseException as error:  # noqa: BLE001 - it is raised again when the database is gone
            failed = error
    if failed is not None:
        raise failed


def attempt(connection: Connection, statement: str) -> tuple[str | None, int]:
    """What the server says no with, if it does, and how many rows it changed."""
    try:
        return None, connection.exec_driver_sql(statement.replace("%", "%%")).rowcount
    except DBAPIError as error:
        return str(error.orig), 0


def seeds() -> list[int]:
    named = os.environ.get("EVENTLOG_ATTACK")
    return [int(named)] if named else [1]


@pytest.mark.parametrize("followed", [False, True])
@pytest.mark.parametrize("seed", seeds())
def test_whatever_everybody_tries_nothing_comes_of_it(
    postgresql_server: str,
    postgresql_admin: Engine,
    postgresql: Engine,
    tmp_path: Path,
    seed: int,
    followed: bool,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with people(postgresql) as site, another_database(postgresql_server, postgresql_admin) as twin:
        places_of(site, twin)
        if followed:
            run(
                site.admin,
                "ALTER SCHEMA capture OWNER TO CURRENT_USER",
                f"REASSIGN OWNED BY {site.name('installer')} TO CURRENT_USER",
            )
        part = "admin" if followed else "installer"
        condition = "coalesce(note, '') <> 'n3'" if followed else None
        track(site.engine(part), ["own.mine"], TriggerOptions(when=condition, follow_ddl=followed), LOG)
        track(site.engine(part), ["app.usr"], TriggerOptions(exclude=("secret",), follow_ddl=followed), LOG)
        site.give()
        battle = Battle(site, twin, tmp_path, seed, capsys, followed=followed)
        battle.fight(scaled(60))
        foreign = {pair for pair in site.sung() if pair[0] != pair[1]} - ALLOWED
        assert foreign == set(), "whose code ran as whom"
        assert battle.faults == []
        published = battle.published()
        assert HIDDEN not in published
        assert site.ask(
            "SELECT count(*) FROM capture.event_log WHERE concat(old_value, new_value) LIKE '%s3cret%'"
        ) == [(0,)]
        mine = "table_name IN ('usr', 'app.usr')"
        assert site.ask(f"SELECT count(*) FROM capture.event_log WHERE {mine}") == [(battle.changes + battle.loaded,)]
        assert site.ask(f"SELECT count(*) FROM capture.event_log WHERE {mine} AND status NOT IN ('S', 'W')") == [(0,)]
        left = [str(fname) for (fname,) in site.ask("SELECT fname FROM app.usr")]
        assert [fname for fname in left if fname not in published] == []
        assert min(battle.done[f"{part} did"] for part in ATTACKERS) >= 15, battle.done
