"""The repair: rows in the log which ask the publisher to tell exactly those objects anew, as a full
load does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from eventlog.compare.engine import Difference, DifferenceKind
from eventlog.core.model import REFRESH, REFRESH_FOR, Kind, Status
from eventlog.core.times import in_zone
from eventlog.refresh.loads import Load, Statements
from eventlog.sql.log import Log
from eventlog.verify.expected import Expected

PIECE_ROWS: Final = 1000

GOING: Final = frozenset({DifferenceKind.EXTRA, DifferenceKind.DOUBLE})


def repair(log: Log, expected: Expected, differing: Sequence[Difference], only: str) -> int:
    """Request every differing object: as now, or as deleted; for one output if named.

    An object present twice is deleted first: its present state would change both alike.
    """
    load = Load(table=expected.source.table, called=expected.source.called, only=only)
    statements = Statements(log.dialect, log.names, load)
    gone = [difference for difference in differing if difference.kind in GOING]
    # The source may have an extra one by now: behind its end it is read back, where it is there.
    there = [difference for difference in differing if difference.kind is not DifferenceKind.DOUBLE]
    for kind, differences in ((Kind.DELETE_ROW, gone), (Kind.INSERT_ROW_BACK, there)):
        texts = [expected.keyed(difference.key)[0] for difference in differences]
        keys = list(dict.fromkeys(texts))
        # A transaction for some rows at a time: a long one holds up who reads behind it.
        for start in range(0, len(keys), PIECE_ROWS):
            with log.transaction() as connection:
                statements.prepare_session(connection)
                columns = {
                    "status": Status.NEW.value,
                    "kind": int(kind),
                    "time": in_zone(log.now(connection), log.zone),
                    "perpetrator": f"{REFRESH_FOR}{only}" if only else REFRESH,
                    "called": load.called,
                }
                statements.write(connection, keys[start : start + PIECE_ROWS], columns)
    return len(differing)
