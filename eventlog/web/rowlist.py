"""The log as a list: searched, filtered, a page at a time; by object it is a timeline. Pure."""

from __future__ import annotations

from eventlog.admin.rows import LogRow
from eventlog.core.model import Kind, Reason, Status
from eventlog.web.frame import Look
from eventlog.web.html import Content, Markup, address, counted, element, link, value
from eventlog.web.listing import BEYOND, Cursor, Filters, Listing

COLUMNS = ("row", "status", "reason", "time", "type", "table", "key", "column", "old", "new", "by")
ACTIONS = {
    "hold": "Keep waiting rows from being published until they are released.",
    "release": "Let held rows be published again.",
    "requeue": "Let processed rows wait again; reasons and attempts are forgotten.",
}
"""What can be done with rows, and what it does."""


def row_list(found: Listing, filters: Filters, look: Look, *, first: bool) -> list[Content]:
    """The filters, the rows, and the way on."""
    about = _about_object(filters)
    return [about, _filters(filters), _order(found), _rows(found, look), _ways(found, filters, first=first)]


def kind_name(event_type: str | None) -> str:
    """An event type in words."""
    known = {str(kind.value): kind.name.lower().replace("_", " ") for kind in Kind}
    return f"{event_type} {known.get(event_type or '', 'unknown')}"


def badge(row_status: str | None) -> Markup:
    """A status letter; its colour says nothing that the letter does not."""
    letter = row_status if row_status in set(Status) else "other"
    return element("span", "NULL" if row_status is None else row_status, class_=f"badge {letter}")


def timeline(row: LogRow) -> str:
    """Where the rows are that have this row's table and key."""
    return address("rows", table=row.table_name, key=row.table_key)


def _about_object(filters: Filters) -> Markup | None:
    if not filters.key:
        return None
    said = "Rows that write the key exactly so, the newest first. A row's own page also finds other spellings."
    return element("p", "The timeline of ", value(filters.table), " ", element("code", value(filters.key)), ". ", said)


def _filters(filters: Filters) -> Markup:
    reasons = [("", "any reason"), *((reason.value, reason.value) for reason in Reason)]
    letters = [
        ("", "any status"),
        *((letter.value, letter.value) for letter in Status),
        ("EF", "E and F"),
        ("WEF", "W, E and F"),
    ]
    fields = (
        _field(
            "Search", element("input", type="search", name="text", id="text", value=filters.text, maxlength=200), "text"
        ),
        _field("Status", _choice("status", letters, filters.letters), "status"),
        _field("Reason", _choice("reason", reasons, filters.reason), "reason"),
        _field("Table", element("input", name="table", id="table", value=filters.table, maxlength=200), "table"),
        _field("Key", element("input", name="key", id="key", value=filters.key, maxlength=4000), "key"),
    )
    buttons = (element("button", "Show"), link("Clear", address("rows"), class_="button"))
    return element("form", fields, buttons, method="get", action=address("rows"), class_="filters", role="search")


def _field(label: str, control: Markup, name: str) -> Markup:
    return element("div", element("label", label, for_=name), control)


def _choice(name: str, choices: list[tuple[str, str]], chosen: str) -> Markup:
    known = choices if chosen in dict(choices) else [*choices, (chosen, chosen)]
    options = [element("option", label, value=entry, selected=entry == chosen) for entry, label in known]
    return element("select", options, name=name, id=name)


def _order(found: Listing) -> Markup | None:
    if found.ordered:
        return None
    said = "This log has no index of its numbers: rows are shown a part of the table at a time, in order within a part."
    return element("p", said, class_="quiet")


def _rows(found: Listing, look: Look) -> Markup:
    if not found.rows:
        said = "No such row in this part of the log." if found.further else "No such rows."
        return element("p", said, class_="empty")
    columns = ("choose", *COLUMNS) if look.acts else COLUMNS
    head = element("tr", [element("th", column, scope="col") for column in columns])
    body = [_row(row, look) for row in found.rows]
    caption = element("caption", f"{counted(len(found.rows))}, the newest first")
    rows = element("table", caption, element("thead", head), element("tbody", body), class_="rows")
    scrolled = element("div", rows, class_="scroll", tabindex=0, role="group", aria_label="Rows of the log")
    if not look.acts:
        return scrolled
    return element("form", scrolled, action_buttons(list(ACTIONS)), method="get", action=address("confirm"))


def action_buttons(actions: list[str]) -> Markup:
    """Buttons that lead to the page that asks once more."""
    buttons = [
        element("button", action.capitalize(), name="action", value=action, title=ACTIONS[action]) for action in actions
    ]
    return element("div", buttons, class_="actions", role="group", aria_label="With the chosen rows")


def _row(row: LogRow, look: Look) -> Markup:
    number = str(row.record_id)
    box = element("input", type="checkbox", name="id", value=number, aria_label=f"Row {number}")
    cells: list[Content] = [
        badge(row.status),
        row.reason,
        row.event_time,
        kind_name(row.event_type),
        value(row.table_name),
        link(value(row.table_key), timeline(row)) if row.table_key else value(row.table_key),
        value(row.column_name) if row.column_name else "",
        value(row.old_value) if row.old_value is not None else "",
        value(row.new_value) if row.new_value is not None else "",
        value(row.perpetrator) if row.perpetrator else "",
    ]
    chosen = element("td", box) if look.acts else None
    head = element("th", link(number, address("rows", number)), scope="row")
    return element("tr", chosen, head, [element("td", cell) for cell in cells])


def _ways(found: Listing, filters: Filters, *, first: bool) -> Markup:
    newest = None if first else link("Newest", listed(filters), class_="button")
    further = None
    if found.further is not None:
        words = "Older" if found.rows else "Look further back"
        further = link(words, listed(filters, found.further), class_="button", rel="next")
    return element("nav", newest, further, aria_label="Parts of the list", class_="ways")


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
