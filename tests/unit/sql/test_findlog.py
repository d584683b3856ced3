"""Finding the ten columns of a log: by name, by position and types, as listed; and what is said when one is missing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from eventlog.core.errors import ConfigError, InstallError
from eventlog.core.schema import Column
from eventlog.sql.findlog import choose_columns
from eventlog.sql.names import NEW_ORDER, OLD_ORDER, STANDARD

TYPES = {"record_id": "BIGINT", "status": "CHAR(1)", "event_type": "INTEGER", "event_time": "TIMESTAMP"}


def columns(order: Sequence[str], rename: str = "{}") -> list[Column]:
    return [Column(name=rename.format(name), type=TYPES.get(name, "VARCHAR(64)")) for name in order]


@pytest.mark.parametrize("order", [NEW_ORDER, OLD_ORDER, tuple(reversed(STANDARD))])
def test_default_names_are_found_in_any_order_and_case(order: tuple[str, ...]) -> None:
    upper = [Column(name=name.upper()) for name in ("more", *order)]
    assert choose_columns(upper, "auto", "log") == tuple(name.upper() for name in STANDARD)


@pytest.mark.parametrize("order", [NEW_ORDER, OLD_ORDER])
def test_other_names_are_told_apart_by_position_and_types(order: tuple[str, ...]) -> None:
    assert choose_columns(columns(order, "x_{}"), "auto", "log") == tuple(f"x_{name}" for name in STANDARD)


@pytest.mark.parametrize("name", STANDARD)
def test_a_missing_column_is_named(name: str) -> None:
    with pytest.raises(InstallError, match=f"log table log has no column {name}"):
        choose_columns(columns([other for other in NEW_ORDER if other != name]), "auto", "log")


def test_types_that_do_not_decide_ask_for_configuration() -> None:
    with pytest.raises(InstallError, match=r"do not show which.*columns = \"new\""):
        choose_columns([Column(name=f"c{place}") for place in range(10)], "auto", "log")


@pytest.mark.parametrize("wanted, order", [("new", NEW_ORDER), ("old", OLD_ORDER)])
def test_configuration_says_the_order(wanted: str, order: tuple[str, ...]) -> None:
    anything = [Column(name=f"c_{name}") for name in order]
    assert choose_columns(anything, wanted, "log") == tuple(f"c_{name}" for name in STANDARD)
    with pytest.raises(InstallError, match="no column 10, which should be new_value"):
        choose_columns(anything[:9], wanted, "log")


def test_configuration_lists_the_names() -> None:
    mixed = [Column(name=f"C{place}") for place in range(12)]
    listed = [f"c{place}" for place in range(2, 12)]
    assert choose_columns(mixed, listed, "log") == tuple(name.upper() for name in listed)
    with pytest.raises(InstallError, match="no column nope, which should be its status"):
        choose_columns(mixed, ["c1", "nope", *listed[2:]], "log")
    with pytest.raises(ConfigError, match="lists 3 names; it takes ten"):
        choose_columns(mixed, listed[:3], "log")


@pytest.mark.parametrize("order", [STANDARD, NEW_ORDER])
def test_a_list_may_have_the_key_second_as_tables_have(order: tuple[str, ...]) -> None:
    """Both are an order from record_id to new_value, and what is a status in the one is the key in the other."""
    table = columns(tuple(reversed(STANDARD)), "x_{}")
    assert choose_columns(table, [f"X_{name}" for name in order], "log") == tuple(f"x_{name}" for name in STANDARD)
