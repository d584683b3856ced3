"""`eventlog explain`: what became of a row, or would become of it, and why."""

from __future__ import annotations

import click

from eventlog.admin.explain import Explanation
from eventlog.admin.rows import LARGEST_NUMBER
from eventlog.cli.policy import show_result
from eventlog.cli.show import show_json, show_sentence, show_table, show_text
from eventlog.cli.site import Site, json_option, site_options
from eventlog.core.errors import ConfigError
from eventlog.core.plural import counted


@click.command()
@click.argument("record_id", type=click.IntRange(-LARGEST_NUMBER, LARGEST_NUMBER))
@click.option("--values", is_flag=True, help="Show also the values that policies hide from every output.")
@json_option
@site_options
def explain(site: Site, record_id: int, values: bool, as_json: bool) -> None:
    """Explains a row: what the rules decide about it and why, and its document.

    Example: eventlog explain 1742
    """
    from eventlog.admin.explain import explain as explained

    if site.is_stream:
        raise ConfigError(
            "The source is a stream, whose rows the rules of a log say nothing of.",
            hint="`eventlog log` shows why a row ended as it did.",
        )
    engine = site.engine()
    found = explained(engine, site.names(engine), site.config, record_id, values=values)
    if as_json:
        show_json(found)
    else:
        _show(found)


def _show(found: Explanation) -> None:
    show_sentence(f"Row {found.record_id}: status {found.status}. {found.recorded}")
    show_sentence(f"Read with {counted(len(found.rows), 'row')} of the same object; today the rules say:")
    show_table(
        ("row", "type", "column", "old", "new", "status", "reason", "note"),
        [
            (row.record_id, row.event_type, row.column, row.old, row.new, row.status, row.reason, row.note)
            for row in found.rows
        ],
        empty="",
    )
    if found.document:
        show_text(found.document)
    for sentence in found.refused or (() if found.document else ("It makes no document.",)):
        show_sentence(sentence)
    for one in found.policies:
        show_result(one)
