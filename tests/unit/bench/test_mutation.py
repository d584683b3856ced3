"""Mutants of SQL, an even choice of mutants, and what is counted of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.mutation import report
from bench.mutation.areas import AREAS, area_of, chosen, files_of
from bench.mutation.report import Mutant, equivalent, judged, table
from bench.mutation.statements import every
from eventlog.core.errors import UsageError

SQL = """-- holds: a condition
EXISTS (SELECT 1 FROM t WHERE /* match */(a = 1) AND b <> 'x = y' OR c IS NOT d);

-- nothing: has no text
"""


def test_a_mutant_of_sql_changes_one_word_outside_of_holes_and_texts() -> None:
    texts = [changed for _, _, changed in every(SQL)]
    text = "EXISTS (SELECT 1 FROM t WHERE /* match */(a = 1) AND b <> 'x = y' OR c IS NOT d)"
    assert texts == [
        f"NOT {text}",
        text.replace("SELECT 1", "SELECT 2"),
        text.replace(" AND ", " OR "),
        text.replace("<>", "="),
        text.replace(" OR ", " AND "),
        text.replace("IS NOT", "IS"),
    ]
    assert {name for name, _, _ in every(SQL)} == {"holds"}


def test_every_area_has_files_and_tests() -> None:
    assert all(files_of(area.files) and files_of(area.tests) for area in AREAS)
    assert area_of("eventlog/core/rules/lifetimes.py").name == "rules"
    assert [area.name for area in chosen(["eventlog/core/rules", "eventlog/sources/marks.py"])] == ["rules", "marks"]
    with pytest.raises(UsageError, match="No tests are named for nowhere"):
        chosen(["nowhere.py"])


def test_what_tests_are_chosen_by_is_in_their_names() -> None:
    """A file that got another name once left an area without any of its tests that do not need SQLite."""
    paths = [path for area in AREAS for path in files_of(area.tests)]
    names = " ".join([*paths, *[Path(path).read_text() for path in paths], "sqlite"])
    chosen_by = {word for area in AREAS for word in area.options[area.options.index("-k") + 1].split()}
    assert [word for word in sorted(chosen_by - {"and", "or", "not"}) if word not in names] == []


def test_equivalent_mutants_do_not_count_and_others_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "EQUIVALENT", tmp_path / "equivalent.toml")
    (tmp_path / "equivalent.toml").write_text('[[mutant]]\nfile="a.py"\nremoved="x"\nadded="y"\nwhy="no matter"\n')
    killed = Mutant(file="a.py", removed="", added="", end="killed")
    same, other = (Mutant(file="a.py", removed="x", added=added, end="survived") for added in "yz")
    found = judged("rules", 10, [killed, killed, killed, same, other])
    assert (found.mutants, found.tried, found.killed, found.equivalent, found.survivors) == (10, 5, 3, 1, [other])
    assert found.share == 0.75
    assert "| rules | 10 | 5 | 1 | 3 of 4, 75.0% |" in table([found])


def test_each_equivalent_mutant_is_of_code_that_stands_there() -> None:
    gone = [
        one
        for one in equivalent().mutant
        for line in one.removed.splitlines()
        if line not in Path(one.file).read_text()
    ]
    assert gone == []
