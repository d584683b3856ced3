"""`--follow-ddl` where a table gets another primary key: rows are known by the key of now, and all that can be published is. PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Engine

from eventlog.capture.install import install
from eventlog.capture.track import track
from eventlog.tracked.options import Style, TriggerOptions
from tests.integration.test_definitions import publish, statuses
from tests.support.logged import run

USR = "CREATE TABLE usr (idu INTEGER PRIMARY KEY, a TEXT, b TEXT, id2 INTEGER UNIQUE NOT NULL)"
KEYS = {
    "another column": ("ALTER TABLE usr DROP CONSTRAINT usr_pkey", "ALTER TABLE usr ADD PRIMARY KEY (id2)"),
    "a new column": ("ALTER TABLE usr DROP CONSTRAINT usr_pkey", "ALTER TABLE usr ADD COLUMN id3 serial PRIMARY KEY"),
    "two columns": ("ALTER TABLE usr DROP CONSTRAINT usr_pkey, ADD PRIMARY KEY (id2, idu)",),
    "instead": ("ALTER TABLE usr DROP COLUMN idu", "ALTER TABLE usr ADD PRIMARY KEY (id2)"),
    "none": ("ALTER TABLE usr DROP CONSTRAINT usr_pkey",),
}


@pytest.mark.parametrize("change", KEYS)
@pytest.mark.parametrize("style", [Style.FIELD, Style.ROW_BACK])
def test_a_changed_primary_key_ends_no_row_that_could_be_published(
    postgresql: Engine, tmp_path: Path, style: Style, change: str
) -> None:
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(style=style, follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y', 11), (2, 'x', 'y', 12)")
    publish(postgresql, tmp_path)
    # Rows wait under the former key, too; some are written between two commands and some afterwards.
    run(postgresql, "UPDATE usr SET a = 'before' WHERE id2 = 11")
    for number, command in enumerate(KEYS[change]):
        run(postgresql, command, f"UPDATE usr SET b = 'step {number}'")
    columns = "a, b, id2" if change == "instead" else "idu, a, b, id2"
    run(
        postgresql,
        f"INSERT INTO usr ({columns}) SELECT {columns.replace('idu', '3').replace('id2', '13')} FROM usr WHERE id2 = 11",
    )
    run(postgresql, "UPDATE usr SET a = 'after' WHERE id2 = 12", "DELETE FROM usr WHERE id2 = 13")
    publish(postgresql, tmp_path)
    if change != "instead":
        assert [row for row in statuses(postgresql) if row[3] == "reading back found no such row."] == []
        assert "before" in "".join(file.read_text() for file in tmp_path.rglob("*.jsonl"))
    run(postgresql, "UPDATE usr SET a = 'last'")
    publish(postgresql, tmp_path)
    assert {status for _, status, _, _ in statuses(postgresql)} <= {"S", "W"}, statuses(postgresql)
    track(postgresql, ["usr"])
    run(postgresql, "UPDATE usr SET a = 'and more'")
    publish(postgresql, tmp_path)
    assert {status for _, status, _, _ in statuses(postgresql)} <= {"S", "W"}, statuses(postgresql)


def test_of_several_rows_with_a_former_key_none_is_published_for_another(postgresql: Engine, tmp_path: Path) -> None:
    install(postgresql)
    run(postgresql, USR)
    track(postgresql, ["usr"], TriggerOptions(follow_ddl=True))
    run(postgresql, "INSERT INTO usr VALUES (1, 'x', 'y', 11), (2, 'x', 'y', 12)", *KEYS["two columns"])
    run(postgresql, "INSERT INTO usr VALUES (1, 'another', 'y', 13)")
    publish(postgresql, tmp_path)
    assert [row[1:3] for row in statuses(postgresql)] == [("W", "vanished"), ("S", None), ("S", None)]
