"""The least rights of three roles: who installs, who writes, who publishes; as statements, run or
printed.

Those that were not there before are kept in the registry, so that they can be taken back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from eventlog.capture.class_selection import resolve_table_names
from eventlog.capture.given_rights import RoleStatement, account, give, list_kept_grants, quote_role, taking_back
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.schema import Table
from eventlog.core.table_names import write_name
from eventlog.sql.access import answers
from eventlog.sql.dialect import Dialect, dialect_of, log_holes, offers, statement
from eventlog.sql.findlog import has_log, locate_log, with_schema
from eventlog.sql.names import LogNames, no_log
from eventlog.sql.reflect import Classes
from eventlog.tracked.classes import list_tracked
from eventlog.tracked.registry import has_registry


class Roles(Struct, frozen=True, kw_only=True):
    """Who does what; a role that is not named is left alone."""

    installer: str | None = None
    writer: str | None = None
    publisher: str | None = None
    reader: str | None = None


class CapturedTable(Struct, frozen=True, kw_only=True):
    """A captured table, view or child table, and who owns it where tables have owners.

    `power` says what a member of the owner's role could do besides, in words; None where that is
    nothing. `columns` are those that are captured, where others are left out.
    """

    schema: str | None
    name: str
    columns: tuple[str, ...] = ()
    owner: str | None = None
    power: str | None = None

    @property
    def whole(self) -> str:
        return write_name(self.schema, self.name)


class RightsScope(Struct, frozen=True, kw_only=True):
    """What rights are about: the log, whether it is there already, the captured tables, and what
    was given before.

    `registry` is a table whose owner is the log's, and `functions` are what its triggers run. With
    `read_apart` another login than the publisher's reads captured tables.
    """

    names: LogNames
    existing: bool
    tables: tuple[CapturedTable, ...]
    registry: CapturedTable | None = None
    functions: tuple[str, ...] = ()
    read_apart: bool = False
    given: frozenset[str] = frozenset()


def rights_script(statements: Sequence[RoleStatement]) -> str:
    """Write the statements as a script.

    Statements about a log still to come stand behind a line that says so.
    """
    lines = [f"{written.sql};\n" for written in statements if not written.later]
    later = [f"{written.sql};\n" for written in statements if written.later]
    if later:
        lines += ["-- After `eventlog install`:\n", *later]
    return "".join(lines)


def give_rights(
    engine: Engine,
    roles: Roles,
    names: LogNames | None = None,
    tables: Sequence[str] = (),
    schema: str | None = None,
    *,
    read_apart: bool = False,
    dry: bool = False,
) -> list[RoleStatement]:
    """Grant the roles their rights and return the statements; raise InstallError if the writer
    still reaches the log. With `dry` only plan them, those for a log still to be created too.

    Tables are names or patterns, by default the tracked ones; `read_apart` is for a separate reader
    at work whom nobody names.
    """
    with engine.begin() as connection:
        site = _describe_site(connection, roles, names, tables, schema, read_apart=read_apart)
        done = list(rights(dialect_of(connection), roles, site))
        if dry:
            return done
        if any(written.later for written in done):
            raise no_log(names or LogNames())
        for named in filter(None, (roles.installer, roles.writer, roles.publisher, roles.reader)):
            if answers(connection, "no_role", {"role": named}):
                message = f"There is no role {named} on this server."
                raise UsageError(message, hint="Create it first; eventlog makes none.")
        give(connection, site.names, done)
    # What a role has by a membership or a grant of somebody else is seen only when the statements
    # have run.
    with engine.connect() as connection:
        for called, role in (("writer", roles.writer), ("reader", roles.reader)):
            for table in (site.names.table, *site.names.beside):
                if role is not None and (reached := list_held_rights(connection, site.names, table, role)):
                    held = f"may still {', '.join(reached)} on {table}"
                    raise InstallError(
                        f"The {called} {role} {held}, by a role, an ownership or a wider grant.",
                        hint="Take that from it, or give the log a schema or database of its own.",
                    )
    return done


def rights(dialect: Dialect, roles: Roles, site: RightsScope) -> Iterator[RoleStatement]:
    """Yield the statements for the least rights these roles need."""
    if dialect.embedded:
        message = f"{dialect.name} has no roles: a user who can write the file can do everything."
        raise UsageError(message, hint="Set the file's owner and mode.")
    if roles == Roles():
        parts = "--installer, --writer, --publisher and --reader"
        raise UsageError(f"Whose rights? Name one or more of {parts}.")
    named = {part: role for part in Roles.__struct_fields__ if (role := getattr(roles, part)) is not None}
    _refuse_names(dialect, named)
    grants = _Grants(dialect=dialect, site=site)
    for part, role in named.items():
        later = not site.existing and part != "installer"
        # Its methods are called as the fields of Roles.
        for sql in filter(None, getattr(grants, part)(role)):
            yield RoleStatement(part=part, role=role, sql=sql, later=later)


def _refuse_names(dialect: Dialect, named: Mapping[str, str]) -> None:
    """Refuse a name that means everybody, or a role with another part's forbidden rights."""
    for part, role in named.items():
        user, _ = account(dialect, role)
        if not user.strip() or user.casefold() in EVERYBODY:
            raise UsageError(f"--{part} {role!r} means everybody, or nobody.", hint="Name one role.")
    without_rights = {named.get(part) for part in ("writer", "reader")} - {None}
    with_rights = {named.get(part) for part in ("installer", "publisher")}
    if both := without_rights & with_rights:
        apart = "who writes or reads captured tables has no right on the log"
        message = f"{both.pop()} cannot be two parts: {apart}."
        raise UsageError(message, hint="Name one role for each part.")


def list_held_rights(connection: Connection, names: LogNames, table: str, role: str) -> list[str]:
    """List a role's rights on a table beside the log, however it came by them."""
    dialect = dialect_of(connection)
    user, host = account(dialect, role)
    asked = {
        "place": dialect.qualify(names.schema, table),
        "schema": names.schema and dialect.report_name(names.schema),
        "table": dialect.report_name(table),
        "role": dialect.report_name(user),
        "host": host,
    }
    try:
        # In PostgreSQL an error would end the whole transaction without a savepoint.
        with connection.begin_nested():
            rights = answers(connection, "held_rights", asked)
    except SQLAlchemyError:
        # Who may not read the lists of all rights sees those on their own tables in another view.
        if not offers(dialect, "held_rights_seen"):
            raise
        rights = answers(connection, "held_rights_seen", asked)
    return [str(right) for (right,) in rights]


Place = Mapping[str, str]
"""What a right is on: the holes of a statement."""


class _Grants(Struct, frozen=True, kw_only=True):
    """Writes statements for one database and one site. A database has a query for each thing on which a
    part needs a right there, and none where it needs nothing.
    """

    dialect: Dialect
    site: RightsScope

    def installer(self, role: str) -> Iterator[str]:
        site, names, registry = self.site, self.site.names, self.site.registry
        self._refuse_powers(role)
        # Nobody but its owner writes the registry.
        takes_over = registry is not None and registry.power is not None and registry.owner != role
        owned = site.tables if registry is None or takes_over else (registry, *site.tables)
        yield from self._write(
            "installer",
            role,
            schema=self._schemas([names.schema]),
            # Also those that an upgrade will make.
            log=self._tables([names.table, *names.beside]),
            standing_log=self._tables([names.table] if site.existing else []),
            place=self._schemas(self._foreign()),
            registry=self._tables(sorted(names.owners) if takes_over else []),
            function=[{"function": self.dialect.qualify(names.schema, name)} for name in site.functions if takes_over],
            table=[self._captured(table) for table in owned if table.owner != role],
            sequence=self._sequence(),
        )
        owners = [table.owner for table in site.tables if table.owner not in (None, role)]
        for owner in dict.fromkeys(owners):
            # A trigger's function writes with the rights of its table's owner.
            quoted = self.dialect.quote(str(owner))
            log, sequence = self._tables([names.table], owner=quoted), self._sequence(owner=quoted)
            yield from self._write("owner", role, log=log, sequence=sequence)

    def writer(self, role: str) -> Iterator[str]:
        names = self.site.names
        yield from self._write("writer", role, log=self._tables([names.table, *names.beside]))

    def publisher(self, role: str) -> Iterator[str]:
        names = self.site.names
        status = self.dialect.quote(names.column("status"))
        yield from self._write(
            "publisher",
            role,
            schema=self._schemas([names.schema]),
            log=self._tables([names.table], status=status),
            registry=self._tables(name for name in names.beside if name in names.owners),
            companion=self._tables(name for name in names.beside if name not in names.owners),
        )
        # Where somebody else reads, what was given before for that is taken back.
        reads = not (self.site.read_apart and self.dialect.open_catalog)
        yield from self._reads(role, self._foreign() if reads else (), reads=reads)

    def reader(self, role: str) -> Iterator[str]:
        # It has no right on the log: what the owners of captured tables bring along runs with the
        # reader's rights.
        yield from self.writer(role)
        yield from self._reads(role, dict.fromkeys(captured.schema for captured in self.site.tables))

    def _refuse_powers(self, role: str) -> None:
        """Refuses to make an installer a member of a role that may do more than own tables."""
        powerful = [captured for captured in self.site.tables if captured.power is not None and captured.owner != role]
        if not powerful:
            return
        owner, power = powerful[0].owner, powerful[0].power
        tables = [captured.whole for captured in powerful if captured.owner == owner]
        listed = ", ".join(tables[:MOST_SHOWN_TABLES])
        if len(tables) > MOST_SHOWN_TABLES:
            listed += f" and {len(tables) - MOST_SHOWN_TABLES} more"
        first = tables[0]
        own = f"Let a plain role own the table (ALTER TABLE {first} OWNER TO ROLE)"
        printed = f"let {owner} run what `eventlog track {first} --sql` prints"
        itself = f"run `eventlog install` and `eventlog track` as {owner}"
        raise InstallError(
            f"{role} would become a member of {owner}, which owns {listed} and {power}.",
            hint=f"{own}, {printed}, or {itself}.",
        )

    def _reads(self, role: str, schemas: Iterable[str | None], *, reads: bool = True) -> Iterator[str]:
        """Let a role read captured tables, or no more."""
        yield from self._write("publisher", role, place=self._schemas(schemas))
        # Nobody can be given himself.
        tables = [self._captured(captured) for captured in self.site.tables if captured.owner != role]
        for sql in self._write("publisher", role, table=tables):
            _, _, place = sql.partition(" ON ")
            # Former grants on the same table to the same role may cover columns now left out.
            for grant in sorted(self.site.given):
                is_former = grant.startswith("GRANT SELECT") and grant.endswith(f" ON {place}")
                if is_former and (grant != sql or not reads):
                    yield taking_back(grant) or ""
            if reads:
                yield sql

    def _foreign(self) -> Iterable[str | None]:
        """Return the schemas of captured tables other than the log's."""
        schemas = [captured.schema for captured in self.site.tables]
        return dict.fromkeys(schema for schema in schemas if schema != self.site.names.schema)

    def _schemas(self, schemas: Iterable[str | None]) -> list[Place]:
        return [{"schema": self.dialect.quote(schema or "")} for schema in schemas]

    def _tables(self, tables: Iterable[str], **holes: str) -> list[Place]:
        """List tables of the log."""
        return [{"table": self.dialect.qualify(self.site.names.schema, table), **holes} for table in tables]

    def _sequence(self, **holes: str) -> list[Place]:
        """List the sequence of the log's numbers, if any: writers of rows need it beside the log."""
        names = self.site.names
        return [{"sequence": self.dialect.qualify(names.schema, names.sequence), **holes}] if names.sequence else []

    def _captured(self, captured: CapturedTable) -> Place:
        columns = ""
        if captured.columns:
            named = ", ".join(map(self.dialect.quote, captured.columns))
            columns = f" {statement(self.dialect, 'columns_read', names=named)}"
        table = self.dialect.qualify(captured.schema, captured.name)
        return {"table": table, "owner": self.dialect.quote(captured.owner or ""), "columns": columns}

    def _write(self, part: str, role: str, **things: Iterable[Place]) -> Iterator[str]:
        """Write what a part needs on each of these things, once where several places need the same."""
        quoted = quote_role(self.dialect, role)
        for thing, places in things.items():
            query = f"{part}_on_{thing}"
            texts = dict.fromkeys(statement(self.dialect, query, **place, role=quoted) for place in places)
            yield from filter(None, texts)


def _describe_site(
    connection: Connection,
    roles: Roles,
    names: LogNames | None,
    tables: Sequence[str],
    schema: str | None,
    *,
    read_apart: bool,
) -> RightsScope:
    """Describe the site as it is now."""
    log = with_schema(connection, names or LogNames())
    existing = has_log(connection, log)
    # The columns of a log are looked at by whoever publishes; for making one there are none yet.
    if existing and roles != Roles(installer=roles.installer):
        log = locate_log(connection, log)
    classes: Iterable[Table] = list_tracked(connection, log) if existing else ()
    if tables:
        # A tracked class has all its child tables.
        known, found = {table.whole: table for table in classes}, Classes(connection, schema)
        children = {child.name for table in classes for child in table.children}
        meant = found.find_named(resolve_table_names(found, tables, log, children, lambda _note: None))
        classes = [known.get(table.whole, table) for table in meant]
    owners = _TableOwners(connection)
    captured = [owners.describe(*one) for table in classes for one in _list_captured_tables(table)]
    registry, functions = None, list[str]()
    if existing and has_registry(connection, log):
        registry = owners.describe(log.schema, log.registry["triggers"])
        rows = answers(connection, "registry_functions", **log_holes(dialect_of(connection), log))
        functions = [str(name) for (name,) in rows]
    return RightsScope(
        names=log,
        existing=existing,
        tables=tuple(captured),
        registry=registry,
        functions=tuple(functions),
        read_apart=read_apart or roles.reader is not None,
        given=frozenset(list_kept_grants(connection, log)) if existing else frozenset(),
    )


def _list_captured_tables(table: Table) -> Iterator[tuple[str | None, str, tuple[str, ...]]]:
    """List schema and name of a class's tables, and their captured columns where others are left out."""
    # Where columns are left out, no other may be read: the server keeps them back too.
    limited = {attribute.child for attribute in table.left_out}
    own = tuple(column.name for column in table.columns if not column.formula) if None in limited else ()
    yield table.schema, table.name, own
    for child in table.children:
        columns = tuple(column.name for column in child.columns) if child.name in limited else ()
        yield table.schema, child.name, columns


class _TableOwners:
    """Finds who owns a table, and asks once for each role what else it may do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._dialect = dialect_of(connection)
        self._powers: dict[str, str | None] = {}

    def describe(self, schema: str | None, name: str, columns: tuple[str, ...] = ()) -> CapturedTable:
        owner = self._find_owner(schema, name)
        if owner is not None and owner not in self._powers:
            # What a member of this role could do besides, in words.
            worst = next(iter(answers(self._connection, "role_powers", {"role": owner})), None)
            self._powers[owner] = None if worst is None else worst.power
            if worst is not None and worst.role != owner:
                self._powers[owner] = f"is a member of {worst.role}, which {worst.power}"
        power = None if owner is None else self._powers[owner]
        return CapturedTable(schema=schema, name=name, columns=columns, owner=owner, power=power)

    def _find_owner(self, schema: str | None, name: str) -> str | None:
        if not offers(self._dialect, "table_owner"):
            # A user's schema belongs to that user there.
            return schema if self._dialect.schemas else None
        place = {"place": self._dialect.qualify(schema, name)}
        return next((str(owner) for (owner,) in answers(self._connection, "table_owner", place)), None)


EVERYBODY: Final = frozenset({"public", "none"})
"""Names that mean everybody, in quotes too, and one that PostgreSQL takes for nobody."""

MOST_SHOWN_TABLES: Final = 5
