"""Operators at any moment: what people do to rows and outputs, by the functions that commands call,
and by plain SQL.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from sqlalchemy import text

from eventlog.admin.purge import Purge, purge
from eventlog.admin.rows import EVERYTHING, PROCESSED, Choice
from eventlog.core.errors import UsageError
from tests.histories.book import Row

if TYPE_CHECKING:
    from tests.histories.world import World

FOREIGN: Final = "X"
"""The letter that others write."""


class Operators:
    """They act between two turns; what they were told is held against what the book knows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._acts: dict[str, Callable[[], None]] = {
            "holds": self._hold_or_release,
            "deletes": self._delete,
            "letters": self._letter,
            "setbacks": self._set_back,
            "pauses": self._pause_or_resume,
            "skips": self._skip,
            "additions": self._add,
            "removals": self._remove,
            "renames": self._rename,
            "purges": self._purge,
            "restarts": self._world.ask_for_restart,
            "numbers_again": self._numbers_again,
        }

    def act(self) -> None:
        """Whatever happens in this turn."""
        for name, work in self._acts.items():
            if self._world.rng.random() < getattr(self._world.accidents, name):
                work()

    def calm(self) -> None:
        """Takes back what keeps rows waiting."""
        world = self._world
        world.heart.rows.release(world.log, [EVERYTHING])
        for row in world.book.rows.values():
            row.held = None
        for target in world.configured.values():
            for name in target.called:  # it may be kept under a former name still
                world.heart.outputs.resume(world.log, world.config.publisher, name, target.called)

    def _some_row(self, letters: str) -> tuple[int, Row, str] | None:
        """A row that has one of these letters, one of the last as a rule."""
        world = self._world
        found = [(record, letter) for record, letter in world.book.letters().items() if letter in letters]
        if not found:
            return None
        record, letter = world.rng.choice(found[-12:])
        return record, world.book.rows[world.book.live[record]], letter

    def _hold_or_release(self) -> None:
        world = self._world
        held = [row.record for row in world.book.rows.values() if row.held is not None]
        if held and world.rng.random() < 0.5:
            self.release(world.rng.choice(held))
            return
        found = self._some_row("N")
        if found is None:
            return
        record, row, _ = found
        self.hold(record, row)

    def hold(self, record: int, row: Row) -> None:
        world = self._world
        away = world.heart.on_its_way(world.log)
        if world.heart.rows.hold(world.log, [(record, record)], by="an operator"):
            world.tell(f"an operator holds {record} (row {row.uid}, {row.object})")
            row.held = away if row.held is None else row.held

    def release(self, record: int) -> None:
        world = self._world
        world.tell(f"an operator releases {record}")
        world.heart.rows.release(world.log, [(record, record)])
        world.book.rows[world.book.live[record]].held = None

    def _delete(self) -> None:
        if (found := self._some_row("N")) is not None:
            self.delete(found[0], found[1])

    def delete(self, record: int, row: Row) -> None:
        row.barred = self._world.heart.on_its_way(self._world.log)
        self._sql("DELETE FROM event_log WHERE record_id = :record", record)
        row.gone, row.held = True, None
        del self._world.book.live[record]

    def _letter(self) -> None:
        if (found := self._some_row("N")) is not None:
            record, row, _ = found
            row.barred = self._world.heart.on_its_way(self._world.log)
            self._sql(f"UPDATE event_log SET status = '{FOREIGN}' WHERE record_id = :record", record)
            row.foreign, row.held = True, None

    def _set_back(self) -> None:
        world = self._world
        if (found := self._some_row("SWEX")) is None:
            return
        record, row, letter = found
        if row.keyless:
            return
        if letter == FOREIGN or world.rng.random() < 0.3:
            self._sql("UPDATE event_log SET status = 'N' WHERE record_id = :record", record)
        else:
            world.tell(f"an operator requeues {record} (row {row.uid})")
            world.heart.rows.requeue(world.log, [(record, record)], Choice(letters=PROCESSED))
        row.setbacks += 1
        row.barred = row.held = None
        row.foreign = False
        if letter == FOREIGN:
            row.odd = True
        else:
            row.came_before.append({name: world.count(target, row.uid) for name, target in world.configured.items()})

    def _sql(self, statement: str, record: int) -> None:
        self._world.tell(f"somebody says {statement.replace(':record', str(record))}")
        with self._world.engine.begin() as connection:
            connection.execute(text(statement), {"record": record})

    def _pause_or_resume(self) -> None:
        world = self._world
        name = world.rng.choice(world.names)
        if world.rng.random() < 0.5:
            try:
                new = world.heart.outputs.pause(world.log, name, world.names, by="an operator")
            except UsageError:
                return  # it has a new name, with which nobody has published yet
            world.tell(f"an operator pauses {name}: {new}")
        else:
            new = world.heart.outputs.resume(world.log, world.config.publisher, name, world.names)
            world.tell(f"an operator resumes {name}: {new}")

    def _skip(self) -> None:
        world = self._world
        name = world.rng.choice(world.names)
        try:
            kept = world.heart.outputs.kept_for(world.log, name)
        except UsageError:
            return  # it does not lag
        world.tell(f"an operator gives up for {name}: {kept.text()}")
        world.heart.outputs.skip(world.log, name, None, by="an operator")
        world.excuse(world.target_called(name), kept)

    def _add(self) -> None:
        if len(self._world.targets) < 8:
            self._world.add_target()
            self._world.ask_for_restart()

    def _remove(self) -> None:
        world = self._world
        if len(world.configured) > 1:
            name = world.rng.choice(sorted(world.configured))
            world.remove_target(name)

    def _rename(self) -> None:
        world = self._world
        target = world.configured[world.rng.choice(sorted(world.configured))]
        target.called.append(f"{target.name} {len(target.called)}")
        world.tell(f"{target.called[-2]} is called {target.called[-1]} from now on")
        world.ask_for_restart()

    def _purge(self) -> None:
        world = self._world
        letters = world.book.letters()
        for _ in purge(world.log, Purge(letters=PROCESSED, age=0)):
            pass
        gone = sorted(set(letters) - set(world.book.letters()))
        world.tell(f"an operator purges {gone}")
        for record in gone:
            row = world.book.rows[world.book.live.pop(record)]
            row.letter, row.held = letters[record], None

    def _numbers_again(self) -> None:
        world = self._world
        if world.book.open or world.frozen or world.book.waiting() or FOREIGN in world.book.letters().values():
            return
        if any(world.heart.on_its_way(world.log).values()):
            return
        self._purge()
        if not world.book.letters():
            world.tell("numbers begin again")
            world.book.forget_numbers()
