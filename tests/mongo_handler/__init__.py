"""The handler of Qlik's messages in MongoDB's Kafka connector, as a consumer that is not ours: its jars, and Java that asks it.

No MongoDB is needed: the handler says what it would write. `./dev fetch consumers` gets the jars;
EVENTLOG_REQUIRE=consumers makes their absence a failure.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.servers import found, java_compiler

HERE = Path(__file__).parent
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8")
Message = dict[str, Any]


def classpath(folder: Path) -> str:
    """The jars, and the class that is compiled into the folder."""
    compiler = java_compiler("consumers")
    jars = ":".join(map(str, sorted(found("consumers", "mongo").glob("*.jar"))))
    subprocess.run([*compiler, "-cp", jars, "-d", folder, HERE / "java" / "handler" / "Handle.java"], check=True)
    return f"{folder}:{jars}"


def handled(classes: str, messages: Iterable[Message]) -> list[Message]:
    """What the handler would write for each message, `{"key": …, "value": …}`."""
    lines = "".join([json.dumps(one) + "\n" for one in messages])
    run = subprocess.run(
        [*JAVA, "-cp", classes, "handler.Handle"], input=lines.encode(), capture_output=True, check=True, timeout=300
    )
    return [json.loads(line) for line in run.stdout.splitlines()]
