"""`eventlog install`, `upgrade`, `uninstall`: the log and its companions, by migration."""

from __future__ import annotations

import click

from eventlog.cli.site import Site, site_options

sql_option = click.option("--sql", is_flag=True, help="Print the statements for a DBA and do nothing.")


@click.command()
@click.option("--columns", type=click.Choice(["new", "old"]), default="new", show_default=True, help="Column order.")
@sql_option
@site_options
def install(site: Site, columns: str, sql: bool) -> None:
    """Creates the event log table and its companion tables. A log that exists already is adopted as it is.

    Example: eventlog install --database sqlite:///app.db

    Example for a DBA: eventlog install --database oracle:// --sql
    """
    from eventlog.sql.install import install as put_there
    from eventlog.sql.install import install_sql
    from eventlog.sql.names import NEW_ORDER, OLD_ORDER

    order = NEW_ORDER if columns == "new" else OLD_ORDER
    if sql:
        click.echo(install_sql(site.url, site.wanted_names, order), nl=False)
        return
    put_there(site.engine(may_create=True), site.wanted_names, order)
    click.echo(f"The event log {site.config.source.log} is installed.", err=True)


@click.command()
@click.option("--to", metavar="MIGRATION", help="Another migration, also a former one: what an older eventlog needs.")
@sql_option
@site_options
def upgrade(site: Site, to: str | None, sql: bool) -> None:
    """Brings an installed log to this version of eventlog.

    Example: eventlog upgrade --database sqlite:///app.db

    Example, before an older eventlog is installed again: eventlog upgrade --to 0001 --database sqlite:///app.db
    """
    from eventlog.sql.install import upgrade as bring_up
    from eventlog.sql.install import upgrade_sql

    engine = site.engine()
    if sql:
        click.echo(upgrade_sql(engine, site.wanted_names, to), nl=False)
        return
    bring_up(engine, site.wanted_names, to)
    said = "is current" if to is None else f"is at migration {to}"
    click.echo(f"The event log {site.config.source.log} {said}.", err=True)


@click.command()
@click.option("--purge", is_flag=True, help="Also when rows still wait; they are lost.")
@sql_option
@site_options
def uninstall(site: Site, purge: bool, sql: bool) -> None:
    """Removes triggers and tables; refuses while rows wait. A log that was adopted stays.

    Example: eventlog uninstall --database sqlite:///app.db

    Example for a DBA, without connecting: eventlog uninstall --database oracle:// --sql
    """
    from eventlog.sql.connect import names_a_place
    from eventlog.sql.install import uninstall as take_off
    from eventlog.sql.install import uninstall_sql

    if sql:
        where = site.engine() if names_a_place(site.url) else site.url
        click.echo(uninstall_sql(where, site.wanted_names, purge=purge), nl=False)
        return
    take_off(site.engine(), site.wanted_names, purge=purge)
    click.echo(f"The event log {site.config.source.log} is gone.", err=True)
