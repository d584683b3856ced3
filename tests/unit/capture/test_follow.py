"""What a trigger's text reads and its table no longer has; what is entered into the history; which classes are behind."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eventlog.capture import TriggerCondition, TriggerState
from eventlog.capture.follow import behind
from eventlog.capture.installed import gone_columns, with_failure
from eventlog.core.schema import Column, Table
from eventlog.sql.dialect import dialect_of
from eventlog.sql.history import ShapeVersion, differing, latest, newer, version_of


@pytest.mark.parametrize(
    "url, text, gone",
    [
        ("postgresql://", "o.fname IS DISTINCT FROM n.fname AND n.idu = 1", ["fname"]),
        ("postgresql://", 'n."Fname" IS NULL OR n."x""y" IS NULL', ["Fname", 'x"y']),
        ("postgresql://", "o.* *<> n.* AND in.nothing AND plan.n.fname", []),
        ("postgresql://", "NEW.IDU = OLD.idu", []),
        ("mysql://", "NOT (OLD.`fname` <=> NEW.`idu`)", ["fname"]),
        ("mysql://", "NEW.`a``b`", ["a`b"]),
        ("sqlite://", 'NEW."idu" = OLD.Idu', []),
        ("oracle://", ":NEW.FNAME = :OLD.IDU", ["FNAME"]),
    ],
)
def test_columns_that_are_gone_are_found_in_a_trigger(url: str, text: str, gone: list[str]) -> None:
    assert gone_columns(text, ["idu", "lname"], dialect_of(url)) == gone


USR = Table(name="usr", columns=(Column(name="idu", key=1), Column(name="lname")))


@pytest.mark.parametrize(
    "found, text, note",
    [
        (TriggerCondition.OUTDATED, "NEW.fname = NEW.lname", "every write fails, for the column fname is gone"),
        (TriggerCondition.OUTDATED, "NEW.fname = OLD.age", "every write fails, for the column fname, age is gone"),
        (TriggerCondition.OUTDATED, "NEW.idu = OLD.lname", None),
        (TriggerCondition.STRAY, "NEW.fname = NEW.lname", None),
    ],
)
def test_a_trigger_that_reads_what_is_gone_fails_its_writers(
    found: TriggerCondition, text: str, note: str | None
) -> None:
    dialect = dialect_of("sqlite://")
    told = with_failure(state("usr", found), text, USR, dialect)
    assert (told.fails, told.note) == (note is not None, note)
    before = replace(state("usr", found), note="as was said")
    expected = "as was said" if note is None else f"{note}. as was said"
    assert with_failure(before, text, USR, dialect).note == expected
    elsewhere = replace(before, table="nosuch")
    assert with_failure(elsewhere, text, USR, dialect) == elsewhere


def state(owner: str, state: TriggerCondition) -> TriggerState:
    return TriggerState(name=f"{owner}_{state}", table=owner, owner=owner, state=state)


def test_a_class_is_followed_unless_somebody_disabled_a_trigger_of_it() -> None:
    found = [
        state("usr", TriggerCondition.OUTDATED),
        state("usr", TriggerCondition.CURRENT),
        state("grp", TriggerCondition.MISSING),
        state("off", TriggerCondition.OUTDATED),
        state("off", TriggerCondition.DISABLED),
        state("gone", TriggerCondition.STRAY),
        state("usr", TriggerCondition.MISSING),
    ]
    assert behind(found) == ["usr", "grp"]


def test_a_version_is_entered_for_what_is_new_and_for_what_looks_otherwise() -> None:
    known = latest(
        [
            ShapeVersion(table="usr", version=2, seen_at="", columns={"a": "INTEGER", "b": "TEXT"}),
            ShapeVersion(table="usr", version=1, seen_at="", columns={}),
            ShapeVersion(table="grp", version=1, seen_at="", columns={"a": "INTEGER"}),
        ]
    )
    shapes = {"usr": {"a": "TEXT", "c": "TEXT"}, "grp": {"a": "INTEGER"}, "new": {"a": "INTEGER"}}
    changed = {"added": ["c"], "gone": ["b"], "retyped": ["a"]}
    assert [version for version, _ in newer(shapes, known, "now")] == [
        ShapeVersion(table="usr", version=3, seen_at="now", changed=changed, columns=shapes["usr"]),
        ShapeVersion(table="new", version=1, seen_at="now", columns=shapes["new"]),
    ]
    assert differing({}, {}) == {}


def test_a_tables_version_is_that_of_the_history_or_the_next() -> None:
    table = Table(name="usr", columns=(Column(name="a", type="INTEGER"),))
    assert version_of(table, None) == 1
    assert version_of(table, ShapeVersion(table="usr", version=3, seen_at="", columns={"a": "INTEGER"})) == 3
    assert version_of(table, ShapeVersion(table="usr", version=3, seen_at="", columns={"a": "TEXT"})) == 4
