"""Makes the pictures of the README from the program as it runs: the demo in a terminal, and the status page of the demo's log.

python docs/pictures.py           docs/pictures/demo.svg, and with a Chromium all page-….png
python docs/pictures.py parts     page-parts.png, page-row.png and page-states.png alone
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from xml.sax.saxutils import escape

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the states of the page are those of its tests

FOLDER: Final = Path(__file__).resolve().parent / "pictures"
COLUMNS: Final = 100
SHOWN_LINES: Final = 26
LINE_PIXELS: Final = 17
LETTER_PIXELS: Final = 7.8
LINE_SECONDS: Final = 0.25
END_SECONDS: Final = 6.0
"""How long the last lines stay before it begins again."""

VIEW: Final[Any] = {"width": 1100, "height": 940}
STATE_VIEW: Final[Any] = {"width": 1100, "height": 480}
SHEET: Final = (
    "body { margin: 0; display: grid; grid-template-columns: 1fr 1fr; gap: 8px; background: #888 } img { width: 100% }"
)
WORKED: Final = 4
"""How often somebody works while the page is looked at."""

ARGUMENTS: Final = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking")

PARTS: Final = {
    ".find": "Find: a row's number, a table, a key or words; a paste anywhere does the same.",
    "#state": "Every output: its state and its documents a second in the last hour.",
    ".banner": "The answer: the state in a word, its cause, and what to do.",
    ".figures": "Now: rows that wait, the lag with the row that causes it, and rows finished a second.",
    ".charts": "Curves of an hour, a day or a week.",
    ".counts": "Rows by status; each letter leads to its rows.",
    ".outputs": "Outputs: their state, the last document and the last error.",
}
"""What a picture of the page numbers, by where it is, and the sentences of docs/how-to/status-page.md about it."""

NUMBER_PARTS: Final = """selectors => selectors.forEach((selector, at) => {
  const box = document.querySelector(selector).getBoundingClientRect(), sign = document.createElement('b');
  sign.textContent = at + 1;
  Object.assign(sign.style, {position: 'absolute', left: Math.max(2, box.left + scrollX - 12) + 'px', top: Math.max(2, box.top + scrollY - 12) + 'px',
    width: '24px', height: '24px', borderRadius: '12px', background: '#c2185b', color: '#fff', font: 'bold 14px/24px sans-serif',
    textAlign: 'center', zIndex: 99});
  document.body.append(sign);
})"""

STYLE: Final = """\
text { font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #24292f; white-space: pre }
rect { fill: #f6f8fa; stroke: #d0d7de }
.t { fill: #0550ae; font-weight: bold }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } rect { fill: #161b22; stroke: #30363d } .t { fill: #79c0ff } }
"""


def demo(folder: Path) -> list[str]:
    """What the demo prints, line by line; its database stays in the folder."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    command = [sys.executable, "-m", "eventlog", "demo", "--keep", str(folder)]
    printed = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**kept, "NO_COLOR": "1", "COLUMNS": str(COLUMNS)}
    ).stdout
    return printed.partition("Try next")[0].replace(str(folder), "demo").rstrip().splitlines()


def cast(lines: Sequence[str]) -> str:
    """An SVG in which the lines come one after the other, and go up when the window is full; for ever, and without a script."""
    shown = [line[:COLUMNS] for line in lines]
    seconds = len(shown) * LINE_SECONDS + END_SECONDS
    width, height = round(COLUMNS * LETTER_PIXELS) + 24, SHOWN_LINES * LINE_PIXELS + 20
    drawn = "".join(_line(number, line, seconds) for number, line in enumerate(shown))
    steps = [f"0 {-max(0, number + 1 - SHOWN_LINES) * LINE_PIXELS}" for number in range(len(shown))]
    times = [f"{number * LINE_SECONDS / seconds:.4f}".rstrip("0") for number in range(len(shown))]
    scroll = (
        f'<animateTransform attributeName="transform" type="translate" calcMode="discrete" dur="{seconds}s"'
        f' repeatCount="indefinite" values="{";".join(steps)}" keyTimes="{";".join(times)}"/>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" aria-label="The demo of eventlog in a terminal"><style>{STYLE}</style>'
        f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>'
        f'<svg x="12" y="10" width="{width - 24}" height="{height - 20}"><g>{drawn}{scroll}</g></svg></svg>\n'
    )


def _line(number: int, text: str, seconds: float) -> str:
    """A line that is there from its time on. Without animations it is there all the time."""
    if not text.strip():
        return ""
    begin = number * LINE_SECONDS / seconds
    kind = ' class="t"' if text[:1].isdigit() else ""
    appear = (
        f'<animate attributeName="opacity" calcMode="discrete" dur="{seconds}s" repeatCount="indefinite"'
        f' values="0;1" keyTimes="0;{begin:.4f}"/>'
    )
    return f'<text y="{number * LINE_PIXELS + 13}"{kind}>{escape(text)}{appear if number else ""}</text>\n'


@contextmanager
def publishing(folder: Path) -> Iterator[int]:
    """A publisher of the demo's log with its page, and somebody who works meanwhile; the port of the page."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EVENTLOG_")}
    config = folder / "demo.toml"
    url, out = f"sqlite:///{folder / 'demo.db'}", folder / "out"
    # The demo has published to standard output, whose place the files take.
    output = f'[[output]]\nname = "files"\nsink = "files"\npath = "{out}"\nformer_names = ["stdout"]\n'
    config.write_text(f'[source]\nurl = "{url}"\n{output}', encoding="utf-8")
    where = ["--config", str(config)]
    command = [sys.executable, "-m", "eventlog", "run", *where, "--http", "127.0.0.1:0", "--log-format", "json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=kept) as running:
        assert running.stderr is not None
        try:
            yield next(record["port"] for record in map(json.loads, running.stderr) if record["action"] == "watched_at")
        finally:
            running.terminate()
            running.stderr.read()


def work(folder: Path, number: int) -> None:
    """Changes, and a row that somebody wrote wrongly, so that there is something to see."""
    wrong = "INSERT INTO event_log (table_name, table_key, event_type) VALUES ('badge', 'code=x+y', 4)"
    with closing(sqlite3.connect(folder / "demo.db", timeout=30)) as opened, opened:
        opened.executemany(
            "INSERT INTO person (id, name) VALUES (?, 'Ann')", [(10 * number + one,) for one in range(5)]
        )
        opened.execute(wrong if number == 1 else "UPDATE badge SET colour = ?", () if number == 1 else (str(number),))


def photograph(folder: Path, into: Path, browser: str) -> list[Path]:
    """The status page of the demo's log, light and dark."""
    from playwright.sync_api import sync_playwright

    home: dict[str, Any] = {**os.environ, "HOME": str(folder), "XDG_CACHE_HOME": str(folder / ".cache")}
    made = []
    with publishing(folder) as port, sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=[*ARGUMENTS], env=home)
        for number in range(1, WORKED + 1):
            work(folder, number)
            time.sleep(2)
        for scheme in ("light", "dark"):
            context = chromium.new_context(viewport=VIEW, color_scheme=scheme)
            seen = context.new_page()
            seen.goto(f"http://127.0.0.1:{port}/", wait_until="load")
            seen.wait_for_timeout(1500)  # figures come by themselves
            made.append(into / f"page-{scheme}.png")
            seen.screenshot(path=made[-1])
        chromium.close()
    return made


def photograph_parts(into: Path, browser: str) -> None:
    """Photograph what the page of the states shows: the parts of one that lags, numbered; a row; and all eight states."""
    from msgspec.structs import replace
    from playwright.sync_api import sync_playwright

    from eventlog.web.app import read_style
    from eventlog.web.navigation import page_state
    from eventlog.web.pages import draw_overview
    from tests.web.states import LOOK, PAGES, STATES

    style = read_style()
    drawn = {
        name: draw_overview(reading, replace(LOOK, style=style, state=page_state(reading)))
        for name, reading in STATES.items()
    }
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser, args=[*ARGUMENTS])
        seen = chromium.new_context(viewport=VIEW, color_scheme="light").new_page()
        seen.set_content(drawn["lagging"])
        seen.evaluate(NUMBER_PARTS, [*PARTS])
        seen.screenshot(path=into / "page-parts.png", full_page=True)
        seen.set_content(PAGES["row that was refused"].replace("<style></style>", f"<style>{style}</style>", 1))
        seen.screenshot(path=into / "page-row.png", clip={"x": 0, "y": 0, "width": VIEW["width"], "height": 520})
        shots = []
        for number, page in enumerate(drawn.values()):
            scheme: Any = ("light", "dark", "dark", "light")[number % 4]
            one = chromium.new_context(viewport=STATE_VIEW, color_scheme=scheme).new_page()
            one.set_content(page)
            shots.append(b64encode(one.screenshot()).decode())
        seen.set_viewport_size({"width": 1408, "height": 600})
        images = "".join(f'<img src="data:image/png;base64,{shot}">' for shot in shots)
        seen.set_content(f"<style>{SHEET}</style>{images}")
        seen.screenshot(path=into / "page-states.png", full_page=True)
        chromium.close()


def main(into: Path = FOLDER) -> None:
    """All pictures that can be made here."""
    into.mkdir(exist_ok=True)
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is not None:
        photograph_parts(into, browser)
    if sys.argv[1:] == ["parts"]:
        return
    with TemporaryDirectory(prefix="eventlog-pictures-") as name:
        folder = Path(name) / "demo"
        (into / "demo.svg").write_text(cast(demo(folder)), encoding="utf-8")
        if browser is not None:
            photograph(folder, into, browser)


if __name__ == "__main__":
    main()
