"""Marks that earlier versions wrote for a queue say where the source goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from eventlog.core.errors import DataError
from eventlog.sources.linter.source import BEHIND, adopt_former_marks
from eventlog.sources.stream.source import PLACE, FileMarks, StreamPlace, WaitingImage, read_place

BATCH = '{"ends":[50,60],"first":[50,40,0],"last":[60,55,0]}'
WAITING = BATCH.replace("}", ',"only":[[50,41,0]],"attempts":3}')


@pytest.mark.parametrize(
    "marks, place",
    [
        ({"position": '{"at":[900,700,0],"spared":900}'}, StreamPlace(begin=900, upto=(900, 700, 0))),
        ({"position": f'{{"at":[900,{BEHIND}]}}'}, StreamPlace(begin=901, upto=(900, BEHIND))),
        (
            {"position": '{"at":[50,30,0]}', "in hand": BATCH, "note: out": "half"},
            StreamPlace(begin=50, upto=(50, 30, 0)),
        ),
        ({"in hand": BATCH}, StreamPlace()),
        (
            {"position": '{"at":[60,55,0]}', "in hand": WAITING},
            StreamPlace(begin=50, upto=(60, 55, 0), waiting=(WaitingImage(position=(50, 41, 0), attempts=3),)),
        ),
        ({}, StreamPlace()),
        ({PLACE: '{"begin":7}'}, StreamPlace(begin=7)),
    ],
    ids=["a position", "behind a commit", "a batch is read again", "the first one", "a row waits", "none", "of today"],
)
def test_former_marks_say_where_to_go_on(tmp_path: Path, marks: dict[str, str | None], place: StreamPlace) -> None:
    FileMarks(tmp_path / "marks").change(marks)
    adopt_former_marks(FileMarks(tmp_path / "marks"))
    after = FileMarks(tmp_path / "marks")
    assert set(after.all()) <= {PLACE}
    assert read_place(after.get(PLACE)) == place


def test_what_is_no_mark_is_named(tmp_path: Path) -> None:
    FileMarks(tmp_path / "marks").change({"position": "[]"})
    with pytest.raises(DataError, match=r"does not hold the marks of a LINTER queue.*Restore the file"):
        adopt_former_marks(FileMarks(tmp_path / "marks"))
