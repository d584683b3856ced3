"""Tables without a key: each row of the log is one change, however many, however cut, and whatever is asked of the rules."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.convert.long_object import decide_pieces
from eventlog.core.model import ABSENT, Change, Event, Op, Outcome, Reason, Transaction
from eventlog.core.rules import Options, Round, decide
from eventlog.core.rules.definitions import Definition, Definitions
from eventlog.core.rules.images import encode_image, open_images
from eventlog.core.rules.screen import HIDDEN
from eventlog.core.schema import WHOLE_ROW, Catalog, Column, Table
from eventlog.explain.masking import Mask
from tests.support.strategies import pieces

NOTE = Table(
    name="note",
    columns=(Column(name=WHOLE_ROW, type="varchar(64)", key=1), Column(name="a"), Column(name="b")),
    images=True,
)
NAMES = ("a", "b")
CATALOG = Catalog(
    [NOTE],
    former=Definitions([Definition(table=NOTE, today=NOTE, images={1: NAMES, 2: ("a", "gone")})], Catalog([NOTE])),
)
TEXTS = ["{}", '{"a":"1"}', '{"a":"A"}', '{"a":"1","b":"x"}', '{"a":"\\\\\\""}']


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def row(number: int, text: str, *, adds: bool, hashes: bool = True, **others: Any) -> Event:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    key = digest(text) if hashes else f'"{quoted}"'
    values = json.loads(text)
    image = encode_image(1, [values.get(name) for name in NAMES])
    said: dict[str, Any] = {"kind": 5, "new": image} if adds else {"kind": 4, "old": image}
    place = {"position": (number,), "table": "note", "key": f"{WHOLE_ROW}={key}", "time": "2026-01-01"}
    [event] = open_images([Event(**place | said | others)], CATALOG)
    return event


def told(changes: list[Change]) -> Counter[tuple[str, tuple[tuple[str, Any], ...]]]:
    """How often there is a row more of each key and values."""
    found: Counter[Any] = Counter()
    for change in changes:
        sides = [(edit.column, edit.new if change.op is Op.ADD else edit.old) for edit in change.edits]
        found[change.row.key, tuple(sides)] += 1 if change.op is Op.ADD else -1
    return found


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    rows = draw(
        st.lists(st.tuples(st.sampled_from(TEXTS), st.booleans(), st.booleans(), st.integers(1, 2)), max_size=30)
    )
    return [
        row(number, text, adds=adds, hashes=hashes, transaction=Transaction(id=by))
        for number, (text, adds, hashes, by) in enumerate(rows, 1)
    ]


@given(logs(), st.booleans(), st.lists(st.integers(0, 30), max_size=4).map(sorted))
def test_the_sum_of_what_is_told_is_the_sum_of_the_log(log: list[Event], coalesce: bool, places: list[int]) -> None:
    expected: Counter[Any] = Counter()
    for event in log:
        assert event.image is not None
        values = event.image.row(event.image.after or event.image.before)
        text = json.dumps({name: value for name, value in values.items() if value is not None}, separators=(",", ":"))
        expected[f"{WHOLE_ROW}={digest(text)}", tuple(values.items())] += 1 if event.kind == 1 else -1
    options = Options(coalesce=coalesce)
    decision = decide(log, catalog=CATALOG, options=options)
    assert told(decision.changes) == expected
    assert [change.positions for change in decision.changes] == [(event.position,) for event in log]
    assert all(outcome.reason is Reason.PUBLISHED for outcome in decision.outcomes)
    cut: list[Change] = []
    outcomes: list[Outcome] = []
    parts = list(pieces(log, [min(place, len(log)) for place in places]))
    for some in decide_pieces(Round(catalog=CATALOG, options=options), lambda: parts, cut.append):
        outcomes += some
    assert sorted(cut, key=lambda change: change.positions) == decision.changes
    assert sorted(one.position for one in outcomes) == [event.position for event in log]


def test_what_is_no_row_of_a_table_without_a_key_ends_as_an_error() -> None:
    text = TEXTS[1]
    wrong = [
        row(1, text, adds=True, new=None),
        row(2, text, adds=True, kind=1, column="a"),
        row(3, text, adds=True, new="no JSON"),
        row(4, text, adds=False, old=None),
        row(5, text, adds=True, new='["9","1",null]'),
        row(6, text, adds=True, kind=6, old='["1","1",null]', new='["1","2",null]'),
    ]
    changes, outcomes = decide(wrong, catalog=CATALOG)
    assert changes == []
    assert [one.reason for one in outcomes] == [Reason.INVALID] * 6
    assert all(one.note for one in outcomes)


def test_columns_that_came_and_went_since_are_null_and_left_out() -> None:
    [change], _ = decide([row(1, TEXTS[1], adds=True, new='["2","1","2"]')], catalog=CATALOG)
    assert [(edit.column, edit.old, edit.new) for edit in change.edits] == [("a", ABSENT, "1"), ("b", ABSENT, None)]
    assert change.whole


@pytest.mark.parametrize("adds", [True, False])
def test_of_an_image_single_values_are_hidden_and_what_cannot_be_read_whole(adds: bool) -> None:
    mask = Mask({(None, "note"): frozenset(["b"])}, CATALOG)
    event = row(1, TEXTS[3], adds=adds, hashes=False)
    assert mask.value("note", None, event.new or event.old) == encode_image(1, ["1", HIDDEN])
    assert mask.secrets("note", f"{WHOLE_ROW}=x", None, (event.old, event.new)).count("x") == 2
    assert mask.key("note", event.key) == HIDDEN
    for text in ("no JSON", '["9","a","b"]', '["1","a"]'):
        assert mask.value("note", None, text) == HIDDEN
        assert text in mask.secrets("note", "a=1", None, (text, None))
    assert Mask({}, CATALOG).value("note", None, event.new) == event.new
    assert Mask({}, CATALOG).key("note", event.key) == event.key


@pytest.mark.parametrize("hashes", [True, False])
def test_a_row_that_the_database_could_not_hash_is_hashed_here(hashes: bool) -> None:
    [change], _ = decide([row(1, TEXTS[1], adds=True, hashes=hashes)], catalog=CATALOG)
    assert change.row.key == f"{WHOLE_ROW}={digest(TEXTS[1])}"


def test_the_publishers_own_changes_are_not_told() -> None:
    log = [row(number, TEXTS[1], adds=adds, perpetrator="idm") for number, adds in ((1, True), (2, False))]
    changes, outcomes = decide(log, catalog=CATALOG, options=Options(user="idm"))
    assert changes == []
    assert {one.reason for one in outcomes} == {Reason.LOOPBACK}
