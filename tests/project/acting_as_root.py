"""What `sudo` is on the pages that a test executes: it acts in a folder in place of the machine.

Paths under /etc, /opt and /var/lib begin in the folder that EVENTLOG_TEST_ROOT names. A user is not made; a service is
started as its unit says, and its journal is a file.
"""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(os.environ.get("EVENTLOG_TEST_ROOT", "/nonexistent"))
OURS = re.compile(r"(?<![\w/])/(?:etc|opt|var/lib)/")
SEEN_BY_SYSTEMD = ("Type", "User", "ExecStart", "WatchdogSec", "Restart", "EnvironmentFile", "WorkingDirectory")


def inside(text: str) -> str:
    """A text whose paths of the machine are paths in the folder."""
    return OURS.sub(lambda found: f"{ROOT}{found[0]}", text)


def unit() -> dict[str, str]:
    """What the installed unit says under [Service]; a key that there are several of has the last value."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd tells upper and lower case apart
    parser.read_string(inside((ROOT / "etc/systemd/system/eventlog.service").read_text()))
    assert set(parser.sections()) == {"Unit", "Service", "Install"}
    return dict(parser["Service"])


def verify(file: str) -> int:
    """What systemd itself says, where it is there, of a copy whose program lies in the folder."""
    service = unit()
    assert [key for key in SEEN_BY_SYSTEMD if key not in service] == []
    analyze = shutil.which("systemd-analyze", path="/usr/bin:/bin")
    if analyze is None:
        return 0
    copy = ROOT / "eventlog.service"
    copy.write_text(inside(Path(file).read_text()))
    done = subprocess.run([analyze, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout + done.stderr)
    return done.returncode or ("eventlog.service" in done.stderr)


def start() -> None:
    """Starts the service, and leaves its process id to the test."""
    service = unit()
    state = ROOT / "var/lib" / service["StateDirectory"]
    state.mkdir(parents=True)
    assert service["WorkingDirectory"] == str(state)
    lines = Path(service["EnvironmentFile"].lstrip("-")).read_text().splitlines()
    kept = {name: value for name, value in os.environ.items() if name not in ("DB_PASSWORD", "NOTIFY_SOCKET")}
    environment = kept | dict(line.split("=", 1) for line in lines)
    with (ROOT / "journal").open("wb") as journal:
        command = shlex.split(service["ExecStart"])
        started = subprocess.Popen(
            command, cwd=state, env=environment, stdout=journal, stderr=journal, start_new_session=True
        )
    (ROOT / "pid").write_text(str(started.pid))


def main(words: list[str]) -> int:
    """Does what a superuser's command asks for, as far as it can be done in a folder."""
    program, *rest = map(inside, words)
    if program == "useradd" or (program == "systemctl" and rest == ["daemon-reload"]):
        return 0
    if program == "systemd-analyze":
        return verify(rest[1])
    if program == "systemctl":
        assert rest == ["enable", "--now", "eventlog"]
        start()
        return 0
    if program == "journalctl":
        sys.stdout.write((ROOT / "journal").read_text())
        return 0
    target = Path(rest[-1])
    if program in ("install", "python3"):
        target.parent.mkdir(parents=True, exist_ok=True)
    return subprocess.run([program, *rest], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
