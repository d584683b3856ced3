"""Suggestions for names that do not exist."""

from __future__ import annotations

import pytest

from eventlog.core.suggest import did_you_mean

KNOWN = ["url", "kind", "log", "columns", "user"]


@pytest.mark.parametrize(
    "name, meant", [("column", "columns"), ("usr", "user"), ("kid", "kind"), ("Columns", "columns")]
)
def test_the_nearest_name_is_suggested(name: str, meant: str) -> None:
    assert did_you_mean(name, KNOWN) == f"Did you mean {meant}?"


def test_without_a_near_name_all_are_listed_in_order() -> None:
    assert did_you_mean("password", iter(KNOWN)) == "There are columns, kind, log, url, user."
