"""What a receiver calls objects, and who waits for one."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from eventlog.core.associations import Association, Associations, AssociationTable, Awaiting


class Kept(AssociationTable):
    """What a log keeps."""

    def __init__(self, rows: dict[str, Association]) -> None:
        self.rows = rows
        self.asked: list[set[str]] = []

    def read(self, objects: Collection[str]) -> Mapping[str, Association]:
        self.asked.append(set(objects))
        return {name: self.rows[name] for name in objects if name in self.rows}

    def read_awaited(self) -> Mapping[str, Association]:
        return {name: row for name, row in self.rows.items() if row.awaiting}

    def find(self, id: str) -> str | None:  # noqa: A002  # as its base calls it
        return next((name for name, row in self.rows.items() if row.id == id), None)


def served(rows: dict[str, Association]) -> tuple[Associations, Kept]:
    table, known = Kept(rows), Associations()
    known.serve(table)
    return known, table


def write(known: Associations, table: Kept) -> None:
    """Enter what the log has not got yet."""
    unwritten = known.unwritten()
    for name, row in unwritten.items():
        table.rows.pop(name, None)
        if not row.is_empty:
            table.rows[name] = row
    known.note_entered(unwritten)


def test_objects_are_read_once_and_together() -> None:
    known, table = served({"a": Association("1")})
    known.read(["a", "b"])
    assert (known.find("a"), known.find("b")) == ("1", None)
    assert table.asked == [{"a", "b"}]


def test_what_is_kept_is_written_once_and_found_by_its_id() -> None:
    known, table = served({})
    known.keep("a", "1")
    assert known.find_object("1") == "a"
    write(known, table)
    assert table.rows == {"a": Association("1")}
    assert not known.unwritten()
    known.keep("a", None)
    write(known, table)
    assert table.rows == {}
    assert known.find_object("1") is None


def test_what_was_kept_while_it_was_written_is_written_again() -> None:
    known, _ = served({})
    known.keep("a", "1")
    unwritten = known.unwritten()
    known.keep("a", "2")
    known.note_entered(unwritten)
    assert known.unwritten() == {"a": Association("2")}


def test_the_log_counts_where_somebody_else_had_the_lock() -> None:
    known, _ = served({"a": Association("1")})
    known.keep("a", "2")
    known.serve(Kept({"a": Association("3")}))
    assert (known.find("a"), known.unwritten(), known.find_object("2")) == ("3", {}, None)


def test_who_waits_is_told_once_also_after_a_restart() -> None:
    known, table = served({})
    waiting = Awaiting("a", "manager", "1")
    assert known.find_or_await("b", waiting) is None
    assert known.find_or_await("b", Awaiting("a", "manager", "2")) is None  # the newer one counts
    write(known, table)
    again, _ = served(table.rows)
    assert again.waiting_of("a") == [("b", Awaiting("a", "manager", "2"))]
    again.keep("b", "7")
    [left] = again.awaiting("b")
    assert again.find_or_await("b", left) == "7"
    again.end_waiting("b", left)
    assert (again.awaiting("b"), again.waiting_of("a")) == ((), [])
    assert again.unwritten() == {"b": Association("7")}
