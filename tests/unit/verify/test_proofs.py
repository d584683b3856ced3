"""What the last proofs are called on the page, in `eventlog check` and in metrics; and the mark that keeps them."""

from __future__ import annotations

from msgspec.structs import replace

from eventlog.care.proofs import MOST_TABLES, read_proofs, write_proofs
from eventlog.core.proofs import LastProof
from eventlog.daemon.health import VitalsReading
from eventlog.verify.proof import TableProof, last_proof
from eventlog.verify.proofs import findings_of, table_of_proofs
from eventlog.verify.schedule import Schedule
from eventlog.web.metrics import metrics

NOW = 1_000_000.0
SCHEDULE = Schedule(every=3600)
EQUAL = LastProof(output="lake", table="usr", at=NOW - 60, rows=1234, seconds=2.5)
DIFFERS = replace(EQUAL, table="grp", missing=1, value=2)
ONE = replace(EQUAL, table="one", extra=1)
MORE = replace(EQUAL, table="big", double=10_000, more=True)
OLD = replace(EQUAL, table="old", at=NOW - 8000, error="The target is away.", failed_at=NOW)
NEVER = LastProof(output="lake", table="new", error="The output has no table for it.", failed_at=NOW - 5)
ALL = (EQUAL, DIFFERS, ONE, MORE, OLD, NEVER)


def test_the_mark_keeps_them_and_has_an_end() -> None:
    assert read_proofs(write_proofs(ALL)) == ALL
    assert read_proofs(None) == read_proofs("{") == ()
    assert len(read_proofs(write_proofs([EQUAL] * (MOST_TABLES + 5)))) == MOST_TABLES


def test_what_they_found_in_words() -> None:
    assert [one.verdict for one in ALL] == [
        "equal",
        "3 objects differ (1 missing, 2 value)",
        "1 object differs (1 extra)",
        "at least 10,000 objects differ (10,000 double)",
        "equal",
        "not compared yet",
    ]
    assert [one.equal for one in ALL] == [True, False, False, False, True, False]


def test_the_page_shows_what_differs_first() -> None:
    table = table_of_proofs(ALL, SCHEDULE, NOW)
    shown = {row[1].text: (row[2].text, row[2].look, row[3].text) for row in table.rows}
    assert [row[1].text for row in table.rows][-1] == "usr"
    assert shown["usr"] == ("equal.", "good", "1,234")
    assert shown["grp"][1] == "bad"
    assert shown["old"] == ("equal. The target is away.", "warn", "1,234")
    assert shown["new"] == ("not compared yet. The output has no table for it.", "warn", "")
    times = {row[1].text: (row[4].text, row[5].text, row[6].text) for row in table.rows}
    assert times["usr"] == ("1970-01-12 13:45:40", "2.5 s", "1970-01-12 14:45:40")
    assert table_of_proofs((), SCHEDULE, NOW).rows == ()


def test_check_warns_of_differences_and_of_old_proofs() -> None:
    found = list(findings_of(ALL, SCHEDULE, NOW))
    assert [one.message for one in found if one.mend is None] == ["1 table equal at outputs, by the last proofs"]
    warned = " / ".join(one.message for one in found if one.mend is not None)
    assert "grp at lake: 3 objects differ (1 missing, 2 value), by the proof at 1970-01-12 13:45:40 UTC" in warned
    assert "old at lake was compared last at 1970-01-12 11:33:20 UTC. The target is away." in warned
    assert "new at lake could not be compared: The output has no table for it." in warned
    assert [one.message for one in findings_of((), SCHEDULE, NOW)] == ["0 tables equal at outputs, by the last proofs"]
    assert len(list(findings_of((DIFFERS,), SCHEDULE, NOW))) == 1


def test_metrics_have_each_table() -> None:
    text = metrics(VitalsReading(proofs=ALL)).decode()
    assert 'eventlog_verify_differences{kind="value",output="lake",table="grp"} 2.0' in text
    assert 'eventlog_verify_equal{output="lake",table="usr"} 1.0' in text
    assert 'eventlog_verify_failed{output="lake",table="new"} 1.0' in text
    assert 'eventlog_verify_rows{output="lake",table="new"}' not in text


def test_a_proof_becomes_a_last_one() -> None:
    proof = TableProof(table="usr", rows=5, missing=1, waiting=2, notes=("Child tables are not compared.", "x" * 500))
    found = last_proof(proof, "lake", NOW)
    assert (found.at, found.rows, found.missing, found.waiting, found.error) == (NOW, 5, 1, 2, "")
    assert len(found.note) < 250
    failed = last_proof(TableProof(table="usr", problem="It has no table."), "lake", NOW)
    assert (failed.at, failed.failed_at, failed.error) == (None, NOW, "It has no table.")
