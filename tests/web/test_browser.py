"""Level browser: the page in Chromium. Charts draw, figures come by themselves, a requeue works, hostile texts stay texts,
and axe-core finds no serious fault of accessibility.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.support.servers import absent, found
from tests.web.states import PAGES, WIDE
from tests.web.visiting import HOSTILE, Visit, opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

pytestmark = pytest.mark.xdist_group("browser")  # one Chromium, not one for each worker
TOKEN = "the-token-that-nobody-guesses"
PATHS = (
    *("", "?range=7d", "rows", "rows/10", "rows/2", "confirm?action=hold&id=2", "rows?text=nothing-is-so"),
    *("tables", "rows/2/document", "rows/99999"),
    *("output?name=files+out", "confirm?action=pause&output=files+out", "confirm?action=hold&all=1"),
)
POINT = """() => {
  const box = document.querySelector("svg.chart").getBoundingClientRect();
  const at = {bubbles: true, clientX: box.right - 1, clientY: box.top + 20};
  document.querySelector("svg.chart").dispatchEvent(new PointerEvent("pointermove", at));
}"""
OVERLAPS = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
  const boxes = [...chart.querySelectorAll("text")].map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([said, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 4 < b.bottom && b.top + 4 < a.bottom)
    .map(([other]) => `${said} and ${other}`));
})"""
SIDEWAYS = "Math.max(0, ...[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth))"
"""How much of its widest table a page hides until somebody scrolls."""

WIDTHS = (360, 900, 1400)
ARGUMENTS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """Chromium, whose settings and caches of fonts stand in a folder of its own and not in the home of the run."""
    binary = shutil.which("chromium") or shutil.which("chromium-browser")
    if binary is None:
        absent("browser", "the system has no chromium")
    from playwright.sync_api import sync_playwright

    home = str(tmp_path_factory.mktemp("browser"))
    elsewhere = {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "XDG_CONFIG_HOME": f"{home}/config"}
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=binary, args=ARGUMENTS, env={**os.environ, **elsewhere})
        yield started
        started.close()


@pytest.fixture(scope="module")
def axe() -> str:
    """axe-core's script."""
    script = found("browser", "axe") / "axe.min.js"
    return script.read_text(encoding="utf-8")


@pytest.fixture
def server(log: LogTable) -> Iterator[PageServer]:
    with opened(log.engine) as page:
        until(lambda: "have not yet been counted" not in Visit(page).get("/").body, "rows are counted")
        yield page


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context()
    yield made
    made.close()


def watched_page(context: BrowserContext) -> tuple[Page, list[str]]:
    """A tab, and what goes wrong in it."""
    page, faults = context.new_page(), list[str]()
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda told: faults.append(told.text) if told.type == "error" else None)
    page.on("dialog", lambda dialog: faults.append(dialog.message))
    return page, faults


def _is_drawn(chart: Locator) -> bool:
    """Whether it takes room on the page."""
    box = chart.bounding_box()
    return box is not None and box["width"] > 100 and box["height"] > 30


def test_the_first_page_draws_its_charts_and_figures_come_without_loading_it_again(
    server: PageServer, log: LogTable, context: BrowserContext
) -> None:
    page, faults = watched_page(context)
    page.goto(server.url)
    assert page.title() == "Overview · event_log · eventlog"
    charts = page.locator("svg.chart")
    assert charts.count() == 3
    # The page puts new charts in the place of old ones while this looks, and one that is just gone has no box.
    until(lambda: all(_is_drawn(charts.nth(number)) for number in range(3)), "the charts have their size")
    until(lambda: page.locator("svg.chart .line, svg.chart .dot").count() >= 3, "there are samples to draw")
    page.evaluate("window.stayed = true")
    log.write_all(range(100, 120))
    page.get_by_role("link", name="21 rows").wait_for()
    assert page.evaluate("window.stayed") is True
    assert faults == []


def test_updates_wait_while_somebody_points_at_a_curve_and_the_page_says_so(
    server: PageServer, log: LogTable, context: BrowserContext
) -> None:
    page, faults = watched_page(context)
    page.goto(server.url)
    sign = page.locator("#paused")
    until(lambda: page.locator("svg.chart polyline.line").count() > 0, "there is a curve")
    page.evaluate(POINT)
    assert "rows, " in page.locator("svg.chart .cursor text").inner_html()
    log.write_all(range(100, 120))
    until(lambda: sign.inner_text() == "Live updates are paused while you point at a curve.", "it says so")
    assert page.get_by_role("link", name="21 rows").count() == 0
    page.evaluate("document.body.dispatchEvent(new PointerEvent('pointermove', {bubbles: true}))")
    page.get_by_role("link", name="21 rows").wait_for()
    assert (sign.inner_text(), page.locator(".cursor").count()) == ("", 0)
    assert faults == []


def test_all_rows_of_a_page_are_chosen_at_once(server: PageServer, context: BrowserContext) -> None:
    page, faults = watched_page(context)
    page.goto(f"{server.url}rows?status=E")
    page.get_by_label("Choose all rows of this page").check()
    count = 1 + len(HOSTILE)
    assert page.locator(".chosen").inner_text() == f"{count} of {count} rows chosen"
    page.get_by_label("Row 3", exact=True).uncheck()
    assert page.locator(".chosen").inner_text() == f"{count - 1} of {count} rows chosen"
    page.get_by_role("button", name="Requeue", exact=True).click()
    page.get_by_role("heading", name=f"Requeue {count - 1} rows?").wait_for()
    assert faults == []


def test_a_requeue_works_by_keyboard_alone(server: PageServer, log: LogTable, context: BrowserContext) -> None:
    page, faults = watched_page(context)
    page.goto(f"{server.url}rows/3")
    page.get_by_role("button", name="Requeue").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/confirm?**")
    page.get_by_role("button", name="Requeue 1 row").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/rows/3?done=**")
    assert page.get_by_role("status").inner_text() == "1 row is waiting again now."
    assert log.statuses()[3] == "N"
    assert faults == []


@pytest.mark.parametrize("javascript", [True, False])
def test_hostile_texts_stay_texts(server: PageServer, browser: Browser, javascript: bool) -> None:
    context = browser.new_context(java_script_enabled=javascript)
    page, faults = watched_page(context)
    paths = ["rows", "rows?status=E", *(f"rows/{number}" for number in range(10, 10 + len(HOSTILE)))]
    for path in paths:
        page.goto(f"{server.url}{path}")
        assert "taken" not in page.title()
        assert page.locator("main script, main img, main [onload], main [onerror]").count() == 0
        assert page.locator("h1").count() == 1
    page.goto(f"{server.url}rows/10")
    assert HOSTILE[0] in page.locator("main").inner_text()
    assert faults == []
    context.close()


def test_it_is_read_without_javascript(server: PageServer, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(server.url)
    assert page.locator("svg.chart").count() == 3
    page.get_by_role("link", name="Rows", exact=True).click()
    page.get_by_label("Status").select_option("E")
    page.get_by_role("button", name="Show").click()
    assert page.locator("tbody tr").count() == 1 + len(HOSTILE)
    context.close()


def test_the_login_lets_in(log: LogTable, context: BrowserContext) -> None:
    with opened(log.engine, WebConfig(token=TOKEN)) as server:
        page, _ = watched_page(context)
        page.goto(server.url)
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="Overview").wait_for()
        page.get_by_role("button", name="Log out").click()
        page.get_by_label("Token").wait_for()
        page.goto(f"{server.url}rows")
        assert page.url == f"{server.url}login"


@pytest.mark.parametrize("scheme, rules", [("light", ""), ("dark", "{runOnly: ['color-contrast']}")])
def test_no_serious_fault_of_accessibility_and_nothing_cut_off(
    server: PageServer, browser: Browser, axe: str, scheme: Literal["light", "dark"], rules: str
) -> None:
    """On a phone, a tablet and a desk the page does not scroll sideways, only tables do."""
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    for path in PATHS:
        page.goto(f"{server.url}{path}")
        page.evaluate(axe)
        found = page.evaluate(f"async () => (await axe.run({rules})).violations")
        faults = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert faults == [], path
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
            assert page.evaluate(OVERLAPS) == [], (path, width)
    context.close()


def test_long_names_do_not_make_the_page_wider(sqlite: Engine, browser: Browser) -> None:
    install(sqlite)
    log = LogTable(sqlite)
    name = "a_table_of_all_persons_who_have_ever_been_employed_by_any_of_our_companies"
    log.run(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
    track(sqlite, [name])
    log.write(500, "id=" + "x" * 300, table_name=name, new_value="W" * 4000)
    context = browser.new_context()
    page = context.new_page()
    with opened(sqlite) as server:
        for path in ("", "tables", f"table?name={name}", "rows", "rows/500", f"confirm?action=refresh&table={name}"):
            page.goto(f"{server.url}{path}")
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 740})
                assert page.evaluate("document.documentElement.scrollWidth") <= width, (path, width)
    context.close()


@pytest.mark.in_turn
def test_no_page_is_cut_off_in_any_state(browser: Browser) -> None:
    style = files("eventlog.web").joinpath("static", "style.css").read_text(encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    for name, drawn in PAGES.items():
        page.set_content(drawn.replace('<link rel="stylesheet" href="/s.css">', f"<style>{style}</style>"))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert name == WIDE or page.evaluate(SIDEWAYS) == 0, (name, width)
    context.close()
