"""A log that is converted to an address and marked, by a process of its own that kills itself at a moment of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partialmethod
from typing import Final

import pytest

from eventlog.cli.main import exit_code
from eventlog.convert import free_rows, place
from eventlog.convert.commit import SUCCESS, UNMARKED
from eventlog.convert.marks import Marking
from eventlog.convert.place import ConversionPlace
from eventlog_spark import rows
from eventlog_spark.addresses import MarkedAddress
from eventlog_spark.hadoop import HadoopFolder
from tests.spark.killed import Moment, dying
from tests.spark.processes import JAVA_OPTIONS

MOMENTS: Final = {
    "some rows are sealed": Moment(ConversionPlace, "_seal_page"),
    "rows are sealed": Moment(Marking, "begin"),
    "rows are stored": Moment(rows, "store_rows"),
    "files are written": Moment(Marking, "plan", before=True),
    "rows are planned": Moment(Marking, "plan"),
    "one file has its name": Moment(HadoopFolder, "_rename"),
    "the output is there": Moment(HadoopFolder, "commit"),
    "some rows are marked": Moment(ConversionPlace, "mark"),
    "all rows are marked": Moment(ConversionPlace, "leave", before=True),
    "the journal is left": Moment(ConversionPlace, "leave"),
    "all is over": Moment(MarkedAddress, "remove"),
}
"""What is called then."""

RENAMES: Final = {"the order has its name": UNMARKED, "_SUCCESS has its name": SUCCESS}
"""Which file gets its name then."""

BATCH_ROWS: Final = 10


def command(url: str, out: str) -> list[str]:
    return ["convert", "database", url, "--out", out, "--part-events", "8", "--mark"]


def _renamed(folder: HadoopFolder, kept: Callable[..., None], last: str, source: str, name: str) -> None:
    kept(folder, source, name)
    if name == last:
        os.kill(os.getpid(), signal.SIGKILL)


def main(moment: str, url: str, out: str, *settings: str) -> None:
    """Converts with these settings of Spark besides, and dies at the moment."""
    conf = {"spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.driver.memory": "512m", "spark.ui.enabled": "false"}
    conf |= {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
    more = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    more += [word for setting in settings for word in ("--conf", setting)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(free_rows, "PAGE_ROWS", BATCH_ROWS)
        patch.setattr(place, "SEAL_PIECES", 2)
        if moment in RENAMES:
            patch.setattr(HadoopFolder, "_rename", partialmethod(_renamed, HadoopFolder._rename, RENAMES[moment]))
        elif moment:
            chosen = MOMENTS[moment]
            kept = getattr(chosen.owner, chosen.name)
            patch.setattr(chosen.owner, chosen.name, dying(kept, call=chosen.which, before=chosen.before))
        sys.exit(exit_code([*command(url, out), "--master", "local[2,4]", *more]))


if __name__ == "__main__":
    main(*sys.argv[1:])
