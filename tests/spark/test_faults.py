"""Errors on their way from a worker to the driver: what Spark leaves of them is enough to raise them again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core import errors
from eventlog.core.errors import DataError, EventlogError, KeySyntaxError, MachineError, SinkError, SourceError
from eventlog_spark.faults import FaultError, read, travelling, write_error

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, EventlogError)]
texts = st.text(st.characters(codec="utf-8"))


@given(st.sampled_from([DataError, errors.ConfigError, SourceError, SinkError]), texts, st.none() | texts, texts)
def test_a_text_that_quotes_an_error_gives_it_back(
    kind: type[EventlogError], message: str, hint: str | None, around: str
) -> None:
    error = kind(message or "x", hint=hint)
    arrived = read(f"{around} {write_error(error)} {around}")
    assert type(arrived) is kind
    assert (arrived.message, arrived.hint) == (error.message, error.hint or None)


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_arrives_with_its_exit_code(kind: type[EventlogError]) -> None:
    error = kind.__new__(kind)
    EventlogError.__init__(error, "What, where, what to do.")
    arrived = read(write_error(error))
    assert arrived is not None
    assert isinstance(error, type(arrived))
    if not isinstance(error, MachineError):
        assert arrived.exit_code == error.exit_code


def test_an_error_of_special_make_arrives_as_its_nearest_kin() -> None:
    arrived = read(write_error(KeySyntaxError("a name is missing", text="=1", column=1)))
    assert type(arrived) is DataError
    assert str(arrived) == "table_key '=1', column 1: a name is missing."


def test_an_error_that_is_cut_on_its_way_is_none_of_ours() -> None:
    assert read(write_error(DataError("A row is wrong.", hint="Correct it."))[3:]) is None


@pytest.mark.parametrize("may_pass", [True, False])
def test_whether_trying_again_makes_sense_arrives(may_pass: bool) -> None:
    arrived = read(write_error(SourceError("The log is locked.", may_pass=may_pass)))
    assert isinstance(arrived, SourceError)
    assert arrived.may_pass is may_pass


@given(texts)
def test_any_other_text_is_no_error_of_ours(text: str) -> None:
    assert read(text) is None


def test_a_worker_lets_out_what_can_travel_and_what_is_nobodys_fault_as_it_is() -> None:
    with pytest.raises(FaultError, match=r"^part\.parquet cannot be read\. Read it again\. ") as told, travelling():
        raise DataError("part.parquet cannot be read.", hint="Read it again.")
    assert isinstance(read(str(told.value)), DataError)
    with pytest.raises(ZeroDivisionError), travelling():
        1 / 0  # noqa: B018  # it is the error that counts
