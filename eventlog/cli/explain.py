"""`eventlog explain`: what became of a row, or would become of it, and why."""

from __future__ import annotations

import click

from eventlog.admin.explain import Explanation
from eventlog.admin.rows import LARGEST_NUMBER
from eventlog.cli.show import readable, show_json, show_table, show_text
from eventlog.cli.site import Site, json_option, site_options


@click.command()
@click.argument("record_id", type=click.IntRange(-LARGEST_NUMBER, LARGEST_NUMBER))
@json_option
@site_options
def explain(site: Site, record_id: int, as_json: bool) -> None:
    """Explains a row: the rows that it is read with, what the rules decide about each and why, and the document.

    Example: eventlog explain 1742 --database sqlite:///app.db
    """
    from eventlog.admin.explain import explain as explained

    engine = site.engine()
    found = explained(engine, site.names(engine), site.config, record_id)
    if as_json:
        show_json(found)
    else:
        _show(found)


def _show(found: Explanation) -> None:
    click.echo(f"Row {found.record_id}: status {found.status}. {readable(found.recorded)}")
    click.echo(f"Read with {len(found.rows)} row(s) of the same object; today the rules say:")
    show_table(
        ("row", "type", "column", "old", "new", "status", "reason", "note"),
        [
            (row.record_id, row.event_type, row.column, row.old, row.new, row.status, row.reason, row.note)
            for row in found.rows
        ],
        empty="",
    )
    show_text(found.document or "It makes no document.")
