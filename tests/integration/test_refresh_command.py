"""`eventlog refresh` as a user calls it: what it says, what is published, and what is left of one that was killed."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from eventlog.cli.main import exit_code
from eventlog.core.errors import EX_USAGE
from eventlog.daemon.publisher import Publisher
from tests.integration.publishing import in_thread, until

COUNT = 3000


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A tracked table whose rows nobody logged, and one that nobody tracks."""
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE usr (idu INTEGER PRIMARY KEY, fname VARCHAR(20))")
        connection.execute("CREATE TABLE grp (idg INTEGER PRIMARY KEY)")
        connection.executemany("INSERT INTO usr VALUES (?, ?)", [(number, f"n{number}") for number in range(COUNT)])
        connection.commit()
    found = f"sqlite:///{path}"
    assert exit_code(["install", "--database", found]) == 0
    assert exit_code(["track", "usr", "--database", found]) == 0
    return found


def asked(url: str, query: str) -> list[Any]:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), timeout=30)) as connection:
        return connection.execute(query).fetchall()


def test_one_output_alone_is_told(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others are not, and what is theirs at the same time is not taken from them."""
    settings = tmp_path / "eventlog.toml"
    places = "".join(
        f'[[output]]\nname = "{name}"\nsink = "files"\nformat = "messages"\npath = "{tmp_path / name}"\n'
        for name in ("near", "far")
    )
    settings.write_text(f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\n{places}')
    assert exit_code(["refresh", "usr", "--output", "fat", "--config", str(settings)]) == EX_USAGE
    assert "'fat' is no output of the configuration. Did you mean far?" in capsys.readouterr().err
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE usr SET fname = 'new' WHERE idu = 3")
        connection.commit()
    assert exit_code(["refresh", "usr", "--output", "far", "--where", "idu < 5", "--config", str(settings)]) == 0
    assert "usr: 5 rows wait to be published to far alone." in capsys.readouterr().out
    assert exit_code(["explain", "3", "--config", str(settings)]) == 0
    assert "Only the output far gets it." in capsys.readouterr().out
    assert exit_code(["run", "--until-empty", "--config", str(settings)]) == 0
    assert told(tmp_path / "near") == [("UPDATE", 3, "new")]
    loaded = [("REFRESH", number, "new" if number == 3 else f"n{number}") for number in range(5)]
    assert told(tmp_path / "far") == [("UPDATE", 3, "new"), *loaded]
    assert set(asked(url, "SELECT status FROM event_log")) == {("S",)}
    settings.write_text(settings.read_text().replace('"far"', '"feed"'))
    for record in range(2, 7):
        assert exit_code(["requeue", str(record), "--config", str(settings)]) == 0
    assert exit_code(["outputs", "forget", "far", "--yes", "--config", str(settings)]) == 0
    assert exit_code(["run", "--until-empty", "--config", str(settings)]) == 0
    # Its folder has these rows of an output that was forgotten: they wait until somebody says that they go again.
    assert exit_code(["outputs", "resume", "feed", "--config", str(settings)]) == 0
    assert exit_code(["run", "--until-empty", "--config", str(settings)]) == 0
    reasons = asked(url, "SELECT DISTINCT reason, note FROM event_log_outcome")
    assert reasons == [("filtered", "only the output far gets it.")], "nobody is called so any more"


def two_outputs(url: str, folder: Path, *names: str) -> Path:
    """A configuration with these outputs, messages in files."""
    settings = folder / f"{'-'.join(names)}.toml"
    places = "".join(
        f'[[output]]\nname = "{name}"\nsink = "files"\nformat = "messages"\npath = "{folder / name}"\n'
        for name in names
    )
    settings.write_text(f'[source]\nurl = "{url}"\n[publisher]\nallow_loopback = true\npolling_interval = 1\n{places}')
    return settings


def test_an_output_that_the_publisher_does_not_have_yet_is_not_loaded(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows would end as left out, for the publisher at work began before the configuration was changed."""
    before, after = two_outputs(url, tmp_path, "near"), two_outputs(url, tmp_path, "near", "far")
    command = ["refresh", "usr", "--output", "far", "--where", "idu < 5", "--config", str(after)]
    with in_thread(Publisher.from_config(before)) as publisher:
        until(lambda: publisher.vitals.reading().cycles, "it publishes")
        assert exit_code(command) == EX_USAGE
        said = capsys.readouterr().err
        assert "does not have the output far yet" in said
        assert asked(url, "SELECT count(*) FROM event_log") == [(0,)]
    with in_thread(Publisher.from_config(after)) as publisher:
        until(lambda: publisher.vitals.reading().cycles, "it publishes")
        assert exit_code(command) == 0
        until(lambda: len(told(tmp_path / "far")) == 5, "far is loaded")
    assert told(tmp_path / "near") == []


@pytest.mark.parametrize("rows", [300, pytest.param(100_000, marks=pytest.mark.long)])
def test_an_output_that_is_added_later_is_complete_with_a_load_of_its_own(
    url: str, tmp_path: Path, rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """So many rows were published before it was there; changes come before its load, during it and after."""
    file = url.removeprefix("sqlite:///")

    def change(statement: str) -> None:
        with closing(sqlite3.connect(file, timeout=30)) as connection:
            connection.execute(statement)
            connection.commit()

    near, both = two_outputs(url, tmp_path, "near"), two_outputs(url, tmp_path, "near", "far")
    change("DELETE FROM usr")
    assert exit_code(["run", "--until-empty", "--config", str(near)]) == 0
    series = f"WITH RECURSIVE n(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < {rows - 1}) SELECT n, 'n' || n FROM n"
    change(f"INSERT INTO usr {series}")
    assert exit_code(["run", "--until-empty", "--config", str(near)]) == 0
    mine = len(told(tmp_path / "near"))
    change("UPDATE usr SET fname = 'before' WHERE idu = 1")
    change("DELETE FROM usr WHERE idu = 2")
    assert exit_code(["refresh", "usr", "--output", "far", "--config", str(both)]) == 0
    change("UPDATE usr SET fname = 'after' WHERE idu IN (1, 3)")
    change("DELETE FROM usr WHERE idu = 4")
    assert exit_code(["run", "--until-empty", "--config", str(both)]) == 0
    capsys.readouterr()
    state: dict[int, str] = {}
    for operation, number, name in told(tmp_path / "far"):
        if operation == "DELETE":
            state.pop(number, None)
        else:
            state[number] = name
    assert sorted(state.items()) == asked(url, "SELECT idu, fname FROM usr ORDER BY idu")
    assert "REFRESH" not in {operation for operation, _, _ in told(tmp_path / "near")[mine:]}, "it is far's alone"


def told(folder: Path) -> list[tuple[str, int, str]]:
    """What a consumer of messages finds, row by row."""
    lines = [line for path in sorted(folder.glob("**/*.jsonl")) for line in path.read_text().splitlines()]
    found = [json.loads(line)["value"] for line in lines]
    found = [one.get("message", one) for one in found]
    return [(one["headers"]["operation"], one["data"]["idu"], one["data"]["fname"]) for one in found]


def test_it_reports_as_json_and_names_what_nobody_tracks(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert exit_code(["refresh", "usr", "grp", "--chunk", "1000", "--json", "--database", url]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out) == [
        {"table": "usr", "rows": COUNT, "before": 0},
        {"table": "grp", "rows": 0, "before": 0},
    ]
    assert "This log has no trigger on grp" in said.err
    assert "usr" not in said.err.splitlines()[-1]


@pytest.mark.parametrize("jobs", ["0", "16", "many"])
def test_a_number_of_jobs_that_makes_no_sense_is_refused(
    url: str, jobs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(["refresh", "usr", "--jobs", jobs, "--database", url]) == 64
    assert re.search(rf"Invalid value for '--jobs': '?{jobs}'? is not ", capsys.readouterr().err)


def test_it_begins_anew_when_asked(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    mark = '{"after": "idu=2997", "rows": 2998, "total": 3000}'
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("INSERT INTO event_log_mark VALUES ('refresh: usr', ?)", [mark])
        connection.commit()
    assert exit_code(["refresh", "usr", "--again", "--database", url]) == 0
    assert f"usr: {COUNT:,} rows wait to be published." in capsys.readouterr().out
