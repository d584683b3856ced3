"""Mutants of SQL, an even choice of mutants, and what is counted of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from bench.mutation import report
from bench.mutation.areas import AREAS, area_of, chosen, files_of
from bench.mutation.code import evenly
from bench.mutation.report import Mutant, equivalent, judged, judged_again, table
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


@pytest.mark.parametrize("most, count", [(3, 3), (7, 7), (10, 7)])
def test_a_sample_lies_evenly(most: int, count: int) -> None:
    found = evenly("abcdefg", most)
    assert (len(found), found[0], found == sorted(set(found))) == (count, "a", True)


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


def test_what_is_explained_later_no_longer_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "EQUIVALENT", tmp_path / "equivalent.toml")
    (tmp_path / "equivalent.toml").write_text("")
    strict = Mutant(file="a.py", removed="zip(a, b, strict=True)", added="zip(a, b, )", end="survived")
    unreached = replace(strict, end="unreached")
    found = judged("rules", 10, [strict, unreached, replace(strict, end="slow"), replace(strict, end="killed")])
    assert (found.killed, found.slow, found.equivalent) == (2, 1, 0)
    kind = "[[kind]]\npattern=',\\s*(strict=\\w+)?(?=\\))'\nwhy='an assertion'\n"
    (tmp_path / "equivalent.toml").write_text(kind)
    again = judged_again(found)
    assert (again.killed, again.equivalent, again.survivors) == (2, 1, [unreached])


def test_each_equivalent_mutant_is_of_code_that_stands_there() -> None:
    gone = [
        one
        for one in equivalent().mutant
        for line in one.removed.splitlines()
        if line not in Path(one.file).read_text()
    ]
    assert gone == []


def test_figures_are_written_into_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PAGE", "RESULTS", "EQUIVALENT"):
        monkeypatch.setattr(report, name, tmp_path / name)
    (tmp_path / "EQUIVALENT").write_text("")
    (tmp_path / "PAGE").write_text(f"before\n{report.BEGINS}old\n{report.ENDS}after\n")
    killed, left = (Mutant(file="a.py", removed="x", added="y", end=end) for end in ("killed", "survived"))
    report.keep([judged("rules", 10, [killed, killed, killed, left])])
    report.keep([judged("marks", 1, [killed])])
    assert "| rules | 10 | 4 | 0 | 3 of 4, 75.0% |" in (tmp_path / "PAGE").read_text()
