"""The first step: order the events, set aside what takes no part, gather the rest by object.

Which object a log row speaks of: table_name and table_key as they were written become one RowId.
With a catalog, names are those of the database and the parts of a key stand in the order of the
table's primary key; without one they stay as they were written, and only the case of names is
overlooked.

Everything that depends only on a table name, a raw key or a column name is looked up once and
remembered, because a log of a million field rows names the same few columns and every object
several times. Gathered events are spelled as the catalog spells them, so that the later steps look
at nothing but kind, column and values.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from operator import attrgetter
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import DataError, KeySyntaxError, value_shown
from eventlog.core.key_forms import ANY, fold_values, foldings_of, forms_of
from eventlog.core.model import EVERY_ROW, Change, Event, Kind, Outcome, Position, Reason, RowId, find_refreshed_output
from eventlog.core.rules.meaning import MEANING, STATUS, Options
from eventlog.core.schema import WHOLE_ROW, Catalog, Child, Table, TableMatch
from eventlog.core.tablekey import TableKey, arrange_key, format_parts, parse
from eventlog.core.times import moment
from eventlog.core.view_columns import read_column_name

KEPT_SPELLINGS: Final = 10_000
"""So many spellings are remembered: who writes into a log may spell a name in a million ways."""

HIDDEN: Final = "(hidden)"
"""Stands in the place of a value that a policy hides."""


class Naming:
    """What one table_name of the log means, and what key and column names under it mean."""

    __slots__ = (
        "_meant",
        "_spelled",
        "child",
        "child_key",
        "folded",
        "foldings",
        "forms",
        "gone",
        "is_plain",
        "known",
        "loose",
        "name",
        "own_key",
        "table",
    )

    def __init__(self, name: str, match: TableMatch | None, catalog: Catalog | None) -> None:
        self.name = name
        self.table: Table | None = None
        self.child: Child | None = None
        self.gone: tuple[str, ...] = ()
        key: Sequence[str] = ()
        if match is not None:
            self.table, self.child, key = match.table, match.child, match.table.key
            self.gone = match.table.gone
        self.known: dict[str | None, str] = {}
        self._meant: list[tuple[Callable[[str], str], dict[str, str]]] = []
        # Also where tables are told apart by their case, columns are not.
        self._spelled = fold = str.casefold
        self.folded: Callable[[str], str] = fold
        if len(set(map(fold, key))) < len(key):
            self.folded = str
        # A view's column may have a prefix that says what it is, and is no part of its name.
        if self.table is not None and self.table.view:
            self.folded = lambda column: fold(read_column_name(column).column)
        self.own_key = {self.folded(column): column for column in key}
        self.forms = forms_of(self.table)
        self.foldings = foldings_of(self.table)
        self.loose = self.table.loose_key if self.table is not None else frozenset()
        # How nearly all keys are: the columns spelled and ordered as in the catalog, nothing quoted, the
        # values in the forms of their types. Such a key needs no parser.
        self.is_plain: Callable[[str], re.Match[str] | None] | None = None
        if key and self.child is None and WHOLE_ROW not in key:
            plain = {**self.forms, **self.foldings}
            values = [plain[column].spelled if column in plain else ANY for column in key]
            parts = [re.escape(f"{column}=") + value for column, value in zip(key, values, strict=True)]
            self.is_plain = re.compile(r"\+".join(parts), re.ASCII).fullmatch
        spelled = self.child.parent_key if self.child else ()
        self.child_key = dict(zip(map(self.folded, spelled), key or spelled, strict=False))

    def attribute(self, column: str | None) -> str:
        """Resolve a column_name to its attribute; raise DataError when it is missing or unknown."""
        if column is None or not column.strip(" "):
            raise DataError("column_name is missing; types 1, 2, 3, 7 and 8 speak of one column.")
        meant = self.known.get(column)
        if meant is None:
            meant = self._look_up(column.strip(" "))
            if len(self.known) >= KEPT_SPELLINGS:
                self.known.clear()
            self.known[column] = meant
        return meant

    def _look_up(self, column: str) -> str:
        if self.table is None:
            return column
        if not self._meant:
            # As it is written first: two columns may differ in case, and a view's in their prefixes only.
            folds: tuple[Callable[[str], str], ...] = (str, self._spelled, self.folded)
            for fold in dict.fromkeys(folds):
                # By whatever a column_name may call them; of two alike the first is meant.
                attributes: dict[str, str] = {}
                for name, attribute in self.table.loggable.items():
                    attributes.setdefault(fold(name), name)
                    # A child's column has its table before it; bare, it would be the parent's.
                    if attribute.child is None:
                        attributes.setdefault(fold(attribute.column.name), name)
                self._meant.append((fold, attributes))
        named = column
        if self.child:
            named = f"{self.child.name}.{column}"
        for fold, meant in self._meant:
            if (known := meant.get(fold(named))) is not None:
                return known
        problem = f"column_name {column} is not a column of {self.name}"
        raise DataError(f"{problem}; is the catalog up to date?")


class Identities:
    """Finds the object of a table_name and a table_key, each pair of texts once.

    With `hiding` nothing of a key is said of one that cannot be read.
    """

    def __init__(self, catalog: Catalog | None, *, hiding: bool = False) -> None:
        self._catalog = catalog
        self._hiding = hiding
        self._namings: dict[str, Naming] = {}

    def row_id(self, table: str | None, key: str | None, *, row_event: bool = False) -> RowId | None:
        """Identify the object, for telling objects apart; None when the texts name none."""
        try:
            return self.identify(table, key, row_event=row_event)[2]
        except DataError:
            # It may be of a table that was called so when the row was written.
            if self._catalog is None or self._catalog.former is None:
                return None
            return self._catalog.former.row_id(table, key, row_event=row_event)

    def identify(self, table: str | None, key: str | None, *, row_event: bool) -> tuple[Naming, RowId, RowId]:
        """Resolve the table_name; return also the object as documents name it, and its identity."""
        # By far the most names were met before, and spelled so.
        naming = self._namings.get(table or "") or self.naming(table)
        if key is None:
            raise DataError("table_key is NULL; it must name the row.")
        # By far the most keys: one column, spelled as the catalog does, and nothing quoted.
        if naming.is_plain is not None and naming.table is not None and naming.is_plain(key):
            row = RowId(naming.table.schema, naming.table.name, key)
            return naming, row, row
        try:
            parsed = parse(key)
        except KeySyntaxError as error:
            if not self._hiding:
                raise
            # From None: the error's own text has the key.
            where = f"table_key {HIDDEN}, column {error.column}"
            raise DataError(f"{where}: that is not how a key is written.") from None
        if naming.table is None:
            row = RowId(None, naming.name, parsed.canonical)
            folded, name = _fold_key(parsed, naming.folded), naming.name.casefold()
            if folded == row.key and name == row.table:
                return naming, row, row
            return naming, row, RowId(None, name, folded)
        if naming.child is not None:
            canonical = self._parents_key(naming, parsed, row_event=row_event)
        else:
            canonical = self._own_key(naming, parsed)
        row = RowId(naming.table.schema, naming.table.name, canonical)
        if naming.foldings:
            return naming, row, replace(row, key=fold_values(canonical, naming.foldings))
        if naming.table.key or naming.child is not None:
            return naming, row, row
        return naming, row, replace(row, key=_fold_key(parsed, naming.folded))

    def _show_key(self, key: TableKey) -> str:
        return HIDDEN if self._hiding else key.text

    def naming(self, table: str | None) -> Naming:
        """Resolve a table_name; raise DataError when it is missing or unknown."""
        name = (table or "").strip(" ")
        if not name:
            raise DataError("table_name is missing; it must name a table or view.")
        naming = self._namings.get(name)
        if naming is None:
            match: TableMatch | None = None
            if self._catalog is not None:
                match = self._catalog.find(name)
                if match is None:
                    raise DataError(f"table_name {name} is not among the captured tables.")
            naming = Naming(name, match, self._catalog)
            if len(self._namings) >= KEPT_SPELLINGS:
                self._namings.clear()
            self._namings[name] = naming
        return naming

    def _own_key(self, naming: Naming, key: TableKey) -> str:
        if not naming.own_key:
            return key.canonical
        canonical = arrange_key(_spell_key(key, naming.own_key, naming), naming.own_key, naming.folded)
        if canonical is None:
            names = " and ".join(naming.own_key.values())
            problem = f"table_key {self._show_key(key)} does not name the key of {naming.name}"
            raise DataError(f"{problem}, which is {names}.")
        if naming.table is not None and naming.table.whole_row:
            row = key.parts[0][1]
            # Where the database cannot hash, its log has the row's text.
            if row.startswith("{"):
                row = hashlib.sha256(row.encode(errors="surrogatepass")).hexdigest()
            return f"{WHOLE_ROW}={row}"
        return canonical

    def _parents_key(self, naming: Naming, key: TableKey, *, row_event: bool) -> str:
        """Return the parent's key for a child's row: it counts as the parent's."""
        canonical = arrange_key(_spell_key(key, naming.own_key, naming), naming.own_key, naming.folded)
        key = _spell_key(key, naming.child_key, naming)
        canonical = canonical or arrange_key(key, naming.child_key, naming.folded)
        # Field rows carry the parent's key and nothing else; those of whole rows have it among
        # more.
        if canonical is None and row_event:
            own_names = naming.child_key
            contained = [part for part in key.parts if naming.folded(part[0]) in own_names]
            canonical = arrange_key(TableKey.of(contained), naming.child_key, naming.folded)
        if canonical is None:
            names = " and ".join((naming.own_key or naming.child_key).values())
            parent = naming.table.name if naming.table is not None else ""
            raise DataError(
                f"table_key {self._show_key(key)} is of the child table {naming.name}"
                f" and does not name its parent {parent} by {names}."
            )
        return canonical


# The same tables come with each batch.
_kept_identities = lru_cache(maxsize=16)(Identities)


def identities_of(catalog: Catalog | None, *, hiding: bool = False) -> Identities:
    """Return the identities of a catalog. Without one they are new: any name may come, and none is kept."""
    if catalog is None:
        return Identities(None, hiding=hiding)
    return _kept_identities(catalog, hiding=hiding)


def _spell_key(key: TableKey, names: Mapping[str, str], naming: Naming) -> TableKey:
    """Rewrite the key's values in the forms of their types; `names` are the key's columns as `arrange_key`
    takes them.
    """
    if not naming.forms:
        return key
    parts = []
    for spelled, value in key.parts:
        form = naming.forms.get(names.get(naming.folded(spelled), ""))
        parts.append((spelled, value if form is None else form.spell(value)))
    return key if tuple(parts) == key.parts else TableKey.of(parts)


def _fold_key(key: TableKey, fold: Callable[[str], str]) -> str:
    """Make an identity for a key of unknown columns: not by the spelling of their names."""
    if all(fold(name) == name for name, _ in key.parts):
        return key.canonical
    return format_parts((fold(name), value) for name, value in key.parts)


class Subject(Struct, gc=False):
    """One object of the batch and its events in order; `plain` while they are types 1, 2 and 3."""

    row: RowId
    table: Table | None
    events: list[Event]
    plain: bool = True
    loose: frozenset[str] = frozenset()
    """The key columns of which several texts are one value, so that its row says how it is called."""

    @property
    def multiple(self) -> Collection[str | None]:
        """Name the attributes with several values, for which repeating is natural."""
        if self.table is None:
            return ()
        return self.table.multiple


SubjectId = RowId | tuple[RowId, str]
"""What an object is told apart by, and the one output that its events are for."""


class Meeting(Struct, frozen=True, gc=False):
    """What a table_name and a table_key, as written, turned out to mean."""

    identity: RowId
    subject: Subject
    naming: Naming
    names: dict[str | None, str]


class Screened(Struct):
    """The events of a batch in their order, their objects, and the outcomes that are certain."""

    events: Sequence[Event]
    subjects: dict[SubjectId, Subject] = {}
    outcomes: dict[Position, Outcome] = {}
    silent: set[Position] = set()
    """Loopback deletes: they close a lifetime and say nothing."""
    spelled: dict[tuple[str | None, str | None], RowId] = {}
    """The objects as some texts of the log call them: those whose Subject is called otherwise."""

    def gather(self, meeting: Meeting, event: Event) -> None:
        subject = meeting.subject
        only = find_refreshed_output(event.perpetrator)
        # What is for one output alone is gathered by itself: nothing that all outputs get may be
        # superseded by it.
        if only and event.kind != Kind.DELETE_ROW:
            alone = Subject(subject.row, subject.table, [], loose=subject.loose)
            subject = self.subjects.setdefault((meeting.identity, only), alone)
        subject.events.append(event)
        subject.plain = False

    def aside(self, event: Event, reason: Reason, note: str | None) -> None:
        self.outcomes[event.position] = Outcome(
            position=event.position, status=STATUS[reason], reason=reason, note=note
        )


def screen(
    events: Sequence[Event],
    catalog: Catalog | None,
    options: Options,
    *,
    by_object: bool = False,
) -> Screened:
    """Order the events, set aside those taking no part, group the others by object."""
    # Those that come `by_object`, each object's in their order, are in order enough: objects do not
    # touch each other.
    if options.future or not by_object:
        events = in_order(events, options)
    screened = Screened(events)
    identities = identities_of(catalog, hiding=options.hiding)
    meetings: dict[tuple[str | None, str | None, bool], Meeting | str] = {}
    table, key, row = None, None, None
    meeting: Meeting | str = ""
    ours: Ours | None = None
    if options.user and not options.allow_loopback:
        ours = Ours(options.user)
    spoken = OurContexts(options.contexts) if options.contexts else None
    meaning_of = MEANING.get
    for event in screened.events:
        meaning = meaning_of(event.kind)
        if meaning is None or event.time is None or event.fault is not None:
            screened.aside(event, Reason.INVALID, _misfit(event))
            continue
        # Neighbours are often alike, and a look-up costs more than three comparisons.
        if event.key != key or event.table != table or meaning.row is not row:
            reference = table, key, row = event.table, event.key, meaning.row
            meeting = meetings.get(reference) or _meet(screened, identities, event, row_event=row)
            meetings[reference] = meeting
        met = meeting if isinstance(meeting, Meeting) else _meet_table(screened, identities, event)
        if met is None:
            screened.aside(event, Reason.INVALID, str(meeting))
        elif options.future and _waits(screened, event, options):
            # Untouched, also a loopback: a delete that is not due closes nothing yet.
            continue
        elif (ours is not None and ours[event.perpetrator]) or (
            spoken is not None and event.who is not None and spoken[event.who.context]
        ):
            # What it deletes is gone all the same. A child's row is a part of its parent.
            if event.kind == Kind.DELETE_ROW and met.naming.child is None:
                screened.silent.add(event.position)
                screened.gather(met, event)
            screened.aside(event, Reason.LOOPBACK, _whose(event, ours))
        elif event.image is not None and event.kind != Kind.DELETE_ROW:
            met.subject.events.append(event)
        elif meaning.row:
            # Whatever became of a child's row, its parent changed.
            if met.naming.child is not None:
                event = replace(event, kind=Kind.UPDATE_ROW_BACK)  # noqa: PLW2901  # of the parent
            screened.gather(met, event)
        else:
            attribute = met.names.get(event.column) or _attribute(screened, met, event)
            if meaning.back and attribute is not None and attribute in met.naming.gone:
                _gather_gone(screened, met, event, attribute)
            elif attribute is not None:
                if attribute != event.column:
                    event = replace(event, column=attribute)  # noqa: PLW2901  # as in the catalog
                met.subject.events.append(event)
                if meaning.back:
                    met.subject.plain = False
    return screened


def in_order(events: Sequence[Event], options: Options) -> list[Event]:
    """Sort events in the order of the rules: by position, or by time and then position."""
    ordered = sorted(events, key=attrgetter("position"))
    if options.future:
        # Sorting is stable: events of one time stay in the order of their positions.
        ordered.sort(key=due)
    return ordered


def due(event: Event | Change) -> dt.datetime:
    """Return the time of effect; the earliest time without one: such an event is to be set aside."""
    if event.time is None:
        return dt.datetime.min
    return moment(event.time) or dt.datetime.min


def _misfit(event: Event) -> str:
    """Explain a row without an event's name, to the trigger's author."""
    if event.fault is not None:
        return event.fault
    if event.kind is None:
        return "event_type is NULL; it must be a number from 1 to 8."
    if event.kind not in MEANING:
        return f"event_type is {event.kind}; only the numbers from 1 to 8 have a meaning."
    return "event_time is NULL; it must say when the event happened."


def _meet(screened: Screened, identities: Identities, event: Event, *, row_event: bool) -> Meeting | str:
    """Find the object of a table_name and table_key; or explain the fault."""
    try:
        naming, row, identity = identities.identify(event.table, event.key, row_event=row_event)
    except DataError as error:
        return str(error)
    # Nearly every name that was not met before is of a new object: one look-up for both.
    made = Subject(row, naming.table, [], loose=naming.loose)
    subject = screened.subjects.setdefault(identity, made)
    if subject is not made and row != subject.row:
        screened.spelled[event.table, event.key] = row
    return Meeting(identity, subject, naming, naming.known)


def _meet_table(screened: Screened, identities: Identities, event: Event) -> Meeting | None:
    """Find the table a row is about as a whole: a truncation, or an image without a key."""
    if event.key != EVERY_ROW or (event.image is None and event.kind != Kind.DELETE_ROW):
        return None
    try:
        naming = identities.naming(event.table)
    except DataError:
        return None
    table = naming.table
    if table is None or naming.child is not None or (event.image is not None and table.key):
        return None
    row = RowId(table.schema, table.name, "")
    subject = screened.subjects.setdefault(row, Subject(row, table, []))
    return Meeting(row, subject, naming, naming.known)


def _attribute(screened: Screened, meeting: Meeting, event: Event) -> str | None:
    try:
        return meeting.naming.attribute(event.column)
    except DataError as error:
        screened.aside(event, Reason.INVALID, str(error))
        return None


def _gather_gone(screened: Screened, meeting: Meeting, event: Event, attribute: str) -> None:
    """Handle a dropped column to be read back: a logged value counts."""
    inserted = event.kind == Kind.INSERT_FIELD_BACK
    if event.new is not None:
        kind = Kind.INSERT_FIELD if inserted else Kind.REPLACE_FIELD
        meeting.subject.events.append(replace(event, kind=int(kind), column=attribute))
    elif inserted:
        # All of a new object is read back then: nothing else may say that it is there.
        screened.gather(meeting, replace(event, kind=int(Kind.INSERT_ROW_BACK), column=None))
    else:
        table = meeting.subject.row.table
        problem = f"{table} has no captured column {attribute} any more to be read back"
        screened.aside(event, Reason.VANISHED, f"{problem}, and no value of it was logged.")


def _waits(screened: Screened, event: Event, options: Options) -> bool:
    """Return True if the event is set aside because of its time."""
    time = event.time and moment(event.time)
    if not time:
        screened.aside(event, Reason.INVALID, f"event_time {event.time!r} is not a date and time.")
        return True
    now = options.now and moment(options.now)
    if not now or time <= now:
        return False
    screened.aside(event, Reason.NOT_DUE, None)
    return True


def _whose(event: Event, ours: Ours | None) -> str:
    """Explain why an event is not published, by its user."""
    if event.who is None or (ours is not None and ours[event.perpetrator]):
        return f"made by {event.perpetrator}, the publisher's own user."
    return f"its session says {value_shown(event.who.context or '')}, which publisher.loopback_contexts names."


class OurContexts(dict[str | None, bool]):
    """Says of what a session said whether its changes are to be left out."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        super().__init__({None: False})
        self._patterns = patterns

    def __missing__(self, context: str) -> bool:
        self[context] = ours = any(fnmatchcase(context, pattern) for pattern in self._patterns)
        return ours


class Ours(dict[str | None, bool]):
    """Says of a perpetrator, however it is written, whether it is the publisher's own user."""

    def __init__(self, user: str) -> None:
        # What nobody noted a user of is not ours.
        super().__init__({None: False})
        self._user = _fold_user(user)

    def __missing__(self, perpetrator: str) -> bool:
        self[perpetrator] = ours = _fold_user(perpetrator) == self._user
        return ours


def _fold_user(user: str) -> str:
    return user.strip(" ").casefold()
