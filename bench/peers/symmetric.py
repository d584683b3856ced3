"""SymmetricDS's dbcompare, as `./dev fetch dbcompare` gets it: a process of Java that reads both tables in their order.

Without `--use-sym-config false` it compares the tables that its own triggers capture, which here are none.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Final

from sqlalchemy import URL

from tests.support.fetching import fetched

COMMAND: Final = "org.jumpmind.symmetric.DbCompareCommand"
LONGEST_SECONDS: Final = 1800
ENGINE: Final = """engine.name={name}
group.id={name}
external.id={name}
db.driver=org.postgresql.Driver
db.url=jdbc:postgresql://{host}:{port}/{database}
db.user={user}
db.password=
sync.url=http://localhost/sync/{name}
registration.url=
auto.config.database=false
"""


def jars() -> Path | None:
    """The folder with SymmetricDS, if it was fetched."""
    return fetched("symmetric")


def differing(url: URL, source: str, target: str) -> int:
    """How many rows of two tables of a PostgreSQL differ, by its report."""
    with tempfile.TemporaryDirectory(prefix="eventlog-bench-") as folder:
        options = ["--target-tables", target, "--use-sym-config", "false"]
        for side in ("source", "target"):
            file = Path(folder) / f"{side}.properties"
            file.write_text(
                ENGINE.format(name=side, host=url.host, port=url.port, database=url.database, user=url.username)
            )
            options += [f"--{side}", str(file)]
        command = ["java", "-cp", f"{jars()}/*", COMMAND, *options, source]
        done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=LONGEST_SECONDS)
    rows = [line.split() for line in done.stdout.splitlines() if line.split()[:2] == [source, target]]
    if done.returncode or len(rows) != 1:
        raise AssertionError(f"dbcompare did not end well: {(done.stderr or done.stdout)[-1000:]}")
    return sum(map(int, rows[0][5:8]))  # other values, missing, extra
