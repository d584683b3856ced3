"""`eventlog rights`: the least rights of who installs, who writes and who publishes."""

from __future__ import annotations

import click

from eventlog.cli.install import sql_option
from eventlog.cli.site import Site, site_options


@click.command()
@click.argument("tables", nargs=-1)
@click.option("--installer", metavar="ROLE", help="Makes the log and the triggers; before there is a log, name TABLES.")
@click.option("--writer", metavar="ROLE", help="The application: loses every right on the log, which it never needs.")
@click.option("--publisher", metavar="ROLE", help="Reads captured tables; reads, marks and deletes rows of the log.")
@click.option(
    "--reader", metavar="ROLE", help="Reads captured tables for the publisher (source.reader), and nothing else."
)
@sql_option
@site_options
def rights(
    site: Site,
    tables: tuple[str, ...],
    installer: str | None,
    writer: str | None,
    publisher: str | None,
    reader: str | None,
    sql: bool,
) -> None:
    """Grants each role the least rights that it needs; TABLES are the captured ones, by default those that are tracked.

    Example for a DBA: eventlog rights --writer app --publisher idm --sql --database postgresql+psycopg://db/app
    """
    from eventlog.sql.rights import Roles, give_rights, rights_sql

    roles = Roles(installer=installer, writer=writer, publisher=publisher, reader=reader)
    engine = site.engine()
    names = site.names(engine) if writer or publisher or reader else site.wanted_names
    if sql:
        click.echo(rights_sql(engine, roles, names, tables, site.schema), nl=False)
        return
    for statement in give_rights(engine, roles, names, tables, site.schema):
        click.echo(f"ran {statement}", err=True)
