"""`eventlog install`, `upgrade`, `uninstall`, `rights`: the log and its companions, by migration,
and who may do what.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from eventlog.cli.asking import agree, asking_options
from eventlog.cli.show import say, show_done, show_json
from eventlog.cli.site import Site, complete_tables, json_option, number_option, site_options
from eventlog.core.errors import InstallError, UsageError
from eventlog.core.secrets import make_readable

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from eventlog.capture.install import Leaving, MigrationPlan
    from eventlog.sql.names import LogNames


sql_option = click.option("--sql", is_flag=True, help="Only print the statements for a DBA.")


@click.command()
@click.option(
    "--columns",
    type=click.Choice(["new", "old"]),
    help="Column order; default: the one of source.columns, else new.",
)
@click.option(
    "--tablespace",
    metavar="NAME",
    help="Where to put the tables of a new log (Oracle).",
)
@number_option("--partition-rows", "Rows of each partition of a new log (Oracle).", least=1000)
@sql_option
@json_option
@site_options
def install(
    site: Site,
    columns: str | None,
    tablespace: str | None,
    partition_rows: int | None,
    sql: bool,
    as_json: bool,
) -> None:
    """Creates the event log table and its state tables.

    An existing log is adopted as it is.

    Example: eventlog install

    Example for a DBA: eventlog install --database oracle:// --sql
    """
    from eventlog.capture.install import find_other_owner, install_sql, is_adopted
    from eventlog.capture.install import install as put_there
    from eventlog.capture.log_tables import UNSAID, Storage, order_wanted

    storage = Storage(tablespace=tablespace, partition_rows=partition_rows)
    asked = site.config.source.columns
    order = order_wanted(asked, columns)
    if sql:
        click.echo(install_sql(site.url, site.wanted_names, order, asked, storage), nl=False)
        return
    engine = site.engine(may_create=True)
    is_new = put_there(engine, site.wanted_names, order, asked, storage)
    if (owner := None if is_new else find_other_owner(engine, site.wanted_names)) is not None:
        say(f"The log was there before and belongs to {owner}, who decides what it tracks and publishes.", err=True)
    if storage != UNSAID and not is_new:
        what = "The log was there before and is not moved"
        say(f"{what}: --tablespace counts only for its missing tables.", err=True)
    state = "is installed"
    if not is_new and is_adopted(engine, site.wanted_names):
        state = (
            "was there before and is adopted: its table stays as it is, and eventlog's own tables are beside it."
            " `eventlog check` tries whether it can be read and marked"
        )
    _say_done("installed", site, state, as_json=as_json)


@click.command()
@click.option(
    "--to",
    metavar="MIGRATION",
    help="Another migration, such as the one that an older eventlog needs.",
)
@asking_options
@sql_option
@json_option
@site_options
def upgrade(site: Site, to: str | None, dry: bool, yes: bool, sql: bool, as_json: bool) -> None:
    """Brings an installed log to this version of eventlog, or back to an earlier one.

    Example: eventlog upgrade

    Example, before an older eventlog is installed again: eventlog upgrade --to 0001 --yes
    """
    from eventlog.capture.install import upgrade as bring_up
    from eventlog.capture.install import upgrade_sql
    from eventlog.capture.table_locks import say_once, try_while_in_use

    engine = site.engine()
    if sql:
        click.echo(upgrade_sql(engine, site.wanted_names, to), nl=False)
        return

    def agree_to_plan(plan: MigrationPlan) -> bool:
        if dry and as_json:
            show_json({"would_upgrade": {"from": plan.existing, "to": plan.goal}})
        elif dry:
            say(f"The log would move from migration {plan.existing} to {plan.goal}.")
        elif plan.goal < plan.existing:
            what = f"The log goes back from migration {plan.existing} to {plan.goal}"
            agree([f"{what}: what only the later ones have is lost."], yes=yes)
        return not dry

    agree_once = say_once(agree_to_plan)
    if not try_while_in_use(lambda: bring_up(engine, site.wanted_names, to, agree=agree_once), engine, note_aside):
        return
    state = "is current" if to is None else f"is at migration {to}"
    _say_done("upgraded", site, state, as_json=as_json)


@click.command()
@click.option("--purge", is_flag=True, help="Also when rows still wait; they are lost.")
@asking_options
@sql_option
@json_option
@site_options
def uninstall(site: Site, purge: bool, dry: bool, yes: bool, sql: bool, as_json: bool) -> None:
    """Removes triggers, tables and granted rights, after showing them; refuses while rows wait.

    An adopted log stays.

    Example: eventlog uninstall --yes

    Example for a DBA, without connecting: eventlog uninstall --database oracle:// --sql
    """
    from eventlog.capture.install import uninstall as take_off
    from eventlog.capture.install import uninstall_sql
    from eventlog.capture.table_locks import say_once, try_while_in_use

    if sql and not has_address(site.url):
        # Only the kind of the database is known, so nobody can ask what columns the log has.
        click.echo(uninstall_sql(site.url, site.wanted_names, purge=purge), nl=False)
        return
    engine = site.engine()
    if sql:
        click.echo(uninstall_sql(engine, _find_names(site, engine), purge=purge), nl=False)
        return
    names = _find_names(site, engine)
    agree_once = say_once(partial(_agree_to_leave, site=site, dry=dry, yes=yes, as_json=as_json))
    stayed = try_while_in_use(lambda: take_off(engine, names, purge=purge, agree=agree_once), engine, note_aside)
    if stayed is None:
        return
    for grant in stayed:
        say(f"You may not take back what was given by {grant}.", err=True)
    _say_done("uninstalled", site, "is removed", as_json=as_json)


def note_aside(text: str) -> None:
    """Print a remark beside the command's result."""
    say(text, err=True)


def _say_done(what: str, site: Site, state: str, *, as_json: bool) -> None:
    """Report the result for the log: a sentence, or the log's name in JSON."""
    log = site.config.source.log
    show_done(what, log, make_readable(f"The event log {log} {state}."), as_json=as_json)


def _find_names(site: Site, engine: Engine) -> LogNames:
    """Find the log with its columns; if it is gone already, its companions can go all the same."""
    try:
        return site.names(engine)
    except InstallError:
        return site.wanted_names


def _agree_to_leave(leaving: Leaving, *, site: Site, dry: bool, yes: bool, as_json: bool) -> bool:
    """Show the parts to remove, and ask for consent. With --dry-run that is the report itself."""
    # With --dry-run the list is what was asked for, and a pipe gets it; else it is talk.
    on_stderr = not dry or as_json
    say("This would be removed:" if dry else "This is removed:", err=on_stderr)
    for line in leaving.lines():
        say(f"  {line}", err=on_stderr)
    if dry and as_json:
        show_json({"would_uninstall": site.config.source.log, "triggers": leaving.triggers})
    if not dry:
        agree(["It cannot be restored."], yes=yes)
    return not dry


_role_option = partial(click.option, metavar="ROLE")


@click.command()
@click.argument("tables", nargs=-1, shell_complete=complete_tables)
@click.option(
    "--all",
    "every",
    is_flag=True,
    help="Every table of the schema that has a key, tracked or not.",
)
@_role_option("--installer", help="Makes the log and the triggers; before there is a log, name TABLES.")
@_role_option("--writer", help="The application: loses every right on the log, which it never needs.")
@_role_option("--publisher", help="Reads captured tables, unless a reader does; reads and marks rows of the log.")
@_role_option("--reader", help="Reads captured tables for the publisher (source.reader), and nothing else.")
@sql_option
@json_option
@site_options
def rights(
    site: Site,
    tables: tuple[str, ...],
    every: bool,
    sql: bool,
    as_json: bool,
    **named: str | None,
) -> None:
    """Grants each role the least rights. TABLES are by default the tracked ones.

    TABLES may be patterns, such as 'app.*'. With --sql all roles can be named before there is a
    log.

    Example for a DBA: eventlog rights --writer app --publisher idm --sql --database
    postgresql+psycopg://db/app
    """
    from eventlog.capture.rights import Roles, give_rights, rights_script
    from eventlog.sql.dialect import dialect_of

    if every and tables:
        raise UsageError("--all means every table of the schema; leave out the names, or --all.")
    engine, roles = site.engine(), Roles(**named)
    # A pattern, so that tables without a key are left out instead of refused.
    wanted = ("*",) if every else tables
    # Who has a reader for the tables needs no rights on them for the publisher.
    read_apart = bool(site.config.source.reader)
    names = _find_names(site, engine)
    statements = give_rights(engine, roles, names, wanted, site.schema, read_apart=read_apart, dry=sql)
    if as_json:
        show_json({"would_run" if sql else "ran": statements})
    elif sql:
        click.echo(dialect_of(engine).ddl.script_head + rights_script(statements), nl=False)
    else:
        for statement in statements:
            # Not `say`: a statement is never broken into lines.
            click.echo(make_readable(f"ran {statement.sql}"))


def has_address(url: str) -> bool:
    """Return True if the URL says where a database is, and not only its kind, as `oracle://` does."""
    from eventlog.sql.connect import read_url

    parsed = read_url(url)
    return any((parsed.host, parsed.database, parsed.query, parsed.username))
