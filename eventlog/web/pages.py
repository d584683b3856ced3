"""The pages: what each of them shows. How they look is written in `templates`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from eventlog.care.listing import Filters, Listing
from eventlog.care.rows import LogRow
from eventlog.core.model import Reason, Status
from eventlog.core.plural import count_words
from eventlog.core.table_names import write_name
from eventlog.explain.rows import Explanation
from eventlog.web.actions import ACTIONS, OutputAct, RowsAct, TableAct, choose_statuses, possible
from eventlog.web.addresses import address, list_address, table_address
from eventlog.web.banners import GUIDE, of_table
from eventlog.web.differences import DocumentDifference
from eventlog.web.drawing import Viewer, draw_page, draw_part
from eventlog.web.life_line import LifeStep
from eventlog.web.navigation import PageState, page_state
from eventlog.web.overview import output_facts, overview_facts
from eventlog.web.reading import RANGES, ChartRange, OutputView, PageReading, TablePlace, UnreadTable, owner_place
from eventlog.web.words import status_word

if TYPE_CHECKING:
    from eventlog.capture.installed import TriggerState
    from eventlog.web.loading import LoadView

NEAR_ROWS: Final = 20
"""Rows of an object beyond which only those near the row are shown."""

COLUMNS: Final = ("row", "event", "status", "reason", "time", "column", "old", "new", "by")


def draw_overview(reading: PageReading, look: Viewer, span: ChartRange = RANGES[0]) -> str:
    """Draw the first page."""
    facts = overview_facts(reading, span, acts=look.acts)
    return draw_page("overview.html", "Overview", look, here="Overview", part="live.html", **facts)


def draw_live_overview(reading: PageReading, span: ChartRange = RANGES[0], *, acts: bool = False) -> str:
    """Draw everything of the first page that changes while one looks."""
    return draw_part("live.html", overview_facts(reading, span, acts=acts)) + draw_state(page_state(reading))


def draw_output(reading: PageReading, output: OutputView, look: Viewer, span: ChartRange, done: str = "") -> str:
    """Draw an output: how it stands, its curves, and what may be done with it."""
    facts = output_facts(reading, output, span)
    title = f"Output {output.name}"
    return draw_page("output.html", title, look, part="output_live.html", done=done, noted=output.noted, **facts)


def draw_live_output(reading: PageReading, output: OutputView, span: ChartRange) -> str:
    """Draw everything of an output's page that changes while one looks."""
    live = draw_part("output_live.html", output_facts(reading, output, span))
    return live + draw_state(page_state(reading), output.noted)


def draw_state(state: PageState, noted: str = "") -> str:
    """Draw what stands beside each page: the outputs, of which one may be shown, and the state of the log."""
    return draw_part("state.html", {"state": state, "noted": noted})


def draw_guide(look: Viewer) -> str:
    """Draw the sections of the guide that banners link to."""
    return draw_page("guide.html", GUIDE, look)


def draw_tables(reading: PageReading, look: Viewer) -> str:
    """Draw the list of tables."""
    from eventlog.web.tracked import tabulate_tables  # which another part of the page needs first

    tables = tabulate_tables(reading.triggers)
    return draw_page("tables.html", "Tables", look, here="Tables", reading=reading, tables=tables)


def draw_table(
    place: TablePlace,
    triggers: Sequence[TriggerState],
    rows: Sequence[LogRow],
    look: Viewer,
    *,
    called: str = "",
    load: LoadView | None = None,
    unread: UnreadTable | None = None,
    done: str = "",
) -> str:
    """Draw a table: what it needs, its triggers, its refresh, and its last changes.

    `called` is its name in the log.
    """
    owners = {owner_place(trigger) for trigger in triggers}
    owner = owners.pop() if len(owners) == 1 else place
    name = write_name(*place)
    return draw_page(
        "table.html",
        f"Table {name}",
        look,
        triggers=triggers,
        owner="" if owner == place else write_name(*owner),
        to_owner=table_address(owner),
        rows=rows,
        table=called or name,
        done=done,
        banners=() if unread is None else (of_table(called or name, unread),),
        **_load_facts(place, load),
    )


def draw_live_table(place: TablePlace, load: LoadView | None) -> str:
    """Draw everything of a table's page that changes while one looks."""
    return draw_part("table_live.html", _load_facts(place, load))


def _load_facts(place: TablePlace, load: LoadView | None) -> dict[str, Any]:
    schema, name = place
    stream = address("events", schema=schema, table=name)
    return {"name": write_name(*place), "place": place, "load": load, "stream": stream}


def ask_table(act: TableAct, look: Viewer) -> str:
    """Draw what will be done with a table, and the one button that does it."""
    name = write_name(*act.place)
    title = f"Refresh the table {name}?" if act.action == "refresh" else f"Stop the refresh of {name}?"
    return draw_page("confirm_table.html", title, look, act=act, name=name, back=table_address(act.place))


def draw_document(
    number: int, explanation: Explanation, look: Viewer, difference: DocumentDifference | None = None
) -> str:
    """Draw the document that a row is part of beside the object's last one, the rows in it, and what outputs with
    policies get.
    """
    title = f"Document of row {number}"
    return draw_page("document.html", title, look, number=number, found=explanation, difference=difference)


def draw_rows(
    listing: Listing,
    filters: Filters,
    look: Viewer,
    *,
    first: bool,
    total: int | None = None,
    around: int | None = None,
    done: str = "",
) -> str:
    """Draw the log as a list: searched, filtered, a page at a time; by object it is a timeline.

    `total` is how many rows there are on all pages, where that is known; `around` the row from which a timeline
    begins.
    """
    statuses = [
        ("", "any status"),
        *((status.value, f"{status.value} {status_word(status.value).text}") for status in Status),
        ("EF", "E and F"),
        ("WEF", "W, E and F"),
    ]
    reasons = [("", "any reason"), *((reason.value, reason.value) for reason in Reason)]
    here = {Filters(): "Rows", Filters(statuses="EF"): "Errors"}.get(filters, "")
    return draw_page(
        "rows.html",
        here or "Rows",
        look,
        here=here,
        found=listing,
        filters=filters,
        first=first,
        total=len(listing.rows) if first and listing.further is None else total,
        around=around,
        done=done,
        table_export=list_address(filters, path="rows.csv"),
        for_all=[action for action in ACTIONS if choose_statuses(action, filters)],
        columns=("choose", *COLUMNS) if look.acts else COLUMNS,
        status_choices=_with(filters.statuses, statuses),
        reason_choices=_with(filters.reason, reasons),
    )


def draw_row(
    row: LogRow,
    explanation: Explanation,
    look: Viewer,
    *,
    life: Sequence[LifeStep] = (),
    difference: DocumentDifference | None = None,
    done: str = "",
) -> str:
    """Draw a row: where it is at each output, what it says, what the rules decide and why, its document."""
    index = next((at for at, near_row in enumerate(explanation.rows) if near_row.record_id == row.record_id), 0)
    near = explanation.rows[max(0, index - NEAR_ROWS) : index + NEAR_ROWS + 1]
    offered = {action for step in life for action, _ in step.actions}
    return draw_page(
        "row.html",
        f"Row {row.record_id}",
        look,
        row=row,
        found=explanation,
        near=near,
        life=life,
        difference=difference,
        done=done,
        actions=[action for action in possible(row) if action not in offered],
    )


def ask_rows(act: RowsAct, numbers: Sequence[int], look: Viewer) -> str:
    """Draw what will be done with which rows, and the one button that does it."""
    title = f"{act.action.capitalize()} {count_words(len(numbers))}?"
    return draw_page("confirm.html", title, look, act=act, numbers=numbers)


def ask_output(act: OutputAct, name: str, look: Viewer) -> str:
    """Draw what will be done with an output, and the one button that does it."""
    title = f"Try the output {name} now?" if act.action == "try" else f"{act.action.capitalize()} the output {name}?"
    return draw_page("confirm_output.html", title, look, act=act, name=name)


def draw_message(title: str, sentences: str, look: Viewer) -> str:
    """Draw a page that says something."""
    return draw_page("message.html", title, look, sentences=sentences)


def draw_login(look: Viewer, *, wrong: bool) -> str:
    """Draw the form that asks for the token."""
    return draw_page("login.html", "Log in", look, wrong=wrong)


def _with(chosen: str, choices: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the choices, and what an address has chosen that is none of them."""
    return choices if chosen in dict(choices) else [*choices, (chosen, chosen)]
