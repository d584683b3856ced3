"""The documentation as it lies in a folder: its search works there too, where browsers start no worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.web.test_browser import browser, context, watched_page

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

__all__ = ["browser", "context"]

pytestmark = pytest.mark.xdist_group("browser")

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "docs" / "javascripts" / "iframe-worker.js"
WORKER = """
self.addEventListener("message", ({ data }) => postMessage({ found: data.index[data.asked] }))
"""
PAGE = """<!doctype html><title>pages</title><script src="shim.js"></script><script>
const worker = new Worker("worker.js")
worker.addEventListener("message", ({ data }) => { document.title = data.found })
worker.postMessage({ index: { requeue: "publishes rows again" }, asked: "requeue" })
</script>"""


def test_a_page_in_a_folder_asks_its_search(context: BrowserContext, tmp_path: Path) -> None:
    (tmp_path / "shim.js").write_text(SHIM.read_text())
    (tmp_path / "worker.js").write_text(WORKER)
    (tmp_path / "index.html").write_text(PAGE)
    page, faults = watched_page(context)
    page.goto((tmp_path / "index.html").as_uri())
    page.wait_for_function("document.title === 'publishes rows again'", timeout=60_000)
    assert faults == []


def test_the_pages_fetch_nothing_from_elsewhere_for_it() -> None:
    """The plug-in would take a script from a stranger's address, unless there is one of this name."""
    settings = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)  # noqa: S506  # it makes texts only
    assert "offline" in settings["plugins"]
    assert settings["extra"]["polyfills"] == [f"{SHIM.parent.name}/{SHIM.name}"]
