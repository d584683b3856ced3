"""MariaDB and MySQL: everybody attacks at random, beside a publisher who works and commands that others run.

`EVENTLOG_ATTACK=SEED` repeats one history, EVENTLOG_HARDENING=17 makes a thousand statements of each.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import Connection, Engine

from eventlog.capture.rights import Roles, give_rights
from eventlog.cli.main import exit_code
from eventlog.config.settings import Config, PublisherConfig, SourceConfig
from eventlog.daemon.publisher import Publisher
from eventlog.sinks.outputs import FilesOutput
from tests.hardening.quantity import scaled
from tests.hardening.registry.accounts import Accounts, accounts_on
from tests.hardening.registry.attacking import KEPT, literal
from tests.hardening.registry.forging import marker
from tests.hardening.registry.people import HIDDEN, session
from tests.hardening.registry.test_random_attacker import LAST_ROUNDS, attempt, seeds
from tests.support.servers import mysqls

ATTACKERS = ("writer", "publisher", "stranger")
ROUND = 24
NAMES = ("t", "usr", "event_log", "event_log_mark", "event_log_tracked", "a'b", "%s {x}", "eventlog {", "select", "Ünï")
OURS = ("event_log_usr_insert", "event_log_usr_update", "event_log_usr_delete", "event_log_mine_insert")
SETTINGS = (
    "sql_mode = 'ANSI_QUOTES'",
    "sql_mode = 'NO_BACKSLASH_ESCAPES'",
    "sql_mode = 'PIPES_AS_CONCAT,HIGH_NOT_PRECEDENCE'",
    "sql_mode = ''",
    "time_zone = '+05:00'",
    "character_set_connection = latin1",
    "sql_select_limit = 1",
    "foreign_key_checks = 0",
    "group_concat_max_len = 4",
    "div_precision_increment = 0",
    "sql_safe_updates = 0",
    "transaction_isolation = 'SERIALIZABLE'",
)
COMMANDS = (("refresh", "usr", "--json"), ("track", "usr"), ("triggers",), ("check",))


def quoted(name: str) -> str:
    return f"`{name}`"


class Attacker:
    """What one account does; its code, wherever it stands, calls the function that tells who runs it."""

    def __init__(self, part: str, home: str, dice: Random) -> None:
        self.home, self.dice = home, dice
        self._ways: list[Callable[[], str]] = [
            *[self.set, self.forge],
            *{
                "writer": [self.write] * 6,
                "publisher": [self.mark, self.mark, self.enter],
                "stranger": [self.make, self.make, self.alter, self.make_trigger, self.make_trigger, self.fire],
            }[part],
        ]

    def statement(self) -> str:
        return self.dice.choice(self._ways)()

    def _trap(self) -> str:
        return f"{self.home}.trap('a trap') = 1"

    def _marker(self) -> str:
        options = self.dice.choice(({}, {"when": self._trap()}, {"exclude": ["fname"]}, {"key": ["secret"]}))
        return literal(marker("usr", "event_log", **options))

    def set(self) -> str:
        return f"SET SESSION {self.dice.choice(SETTINGS)}"

    def forge(self) -> str:
        """What only who may do more can do."""
        return self.dice.choice(
            (
                f"INSERT INTO event_log_tracked SELECT * FROM event_log_tracked WHERE {self._trap()}",
                "UPDATE event_log_tracked SET options = '{}'",
                f"CREATE TRIGGER {self.dice.choice(OURS)} AFTER INSERT ON usr FOR EACH ROW DO 1",
                "DROP TRIGGER event_log_usr_insert",
                "ALTER TABLE usr ADD COLUMN more TEXT",
                "CREATE TEMPORARY TABLE event_log (record_id BIGINT AUTO_INCREMENT PRIMARY KEY)",
                f"CREATE DEFINER = root@localhost FUNCTION {self.home}.taken() RETURNS INTEGER RETURN {self.home}.trap('x')",
            )
        )

    def make(self) -> str:
        name = f"{self.home}.{quoted(self.dice.choice(NAMES))}"
        return self.dice.choice(
            (
                f"CREATE TABLE {name} (idu INTEGER PRIMARY KEY, fname VARCHAR(40)) COMMENT = {self._marker()}",
                f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {self.home}.heard WHERE {self._trap()}",
                f"DROP TABLE IF EXISTS {name}",
                f"DROP VIEW IF EXISTS {name}",
                f"CREATE TEMPORARY TABLE {name} (idu INTEGER PRIMARY KEY) COMMENT = {self._marker()}",
                f"CREATE PROCEDURE {name}() BEGIN DO {self._trap()}; END",
                f"CREATE FUNCTION {name}() RETURNS INTEGER RETURN {self.home}.trap('a function')",
                f"DROP FUNCTION IF EXISTS {name}",
            )
        )

    def alter(self) -> str:
        name = f"{self.home}.{quoted(self.dice.choice(NAMES))}"
        return self.dice.choice(
            (
                f"ALTER TABLE {name} COMMENT = {self._marker()}",
                f"ALTER TABLE {name} ADD COLUMN {quoted(self.dice.choice(NAMES))} TEXT",
                f"RENAME TABLE {name} TO {self.home}.{quoted(self.dice.choice(NAMES))}",
            )
        )

    def make_trigger(self) -> str:
        own = self.dice.random() < 0.5
        name = quoted(self.dice.choice(OURS)) if own else f"{self.home}.{quoted(self.dice.choice(OURS))}"
        table = "mine" if own else f"{self.home}.usr"
        if self.dice.random() < 0.3:
            return f"DROP TRIGGER IF EXISTS {name}"
        event = self.dice.choice(("INSERT", "UPDATE", "DELETE"))
        body = f"BEGIN DO {self._marker()}; DO {self._trap()}; END"
        return f"CREATE TRIGGER {name} AFTER {event} ON {table} FOR EACH ROW {body}"

    def fire(self) -> str:
        number = self.dice.randrange(20)
        return self.dice.choice(
            (f"INSERT IGNORE INTO mine VALUES ({number}, 'x')", "UPDATE mine SET note = 'y'", "DELETE FROM mine")
        )

    def write(self) -> str:
        """A change of the table that nobody attacks, each with a text of its own, and with something to hide."""
        number, token = self.dice.randrange(12), f"v{self.dice.randrange(1 << 40):x}"
        return self.dice.choice(
            (
                f"INSERT IGNORE INTO usr VALUES ({number}, '{token}', 'l', '{HIDDEN}')",
                f"UPDATE usr SET fname = '{token}', secret = '{HIDDEN} {token}' WHERE idu = {number}",
                f"UPDATE usr SET secret = '{HIDDEN} {token}' WHERE idu = {number}",
                f"DELETE FROM usr WHERE idu = {number}",
            )
        )

    def mark(self) -> str:
        name = literal(self.dice.choice(KEPT))
        if self.dice.random() < 0.3:
            return f"DELETE FROM event_log_mark WHERE name = {name}"
        return f"REPLACE INTO event_log_mark (name, value) VALUES ({name}, {self._marker()})"

    def enter(self) -> str:
        """A definition of a table that is not the publisher's to define."""
        described = self.dice.choice(("no json", "{}", '{"place": 99}'))
        entered, number = self.dice.choice(("event_log_schema", "event_log_seen")), self.dice.randrange(2, 2**31 - 1)
        return (
            f"INSERT INTO {entered} (table_name, table_version, seen_at, first_record, described)"
            f" VALUES ('{self.dice.choice(('usr', 'mine'))}', {number}, '2030-01-01', 0, {literal(described)})"
        )


class Battle:
    """One history: attackers with a session each, and what they must not bring about."""

    def __init__(self, accounts: Accounts, folder: Path, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
        self.accounts, self.folder, self.capsys = accounts, folder, capsys
        self.dice = Random(seed)
        self.attackers = {part: Attacker(part, accounts.home, Random(f"{seed} {part}")) for part in ATTACKERS}
        self.faults: list[str] = []
        self.changes = self.loaded = 0
        self.done: Counter[str] = Counter()

    def fight(self, statements: int) -> None:
        source = SourceConfig(url=self.url("publisher"))
        outputs = (FilesOutput(path=str(self.folder / "out")),)
        config = Config(source=source, publisher=PublisherConfig(allow_loopback=True), output=outputs)
        with ExitStack() as stack:
            engines = self.accounts.engines
            sessions = {part: stack.enter_context(session(engines[part])) for part in ATTACKERS}
            publisher = stack.enter_context(Publisher(config))
            order = [part for part in ATTACKERS for _ in range(statements)]
            self.dice.shuffle(order)
            for number, part in enumerate(order, 1):
                self.attack(part, sessions[part])
                if number % ROUND == 0:
                    publisher.run_once()
                if number % (4 * ROUND) == 0:
                    self.command(self.dice.choice(("admin", "installer")), *self.dice.choice(COMMANDS))
            for _ in range(LAST_ROUNDS):
                publisher.run_once()

    def attack(self, part: str, connection: Connection) -> None:
        statement = self.attackers[part].statement()
        problem, changed = attempt(connection, statement)
        self.done[f"{part} {'did' if problem is None else 'tried'}"] += 1
        if re.match(r"(INSERT IGNORE INTO|UPDATE|DELETE FROM) usr ", statement):
            if problem is not None:
                self.faults.append(f"{part}: {statement}\n  {problem}")
            elif "SET secret" not in statement:
                self.changes += changed

    def command(self, part: str, *arguments: str) -> None:
        self.capsys.readouterr()
        code = exit_code([*arguments, "--database", self.url(part)])
        said = self.capsys.readouterr()
        expected = {0, 1, 69, 78} if arguments[0] in ("check", "triggers") else {0}
        if "Traceback" in said.out + said.err or code not in expected:
            self.faults.append(f"{part}: eventlog {' '.join(arguments)}: {code}\n  {said.out}{said.err}")
        if arguments[0] == "refresh" and code == 0:
            self.loaded += sum(table["rows"] for table in json.loads(said.out))
        publisher = str(self.accounts.engines["publisher"].url.username)
        give_rights(self.accounts.admin, Roles(publisher=publisher))

    def url(self, part: str) -> str:
        engine = self.accounts.admin if part == "admin" else self.accounts.engines[part]
        return engine.url.render_as_string(hide_password=False)


@pytest.mark.parametrize("server", mysqls())
@pytest.mark.parametrize("seed", seeds())
def test_whatever_everybody_tries_nothing_comes_of_it(
    request: pytest.FixtureRequest, server: str, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    admin: Engine = request.getfixturevalue(server)
    with accounts_on(admin) as accounts:
        battle = Battle(accounts, tmp_path, seed, capsys)
        battle.fight(scaled(60))
        stranger = str(accounts.engines["stranger"].url.username)
        assert {str(who).partition("@")[0] for (who,) in accounts.sung()} <= {stranger}, "whose code ran as whom"
        assert battle.faults == [], "\n".join(battle.faults)
        published = "\n".join(file.read_text() for file in sorted((tmp_path / "out").rglob("*.xml")))
        assert HIDDEN not in published
        shown = "SELECT COUNT(*) FROM event_log WHERE old_value LIKE '%s3cret%' OR new_value LIKE '%s3cret%'"
        assert accounts.ask(shown) == [(0,)]
        assert len(accounts.statuses()) == battle.changes + battle.loaded
        assert set(accounts.statuses()) <= {"S", "W"}
        left = [str(fname) for (fname,) in accounts.ask("SELECT fname FROM usr")]
        assert [fname for fname in left if fname not in published] == []
        assert min(battle.done[f"{part} did"] for part in ATTACKERS) >= 15, battle.done
