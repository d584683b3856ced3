"""The systemd unit: systemd itself judges what a publisher may do under it, and it leaves what one needs."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

from tests.support.servers import absent

UNIT = Path(__file__).resolve().parents[2] / "docker" / "eventlog.service"
MOST = 20
"""Tenths of systemd's exposure, of which it calls less than 50 OK."""


def test_systemd_calls_its_exposure_ok() -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        absent("systemd", "there is no systemd-analyze")
    command = [analyze, "security", "--offline=true", "--no-pager", f"--threshold={MOST}", str(UNIT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-300:] + done.stderr
    assert "OK" in done.stdout.splitlines()[-1]


def test_a_publisher_keeps_its_folder_and_reaches_databases() -> None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.read(UNIT)
    service = parser["Service"]
    assert {"AF_UNIX", "AF_INET", "AF_INET6"} == set(service["RestrictAddressFamilies"].split())
    assert service["StateDirectory"] == service["WorkingDirectory"].removeprefix("/var/lib/")
    # Drivers make code, and /proc says whether another publisher lives.
    assert not {"memorydenywriteexecute", "procsubset", "privatenetwork", "ipaddressdeny"} & set(service)
