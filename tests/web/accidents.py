"""Photographs the pages in five accidents, light and dark, on a phone, a tablet and a desk: python -m tests.web.accidents

Each picture in tests/web/pictures carries what the page said, which tests/web/test_accidents.py compares with what it says now.
"""

from __future__ import annotations

import os
import re
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

from eventlog.admin.listing import Cursor, Filters, Listing
from eventlog.admin.rows import LogRow
from eventlog.explain.rows import ExplainedRow, Explanation
from eventlog.sources.log.flow import OutputLag
from eventlog.web.acts import RowsAct
from eventlog.web.pages import (
    document_page,
    output_page,
    overview_page,
    row_page,
    rows_page,
    rows_question,
    table_page,
    tables_page,
)
from eventlog.web.reading import RANGES, History, OutputSample, PageReading
from tests.web.test_banners import ACCIDENTS, DEAD, SLOW
from tests.web.test_drawn import LOOK, NOW, ROW, SAMPLE, triggers
from tests.web.test_html import Reader

FOLDER: Final = Path(__file__).resolve().parent / "pictures"
WIDTHS: Final = (360, 900, 1400)
SCHEMES: Final = ("light", "dark")
COLOURS: Final = 32
COLOUR: Final = re.compile(r"#([0-9a-f]{6}|[0-9a-f]{3})\b")
HIDDEN_PIXELS: Final = (
    "Math.max(0, ...[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth))"
)
"""How much of its widest table a page hides until somebody scrolls."""

KEPT: Final = {
    "output-dead": ("light-360", "dark-900", "light-1400"),
    "output-slow": ("dark-360", "light-900"),
    "rows": ("light-360", "dark-900", "light-1400"),
    "row-held": ("dark-360", "light-900", "dark-1400"),
    "row-no-right": ("light-360",),
    "document": ("dark-360", "light-900"),
    "tables": ("light-360", "dark-1400"),
    "table": ("light-360", "dark-900"),
    "question": ("dark-360",),
}
"""The pictures of pages beside the overview: enough to see each in light, in dark, and at each width."""

SAYS: Final = "Description"
ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")


def measured(reading: PageReading) -> PageReading:
    """The reading with half an hour of curves that end in its figures."""
    history, flow = History(), reading.flow
    assert flow is not None
    for step in range(60, -1, -1):
        ago = 30.0 * step
        published = flow.settled / 60
        sample = replace(
            SAMPLE,
            at=NOW - ago,
            waiting=reading.waiting,
            oldest=flow.oldest,
            lag=flow.lag if flow.lag is None or flow.lag < ago else flow.lag - ago,
            rate=round(published * (1 + 0.3 * sin(step / 4)), 1),
            outputs={
                place.noted: OutputSample(
                    behind=(reading.waiting_for(place) or OutputLag()).rows, rate=place.rate or 0.0
                )
                for place in reading.places
            },
        )
        history = history.with_sample(sample)
    return replace(reading, history=history)


def drawn(reading: PageReading) -> str:
    """The overview."""
    return overview_page(measured(reading), LOOK)


HELD_NOTE: Final = "held since 2027-01-14 17:00:00 UTC by ann: their database moves."
DENIED_NOTE: Final = "permission denied for table usr"
DOCUMENT: Final = """<modify class-name="usr" event-id="00000000000000000009" src-dn="usr\\\\idu=1">
  <association>usr,idu=1</association>
  <modify-attr attr-name="fname">
    <remove-value><value>Jack</value></remove-value>
    <add-value><value>John</value></add-value>
  </modify-attr>
</modify>"""


def explained(row: LogRow, *, status: str, reason: str, note: str | None) -> Explanation:
    """What `explain` says of a row that is read with another one of its object."""
    one = ExplainedRow(
        record_id=row.record_id,
        event_type=2,
        column="fname",
        old="Jack",
        new="John",
        status=status,
        reason=reason,
        note=note,
    )
    further = replace(one, record_id=row.record_id + 3, column="lname", old="Frost", new="Fröst")
    recorded = f"It waits: {note}" if note else "It waits."
    return Explanation(record_id=row.record_id, status="N", recorded=recorded, rows=(one, further), document=DOCUMENT)


def other_pages() -> dict[str, str]:
    """The pages beside the overview, in the accidents that show there."""
    held = replace(ROW, record_id=9, reason="held", note=HELD_NOTE)
    behind = replace(
        ROW, record_id=12, reason="held", note="row 9 of the same object comes first.", column_name="lname"
    )
    refused = replace(ROW, record_id=8, status="E", reason="refused", table_key="idu=4", note="no such department")
    new = replace(ROW, record_id=6, status="S", event_type="5", column_name=None, old_value=None, new_value=None)
    denied = replace(ROW, reason="no right", note=DENIED_NOTE)
    unreadable = replace(explained(denied, status="N", reason="no right", note=DENIED_NOTE), document=None)
    states = triggers({"usr_delete": "CURRENT", "usr_insert": "CURRENT", "usr_update": "OUTDATED"})
    unread = ACCIDENTS["no right"][0]
    filters = Filters(letters="N", reason="held")
    return {
        "output-dead": output_page(measured(ACCIDENTS["dead output"][0]), DEAD, LOOK, RANGES[0]),
        "output-slow": output_page(measured(ACCIDENTS["slow receiver"][0]), SLOW, LOOK, RANGES[0]),
        "rows": rows_page(
            Listing(rows=(behind, held, refused, new), further=Cursor(before=6)), Filters(), LOOK, first=True
        ),
        "row-held": row_page(held, explained(held, status="N", reason="held", note=HELD_NOTE), LOOK),
        "row-no-right": row_page(denied, unreadable, LOOK),
        "document": document_page(9, explained(held, status="N", reason="held", note=HELD_NOTE), LOOK),
        "tables": tables_page(replace(unread, triggers=states), LOOK),
        "table": table_page("usr", states, (denied, new), LOOK, unread=unread.unread["usr"]),
        "question": rows_question(RowsAct(action="release", filters=filters), range(9, 2009), LOOK),
    }


def words(page: str) -> str:
    """What a page says between its head and the version at its end."""
    said = " ".join(Reader(page.replace("<", " <")).text.split())
    return said.partition("To the content ")[2].rpartition(" eventlog ")[0]


def all_pages() -> dict[str, str]:
    """Every page that has pictures, by the name that begins theirs."""
    overviews = {name.replace(" ", "-"): drawn(reading) for name, (reading, _) in ACCIDENTS.items()}
    return overviews | other_pages()


def pictures(name: str) -> list[Path]:
    """Where the pictures of a page are: of the overview all, of the others a phone's, a tablet's or a desk's in turn."""
    every = [FOLDER / f"{name}-{scheme}-{width}.png" for scheme in SCHEMES for width in WIDTHS]
    if name not in KEPT:
        return every
    return [FOLDER / f"{name}-{kept}.png" for kept in KEPT[name]]


def said_by(picture: Path) -> str:
    """What the page said when it was photographed."""
    with Image.open(picture) as image:
        return str(image.info[SAYS])


def colours_of(image: Image.Image, style: str) -> list[Any]:
    """The colours that a picture keeps: all that the style names, and the most frequent others, which smooth the letters."""
    named = {"".join(2 * digit for digit in one) if len(one) == 3 else one for one in COLOUR.findall(style)}
    counts = {colour: count for count, colour in image.getcolors(image.width * image.height) or ()}
    wanted = {tuple(bytes.fromhex(one)) for one in named} & counts.keys()
    others = sorted(counts.keys() - wanted, key=lambda colour: (-counts[colour], colour))
    return [*sorted(wanted), *others][:COLOURS]


def keep(photograph: bytes, said: str, style: str, into: Path) -> None:
    """Stores a picture in few colours, with what it says."""
    information = PngInfo()
    information.add_itxt(SAYS, said)
    with Image.open(BytesIO(photograph)) as opened:
        image = opened.convert("RGB")
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for colour in colours_of(image, style) for part in colour])
    few = image.quantize(palette=palette, dither=Image.Dither.NONE)
    few.save(into, optimize=True, pnginfo=information)


def photograph(browser: Any, name: str, into: Path = FOLDER) -> None:
    """All pictures of a page. Nothing on it may be wider than the screen, or hidden until somebody scrolls sideways."""
    page_text = all_pages()[name]
    style = files("eventlog.web").joinpath("static", "style.css").read_text(encoding="utf-8")
    for place in pictures(name):
        _, scheme, width = place.stem.rsplit("-", 2)
        context = browser.new_context(viewport={"width": int(width), "height": 300}, color_scheme=scheme)
        page = context.new_page()
        page.set_content(page_text.replace('<link rel="stylesheet" href="/s.css">', f"<style>{style}</style>"))
        assert page.evaluate("document.documentElement.scrollWidth") <= int(width), place.name
        assert page.evaluate(HIDDEN_PIXELS) == 0, place.name
        keep(page.screenshot(full_page=True), words(page_text), style, into / place.name)
        context.close()


def main() -> None:
    """Makes all pictures anew."""
    from playwright.sync_api import sync_playwright

    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    with TemporaryDirectory() as home, sync_playwright() as playwright:
        environment: dict[str, Any] = {**os.environ, "HOME": home, "XDG_CACHE_HOME": home, "XDG_CONFIG_HOME": home}
        browser = playwright.chromium.launch(executable_path=binary, args=[*ARGUMENTS], env=environment)
        for name in all_pages():
            photograph(browser, name)
        browser.close()


if __name__ == "__main__":
    main()
