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
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.web.navigation import ICONS, page_state
from eventlog.web.pages import draw_overview
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until
from tests.support.servers import absent, found
from tests.web.states import LOOK, PAGES, STATES, WIDE
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
OVERLAPS = """() => [...document.querySelectorAll("figure.card")].flatMap((chart) => {
  const boxes = [...chart.querySelectorAll(".plot li, figcaption")].map((one) => [one.textContent, one.getBoundingClientRect()]);
  return boxes.flatMap(([said, a], at) => boxes.slice(at + 1)
    .filter(([, b]) => a.left < b.right && b.left < a.right && a.top + 4 < b.bottom && b.top + 4 < a.bottom)
    .map(([other]) => `${said} and ${other}`));
})"""
SIDEWAYS = "Math.max(0, ...[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth))"
"""How much of its widest table a page hides until somebody scrolls."""

PASTE = """(text) => {
  const data = new DataTransfer();
  data.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent("paste", {bubbles: true, clipboardData: data}));
}"""
ROW_PAGES = (
    "row at three outputs",
    "row that is held",
    "document beside the last one",
    "rows",
    "rows of a search that goes on",
)
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
    until(lambda: page.title() == "No publisher · Overview · event_log", "the title says the state")
    assert page.locator("#icon").get_attribute("href") == ICONS["bad"]
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


BEGUN = """window.EventSource = class extends EventSource {
  constructor(address) { super(address); window.begun = performance.now(); }
};"""


def test_nothing_is_drawn_twice_before_it_is_seen(server: PageServer, context: BrowserContext) -> None:
    page, faults = watched_page(context)
    page.add_init_script(BEGUN)
    page.goto(server.url)
    until(lambda: page.evaluate("window.begun !== undefined"), "the page asks for updates")
    painted = page.evaluate("performance.getEntriesByName('first-paint')[0].startTime")
    assert page.evaluate("window.begun") >= painted
    assert faults == []


def test_updates_wait_while_somebody_points_at_a_curve_and_the_page_says_so(
    server: PageServer, log: LogTable, context: BrowserContext
) -> None:
    page, faults = watched_page(context)
    page.goto(server.url)
    sign = page.locator("#paused")
    until(lambda: page.locator("svg.chart polyline.line").count() > 0, "there is a curve")
    page.evaluate(POINT)
    assert "row, " in page.locator(".figure").first.inner_text()
    assert page.locator(".cursor").count() == 1
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
    assert page.locator(".chosen").inner_text() == f"{count} chosen"
    page.get_by_label("Row 3", exact=True).uncheck()
    assert page.locator(".chosen").inner_text() == f"{count - 1} chosen"
    assert page.locator(".bar").get_by_role("button", name="CSV of the chosen").is_visible()
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


@pytest.mark.in_turn
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


def drawn(page: str) -> str:
    """A page with its style in it, as if it came from a server."""
    style = files("eventlog.web").joinpath("static", "style.css").read_text(encoding="utf-8")
    return page.replace("<style></style>", f"<style>{style}</style>", 1)


@pytest.mark.in_turn
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_in_any_of_the_eight_states(
    browser: Browser, axe: str, scheme: Literal["light", "dark"]
) -> None:
    """Nothing at all, at three widths, and on the pages of rows too."""
    context = browser.new_context(bypass_csp=True, color_scheme=scheme)
    page = context.new_page()
    looks = {name: draw_overview(reading, replace(LOOK, state=page_state(reading))) for name, reading in STATES.items()}
    looks |= {name: PAGES[name] for name in ROW_PAGES}
    for name, look in looks.items():
        page.set_content(drawn(look))
        page.evaluate(axe)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            found = page.evaluate("async () => (await axe.run()).violations")
            assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (name, width)
    context.close()


def test_letters_of_a_chart_are_of_one_size_however_wide_it_is(browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.set_content(drawn(draw_overview(STATES["flowing"], LOOK)))
    sizes = set()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 740})
        boxes = [one.bounding_box() for one in page.locator(".plot li").all()]
        sizes |= {round(box["height"]) for box in boxes if box is not None}
    assert len(sizes) == 1
    context.close()


def test_a_search_goes_on_by_itself_until_it_has_found(
    sqlite: Engine, context: BrowserContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(sqlite)
    log = LogTable(sqlite)
    log.write(3, "idu=nothing at all", status="E")
    monkeypatch.setattr("eventlog.care.listing.PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr("eventlog.care.listing.REACH_ROWS", 100)
    log.write_all(range(1000, 2000))
    with opened(log.engine) as server:
        page, faults = watched_page(context)
        page.goto(f"{server.url}rows")
        page.get_by_label("Find a row").fill("idu=nothing at all")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="3", exact=True).wait_for()
        page.get_by_text("The whole log was looked through.").wait_for()
        page.get_by_label("Choose all rows of this page").check()
        assert page.locator(".chosen").inner_text() == "1 chosen"
        page.goto(f"{server.url}rows?text=nothing-is-so")
        page.get_by_text("The whole log was looked through.").wait_for()
        assert page.locator("#empty").inner_text() == "No such rows."
    assert faults == []


def test_a_key_is_found_by_pasting_it_anywhere(server: PageServer, context: BrowserContext) -> None:
    page, faults = watched_page(context)
    page.goto(f"{server.url}tables")
    page.evaluate(PASTE, "usr.idu=1")
    page.wait_for_url("**/rows?table=usr&key=idu%3D1")
    page.evaluate(PASTE, "3")
    page.wait_for_url("**/rows/3")
    assert faults == []


def test_actions_stay_in_sight_while_one_scrolls(log: LogTable, context: BrowserContext) -> None:
    log.write_all(range(1000, 1100))
    with opened(log.engine) as server:
        page, _ = watched_page(context)
        page.goto(f"{server.url}rows")
        bar = page.locator(".bar")
        for height in (0, 400):
            page.evaluate(f"window.scrollTo(0, {height})")
            box, view = bar.bounding_box(), page.viewport_size
            assert box is not None
            assert view is not None
            assert 0 < box["y"] <= view["height"] - box["height"]
        with page.expect_download() as started:
            page.get_by_role("link", name="CSV of all").click()
        assert started.value.suggested_filename == "rows.csv"


@pytest.mark.in_turn
def test_no_page_is_cut_off_in_any_state(browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    for name, look in PAGES.items():
        page.set_content(drawn(look))
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 740})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
            assert name == WIDE or page.evaluate(SIDEWAYS) == 0, (name, width)
    context.close()
