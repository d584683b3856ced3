"""Oracle in pure form: what keys become, how columns are read, how triggers cope with what they cannot see."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, cast

import msgspec
import pytest
from sqlalchemy import Connection, create_engine

from eventlog.capture.install import install_sql, uninstall_sql
from eventlog.capture.plan import plan
from eventlog.capture.registry_writer import RegistryWriter
from eventlog.capture.render import Trigger, render
from eventlog.capture.rights import CapturedTable, RightsScope, Roles, rights
from eventlog.check.indexes import serves
from eventlog.core.errors import ConfigError, InstallError
from eventlog.core.schema import Child, Column, Table
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.databases.oracle.keys import oracle_form
from eventlog.databases.oracle.types import has_order, oracle_value
from eventlog.sql.dialect import log_holes, statement, texts
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

KEY = Column(name="IDU", type="NUMBER(10,0)", key=1)
USR = Table(name="USR", schema="INDIRECT", columns=(KEY, Column(name="FNAME", type="VARCHAR2(64)")))


def trigger(table: Table, names: LogNames | None = None, **options: Any) -> Trigger:
    return render(plan(table, TriggerOptions(**options)), ORACLE, names or LogNames(schema="INDIRECT"))[0]


def text(table: Table, **options: Any) -> str:
    return "\n".join(trigger(table, **options).create)


@pytest.mark.parametrize(
    "type_, written, bound",
    [
        ("VARCHAR2(9)", " a ", " a "),
        ("VARCHAR2(9)", "", None),
        ("VARCHAR2(4000)", "ä" * 2001, None),
        ("CHAR(5)", "ab   ", "ab"),
        ("CHAR(5)", "   ", " "),
        ("CHAR(5)", "", " "),
        ("NUMBER(10,0)", "01", Decimal(1)),
        ("NUMBER", "1E+99", Decimal("1E+99")),
        ("NUMBER", "1" + 126 * "0", None),
        ("NUMBER", "x", None),
        ("BINARY_DOUBLE", "0.1", "0.1"),
        ("BINARY_DOUBLE", "-inf", "-Inf"),
        ("BINARY_FLOAT", "nan", "NaN"),
        ("BINARY_FLOAT", "one", None),
        ("DATE", "2025-03-23", "2025-03-23 00:00:00"),
        ("DATE", "2025-03-23 10:57:19.000000000", "2025-03-23 10:57:19"),
        ("DATE", "2025-03-23 10:57:19.5", None),
        ("DATE", "2025-02-30", None),
        ("TIMESTAMP(6)", "2025-03-23T10:57:19.25", "2025-03-23 10:57:19.250000000"),
        ("TIMESTAMP(9) WITH TIME ZONE", "2025-03-23 10:57:19.123456789", "2025-03-23 10:57:19.123456789"),
        ("TIMESTAMP(6)", "now", None),
        ("RAW(16)", "qqo=", "AAAA"),
        ("RAW(16)", "!", None),
        ("INTERVAL DAY(2) TO SECOND(6)", "+01 00:00:00.000000", "+01 00:00:00.000000"),
    ],
)
def test_a_key_becomes_a_value_of_its_column_or_nothing(type_: str, written: str, bound: Any) -> None:
    assert oracle_form(type_).read(written) == bound


def test_a_package_keeps_nothing_between_two_statements_so_that_sessions_outlive_its_replacement() -> None:
    """Whatever a package declares beside types and procedures is a state, which is lost with ORA-04068."""
    head, body = trigger(USR, style=Style.IMAGE).create[:2]
    declared = [line.split()[0] for line in head.splitlines()[1:] if line.startswith("  ") and line[2] != " "]
    assert set(declared) == {"TYPE", "PROCEDURE"}
    assert body.index("PROCEDURE") < body.index(";")  # nothing is declared before them


def test_what_a_trigger_cannot_read_is_never_named_in_it_but_by_its_name() -> None:
    columns = (KEY, *(Column(name=type_, type=type_) for type_ in ("CLOB", "BLOB", "LONG", "XMLTYPE")))
    child = Child(name="TALE", parent_key=("IDU",), columns=(KEY, Column(name="STORY", type="NCLOB")))
    table = Table(name="USR", schema="INDIRECT", columns=columns, children=(child,))
    for style in Style:
        for made in render(plan(table, TriggerOptions(style=style, when="idu > 0")), ORACLE, LogNames()):
            words = " ".join(made.create).upper()
            assert not [name for name in ("CLOB", "BLOB", "LONG", "XMLTYPE", "STORY") if f":NEW.{name}" in words]
            assert not [name for name in ("CLOB", "BLOB", "LONG", "XMLTYPE", "STORY") if f':NEW."{name}"' in words]
    assert "UPDATING('CLOB')" in text(table, style=Style.FIELD)
    assert "new_key, 8, 'BLOB', NULL, NULL" in text(table, style=Style.FIELD_REPLACE)


def test_words_of_plsql_are_quoted() -> None:
    made = text(Table(name="T", columns=(KEY, Column(name="WHEN", type="NUMBER"), Column(name="Mixed", type="NUMBER"))))
    assert ':NEW."WHEN"' in made
    assert ':NEW."Mixed"' in made


def test_a_trigger_longer_than_oracle_takes_is_refused_with_a_way_out() -> None:
    many = tuple(Column(name=f"A_COLUMN_OF_THIRTY_BYTES_{number:05}", type="VARCHAR2(9)") for number in range(450))
    with pytest.raises(InstallError, match=r"USR would be \d+ bytes long, and oracle takes 32760.*columns"):
        trigger(Table(name="USR", columns=(KEY, *many)), style=Style.FIELD)


@pytest.mark.parametrize("type_", ["VARCHAR2(4000)", "NUMBER", "DATE", "TIMESTAMP(9)", "CLOB", "NVARCHAR2(9)"])
@pytest.mark.parametrize("style", Style)
def test_three_hundred_columns_with_names_of_thirty_bytes_fit_into_a_trigger(style: Style, type_: str) -> None:
    many = tuple(Column(name=f"A_COLUMN_OF_THIRTY_BYTES_{number:05}", type=type_) for number in range(300))
    made = trigger(Table(name="USR", schema="INDIRECT", columns=(KEY, *many)), style=style, when="idu > 0")
    assert len(made.create[2].encode()) < 32_760
    assert max(len(line) for text in made.create for line in text.splitlines()) <= 2499


def test_a_condition_about_many_columns_is_asked_on_lines_that_sqlplus_takes() -> None:
    names = [f"A_COLUMN_OF_THIRTY_BYTES_{number:05}" for number in range(64)]
    columns = [Column(name=name, type="NUMBER") for name in names]
    when = " OR ".join(f"{name}>0" for name in names)
    made = trigger(Table(name="USR", columns=(KEY, *columns)), when=when)
    lines = [line for text in made.create for line in text.splitlines()]
    asked = "\n".join(made.create).partition("INTO new_holds FROM (SELECT ")[2].partition(" FROM dual")[0]
    assert len(asked) > 2499 > max(map(len, lines))


def test_a_sequence_is_refused_where_the_table_numbers_itself() -> None:
    with pytest.raises(ConfigError, match=r"postgresql numbers the rows.*source\.sequence"):
        install_sql("postgresql://", LogNames(sequence="s"))


def test_a_script_that_failed_records_no_migration_and_can_be_run_again() -> None:
    for names in (LogNames(), LogNames(table="INDIRECT_PROCESS", schema="INDIRECT", sequence="SEQ_LOG")):
        parts = [part.strip() for part in re.split(r"^/$", install_sql("oracle://", names), flags=re.MULTILINE)]
        bare = [re.sub(r"^--.*$", "", part, flags=re.MULTILINE).strip() for part in parts]
        made = [part for part in bare if re.match(r"(?:CREATE|ALTER TABLE|INSERT|UPDATE|DELETE)", part)]
        assert made == [part for part in bare if "NOT EXISTS (SELECT 1 FROM" in part]
        assert re.match(rf"INSERT INTO \S*{names.version} \(version_num\)", made[0], re.IGNORECASE)
        assert len(made) == 1
        assert bare[-3:] == [made[0], "COMMIT", ""]
        down = uninstall_sql("oracle://", names)
        assert not re.search(r"^(?:DROP|ALTER TABLE|UPDATE|DELETE)", down, re.MULTILINE)


def test_hundreds_of_names_are_parted_in_the_registry() -> None:
    excluded = tuple(f"A_COLUMN_OF_THIRTY_BYTES_{number:05}" for number in range(299))
    options = TriggerOptions(exclude=excluded, when="idu <> '/* @ # %'")
    writer = RegistryWriter(dialect=ORACLE, names=LogNames(), schema="INDIRECT", table="USR", known=None)
    key = Column(name="IDU", type="NUMBER", key=1)
    planned = plan(Table(name="USR", schema="INDIRECT", columns=(key,)))
    lines = [line for text in writer.enter_class(options, planned) for line in text.splitlines()]
    assert max(map(len, lines)) <= 2499
    assert not [line for line in lines if line[:1] in ("@", "#", "/", ".")]
    pieces = re.findall(r"TO_CLOB\('((?:[^']|'')*)'\)", "\n".join(lines))
    assert max(map(len, pieces)) <= 1000
    written = msgspec.json.decode("".join(pieces).replace("''", "'"), type=TriggerOptions)
    assert written == options


def test_who_writes_rows_that_a_sequence_numbers_needs_the_sequence_too() -> None:
    place = CapturedTable(schema="APP", name="USR", owner="APP")
    for sequence, told in ((None, []), ("SEQ_LOG", ["installer", "app"])):
        names = LogNames(schema="INDIRECT", sequence=sequence)
        site = RightsScope(names=names, existing=True, tables=(place,))
        given = [one.sql for one in rights(ORACLE, Roles(installer="installer"), site)]
        drawn = [re.fullmatch(r"GRANT SELECT ON indirect\.seq_log TO (\w+)", text) for text in given]
        assert [found[1] for found in drawn if found] == told
        assert "GRANT INSERT ON indirect.event_log TO app" in given


def test_a_log_of_ours_has_an_index_of_its_waiting_rows_alone_and_queries_speak_in_its_words() -> None:
    [kept] = re.findall(r"CREATE INDEX event_log_new ON event_log \((.*)\)'", install_sql("oracle://"))
    expression = kept.replace("''", "'")
    assert expression == "CASE WHEN status = 'N' THEN record_id END"
    spoken = re.sub(r"\b(status|record_id)\b", r"waiting.\1", expression)
    own, theirs = (log_holes(ORACLE, LogNames(transaction=name)) for name in ("EVENTLOG_TRANSACTION", None))
    assert statement(ORACLE, "order_by_number", **own) == spoken
    assert statement(ORACLE, "order_by_number", **theirs) == "waiting.record_id"
    for query in ("waiting_rows", "anything_waiting", "transaction_ends"):
        assert "waiting./* status */status = 'N' AND /* waiting_number */" in " ".join(texts(ORACLE)[query].split())


@pytest.mark.parametrize(
    "expression, is_served",
    [
        ('CASE  WHEN "STATUS"=\'N\' THEN "RECORD_ID" END ', True),
        ('CASE  WHEN "STATUS"=\'S\' THEN "RECORD_ID" END ', False),
    ],
)
def test_the_index_of_waiting_rows_is_known_by_what_the_catalog_says_of_it(expression: str, *, is_served: bool) -> None:
    engine = create_engine("oracle+oracledb://", creator=lambda: None, _initialize=False)
    index = {"name": "event_log_new", "column_names": [None], "expressions": [expression]}
    assert serves(cast("Connection", engine), index, LogNames()) is is_served


def test_times_are_read_as_text_and_padding_is_no_part_of_a_value() -> None:
    assert oracle_value("VARCHAR2(9)", "c") == "c"
    assert (oracle_value("CHAR(9)", "c"), oracle_value("CHAR(9)", "c", in_key=True)) == ("c", "RTRIM(c)")
    assert oracle_value("DATE", "c") == "TO_CHAR(c, 'YYYY-MM-DD HH24:MI:SS')"
    assert oracle_value("TIMESTAMP(6) WITH LOCAL TIME ZONE", "c").startswith("TO_CHAR(SYS_EXTRACT_UTC(c)")


def test_lobs_have_no_order() -> None:
    types = ("NUMBER", "CLOB", "LONG RAW", "RAW(9)", "XMLTYPE")
    assert [has_order(type_) for type_ in types] == [True, False, False, True, False]
