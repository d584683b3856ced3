"""A log that is converted to an address and marked, by a process of its own that kills itself at a moment of it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from functools import partialmethod
from typing import Any, Final

import pytest

from eventlog.care import conversions
from eventlog.care.conversions import ConversionJournal
from eventlog.cli.main import exit_code
from eventlog.convert import marked_rows
from eventlog.convert.commit import SUCCESS, UNMARKED
from eventlog.convert.mark import Marking
from eventlog_spark import addresses
from eventlog_spark.hadoop import HadoopFolder
from eventlog_spark.marked import MarkedAddress
from tests.spark.killed import Moment, dying
from tests.spark.processes import JAVA_OPTIONS

MOMENTS: Final = {
    "rows are taken": Moment(addresses, "taken_rows"),
    "files are written": Moment(Marking, "reserve_numbers", before=True),
    "some rows are reserved": Moment(ConversionJournal, "_reserve_some"),
    "rows are reserved": Moment(Marking, "reserve_numbers"),
    "one file has its name": Moment(HadoopFolder, "_rename"),
    "the output is there": Moment(HadoopFolder, "commit"),
    "marks are announced": Moment(MarkedAddress, "write"),
    "the order is removed": Moment(MarkedAddress, "remove"),
    "some rows are marked": Moment(ConversionJournal, "mark"),
    "all rows are marked": Moment(ConversionJournal, "finish", before=True),
    "the journal is left": Moment(ConversionJournal, "finish"),
    "all is over": Moment(MarkedAddress, "remove", which=2),
}
"""What is called then."""

RENAMES: Final = {"the order has its name": UNMARKED, "_SUCCESS has its name": SUCCESS}
"""Which file gets its name then."""

TORN: Final = "a note beside the output is begun"
"""Its file is there and holds nothing: so HDFS has one that is not closed yet."""

BATCH_ROWS: Final = 10


def command(url: str, out: str) -> list[str]:
    return ["convert", "database", url, "--out", out, "--part-events", "8", "--mark"]


def _torn(folder: HadoopFolder, name: str, content: bytes) -> None:
    system: Any = folder._system
    system.create(folder._path(folder.subfolder(name))).close()
    os.kill(os.getpid(), signal.SIGKILL)


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
        patch.setattr(marked_rows, "BATCH_ROWS", BATCH_ROWS)
        patch.setattr(conversions, "RESERVED_BATCHES", 2)
        if moment == TORN:
            patch.setattr(MarkedAddress, "write", lambda place, name, content: _torn(place._folder, name, content))
        elif moment in RENAMES:
            patch.setattr(HadoopFolder, "_rename", partialmethod(_renamed, HadoopFolder._rename, RENAMES[moment]))
        elif moment:
            chosen = MOMENTS[moment]
            kept = getattr(chosen.owner, chosen.name)
            patch.setattr(chosen.owner, chosen.name, dying(kept, call=chosen.which, before=chosen.before))
        sys.exit(exit_code([*command(url, out), "--master", "local[2,4]", *more]))


if __name__ == "__main__":
    main(*sys.argv[1:])
