"""A change that goes as a row of typed columns is the same afterwards, whatever its values are."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.forms import form_of
from eventlog.convert.settings import ChangeRows, Conversion, FilesInput
from eventlog.convert.to_changes import changes_of
from eventlog.core.model import ABSENT, Change, Edit, Op, RowId, Transaction, Who
from tests.support.strategies import CATALOG

texts = st.text(st.characters(exclude_categories=["Cs"]))


def unfolded(value: object) -> object:
    """No database says which of two equal hours it means."""
    return value.replace(fold=0) if isinstance(value, dt.datetime | dt.time) else value


values = st.one_of(
    *(st.none(), texts, st.booleans(), st.integers(), st.floats(allow_nan=False), st.binary()),
    *(st.decimals(allow_nan=False), st.datetimes(timezones=st.sampled_from([None, dt.UTC])), st.dates(), st.times()),
).map(unfolded)
cells = st.just(ABSENT) | values | st.lists(values, max_size=3).map(tuple)
edits = st.builds(Edit, column=texts, old=cells, new=cells, reset=st.booleans())
integers = st.integers(-(2**63), 2**63 - 1)
transactions = st.builds(
    Transaction,
    id=integers,
    time=st.none() | st.datetimes(timezones=st.just(dt.UTC)).map(unfolded),
    end=st.none() | integers,
)
changes = st.builds(
    Change,
    row=st.builds(RowId, st.none() | texts, texts, texts),
    op=st.sampled_from(Op),
    edits=st.lists(edits, max_size=3).map(tuple),
    positions=st.lists(st.tuples(integers) | st.tuples(integers, integers), min_size=1, max_size=3).map(tuple),
    whole=st.booleans(),
    transaction=st.none() | transactions,
    stream=st.none() | texts,
    time=st.none() | texts,
    refresh=st.booleans(),
    created=st.booleans(),
    route=st.just("") | texts,
    who=st.none() | st.builds(Who, st.none() | texts, st.none() | texts),
    called=st.none() | st.dictionaries(st.builds(RowId, st.none() | texts, texts, texts), texts, max_size=2),
)


def through_rows(*told: Change) -> list[Change]:
    order = Conversion(input=FilesInput(places=()), destination=None, format=ChangeRows())  # type: ignore[arg-type]  # nothing is written
    rendering = form_of(order).rendering(CATALOG)
    for change in told:
        rendering.take(change)
    rows = rendering.rendered()
    ops = pa.array([change.op.value for change in told], pa.string())
    return list(changes_of(rows.append_column("op", ops)))


@given(st.lists(changes, max_size=4))
def test_changes_come_back_as_they_went(told: list[Change]) -> None:
    found = through_rows(*told)
    assert found == told
    assert repr(found) == repr(told)  # equal values may be of different types
