"""`eventlog check`: what is wrong here, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from eventlog.cli.show import page, show_json, wrap_text
from eventlog.cli.site import Site, json_option, site_options
from eventlog.cli.tables import paint_word
from eventlog.core.secrets import make_readable

if TYPE_CHECKING:
    from eventlog.check.point import Point

LEVEL_COLUMNS: Final = 9
NAME_COLUMNS: Final = 14
WIDE_COLUMNS: Final = 80
"""From then on messages stand in a column of their own."""


@click.command()
@json_option
@site_options
def check(site: Site, as_json: bool) -> int:
    """Checks configuration, connection, log, rights, triggers, clock and outputs. Nothing is
    changed.

    It prints ok, warning or failure for each point, with what to do. The exit code is that of
    the first failure:
    78 for configuration, log or rights, 69 for a database, schema or output, 65 for unreadable
    state.

    Example: eventlog check
    """
    from eventlog.check.examine import check as examine

    points = []
    # Each as it comes: a database that does not answer takes its time.
    for point in examine(lambda: site.config):
        points.append(point)
        if not as_json:
            click.echo(_line(point))
    code = next((point.exit_code for point in points if point.exit_code), 0)
    if as_json:
        show_json({"exit_code": code, "points": points})
    return code


def _line(point: Point) -> str:
    """Write a point in a line, and further ones if it is long."""
    # A name that is longer than its column, as that of an output, is no column any more.
    line = f"{point.name}: {point.said}"
    if len(point.name) <= NAME_COLUMNS:
        line = f"{point.name:<{NAME_COLUMNS}} {point.said}"
    if point.mend:
        line += f" {point.mend}"
    indent = LEVEL_COLUMNS
    width = page().width
    if width is None or width >= WIDE_COLUMNS:
        indent += NAME_COLUMNS + 1
    text = wrap_text(make_readable(line), begin=LEVEL_COLUMNS, indent=indent)
    # Filled up by hand: the codes of a colour would be counted as statuses.
    return paint_word(point.level, "level") + " " * (LEVEL_COLUMNS - len(point.level)) + text
