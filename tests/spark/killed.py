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

from eventlog.convert import commit
from eventlog.convert.commit import Destination
from eventlog.convert.settings import Conversion, LogInput, MessageFiles, SentMessages, Target
from eventlog.qlik.messages.settings import MessageSettings
from eventlog.sinks.kafka.settings import KafkaSettings
from eventlog_spark import addresses, following
from eventlog_spark.cluster import Cluster
from eventlog_spark.convert import SparkEngine
from eventlog_spark.following import Following, follow
from eventlog_spark.hadoop import HadoopFolder
from eventlog_spark.sending import Sending
from tests.spark.processes import JAVA_OPTIONS
from tests.support.strategies import CATALOG

BATCH_ROWS: Final = 10
SETTINGS: Final = MessageSettings(topic="{table}", mode="metadata", metadata_topic="meta")

MOMENTS: Final[dict[str, tuple[Any, str, bool]]] = {
    "nothing is there": (following._Batches, "_done", True),
    "rows are there": (following, "convert", True),
    "all is decided": (SparkEngine, "decided", False),
    "parts are staged": (Destination, "commit", True),
    "parts are moved": (commit, "flush_folder", False),
    "_SUCCESS is there": (following, "convert", False),
    "the batch is noted": (HadoopFolder, "note", False),
    "the batch is taken": (following._Batches, "take", False),
}
"""What is called then, and whether the process ends before it or behind it."""

SENT_MOMENTS: Final[dict[str, tuple[Any, str, bool]]] = {
    "numbers are taken": (Sending, "sent", True),
    "messages are sent": (Sending, "sent", False),
}
"""More of them, where messages go to Kafka."""

ADDRESS_MOMENTS: Final[dict[str, tuple[Any, str, bool]]] = {
    "blobs are decided": (addresses, "decided_blobs", False),
    "files are written": (HadoopFolder, "commit", True),
    "files have their names": (HadoopFolder, "commit", False),
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
            owner, name, before = (MOMENTS | SENT_MOMENTS | ADDRESS_MOMENTS)[moment]
            patch.setattr(owner, name, dying(getattr(owner, name), call=int(batch), before=before))
        follow(
            followed(url, out, servers),
            lambda *_: None,
            cluster=Cluster(master="local[2]", conf=conf),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
