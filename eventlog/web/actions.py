"""What somebody may do through the page: read from a question or a form, and put in words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from eventlog.care.listing import Filters
from eventlog.care.rows import HELD_SINCE, MOST_STATUS_CHARACTERS, PROCESSED, LogRow
from eventlog.core.errors import DataError, UsageError, shorten
from eventlog.core.model import LARGEST_NUMBER, Reason, Status
from eventlog.core.plural import count_words
from eventlog.web.reading import TablePlace

RowAction = Literal["hold", "release", "requeue"]
OutputAction = Literal["pause", "resume", "try"]
TableAction = Literal["refresh", "stop"]

ACTIONS: Final[Mapping[RowAction, str]] = {
    "hold": "Keep waiting rows from being published until they are released.",
    "release": "Let held rows be published again.",
    "requeue": "Let processed rows wait again. Their reasons and attempts are deleted.",
}
"""What can be done with rows, and what it does."""

OUTPUT_ACTIONS: Final[Mapping[OutputAction, str]] = {
    "pause": "Let nothing go to this output until somebody resumes it. The others continue, and rows are kept for it.",
    "resume": "Let documents go to this output again. It gets what was kept for it, in order.",
    "try": "End its wait: the publisher tries this output at once, with all that its receiver did not take.",
}
"""What can be done with an output, and what it does."""

OUTPUT_ACTION_NAMES: Final[Mapping[OutputAction, str]] = {"pause": "Pause", "resume": "Resume", "try": "Try now"}
"""What the buttons say."""

TABLE_ACTIONS: Final[Mapping[TableAction, str]] = {
    "refresh": "Publish every row that the table has now, while changes continue. For each of them one row is written to the log."
    " The refresh pauses while 50,000 rows of the log wait. An interrupted refresh continues where it stopped.",
    "stop": "End the refresh after the current rows. What was written stays, and the next refresh continues from there.",
}
"""What can be done with a table, and what it does."""

DONE: Final[Mapping[RowAction, str]] = {"hold": "held", "release": "released", "requeue": "requeued"}

NOTHING_DONE: Final = {
    "hold": "Nothing was done: none of these rows waits now.",
    "release": "Nothing was done: none of these rows was held.",
    "requeue": "Nothing was done: none of these rows was processed.",
}
"""What is shown where somebody or something else was quicker."""

GIVES_REASON: Final = frozenset({"hold", "pause"})
"""Acts of which it is noted why."""

WHY_CHARACTERS: Final = 200
NAME_CHARACTERS: Final = 1000

ACT_ROWS: Final = 500
"""Rows that one act may name."""

FILTERED_ROWS: Final = 10_000
"""Rows that one act on all rows of a filter may mean."""

Fields = Mapping[str, Sequence[str]]
"""The fields of an address or a form, by name."""

_digits = re.compile(r"-?[0-9]{1,19}").fullmatch


class RowsAct(Struct, frozen=True, kw_only=True):
    """What is to be done with which rows: those that are named, or all of a filter up to the `last`
    number.
    """

    action: RowAction
    numbers: tuple[int, ...] = ()
    filters: Filters | None = None
    last: int = LARGEST_NUMBER
    why: str = ""


class OutputAct(Struct, frozen=True, kw_only=True):
    """What is to be done with an output, by the name that its notes have."""

    action: OutputAction
    output: str
    why: str = ""


class TableAct(Struct, frozen=True, kw_only=True):
    """What is to be done with a table, by its schema and its name."""

    action: TableAction
    place: TablePlace


Act = RowsAct | OutputAct | TableAct


def read_act(fields: Fields) -> Act:
    """Read the action of a question or form; raise UsageError if there is no such action."""
    action = _one(fields, "action", 40)
    # In one line: it becomes a part of a row's note.
    why = " ".join(_one(fields, "why", WHY_CHARACTERS).split()) if action in GIVES_REASON else ""
    if action in OUTPUT_ACTIONS:
        output = _one(fields, "output", NAME_CHARACTERS)
        return OutputAct(action=cast("OutputAction", action), output=output, why=why)
    if action in TABLE_ACTIONS:
        schema, name = (_one(fields, field, NAME_CHARACTERS) for field in ("schema", "table"))
        return TableAct(action=cast("TableAction", action), place=(schema or None, name))
    if action in ACTIONS:
        return _of_rows(cast("RowAction", action), fields, why)
    raise UsageError(f"There is no such action; there are {', '.join((*ACTIONS, *OUTPUT_ACTIONS, *TABLE_ACTIONS))}.")


def _of_rows(action: RowAction, fields: Fields, why: str) -> RowsAct:
    if _one(fields, "all", 1):
        last = read_number(_one(fields, "last", 20))
        filters = narrow(action, read_filters(fields))
        return RowsAct(action=action, filters=filters, last=LARGEST_NUMBER if last is None else last, why=why)
    numbers = tuple(sorted({number for text in fields.get("id", ()) if (number := read_number(text)) is not None}))
    if not numbers:
        raise UsageError("No row was chosen. Go back and tick some.")
    if len(numbers) > ACT_ROWS:
        raise UsageError(f"That is more than {ACT_ROWS} rows at once; `eventlog {action}` takes ranges.")
    return RowsAct(action=action, numbers=numbers, why=why)


def read_filters(fields: Fields) -> Filters:
    """Read the filters in an address; ignore unreadable ones."""
    return Filters(
        statuses="".join(dict.fromkeys(_one(fields, "status", 400)))[:MOST_STATUS_CHARACTERS],
        reason=_one(fields, "reason", 40),
        table=_one(fields, "table", 400),
        key=_one(fields, "key", 4000),
        text=_one(fields, "text", 200),
    )


def choose_statuses(action: RowAction, filters: Filters) -> str:
    """Return the statuses the action applies to, within a filter."""
    can = PROCESSED if action == "requeue" else Status.NEW.value
    return "".join(status for status in can if not filters.statuses or status in filters.statuses)


def narrow(action: RowAction, filters: Filters) -> Filters:
    """Narrow a filter to rows the action applies to; raise UsageError if there are none."""
    statuses = choose_statuses(action, filters)
    if not statuses:
        what = "waiting rows are held and released"
        if action == "requeue":
            what = "processed rows are requeued"
        message = f"Only {what}, and rows with the status {filters.statuses} are none."
        raise UsageError(message, hint="Choose another status.")
    return replace(filters, statuses=statuses)


def read_row(text: str) -> int:
    """Read the number of a row from an address; raise DataError if malformed."""
    number = read_number(text)
    if number is None:
        hint = "A row is found by its number, such as /rows/42."
        raise DataError(f"{shorten(text, 40)} is not the number of a row.", hint=hint)
    return number


def read_number(text: str | None) -> int | None:
    """Read a number of 64 bits: digits, perhaps with a minus."""
    # Not `int` alone, which reads the digits of other scripts, blanks and underscores too.
    if text and _digits(text) and -LARGEST_NUMBER < int(text) < LARGEST_NUMBER:
        return int(text)
    return None


def describe_result(action: str, count: int) -> str:
    """Say in a sentence how many rows were changed."""
    others = {
        "refresh": ("It is refreshed already.", "The refresh has begun."),
        "stop": ("It is not refreshed now.", "The refresh ends after the current rows."),
        "pause": ("It was paused already.", "It is paused now."),
        "resume": ("It was not paused.", "It is resumed now, and gets what was kept for it."),
        "try": ("Nothing was tried.", "The publisher tries it at once."),
    }
    if action in others:
        return others[action][count > 0]
    if not count:
        return NOTHING_DONE[action]
    did = {"hold": "held", "release": "released", "requeue": "waiting again"}[action]
    return f"{count_words(count, 'row is', 'rows are')} {did} now."


def read_done(text: str) -> str:
    """Describe the result in an address after an action; empty if unreadable."""
    action, _, count = text.partition(" ")
    rows = read_number(count)
    # Anybody can write an address: what is shown comes from a list, and none of its words.
    if rows is None or action not in (*ACTIONS, *OUTPUT_ACTIONS, *TABLE_ACTIONS):
        return ""
    return describe_result(action, rows)


def possible(row: LogRow) -> list[str]:
    """List the actions possible for a row."""
    if row.status != Status.NEW:
        return ["requeue"] if row.status in set(Status) else []
    if row.reason != Reason.HELD:
        return ["hold"]
    return ["release"] if _is_held(row) else ["hold", "release"]


def can_be(action: RowAction, row: LogRow) -> bool:
    """Return True if the action would change a row from a filter."""
    return _is_held(row) if action == "release" else action in possible(row)


def _is_held(row: LogRow) -> bool:
    """Return True if the row itself is held; others wait behind it.

    A hold without a note was entered by hand.
    """
    return row.reason == Reason.HELD and (row.note or HELD_SINCE).startswith(HELD_SINCE)


def _one(fields: Fields, name: str, longest: int) -> str:
    """Return a field as databases accept it: no zero bytes, no half characters."""
    # Of a field that comes several times the last counts.
    text = (fields.get(name) or ("",))[-1]
    # PostgreSQL takes no NUL in a text, and UTF-8 no half of a surrogate pair.
    return text.replace("\0", "")[:longest].encode("utf-8", "ignore").decode()
