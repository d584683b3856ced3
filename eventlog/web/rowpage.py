"""One row: what was recorded, what it says, what the rules decide and why, its document; and the page before an act. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eventlog.admin.explain import ExplainedRow, Explanation
from eventlog.admin.rows import HELD_SINCE, LogRow
from eventlog.core.model import Reason, Status
from eventlog.core.rules.meaning import EXPLANATION, PRECEDENCE
from eventlog.web.frame import Look, hidden
from eventlog.web.html import Content, Markup, address, counted, element, link, table, value
from eventlog.web.rowlist import ACTIONS, action_buttons, badge, kind_name, timeline

SHOWN = 20_000
"""Characters of a value or a document that a page holds."""

MANY = 20
"""Rows of an object beyond which only those near the row are shown."""

_meanings = {reason.value: said for reason, said in EXPLANATION.items()}


def row_page(row: LogRow, found: Explanation, look: Look, done: str = "") -> list[Content]:
    """Everything that is known about a row."""
    return [
        element("p", done, class_="verdict good", role="status") if done else None,
        element("p", badge(row.status), " ", found.recorded),
        _facts(row),
        _values(row),
        _buttons(row, look),
        _rules(row, found),
        _document(found),
    ]


def confirmation(action: str, numbers: Sequence[int], look: Look) -> list[Content]:
    """What will be done with which rows, and the one button that does it."""
    rows = [element("li", link(f"Row {number}", address("rows", number))) for number in numbers]
    fields = [hidden("id", str(number)) for number in numbers]
    form = element(
        "form",
        hidden("proof", look.proof),
        hidden("action", action),
        fields,
        element("button", f"{action.capitalize()} {counted(len(numbers))}"),
        " ",
        link("Do nothing", address("rows", numbers[0]), class_="button"),
        method="post",
        action=address("act"),
    )
    return [element("p", ACTIONS[action]), element("ul", rows), form]


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


def _facts(row: LogRow) -> Markup:
    key = link(value(row.table_key), timeline(row)) if row.table_key else value(row.table_key)
    shown: list[tuple[str, Content]] = [
        ("Table", value(row.table_name)),
        ("Key", [key, " · its timeline" if row.table_key else None]),
        ("Event type", kind_name(row.event_type)),
        ("Column", value(row.column_name)),
        ("Time", value(row.event_time)),
        ("Perpetrator", value(row.perpetrator)),
        ("Reason", [value(row.reason), ": ", _meanings[row.reason]] if row.reason in _meanings else value(row.reason)),
        ("Answer or note", value(row.note)),
        ("Attempts", [str(row.attempts or 0), f", the next at {row.next_attempt}" if row.next_attempt else None]),
    ]
    return element(
        "dl", [element("div", element("dt", name), element("dd", said)) for name, said in shown], class_="figures"
    )


def _values(row: LogRow) -> Markup:
    sides = [("Old value", row.old_value), ("New value", row.new_value)]
    boxes = [
        element("div", element("h3", name), element("pre", _cut(text), tabindex=0), class_="card")
        for name, text in sides
    ]
    return element("section", element("h2", "Old and new"), element("div", boxes, class_="pair"))


def _cut(text: str | None) -> Content:
    if text is None or len(text) <= SHOWN:
        return value(text)
    return [value(text[:SHOWN]), f" … and {len(text) - SHOWN:,} characters more"]


def _buttons(row: LogRow, look: Look) -> Markup | None:
    actions = possible(row)
    if not look.acts or not actions:
        return None
    return element(
        "form", hidden("id", str(row.record_id)), action_buttons(actions), method="get", action=address("confirm")
    )


def _rules(row: LogRow, found: Explanation) -> Markup:
    shown = list(_near(found.rows, row.record_id))
    rows = [
        (
            link(
                str(one.record_id),
                address("rows", one.record_id),
                aria_current="true" if one.record_id == row.record_id else None,
            ),
            kind_name(None if one.event_type is None else str(one.event_type)),
            value(one.column) if one.column else "",
            _short(one.old),
            _short(one.new),
            [badge(one.status), " ", one.reason],
            value(one.note) if one.note else _meanings.get(one.reason, ""),
        )
        for one in shown
    ]
    left_out = len(found.rows) - len(shown)
    return element(
        "section",
        element("h2", "What the rules say today"),
        table(
            f"Read with {counted(len(found.rows))} of the same object",
            ("row", "type", "column", "old", "new", "outcome", "why"),
            rows,
        ),
        element("p", f"{counted(left_out)} further away left out.") if left_out else None,
        element(
            "details",
            element("summary", "The order in which rules apply"),
            element("ol", [element("li", element("b", rule), f": {meaning}") for rule, meaning in PRECEDENCE]),
        ),
    )


def _near(rows: Sequence[ExplainedRow], record_id: int) -> Iterator[ExplainedRow]:
    place = next((at for at, row in enumerate(rows) if row.record_id == record_id), 0)
    yield from rows[max(0, place - MANY) : place + MANY + 1]


def _short(text: str | None) -> Content:
    return "" if text is None else value(text if len(text) <= 100 else f"{text[:100]}…")


def _document(found: Explanation) -> Markup:
    body = (
        element("p", "It makes no document.")
        if found.document is None
        else element("pre", _cut(found.document), tabindex=0)
    )
    return element("section", element("h2", "The document"), body)
