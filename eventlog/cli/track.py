"""`eventlog track`, `untrack`, `triggers`, `catalog`: what is captured, and whether it still is."""

from __future__ import annotations

import click

from eventlog.cli.install import sql_option
from eventlog.cli.show import say, show_json, show_table
from eventlog.cli.site import Site, json_option, site_options


def _names(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Names may be given one by one or with commas between them."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


@click.command()
@click.argument("tables", nargs=-1, required=True)
@click.option(
    "--events",
    "style",
    type=click.Choice(["row-back", "field", "field-replace", "field-back"]),
    default="row-back",
    show_default=True,
    help="How a change is logged: as a row to read back, or as its fields.",
)
@click.option("--columns", multiple=True, callback=_names, metavar="A,B", help="Only these columns.")
@click.option("--exclude", multiple=True, callback=_names, metavar="C", help="All columns but these.")
@click.option("--child", "children", multiple=True, callback=_names, metavar="TABLE", help="A child table with a key.")
@click.option("--when", metavar="CONDITION", help="Only rows for which this SQL condition holds, before or after.")
@click.option("--row-triggers", is_flag=True, help="Row triggers where statement triggers are the default.")
@click.option("--always", is_flag=True, help="Fire for replicated changes too, where triggers can (PostgreSQL).")
@sql_option
@json_option
@site_options
def track(
    site: Site,
    tables: tuple[str, ...],
    style: str,
    columns: tuple[str, ...],
    exclude: tuple[str, ...],
    children: tuple[str, ...],
    when: str | None,
    row_triggers: bool,
    always: bool,
    sql: bool,
    as_json: bool,
) -> None:
    """Creates or replaces the triggers of tables and views. Child tables are captured with them.

    Example: eventlog track usr grp --events field --database sqlite:///app.db
    """
    from eventlog.sql.triggers import Style, TriggerOptions, remarks, track_sql
    from eventlog.sql.triggers import track as make

    options = TriggerOptions(
        style=Style(style),
        columns=columns,
        exclude=exclude,
        children=children,
        when=when,
        rows=row_triggers,
        always=always,
    )
    engine = site.engine()
    for remark in remarks(engine, tables, options, site.schema):
        say(remark, err=True)
    if sql:
        click.echo(track_sql(engine, tables, options, site.names(engine), site.schema), nl=False)
        return
    made = make(engine, tables, options, site.names(engine), site.schema)
    if as_json:
        show_json(made)
    for trigger in () if as_json else made:
        say(f"{trigger.state} {trigger.name} on {trigger.table}", err=True)


@click.command()
@click.argument("tables", nargs=-1, required=True)
@json_option
@site_options
def untrack(site: Site, tables: tuple[str, ...], as_json: bool) -> None:
    """Removes the triggers of tables and views.

    Example: eventlog untrack usr --database sqlite:///app.db
    """
    from eventlog.sql.triggers import untrack as take_off

    engine = site.engine()
    removed = take_off(engine, tables, site.names(engine), site.schema)
    if as_json:
        show_json({"removed": removed})
    for name in () if as_json else removed:
        say(f"removed {name}", err=True)


@click.command()
@json_option
@site_options
def triggers(site: Site, as_json: bool) -> None:
    """Lists the log's triggers: CURRENT, OUTDATED, MISSING, STRAY or DISABLED.

    Example: eventlog triggers --database sqlite:///app.db
    """
    from eventlog.sql.triggers import trigger_states

    engine = site.engine()
    found = trigger_states(engine, site.names(engine))
    if as_json:
        show_json(found)
        return
    show_table(
        ("state", "trigger", "table", "of", "events", "note"),
        [(one.state, one.name, one.table, one.owner, one.style, one.note) for one in found],
        empty="No table is tracked; `eventlog track TABLE` begins.",
    )


@click.command()
@click.argument("tables", nargs=-1)
@click.option("--history", is_flag=True, help="Every version that the publisher has seen, and what changed.")
@click.option("--json", is_flag=True, expose_value=False, help="Report as JSON, as it does anyway.")
@site_options
def catalog(site: Site, tables: tuple[str, ...], history: bool) -> None:
    """Prints the schema of tables as JSON: the schema.json that `convert` takes. Without names, the tracked ones.

    Example: eventlog catalog --database sqlite:///app.db > schema.json
    """
    from eventlog.core.schema import Catalog, catalog_to_json
    from eventlog.sql.dialect import dialect_of
    from eventlog.sql.reflect import reflect
    from eventlog.sql.triggers import tracked

    engine = site.engine()
    if history:
        from eventlog.sql.history import history as versions

        show_json(versions(engine, site.names(engine), tables))
        return
    if tables:
        found = reflect(engine, tables, site.schema)
    else:
        names = site.names(engine)
        with engine.connect() as connection:
            classes = tracked(connection, names)
        found = Catalog(classes, case_sensitive=dialect_of(engine).case_sensitive)
    click.echo(catalog_to_json(found).decode())
