"""The pages: what they are made of here, how they are written in `templates`. Pure."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from msgspec import Struct
from msgspec.structs import asdict, replace

from eventlog.care.flow import state_sentence, waiting_reasons
from eventlog.care.listing import BEYOND, Cursor, Filters, Listing
from eventlog.care.rows import LogRow
from eventlog.core.model import Kind, Reason, Status, written
from eventlog.core.plural import counted, duration
from eventlog.core.rules.meaning import EXPLANATION, PRECEDENCE
from eventlog.core.rules.screen import HIDDEN
from eventlog.explain.rows import Explanation
from eventlog.sources.log.flow import Flow
from eventlog.version import VERSION
from eventlog.web.acts import (
    ACTIONS,
    DONE,
    GIVES_REASON,
    OUTPUT_ACTION_NAMES,
    OUTPUT_ACTIONS,
    TABLE_ACTIONS,
    WHY_CHARACTERS,
    OutputAct,
    RowsAct,
    TableAct,
    letters_for,
    possible,
)
from eventlog.web.banners import CAUSE_CHARACTERS, GUIDE, banners, of_output, of_table
from eventlog.web.cells import with_columns
from eventlog.web.chart import Chart, curve
from eventlog.web.reading import OLD_SECONDS, RANGES, ChartRange, OutputView, PageReading, UnreadTable, bare_name
from eventlog.web.texts import code, ident, short, shown, value, value_if
from eventlog.web.words import letter_word, output_state, publisher_state, trigger_state, word_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from eventlog.capture.installed import TriggerState
    from eventlog.web.loading import LoadView

KIND_NAMES: Final = {str(kind.value): kind.name.lower().replace("_", " ") for kind in Kind}


def address(*path: str | int, **query: str | int | None) -> str:
    """A path of this page with a query; what is empty is left out."""
    asked = urlencode({name: entry for name, entry in query.items() if entry not in (None, "")}, errors="replace")
    return "/" + "/".join(quote(str(part), safe="", errors="replace") for part in path) + (f"?{asked}" if asked else "")


def kind_name(event_type: str | int | None) -> str:
    return f"{event_type} {KIND_NAMES.get(str(event_type), 'unknown')}"


class Verdict(Struct, frozen=True, kw_only=True):
    """One sentence for whoever is on call; a part of it may be a link."""

    state: str = "look here"
    before: str = ""
    link: str = ""
    to: str = ""
    after: str = ""


def facts_of(reading: PageReading, span: ChartRange, *, acts: bool) -> Mapping[str, Any]:
    """What the template of the live part shows."""
    facts = reading.rows
    samples = reading.history.of(span)
    figures = (("Waiting rows", "rows", "waiting"), ("Lag", "s", "lag"), ("Finished", "rows/s", "rate"))
    curves: list[Chart] = []
    for title, unit, name in figures:
        values = [(sample.at, getattr(sample, name)) for sample in samples]
        points = [(at, float(value)) for at, value in values if value is not None]
        curves.append(curve(title, unit, points, reading.now, span))
    known = {output.noted for output in reading.places}
    return {
        "stream": address("events", range=span.name),
        "reading": reading,
        "latest": reading.latest,
        "verdict": verdict(reading),
        "banners": list(banners(reading)),
        "acts": acts,
        "publisher": publisher_state(reading),
        "parts_waiting": list(_parts(reading.flow)),
        "span": span,
        "ranged": {choice.name: address(range=choice.name) for choice in RANGES},
        "curves": curves,
        "facts": facts,
        "unknown": {name: lag for name, lag in reading.lags.items() if name not in known},
        "every": 0 if facts is None else sum(facts.rows.values()) + sum(facts.ignored.values()),
        "reasons": sorted(reading.reasons, key=lambda count: (count.status or "", count.reason or "")),
        "measured": measured(reading),
    }


def output_facts(reading: PageReading, output: OutputView, span: ChartRange) -> Mapping[str, Any]:
    """What the template of an output's page shows."""
    name, samples = output.noted, reading.history.of(span)
    waiting = reading.waiting_for(output)
    seen = [(sample.at, sample.outputs[name]) for sample in samples if name in sample.outputs]
    return {
        "stream": address("events", output=name, range=span.name),
        "reading": reading,
        "place": output,
        "banners": list(of_output(reading, output)),
        "waiting": waiting,
        "state": output_state(output, reading.flow),
        "span": span,
        "ranged": {choice.name: address("output", name=name, range=choice.name) for choice in RANGES},
        "curves": [
            curve("Documents", "a second", [(at, measure.rate) for at, measure in seen], reading.now, span),
            curve("Rows behind", "rows", [(at, float(measure.behind)) for at, measure in seen], reading.now, span),
        ],
        "measured": measured(reading),
    }


def measured(reading: PageReading) -> str:
    """How old the figures are: what takes long to measure is measured seldom."""
    if reading.latest is None:
        return "Nothing has been measured yet."
    at = dt.datetime.fromtimestamp(reading.latest.at, dt.UTC)
    return f"Measured at {at:%Y-%m-%d %H:%M:%S} UTC."


def verdict(reading: PageReading) -> Verdict:
    """Whether it flows, and since when nobody knows that any more."""
    found = _verdict(reading)
    age = 0.0 if reading.latest is None else reading.now - reading.latest.at
    if age <= OLD_SECONDS or reading.trouble:
        return found
    state = "old" if word_of(found.state).kind in ("good", "calm") else found.state
    return replace(found, state=state, before=f"Measured {duration(age)} ago, and not since. {found.before}")


def _verdict(reading: PageReading) -> Verdict:
    """The first that is wrong, else that it flows."""
    loop, facts, flow = reading.loop, reading.facts, reading.flow
    if reading.trouble:
        age = ""
        if reading.latest is not None:
            age = f" The figures below are {duration(reading.now - reading.latest.at)} old."
        return Verdict(state="not read", before=f"The log cannot be read: {reading.trouble}{age}")
    if facts is not None and facts.failing:
        tables = ", ".join(dict.fromkeys(facts.failing.values()))
        why = "a trigger names a column that is gone. `eventlog check` says what to do."
        return Verdict(state="failing", before=f"Every write to {tables} fails: {why}")
    if loop is not None and loop.state == "failing" and not reading.fails_by_an_output:
        return Verdict(state="failing", before=f"The publisher fails: {loop.error or 'it does not say why.'}")
    if flow is None:
        return Verdict(before="Nothing has been measured yet.")
    if facts is not None:
        flow = replace(flow, tracked=bool(reading.triggers))
    failing = [output for output in reading.places if output_state(output, flow) == "failing"]
    # Its banner says "failing"; by what its rows wait for the same output would be "retrying" or
    # "lagging" here.
    if failing and flow.publishing and flow.state != "stuck":
        return Verdict(state="failing", before=f"Rows wait for {counted(len(failing), 'output')}.")
    # Sentences about outputs have the names that the rest of the page has.
    names = {output.noted: output.name for output in reading.places}
    flow = replace(flow, lags={names.get(noted, noted): lag for noted, lag in flow.lags.items()})
    if flow.state != "flowing" or facts is None:
        return _of_flow(flow)
    failed_rows = sum(facts.rows.get(letter, 0) for letter in "EF")
    if failed_rows:
        return Verdict(link=f"Not published: {counted(failed_rows)}.", to=address("rows", status="EF"))
    if facts.triggers:
        return Verdict(before=f"Not current: {counted(len(facts.triggers), 'trigger')}.")
    return _of_flow(flow)


def _of_flow(flow: Flow) -> Verdict:
    """The state in its word and in sentences, with what has waited for long and nobody holds."""
    if not flow.is_late:
        return Verdict(state=flow.state, before=" ".join([state_sentence(flow), *waiting_reasons(flow)]))
    sentences = () if flow.state == "stuck" else (state_sentence(flow),)
    nobody = () if flow.publishing or sentences else ("No publisher works on this log.",)
    after = " ".join([f", has waited for {duration(flow.lag)}.", *nobody, *waiting_reasons(flow)])
    row, to = f"row {flow.oldest}", address("rows", flow.oldest or 0)
    return Verdict(state=flow.state, before=" ".join([*sentences, "The oldest, "]), link=row, to=to, after=after)


REASONS_OF_PARTS: Final[Mapping[str, Reason]] = {
    "held": Reason.HELD,
    "retrying": Reason.RETRY,
}
"""What rows wait for that have a reason by which the list finds them."""


def _parts(flow: Flow | None) -> Iterator[tuple[str, int, str]]:
    """What rows wait for, how many, and where they are: together all that wait. Nothing where all
    wait for their turn.
    """
    if flow is None:
        return
    rows_by_part = {name: rows for name, rows in asdict(flow.parts).items() if rows}
    if set(rows_by_part) == {"ready"}:
        return
    for name, rows in rows_by_part.items():
        reason = REASONS_OF_PARTS.get(name)
        # The list finds one reason at a time.
        if name == "suspended" and len(flow.unread_tables) == 1:
            [unread_reason] = flow.unread_tables
            reason = Reason(unread_reason)
        to = address("rows", status=Status.NEW, reason=reason) if reason is not None else ""
        yield name.replace("_", " "), rows, to


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

COLUMNS: Final = ("row", "event", "status", "reason", "time", "column", "old", "new", "by")


class Viewer(Struct, frozen=True, kw_only=True):
    """What a page must know of who looks: the log, their name, whether they may act, and where
    styles are.
    """

    log: str
    visitor: str
    acts: bool
    style: str
    script: str
    rows_script: str = ""
    leaves: bool = False
    proof: str = ""


def overview_page(reading: PageReading, look: Viewer, span: ChartRange = RANGES[0]) -> str:
    facts = facts_of(reading, span, acts=look.acts)
    return _page("overview.html", "Overview", look, here="Overview", part="live.html", **facts)


def live(reading: PageReading, span: ChartRange = RANGES[0], *, acts: bool = False) -> str:
    """Everything of the first page that changes while one looks."""
    return environment().get_template("live.html").render(facts_of(reading, span, acts=acts))


def output_page(reading: PageReading, output: OutputView, look: Viewer, span: ChartRange, done: str = "") -> str:
    """An output: how it stands, its curves, and what may be done with it."""
    facts = output_facts(reading, output, span)
    return _page("output.html", f"Output {output.name}", look, part="output_live.html", done=done, **facts)


def live_output(reading: PageReading, output: OutputView, span: ChartRange) -> str:
    """Everything of an output's page that changes while one looks."""
    return environment().get_template("output_live.html").render(output_facts(reading, output, span))


def tables_page(reading: PageReading, look: Viewer) -> str:
    from eventlog.web.tracked import tracked_tables  # which knows the addresses of this module

    return _page("tables.html", "Tables", look, here="Tables", reading=reading, tables=tracked_tables(reading.triggers))


def table_page(
    name: str,
    triggers: Sequence[TriggerState],
    rows: Sequence[LogRow],
    look: Viewer,
    *,
    load: LoadView | None = None,
    unread: UnreadTable | None = None,
    done: str = "",
) -> str:
    """A table: what it needs, its triggers, its refresh, and its last changes."""
    # The class that a table belongs to is in its own schema.
    owners = {trigger.owner: trigger.schema for trigger in triggers}
    [(owner, schema)] = owners.items() if len(owners) == 1 else [(name, None)]
    return _page(
        "table.html",
        f"Table {name}",
        look,
        triggers=triggers,
        owner=owner,
        to_owner=address("table", schema=schema, name=bare_name(schema, owner)),
        rows=rows,
        table=rows[0].table_name if rows else name,
        done=done,
        banners=() if unread is None else (of_table(name, unread),),
        **_load_facts(name, load),
    )


def live_table(name: str, load: LoadView | None) -> str:
    """Everything of a table's page that changes while one looks."""
    return environment().get_template("table_live.html").render(_load_facts(name, load))


def _load_facts(name: str, load: LoadView | None) -> dict[str, Any]:
    return {"name": name, "load": load, "stream": address("events", table=name)}


def table_question(act: TableAct, look: Viewer, back: str) -> str:
    """What will be done with a table, and the one button that does it."""
    title = f"Refresh the table {act.table}?" if act.action == "refresh" else f"Stop the refresh of {act.table}?"
    return _page("confirm_table.html", title, look, act=act, back=back)


def document_page(number: int, explanation: Explanation, look: Viewer) -> str:
    """The document that a row is part of, the rows in it, and what outputs with policies get."""
    return _page("document.html", f"Document of row {number}", look, number=number, found=explanation)


def rows_page(listing: Listing, filters: Filters, look: Viewer, *, first: bool, done: str = "") -> str:
    """The log as a list: searched, filtered, a page at a time; by object it is a timeline."""
    letters = [
        ("", "any status"),
        *((status.value, f"{status.value} {letter_word(status.value).text}") for status in Status),
        ("EF", "E and F"),
        ("WEF", "W, E and F"),
    ]
    reasons = [("", "any reason"), *((reason.value, reason.value) for reason in Reason)]
    here = {Filters(): "Rows", Filters(letters="EF"): "Errors"}.get(filters, "")
    return _page(
        "rows.html",
        here or "Rows",
        look,
        here=here,
        found=listing,
        filters=filters,
        first=first,
        done=done,
        for_all=[action for action in ACTIONS if letters_for(action, filters)],
        columns=("choose", *COLUMNS) if look.acts else COLUMNS,
        letter_choices=_with(filters.letters, letters),
        reason_choices=_with(filters.reason, reasons),
    )


def row_page(row: LogRow, explanation: Explanation, look: Viewer, done: str = "") -> str:
    """A row: what was recorded, what it says, what the rules decide and why, its document."""
    index = next((at for at, near_row in enumerate(explanation.rows) if near_row.record_id == row.record_id), 0)
    near = explanation.rows[max(0, index - NEAR_ROWS) : index + NEAR_ROWS + 1]
    return _page(
        "row.html",
        f"Row {row.record_id}",
        look,
        row=row,
        found=explanation,
        near=near,
        done=done,
        actions=possible(row),
    )


def rows_question(act: RowsAct, numbers: Sequence[int], look: Viewer) -> str:
    """What will be done with which rows, and the one button that does it."""
    title = f"{act.action.capitalize()} {counted(len(numbers))}?"
    return _page("confirm.html", title, look, act=act, numbers=numbers)


def output_question(act: OutputAct, name: str, look: Viewer) -> str:
    """What will be done with an output, and the one button that does it."""
    title = f"Try the output {name} now?" if act.action == "try" else f"{act.action.capitalize()} the output {name}?"
    return _page("confirm_output.html", title, look, act=act, name=name)


def message_page(title: str, sentences: str, look: Viewer) -> str:
    return _page("message.html", title, look, sentences=sentences)


def login_page(look: Viewer, *, wrong: bool) -> str:
    return _page("login.html", "Log in", look, wrong=wrong)


def listed(filters: Filters, cursor: Cursor | None = None) -> str:
    at = cursor or Cursor()
    return address(
        "rows",
        text=filters.text,
        status=filters.letters,
        reason=filters.reason,
        table=filters.table,
        key=filters.key,
        before=at.before if at.before < BEYOND else None,
        place=at.block,
    )


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
        "code": code,
        "duration": duration,
        "grouped": "{:,}".format,
        "ident": ident,
        "kind_name": kind_name,
        "letter_word": letter_word,
        "percent": lambda part: round(100 * min(max(part, 0.0), 1.0), 2),
        "position": written,
        "short": short,
        "trigger_state": trigger_state,
        "value": value,
        "value_if": value_if,
        "with_columns": with_columns,
        "word": word_of,
    }
    made.globals |= {
        "address": address,
        "cause_characters": CAUSE_CHARACTERS,
        "guide": GUIDE,
        "output_state": output_state,
        "hidden_value": HIDDEN,
        "letters": frozenset(letter.value for letter in Status),
        "listed": listed,
        "done_with_rows": DONE,
        "gives_reason": GIVES_REASON,
        "meanings_of_actions": ACTIONS,
        "meanings_of_output_actions": OUTPUT_ACTIONS,
        "names_of_output_actions": OUTPUT_ACTION_NAMES,
        "meanings_of_table_actions": TABLE_ACTIONS,
        "meanings_of_reasons": {reason.value: meaning for reason, meaning in EXPLANATION.items()},
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
