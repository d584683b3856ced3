"""Targets of histories, as models: what outlives a publisher, what it may refuse, and what nobody can ask it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.associations import Associations
from eventlog.core.errors import OccupiedError, SinkError
from eventlog.core.model import Change, Count, CutTransaction, Document, Outcome, Reason, Refusal, Status
from eventlog.core.seams import Resolved, SinkCapabilities, Tenure
from tests.publisher.actors import READ
from tests.publisher.answering import LateModel


class Surroundings(Protocol):
    """What a target has to do with the rest of a history."""

    rng: Random
    more: Random
    now: int
    quiet: bool
    stubborn: float
    """How likely a receiver wants a document again."""
    unreadable: float
    """How likely nobody can read what it answers."""
    refused: float
    """How likely a database or a bus refuses a document."""
    odd: float
    """How likely a receiver takes a document, and warns of its last change."""
    undoing: float
    """How likely a receiver has undone a document that comes again, and wants it once more."""
    later: Random
    """Draws what receivers say later."""
    answers_later: bool
    """Whether receivers first accept, and say later what became of it."""
    mute: frozenset[str]
    """Objects of which nobody can read an answer yet."""
    stopped_at: dict[str, int]
    """When each output was last told that something comes again."""
    calls_objects: bool
    """Whether receivers call objects by names of their own, which the log keeps."""

    def point(self, what: str) -> None:
        """Pass a point of a publisher; it may die here, or something may go wrong."""

    def arrived(self, target: Target, uid: int, record: int, plan: str) -> None:
        """Note a row's arrival at a target."""

    def sending(self, name: str, records: Sequence[int]) -> None:
        """Note rows on their way to a receiver."""


class Taken(Struct, frozen=True):
    """What arrived at a target: one row, in the change of a document with other rows."""

    uid: int
    record: int
    object: str
    plan: str
    status: str
    place: int
    """Which change of its transaction it is of, from 1 on."""
    last: bool
    beside: tuple[int, ...]
    """The rows of that change."""
    read: int
    """How many readings there were when its object was read back."""
    collection: str = ""
    tables: Mapping[str, int] = {}
    """How many changes of each table its transaction had with it, where that is counted."""


class Target:
    """What outlives a publisher."""

    def __init__(self, world: Surroundings, name: str) -> None:
        self.world, self.name, self.epoch = world, name, 0
        self.came: list[Taken] = []
        self.last = ""
        self.hidden: dict[tuple[str, str], Document] = {}
        self.manifest: dict[str, list[str]] = {}
        self.begun = ""
        """The plan of which a document was shown last: who is replaced while it prepares one has shown nothing of it."""
        self.answers: dict[str, list[Outcome]] = {}
        self.known: dict[tuple[str, str], list[Outcome]] = {}
        self.repeats: Counter[int] = Counter()
        """How often rows are to come again that were taken, because one before them of the same object was not."""
        self.not_taken: Counter[int] = Counter()
        """How often the target said of rows that they are to come again."""
        self.undone: dict[int, int] = {}
        """How many rows had come when the target undid one: those it has kept though it wants that one again."""
        self.is_busy = False
        """Whether it has a part of a plan, of which it does not know that yet."""
        self.is_cut_off = False
        """Whether the connections of those who are there break off at their next step."""
        self.seen = 0
        """How many rows of a database have come."""
        self.later: dict[tuple[str, str], Status] = {}
        """What it has said later of what it had accepted."""
        self.denied: set[int] = set()
        """Rows of which it has said later that they did not go well."""
        self.names: dict[str, str] = {}
        """What it calls the objects that it has."""

    def take(self, document: Document, plan: str, said: Iterable[Outcome] = ()) -> None:
        statuses = {outcome.position: outcome.status.value for outcome in said}
        waiting = set[str]()
        for positions, object_name, uids, place, last, read, *by_table in json.loads(document.body):
            status = statuses.get(tuple(positions[0]), "S")
            if status == "N":
                waiting.add(object_name)
                self.again(uids)
                continue
            for (record, *_), uid in zip(positions, uids, strict=True):
                self.repeats[uid] += object_name in waiting
                self.world.arrived(self, uid, record, plan)
                taken = Taken(uid, record, object_name, plan, status, place, last, tuple(uids), read, *by_table)
                self.came.append(taken)
            if status in "SW":
                self.call(object_name, uids[-1])

    def call(self, object_name: str, uid: int) -> None:
        """Give an object a name where it has none; each seventh row is its end."""
        if uid % 7 == 0:
            self.names.pop(object_name, None)
        else:
            self.names.setdefault(object_name, f"{self.name} {uid}")

    def again(self, uids: Iterable[int]) -> None:
        """Note rows to come again."""
        self.not_taken.update(uids)


class ModelSink:
    """A target that can be asked, and can be taken over."""

    capabilities = SinkCapabilities(resolves=True)

    def __init__(self, target: Target, world: Surroundings) -> None:
        self.target, self.world, self.epoch, self.point = target, world, 0, world.point
        self.left = ""
        """The plan that it left at the target."""

    @classmethod
    def format(cls, name: str, mixed: bool, largest: int) -> ModelFormat:
        return ModelFormat(name, mixed, largest)

    def mine(self) -> None:
        if self.target.is_cut_off and not self.world.quiet:
            self.target.is_cut_off = False
            raise SinkError("The connection is lost.")
        if self.epoch < self.target.epoch:
            raise OccupiedError(f"{self.target.name} was taken over.")

    def intact(self) -> None:
        """Refuse a restored target: it has another plan than the one left there."""
        if self.target.last != self.left:
            raise SinkError("Another plan is there than the one that was left.")

    def open(self, tenure: Tenure) -> None:
        self.point("open")
        if tenure.epoch < self.target.epoch:
            raise OccupiedError(f"{self.target.name} was taken over.")
        self.epoch = self.target.epoch = tenure.epoch

    def last(self) -> str:
        return ""

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        self.point("prepare")

    def refusals(self, document: Document) -> list[Outcome]:
        if self.world.rng.random() >= self.world.refused:
            return []
        positions = [position for several in document.covers.values() for position in several]
        return [Outcome(position=one, status=Status.ERROR, reason=Reason.REFUSED, note="no") for one in positions]

    def close(self) -> None:
        pass


class ModelFiles(ModelSink):
    capabilities = SinkCapabilities(resolves=True, prepares=True)

    def prepare(self, plan: str, documents: Sequence[Document]) -> None:
        self.intact()
        for one in documents:
            self.point("hide")
            self.target.hidden[plan, one.id] = one
        self.point("manifest")
        self.target.manifest[plan] = [one.id for one in documents]
        self.point("hidden")

    def show(self, plan: str, ids: Sequence[str]) -> None:
        for identity in ids:
            self.point("rename")
            if (plan, identity) in self.target.hidden:
                self.mine()
                self.target.begun = plan
                self.target.take(self.target.hidden.pop((plan, identity)), plan)
            elif plan not in self.target.manifest:
                raise OccupiedError("hidden files are gone")
        self.point("name the plan")
        self.mine()
        self.target.last = plan
        self.point("named the plan")
        self.target.manifest.pop(plan, None)
        self.point("shown")

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.intact()
        self.target.is_busy = True
        self.show(plan, [one.id for one in documents])
        self.left, self.target.is_busy = plan, False
        return ()

    def resolve(self, plan: str) -> Resolved:
        self.mine()
        target = self.target
        for one, ids in [*target.manifest.items()]:
            # What was begun is shown to its end, also where the log has lost that plan.
            if target.last != one and one in (plan, target.begun):
                self.show(one, ids)
        target.manifest.clear()
        target.hidden.clear()
        self.left, target.is_busy = target.last, False
        return Resolved(last=target.last, documents=None if plan and target.last == plan else frozenset())


class ModelTable(ModelSink):
    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        self.point("table")
        self.mine()
        self.intact()
        refused = {one.id: self.refusals(one) for one in documents}
        for one in documents:
            self.target.take(one, plan, refused[one.id])
        self.target.last = self.left = plan
        self.target.answers = refused
        self.point("tabled")
        return [outcome for several in refused.values() for outcome in several]

    def resolve(self, plan: str) -> Resolved:
        self.mine()
        self.left, self.target.is_busy = self.target.last, False
        if not plan or self.target.last != plan:
            return Resolved(last=self.target.last)
        answers = tuple(outcome for several in self.target.answers.values() for outcome in several)
        return Resolved(last=plan, documents=frozenset(self.target.answers), answers=answers)


class ModelBus(ModelTable):
    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        whole = self.world.rng.random() < 0.5
        answers: list[Outcome] = []
        self.target.is_busy = True
        for number, one in enumerate(documents):
            if not whole or not number:
                self.point("part")
                self.mine()
            if self.target.last != plan:
                self.intact()
                self.target.last, self.target.answers = plan, {}
                self.left = plan
            refused = self.refusals(one)
            answers += refused
            self.target.take(one, plan, refused)
            self.target.answers[one.id] = refused
            if not whole or number == len(documents) - 1:
                self.point("parted")
        self.target.is_busy = False
        return answers


class ModelReceiver(ModelSink):
    capabilities = SinkCapabilities(resolves=False)

    def __init__(self, target: Target, world: Surroundings) -> None:
        super().__init__(target, world)
        self.late: LateModel | None = None
        if world.calls_objects:
            known = Associations()
            self.late = LateModel(target, world, known) if world.answers_later else None
            self.capabilities = SinkCapabilities(resolves=False, associations=known, late=self.late)

    def commit(self, plan: str, documents: Sequence[Document]) -> Sequence[Outcome]:
        return [outcome for one in documents for outcome in self.send(plan, one)]

    def send(self, plan: str, one: Document) -> Sequence[Outcome]:
        answer = self.answer(plan, one)
        if any(outcome.status is Status.NEW for outcome in answer):
            self.world.stopped_at[self.target.name] = self.world.now
        return answer

    def answer(self, plan: str, one: Document) -> Sequence[Outcome]:
        self.point("send")
        self.mine()
        world, positions = self.world, [position for several in one.covers.values() for position in several]
        world.sending(self.target.name, [position[0] for position in positions])
        if any(name in world.mute for _, name, *_ in json.loads(one.body)):
            return self.unread(one, fails=False)
        draw = 2.0 if world.quiet else world.rng.random()
        taken_from = 0.18 + world.odd
        answer = self.target.known.get((plan, one.id))
        if answer is not None and self.undoes(plan, one):
            answer = None
            draw = world.unreadable
        if answer is None:
            if draw < world.unreadable:
                return self.unread(one)
            draw -= world.unreadable
            answer = []
            if draw < world.stubborn:
                again = [Outcome(position=one, status=Status.NEW, reason=Reason.RETRY) for one in positions]
                which, changes = world.rng.random(), [*one.covers.values()]
                if len(changes) == 1 or which < 0.4:
                    self.target.take(one, plan, again)
                    self.point("answered")
                    return again
                wanted = changes[1:] if which < 0.7 else changes[:-1][-1:]
                answer = [outcome for outcome in again if any(outcome.position in several for several in wanted)]
            elif draw < 0.18:
                answer = [Outcome(position=one, status=Status.ERROR, reason=Reason.REFUSED) for one in positions]
            elif draw < taken_from:
                *_, last = one.covers.values()
                answer = [Outcome(position=one, status=Status.WARNING, note="odd") for one in last]
            self.target.take(one, plan, answer)
            self.target.known[plan, one.id] = answer
        self.point("answered")
        if taken_from <= draw < taken_from + world.unreadable:
            return self.unread(one, answer)
        self.learn_names(one, answer)
        if self.late is not None:
            self.late.accept(plan, one, answer)
        return answer

    def learn_names(self, document: Document, answer: Sequence[Outcome]) -> None:
        """Learn the receiver's names of a document's objects from an answer."""
        known = self.capabilities.associations
        waiting = {outcome.position for outcome in answer if outcome.status is Status.NEW}
        for positions, object_name, *_ in json.loads(document.body):
            if known is not None and tuple(positions[0]) not in waiting:
                known.keep(object_name, self.target.names.get(object_name))

    def undoes(self, plan: str, document: Document) -> bool:
        """Undo a document at random and return True, as if nothing was taken: no answer to it has been read."""
        world = self.world
        if world.quiet or not world.undoing or world.more.random() >= world.undoing:
            return False
        del self.target.known[plan, document.id]
        for _, _, uids, *_ in json.loads(document.body):
            self.target.repeats.update(uids)
            self.target.undone.update(dict.fromkeys(uids, len(self.target.came)))
        return True

    def unread(self, document: Document, answer: Sequence[Outcome] = (), fails: bool = True) -> Sequence[Outcome]:
        """Fail with an unreadable answer, or have all rows come again; those it asks for again are counted already."""
        if fails and self.world.rng.random() < 0.3:
            raise SinkError("Nobody can read the answer.")
        counted = {outcome.position for outcome in answer if outcome.status is Status.NEW}
        rows = json.loads(document.body)
        self.target.again(uid for found, _, uids, *_ in rows if tuple(found[0]) not in counted for uid in uids)
        positions = [position for several in document.covers.values() for position in several]
        return [Outcome(position=one, status=Status.NEW, reason=Reason.RETRY, unread=True) for one in positions]


class ModelPlain(ModelReceiver):
    def send(self, plan: str, one: Document) -> Sequence[Outcome]:
        self.point("write")
        self.target.take(one, plan)
        self.point("written")
        return ()


KINDS: dict[str, type[ModelSink]] = {
    "f": ModelFiles,
    "t": ModelTable,
    "b": ModelBus,
    "r": ModelReceiver,
    "p": ModelPlain,
}


ASKABLE: Final = "ftb"
"""The kinds of targets that can be asked what they have."""

BY_TABLE: Final = "fb"
"""The kinds of targets for which transactions are counted in each of their tables too."""


class WrittenRow(Struct, frozen=True):
    positions: tuple[tuple[int, ...], ...]
    object: str
    uids: tuple[int, ...]
    transaction: int | None
    read: int
    place: int = 0
    last: bool = True

    def counted(self, number: int, last: bool) -> WrittenRow:
        return replace(self, place=number, last=last)


class WrittenTableRow(WrittenRow, frozen=True):
    """A row whose transaction is counted in each of its tables."""

    collection: str = ""
    tables: Mapping[str, int] = {}

    def count_by_table(self, tables: Mapping[str, int], last: bool) -> WrittenTableRow:
        return replace(self, place=sum(tables.values()), tables=tables, last=last)


class ModelFormat:
    """Documents of a few changes, at most the `largest`, of one object or `mixed`, which say which rows they are; some rows are filtered.

    Those of some are counted by tables, of which there are two.
    """

    suffix, counts = ".json", True
    raises = False
    """Whether it fails with some changes that it would filter."""

    def __init__(self, name: str, mixed: bool = False, largest: int = 3) -> None:
        self.name, self.mixed, self.largest = name, mixed, largest

    def writer(self, _catalog: object) -> Any:
        by_table = self.name[0] in BY_TABLE

        def write(changes: Iterable[Change]) -> Iterator[WrittenRow | Refusal]:
            for change in changes:
                named = [str(edit.new).partition("/") for edit in change.edits]  # of which change, and which row
                uids = tuple(int(uid) for _, _, uid in named)
                if self.raises and named and is_unwritable(self.name, int(named[0][0])):
                    raise ValueError("Exceeds the limit (4300 digits) for integer string conversion")
                if named and change.who is not None and change.who.context != f"<{named[0][0]}>":
                    yield Refusal(positions=change.positions, note=f"somebody else's: {change.who}")
                elif not named:
                    yield Refusal(positions=change.positions, note="nothing")
                elif is_filtered(self.name, int(named[0][0])):
                    yield Refusal(positions=change.positions, note="filtered", filtered=True)
                else:
                    mark = None if change.transaction is None else change.transaction.mark
                    read: Any = (change.beside or {})[READ]
                    row = (change.positions, f"{change.row.table}/{change.row.key}", uids, mark, read)
                    yield WrittenTableRow(*row, collection=f"c{uids[0] % 2}") if by_table else WrittenRow(*row)

        return write

    def bind(self, written: Iterable[WrittenRow], _after: str = "", whole: bool = False) -> Iterator[Document]:
        group: list[WrittenRow] = []
        for one in written:
            fits = group and (self.mixed or group[-1].object == one.object) and len(group) < self.largest
            if group and not (fits and one.positions[0] > group[-1].positions[0]):
                yield _document(group)
                group = []
            group.append(one)
        if group:
            yield _document(group)

    def heartbeat(self) -> None:
        return None


def _document(group: Sequence[WrittenRow]) -> Document:
    changes = [(one.positions, one.object, one.uids, one.place, one.last, one.read, *_by_table(one)) for one in group]
    body = json.dumps(changes).encode()
    covers = {".".join(map(str, one.positions[0])): one.positions for one in group}
    parts = {one.transaction: CutTransaction(one.transaction, 0, 0, False) for one in group if one.transaction}
    for one in group:
        if one.transaction:
            before = parts[one.transaction].before or _count_before(one)
            parts[one.transaction] = CutTransaction(one.transaction, before, _count(one), one.last)
    number, *behind = group[-1].positions[-1]
    identity = ".".join([f"{number:06d}", *map(str, behind)])
    return Document(id=identity, body=body, covers=covers, cut=tuple(parts.values()))


def _by_table(one: WrittenRow) -> tuple[Any, ...]:
    return (one.collection, one.tables) if isinstance(one, WrittenTableRow) else ()


def _count(one: WrittenRow) -> Count:
    return one.tables if isinstance(one, WrittenTableRow) else one.place


def _count_before(one: WrittenRow) -> Count:
    if not isinstance(one, WrittenTableRow):
        return one.place - 1
    counts = {**one.tables, one.collection: one.tables.get(one.collection, 1) - 1}
    return {table: count for table, count in counts.items() if count}


def is_unwritable(name: str, uid: int) -> bool:
    """Return True for some filtered changes: a format raises an error for them."""
    return is_filtered(name, uid) and (uid + ord(name[0])) % 2 == 0


def is_filtered(name: str, uid: int) -> bool:
    """Return True for some changes, by their first row: single ones, and six neighbours at times, perhaps all the rest
    of a transaction.
    """
    return uid % 11 == 0 or (uid * 7 + ord(name[0])) % 9 == 0 or (uid // 6 + ord(name[0])) % 5 == 0
