"""The event trigger by which a database follows ALTER TABLE itself: what it knows of tables, how it
is made and taken off.

The bridge is what it makes of a trigger's function when the table is altered, so that the trigger
goes on: it is prepared when the table is tracked. It names no column but those of the key, and
these by their numbers; where others are logged, the database lists them as it puts the names in.
Classes with child tables, and those whose keys wait for the end of their transaction, log rows to
be read back then. `eventlog track` makes the whole trigger. Decision 27 says why.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from eventlog.capture.plan import ChildPlan, Numbered, Style, TriggerPlan
from eventlog.core.errors import InstallError
from eventlog.core.schema import Child
from eventlog.sql.access import answers, is_denied, verbatim
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement
from eventlog.sql.names import LogNames


class DdlTrigger(Struct, frozen=True, kw_only=True):
    """The event trigger of a log as the database tells of it; `current` says whether it would be
    made so today.
    """

    enabled: bool
    current: bool
    owner: str
    mine: bool


def numbered(connection: Connection, plan: TriggerPlan) -> TriggerPlan:
    """The plan with the numbers of its tables, where the database is to follow DDL."""
    if not (plan.options.follow_ddl and offers(dialect_of(connection), "ddl_function")):
        return plan
    table = plan.table
    own = _columns(connection, table.schema, table.name)
    key = [own[name] for name in table.key]
    own_number, key_numbers = key[0].table, [column.number for column in key]
    child_keys = []
    for child in plan.children:
        columns = _columns(connection, table.schema, child.child.name)
        child_keys.append([columns[name] for name in child.child.parent_key])
    looked_at = []
    if plan.looks_back:
        looked_at = [(held[0].table, [column.number for column in held]) for held in child_keys]
    # A trigger that compares whole rows ages with no column but those of its key.
    watched_numbers = key_numbers if plan.whole_rows else None
    watch = watching(own_number, watched_numbers, looked_at=looked_at)
    own_table = _numbered(connection, key, watch)
    if plan.options.columns or plan.options.exclude:
        chosen = [own[attribute.column.name].number for attribute in plan.watched]
        own_table = replace(own_table, columns=tuple(chosen))
    others = []
    for held in child_keys:
        watch = watching(held[0].table, None, own_number, key_numbers)
        others.append(_numbered(connection, held, watch))
    return replace(plan, numbered=(own_table, *others))


class _NumberedColumn(Struct, frozen=True):
    table: int
    number: int
    type: int


def _columns(connection: Connection, schema: str | None, table: str) -> dict[str, _NumberedColumn]:
    rows = answers(connection, "numbered_columns", {"schema": schema, "table": table})
    return {row.name: _NumberedColumn(row.relation, row.number, row.type) for row in rows}


def _numbered(connection: Connection, key: list[_NumberedColumn], watch: str) -> Numbered:
    dialect = dialect_of(connection)
    # The event trigger computes the shape by the same expression, so that both find the same text.
    expression = statement(dialect, "shape_of", watch=dialect.literal(watch))
    query = verbatim(statement(dialect, "shape_now", shape=expression))
    shape = connection.execute(query).scalar_one()
    pairs = tuple([(column.number, column.type) for column in key])
    return Numbered(number=key[0].table, keys=pairs, watch=watch, shape=str(shape))


def ddl_needed(connection: Connection, names: LogNames, *, followed: bool) -> Iterator[str]:
    """What has to run so that the event trigger of a log stands where a table wants it, and nowhere
    else.
    """
    standing = standing_ddl(connection, names)
    if not followed:
        yield from ddl_drops(connection, names)
        return
    if standing is not None and not standing.mine:
        # It runs as its owner, and would not change the triggers that are ours.
        follower = f"an event trigger of {standing.owner}, which changes only what is its owner's"
        raise InstallError(
            f"ALTER TABLE is followed by {follower}.",
            hint=f"Run this as {standing.owner}, or leave out --follow-ddl.",
        )
    if standing is None or not (standing.current and standing.enabled):
        dialect = dialect_of(connection)
        yield _function(dialect, names)
        holes = _holes(dialect, names)
        if standing is not None:
            yield statement(dialect, "drop_ddl_trigger", **holes)
        yield statement(dialect, "ddl_trigger", **holes)


def refused(dialect: Dialect, sql: str, error: BaseException | None) -> InstallError | None:
    """What to say where the event trigger itself is what somebody may not make."""
    if not (sql.startswith("CREATE EVENT TRIGGER") and is_denied(dialect, error)):
        return None
    message = "Only a superuser may make the event trigger that follows ALTER TABLE."
    hint = "Run this as one, or leave out --follow-ddl and set publisher.follow = true."
    return InstallError(message, hint=hint)


def ddl_drops(connection: Connection, names: LogNames) -> list[str]:
    """What takes the event trigger of a log off; nothing where none stands."""
    if standing_ddl(connection, names) is None:
        return []
    dialect = dialect_of(connection)
    # The trigger first: a function that one calls cannot be dropped.
    queries = ("drop_ddl_trigger", "drop_function")
    return [statement(dialect, query, **_holes(dialect, names)) for query in queries]


def standing_ddl(connection: Connection, names: LogNames) -> DdlTrigger | None:
    """The event trigger of a log, which must carry its schema."""
    dialect = dialect_of(connection)
    name = ddl_trigger_name(dialect, names)
    rows = answers(connection, "standing_ddl_trigger", {"trigger": name})
    if not rows:
        return None
    [row] = rows
    # The database keeps a function's body alone, which is a part of the statement.
    current = bool(row.whole) and row.source.strip() in _function(dialect, names)
    return DdlTrigger(
        enabled=bool(row.enabled),
        current=current,
        owner=row.owner,
        mine=bool(row.mine),
    )


def ddl_trigger_name(dialect: Dialect, names: LogNames) -> str:
    """What the event trigger of a log is called; a database has one list of them, whatever the
    schema.
    """
    return dialect.shortened("_".join(filter(None, ("eventlog", names.schema, names.table, "ddl"))))


def _function(dialect: Dialect, names: LogNames) -> str:
    shape = statement(dialect, "shape_of", watch="called.part[1]")
    schema = names.schema or ""
    holes = _holes(dialect, names) | log_holes(dialect, names)
    log = dialect.literal(dialect.qualified(names.schema, names.table))
    record_id = dialect.literal(names.column("record_id"))
    next_number = statement(dialect, "next_of_identity", log_name=log, column_name=record_id)
    if names.sequence and dialect.next_number is not None:
        sequence = dialect.qualified(names.schema, names.sequence)
        next_number = dialect.next_number.format(sequence=sequence)
    return statement(
        dialect,
        "ddl_function",
        **holes,
        shape_of_watch=shape,
        numbers=statement(dialect, "numbers_of"),
        **_texts(dialect),
        next=next_number,
        schema=dialect.literal(dialect.quoted(schema)),
        schema_name=dialect.literal(schema),
    )


def _texts(dialect: Dialect) -> dict[str, str]:
    """The fragments that make a text of a value, as constants of the function that uses them."""
    kinds = ("string", "octet", "state", "money", "date", "timestamp", "zoned")
    fragments = {kind: statement(dialect, f"text_of_{kind}", value=VALUE) for kind in kinds}
    fragments["made"] = statement(dialect, "made_type", value=VALUE)
    fragments["domain"] = statement(dialect, "made_domain", value=VALUE, type=TYPE)
    return {f"{kind}_text": dialect.literal(text) for kind, text in fragments.items()}


def _holes(dialect: Dialect, names: LogNames) -> dict[str, str]:
    return {
        "trigger": dialect.quoted(ddl_trigger_name(dialect, names)),
        "function": dialect.qualified(names.schema, dialect.shortened(f"{names.table}_ddl")),
    }


VALUE: Final = "eventlog{value}"
"""In place of a value, in the fragments that make a text of one."""
TYPE: Final = "eventlog{type}"
"""In place of the type that a domain stands for, in the fragment that makes a value of it."""
HERE: Final = "eventlog{ddl}"
"""Where the bridge's own comment goes."""
SCHEMA: Final = "eventlog{}"
"""In place of a schema, so that a table with its schema differs from the bare name of a row."""


class Bridge(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A function in two parts, with numbers in place of names.

    And the trigger's table, the class's, its key, and the columns that are logged,
    where these are not all.
    """

    head: str
    body: str
    name: str
    parent: int
    key: list[int]
    columns: list[int] | None = None


def bridge_plan(plan: TriggerPlan) -> TriggerPlan:
    """The plan with every name that may change replaced by a number.

    And without all other columns: the database lists them, or rows are read back.
    """
    own, *others = plan.numbered
    key = []
    for index, column in enumerate(plan.table.key_columns):
        key.append(replace(column, name=_column(own, index), key=index + 1))
    pairs = zip(plan.children, others, strict=True)
    children = tuple([_child(child.child, numbered) for child, numbered in pairs])
    table = replace(
        plan.table,
        name=_table(own),
        schema=SCHEMA,
        columns=tuple(key),
        children=children,
    )
    bridge = TriggerPlan(
        table=table,
        options=replace(plan.options, style=Style.ROW_BACK, columns=(), exclude=()),
        watched=(),
        children=tuple([ChildPlan(child=child, watched=()) for child in children]),
        others=bool(plan.options.exclude),
    )
    if plan.options.style != Style.ROW_BACK and not (plan.children or plan.looks_back):
        bridge = replace(bridge, listed=plan.options.style)
    return bridge


def _child(child: Child, numbered: Numbered) -> Child:
    by_name = {column.name: column for column in child.columns}
    names = tuple([_column(numbered, index) for index in range(len(child.parent_key))])
    held = zip(child.parent_key, names, strict=True)
    columns = [replace(by_name[former], name=name) for former, name in held]
    return Child(name=_table(numbered), parent_key=names, columns=tuple(columns))


def bridge_comment(bridge: Bridge, this: Numbered, own: Numbered) -> str:
    """A comment that the event trigger reads: what to watch, how that looks now, and the bridge."""
    # By their numbers, so that a class's own table, which is both, is listed once.
    tables = {this.number: this, own.number: own}.values()
    keys = [[table.number, number, kind] for table in tables for number, kind in table.keys]
    # Base64, for the bridge holds a function's text, which may end a comment.
    content = b64encode(msgspec.json.encode({"keys": keys, **msgspec.to_builtins(bridge)})).decode()
    return f"/* eventlog ddl {this.watch} {this.shape} {content} */"


def watching(
    this: int,
    numbers: Sequence[int] | None,
    own: int | None = None,
    key: Sequence[int] = (),
    looked_at: Sequence[tuple[int, Sequence[int]]] = (),
) -> str:
    """What to watch of a trigger's own table, all of it or some columns, and of the parent of a
    child table its key.

    `looked_at` are tables with columns that the trigger asks for, and that may go: the bridge asks
    for none of them.
    """
    # None stays None: all of the table is watched.
    watch: list[list[object]] = [[this, numbers and sorted(numbers)]]
    if own is not None:
        watch.append([own, sorted(key)])
    watch += [[other, sorted(columns), True] for other, columns in looked_at]
    return msgspec.json.encode(watch).decode()


def _table(numbered: Numbered) -> str:
    return f"eventlog{{{numbered.number}}}"


def _column(numbered: Numbered, index: int) -> str:
    return f"eventlog{{{numbered.number}.{numbered.keys[index][0]}}}"
