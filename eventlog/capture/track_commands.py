"""`eventlog track`, `untrack`, `triggers`, `catalog`: what is captured, and whether it still is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from eventlog.capture.install_commands import note_aside, sql_option
from eventlog.cli.asking import agree, asking_options
from eventlog.cli.show import say, show_json, show_table
from eventlog.cli.site import Site, complete_tables, json_option, site_options
from eventlog.core.plural import count_words

if TYPE_CHECKING:
    from eventlog.capture.installed import TriggerState

Command = TypeVar("Command", bound=Callable[..., Any])


def _names(
    _context: click.Context,
    _parameter: click.Parameter,
    values: tuple[str, ...],
) -> tuple[str, ...] | None:
    """Read names given one by one or with commas between them; None where the option is not given."""
    # An empty text is no name: it takes the former names of a table away.
    if not values:
        return None
    names = [name.strip() for value in values for name in value.split(",")]
    return tuple(filter(None, names))


def _names_option(flag: str, metavar: str, text: str, *names: str) -> Callable[[Command], Command]:
    return click.option(flag, *names, multiple=True, callback=_names, metavar=metavar, help=text)


def _add_kept_flag(flag: str, text: str, *names: str) -> Callable[[Command], Command]:
    """Make a flag that is None unless given: then a table keeps its option."""
    return click.option(flag, *names, is_flag=True, default=None, help=text)


@click.command()
@click.argument("tables", nargs=-1, shell_complete=complete_tables)
@click.option("--all", "every", is_flag=True, help="Every table of the schema that has a key.")
@click.option(
    "--events",
    "style",
    type=click.Choice(["row-back", "field", "field-replace", "field-back", "image"]),
    help="How a change is logged: as a row to read back (default), as fields, or as the whole row.",
)
@_names_option("--columns", "A,B", "Only these columns.")
@_names_option("--exclude", "C", "All columns but these.")
@_names_option("--child", "TABLE", "A child table with a key.", "children")
@_names_option("--key", "A,B", "The columns that identify a row; default: its key.")
@click.option(
    "--whole-row",
    is_flag=True,
    help="For tables without a key: the whole row is the key.",
)
@click.option(
    "--when",
    metavar="CONDITION",
    help="Only rows for which this SQL condition holds, before or after.",
)
@_add_kept_flag("--row-triggers", "Row triggers where statement triggers are the default.", "rows")
@_add_kept_flag("--always", "Fire for replicated changes too (PostgreSQL).")
@_add_kept_flag("--follow-ddl", "Let the database follow ALTER TABLE itself (PostgreSQL).")
@click.option("--reset", is_flag=True, help="Forget the former options.")
@sql_option
@json_option
@site_options
def track(
    site: Site,
    tables: tuple[str, ...],
    every: bool,
    style: str | None,
    whole_row: bool,
    sql: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Creates or replaces the triggers of tables and views. Child tables are captured with them.

    A table keeps its options: give only what should change, or --reset. An empty text removes
    an option: --exclude "". TABLES may be patterns, such as 'app.*'; a table of a pattern that
    cannot be tracked is left out, and the exit code is 78.

    Example: eventlog track usr grp --events field
    """
    from eventlog.capture.table_locks import say_once, try_while_in_use
    from eventlog.capture.track import track as make
    from eventlog.capture.track import track_sql
    from eventlog.core.errors import EX_CONFIG, OK, UsageError
    from eventlog.core.schema import WHOLE_ROW
    from eventlog.tracked.options import Style, TrackRequest

    if every and tables:
        raise UsageError("--all means every table of the schema; leave out the names, or --all.")
    if not (every or tables):
        raise click.MissingParameter(param_hint="'TABLES...'", param_type="argument")
    if whole_row:
        if asked["key"]:
            raise UsageError("--whole-row is for tables that have no key; leave it out, or --key.")
        asked["key"] = (WHOLE_ROW,)
    request = TrackRequest(style=None if style is None else Style(style), **asked)
    engine = site.engine()
    # A pattern: what of it cannot be tracked is left out and reported, and not refused.
    wanted = ("*",) if every else tables
    left_out: list[str] = []

    def leave_out(text: str) -> None:
        left_out.append(text)
        note_aside(text)

    names = site.names(engine)
    if sql:
        script = track_sql(engine, wanted, request, names, site.schema, note_aside, leave_out)
        click.echo(script, nl=False)
        return EX_CONFIG if left_out else OK
    note, leave = say_once(note_aside), say_once(leave_out)
    made = try_while_in_use(lambda: make(engine, wanted, request, names, site.schema, note, leave), engine, note_aside)
    if as_json:
        show_json(made)
    else:
        for trigger in made:
            say(f"{trigger.state} {trigger.name} on {trigger.place}")
    _advise(site, made, as_json=as_json)
    return EX_CONFIG if left_out else OK


def _advise(site: Site, made: Sequence[TriggerState], *, as_json: bool) -> None:
    """Print the style an output asks for, and users whose changes will not be published."""
    from eventlog.sql.connect import read_url
    from eventlog.sql.dialect import dialect_of

    config = site.config
    # XDS reads back what it needs.
    if any(output.format != "xds" for output in config.output):
        for owner in dict.fromkeys(trigger.owner for trigger in made if trigger.style != "image"):
            need = f"{owner}: change tables and messages need --events image"
            note_aside(f"{need}; without it, the rows before a change are missing.")
    # With --database somebody else is connected: the publisher is whom the file names.
    is_somebody_else = site.database is not None and site.file is not None
    if as_json or is_somebody_else or config.source.user or config.publisher.allow_loopback:
        return
    user = read_url(site.url).username
    if user and not dialect_of(site.url).embedded:
        # The first commands of a set-up run as the installer, whom the publisher need not be.
        effect = f"does not publish what {user} changes"
        note_aside(f"A publisher that connects as {user}, as this command does, {effect}: `eventlog check` says more.")


@click.command()
@click.argument("tables", nargs=-1, required=True, shell_complete=complete_tables)
@asking_options
@json_option
@site_options
def untrack(site: Site, tables: tuple[str, ...], dry: bool, yes: bool, as_json: bool) -> None:
    """Removes the triggers of tables and views. TABLES may be patterns, such as 'app.*'. It asks
    before.

    Example: eventlog untrack usr --yes
    """
    from eventlog.capture.table_locks import say_once, try_while_in_use
    from eventlog.capture.track import untrack as take_off

    def agree_to_untrack(names: list[str]) -> bool:
        heading = f"{count_words(len(names), 'trigger')} would be removed:"
        if not dry:
            agree([heading, *[f"  {name}" for name in names]], yes=yes)
        return not dry

    engine = site.engine()
    names, agree_once = site.names(engine), say_once(agree_to_untrack)
    removed = try_while_in_use(
        lambda: take_off(engine, tables, names, site.schema, agree=agree_once), engine, note_aside
    )
    if as_json:
        show_json({"would_remove" if dry else "removed": removed})
        return
    done = "would be removed:" if dry else "removed"
    for name in removed:
        say(f"{done} {name}")


@click.command()
@json_option
@site_options
def triggers(site: Site, as_json: bool) -> None:
    """Lists the log's triggers with their state and the options of their tables.

    Example: eventlog triggers
    """
    from eventlog.capture.track import trigger_states

    engine = site.engine()
    states = trigger_states(engine, site.names(engine))
    if as_json:
        show_json(states)
        return
    rows = []
    for trigger in states:
        where = (trigger.name, trigger.state, trigger.place, trigger.owner)
        rows.append((*where, trigger.asked, trigger.note))
    show_table(
        ("trigger", "state", "table", "of", "tracked with", "note"),
        rows,
        empty="No table is tracked; `eventlog track TABLE` begins.",
    )


@click.command()
@click.argument("tables", nargs=-1, shell_complete=complete_tables)
@click.option(
    "--history",
    is_flag=True,
    help="Every version of the tables, and what changed.",
)
@click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    help="Report as JSON, which it always is.",
)
@site_options
def catalog(site: Site, tables: tuple[str, ...], history: bool) -> None:
    """Prints the schema of tables as JSON: the schema.json that `convert` takes.

    Without names, the tracked tables, with the columns and names that they had when older rows were
    written.

    Example: eventlog catalog > schema.json
    """
    from eventlog.config.build import with_definitions
    from eventlog.core.schema import Catalog
    from eventlog.core.schema_file import catalog_to_json
    from eventlog.sql.dialect import dialect_of
    from eventlog.sql.findlog import with_schema
    from eventlog.sql.reflect import reflect
    from eventlog.tracked.classes import list_tracked

    engine = site.engine()
    if history:
        from eventlog.capture.installed import history as versions

        show_json(versions(engine, site.names(engine), tables))
        return
    if tables:
        described = reflect(engine, tables, site.schema)
    else:
        names = site.names(engine)
        with engine.connect() as connection:
            classes = list_tracked(connection, with_schema(connection, names))
        today = Catalog(classes, case_sensitive=dialect_of(engine).case_sensitive)
        described = with_definitions(engine, names, today)
    click.echo(catalog_to_json(described).decode())
