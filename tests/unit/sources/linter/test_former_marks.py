"""Marks that earlier versions wrote for a queue say where the source goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.core.errors import DataError
from eventlog.sources.linter.source import BEHIND, adopt_former_marks
from eventlog.sources.stream.source import PLACE, FileMarks, StreamPlace, WaitingImage, read_place


def adopted(path: Path, **marks: str) -> StreamPlace:
    FileMarks(path).change({name.replace("_", " "): text for name, text in marks.items()})
    adopt_former_marks(FileMarks(path))
    after = FileMarks(path)
    assert set(after.all()) <= {PLACE}
    return read_place(after.get(PLACE))


def test_a_position_is_the_place_to_go_on_from(tmp_path: Path) -> None:
    within, behind = adopted(tmp_path / "a", position='{"at":[900,700,0],"spared":900}'), (900, BEHIND)
    assert within == StreamPlace(begin=900, upto=(900, 700, 0))
    assert adopted(tmp_path / "b", position=f'{{"at":[900,{BEHIND}]}}') == StreamPlace(begin=901, upto=behind)


def test_a_batch_in_hand_is_read_again(tmp_path: Path) -> None:
    batch = '{"ends":[50,60],"first":[50,40,0],"last":[60,55,0]}'
    marks = {"position": '{"at":[50,30,0]}', "in hand": batch, "note: out": "half"}
    assert adopted(tmp_path / "a", **marks) == StreamPlace(begin=50, upto=(50, 30, 0))
    assert adopted(tmp_path / "b", **{"in hand": batch}) == StreamPlace()


def test_what_waited_waits(tmp_path: Path) -> None:
    batch = '{"ends":[50,60],"first":[50,40,0],"last":[60,55,0],"only":[[50,41,0]],"attempts":3}'
    found = adopted(tmp_path / "a", **{"position": '{"at":[60,55,0]}', "in hand": batch})
    waiting = (WaitingImage(position=(50, 41, 0), attempts=3),)
    assert found == StreamPlace(begin=50, upto=(60, 55, 0), waiting=waiting)


def test_marks_of_today_and_none_are_left_alone(tmp_path: Path) -> None:
    assert adopted(tmp_path / "a") == StreamPlace()
    assert adopted(tmp_path / "b", **{PLACE: '{"begin":7}'}) == StreamPlace(begin=7)


def test_rubbish_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"does not hold the marks of a LINTER queue.*Restore the file"):
        adopted(tmp_path / "a", position="[]")
