"""The follower: event triggers by which PostgreSQL keeps the triggers of a table working when somebody
alters it, in the same transaction.

It never fails anybody's DDL or writes. It renders functions from templates in its own body, which log
what the class's style says, or, of a class with children, rows to be read back by their key. Its
function runs as a superuser, so what it reads must be nobody's who could log in (decision 27).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection

from eventlog.capture.bodies import list_values
from eventlog.capture.column_sql import row_holes
from eventlog.core.errors import InstallError
from eventlog.sql.access import answers, is_denied
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement
from eventlog.sql.names import LogNames

SCHEMA: Final = "eventlog_ddl"
"""Where the follower's functions stand, and nobody else may create."""
FOLLOWED: Final = "followed"
"""The digest of a trigger whose function the follower made: it waits for `eventlog track`."""
EVENTS: Final = {"altered": "ddl_command_end", "dropped": "sql_drop"}
"""When each of the event triggers fires."""


class Follower(Struct, frozen=True, kw_only=True):
    """The event triggers of a log as the database tells of them; `current` says whether they would
    be made so today.
    """

    enabled: bool
    current: bool
    owner: str
    mine: bool


def read_follower(connection: Connection, names: LogNames) -> Follower | None:
    """Read the state of a log's follower; None if there is none. `names` need the schema."""
    dialect = dialect_of(connection)
    rows = answers(connection, "standing_follower", _name_parts(dialect, names))
    if not rows:
        return None
    function, follow = _write_functions(dialect, names)
    # The database keeps a function's body alone, which is a part of the statement.
    current = len(rows) == len(EVENTS)
    for row in rows:
        current = current and row.whole and row.source.strip() in function
        current = current and row.follow is not None and row.follow.strip() in follow
    return Follower(
        enabled=all(row.enabled for row in rows),
        current=bool(current),
        owner=rows[0].owner,
        mine=all(row.mine for row in rows),
    )


def write_follower(connection: Connection, names: LogNames, *, followed: bool) -> Iterator[str]:
    """Write the statements that make or remove a log's follower, as its tables require."""
    if not followed:
        yield from drop_follower(connection, names)
        return
    refuse_unsafe_owner(connection, names)
    existing = read_follower(connection, names)
    if existing is not None and not existing.mine:
        # It runs as its owner, and its functions are not ours to replace.
        follower = f"an event trigger of {existing.owner}, which only that role may change"
        raise InstallError(
            f"ALTER TABLE is followed by {follower}.",
            hint=f"Run this as {existing.owner}, or leave out --follow-ddl.",
        )
    if existing is not None and existing.current and existing.enabled:
        return
    dialect, holes = dialect_of(connection), _holes(dialect_of(connection), names)
    if existing is not None:
        yield from _drop_event_triggers(dialect, names)
    yield statement(dialect, "follower_schema")
    yield from reversed(_write_functions(dialect, names))
    for trigger, event in EVENTS.items():
        yield statement(dialect, "follower_trigger", trigger=holes[trigger], event=event, function=holes["function"])


def drop_follower(connection: Connection, names: LogNames) -> list[str]:
    """Write the statements removing a log's follower; none if there is none."""
    if read_follower(connection, names) is None:
        return []
    dialect, holes = dialect_of(connection), _holes(dialect_of(connection), names)
    queries = ("drop_follower_functions", "drop_follower_schema")
    return [*_drop_event_triggers(dialect, names), *(statement(dialect, query, **holes) for query in queries)]


def _drop_event_triggers(dialect: Dialect, names: LogNames) -> Iterator[str]:
    for trigger in EVENTS:
        yield statement(dialect, "drop_follower_trigger", trigger=_holes(dialect, names)[trigger])


def refuse_unsafe_owner(connection: Connection, names: LogNames) -> None:
    """Refuse to follow DDL if the log's registry belongs to a login without superuser's rights.

    The follower runs in everybody's DDL with a superuser's rights, and reads the registry.
    """
    for (role,) in answers(connection, "unsafe_owner", **log_holes(dialect_of(connection), names)):
        message = f"{role}, which is no superuser, owns the registry of {names.whole} or may become its owner"
        raise InstallError(
            f"{message}: what follows everybody's DDL with a superuser's rights would read it.",
            hint="Install the log as a superuser, or leave out --follow-ddl and set publisher.follow = true.",
        )


def explain_refusal(dialect: Dialect, sql: str, error: BaseException | None) -> InstallError | None:
    """Explain a refusal to make the follower itself, with a remedy."""
    is_follower = sql.startswith(("CREATE EVENT TRIGGER", "CREATE SCHEMA IF NOT EXISTS eventlog_ddl"))
    if not (is_follower and is_denied(dialect, error)):
        return None
    message = "Only a superuser may make the event trigger that follows ALTER TABLE."
    hint = "Run this as one, or leave out --follow-ddl and set publisher.follow = true."
    return InstallError(message, hint=hint)


def name_follower(dialect: Dialect, names: LogNames) -> str:
    """Name the first event trigger of a log; a database has one list of them, whatever the schema."""
    return _name_parts(dialect, names)["altered"]


def _name_parts(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """Name the event triggers and functions of a log."""
    own = "_".join(filter(None, (names.schema, names.table)))
    # Room for an ending, so that two logs never share a function.
    function = dialect.shorten_name(f"{own}_follow").removesuffix("_follow")
    return {
        "altered": dialect.shorten_name(f"eventlog_{own}_ddl"),
        "dropped": dialect.shorten_name(f"eventlog_{own}_drop"),
        "function": function,
        "follow": f"{function}_follow",
    }


def _holes(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """Write the names as SQL does."""
    parts = _name_parts(dialect, names).items()
    return {part: dialect.qualify(None if part in EVENTS else SCHEMA, name) for part, name in parts}


def _write_functions(dialect: Dialect, names: LogNames) -> tuple[str, str]:
    """Write the functions run by event triggers: the common one and the one for a class."""
    if not offers(dialect, "follower_function"):
        return "", ""
    log, own = log_holes(dialect, names), _holes(dialect, names)
    record_id = dialect.literal(names.column("record_id"))
    place = dialect.literal(dialect.qualify(names.schema, names.table))
    number = statement(dialect, "next_of_identity", log_name=place, column_name=record_id)
    if names.sequence and dialect.ddl.next_number is not None:
        number = dialect.ddl.next_number.format(sequence=dialect.qualify(names.schema, names.sequence))
    follow = statement(
        dialect,
        "follow_function",
        **log,
        **own,
        **_templates(dialect, names),
        schema_name=dialect.literal(names.schema or ""),
        ancestors=statement(dialect, "ancestors_add", **log, **{"class": "class"}),
        numbers=statement(dialect, "numbers_of"),
        next=number,
    )
    return statement(dialect, "follower_function", **log, **own), follow


_FIRST: Final = "eventlog\x01"
_SECOND: Final = "eventlog\x02"
_CHANGE: Final = {"key": "key", "kind": "kind", "column": "name", "old": "was", "new": "becomes"}
"""What the follower's queries call the parts of a row of the log."""


def _templates(dialect: Dialect, names: LogNames) -> dict[str, str]:
    """Write the templates of a function's parts, each a text for format()."""
    kinds = ("string", "octet", "state", "money", "char", "date", "timestamp", "zoned")
    forms = {f"{kind}_text": statement(dialect, f"text_of_{kind}", value=_FIRST) for kind in kinds}
    forms["made_text"] = statement(dialect, "made_type", value=_FIRST)
    forms["domain_text"] = statement(dialect, "made_domain", value=_FIRST, type=_SECOND)
    forms["guard_row"] = statement(dialect, "guard_row", types=f"({_FIRST})")
    forms["guard_rows"] = statement(dialect, "guard_rows", types=f"({_FIRST})", source=_SECOND)
    forms["quoted"] = statement(dialect, "quoted", text=_FIRST)
    log = log_holes(dialect, names) | row_holes(dialect, names)
    change = {hole: f"change.{name}" for hole, name in _CHANGE.items()}
    changes = f"({_FIRST}) AS change ({', '.join(_CHANGE.values())})"
    row = {"key": change["key"], "kind": change["kind"], **list_values(log, change)}
    forms["write"] = statement(dialect, "log_rows", **log, **row, table=_SECOND, source=changes)
    forms["hand"] = statement(dialect, "follower_hand", changes=_FIRST, called=_SECOND)
    forms["take"] = statement(dialect, "take_facts", **log, table=_FIRST)
    for name, text in forms.items():
        forms[name] = dialect.literal(text.replace("%", "%%").replace(_FIRST, "%1$s").replace(_SECOND, "%2$s"))
    return forms
