"""Random histories of tracked tables against a plain dictionary: triggers, log, publisher, and a replay of its documents.

Every style of events, compound keys, children of both tables, NULLs and odd values, keys that change, what is rolled
back; rounds of publishing, rows that are held and other styles of tracking come anywhere in between. What once was hard
stands in tests/golden/histories.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.care.rows import EVERYTHING, hold, release
from eventlog.daemon.publisher import Publisher
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions
from tests.hardening.quantity import scaled
from tests.hardening.replaying import Values, account_for_log, replay_values, written_key
from tests.integration.publishing import config_of

TABLES = (
    "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(80), lname VARCHAR(80))",
    "CREATE TABLE usr_phone (idu INTEGER REFERENCES usr (idu) ON DELETE CASCADE, phoneno VARCHAR(80))",
    "CREATE TABLE item (shop VARCHAR(80) NOT NULL, number INTEGER NOT NULL, note VARCHAR(80), PRIMARY KEY (shop, number))",
    (
        "CREATE TABLE item_tag (shop VARCHAR(80), number INTEGER, tag VARCHAR(80), FOREIGN KEY (shop, number)"
        " REFERENCES item (shop, number) ON DELETE CASCADE)"
    ),
)
HISTORIES = Path(__file__).resolve().parents[1] / "golden" / "histories"
PHONE, TAG = "usr_phone.phoneno", "item_tag.tag"
CHILDREN = {"usr": "usr_phone", "item": "item_tag"}
plain = st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=("Cs", "Cc", "Co", "Cn"))
odd = st.sampled_from(
    ["", " ", "NULL", "null", "\\N", "a,table=usr,schema=x", "]]>", "&#0;", "' OR 1=1 --", "%s {0} :x", "\t\n"]
)
values = st.none() | odd | st.text(plain, max_size=8)
shops = st.sampled_from(["a", "b=c", 'q"+,', "x\\y", " ", "Ü"])
users, numbers = st.integers(-2, 3), st.integers(1, 2)
styles = st.sampled_from([style.value for style in Style])


class Histories(RuleBasedStateMachine):
    """What applications may do; the dictionary holds what must come out."""

    make: ClassVar[Any] = None
    equal: ClassVar[int] = 0
    """Histories whose documents said what the tables held."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="eventlog-model-"))
        self.engine: Engine = type(self).make(self.folder)
        self.model: Values = {}

    @initialize(style=styles, limit=st.sampled_from([1, 2, 1000]), size=st.integers(1, 4), coalesce=st.booleans())
    def begin(self, style: str, limit: int, size: int, coalesce: bool = False) -> None:
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "postgresql":  # one database serves all histories
                connection.execute(text("DROP SCHEMA public CASCADE"))
                connection.execute(text("CREATE SCHEMA public"))
            for statement in TABLES:
                connection.execute(text(statement))
        install(self.engine, LogNames())
        for table in CHILDREN:
            self.track(table, style)
        config = config_of(self.engine, self.folder / "out", query_limit=limit, batch_size=size, coalesce=coalesce)
        self.publisher = Publisher(config, engine=self.engine)

    def run(self, sql: str, **parameters: Any) -> int:
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("PRAGMA foreign_keys=on")
            return int(connection.execute(text(sql), parameters).rowcount)

    @rule(table=st.sampled_from(sorted(CHILDREN)), style=styles)
    def track(self, table: str, style: str) -> None:
        track(self.engine, [table], TriggerOptions(style=Style(style), children=(CHILDREN[table],)), LogNames())

    @rule(idu=users, note=values)
    def roll_back(self, idu: int, note: str | None) -> None:
        with self.engine.connect() as connection:
            connection.execute(text("UPDATE item SET note = :v"), {"v": note})
            connection.execute(text("UPDATE usr SET fname = :v"), {"v": note})
            connection.execute(text("DELETE FROM usr_phone WHERE idu = :k"), {"k": idu})
            connection.execute(text("DELETE FROM usr WHERE idu = :k"), {"k": idu})
            connection.rollback()

    @rule(first=st.integers(1, 40), count=st.integers(0, 5))
    def hold(self, first: int, count: int) -> None:
        hold(Log(self.engine, LogNames()), [(first, first + count)])

    @rule()
    def release(self) -> None:
        release(Log(self.engine, LogNames()), [EVERYTHING])

    @rule(idu=users, fname=values, lname=values)
    def put_user(self, idu: int, fname: str | None, lname: str | None) -> None:
        place = ("usr", f"idu={idu}")
        if place in self.model:
            self.run("UPDATE usr SET fname = :f, lname = :l WHERE idu = :k", f=fname, l=lname, k=idu)
        else:
            self.run("INSERT INTO usr VALUES (:k, :f, :l)", f=fname, l=lname, k=idu)
        phones = self.model.get(place, {}).get(PHONE, set())
        self.model[place] = {"fname": _one(fname), "lname": _one(lname), PHONE: phones}

    @rule(idu=users)
    def drop_user(self, idu: int) -> None:
        gone = self.run("DELETE FROM usr WHERE idu = :k", k=idu)
        assert gone == (self.model.pop(("usr", f"idu={idu}"), None) is not None)

    @rule(idu=users, other=users)
    def move_user(self, idu: int, other: int) -> None:
        old, new = ("usr", f"idu={idu}"), ("usr", f"idu={other}")
        if old in self.model and new not in self.model and not self.model[old][PHONE]:
            self.run("UPDATE usr SET idu = :new WHERE idu = :old", old=idu, new=other)
            self.model[new] = self.model.pop(old)

    @rule(idu=users, phone=st.sampled_from(["1", "", "<2>", "a b"]))
    def toggle_phone(self, idu: int, phone: str) -> None:
        held = self.model.get(("usr", f"idu={idu}"))
        if held is None:
            return
        if phone in held[PHONE]:
            self.run("DELETE FROM usr_phone WHERE idu = :k AND phoneno = :p", k=idu, p=phone)
        else:
            self.run("INSERT INTO usr_phone VALUES (:k, :p)", k=idu, p=phone)
        held[PHONE] = held[PHONE] ^ {phone}

    @rule(shop=shops, number=numbers, note=values)
    def put_item(self, shop: str, number: int, note: str | None) -> None:
        place = ("item", written_key("item", {"shop": shop, "number": number}))
        sql = "UPDATE item SET note = :v WHERE shop = :s AND number = :n"
        if place not in self.model:
            sql = "INSERT INTO item (shop, number, note) VALUES (:s, :n, :v)"
        self.run(sql, s=shop, n=number, v=note)
        tags = self.model.get(place, {}).get(TAG, set())
        self.model[place] = {"note": _one(note), TAG: tags}

    @rule(shop=shops, number=numbers, other=shops)
    def move_item(self, shop: str, number: int, other: str) -> None:
        old, new = (("item", written_key("item", {"shop": name, "number": number})) for name in (shop, other))
        if old in self.model and new not in self.model and not self.model[old][TAG]:
            self.run("UPDATE item SET shop = :o WHERE shop = :s AND number = :n", o=other, s=shop, n=number)
            self.model[new] = self.model.pop(old)

    @rule(shop=shops, number=numbers, tag=st.sampled_from(["new", "", "<&>", " "]))
    def toggle_tag(self, shop: str, number: int, tag: str) -> None:
        held = self.model.get(("item", written_key("item", {"shop": shop, "number": number})))
        if held is None:
            return
        sql = "INSERT INTO item_tag VALUES (:s, :n, :t)"
        if tag in held[TAG]:
            sql = "DELETE FROM item_tag WHERE shop = :s AND number = :n AND tag = :t"
        self.run(sql, s=shop, n=number, t=tag)
        held[TAG] = held[TAG] ^ {tag}

    @rule()
    def empty_items(self) -> None:
        self.run("DELETE FROM item")
        self.model = {place: held for place, held in self.model.items() if place[0] != "item"}

    @precondition(lambda self: hasattr(self, "publisher"))
    @rule()
    def publish(self) -> None:
        self.publisher.run_once()

    def teardown(self) -> None:
        try:
            if hasattr(self, "publisher"):
                self.release()
                for _ in self.publisher.rounds(until_empty=True):
                    pass
                self.publisher.close()
                self.compare()
        finally:
            self.engine.dispose()
            shutil.rmtree(self.folder)

    def compare(self) -> None:
        files = sorted((self.folder / "out").glob("*.xml"))
        told, events = replay_values(path.read_bytes() for path in files)
        expected = {place: {name: held for name, held in row.items() if held} for place, row in self.model.items()}
        assert told == {place: row for place, row in expected.items() if row}
        account_for_log(self.engine, events)
        Histories.equal += 1


def _one(value: str | None) -> set[str]:
    return set() if value is None else {value}


def sqlite_in(folder: Path) -> Engine:
    return create_engine(f"sqlite:///{folder / 'app.db'}")


def at(url: Any) -> Callable[[Path], Engine]:
    """Makes engines on one database, which each history empties."""
    return lambda _: create_engine(url)


def attempts(examples: int, steps: int) -> settings:
    """Settings of a run, whatever profile is chosen."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def replayed(make: Any, examples: int) -> int:
    """Runs histories on databases that `make` makes; says how many ended with what the tables hold."""
    Histories.equal = 0
    machine = type("MadeHistories", (Histories,), {"make": staticmethod(make)})
    run_state_machine_as_test(machine, settings=attempts(examples, 15))
    return Histories.equal


def test_documents_say_what_the_tables_hold_on_sqlite() -> None:
    assert replayed(sqlite_in, scaled(12)) > 0


def test_documents_say_what_the_tables_hold_on_postgresql(postgresql: Engine) -> None:
    assert replayed(at(postgresql.url), scaled(4)) > 0


@pytest.mark.in_turn
@pytest.mark.parametrize("history", sorted(HISTORIES.glob("*.jsonl")), ids=lambda path: path.stem)
@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_kept_history_is_told_right(request: pytest.FixtureRequest, database: str, history: Path) -> None:
    make = sqlite_in if database == "sqlite" else at(request.getfixturevalue("postgresql").url)
    machine = type("Kept", (Histories,), {"make": staticmethod(make)})
    lines = history.read_text(encoding="utf-8").splitlines()
    options = list(product(Style, (False, True) if database == "sqlite" else (False,)))
    Histories.equal = 0
    for style, coalesce in options:
        one = machine()
        one.begin(style=style.value, limit=1000, size=2, coalesce=coalesce)
        for line in lines:
            step = json.loads(line)
            getattr(one, step.pop("do"))(**step)
        one.teardown()
    assert Histories.equal == len(options)


def test_the_comparison_notices_what_is_missing() -> None:
    machine = type("Untracked", (Histories,), {"make": staticmethod(sqlite_in)})
    one = machine()
    one.begin(style="field", limit=1000, size=1)
    one.put_user(idu=1, fname="Ida", lname=None)
    one.run("DELETE FROM event_log")
    with pytest.raises(AssertionError):
        one.teardown()
