"""The pages: what they are made of here, how they are written in `templates`. Pure: values in, HTML out.

Law: whatever a text holds, a browser reads it as that text and as nothing else. Texts are escaped where they meet HTML.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from eventlog.admin.explain import ExplainedRow, Explanation
from eventlog.admin.rows import HELD_SINCE, LogRow
from eventlog.core.errors import shortened
from eventlog.core.model import Reason, Status, written
from eventlog.core.rules.meaning import EXPLANATION, PRECEDENCE
from eventlog.version import VERSION
from eventlog.web.listing import BEYOND, Cursor, Filters, Listing
from eventlog.web.overview import LONGEST_ERROR_CHARACTERS, facts_of
from eventlog.web.reading import PageReading
from eventlog.web.words import address, counted, duration, kind_name, shown

if TYPE_CHECKING:
    from jinja2 import Environment

RELOAD_SECONDS: Final = 10
"""After which a page without JavaScript is loaded again."""

SHOWN_CHARACTERS: Final = 20_000
"""Of a value or a document that a page holds."""

NEAR_ROWS: Final = 20
"""Rows of an object beyond which only those near the row are shown."""

COLUMNS: Final = ("row", "status", "reason", "time", "type", "table", "key", "column", "old", "new", "by")
ACTIONS: Final = {
    "hold": "Keep waiting rows from being published until they are released.",
    "release": "Let held rows be published again.",
    "requeue": "Let processed rows wait again; reasons and attempts are forgotten.",
}
"""What can be done with rows, and what it does."""


class Viewer(Struct, frozen=True, kw_only=True):
    """What a page must know of who looks: the log, their name, whether they may act, and where styles are."""

    log: str
    visitor: str
    acts: bool
    style: str
    script: str
    leaves: bool = False
    proof: str = ""


def overview_page(reading: PageReading, look: Viewer) -> str:
    """The first page."""
    return _page("overview.html", "Overview", look, here="Overview", **facts_of(reading))


def live(reading: PageReading) -> str:
    """Everything of the first page that changes while one looks."""
    return environment().get_template("live.html").render(facts_of(reading))


def rows_page(found: Listing, filters: Filters, look: Viewer, *, first: bool) -> str:
    """The log as a list: searched, filtered, a page at a time; by object it is a timeline."""
    letters = [
        ("", "any status"),
        *((one.value, one.value) for one in Status),
        ("EF", "E and F"),
        ("WEF", "W, E and F"),
    ]
    reasons = [("", "any reason"), *((one.value, one.value) for one in Reason)]
    return _page(
        "rows.html",
        "Rows",
        look,
        here="Rows" if filters == Filters() else "",
        found=found,
        filters=filters,
        first=first,
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


def confirm_page(action: str, numbers: Sequence[int], look: Viewer) -> str:
    """What will be done with which rows, and the one button that does it."""
    return _page("confirm.html", f"{action.capitalize()}?", look, action=action, numbers=numbers)


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


def said_of(action: str, count: int) -> str:
    """What was done, as a sentence."""
    did = {"hold": "held", "release": "released", "requeue": "waiting again"}[action]
    return f"{counted(count)} {'is' if count == 1 else 'are'} {did} now."


def possible(row: LogRow) -> list[str]:
    """What can be done with a row as it is."""
    if row.status == Status.NEW:
        return ["release"] if _is_held(row) else ["hold", "release"]
    return ["requeue"] if row.status in set(Status) else []


def _is_held(row: LogRow) -> bool:
    """Whether somebody holds the row itself; others wait behind it. What is not noted was held by an older version."""
    return row.reason == Reason.HELD and (row.note or HELD_SINCE).startswith(HELD_SINCE)


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
        "shortened": lambda text: shortened(text, LONGEST_ERROR_CHARACTERS),
    }
    made.globals |= {
        "address": address,
        "letters": frozenset(letter.value for letter in Status),
        "listed": listed,
        "meanings_of_actions": ACTIONS,
        "meanings_of_reasons": {reason.value: said for reason, said in EXPLANATION.items()},
        "navigation": (("Overview", address()), ("Rows", address("rows")), ("Errors", address("rows", status="EF"))),
        "precedence": PRECEDENCE,
        "reload_seconds": RELOAD_SECONDS,
        "shown_characters": SHOWN_CHARACTERS,
        "version": VERSION,
    }
    return made
