"""`eventlog status`: does it flow, and if not, what do rows wait for."""

from __future__ import annotations

import click

from eventlog.cli.show import show_json, show_sentence, show_table
from eventlog.cli.site import Site, json_option, site_options


@click.command()
@json_option
@site_options
def status(site: Site, as_json: bool) -> None:
    """Shows the backlog by status and by what rows wait for, the oldest row, the rate, the last error, and outdated triggers.

    Example: eventlog status --database sqlite:///app.db --json
    """
    from eventlog.admin.status import facts

    engine = site.engine()
    found = facts(engine, site.names(engine), site.config.publisher)
    if as_json:
        show_json(found)
        return
    show_table(("status", "rows", "meaning"), found.lines(), empty="")
    for sentence in found.sentences():
        show_sentence(sentence)
