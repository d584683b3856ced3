"""The page "From the event log to SCIM in 15 minutes": its commands are done as they stand there, in their order."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.servers import free_port

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "scim.md"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.+?)^```$", re.DOTALL | re.MULTILINE)
INSTALLED = "pip install "
"""Begins a command that a machine of tests has done already."""
STAND_INS = {
    "sqlite3": """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    connection.executescript(sys.argv[2] if len(sys.argv) > 2 else sys.stdin.read())
""",
    "curl": """
import sys, urllib.request
_, _, header, address = sys.argv[1:]
with urllib.request.urlopen(urllib.request.Request(address, headers=dict([header.split(": ")]))) as answer:
    print(answer.read().decode())
""",
}
"""What a reader has, and a fresh machine has not, as far as the page uses it."""


def test_the_page_is_true_command_for_command(tmp_path: Path) -> None:
    port = free_port()
    script = ["set -e", "trap 'kill %1' EXIT"]
    for language, said, block in BLOCK.findall(PAGE.read_text(encoding="utf-8").replace("8089", str(port))):
        title = re.search('title="(.+?)"', said)
        if title:
            script.append(f"cat > {title[1]} <<'END_OF_FILE'\n{block}END_OF_FILE")
        elif language == "sh":
            lines = [line for line in block.splitlines() if not line.startswith(INSTALLED)]
            script += ["\n".join(lines), "sleep 2" if "scim2-server" in block else ""]
    # What a reader looks at, asked for once more while the receiver is there.
    script.append("eventlog explain 1; python ask.py; eventlog verify person team")
    (tmp_path / "ask.py").write_text(f"PORT = {port}\n{ASK}", encoding="utf-8")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, program in STAND_INS.items():
        if shutil.which(name) is None:
            (tools / name).write_text(f"#!{sys.executable}\n{program}", encoding="utf-8")
            (tools / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("EVENTLOG_", "PG"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"], str(tools)])
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=kept | {"PATH": path, "HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    [asked] = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"users"')]
    assert asked == {
        "users": {"ada": ["Ada", "ada@example.com", None], "bob": ["Bob", None, "ada"]},
        "groups": {"staff": ["ada", "bob"]},
    }
    assert '"userName": "bob"' in done.stdout  # what the reader asks for by curl
    assert "POST /Users" in done.stdout


ASK = """
import json, urllib.request
def get(path):
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}/v2{path}", headers={"Authorization": "Bearer try-it"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["Resources"]
users, boss = get("/Users"), "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
names = {user["id"]: user["userName"] for user in users}
told = {}
for user in users:
    mail = next((mail["value"] for mail in user.get("emails", ())), None)
    manager = names.get(user.get(boss, {}).get("manager", {}).get("value"))
    told[user["userName"]] = [user["name"]["givenName"], mail, manager]
groups = {group["displayName"]: sorted(names[member["value"]] for member in group["members"]) for group in get("/Groups")}
print(json.dumps({"users": told, "groups": groups}))
"""
