"""The part "Tables" of the first page, which comes in by the door that other packages have, and the page Tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from eventlog.core.plugins import PageCell, PageOrder, PagePlugin, PageTable
from eventlog.web.pages import address
from eventlog.web.reading import tables_of

if TYPE_CHECKING:
    from eventlog.sql.triggers.installed import TriggerState


def tracked_tables(triggers: Sequence[TriggerState]) -> PageTable:
    """A line for each table: how its triggers capture it, and whether they are as they should be."""
    rows = []
    for name, its_triggers in tables_of(triggers).items():
        styles = sorted({str(trigger.style) for trigger in its_triggers if trigger.style})
        states = sorted({str(trigger.state) for trigger in its_triggers})
        # One colour for all of a table's triggers, that of the worst; its words say which there are.
        look: Literal["good", "warn", "bad"] = "warn"
        if any(trigger.fails for trigger in its_triggers):
            look = "bad"
        elif states == ["CURRENT"]:
            look = "good"
        rows.append(
            (
                PageCell(text=name, to=address("table", name=name)),
                PageCell(text=", ".join(styles) or "unknown"),
                PageCell(text=str(len(its_triggers))),
                PageCell(text=", ".join(states), look=look),
            )
        )
    return PageTable(
        caption="Tables and their triggers",
        columns=("table", "style", "triggers", "state"),
        rows=tuple(rows),
        empty="No table is tracked.",
    )


def _part(order: PageOrder) -> PageTable:
    return tracked_tables(order.triggers)


TABLES = PagePlugin(title="Tables", part=_part)
