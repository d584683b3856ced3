"""Policies by the commands: outputs that are told different things, tries of them, and secrets that get out nowhere."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.acceptance.command import eventlog, expect_refused, ok

KEY = {"HR_KEY": "a secret of tests only"}
TAINTS = [f"taint-{number:04d}" for number in range(1000)]
CONFIG = """\
[source]
url = "sqlite:///app.db"

[publisher]
batch_size = 128

[[output]]
name = "all"
sink = "files"
path = "all/"

[[output]]
name = "hr-feed"
sink = "files"
path = "hr/"
policies = ["hidden"]

[[output.steps]]
do = "where"
condition = 'new.active == true'
when_leaving = "delete"

[[output]]
name = "tables"
sink = "files"
path = "tables/"
format = "change-tables"
file_format = "csv"
policies = ["hidden"]

[[output]]
name = "messages"
sink = "files"
path = "messages/"
format = "messages"
policies = ["hidden"]

[[policy]]
name = "hidden"

[[policy.steps]]
do = "drop"
attributes = ["salary"]

[[policy.steps]]
do = "hash"
attributes = ["idu", "email"]
secret = "${HR_KEY}"

[[policy.steps]]
do = "encrypt"
attributes = ["phone"]
secret = "${HR_KEY}"

[[policy.steps]]
do = "redact"
attributes = ["pin"]

[[policy.steps]]
do = "rename"
class_name = "User"
attributes = { lname = "Surname" }
"""
SAMPLE = {
    "table": "usr",
    "key": "idu=1",
    "op": "modify",
    "old": {"lname": "a", "salary": 1},
    "new": {"lname": "b", "salary": 2},
}
TABLE = """
CREATE TABLE usr (idu VARCHAR(32) PRIMARY KEY, lname VARCHAR(64), salary VARCHAR(32), email VARCHAR(64), phone VARCHAR(32),
    pin VARCHAR(32), active BOOLEAN);
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    run(tmp_path, TABLE)
    (tmp_path / "eventlog.toml").write_text(CONFIG)
    ok("install", cwd=tmp_path, environment=KEY)
    return tmp_path


def run(site: Path, script: str) -> None:
    with closing(sqlite3.connect(site / "app.db")) as connection:
        connection.executescript(script)


def rows(site: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(site / "app.db")) as connection:
        return connection.execute(query).fetchall()


def texts(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in sorted(folder.rglob("*")) if path.is_file())


def test_each_output_is_told_its_own(site: Path) -> None:
    ok("track", "usr", "--events", "field", cwd=site, environment=KEY)
    run(site, "INSERT INTO usr VALUES ('1', 'Frost', '5000', 'j@x', '555', '1234', 1)")
    run(site, "UPDATE usr SET lname = 'Lee'; UPDATE usr SET salary = '6000'; UPDATE usr SET active = 0")
    ok("run", "--until-empty", cwd=site, environment=KEY)
    everything = texts(site / "all")
    # Without the file beside them, whose times and identities may have any digits.
    hidden = "".join(path.read_text() for path in (site / "hr").rglob("*.xml"))
    assert "6000" in everything
    assert "idu=1,table=usr" in everything
    assert '<add class-name="User"' in hidden
    assert '<delete class-name="User"' in hidden
    assert 'attr-name="Surname"' in hidden
    for word in ("5000", "6000", "j@x", "555", "1234", "idu=1,", "salary"):
        assert word not in hidden
    assert "Surname" in texts(site / "messages")
    assert rows(site, "SELECT DISTINCT status FROM event_log") == [("S",)]


def test_a_row_that_all_leave_out_says_so(site: Path) -> None:
    file = site / "one.toml"
    file.write_text(
        '[source]\nurl = "sqlite:///app.db"\n[[output]]\nsink = "stdout"\n[[output.steps]]\ndo = "keep"\nattributes = ["lname"]\n'
    )
    ok("track", "usr", "--events", "field", "--config", file, cwd=site)
    run(site, "INSERT INTO usr (idu, lname) VALUES ('1', 'Frost'); UPDATE usr SET salary = '1'")
    ok("run", "--until-empty", "--config", file, cwd=site)
    explained = ok("explain", "2", "--config", file, cwd=site)
    assert "filtered" in explained
    assert "step 1. keep" in explained
    assert "it changes only attributes that are left out" in explained


def test_a_policy_is_tried_on_samples_and_rows(site: Path) -> None:
    (site / "samples.jsonl").write_text(json.dumps(SAMPLE) + "\n\n")
    shown = ok("policy", "test", "samples.jsonl", cwd=site, environment=KEY)
    assert "Line 1, output hr-feed: refused." in shown
    assert "salary: 1 -> 2  =>  (not published)" in shown
    assert "Surname: (not published)  =>  'a' -> 'b'" in shown
    told = [
        json.loads(line)
        for line in ok("policy", "test", "samples.jsonl", "--json", cwd=site, environment=KEY).splitlines()
    ]
    assert [(one["output"], one["outcome"]) for one in told] == [
        ("hr-feed", "refused"),
        ("tables", "told"),
        ("messages", "told"),
    ]
    ok("track", "usr", cwd=site, environment=KEY)
    run(site, "INSERT INTO usr VALUES ('1', 'Frost', '5000', 'j@x', '555', '1234', 1)")
    explained = ok("explain", "1", cwd=site, environment=KEY)
    assert "output hr-feed: published." in explained
    assert "salary: all former values -> '5000'  =>  (not published)" in explained


def test_a_conversion_takes_the_policy_of_its_output(site: Path) -> None:
    ok("track", "usr", "--events", "field", cwd=site, environment=KEY)
    run(site, "INSERT INTO usr VALUES ('1', 'Frost', '7351924', 'j@x', '555', '1234', 1)")
    words = ("convert", "database", "sqlite:///app.db", "--config", "eventlog.toml", "--engine", "local[2]")
    expect_refused(64, "use --output NAME", *words, "--out", "out", cwd=site, environment=KEY)
    expect_refused(64, "Did you mean hr-feed?", *words, "--out", "out", "--output", "hr-fed", cwd=site, environment=KEY)
    ok(*words, "--out", "out", "--output", "hr-feed", cwd=site, environment=KEY)
    ok(*words, "--out", "csv", "--to", "change-tables", "--format", "csv", cwd=site, environment=KEY)
    assert "Surname" in texts(site / "csv")
    for folder in ("out", "csv"):
        found = b"".join(path.read_bytes() for path in (site / folder).rglob("*") if path.is_file())
        assert b"7351924" not in found
        assert b"j@x" not in found


def test_policies_are_not_passed_by_unsaid(site: Path) -> None:
    """A conversion that was not given the configuration, a folder in the place of the outputs, a format that none has."""
    ok("track", "usr", "--events", "field", cwd=site, environment=KEY)
    run(site, "INSERT INTO usr VALUES ('1', 'Frost', '7351924', 'j@x', '555', '1234', 1)")
    convert = ("convert", "database", "sqlite:///app.db", "--engine", "local[1]", "--out", "out")
    file = site / "one.toml"
    file.write_text('[[output]]\nsink = "stdout"\n[[output.steps]]\ndo = "drop"\nattributes = ["salary"]\n')
    expect_refused(64, "Use --config eventlog.toml, or --config /dev/null", *convert, cwd=site, environment=KEY)
    assert not (site / "out").exists()
    expect_refused(64, "and of their policies", "run", "--until-empty", "--out", "docs", cwd=site, environment=KEY)
    expect_refused(64, "--no-policies needs --out", "run", "--until-empty", "--no-policies", cwd=site, environment=KEY)
    expect_refused(
        64,
        "no output of the format messages",
        *convert,
        "--to",
        "messages",
        "--config",
        file,
        cwd=site,
        environment=KEY,
    )
    ok(*convert, "--config", "/dev/null", cwd=site, environment=KEY)
    assert "7351924" in texts(site / "out")
    (site / "eventlog.toml").write_text("no = TOML = at all")
    ok(*convert[:-1], "again", cwd=site)


def test_each_row_goes_where_its_values_say(site: Path) -> None:
    """As files and as a conversion, with the same elements; explain says where."""
    (site / "eventlog.toml").write_text(
        '[source]\nurl = "sqlite:///app.db"\n[[output]]\nname = "towns"\nsink = "files"\npath = "towns/"\n'
        '[[output.steps]]\ndo = "route"\nto = "{class}/{new.lname}"\notherwise = "others"\n'
    )
    ok("track", "usr", "--events", "field", cwd=site)
    run(site, "INSERT INTO usr (idu, lname) VALUES ('1', 'Oslo'), ('2', '../../x'), ('3', NULL); DELETE FROM usr")
    explained = ok("explain", "1", cwd=site)
    assert "to usr/Oslo" in explained
    words = (
        "convert",
        "database",
        "sqlite:///app.db",
        "--engine",
        "local",
        "--config",
        "eventlog.toml",
        "--out",
        "out",
    )
    ok(*words, cwd=site)
    ok("run", "--until-empty", cwd=site)
    folders = [
        {path.parent.relative_to(site / name).as_posix() for path in (site / name).rglob("*.xml")}
        for name in ("towns", "out")
    ]
    assert folders == [{"usr/Oslo", "usr/%2e.%2f..%2fx", "others"}] * 2
    assert {path.name for path in site.iterdir()} >= {"towns", "out"}
    assert not (site.parent / "x").exists()


@pytest.mark.parametrize(
    "lines, said",
    [
        ('{"table": "usr", "key": "idu=1", "nwe": {}}', "samples.jsonl, line 1: "),
        ('{"table": "ust", "key": "idu=1"}', "ust is no table"),
        ("?", "samples.jsonl, line 1: "),
    ],
)
def test_a_sample_that_is_none_is_named(site: Path, lines: str, said: str) -> None:
    (site / "samples.jsonl").write_text(lines + "\n")
    expect_refused(65, said, "policy", "test", "samples.jsonl", cwd=site, environment=KEY)


def test_without_a_policy_or_a_file_there_is_nothing_to_try(site: Path) -> None:
    tried = ("policy", "test", "none.jsonl")
    expect_refused(65, "none.jsonl", *tried, cwd=site, environment=KEY)
    expect_refused(65, "none.json", *tried, "--schema", "none.json", cwd=site, environment=KEY)
    without = ("--database", "sqlite:///app.db", "--no-config")
    expect_refused(64, "no output of the configuration has a policy", *tried, *without, cwd=site, environment=KEY)


def test_streams_have_policies_too(tmp_path: Path) -> None:
    columns = [
        {"name": "ID", "type": "int", "key": 1},
        {"name": "NAME", "type": "varchar(20)"},
        {"name": "PAY", "type": "int"},
    ]
    tables = [
        {"name": name, "number": number, "columns": columns} for name, number in (("T", 17), ("U", 18), ("V", 19))
    ]
    (tmp_path / "schema.json").write_text(json.dumps({"tables": tables}))
    lines = [
        {"op": "insert", "transaction": 1, "table": table, "rowid": 1, "row": {"ID": 7, "NAME": table * 5, "PAY": 4711}}
        for table in "TUV"
    ]
    file = "".join(json.dumps(line) + "\n" for line in [*lines, {"op": "commit", "transaction": 1}])
    (tmp_path / "done.jsonl").write_text(file)
    queue = ok("emulate", "linter", "done.jsonl", "--schema", "schema.json", cwd=tmp_path)
    (tmp_path / "queue.jsonl").write_text(queue)
    (tmp_path / "my.toml").write_text(
        '[[output]]\nsink = "files"\npath = "x"\nformat = "messages"\n'
        '[[output.steps]]\ndo = "without"\nclasses = ["T"]\n[[output.steps]]\ndo = "drop"\nattributes = ["PAY"]\n'
    )
    words = [
        "convert",
        "linter",
        "queue.jsonl",
        "--schema",
        "schema.json",
        "--config",
        "my.toml",
        "--engine",
        "local",
    ]
    said = ok(*words, "--to", "messages", "--metadata-topic", "meta", "--out", "out", cwd=tmp_path)
    assert said.startswith("3 rows, 2 changes")
    told = texts(tmp_path / "out")
    assert [word in told for word in ("UUUUU", "VVVVV", "TTTTT", "4711", "PAY")] == [True, True, False, False, False]
    assert not (tmp_path / "out" / "T").exists()
    (tmp_path / "my.toml").write_text(
        (tmp_path / "my.toml").read_text().replace('["PAY"]', '["WAGE"]\nclasses = ["U"]')
    )
    expect_refused(78, "WAGE is no attribute", *words, "--to", "messages", "--out", "other", cwd=tmp_path)


def test_a_schema_mapping_becomes_a_policy(tmp_path: Path) -> None:
    names = "<nds-name>Surname</nds-name><app-name>lname</app-name>"
    (tmp_path / "m.xml").write_text(f"<attr-name-map><attr-name>{names}</attr-name></attr-name-map>")
    said = ok("policy", "import", "m.xml", "--name", "words", cwd=tmp_path)
    assert (
        said
        == '[[policy]]\nname = "words"\n\n[[policy.steps]]\ndo = "rename"\n\n[policy.steps.attributes]\n"lname" = "Surname"\n'
    )
    assert eventlog("policy", "import", "none.xml", cwd=tmp_path).returncode == 65


def test_check_names_what_a_policy_names_and_is_not_there(site: Path) -> None:
    assert "all is there that the policies of 3 outputs name" in ok("check", cwd=site, environment=KEY)
    file = site / "eventlog.toml"
    file.write_text(CONFIG.replace('attributes = ["salary"]', 'attributes = ["wage"]'))
    expect_refused(78, "wage is no attribute", "check", cwd=site, environment=KEY)
    expect_refused(78, "wage is no attribute", "run", "--once", cwd=site, environment=KEY)


def test_an_archive_leaves_out_what_every_output_is_not_told(site: Path) -> None:
    (site / "eventlog.toml").write_text(
        '[source]\nurl = "sqlite:///app.db"\n[[output]]\nsink = "stdout"\n[[output.steps]]\ndo = "drop"\nattributes = ["salary"]\n'
    )
    ok("track", "usr", "--events", "field", cwd=site)
    run(site, "INSERT INTO usr (idu, lname, salary) VALUES ('1', 'Frost', '7351924')")
    ok("run", "--until-empty", cwd=site)
    words = ("purge", "--older-than", "0s", "--hide", "--yes")
    expect_refused(64, "Add --archive FOLDER", *words, cwd=site, environment=KEY)
    ok(*words, "--archive", "history", cwd=site)
    [archive] = (site / "history").iterdir()
    told = [(row["table_key"], row["column_name"], row["new_value"]) for row in pq.read_table(archive).to_pylist()]
    assert ("idu=1", "lname", "Frost") in told
    assert ("idu=1", "salary", "(hidden)") in told
    assert rows(site, "SELECT count(*) FROM event_log") == [(0,)]
    (site / "eventlog.toml").write_text('[source]\nurl = "sqlite:///app.db"\n[[output]]\nsink = "stdout"\n')
    expect_refused(
        64, "No value is hidden from every output.", *words, "--archive", "history", cwd=site, environment=KEY
    )


def test_of_a_thousand_planted_secrets_none_gets_out(site: Path) -> None:
    """Beside documents: the journal, status, metrics, notes and marks; values that formats cannot say are among them."""
    (site / "eventlog.toml").write_text(
        CONFIG.replace(CONFIG[CONFIG.index("[[output]]") : CONFIG.index('[[output]]\nname = "hr-feed"')], "")
    )
    ok("track", "usr", "--events", "field", cwd=site, environment=KEY)
    script = []
    for number, taint in enumerate(TAINTS):
        column = ("salary", "email", "phone", "pin", "idu")[number % 5]
        key, bad = (taint, "x") if column == "idu" else (f"k{number}", taint + ("\x01" if number % 7 == 0 else ""))
        values = {"idu": f"'{key}'", "active": "1" if number % 3 else "'odd'"}
        values |= {} if column == "idu" else {column: f"'{bad}'"}
        script.append(f"INSERT INTO usr ({', '.join(values)}) VALUES ({', '.join(values.values())});")
        script.append(
            f"UPDATE usr SET {'lname' if column == 'idu' else column} = '{'x' if column == 'idu' else bad + 'b'}' WHERE idu = '{key}';"
        )
    run(site, "BEGIN;" + "".join(script) + "COMMIT;")
    done = eventlog("run", "--until-empty", "--debug", cwd=site, environment=KEY)
    said = [done.stdout, done.stderr, *(texts(site / folder) for folder in ("hr", "tables", "messages"))]
    assert len(said[2]) > 100_000
    for command in (["status"], ["status", "--json"], ["check"], ["explain", "2"], ["explain", "9", "--json"]):
        shown = eventlog(*command, cwd=site, environment=KEY)
        said += [shown.stdout, shown.stderr]
    companions = [
        str(name)
        for (name,) in rows(site, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'event_log_%'")
    ]
    assert len(companions) > 1
    for name in companions:
        said += [str(row) for row in rows(site, f'SELECT * FROM "{name}"')]
    ok("purge", "--older-than", "0s", "--yes", "--archive", "history", "--hide", cwd=site, environment=KEY)
    archives = [str(pq.read_table(path).to_pylist()) for path in (site / "history").iterdir()]
    assert "(hidden)" in archives[0]
    said += archives
    for text in said:
        found = [taint for taint in TAINTS if taint in text]
        assert not found, text[max(0, text.index(found[0]) - 300) :][:500]
        assert KEY["HR_KEY"] not in text
