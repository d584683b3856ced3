"""The point about images: whether the triggers log whole rows, where an output tells rows before and after a change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from eventlog.admin.check.point import Point, ok, warning
from eventlog.config.settings import Config
from eventlog.sql.names import LogNames
from eventlog.sql.triggers import tracked
from eventlog.sql.triggers.track import with_schema

if TYPE_CHECKING:
    from sqlalchemy import Engine


def image_points(engine: Engine, names: LogNames, config: Config) -> Iterator[Point]:
    """A warning for each table whose style cannot give images, where change tables or messages are written."""
    told = sorted({output.format for output in config.output} - {"xds"})
    if not told:
        return
    with engine.connect() as connection:
        classes = tracked(connection, with_schema(connection, names))
    for table in classes:
        if not table.images:
            said = f"{' and '.join(told)} of {table.whole} lack rows before a change, and the row of a delete."
            mend = f"`eventlog track {table.whole} --events image` logs whole rows; publish first what waits."
            yield warning("images", said, mend)
    if classes and all(table.images for table in classes):
        yield ok("images", f"the triggers of {len(classes)} table(s) log whole rows")
