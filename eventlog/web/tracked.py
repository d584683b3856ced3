"""The part "Tables" of the first page, which comes in by the door that other packages have, and the
page Tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from eventlog.config.settings import LOG
from eventlog.core.plugins import PageCell, PageOrder, PagePlugin, PageTable
from eventlog.core.table_names import write_name
from eventlog.web.addresses import table_address
from eventlog.web.reading import tables_of
from eventlog.web.words import trigger_state, word_of

if TYPE_CHECKING:
    from eventlog.capture.installed import TriggerState

WORST_FIRST: Final[tuple[Literal["bad", "warn", "good", ""], ...]] = ("bad", "warn", "good", "")


def tabulate_tables(triggers: Sequence[TriggerState], empty: str = "No table is tracked.") -> PageTable:
    """Tabulate the tables: how their triggers capture them, and in which state."""
    rows = []
    for place, its_triggers in tables_of(triggers).items():
        styles = sorted({str(trigger.style) for trigger in its_triggers if trigger.style})
        states = {word_of(trigger_state(trigger)) for trigger in its_triggers}
        words = sorted(states, key=lambda word: word.text)
        # One colour for all of a table's triggers, that of the worst; its words say which there
        # are.
        look = next(kind for kind in WORST_FIRST if any(word.kind == kind for word in words))
        rows.append(
            (
                PageCell(text=write_name(*place), to=table_address(place)),
                PageCell(text=", ".join(styles) or "unknown"),
                PageCell(text=str(len(its_triggers))),
                PageCell(text=", ".join(word.text for word in words), look=look),
            )
        )
    return PageTable(
        caption="Tables and their triggers",
        columns=("table", "style", "triggers", "state"),
        rows=tuple(rows),
        empty=empty,
    )


def _part(order: PageOrder) -> PageTable:
    if order.config.source.kind == LOG:
        return tabulate_tables(order.triggers)
    return tabulate_tables(order.triggers, "The source is a stream: its tables have no triggers.")


TABLES = PagePlugin(title="Tables", part=_part)
