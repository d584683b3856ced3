"""What a trigger's text reads and its table no longer has; what is entered into the history; which classes are behind."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from eventlog.capture.installed import TriggerCondition, TriggerState, find_gone_columns, with_failure
from eventlog.core.schema import Column, Table
from eventlog.sql.dialect import dialect_of


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
    assert find_gone_columns(text, ["idu", "lname"], dialect_of(url)) == gone


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
