"""Errors: one or two sentences, an exit code by blame, and the same error on the other side of a pickle."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator

import pytest
from hypothesis import given

from eventlog.core import errors
from eventlog.core.errors import (
    ChangedError,
    ConfigError,
    DamageError,
    DataError,
    EventlogError,
    ExpressionError,
    InstallError,
    KeySyntaxError,
    MachineError,
    OccupiedError,
    OutputError,
    SinkError,
    SourceError,
    UsageError,
    XmlError,
    name_file,
    shorten,
    without_promise,
)
from tests.support.shares import met, shares
from tests.support.strategies import anything


def kinds(base: type[EventlogError] = EventlogError) -> Iterator[type[EventlogError]]:
    """Every class of errors that stands in the module."""
    for kind in base.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield kind
            yield from kinds(kind)


EXAMPLES = [
    EventlogError(),
    UsageError("There is no command publsh.", hint="Did you mean publish?"),
    ConfigError("publisher.batch_size is 0; it must be between 1 and 128."),
    InstallError(),
    DataError("schema.json is not a schema file."),
    KeySyntaxError("'=' is missing after the column name", text="idu", column=4),
    XmlError("the element is never closed", line=3),
    DamageError("the header is shorter than 16 bytes", offset=65),
    ExpressionError("U+0000 cannot stand in XML"),
    MachineError("The disk is full.", may_pass=False),
    SourceError("The connection was lost.", hint="Is the server up?"),
    ChangedError("The table usr has other columns than before.", may_pass=True),
    OccupiedError("Another publisher works on the event log event_log."),
    SinkError("The receiver is away.", may_pass=True),
    OutputError("The policy of the output names a column that is gone.", exit_code=78),
]


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_with_everything_it_knows(error: EventlogError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):  # noqa: S301 (made here)
        assert type(again) is type(error)
        assert (str(again), again.args, again.exit_code) == (str(error), error.args, error.exit_code)
        assert vars(again) == vars(error)


def test_there_is_an_example_of_every_error() -> None:
    assert {type(error) for error in EXAMPLES} == {EventlogError, *kinds()}


@pytest.mark.parametrize(
    "error, code",
    [
        (EventlogError(), 70),
        (UsageError(), 64),
        (DataError(), 65),
        (KeySyntaxError("empty", text="", column=1), 65),
        (XmlError("it is empty", line=1), 65),
        (DamageError("a size is wrong", offset=0), 65),
        (ExpressionError(), 65),
        (MachineError(may_pass=False), 69),
        (SourceError(may_pass=False), 69),
        (SinkError(may_pass=False), 69),
        (MachineError(), 75),
        (SourceError(), 75),
        (SinkError(may_pass=True), 75),
        (ConfigError(), 78),
        (InstallError(), 78),
    ],
)
def test_the_exit_code_says_whose_fault_it_is(error: EventlogError, code: int) -> None:
    assert error.exit_code == code


def test_a_key_error_shows_the_place_and_not_the_whole_key() -> None:
    error = KeySyntaxError("it ends too early", text="k" * 200, column=201)
    assert str(error) == f"table_key '{'k' * 80}… (120 more characters)', column 201: it ends too early."
    assert (error.text, error.column) == ("k" * 200, 201)


@shares(cut=0.1, whole=0.1)
@given(anything | anything.map("0123456789".__add__))
def test_a_shortened_text_is_the_text_or_its_beginning(text: str) -> None:
    short = shorten(text, limit=10)
    met(cut=len(text) > 10, whole=len(text) <= 10)
    assert short == text if len(text) <= 10 else short == f"{text[:10]}… ({len(text) - 10} more characters)"


@pytest.mark.parametrize(
    "said, without",
    [
        ("db cannot be reached: refused. It is tried again.", "db cannot be reached: refused."),
        ("It is full. Create it, or grant it; it is tried again.", "It is full. Create it, or grant it."),
        ("No. It is tried again; if brokers close, check tls.", "No. If brokers close, check tls."),
        ("It was dropped. It is tried again with the table as it is now.", "It was dropped."),
        ("It is tried and true.", "It is tried and true."),
    ],
)
def test_a_promise_of_another_try_can_be_left_out(said: str, without: str) -> None:
    assert without_promise(said) == without


@pytest.mark.parametrize("told", [None, "other"])
def test_an_error_of_a_write_names_its_file(told: str | None) -> None:
    with pytest.raises(OSError, match="No space") as caught, name_file("folder/file"):
        raise OSError(28, "No space left on device", told)
    assert caught.value.filename == (told or "folder/file")
