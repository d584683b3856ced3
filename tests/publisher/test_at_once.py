"""One statement enters a plain plan, or its end, as the transaction does; or it does nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Engine, text

from eventlog.care.journal import hold
from eventlog.core.associations import Associations
from eventlog.core.errors import OccupiedError
from eventlog.core.model import Document, Outcome
from eventlog.core.rules import Options, Round
from eventlog.core.seams import Resolved, SinkCapabilities
from eventlog.delivery.answers import Strictness
from eventlog.delivery.output import Output
from eventlog.publisher.associated import KeptAssociations
from eventlog.publisher.consumer import Consumer
from eventlog.publisher.decide import Decider
from eventlog.publisher.journal import Journal
from eventlog.publisher.plans import FinishedRows, TakePlan
from eventlog.publisher.turn_report import ConsumerSettings
from eventlog.sources.marks import WRITTEN, Marks
from eventlog.sql.history import history_stamp
from eventlog.xds.write import XdsFormat
from tests.publisher.scene import Scene, ToldReceiver

TOKEN = re.compile(r"-[0-9a-f]{8}(?=[-=])")
TABLES = ("event_log_output", "event_log_planned", "event_log_outcome", "event_log_answer", "event_log_parked")

enter = Journal._enter_at_once


def standing(scene: Scene) -> list[list[tuple[Any, ...]]]:
    """Read the journal, without values publishers draw by chance, and the statuses of the rows."""
    found = [scene.ask(f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]
    found.append(scene.ask("SELECT record_id, status FROM event_log ORDER BY 1"))
    plain = [
        [tuple(TOKEN.sub("-", one) if isinstance(one, str) else one for one in row) for row in rows] for rows in found
    ]
    return [sorted(rows, key=str) for rows in plain]


class Watched(ToldReceiver):
    """Says what the journal holds each time that it is given something, and each time that it is asked."""

    def __init__(self, scene: Scene) -> None:
        super().__init__(askable=True)
        self._scene = scene
        self.seen: list[list[list[tuple[Any, ...]]]] = []
        self.asked: list[tuple[int, list[int]]] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.seen.append(standing(self._scene))
        answers = super().commit(plan, documents)
        self.meanwhile()
        return answers

    def resolve(self, plan: str) -> Resolved:
        planned = len(self._scene.ask("SELECT 1 FROM event_log_planned"))
        self.asked.append((planned, self._scene.waiting()))
        return super().resolve(plan)


class Alone(Scene):
    """A log with one output, which can be asked what it has; a change was published already."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine, askable=True)
        self.receiver = Watched(self)
        self.journal.serve([("one", ())])
        settings = ConsumerSettings(limit=5, strictness=Strictness(on_retry="object"))
        sink: Any = self.receiver
        output = Output(format=XdsFormat(), sink=sink, name="one")
        self.decider = Decider(Round(options=Options()))
        self.consumers["one"] = Consumer(self.journal, output, self.decider, settings)
        self.write(1, 1)
        self.publish()


def publish_some(scene: Alone, how_many: int) -> list[list[list[tuple[Any, ...]]]]:
    """Publish changes one by one; return the journal at each."""
    for number in range(2, how_many + 2):
        scene.write(number, number)
        scene.publish()
    return [*scene.receiver.seen, standing(scene)]


def test_the_journal_holds_the_same_either_way(postgresql: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []

    def note(journal: Journal, query: str, values: dict[str, Any]) -> bool:
        entered.extend([query] if (is_done := enter(journal, query, values)) else [])
        return is_done

    monkeypatch.setattr(Journal, "_enter_at_once", note)
    by_statements = publish_some(Alone(postgresql), 12)
    assert entered == ["plan_at_once", "done_at_once"] * 13
    monkeypatch.setattr(Journal, "_enter_at_once", lambda *_: False)
    with postgresql.begin() as connection:
        for (table,) in connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).all():
            connection.execute(text(f'DROP TABLE IF EXISTS "{table}" CASCADE'))
    by_transactions = publish_some(Alone(postgresql), 12)
    assert len(by_statements) == 14
    assert by_statements == by_transactions
    [output] = by_statements[-1][0]
    assert any("=" in str(value) for value in output), "the rows of the last plans are kept"


def restore_log(scene: Alone) -> None:
    """Put another database in the place of the log: another publisher wrote to it last."""
    with scene.log.transaction() as connection:
        Marks(scene.log).set(connection, WRITTEN, "0123456789abcdef")


def doubt(scene: Alone) -> None:
    """Somebody had a doubt, and another one has read the journal since."""
    scene.journal.doubt()
    scene.journal.output("one")


@pytest.mark.parametrize("meanwhile", [restore_log, doubt])
def test_nothing_is_done_at_once_after_a_doubt(postgresql: Engine, meanwhile: Callable[[Alone], None]) -> None:
    scene = Alone(postgresql)
    scene.receiver.asked.clear()
    scene.receiver.meanwhile = lambda: meanwhile(scene)
    scene.write(2, 2)
    scene.publish()
    assert scene.receiver.asked[0] == (1, [2]), "the target is asked first"
    assert scene.receiver.came == [1, 2]
    assert (scene.waiting(), scene.left()) == ([], {})


def hold_the_row(scene: Alone) -> None:
    with scene.log.transaction() as connection:
        hold(connection, scene.log, [(2, 2)], "by a test")


@pytest.mark.parametrize("meanwhile", [restore_log, hold_the_row], ids=["restored", "held"])
def test_nothing_is_planned_at_once_by_what_was_read_before(
    postgresql: Engine, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Alone], None]
) -> None:
    scene = Alone(postgresql)
    plan, seen = Journal.plan, list[int]()

    def plan_late(journal: Journal, name: str, made: TakePlan) -> FinishedRows:
        if not seen:
            seen.append(1)
            meanwhile(scene)
            try:
                return plan(journal, name, made)
            finally:
                seen.append(len(scene.ask("SELECT 1 FROM event_log_planned")))
        return plan(journal, name, made)

    scene.write(2, 2)
    monkeypatch.setattr(Journal, "plan", plan_late)
    scene.publish()
    assert seen == [1, 0]
    assert scene.receiver.came == ([1] if meanwhile is hold_the_row else [1, 2])


def test_nothing_is_planned_at_once_by_tables_as_they_were(postgresql: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    scene, plan = Alone(postgresql), Journal.plan
    scene.decider.stamp = history_stamp(postgresql, scene.log.names)
    assert scene.decider.stamp is not None
    scene.write(2, 2)
    scene.publish()
    assert scene.receiver.came == [1, 2]

    def plan_late(journal: Journal, name: str, made: TakePlan) -> FinishedRows:
        scene.table.run(
            "INSERT INTO event_log_schema (table_name, table_version, seen_at, changed, definition)"
            " VALUES ('public.usr', 1, '2026-03-23T10:57:19+00:00', '{}', '{}')"
        )
        return plan(journal, name, made)

    monkeypatch.setattr(Journal, "plan", plan_late)
    scene.write(3, 3)
    assert scene.lock.tenure is not None
    assert scene.consumers["one"].turn(scene.lock.tenure).stale is not None
    assert (scene.receiver.came, scene.waiting(), scene.left()) == ([1, 2], [3], {})


def test_what_a_receiver_calls_an_object_is_entered_with_the_answer(postgresql: Engine) -> None:
    scene, names = Alone(postgresql), Associations()
    scene.receiver.capabilities = SinkCapabilities(resolves=True, associations=names)
    names.serve(KeptAssociations(scene.log, "one"))
    scene.receiver.meanwhile = lambda: names.keep("usr/idu=2", "4711")
    scene.write(2, 2)
    scene.publish()
    assert scene.ask("SELECT object, association FROM event_log_association") == [("usr/idu=2", "4711")]
    assert (scene.waiting(), scene.left()) == ([], {})


def test_who_has_lost_the_lock_enters_nothing_at_once(postgresql: Engine) -> None:
    scene = Alone(postgresql)
    scene.receiver.meanwhile = lambda: scene.table.run(
        "UPDATE event_log_mark SET value = '2099-01-01T00:00:00.000 another' WHERE name = 'publisher'"
    )
    scene.write(2, 2)
    with pytest.raises(OccupiedError):
        scene.publish()
    assert (scene.waiting(), scene.left()) == ([2], {"planned": 1})
