"""The pages: what they are made of here, how they are written in `templates`. Pure: values in, HTML out.

Law: whatever a text holds, a browser reads it as that text and as nothing else. Texts are escaped where they meet HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.admin.explain import ExplainedRow, Explanation
from eventlog.admin.listing import BEYOND, Cursor, Filters, Listing
from eventlog.admin.masking import HIDDEN
from eventlog.admin.rows import LogRow
from eventlog.core.model import Reason, Status, written
from eventlog.core.plural import counted, duration
from eventlog.core.rules.meaning import EXPLANATION, PRECEDENCE
from eventlog.version import VERSION
from eventlog.web.acts import (
    ACTIONS,
    DONE,
    GIVES_REASON,
    OUTPUT_ACTIONS,
    TABLE_ACTIONS,
    WHY_CHARACTERS,
    OutputAct,
    RowsAct,
    TableAct,
    letters_for,
    possible,
)
from eventlog.web.overview import facts_of, output_facts
from eventlog.web.reading import RANGES, ChartRange, OutputView, PageReading, tables_of
from eventlog.web.words import address, kind_name, shown

if TYPE_CHECKING:
    from jinja2 import Environment

    from eventlog.sql.triggers.installed import TriggerState
    from eventlog.web.loading import LoadView

RELOAD_SECONDS: Final = 10
"""After which a page without JavaScript is loaded again."""

SHOWN_CHARACTERS: Final = 20_000
"""Of a value or a document that a page holds."""

SHOWN_NUMBERS: Final = 20
"""Of the rows that a question is about."""

SHOWN_ROWS: Final = 200
"""Of the rows of an object on a document's page."""

NEAR_ROWS: Final = 20
"""Rows of an object beyond which only those near the row are shown."""

COLUMNS: Final = ("row", "status", "reason", "time", "type", "table", "key", "column", "old", "new", "by")


class Viewer(Struct, frozen=True, kw_only=True):
    """What a page must know of who looks: the log, their name, whether they may act, and where styles are."""

    log: str
    visitor: str
    acts: bool
    style: str
    script: str
    rows_script: str = ""
    leaves: bool = False
    proof: str = ""


def overview_page(reading: PageReading, look: Viewer, span: ChartRange = RANGES[0]) -> str:
    """The first page."""
    return _page("overview.html", "Overview", look, here="Overview", part="live.html", **facts_of(reading, span))


def live(reading: PageReading, span: ChartRange = RANGES[0]) -> str:
    """Everything of the first page that changes while one looks."""
    return environment().get_template("live.html").render(facts_of(reading, span))


def output_page(reading: PageReading, place: OutputView, look: Viewer, span: ChartRange, done: str = "") -> str:
    """An output: how it stands, its curves, and what may be done with it."""
    facts = output_facts(reading, place, span)
    return _page("output.html", f"Output {place.name}", look, part="output_live.html", done=done, **facts)


def live_output(reading: PageReading, place: OutputView, span: ChartRange) -> str:
    """Everything of an output's page that changes while one looks."""
    return environment().get_template("output_live.html").render(output_facts(reading, place, span))


def tables_page(reading: PageReading, look: Viewer) -> str:
    """The tables on which triggers of ours stand."""
    return _page("tables.html", "Tables", look, here="Tables", reading=reading, tables=tables_of(reading.triggers))


def table_page(
    name: str,
    triggers: Sequence[TriggerState],
    rows: Sequence[LogRow],
    look: Viewer,
    *,
    load: LoadView | None = None,
    done: str = "",
) -> str:
    """A table: its triggers, its refresh, and its last changes."""
    owners = sorted({one.owner for one in triggers})
    return _page(
        "table.html",
        f"Table {name}",
        look,
        triggers=triggers,
        owner=owners[0] if len(owners) == 1 else name,
        rows=rows,
        table=rows[0].table_name if rows else name,
        done=done,
        **_load_facts(name, load),
    )


def live_table(name: str, load: LoadView | None) -> str:
    """Everything of a table's page that changes while one looks."""
    return environment().get_template("table_live.html").render(_load_facts(name, load))


def _load_facts(name: str, load: LoadView | None) -> dict[str, Any]:
    return {"name": name, "load": load, "stream": address("events", table=name)}


def table_question(act: TableAct, look: Viewer) -> str:
    """What will be done with a table, and the one button that does it."""
    title = f"Refresh the table {act.table}?" if act.action == "refresh" else f"Stop the refresh of {act.table}?"
    return _page("confirm_table.html", title, look, act=act)


def document_page(number: int, found: Explanation, look: Viewer) -> str:
    """The document that a row is part of, the rows in it, and what outputs with policies get."""
    return _page("document.html", f"Document of row {number}", look, number=number, found=found)


def rows_page(found: Listing, filters: Filters, look: Viewer, *, first: bool, done: str = "") -> str:
    """The log as a list: searched, filtered, a page at a time; by object it is a timeline."""
    letters = [
        ("", "any status"),
        *((one.value, one.value) for one in Status),
        ("EF", "E and F"),
        ("WEF", "W, E and F"),
    ]
    reasons = [("", "any reason"), *((one.value, one.value) for one in Reason)]
    here = {Filters(): "Rows", Filters(letters="EF"): "Errors"}.get(filters, "")
    return _page(
        "rows.html",
        here or "Rows",
        look,
        here=here,
        found=found,
        filters=filters,
        first=first,
        done=done,
        for_all=[action for action in ACTIONS if letters_for(action, filters)],
        columns=("choose", *COLUMNS) if look.acts else COLUMNS,
        letter_choices=_with(filters.letters, letters),
        reason_choices=_with(filters.reason, reasons),
    )


def row_page(row: LogRow, found: Explanation, look: Viewer, done: str = "") -> str:
    """A row: what was recorded, what it says, what the rules decide and why, its document."""
    near = list(_near(found.rows, row.record_id))
    return _page(
        "row.html", f"Row {row.record_id}", look, row=row, found=found, near=near, done=done, actions=possible(row)
    )


def rows_question(act: RowsAct, numbers: Sequence[int], look: Viewer) -> str:
    """What will be done with which rows, and the one button that does it."""
    title = f"{act.action.capitalize()} {counted(len(numbers))}?"
    return _page("confirm.html", title, look, act=act, numbers=numbers)


def output_question(act: OutputAct, name: str, look: Viewer) -> str:
    """What will be done with an output, and the one button that does it."""
    return _page("confirm_output.html", f"{act.action.capitalize()} the output {name}?", look, act=act, name=name)


def message_page(title: str, sentences: str, look: Viewer) -> str:
    """A page that says one thing."""
    return _page("message.html", title, look, sentences=sentences)


def login_page(look: Viewer, *, wrong: bool) -> str:
    """The form that asks for the token."""
    return _page("login.html", "Log in", look, wrong=wrong)


def listed(filters: Filters, cursor: Cursor | None = None) -> str:
    """The address of a page of the list."""
    at = cursor or Cursor()
    return address(
        "rows",
        text=filters.text,
        status=filters.letters,
        reason=filters.reason,
        table=filters.table,
        key=filters.key,
        before=at.before if at.before < BEYOND else None,
        place=at.place,
    )


def _near(rows: Sequence[ExplainedRow], record_id: int) -> Iterator[ExplainedRow]:
    place = next((at for at, row in enumerate(rows) if row.record_id == record_id), 0)
    yield from rows[max(0, place - NEAR_ROWS) : place + NEAR_ROWS + 1]


def _with(chosen: str, choices: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The choices, and what an address has chosen that is none of them."""
    return choices if chosen in dict(choices) else [*choices, (chosen, chosen)]


def _page(template: str, title: str, look: Viewer, *, here: str = "", **facts: Any) -> str:
    made = environment().get_template(template)
    return made.render(facts, title=title, look=look, here=here)


@cache
def environment() -> Environment:
    """How templates are read: what is escaped, and the words that they have."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("eventlog.web"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "counted": counted,
        "duration": duration,
        "grouped": "{:,}".format,
        "kind_name": kind_name,
        "percent": lambda part: round(100 * min(max(part, 0.0), 1.0), 2),
        "position": written,
    }
    made.globals |= {
        "address": address,
        "hidden_value": HIDDEN,
        "letters": frozenset(letter.value for letter in Status),
        "listed": listed,
        "done_with_rows": DONE,
        "gives_reason": GIVES_REASON,
        "meanings_of_actions": ACTIONS,
        "meanings_of_output_actions": OUTPUT_ACTIONS,
        "meanings_of_table_actions": TABLE_ACTIONS,
        "meanings_of_reasons": {reason.value: said for reason, said in EXPLANATION.items()},
        "navigation": (
            ("Overview", address()),
            ("Rows", address("rows")),
            ("Errors", address("rows", status="EF")),
            ("Tables", address("tables")),
        ),
        "precedence": PRECEDENCE,
        "ranges": RANGES,
        "reload_seconds": RELOAD_SECONDS,
        "shown_characters": SHOWN_CHARACTERS,
        "shown_numbers": SHOWN_NUMBERS,
        "shown_rows": SHOWN_ROWS,
        "version": VERSION,
        "why_characters": WHY_CHARACTERS,
    }
    return made
