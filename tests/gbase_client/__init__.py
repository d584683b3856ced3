"""IBM's change stream client for Informix as a second reader of streams: its jars, Java that gives it bytes, its answers.

No server is needed: the client gets a connection of the driver's own class that never connected. `./dev fetch
jdbc` gets the jars; EVENTLOG_REQUIRE=jdbc makes their absence a failure.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tests.support.servers import found, java_compiler

HERE = Path(__file__).parent
JAVA = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=UTC", "-Dfile.encoding=UTF-8")
Told = dict[str, Any]


def classpath(folder: Path) -> str:
    """The jars, and the classes that are compiled into the folder."""
    compiler = java_compiler("jdbc")
    jars = ":".join(map(str, sorted(found("jdbc", "client").glob("*.jar"))))
    subprocess.run([*compiler, "-cp", jars, "-d", folder, *(HERE / "java" / "client").glob("*.java")], check=True)
    services = folder / "META-INF" / "services"
    services.mkdir(parents=True)
    (services / "java.sql.Driver").write_text("client.Offline\n")
    return f"{folder}:{jars}"


class OtherReader:
    """A running Java program that answers each piece of bytes with a line of JSON."""

    def __init__(self, classes: str, program: str, encoding: str = "UTF-8") -> None:
        pipe = subprocess.PIPE
        command = [*JAVA, f"-Dclient.encoding={encoding}", "-cp", classes, f"client.{program}"]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def tell(self, *pieces: bytes) -> Told:
        """The answer to the last of the pieces, before which none is answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(framed(pieces))
        self._process.stdin.flush()
        told: Told = json.loads(self._process.stdout.readline())
        return told

    def read(self, records: Iterable[bytes]) -> list[Told]:
        """What it says of each record of a stream that begins here."""
        assert self._process.stdin is not None
        self._process.stdin.write(framed([b""]))
        return [self.tell(record) for record in records]

    def close(self) -> None:
        """Ends the program."""
        self._process.communicate(timeout=300)


def session(classes: str, tables: Sequence[str], reads: Iterable[bytes]) -> list[Told]:
    """What a whole session of the client tells: its calls, the transactions that it reads, and how it ends."""
    command = [*JAVA, "-cp", classes, "client.Session", *tables]
    run = subprocess.run(command, input=framed(reads), capture_output=True, check=True, timeout=300)
    return [json.loads(line) for line in run.stdout.splitlines()]


def framed(pieces: Iterable[bytes]) -> bytes:
    """Each piece with its length before it."""
    return b"".join(struct.pack(">I", len(piece)) + piece for piece in pieces)
