"""What is done through the page beside single rows: all rows of a list, with a reason; outputs; tables; curves that stay."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.care.listing import Filters
from eventlog.care.outputs import list_outputs
from eventlog.config.settings import Config, SourceConfig
from eventlog.core.errors import UsageError
from eventlog.daemon.logging import journal
from eventlog.daemon.publisher import Publisher
from eventlog.policies import steps
from eventlog.refresh.loads import RefreshPace
from eventlog.sinks.outputs import FilesOutput
from eventlog.sql.log import Log
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TrackRequest
from eventlog.web.actions import FILTERED_ROWS, WHY_CHARACTERS, OutputAct, RowsAct, read_act, read_done
from eventlog.web.collector import ENTRY_SECONDS, HistoryFile
from eventlog.web.loading import Loading
from eventlog.web.open_page import open_page
from eventlog.web.reading import RANGES, History, OutputSample, Sample
from eventlog.web.server import PageServer
from eventlog.web.settings import WebConfig
from tests.conformance.event_logs import LogTable
from tests.integration.publishing import until, url_of
from tests.web.visiting import Visit, watched

PROXY = WebConfig(user_header="X-Forwarded-User", hosts=("log.example",))
OUTPUTS = (FilesOutput(path="out", name="near"), FilesOutput(path="other", name="far"))


@pytest.fixture
def log(sqlite: Engine) -> LogTable:
    found = watched(sqlite)
    found.write_all(range(100, 130))
    return found


@contextmanager
def paged(log: LogTable, config: Config) -> Iterator[tuple[PageServer, io.StringIO]]:
    written = io.StringIO()
    page = open_page("127.0.0.1:0", config, journal("json", stream=written))
    try:
        yield page, written
    finally:
        page.close()


def config_of(log: LogTable, web: WebConfig | None = None) -> Config:
    return Config(source=SourceConfig(url=url_of(log.engine)), output=OUTPUTS, tables={"web": web or WebConfig()})


@pytest.fixture
def page(log: LogTable) -> Iterator[PageServer]:
    with paged(log, config_of(log)) as (page, _):
        yield page


def held(log: LogTable) -> list[tuple[int, str]]:
    return [(number, note) for number, note in log.ask("SELECT record_id, note FROM event_log_hold ORDER BY record_id")]


def test_all_rows_of_a_list_are_held_after_a_question_that_says_how_many(page: PageServer, log: LogTable) -> None:
    visit = Visit(page)
    body = visit.get("/rows?status=N").body
    assert "Hold all…" in body
    assert "Requeue all…" not in body
    asked = visit.get("/confirm?action=hold&all=1&status=N&table=usr")
    assert "Hold 31 rows?" in asked.body
    log.write_all(range(130, 140))  # they come after the question, and are not meant
    form = {"action": "hold", "all": 1, "status": "N", "table": "usr", "last": 129, "proof": asked.proof}
    done = visit.post("/act", form | {"why": " the  receiver\nmoves "})
    assert (done.status, done.headers["location"]) == (303, "/rows?table=usr&done=hold+31")
    assert "31 rows are held now." in visit.get(done.headers["location"]).body
    found = held(log)
    assert [number for number, _ in found] == [2, *range(100, 130)]
    assert found[0][1].endswith("by the status page: the receiver moves")
    released = visit.get("/confirm?action=release&all=1&reason=held")
    assert "Release 31 rows?" in released.body
    assert visit.post("/act", {"action": "release", "all": 1, "reason": "held", "proof": released.proof}).status == 303
    assert held(log) == []
    assert "No row of this filter can be released now." in visit.get("/confirm?action=release&all=1").body


def test_all_errors_of_a_table_wait_again(page: PageServer, log: LogTable) -> None:
    visit = Visit(page)
    asked = visit.get("/confirm?action=requeue&all=1&status=EF")
    assert "Requeue 7 rows?" in asked.body
    assert visit.post("/act", {"action": "requeue", "all": 1, "status": "EF", "proof": asked.proof}).status == 303
    assert "E" not in log.statuses().values()
    assert log.statuses()[1] == "S"


def test_too_many_rows_are_refused(page: PageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert FILTERED_ROWS == 10_000
    monkeypatch.setattr("eventlog.web.log_pages.FILTERED_ROWS", 20)
    refused = Visit(page).get("/confirm?action=hold&all=1")
    assert (refused.status, "more than 20 rows at once" in refused.body) == (400, True)


def test_all_rows_of_a_list_are_found_among_more_than_one_act_may_mean(
    page: PageServer, log: LogTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eventlog.web.log_pages.FILTERED_ROWS", 20)
    visit = Visit(page)
    proof = visit.get("/confirm?action=hold&id=2").proof
    # Asked when 110 was the newest row: those that have come since count for nothing.
    form = {"action": "hold", "all": 1, "status": "N", "last": 110, "proof": proof}
    assert visit.post("/act", form).headers["location"] == "/rows?done=hold+12"
    assert [number for number, _ in held(log)] == [2, *range(100, 111)]
    released = visit.get("/confirm?action=release&all=1&status=N")
    assert "Release 12 rows?" in released.body
    form = {"action": "release", "all": 1, "status": "N", "proof": released.proof}
    assert visit.post("/act", form).headers["location"] == "/rows?done=release+12"
    assert held(log) == []


def test_what_policies_hide_chooses_no_rows(log: LogTable) -> None:
    hiding = FilesOutput(path="out", steps=(steps.Redact(attributes=("fname",)),))
    with paged(log, replace(config_of(log), output=(hiding,))) as (page, _):
        visit = Visit(page)
        for asked in ("text=Jack", f"key={quote('idu=1')}"):
            refused = visit.get(f"/confirm?action=hold&all=1&{asked}")
            assert (refused.status, "Policies hide values" in refused.body) == (400, True)
        assert "Hold 31 rows?" in visit.get("/confirm?action=hold&all=1").body
        assert "Jack" not in visit.get("/table?name=usr").body


def test_an_output_is_tried_at_once(log: LogTable, tmp_path: Path) -> None:
    config = replace(config_of(log, PROXY), output=(FilesOutput(path=str(tmp_path / "out"), name="near"),))
    with Publisher(config) as publisher:
        publisher.run_once()
    with paged(log, config) as (page, written):
        visit = Visit(page, Host="log.example", X_Forwarded_User="ada")
        assert "Try now…" in visit.get("/output?name=near").body
        asked = visit.get("/confirm?action=try&output=near")
        assert "Try the output near now?" in asked.body
        done = visit.post("/act", {"action": "try", "output": "near", "proof": asked.proof})
        assert done.headers["location"] == "/output?name=near&done=try+1"
        assert "The publisher tries it at once." in visit.get(done.headers["location"]).body
    assert log.ask("SELECT COUNT(*) FROM event_log_mark WHERE name = 'try now: near'") == [(1,)]
    assert '"action": "output_try"' in written.getvalue().replace('":"', '": "')


def test_an_output_is_paused_with_a_reason_and_resumed_and_the_journal_says_by_whom(log: LogTable) -> None:
    with paged(log, config_of(log, PROXY)) as (page, written):
        visit = Visit(page, Host="log.example", X_Forwarded_User="ada")
        asked = visit.get("/confirm?action=pause&output=far")
        assert "Pause the output far?" in asked.body
        form = {"action": "pause", "output": "far", "proof": asked.proof}
        assert visit.post("/act", form | {"proof": "x"}).status == 403
        done = visit.post("/act", form | {"why": "their database moves"})
        assert (done.status, done.headers["location"]) == (303, "/output?name=far&done=pause+1")
        body = visit.get(done.headers["location"]).body
        assert "It is paused now." in body
        assert [
            one.state for one in list_outputs(Log(log.engine, LogNames()), config_of(log).publisher, ["near", "far"])
        ] == [
            "in step",
            "paused",
        ]
        assert visit.post("/act", form).headers["location"].endswith("done=pause+0")
        assert visit.post("/act", form | {"action": "resume"}).headers["location"].endswith("done=resume+1")
        hold = visit.get("/confirm?action=hold&id=2")
        visit.post("/act", {"action": "hold", "id": 2, "proof": hold.proof})
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    acts = [(one["action"], one["by"], one.get("output"), one.get("why")) for one in told if "by" in one]
    assert acts == [
        ("output_pause", "ada", "far", "their database moves"),
        ("output_pause", "ada", "far", None),
        ("output_resume", "ada", "far", None),
        ("rows_hold", "ada", None, None),
    ]
    [(_, note)] = held(log)
    assert note.endswith("by ada on the status page.")


def test_an_output_and_a_table_that_nobody_knows_are_not_found(page: PageServer) -> None:
    visit = Visit(page)
    assert visit.get("/output?name=nobody").status == 404
    assert visit.get("/confirm?action=resume&output=nobody").status == 404
    assert visit.get("/output?name=near&range=nonsense").status == 200
    assert visit.get("/tables").status == 200


def test_an_act_is_read_or_refused() -> None:
    assert read_act({"action": ["pause"], "output": ["a"], "why": ["x" * 999]}) == OutputAct(
        action="pause", output="a", why="x" * WHY_CHARACTERS
    )
    assert read_act({"action": ["resume"], "output": ["a"], "why": ["x"]}) == OutputAct(action="resume", output="a")
    assert read_act({"action": ["hold"], "id": ["3", "x", "2"]}) == RowsAct(action="hold", numbers=(2, 3))
    every = read_act({"action": ["requeue"], "all": ["1"], "status": ["EN"], "last": ["9"]})
    assert every == RowsAct(action="requeue", filters=Filters(statuses="E"), last=9)
    for wrong in ({"action": ["drop"]}, {"action": ["hold"]}, {"action": ["hold"], "all": ["1"], "status": ["E"]}):
        with pytest.raises(UsageError):
            read_act(wrong)


def test_what_was_done_is_said_only_of_acts() -> None:
    assert read_done("resume 0") == "It was not paused."
    assert read_done("resume 1").startswith("It is resumed now")
    assert (read_done("drop 3"), read_done("hold x"), read_done("")) == ("", "", "")


def test_curves_are_kept_over_a_restart_for_the_same_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(tmp_path / "history.json")
    sample = Sample(at=5.0, waiting=1, oldest=2, lag=None, rate=0.5, outputs={"near": OutputSample(behind=3)})
    history = History().with_sample(sample)
    kept = HistoryFile(file, "sqlite:///app.db", "event_log")
    kept.enter(history)
    assert kept.read() == History()  # it is not time yet
    kept.enter(history, now=True)
    assert kept.read() == history
    assert HistoryFile(file, "sqlite:///other.db", "event_log").read() == History()
    Path(file).write_text("{", encoding="utf-8")
    assert kept.read() == History()
    HistoryFile(None, "", "").enter(history, now=True)
    HistoryFile(str(tmp_path / "no" / "folder.json"), "", "").enter(history, now=True)
    monkeypatch.setattr("eventlog.web.collector.monotonic", lambda: float("inf"))
    kept.enter(history)
    assert kept.read() == history
    assert ENTRY_SECONDS > 60
    Path(file).write_text("[source]\n", encoding="utf-8")
    kept.enter(history, now=True)
    assert Path(file).read_text(encoding="utf-8") == "[source]\n"  # somebody else's


def test_a_page_writes_its_curves_when_it_ends(log: LogTable, tmp_path: Path) -> None:
    config = config_of(log, WebConfig(history=str(tmp_path / "history.json")))
    with paged(log, config) as (page, _):
        visit = Visit(page)
        until(lambda: "not measured yet" not in visit.get("/").body, "a sample is taken")
    with paged(log, config) as (page, _):
        assert "not measured yet" not in Visit(page).get("/").body
    assert RANGES[2].name == "7d"


@pytest.fixture
def tracked(sqlite: Engine) -> LogTable:
    """A log that numbers its rows itself, and a tracked table with one row that was there before."""
    install(sqlite)
    log = LogTable(sqlite)
    log.run("CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40))")
    log.run("INSERT INTO usr (idu, fname) VALUES (1, 'Jack')")
    track(sqlite, ["usr"], TrackRequest(style=Style.ROW_BACK))
    return log


def counted(page: PageServer) -> Visit:
    """A visitor, as soon as the triggers were looked at."""
    visit = Visit(page)
    until(lambda: "being read" not in visit.get("/tables").body, "triggers are looked at")
    return visit


def test_a_table_is_refreshed_and_its_page_says_how_far_it_is(tracked: LogTable) -> None:
    with paged(tracked, config_of(tracked)) as (page, written):
        visit = counted(page)
        body = visit.get("/table?name=usr").body
        assert "row-back" in body
        assert "Nobody has started a refresh of this table on this page." in body
        asked = visit.get("/confirm?action=refresh&table=usr")
        assert "Refresh the table usr?" in asked.body
        form = {"action": "refresh", "table": "usr", "proof": asked.proof}
        assert visit.post("/act", form | {"proof": "x"}).status == 403
        done = visit.post("/act", form)
        assert done.status == 303, written.getvalue()
        assert done.headers["location"] == "/table?name=usr&done=refresh+1"
        assert "The refresh has begun." in visit.get(done.headers["location"]).body
        until(lambda: "Ended." in visit.get("/table?name=usr").body, "the table is refreshed")
        assert "1 of 1 row written, started by <bdi>the status page</bdi>" in visit.get("/table?name=usr").body
        assert visit.get("/confirm?action=refresh&table=nothing").status == 404
        stopped = visit.post("/act", form | {"action": "stop"})
        assert "It is not refreshed now." in visit.get(stopped.headers["location"]).body
    assert tracked.ask("SELECT count(*) FROM event_log WHERE table_name = 'usr' AND status = 'N'") == [(1,)]
    told = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(one["action"], one["by"], one["table"]) for one in told if "by" in one][:1] == [
        ("table_refresh", "this machine", "usr")
    ]


def test_a_refresh_that_is_stopped_goes_on_later(tracked: LogTable, monkeypatch: pytest.MonkeyPatch) -> None:
    tracked.run("INSERT INTO usr (idu) VALUES (:n)", [{"n": number} for number in range(10, 20)])
    told: list[str] = []
    monkeypatch.setattr("eventlog.web.loading.PACE", RefreshPace(chunk=4))

    def after_one() -> None:
        view = loading.view((None, "usr"))
        assert view is not None
        told.append(f"{view.state} {view.rows} of {view.total}")
        if view.rows == 4:
            loading.stop((None, "usr"))

    loading = Loading(tracked.engine, LogNames(), config_of(tracked), after_one)
    assert loading.begin((None, "usr"), "ann")
    until(lambda: told[-1:] == ["stopped 4 of 11"], "it has stopped")
    loading.close()
    assert told == ["running 0 of 11", "running 4 of 11", "stopped 4 of 11"]
    again = Loading(tracked.engine, LogNames(), config_of(tracked), lambda: None)
    left = again.view((None, "usr"))
    assert left is not None
    assert (left.state, left.rows) == ("interrupted", 4)
    assert again.begin((None, "usr"), "ann")
    until(lambda: (view := again.view((None, "usr"))) is not None and not view.running, "it has ended")
    ended = again.view((None, "usr"))
    assert ended is not None
    assert (ended.state, ended.rows) == ("ended", 11)
    again.close()
    with pytest.raises(UsageError, match="The page ends"):
        again.begin((None, "usr"), "ann")


def test_a_refresh_that_fails_says_why(tracked: LogTable) -> None:
    loading = Loading(tracked.engine, LogNames(), config_of(tracked), lambda: None)
    assert loading.view((None, "nothing")) is None
    assert loading.begin((None, "nothing"), "ann")
    until(lambda: (view := loading.view((None, "nothing"))) is not None and not view.running, "it has failed")
    view = loading.view((None, "nothing"))
    loading.close()
    assert view is not None
    assert (view.state, "nothing" in view.error) == ("failed", True)


def test_a_document_has_a_page_of_its_own(page: PageServer) -> None:
    visit = Visit(page)
    assert '<a href="/rows/2/document">' in visit.get("/rows/2").body
    body = visit.get("/rows/2/document").body
    assert "&lt;modify-attr attr-name=&#34;fname&#34;&gt;" in body
    assert "Rows of the object" in body
    assert visit.get("/rows/404/document").status == 404
