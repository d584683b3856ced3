"""Plans in an object store, which has no rename: what is hidden lies apart, and one object says which of it counts.

    .eventlog/hidden/<maker>/<number>   a hidden object
    .eventlog/parts/<name>              an object that is being uploaded in parts
    .eventlog/position.json             whose the place is, and which plan is shown with which objects

Law: the position is only put over the state in which it was read. So it is put by its owner alone, each of its states
follows from the one before, and putting it is the commit of a plan: what is hidden of it is copied to its names after
that, by whoever is there. Of a plan without it nothing is there.

Law: who takes the place over, or does not know what became of a commit, first puts the position anew. From then on no
request of a former owner, nor one of our own that is still on its way, can commit; then what was hidden is removed, and
a copy of it finds nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, DataError, SinkError
from eventlog.core.seams import Tenure
from eventlog.sinks.ownership import Owner, make_replaced_error, take_over
from eventlog.sinks.store.objects import OURS, PARTS, Bucket, Tag

POSITION: Final = f"{OURS}position.json"
HIDDEN: Final = f"{OURS}hidden/"
TAKEOVER_TRIES: Final = 5
"""How often the position may change while it is taken over."""


class Position(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far the place is. `turn` makes each state different from all others; `holder` is the process that put it.

    `files` of the `plan` were hidden by `maker`; so many of the last come `apart`. What is to be `gone`
    goes before they come, the first of it alone. `last` is the greatest id.
    """

    owner: Owner = Owner()
    holder: str = ""
    turn: str = ""
    plan: str = ""
    maker: str = ""
    files: tuple[str, ...] = ()
    apart: int = 0
    gone: tuple[str, ...] = ()
    last: str = ""


class HiddenObjects(Struct, frozen=True, kw_only=True):
    """The objects of one try to prepare a plan, in the order in which they get their names."""

    plan: str
    maker: str
    files: tuple[str, ...]
    objects: Bucket

    @property
    def names(self) -> list[str]:
        return _name_hidden(self.maker, len(self.files))

    def discard(self) -> None:
        try:
            self.objects.remove(self.names)
        except SinkError:
            return  # nobody sees them, and the next who settles removes them


class StoredPlans:
    """The objects below an address, with an owner, and the plans that are shown there.

    Those of a plan get their names one after the other where they are `ordered`, else many at a time.
    """

    folder = PurePosixPath()

    def __init__(self, objects: Bucket, *, ordered: bool = False) -> None:
        self.plan = ""
        self._objects = objects
        self._ordered = ordered
        self._holder = secrets.token_hex(8)
        self._position = Position()
        self._tag: Tag | None = None

    def take_over(self, tenure: Tenure | None) -> None:
        """Makes the place ours, and settles what its former owner left."""
        position = f"{self._objects.address}/{POSITION}"
        way_out = f"Give it a prefix of its own; or delete {position} if that log is gone."

        def ours(position: Position) -> Position:
            owner = position.owner
            # Where nobody has a tenure, the place stays nobody's.
            if tenure is not None or owner.log:
                owner = take_over(owner, tenure, self._objects.address, way_out)
            return replace(position, owner=owner, holder=self._holder)

        self._put_anew(ours)
        former = self._tag
        self.finish_former()
        # A trial: over a former state the store must refuse.
        content = msgspec.json.encode(self._position)
        if self._objects.put_over(POSITION, content, former) is not None:
            problem = "does not put objects over a known state of them (If-Match)"
            raise ConfigError(
                f"The store behind {self._objects.address} {problem}.",
                hint="Take one that does: without it two publishers could write there.",
            )

    def finish_former(self) -> None:
        """Shows the rest of the plan that was begun, and removes what is hidden of others."""
        ours = list(self._objects.names(OURS))
        hidden = {name for name in ours if name.startswith(HIDDEN)}
        uploads = [name for name in ours if name.startswith(PARTS)]
        # So all that was found is of former owners, and nothing of a later one.
        self._put_anew(self._still_ours)
        # Of a former owner that is still at work the upload fails: it has lost the place.
        self._objects.abort_uploads(uploads)
        self._copy(self._position)
        self._note_replaced()
        # Named as well as listed: a store may list late.
        begun = _name_hidden(self._position.maker, len(self._position.files))
        self._objects.remove(sorted(hidden.union(begun)))
        self.plan = self._position.plan

    def make(self, folder: PurePosixPath) -> None:
        """Do nothing: objects need no folders."""

    def hide(self, plan: str, files: Sequence[tuple[PurePosixPath, bytes | Path]]) -> HiddenObjects:
        """Writes objects apart from those that are looked at."""
        maker = secrets.token_hex(8)
        names = tuple(str(name) for name, _ in files)
        hidden = HiddenObjects(plan=plan, maker=maker, files=names, objects=self._objects)
        contents = [content for _, content in files]
        try:
            pairs = zip(hidden.names, contents, strict=True)
            self._objects.each(lambda pair: self._objects.put(*pair), pairs)
        except BaseException:
            hidden.discard()
            raise
        return hidden

    def show(
        self,
        hidden: HiddenObjects,
        *,
        apart: int = 0,
        last: str = "",
        gone: tuple[str, ...] = (),
    ) -> None:
        """Commits objects if the place is still ours, and gives them their names; others are `gone`
        by then.

        Where nobody knows whether they were committed they stay hidden: who settles shows or
        removes them.
        """
        position = replace(self._position, maker=hidden.maker, files=hidden.files, apart=apart, gone=gone)
        if hidden.plan:
            last = max(position.last, last)
            turn = secrets.token_hex(8)
            self._commit(replace(position, plan=hidden.plan, turn=turn, last=last), hidden)
        else:
            try:
                self._confirm()
            except BaseException:
                hidden.discard()
                raise
        if not self._copy(position):
            # A later owner has removed them, or somebody who has no business there.
            self._confirm()
            hint = "Restore them from former versions, or begin with an empty prefix."
            raise DataError(f"Hidden objects of {self._objects.address} were removed by somebody else.", hint=hint)
        self._note_replaced()
        self._objects.remove(hidden.names)
        self.plan = hidden.plan or self.plan

    def read(self, path: PurePosixPath) -> bytes | None:
        """Read an object; None if there is none."""
        there = self._objects.read(str(path))
        return None if there is None else there.content

    def last(self, ids: Callable[[Iterable[PurePath]], Iterator[str]]) -> str:
        """Return the greatest id, from the position: listing a million objects takes minutes."""
        return self._position.last

    def forget(self) -> None:
        """Removes what says whose the place is and how far: for who comes once and is done."""
        self._objects.remove([POSITION])

    def _commit(self, position: Position, hidden: HiddenObjects) -> None:
        """Puts the position over the one that we know."""
        content = msgspec.json.encode(position)
        tag = self._objects.put_over(POSITION, content, self._tag)
        if tag is None:
            there = self._objects.read(POSITION)
            # Where ours stands there, it was put, and the answer was lost.
            if there is None or there.content != content:
                latest = self._read(there.content) if there else Position()
                # A later owner shows ours, where it was put before that one came.
                if latest.maker != hidden.maker:
                    hidden.discard()
                self._still_ours(latest)
                message = f"{self._objects.address} is in another state than was known."
                raise SinkError(message, hint="It is tried again.", may_pass=True)
            tag = there.tag
        self._position, self._tag = position, tag

    def _put_anew(self, ours: Callable[[Position], Position]) -> None:
        """Puts the position in a state of its own, so that whatever is on its way over a former one
        is refused.
        """
        for _ in range(TAKEOVER_TRIES):
            there = self._objects.read(POSITION)
            former = self._read(there.content) if there else Position()
            position = replace(ours(former), turn=secrets.token_hex(8))
            content = msgspec.json.encode(position)
            tag = self._objects.put_over(POSITION, content, there.tag if there else None)
            if tag is not None:
                self._position, self._tag = position, tag
                return
        problem = f"{self._objects.address} is being taken over by others."
        raise SinkError(problem, hint="It is tried again.", may_pass=True)

    def _still_ours(self, position: Position) -> Position:
        if position.holder != self._holder:
            raise make_replaced_error(self._objects.address)
        return position

    def _confirm(self) -> None:
        """Raise OccupiedError if another publisher has taken the place over."""
        there = self._objects.read(POSITION)
        self._still_ours(self._read(there.content) if there else Position())

    def _copy(self, position: Position) -> bool:
        """Copies what is hidden to its names; False where something of it was not there, for it was
        copied before.
        """
        if position.gone:
            self._confirm()  # what a later owner has shown since is not ours to take away
            # The first by itself: while it is there, the whole counts as there.
            self._objects.remove(position.gone[:1])
            self._objects.remove(position.gone[1:])
        hidden = _name_hidden(position.maker, len(position.files))
        pairs = list(zip(hidden, position.files, strict=True))
        copied: list[bool] = []
        if self._ordered:
            # In a list, for each of them is to be copied, also behind one that was there no more.
            copied = [self._objects.copy(*pair) for pair in pairs]
            return all(copied)
        cut = len(pairs) - position.apart
        for group in (pairs[:cut], pairs[cut:]):  # the last come once the others are there
            copied += self._objects.each(lambda pair: self._objects.copy(*pair), group)
        return all(copied)

    def _note_replaced(self) -> None:
        """Notes that what was to be gone is gone, while all is still hidden that comes in its
        place.
        """
        if self._position.gone:
            self._put_anew(lambda position: replace(self._still_ours(position), gone=()))

    def _read(self, content: bytes) -> Position:
        try:
            return msgspec.json.decode(content, type=Position)
        except msgspec.DecodeError as error:
            address = f"{self._objects.address}/{POSITION}"
            hint = "It says whose the place is and how far; restore it from a former version."
            raise DataError(f"{address} cannot be read: {error}.", hint=hint) from None


def _name_hidden(maker: str, count: int) -> list[str]:
    return [f"{HIDDEN}{maker}/{number:06d}" for number in range(count)]
