"""`eventlog check`: what is wrong here, and how to mend it."""

from __future__ import annotations

import click

from eventlog.cli.show import say, show_json
from eventlog.cli.site import Site, json_option, site_options


@click.command()
@json_option
@site_options
def check(site: Site, as_json: bool) -> int:
    """Checks configuration, connection, log, rights, triggers, clock and outputs. Nothing is changed.

    One line a point, ok, warning or failure; the exit code is 0 only when nothing failed.

    Example: eventlog check --database sqlite:///app.db
    """
    from eventlog.admin.check import check as examine

    found = []
    for point in examine(lambda: site.config):
        found.append(point)
        if not as_json:
            said = f"{point.level:<8} {point.name:<14} {point.said}{' ' + point.mend if point.mend else ''}"
            say(said)
    code = next((point.exit_code for point in found if point.exit_code), 0)
    if as_json:
        show_json({"exit_code": code, "points": found})
    return code
