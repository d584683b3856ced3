"""The publisher with IBM's own driver in its Java virtual machine: it reads a session through the driver's class for it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from eventlog.sources.gbase.emulator import CUSTOMER, PURCHASE, shop
from tests.gbase_client import classpath, framed
from tests.support.gbase_server import GBaseServer
from tests.support.gbase_streams import captured
from tests.support.servers import absent, free_port

COLUMNS = {CUSTOMER: "id,born,active,kind,name,note", PURCHASE: "id,customer,price,weight,at,lasting,place"}


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> str:
    if find_spec("jpype") is None:
        absent("jdbc", "the package JPype1 is not installed")
    return classpath(tmp_path_factory.mktemp("client"))


def publish(place: Path, source: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the publisher with a source of GBase streams into a folder of documents."""
    names = {table: names.split(",") for table, names in COLUMNS.items()}
    columns = ", ".join(f'"{table}" = {json.dumps(columns)}' for table, columns in names.items())
    (place / "eventlog.toml").write_text(
        f"""[source]
kind = "gbase"
[source.gbase]
{source}
tables = {{ "1" = "{CUSTOMER}", "2" = "{PURCHASE}" }}
columns = {{ {columns} }}
keys = {{ "shop.customer" = ["id"], "shop.purchase" = ["id"] }}
marks = "{place / "marks.json"}"
[publisher]
batch_size = 128
[[output]]
sink = "files"
path = "{place / "out"}"
"""
    )
    command = [sys.executable, "-m", "eventlog", "run", "--config", str(place / "eventlog.toml"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=300, check=False)


def documents(place: Path) -> list[str]:
    return [path.read_text() for path in sorted((place / "out").glob("*.xml"))]


@pytest.mark.in_turn
def test_the_publisher_reads_a_session_through_ibms_class_as_it_reads_the_file(classes: str, tmp_path: Path) -> None:
    live, filed = tmp_path / "live", tmp_path / "filed"
    live.mkdir()
    filed.mkdir()
    server = GBaseServer(wide=False)
    shop(120, emulator=server)
    reads = captured(server, COLUMNS)
    (live / "reads").write_bytes(framed([*reads, reads[-1]]))
    (filed / "stream").write_bytes(b"".join(reads))
    jars = json.dumps(classes.split(":"))
    source = f'driver = "jdbc"\nurl = "jdbc:offline:{live}"\nclasspath = {jars}\nserver = "emulated"'
    run = publish(live, source, "--until-empty")
    assert run.returncode == 0, run.stderr
    run = publish(filed, f'path = "{filed / "stream"}"', "--until-empty")
    assert run.returncode == 0, run.stderr
    assert len(documents(live)) > 0
    assert documents(live) == documents(filed)
    calls = [json.loads(line) for line in (live / "calls").read_text().splitlines()]
    assert calls[0][0] == "EXECUTE FUNCTION informix.cdc_opensess(?, ?, ?, ?, ?, ?)"
    assert calls[-1] == ["EXECUTE FUNCTION informix.cdc_closesess(?)", ["setInt", 101]]


@pytest.mark.in_turn
def test_a_server_that_ibms_driver_does_not_reach_is_a_sentence(classes: str, tmp_path: Path) -> None:
    url = f"jdbc:informix-sqli://127.0.0.1:{free_port()}/syscdcv1:INFORMIXSERVER=emulated"
    run = publish(tmp_path, f'driver = "jdbc"\nurl = "{url}"\nclasspath = {json.dumps(classes.split(":"))}', "--once")
    assert run.returncode == 75
    assert "The server refuses connecting: " in run.stderr
    assert "Traceback" not in run.stderr
