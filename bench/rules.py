"""How fast per-field rows in memory become XDS bytes, and whether twice the rows cost twice the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from bench.measure import Benchmark, Contestant, Target, Timings
from eventlog.core.model import Document, Event
from eventlog.core.rules import decide
from eventlog.core.schema import Catalog, Column, Table
from eventlog.core.seams import encode
from eventlog.xds.write import XdsFormat

PROMISED = 250_000
GROWTH = 1.5  # what n log n would cost from 10^4 to 10^6; linear stays below
MOST_CHANGES = 128
COLUMNS = ("fname", "lname", "mail", "phone", "city", "title")
UPDATED = 2
LogRow = tuple[int, str, str, int, str, str | None, str, str | None, str | None, str | None]

CATALOG = Catalog(
    [
        Table(
            schema="indirect",
            name="usr",
            columns=(Column(name="idu", type="integer", key=1), *(Column(name=name) for name in COLUMNS)),
        )
    ]
)


def benchmark(*, quick: bool) -> Benchmark:
    """From plain tuples, as a driver hands them out, to the bodies of documents: Events, rules, XDS."""
    sizes = (100, 1_000) if quick else (10_000, 100_000, 1_000_000)
    rows = list(log_rows(sizes[-1]))
    middle = sizes[-2]
    return Benchmark(
        name="rules",
        question="how fast do per-field rows become XDS?",
        unit="row",
        contestants=[
            Contestant(name="one f-string a row", run=partial(_written, rows[:middle]), units=middle, floor=True),
            *(Contestant(name=f"{n:,} rows", run=partial(published, rows[:n], MOST_CHANGES), units=n) for n in sizes),
            Contestant(name="one change a document", run=partial(published, rows[:middle], 1), units=middle),
        ],
        targets=partial(_targets, smallest=f"{sizes[0]:,} rows", largest=f"{sizes[-1]:,} rows"),
        note=(
            f"Each object is inserted ({len(COLUMNS)} rows of type 1) and updated ({UPDATED} rows of type 2),"
            f" {MOST_CHANGES} changes to a document where not said otherwise, with a catalog; one value in ten needs"
            " escaping. The floor writes the same values without any rule."
        ),
    )


def log_rows(number: int) -> Iterator[LogRow]:
    """Rows in the order of the log's columns: an object is inserted, all columns, and two of them are updated."""
    per_object = len(COLUMNS) + UPDATED
    for record_id in range(1, number + 1):
        idu, place = divmod(record_id - 1, per_object)
        inserted = place < len(COLUMNS)
        column = COLUMNS[place if inserted else place - len(COLUMNS)]
        old = None if inserted else f"new {record_id}"
        new = f"R&D {record_id}" if record_id % 10 == 0 else f"new {record_id}"
        time = "2025-03-23 10:57:19"
        yield record_id, f"idu={idu}", "N", 1 if inserted else 2, time, "app", "usr", column, old, new


def published(rows: Iterable[LogRow], batch_size: int, catalog: Catalog = CATALOG) -> int:
    """The number of bytes that the rows make."""
    decision = decide(events(rows), catalog=catalog)
    encoded = encode(XdsFormat(batch_size=batch_size), decision.changes, catalog)
    return sum(len(document.body) for document in encoded if isinstance(document, Document))


def events(rows: Iterable[LogRow]) -> Iterator[Event]:
    for record_id, key, _, kind, time, perpetrator, table, column, old, new in rows:
        yield Event(
            position=(record_id,),
            kind=kind,
            table=table,
            key=key,
            column=column,
            old=old,
            new=new,
            time=time,
            perpetrator=perpetrator,
        )


def _written(rows: Iterable[LogRow]) -> int:
    made = [
        f'<modify class-name="{table}" event-id="{record_id}"><association>{key},table={table}</association>'
        f'<modify-attr attr-name="{column}"><remove-value><value type="string">{old}</value></remove-value>'
        f'<add-value><value type="string">{new}</value></add-value></modify-attr></modify>\n'
        for record_id, key, _, _, _, _, table, column, old, new in rows
    ]
    return len("".join(made).encode())


def _targets(timings: Timings, *, smallest: str, largest: str) -> list[Target]:
    slowest = min(timings[smallest].rate, timings[largest].rate)
    growth = timings[largest].each / timings[smallest].each
    return [
        Target(
            promise=f"{PROMISED:,} rows/s on one core, few rows or many",
            measured=f"{slowest:,.0f} rows/s",
            reached=slowest >= PROMISED,
        ),
        Target(
            promise=f"a row among {largest} costs less than {GROWTH:g} times a row among {smallest}",
            measured=f"{growth:.2f} times",
            reached=growth < GROWTH,
        ),
    ]
