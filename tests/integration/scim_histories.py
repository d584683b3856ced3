"""Random histories of people and groups that share names, at a SCIM server that fails and answers late."""

from __future__ import annotations

import datetime as dt
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.care.rows import PROCESSED, Choice, requeue
from eventlog.config.settings import Config
from eventlog.core.errors import EventlogError
from eventlog.daemon.publisher import Publisher
from eventlog.publisher import reader
from eventlog.publisher.journal import Journal
from eventlog.publisher.writing import JournalTransaction
from eventlog.refresh.chunks import Refresh
from eventlog.refresh.loads import RefreshPace, loads
from eventlog.sinks.scim.carry import ScimCarrier
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from tests.integration.publishing import in_thread, publish_all
from tests.publisher.forgetting import Tables, put_tables, read_tables
from tests.support.scim import MAPPING, Judge, ends, judge, run, scim_config, scim_site, verify
from tests.support.sinks import KilledError

LOGINS = ("ada", "bob", "cyd", "dan")
NAMES = ("staff", "board", "twins")
MOST_SECONDS = 1.5
"""So long a request may be under way."""
FAILED = ("502 Bad Gateway", [("Content-Length", "0")], b"")
BUSY = ("503 Service Unavailable", [("Content-Length", "0"), ("Retry-After", "0")], b"")

MET: Counter[str] = Counter()
"""What the histories of this process have met."""

State = Counter[tuple[str, frozenset[str | None]]]


class History:
    """What happens to the tables, by chance; `said` tells all of it."""

    def __init__(self, engine: Engine, seed: int) -> None:
        self.chance = random.Random(seed)
        self.said: list[str] = []
        self._engine = engine
        self._users: dict[int, str] = {}
        self._groups: dict[int, set[int]] = {}
        self.keeps_names = False
        """Whether who is deleted stays at the server, disabled, and keeps the name.

        Of who was renamed and deleted in one batch that is the name before, and rows that wait again disable whom they
        deleted. So then nobody gets a name that somebody has had.
        """
        self._had: set[str] = set()

    def change(self) -> None:
        """Change some rows in one transaction, or in several."""
        statements = [statement for _ in range(self.chance.randint(1, 5)) for statement in self._pick()]
        if self.chance.random() < 0.5:
            run(self._engine, *statements)
        else:
            for statement in statements:
                run(self._engine, statement)
        self.said += statements

    def _pick(self) -> Iterator[str]:
        picks = (self._add_user, self._rename_user, self._swap, self._replace_user, self._end_user)
        picks_of_groups = (self._add_group, self._rename_group, self._change_members, self._replace_group)
        yield from self.chance.choice([*picks, *picks_of_groups, self._change_members])()

    def _free_logins(self) -> list[str]:
        if self.keeps_names:
            return [free for login in LOGINS if (free := f"{login}{len(self.said)}") not in self._had]
        return [login for login in LOGINS if login not in self._users.values()]

    def _call(self, number: int, login: str) -> None:
        self._users[number] = login
        self._had.add(login)

    def _key(self, known: Any) -> int:
        return self.chance.choice([number for number in range(1, 9) if number not in known])

    def _add_user(self) -> Iterator[str]:
        free = self._free_logins()
        if free:
            number, login = self._key(self._users), self.chance.choice(free)
            self._call(number, login)
            yield f"INSERT INTO usr (idu, login, fname, works) VALUES ({number}, '{login}', 'F{number}', 1)"

    def _rename_user(self) -> Iterator[str]:
        free = self._free_logins()
        if free and self._users:
            number = self.chance.choice([*self._users])
            self._call(number, self.chance.choice(free))
            yield f"UPDATE usr SET login = '{self._users[number]}' WHERE idu = {number}"

    def _swap(self) -> Iterator[str]:
        if len(self._users) > 1 and not self.keeps_names:
            one, other = self.chance.sample([*self._users], 2)
            users = self._users
            users[one], users[other] = users[other], users[one]
            yield f"UPDATE usr SET login = 'between' WHERE idu = {one}"
            yield f"UPDATE usr SET login = '{users[other]}' WHERE idu = {other}"
            yield f"UPDATE usr SET login = '{users[one]}' WHERE idu = {one}"

    def _end_user(self) -> Iterator[str]:
        if self._users:
            number = self.chance.choice([*self._users])
            del self._users[number]
            for members in self._groups.values():
                members.discard(number)
            yield f"DELETE FROM usr_grp WHERE idu = {number}"
            yield f"DELETE FROM usr WHERE idu = {number}"

    def _replace_user(self) -> Iterator[str]:
        yield from self._end_user()
        yield from self._add_user()

    def _add_group(self) -> Iterator[str]:
        if len(self._groups) < 5:
            number = self._key(self._groups)
            self._groups[number] = set()
            yield f"INSERT INTO grp VALUES ({number}, '{self.chance.choice(NAMES)}')"

    def _rename_group(self) -> Iterator[str]:
        if self._groups:
            name, number = self.chance.choice(NAMES), self.chance.choice([*self._groups])
            yield f"UPDATE grp SET name = '{name}' WHERE idg = {number}"

    def _replace_group(self) -> Iterator[str]:
        if self._groups:
            number = self.chance.choice([*self._groups])
            del self._groups[number]
            yield f"DELETE FROM usr_grp WHERE idg = {number}"
            yield f"DELETE FROM grp WHERE idg = {number}"
        yield from self._add_group()

    def _change_members(self) -> Iterator[str]:
        if self._groups and self._users:
            number, user = self.chance.choice([*self._groups]), self.chance.choice([*self._users])
            members = self._groups[number]
            if user in members:
                yield f"DELETE FROM usr_grp WHERE idg = {number} AND idu = {user}"
            else:
                yield f"INSERT INTO usr_grp VALUES ({number}, {user})"
            members ^= {user}


class Trouble:
    """What fails at the server and in the publisher, by chance, as long as it lasts."""

    def __init__(self, engine: Engine, server: Judge, seed: int, share: float) -> None:
        self._chance = random.Random(seed)
        self._share, self._server, self._engine = share, server, engine
        self.lasts = False
        self.met: Counter[str] = Counter()
        self.forgets = False
        """Whether nobody but one publisher writes to the log, so that what is lost is the publisher's alone."""
        self._kept: Tables = {}
        self._ahead = dt.timedelta()
        self._others = random.Random(seed + 1)
        server.meddle, server.after = self._refuse, self._lose

    def is_met(self, share: float = 1.0) -> bool:
        return self.lasts and self._chance.random() < self._share * share

    def _refuse(self, method: str, path: str) -> Any:
        time.sleep(self._chance.random() * 0.004)
        return self._chance.choice([FAILED, BUSY]) if self.is_met(0.5) else None

    def _lose(self, method: str, path: str) -> Any:
        if method == "DELETE":
            self._server.forget(path.rpartition("/")[2])
        time.sleep(self._chance.random() * 0.004)
        return FAILED if method != "GET" and self.is_met() else None

    @contextmanager
    def deaths(self) -> Iterator[None]:
        """Let publishers die before and after a request, and before its answer is entered."""
        plain_carry, plain_done = ScimCarrier.carry, Journal.done

        def die() -> None:
            if self.is_met(0.3):
                raise KilledError

        def carry(carrier: ScimCarrier, *given: Any, **named: Any) -> Any:
            die()
            answer = plain_carry(carrier, *given, **named)
            die()
            return answer

        def done(journal: Journal, *given: Any) -> Any:
            die()
            return plain_done(journal, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ScimCarrier, "carry", carry)
            patch.setattr(Journal, "done", done)
            yield

    def settle(self) -> None:
        """Put all commits on the disk."""
        self._kept = {}

    def set_clock(self) -> None:
        """Set the database's clock forward or back, by chance."""
        if self._share and self._others.random() < 0.3:
            self.met["the clock was set"] += 1
            self._ahead = dt.timedelta(seconds=self._others.choice([-86_400, -7_200, -30, 0, 30, 7_200, 86_400]))

    @contextmanager
    def clock_and_disk(self) -> Iterator[None]:
        """Have the database's clock jump, and a database that crashes and loses commits that need not be on its disk."""
        plain, plain_now = Journal.transaction, Log.now

        @contextmanager
        def transaction(journal: Journal, *, soon: bool = False) -> Iterator[JournalTransaction]:
            if soon and self.forgets and not self._kept:
                self._kept = read_tables(self._engine)
            with plain(journal, soon=soon) as found:
                yield found
            if not soon:
                self.settle()
            elif self._kept and self.lasts and self._others.random() < self._share:
                self.met["a commit was forgotten"] += 1
                put_tables(self._engine, self._kept)
                self.settle()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Journal, "transaction", transaction)
            patch.setattr(Log, "now", lambda log, connection: plain_now(log, connection) + self._ahead)
            patch.setattr(reader, "CLOCK_SECONDS", 0.0)
            yield


def in_tables(engine: Engine) -> tuple[State, State]:
    """Count users with their first names, and groups with their members' logins."""
    with engine.connect() as connection:
        rows = connection.execute(text("SELECT idu, login, fname FROM usr")).all()
        groups = connection.execute(text("SELECT idg, name FROM grp")).all()
        members = connection.execute(text("SELECT idg, idu FROM usr_grp")).all()
    logins = {idu: login for idu, login, _ in rows}
    of_groups = [(name, frozenset(logins[idu] for idg, idu in members if idg == number)) for number, name in groups]
    return Counter((login, frozenset([fname])) for _, login, fname in rows), Counter(of_groups)


def at_server(server: Judge) -> tuple[State, State]:
    """Count the same of who is not disabled."""
    users = [user for user in server.resources("User") if user.get("active") is not False]
    names = {user["id"]: user["userName"] for user in users}
    of_users = [(user["userName"], frozenset([(user.get("name") or {}).get("givenName")])) for user in users]
    of_groups = [
        (
            group["displayName"],
            # Who is told at the same time to leave and to be deleted may stay as a member that is nobody.
            frozenset(names[member["value"]] for member in group.get("members") or () if member["value"] in names),
        )
        for group in server.resources("Group")
    ]
    return Counter(of_users), Counter(of_groups)


def publish(engine: Engine, config: Config, tries: int) -> None:
    """Publish so often, or until all is published; a publisher that dies has another one after it."""
    for _ in range(tries):
        try:
            publish_all(config)
        except KilledError:
            run(engine, "DELETE FROM event_log_mark WHERE name = 'lock'")
        except EventlogError:
            time.sleep(0.02)
        else:
            return


def hand_over(config: Config, seconds: float) -> None:
    """Let one publish for so long, while another one waits for the lock and goes on."""

    def go_on() -> None:
        with suppress(EventlogError, KilledError), in_thread(Publisher(config)):
            time.sleep(seconds + 0.5)

    other = Thread(target=go_on)
    with suppress(EventlogError, KilledError), in_thread(Publisher(config)):
        other.start()
        time.sleep(seconds)
    other.join()


def requeue_tail(engine: Engine, chance: random.Random) -> str:
    """Let all rows wait again from some row on that is the first of its change, as who restores a server does."""
    with engine.connect() as connection:
        changes = text(
            "SELECT min(record_id), max(record_id) FROM event_log GROUP BY table_key, event_type, event_time"
        )
        rows = connection.execute(changes).all()
    if not rows:
        return "nothing to requeue"
    first, last = chance.choice(rows)[0], max(row[1] for row in rows)
    return f"requeue from {first} on: {requeue(Log(engine, LogNames()), [(first, last)], Choice(statuses=PROCESSED))}"


def refresh(engine: Engine, table: str) -> str:
    """Let all rows of a table wait."""
    [load] = loads(engine, LogNames(), [table], None, None)
    work = Refresh(Log(engine, LogNames()), load, RefreshPace(chunk=3))
    for _ in work.steps(work.begin()):
        pass
    return f"refresh {table}"


def configured(
    engine: Engine, server: Judge, *, keeps: bool, has_names: bool, most_seconds: float = MOST_SECONDS
) -> Config:
    """Configure a publisher: those who are deleted are disabled, or first names are mapped no more."""
    mapping = deepcopy(MAPPING)
    if keeps:
        mapping["tables"]["usr"]["delete"] = "disable"
    if not has_names:
        del mapping["tables"]["usr"]["columns"]["fname"]
    publisher = {"lease": 1.0, "retry_first": 0.01, "retry_longest": 0.02}
    return scim_config(engine, server.url, publisher, total_timeout=most_seconds, scim=mapping)


def without_names(state: tuple[State, State]) -> tuple[State, State]:
    return Counter({(login, frozenset()): count for (login, _), count in state[0].items()}), state[1]


class Play:
    """One history at one server, and what operators do in its middle, by chance."""

    def __init__(self, engine: Engine, server: Judge, seed: int, share: float, *, is_cared: bool) -> None:
        self.history, self.trouble = History(engine, seed), Trouble(engine, server, seed + 1, share)
        self._engine, self._server, self._is_cared = engine, server, is_cared
        self.had_names, self._keeps = True, False
        self.config = configured(engine, server, keeps=False, has_names=True)

    def go_on(self) -> None:
        """Change the tables, and publish while there is trouble."""
        history, chance = self.history, self.history.chance
        history.change()
        self.trouble.set_clock()
        self.trouble.lasts = True
        with self.trouble.deaths():
            if self._is_cared:
                self._take_care()
            if self._is_cared and chance.random() < 0.3:
                history.said.append("two publishers")
                hand_over(self.config, chance.random() * 0.3)
            self.trouble.forgets = True
            publish(self._engine, self.config, chance.randint(1, 6))
            self.trouble.forgets = False
            self.trouble.settle()
        self.trouble.lasts = False
        history.said.append("--")

    def _take_care(self) -> None:
        said, chance = self.history.said, self.history.chance
        match chance.randint(1, 8):
            case 1 | 2:
                said.append(requeue_tail(self._engine, chance))
            case 3:
                said.append(refresh(self._engine, chance.choice(["usr", "grp"])))
            case 4:
                has_names = chance.random() < 0.5
                self.had_names = self.had_names and has_names
                self.config = configured(self._engine, self._server, keeps=self._keeps, has_names=has_names)
                said.append(f"first names are {'' if has_names else 'not '}mapped")
            case 5 if not self._keeps:
                self._keeps = self.history.keeps_names = True
                publish(self._engine, self.config, 200)
                self.config = configured(self._engine, self._server, keeps=True, has_names=self.had_names)
                said.append("who is deleted is disabled")


def play(engine: Engine, seed: int, style: str, share: float, *, is_cared: bool = False) -> int:
    """Play one history, and count its batches; the server has what the tables have in the end, as `verify` finds.

    `is_cared` says that rows are requeued and loaded, mappings change, and publishers hand over.
    """
    with judge() as server, ExitStack() as leaving:
        scim_site(engine, style)
        one = Play(engine, server, seed, share, is_cared=is_cared)
        leaving.enter_context(one.trouble.clock_and_disk())
        said = one.history.said
        for _ in range(4):
            for _ in range(one.history.chance.randint(1, 2)):
                one.go_on()
            publish(engine, one.config, 200)
            where = "\n".join([f"seed {seed}, {style}", *said])
            wrong = [end for end in ends(engine).items() if end[1][0] != "W"]
            assert not wrong, f"{where}\n{wrong}"
            there, wanted = at_server(server), in_tables(engine)
            if not one.had_names:
                there, wanted = without_names(there), without_names(wanted)
            assert there == wanted, f"{where}\n{there}\n{wanted}"
        usual = configured(engine, server, keeps=one.history.keeps_names, has_names=True, most_seconds=10.0)
        verify(engine, usual, mend=True)
        publish_all(usual)
        found = [end.proof.differences for end in verify(engine, usual).values()]
        assert not any(found), f"{where}\n{found}"
        assert at_server(server) == in_tables(engine), where
    MET.update(one.trouble.met)
    return said.count("--")
