"""`eventlog log` and `status`: the rows, readable; does it flow, and if not, what do rows wait
for.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec.structs import replace

from eventlog.care.ages import time_json, utc_json, utc_text
from eventlog.cli.mishaps import in_words
from eventlog.cli.show import (
    indent_json,
    on_terminal,
    page,
    readable,
    show_again,
    show_json,
    show_json_line,
    show_lines,
    show_table,
    wrap_text,
)
from eventlog.cli.site import MOST_ROWS, Site, json_option, site_options, table_option
from eventlog.cli.tables import paint_word, table
from eventlog.core.errors import EX_TRY_AGAIN, UsageError
from eventlog.core.model import Reason

if TYPE_CHECKING:
    from eventlog.care.listing import Filters
    from eventlog.care.rows import LogRow
    from eventlog.care.status import Facts
    from eventlog.sql.log import Log

COLUMNS = ("id", "status", "type", "time", "table", "key", "column", "old", "new", "reason", "note")
SHOWN_CHARACTERS = 40
"""Characters of a value in a table, and more if lines are longer than 120; --json gives all."""

ALL_CHARACTERS = 2**30
"""More characters than a value has."""


@click.command()
@click.option(
    "--status",
    "statuses",
    metavar="LETTERS",
    default="",
    help="Only rows with one of these statuses, e.g. EF.",
)
@click.option(
    "--reason",
    type=click.Choice([reason.value for reason in Reason]),
    help="Only rows with this reason.",
)
@table_option
@click.option(
    "--key",
    metavar="KEY",
    default="",
    help="Only rows of the object with this key, e.g. idu=7: its timeline.",
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Only later rows: an age, e.g. 2h, or a time in UTC.",
)
@click.option(
    "--text",
    metavar="WORDS",
    default="",
    help="Only rows with these words in key, column, values or note.",
)
@click.option(
    "--by",
    metavar="WHO",
    default="",
    help="Only rows of this database user, or whose session named WHO.",
)
@click.option(
    "--limit",
    metavar="ROWS",
    type=click.IntRange(1, MOST_ROWS),
    default=50,
    show_default=True,
    help="At most this many rows, the newest ones.",
)
@click.option(
    "--follow",
    "-f",
    "following",
    is_flag=True,
    help="Continue with rows that come or change; Ctrl-C ends it.",
)
@click.option(
    "--no-pager",
    "unpaged",
    is_flag=True,
    help="Print at once, also on a terminal.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV, with whole values, as the status page gives it.")
@json_option
@site_options
def log(
    site: Site,
    statuses: str,
    reason: str | None,
    table: str | None,
    key: str,
    since: str | None,
    text: str,
    by: str,
    limit: int,
    following: bool,
    unpaged: bool,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Shows rows of the log and what became of them; the newest come last. With --follow, --json
    prints one line for each row.

    On a terminal a pager (EVENTLOG_PAGER or PAGER) shows long output.

    Example: eventlog log --status E

    Example, what happened to one object: eventlog log --table usr --key idu=7
    """
    from eventlog.care.listing import Filters, follow

    if as_csv and (following or as_json):
        raise UsageError("--csv is for rows that are there.", hint="Leave out --follow and --json.")
    the_log = site.log()
    filters = Filters(
        statuses=check_statuses(statuses),
        reason=reason or "",
        table=table or "",
        key=key,
        text=text,
        by=by,
        since=_since(the_log, since) if since is not None else "",
    )
    # One more than are shown, by which it is seen that a value goes on.
    width = ALL_CHARACTERS if as_json or as_csv else min(_count_shown_characters() + 1, ALL_CHARACTERS)
    if following:
        for row in follow(the_log, filters, limit=limit, width=width, pause=time.sleep):
            if as_json:
                show_json_line(_for_programs(row))
            else:
                cells = _cells(row, today=None)
                _show_row(["-" if cell is None else readable(cell) for cell in cells])
        return
    rows, empty = _rows_or_reason(the_log, filters, limit, width)
    if as_json:
        _show_json_list(map(_for_programs, rows))
        return
    if as_csv:
        _show_csv(rows)
        return
    today = None
    if on_terminal():
        from eventlog.core.times import in_zone

        with the_log.transaction() as connection:
            now = the_log.now(connection).replace(tzinfo=None)
        today = in_zone(now, the_log.zone).strftime("%Y-%m-%d")
    cells_of = partial(_cells, today=today)
    show_table(COLUMNS, map(cells_of, rows), empty=empty, paged=not unpaged)


def _rows_or_reason(
    log: Log,
    filters: Filters,
    limit: int,
    width: int,
) -> tuple[Iterator[LogRow], str]:
    """Read the rows, and the message if there are none. A table may be named without its schema."""
    from eventlog.care.listing import newest
    from eventlog.care.rows import table_meant

    rows, empty = newest(log, filters, limit=limit, width=width), "No rows."
    first = next(rows, None)
    if first is not None:
        return chain([first], rows), empty
    if filters.key and "=" not in filters.key:
        empty = "No rows. A key is written with its column, as idu=7."
    if not filters.table:
        return rows, empty
    # Only now: nearly always the table is named as the log has it, and this costs a query.
    name, problem = table_meant(log, filters.table)
    rows = newest(log, replace(filters, table=name), limit=limit, width=width)
    return rows, problem or empty


def _since(log: Log, text: str) -> str:
    """Read an age or a time by the clock of the log; raise UsageError for anything else."""
    from datetime import timedelta

    from eventlog.care.rows import read_age
    from eventlog.core.errors import shorten
    from eventlog.core.times import in_zone, moment

    example = "write 2026-11-22 10:30, in UTC, or an age such as 2h or 30d"
    neither = f"{shorten(text)!r} is no time and no age; {example}."
    # Every date has a hyphen, and no age has one.
    if "-" in text:
        time = moment(text)
        if time is None:
            raise UsageError(neither)
    else:
        # By the clock of the database, which wrote the times of the rows.
        with log.transaction() as connection:
            now = log.now(connection)
        try:
            age = read_age(text)
        except UsageError:
            raise UsageError(neither) from None
        time = now.replace(tzinfo=None) - timedelta(seconds=age)
    return in_zone(time, log.zone).strftime("%Y-%m-%d %H:%M:%S.%f")


def check_statuses(statuses: str) -> str:
    """Return the statuses, each once; raise UsageError for impossible ones."""
    from eventlog.care.rows import MOST_STATUS_CHARACTERS

    if len(statuses) > 2 and statuses.isalpha() and statuses.islower():
        raise UsageError(
            f"{statuses!r} is a word, and --status takes letters.",
            hint="N waits, S is published, W has a warning, E an error, F ended the receiver.",
        )
    unique = "".join(dict.fromkeys(statuses.replace(",", "")))
    if len(unique) > MOST_STATUS_CHARACTERS or not unique.isprintable():
        raise UsageError(f"--status takes up to {MOST_STATUS_CHARACTERS} letters, such as E or EW.")
    return unique


def _show_csv(rows: Iterable[LogRow]) -> None:
    """Prints rows as CSV, and keeps none."""
    from eventlog.care.csv_export import write_csv

    for part in write_csv([row] for row in rows):
        click.echo(part, nl=False)


def _show_row(cells: Sequence[str]) -> None:
    """Prints a row without a heading; in a pipe it is one line."""
    # Only the status is painted: it is where the eye looks in a log that goes by.
    letter = COLUMNS.index("status")
    begin = "  ".join([*cells[:letter], ""])
    # Painted last: to whoever breaks lines the codes of a colour would be statuses.
    rest = wrap_text("  ".join(cells)).removeprefix(begin + cells[letter])
    click.echo(begin + paint_word(cells[letter]) + rest)


def _show_json_list(values: Iterable[Any]) -> None:
    """Prints values as `show_json` prints a list of them, and keeps none."""
    before = "["
    for value in values:
        inner = indent_json(value).replace("\n", "\n  ")
        click.echo(f"{before}\n  {inner}", nl=False)
        before = ","
    if before == "[":
        click.echo("[]")
    else:
        click.echo("\n]")


def _for_programs(row: LogRow) -> dict[str, Any]:
    """Convert the row for programs: a numeric event_type is a number, and times are ISO 8601."""
    import msgspec

    facts: dict[str, Any] = msgspec.to_builtins(row)
    kind = facts["event_type"]
    # A log that was adopted may have anything there; numbers above that many programs round.
    if kind and kind.isdecimal() and len(kind) <= 18:
        facts["event_type"] = int(kind)
    facts["event_time"] = time_json(row.event_time)
    facts["next_attempt"] = utc_json(facts["next_attempt"])
    return facts


def _cells(row: LogRow, *, today: str | None) -> tuple[object, ...]:
    time = row.event_time
    # On a terminal without fractions, and of today without the day.
    if today is not None and time is not None and len(time) >= 19 and time[10] in " T":
        time = time[11:19] if time.startswith(today) else f"{time[:10]} {time[11:19]}"
    return (
        row.record_id,
        row.status,
        row.event_type,
        time,
        row.table_name,
        row.table_key,
        row.column_name,
        _shorten_value(row.old_value),
        _shorten_value(row.new_value),
        row.reason,
        row.note,
    )


def _shorten_value(value: str | None) -> str | None:
    most = _count_shown_characters()
    if value is None or len(value) <= most:
        return value
    return f"{value[:most]}…"


def _count_shown_characters() -> int:
    """Return how much of a value is shown: a pipe gets all of it."""
    width = page().width
    return ALL_CHARACTERS if width is None else max(SHOWN_CHARACTERS, width // 3)


WATCH_SECONDS: Final = 2
"""How often a report that is watched is made anew, unless somebody says otherwise."""


@click.command()
@click.option("--next", "advises", is_flag=True, help="Say also which command comes next.")
@click.option(
    "--watch",
    "-w",
    metavar="SECONDS",
    is_flag=False,
    flag_value=WATCH_SECONDS,
    type=click.IntRange(1, 86_400),
    help=f"Show it again and again, by default every {WATCH_SECONDS} seconds; Ctrl-C ends it.",
)
@json_option
@site_options
def status(site: Site, advises: bool, watch: int | None, as_json: bool) -> None:
    """Shows rows by status and by what they wait for, and what needs care: the oldest row, the rate, the last error,
    and outdated triggers. With --watch, --json prints one line for each report.

    Example: eventlog status --json

    Example, a report that renews itself: eventlog status --watch
    """
    from eventlog.care.status import facts

    engine, names = site.where_logged()
    settings = site.config.publisher
    if watch is None:
        state = facts(engine, names, settings)
        if as_json:
            show_json(_report(state))
        else:
            show_lines(_status_lines(state, advises=advises))
        return
    while True:
        try:
            state = facts(engine, names, settings)
        except Exception as error:
            sentence, code = in_words(error)
            # Whoever watches a server that goes away wants to see it come back.
            if code != EX_TRY_AGAIN:
                raise
            show_again([sentence], err=as_json)
        else:
            if as_json:
                show_json_line(_report(state))
            else:
                show_again([f"{state.log} at {utc_text(time.time())} UTC", *_status_lines(state, advises=advises)])
        time.sleep(watch)


def _status_lines(state: Facts, *, advises: bool) -> Iterator[str]:
    """Yield the report for people."""
    rows = [[readable(cell) for cell in row] for row in state.lines()]
    yield from table(("status", "rows", "meaning"), rows, page())
    for sentence in state.sentences():
        yield wrap_text(readable(sentence))
    if advises:
        yield f"Next: {state.next_step()}"


def _report(state: Facts) -> dict[str, Any]:
    """Make the report for programs, with times in ISO 8601."""
    import msgspec

    report: dict[str, Any] = msgspec.to_builtins(state)
    # What is computed from the others has no field of its own.
    for name, output in state.outputs.items():
        report["outputs"][name]["failing_since"] = output.began_to_fail
    for entry, proof in zip(report["proofs"], state.proofs, strict=True):
        entry["equal"] = proof.equal
    if state.last_error is not None:
        report["last_error"]["at"] = time_json(state.last_error.at)
    # There is no publisher before the first one.
    entries = (*report["outputs"].values(), *report["proofs"], report["publisher"])
    for entry in filter(None, entries):
        for name in {"at", "failed_at", "failing_since", "since", "lease_until"} & entry.keys():
            entry[name] = utc_json(entry[name])
    return report
