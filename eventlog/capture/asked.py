"""What each class was tracked with: kept in a mark of the log and in its triggers, and put under
what is asked now.

There are two witnesses. The mark outlives the triggers, and no owner of a table can write it. The
triggers say the same in their marker, which no publisher can write. What would run SQL or name
other tables is only believed when both say it.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.plan import Style, TriggerOptions
from eventlog.core.errors import InstallError
from eventlog.core.schema import WHOLE_ROW
from eventlog.sql.access import fetched, verbatim
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, statement
from eventlog.sql.names import LogNames

PIECE_CHARACTERS: Final = 900
"""How long the pieces of a long text are: fewer than 4,000 bytes, whatever the characters."""

SIGN = "eventlog "
"""What a marker begins with, wherever the database keeps it."""


class Marker(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The log that the trigger writes to, the class it belongs to, the options of `track`, and its
    text's hash.

    `watched` are the attributes that it was made for, where columns were left out.
    """

    log: str
    table: str
    options: TriggerOptions
    hash: str
    watched: tuple[str, ...] = ()


def hash_of(texts: Iterable[str]) -> str:
    """Sixteen digits that change when any of the texts does."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def write_marker(marker: Marker, line_characters: int | None = None) -> str:
    """The marker, on one line where lines may be of any length."""
    # It stands in a SQL comment, which options that hold */ would end; \/ is the same sign to who
    # reads JSON.
    text = SIGN + msgspec.json.encode(marker).decode().replace("*/", "*\\/").replace("/*", "\\/*")
    if line_characters is None:
        return text
    return _breakable.sub(r"\1\n", text)


def read_marker(text: str) -> Marker | None:
    """The marker in a trigger's text or comment, or None when there is none that we understand."""
    start = text.find(SIGN + "{")
    if start < 0:
        return None
    # JSON has no line breaks of its own, and we end no comment in it.
    written = text[start + len(SIGN) :].partition("*/")[0].replace("\n", "").strip()
    try:
        return msgspec.json.decode(written, type=Marker)
    except msgspec.DecodeError:
        return None


_breakable = re.compile(r"(.{900,1000}?[\w,])(?=[\w\"])")
"""Where a line may end: never before a sign that a database's shell takes for a command of its own.
"""

PREFIX: Final = "asked: "
"""What the names of these marks begin with."""
NAME_BYTES: Final = 200
"""How long the name of a mark may be."""

_parameter = re.compile(r":(name|value)\b")


class TrackRequest(Struct, frozen=True, kw_only=True):
    """What somebody asks for now; None keeps what a class was tracked with, `reset` keeps nothing
    of it.
    """

    style: Style | None = None
    columns: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    children: tuple[str, ...] | None = None
    key: tuple[str, ...] | None = None
    when: str | None = None
    rows: bool | None = None
    always: bool | None = None
    follow_ddl: bool | None = None
    reset: bool = False

    def over(self, kept: TriggerOptions) -> TriggerOptions:
        """The options of a class that has been tracked with others; an empty condition takes the
        condition away.
        """
        options = {}
        for name in OPTIONS:
            asked = getattr(self, name)
            options[name] = asked
            if asked is None:
                options[name] = getattr(kept, name)
        # Without a key nobody finds the row again, so --whole-row alone means the one style that
        # needs no second look.
        if self.key == (WHOLE_ROW,) and self.style is None:
            options["style"] = Style.IMAGE
        return TriggerOptions(**options | {"when": options["when"] or None})


OPTIONS: Final = tuple(name for name in TrackRequest.__struct_fields__ if name != "reset")
"""What somebody may ask for; the other options depend on the table."""


def exactly(options: TriggerOptions) -> TrackRequest:
    """The request for these options, whatever there was before."""
    return TrackRequest(**{name: getattr(options, name) for name in OPTIONS}, reset=True)


class AskedClass(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A class and the options that it was tracked with, as the mark has it; `watched` is as in its
    triggers' marker.
    """

    table: str
    options: TriggerOptions
    watched: tuple[str, ...] = ()


def asked_of(connection: Connection, names: LogNames) -> dict[str, TriggerOptions]:
    """The options of every class by its name, as the marks have them; none where there are no marks
    to be read.
    """
    return {table: asked.options for table, asked in asked_classes(connection, names).items()}


def asked_classes(connection: Connection, names: LogNames) -> dict[str, AskedClass]:
    """Every class by its name, as the marks have it."""
    # A savepoint is gone with its statement where each is a transaction of its own.
    alone = connection.get_execution_options().get("isolation_level") == "AUTOCOMMIT"
    try:
        savepoint = nullcontext() if alone else connection.begin_nested()
        query = verbatim(_statement(dialect_of(connection), names, "asked_read"))
        with savepoint:
            rows = fetched(connection, query)
    except SQLAlchemyError:
        return {}
    classes = {}
    for (value,) in rows:
        # Publishers can write marks: what is no class to us is nobody's request.
        with suppress(msgspec.DecodeError):
            asked = msgspec.json.decode(str(value), type=AskedClass)
            classes[asked.table] = asked
    return classes


def has_marks(connection: Connection, names: LogNames) -> bool:
    return inspect(connection).has_table(names.marks, schema=names.schema)


def keeping(dialect: Dialect, names: LogNames, asked: AskedClass) -> str:
    """The statement that keeps what a class was tracked with."""
    value = msgspec.json.encode(asked).decode()
    return _statement(dialect, names, "mark_write", name=_name(asked.table), value=value)


def forgetting(dialect: Dialect, names: LogNames, table: str) -> str:
    return _statement(dialect, names, "mark_clear", name=_name(table))


def believed(
    table: str,
    kept: TriggerOptions | None,
    standing: Sequence[TriggerOptions],
) -> TriggerOptions | None:
    """What a class was tracked with; None when it never was, InstallError when that cannot be known
    for sure.
    """
    in_triggers = [_comparable(options) for options in standing]
    if kept is not None and _comparable(kept) in in_triggers:
        return kept  # others are left of an attempt that was broken off
    witnesses = [options for options in (kept, *standing) if options is not None]
    if not witnesses:
        return None
    # The mark agrees with no trigger here: it must be the only witness, or missing.
    if any(_comparable(options) != _comparable(witnesses[0]) for options in witnesses):
        ways = " or ".join(dict.fromkeys(words(options) for options in witnesses))
        message = f"What {table} was tracked with is not clear: {ways}."
        raise InstallError(message, hint="Say the options again, together with --reset.")
    options = witnesses[0]
    # A condition runs as who tracks, and a child names somebody's table: one witness alone may have
    # been forged.
    if options.when is not None or options.children:
        who = "its triggers say" if kept is None else "the log says"
        doubt = f"Only {who} that {table} was tracked with {words(options)}"
        message = f"{doubt}, which could be somebody else's doing."
        raise InstallError(message, hint="Say the options again, together with --reset.")
    return options


def same(left: TriggerOptions, right: TriggerOptions) -> bool:
    """Whether two options ask for the same, whatever the table adds to them."""
    return _comparable(left) == _comparable(right)


def words(options: TriggerOptions) -> str:
    """The options as `eventlog track` takes them."""
    arguments = ["--events", options.style.value]
    lists = {
        "--columns": options.columns,
        "--exclude": options.exclude,
        "--child": options.children,
    }
    if not options.whole_row:
        lists["--key"] = options.key
    for option, names in lists.items():
        if names:
            arguments += [option, ",".join(names)]
    if options.when:
        arguments += ["--when", options.when]
    flags = {
        "--whole-row": options.whole_row,
        "--row-triggers": options.rows,
        "--always": options.always,
        "--follow-ddl": options.follow_ddl,
    }
    return shlex.join([*arguments, *(flag for flag, given in flags.items() if given)])


def _comparable(options: TriggerOptions) -> TriggerOptions:
    """What somebody asked for, without what depends on the table.

    That is who owns it, its keys, and whether statement triggers would do.
    """
    return replace(options, rows=False, at_once=False, foreign=False, deferred=False, repeated=())


def _name(table: str) -> str:
    name = PREFIX + table
    if len(name.encode()) <= NAME_BYTES:
        return name
    # What is left of the name is for people; the hash tells such marks apart.
    digest = hashlib.sha256(table.encode()).hexdigest()
    return f"{name.encode()[:100].decode(errors='ignore')} {digest}"


def _statement(dialect: Dialect, names: LogNames, query: str, **values: str) -> str:
    """A query with its values as constants, so that a script and the program run the same."""
    text = statement(dialect, query, **log_holes(dialect, names))
    return _parameter.sub(lambda match: _literal(dialect, values[match[1]]), text)


def _literal(dialect: Dialect, text: str) -> str:
    """The text as a SQL expression, in pieces where no string or line may be as long."""
    if dialect.long_text is None or len(text) <= PIECE_CHARACTERS:
        return dialect.literal(text)
    starts = range(0, len(text), PIECE_CHARACTERS)
    pieces = (dialect.literal(text[start : start + PIECE_CHARACTERS]) for start in starts)
    return "\n|| ".join(dialect.long_text.format(text=piece) for piece in pieces)
