"""Why rows of a conversion ended as errors: notes that differ only in names, values and numbers are
shown as one.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from eventlog.convert.folders import OUTCOMES_FILE
from eventlog.core.plural import count_words

if TYPE_CHECKING:
    import pyarrow as pa

    from eventlog.convert.settings import Conversion

SHOWN_NOTES: Final = 10
"""Reasons that are shown; the others have few rows each, and the outcomes have them all."""

MOST_NOTES: Final = 10_000
"""Notes that are told apart while they are counted."""

BATCH_ROWS: Final = 65_536
"""Outcomes that are looked at together."""

# Values and numbers: by these the notes of one reason differ.
_differs = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")


class BadRows(Struct, frozen=True, kw_only=True):
    """Rows that ended as errors for one reason, and the note of one of them."""

    rows: int
    reason: str
    note: str = ""

    def sentence(self) -> str:
        return f"{count_words(self.rows, 'row')} ended as E, {self.reason}: {self.note or 'without a note.'}"


def foreseen(conversion: Conversion) -> str | None:
    """Warn of rows nothing can be read back for, by a look at the first rows of the input."""
    from eventlog.convert.reading import read
    from eventlog.convert.settings import FilesInput
    from eventlog.core.rules.images import decode_image
    from eventlog.core.rules.meaning import MEANING

    source = conversion.input
    if not isinstance(source, FilesInput) or conversion.read_back is not None:
        return None
    batches = (batch for unit in conversion.units for batch in read(unit))
    # The first one with rows: a file may have none.
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None
    kinds = first.column("event_type").to_pylist()
    # A row with an image says by itself what its object looks like.
    asking = sum(
        kind in MEANING and MEANING[kind].back and (not value or decode_image(value) is None)
        for kind, value in zip(kinds, first.column("new_value").to_pylist(), strict=True)
    )
    if not asking:
        return None
    return (
        f"{asking:,} of the first {count_words(len(kinds), 'row')} must be read back from their tables."
        " Without --database URL or --snapshot DIR such rows end as E."
    )


def bad_rows(folder: Path) -> tuple[BadRows, ...]:
    """Group the rows of status E, the largest group first; none without outcomes here."""
    file = folder / OUTCOMES_FILE
    if not file.exists():
        return ()
    import pyarrow.dataset as ds

    counts: Counter[tuple[str, str]] = Counter()
    examples: dict[tuple[str, str], str] = {}
    scanner = ds.dataset(file, format="parquet").scanner(
        columns=["reason", "note"], filter=ds.field("status") == "E", batch_size=BATCH_ROWS
    )
    for batch in scanner.to_batches():
        _count(batch, counts, examples)
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHOWN_NOTES]
    return tuple(BadRows(rows=rows, reason=group[0], note=examples[group]) for group, rows in largest)


def _count(
    batch: pa.RecordBatch,
    counts: Counter[tuple[str, str]],
    examples: dict[tuple[str, str], str],
) -> None:
    pairs = zip(batch.column("reason").to_pylist(), batch.column("note").to_pylist(), strict=True)
    # Equal notes together first: the pattern below takes most of the time.
    met = Counter((reason or "error", note or "") for reason, note in pairs)
    for (reason, note), rows in met.items():
        group = (reason, _differs.sub("…", note))
        # Texts without quotes may make a group of each row: the rest is counted without notes.
        if group not in counts and len(counts) >= MOST_NOTES:
            group = (reason, "")
        counts[group] += rows
        examples.setdefault(group, note)
