"""The checker: holds what came out against the ledger and the log. It knows only their forms, and nothing of eventlog.

Versions are found again by the numbers of their rows in the log, which each format tells, and by what they say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import inf

from msgspec import Struct

from tests.hardening.ledger.book import Ledger, Op, Place, Version
from tests.publisher.laws import LOST, OUT_OF_ORDER, STILL_WAITS, Arrival, Due, find_overtaken, judge_status

FIELDS = "thing"
"""The table of which every field is logged, so that each version is told."""

READ_BACK = "stock"
"""The table whose rows are read back, so that the versions that are told only grow."""

IMAGES = "picture"
"""The table of which each change is logged as one row, with the row before and after it: each version is told."""

TRACKED = (FIELDS, READ_BACK, IMAGES)


class LogRow(Struct, frozen=True, kw_only=True):
    """A row of the event log, and why it ended as it did."""

    record: int
    letter: str
    kind: int
    place: Place
    column: str | None = None
    value: str | None = None
    reason: str = ""
    who: str = ""


class Seen(Struct, frozen=True, kw_only=True):
    """A change as a reader of the output finds it. `record` is the number of its last row in the log, `who` what it says of
    who is behind it, None where the output does not say that.
    """

    place: Place
    op: Op
    record: int
    number: int | None = None
    text: str | None = None
    where: str = ""
    who: str | None = None


class Shown(Struct, frozen=True, kw_only=True):
    """What a reader finds in one output, in the order that is promised there.

    `repeats` says that changes may come again after they came; `replaces` that a row which is published anew takes the
    place of what it was before. `answers` are the letters that a receiver gave rows. `may_lag` says that the others of its
    publisher may be ahead of it, or behind: then one may be told of a row that another's batch had superseded. One without
    `has_changes` has objects as they are now, and is judged by itself.
    """

    output: str
    seen: Sequence[Seen]
    repeats: bool = False
    replaces: bool = False
    answers: Mapping[int, str] = {}
    may_lag: bool = False
    has_changes: bool = True


class Finding(Struct, frozen=True, kw_only=True):
    """Something that must not be. Without a version it is about the run as a whole."""

    what: str
    output: str = ""
    place: Place | None = None
    version: int | None = None
    record: int | None = None
    letter: str = ""
    why: str = ""

    def __str__(self) -> str:
        told = [self.what]
        if self.output:
            told.append(f"in {self.output}")
        if self.place is not None:
            told.append(f"{self.place[0]} {self.place[1]} version {self.version} (row {self.record} {self.letter})")
        return ": ".join([" ".join(told), self.why] if self.why else [" ".join(told)])


class Entry(Struct, frozen=True, kw_only=True):
    """A version of the ledger with its rows in the log."""

    version: Version
    rows: Sequence[LogRow]

    @property
    def record(self) -> int:
        return self.rows[-1].record

    @property
    def statuses(self) -> str:
        return "".join(sorted({row.letter for row in self.rows}))

    def finding(self, what: str, why: str = "", output: str = "") -> Finding:
        return Finding(
            what=what,
            output=output,
            place=self.version.place,
            version=self.version.number,
            record=self.record,
            letter=self.statuses,
            why=why,
        )


def check(ledger: Ledger, log: Iterable[LogRow], shown: Sequence[Shown], again: Mapping[int, int]) -> list[Finding]:
    """Everything that is wrong. `again` says how often rows that were published were asked to be published anew."""
    entries, found = matched(ledger, log)
    answers: dict[int, str] = {}
    for output in shown:
        for record, letter in output.answers.items():
            answers[record] = max(letter, answers.get(record, ""), key="SWE".find)
    for place, mine in entries.items():
        found += [finding for entry in mine if (finding := _letter(place, entry, answers)) is not None]
    told = {one.record for output in shown if output.may_lag for one in output.seen}
    for output in shown:
        if not output.has_changes:
            continue
        found += _output(output, entries, again, told if output.may_lag else set())
    return found


def matched(ledger: Ledger, log: Iterable[LogRow]) -> tuple[dict[Place, list[Entry]], list[Finding]]:
    """The versions with their rows, and what was captured wrongly."""
    rows: dict[Place, list[LogRow]] = {}
    for row in sorted(log, key=lambda one: one.record):
        rows.setdefault(row.place, []).append(row)
    entries: dict[Place, list[Entry]] = {}
    found: list[Finding] = []
    for place, versions in ledger.objects().items():
        groups = _groups(rows.pop(place, []))
        entries[place] = [Entry(version=one, rows=group) for one, group in zip(versions, groups, strict=False)]
        found += [entry.finding("captured wrongly") for entry in entries[place] if not _captured(entry)]
        for missing in versions[len(groups) :]:
            found.append(Finding(what="not captured", place=place, version=missing.number))
        for group in groups[len(versions) :]:
            found.append(Finding(what="never committed, in the log", place=place, record=group[0].record))
    for place, others in rows.items():
        found.append(Finding(what="never committed, in the log", place=place, record=others[0].record))
    return entries, found


def _groups(rows: Sequence[LogRow]) -> list[list[LogRow]]:
    """An object's rows by change: a new one begins with another kind, or with a column that has come already."""
    groups: list[list[LogRow]] = []
    for row in rows:
        last = groups[-1] if groups else None
        if last is None or row.column is None or last[0].kind != row.kind or row.column in {one.column for one in last}:
            groups.append([row])
        else:
            last.append(row)
    return groups


def _captured(entry: Entry) -> bool:
    """Whether the rows say what the version is."""
    version = entry.version
    kinds = {row.kind for row in entry.rows}
    if {row.who for row in entry.rows} != {version.who}:
        return False
    if version.op == "D":
        return kinds == {4}
    if version.place[0] in (READ_BACK, IMAGES):
        return kinds == ({5} if version.op == "I" else {6})
    values = {row.column: row.value for row in entry.rows}
    return kinds == ({1} if version.op == "I" else {2}) and values == {
        "version": str(version.number),
        "note": version.text,
    }


def _letter(place: Place, entry: Entry, answers: Mapping[int, str]) -> Finding | None:
    """What is wrong with the letters of a version's rows."""
    expected = answers.get(entry.record, "S")
    if place[0] == READ_BACK and all(row.letter == "W" and row.reason == "vanished" for row in entry.rows):
        return None
    what = judge_status(entry.statuses, expected)
    why = "" if what in (None, STILL_WAITS) else f"{expected} was to be; {entry.rows[-1].reason}"
    return None if what is None else entry.finding(what, why)


def _output(
    shown: Shown, entries: Mapping[Place, list[Entry]], again: Mapping[int, int], elsewhere: AbstractSet[int]
) -> list[Finding]:
    by_place: dict[Place, list[Seen]] = {}
    for one in shown.seen:
        by_place.setdefault(one.place, []).append(one)
    found: list[Finding] = []
    for place, mine in entries.items():
        judged = _Object(shown, mine, by_place.pop(place, []), again, elsewhere)
        found += judged.read_back() if place[0] == READ_BACK else judged.fields()
    for place, strangers in by_place.items():
        found.append(_stranger(shown, strangers[0], place))
    return found


def _stranger(shown: Shown, seen: Seen, place: Place) -> Finding:
    return Finding(
        what="never committed",
        output=shown.output,
        place=place,
        version=seen.number,
        record=seen.record,
        why=f"{seen.op} at {seen.where}",
    )


class _Object:
    """An object in one output."""

    def __init__(
        self,
        shown: Shown,
        entries: Sequence[Entry],
        seen: Sequence[Seen],
        again: Mapping[int, int],
        elsewhere: AbstractSet[int] = frozenset(),
    ) -> None:
        self.shown = shown
        self.elsewhere = elsewhere
        self.entries = entries
        self.seen = seen
        self.again = again
        self.found: list[Finding] = []
        self.counts: Counter[int] = Counter()
        self.first: list[tuple[Seen, Entry]] = []
        """What came, each change where it came first."""
        self._meet()

    def fields(self) -> list[Finding]:
        """Each version is told, as it was."""
        for entry in self.entries:
            self._count(entry, must_come=not {*entry.statuses} & {*"NEF"})
        for seen, entry in self.first:
            version = entry.version
            if (seen.op, seen.number, seen.text) != self._as_told(version):
                self._find(entry, "wrong value", f"{seen.op} {seen.number} {seen.text!r} at {seen.where}")
        return self.found

    def read_back(self) -> list[Finding]:
        """Versions only grow, and the last one is there unless it was refused."""
        newest = number = 0
        for seen, entry in self.first:
            if seen.op == "D":  # a row before it may have been read back when the object was there again
                continue
            number = seen.number or 0
            if number < max(newest, entry.version.number):
                self._find(entry, OUT_OF_ORDER, f"version {number} after {newest} at {seen.where}")
            newest = max(newest, number)
        told = {entry.record for _, entry in self.first}
        last = max([*told, *[entry.record for entry in self.entries if entry.statuses == "E"]], default=0)
        for entry in self.entries:
            superseded = entry.rows[-1].reason == "superseded" or entry.record in self.elsewhere
            beaten = superseded and entry.record < last
            self._count(entry, must_come=entry.statuses == "S" and not beaten)
        newest_entry = self.entries[-1]
        refused = newest_entry.statuses == "E"  # by the receiver, which then has what it took before
        if self.first and not refused and newest_entry.version.op != "D" and number != newest_entry.version.number:
            self._find(newest_entry, "wrong value", f"the last version that is told is {number}")
        return self.found

    def _meet(self) -> None:
        """Finds the versions that changes speak of; says which came too often, and which after a later one."""
        by_record = {row.record: entry for entry in self.entries for row in entry.rows}
        for seen in self.seen:
            entry = by_record.get(seen.record)
            if entry is None:
                self.found.append(_stranger(self.shown, seen, seen.place))
                continue
            self.counts[entry.record] += 1
            if self.counts[entry.record] > 1:
                continue
            self.first.append((seen, entry))
            if seen.who not in (None, entry.version.who):
                self._find(entry, "somebody else's", f"{seen.who} at {seen.where}")
        for place, _, newest in find_overtaken(Arrival(entry.version.place, entry.record) for _, entry in self.first):
            seen, entry = self.first[place]
            if not self._asked(entry):
                self._find(entry, OUT_OF_ORDER, f"after row {newest} at {seen.where}")

    def _count(self, entry: Entry, *, must_come: bool) -> None:
        """A version comes once, and once more where somebody asked for it; but where a receiver refused it then."""
        count, wanted = self.counts[entry.record], 1 + self._asked(entry)
        least = 1 if self.shown.replaces or entry.statuses == "E" else wanted
        due = Due(least if must_come or count else 0, inf if self.shown.repeats else wanted)
        if what := due.judge(count):
            asked = ", because it was asked for again" if what == LOST and count else ""
            self._find(entry, what, f"{count} times, {wanted} were to be{asked}")

    def _asked(self, entry: Entry) -> int:
        return max([self.again.get(row.record, 0) for row in entry.rows])

    @staticmethod
    def _as_told(version: Version) -> tuple[Op, int | None, str | None]:
        return ("D", None, None) if version.op == "D" else (version.op, version.number, version.text)

    def _find(self, entry: Entry, what: str, why: str = "") -> None:
        self.found.append(entry.finding(what, why, self.shown.output))
