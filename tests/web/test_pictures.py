"""The pictures of the README can be made anew where a browser is: the demo, a publisher at its log, the page in light and dark."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from docs.pictures import VIEW, main
from tests.support.servers import absent

pytestmark = pytest.mark.xdist_group("browser")


@pytest.mark.in_turn
def test_the_script_makes_the_pictures(tmp_path: Path) -> None:
    if shutil.which("chromium") is None and shutil.which("chromium-browser") is None:
        absent("browser", "the system has no chromium")
    main(tmp_path)
    light, dark = ((tmp_path / f"page-{scheme}.png").read_bytes() for scheme in ("light", "dark"))
    assert struct.unpack(">II", light[16:24]) == struct.unpack(">II", dark[16:24]) == (VIEW["width"], VIEW["height"])
    assert light != dark
    assert "eventlog run --until-empty" in (tmp_path / "demo.svg").read_text()
