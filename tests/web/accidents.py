"""Photographs the page in five accidents, light and dark, on a phone, a tablet and a desk: python -m tests.web.accidents

Each picture in tests/web/pictures carries what the page said, which tests/web/test_accidents.py compares with what it says now.
"""

from __future__ import annotations

import os
import shutil
from importlib.resources import files
from io import BytesIO
from math import sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from msgspec.structs import replace
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from eventlog.web.pages import overview_page
from eventlog.web.reading import History, OutputSample, PageReading
from tests.web.test_banners import ACCIDENTS
from tests.web.test_drawn import LOOK, NOW, SAMPLE
from tests.web.test_html import Reader

FOLDER: Final = Path(__file__).resolve().parent / "pictures"
WIDTHS: Final = (360, 900, 1400)
SCHEMES: Final = ("light", "dark")
COLOURS: Final = 32
SAYS: Final = "Description"
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


def drawn(reading: PageReading) -> str:
    """The page, with half an hour of curves."""
    history = History()
    for step in range(60, -1, -1):
        outputs = {place.noted: OutputSample(behind=step, rate=2.5) for place in reading.places}
        sample = replace(SAMPLE, at=NOW - 30 * step, rate=round(10 + 3 * sin(step / 4), 1), outputs=outputs)
        history = history.with_sample(sample)
    return overview_page(replace(reading, history=history), LOOK)


def words(page: str) -> str:
    """What a page says between its head and the version at its end."""
    said = " ".join(Reader(page.replace("<", " <")).text.split())
    return said.partition("To the content ")[2].rpartition(" eventlog ")[0]


def pictures(name: str) -> list[Path]:
    """Where the pictures of an accident are."""
    called = name.replace(" ", "-")
    return [FOLDER / f"{called}-{scheme}-{width}.png" for scheme in SCHEMES for width in WIDTHS]


def said_by(picture: Path) -> str:
    """What the page said when it was photographed."""
    with Image.open(picture) as image:
        return str(image.info[SAYS])


def kept(photograph: bytes, said: str, into: Path) -> None:
    """Stores a picture in few colours, with what it says."""
    information = PngInfo()
    information.add_itxt(SAYS, said)
    with Image.open(BytesIO(photograph)) as image:
        image.convert("RGB").quantize(COLOURS).save(into, optimize=True, pnginfo=information)


def photograph(browser: Any, name: str, into: Path = FOLDER) -> None:
    """All pictures of an accident. The page must not be wider than the screen, and its banner must be there to see."""
    reading, banner = ACCIDENTS[name]
    page_text = drawn(reading)
    style = files("eventlog.web").joinpath("static", "style.css").read_text(encoding="utf-8")
    for place in pictures(name):
        _, scheme, width = place.stem.rsplit("-", 2)
        context = browser.new_context(viewport={"width": int(width), "height": 740}, color_scheme=scheme)
        page = context.new_page()
        page.set_content(page_text.replace('<link rel="stylesheet" href="/s.css">', f"<style>{style}</style>"))
        assert page.evaluate("document.documentElement.scrollWidth") <= int(width), place.name
        seen = " ".join(page.locator(".banner").first.inner_text().split())
        assert seen.startswith(banner.partition(".")[0]), seen
        kept(page.screenshot(full_page=True), words(page_text), into / place.name)
        context.close()


def main() -> None:
    """Makes all pictures anew."""
    from playwright.sync_api import sync_playwright

    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        environment: dict[str, Any] = {**os.environ, "HOME": home, "XDG_CACHE_HOME": home, "XDG_CONFIG_HOME": home}
        browser = playwright.chromium.launch(executable_path=binary, args=[*ARGUMENTS], env=environment)
        for name in ACCIDENTS:
            photograph(browser, name)
        browser.close()


if __name__ == "__main__":
    main()
