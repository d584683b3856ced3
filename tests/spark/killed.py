"""A log that is followed in a process of its own, which kills itself at a moment of one of its batches."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import Struct

from eventlog.convert import commit, pipeline
from eventlog.convert.commit import Destination
from eventlog.convert.settings import Conversion, LogInput, MessageFiles, SentMessages, Target
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog_spark import addresses, batches, following
from eventlog_spark.cluster import Cluster
from eventlog_spark.convert import SparkEngine
from eventlog_spark.following import Following, follow
from eventlog_spark.hadoop import HadoopFolder
from tests.spark.processes import JAVA_OPTIONS
from tests.support.strategies import CATALOG

BATCH_ROWS: Final = 10
SETTINGS: Final = MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta")


class Moment(Struct, frozen=True):
    """What is called then, and whether the process ends before it or behind it; which call of a batch's `calls` it is."""

    owner: Any
    name: str
    before: bool = False
    calls: int = 1
    which: int = 1


MOMENTS: Final = {
    "nothing is there": Moment(batches.BatchConversion, "_done", before=True),
    "rows are there": Moment(batches, "convert", before=True),
    "all is decided": Moment(SparkEngine, "decided"),
    "parts are staged": Moment(Destination, "commit", before=True),
    "one part is moved": Moment(Path, "replace", calls=5, which=2),
    "parts are moved": Moment(commit, "write_file", before=True, calls=2, which=2),
    "_SUCCESS is written": Moment(commit, "write_file", calls=2, which=2),
    "the work is gone": Moment(batches, "convert"),
    "the batch is noted": Moment(HadoopFolder, "note"),
    "the batch is taken": Moment(following._Batches, "take"),
}

SENT_MOMENTS: Final = {
    "nothing is sent": Moment(pipeline, "send", before=True),
    "messages are sent": Moment(pipeline, "send"),
}
"""More of them, where messages go to Kafka."""

ADDRESS_MOMENTS: Final = {
    "blobs are decided": Moment(addresses, "_decide_blobs"),
    "files are written": Moment(HadoopFolder, "commit", before=True),
    "one file has its name": Moment(HadoopFolder, "_rename", calls=5),
    "files have their names": Moment(HadoopFolder, "_rename", calls=5, which=3),
    "_SUCCESS has its name": Moment(HadoopFolder, "_rename", calls=5, which=4),
    "the batch has its note": Moment(HadoopFolder, "_rename", calls=5, which=5),
}
"""Others, where the output is an address."""


def followed(url: str, out: str, servers: str) -> Following:
    """Messages into files of a folder or at an address, or to a Kafka that is named."""
    form: Target = MessageFiles(settings=SETTINGS)
    if servers:
        form = SentMessages(settings=SETTINGS, into=KafkaSettings(servers=servers))
    conversion = Conversion(input=LogInput(url=url), destination=Path(out), catalog=CATALOG, format=form)
    address = out if out.startswith("file:") else None
    return Following(conversion=conversion, address=address, until_empty=True, batch_rows=BATCH_ROWS)


def dying(kept: Callable[..., Any], *, call: int, before: bool) -> Callable[..., Any]:
    """The function, in whose call of this number the process ends."""
    calls = count(1)

    def called(*told: Any, **more: Any) -> Any:
        due = next(calls) == call
        if due and before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = kept(*told, **more)
        if due:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return called


def main(moment: str, batch: str, url: str, out: str, servers: str) -> None:
    """Follows until the moment comes, or to the end where none is named."""
    conf = {"spark.driver.extraJavaOptions": JAVA_OPTIONS, "spark.driver.memory": "512m"}
    conf |= {"spark.sql.shuffle.partitions": "1", "spark.sql.codegen.wholeStage": "false"}
    with pytest.MonkeyPatch.context() as patch:
        if moment:
            chosen = (MOMENTS | SENT_MOMENTS | ADDRESS_MOMENTS)[moment]
            call = (int(batch) - 1) * chosen.calls + chosen.which
            patch.setattr(
                chosen.owner, chosen.name, dying(getattr(chosen.owner, chosen.name), call=call, before=chosen.before)
            )
        follow(
            followed(url, out, servers),
            lambda *_: None,
            cluster=Cluster(master="local[2]", conf=conf),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
