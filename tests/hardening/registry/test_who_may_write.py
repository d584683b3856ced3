"""Who may write what: all that each role can write on a server where `eventlog rights` gave the rights, and why that is safe.

The lists come from the server itself. A table, a column, a catalog or a mark that code reads, that a lesser role than the
log's owner can write, and that is not named below with its reason, fails: nothing is believed that others may write.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Final

import pytest
from sqlalchemy import Engine, create_engine, text

from eventlog.capture.install import install
from eventlog.capture.rights import Roles, give_rights
from eventlog.capture.track import track
from tests.hardening.registry.attacking import Attacker
from tests.hardening.registry.people import PARTS, People, people, session
from tests.support.logged import run
from tests.support.servers import mysqls

ROOT: Final = Path(__file__).resolve().parents[3]
DATABASES: Final = ROOT / "eventlog" / "databases"
_numbers = count(1)

LOG_TABLES: Final = {
    "event_log.status": "What became of a row: the publisher's own work. `check` doubts letters that nobody knows.",
    "event_log_outcome": "Reasons of rows, for people: text that is shown and not run.",
    "event_log_mark": "The state of the publisher's own work; MARKS below has each name that is read.",
    "event_log_batch": "The journal: numbers of rows in batches that the publisher sealed itself.",
    "event_log_output": "How far each output is, as the publisher itself left it.",
    "event_log_planned": "Documents that the publisher has made and not yet sent.",
    "event_log_parked": "Rows that wait for a retry.",
    "event_log_hold": "Rows that somebody held, with a note for people.",
    "event_log_answer": "What each output answered.",
    "event_log_association": "What the receiver calls each object: data, sent back to that receiver alone.",
    "event_log_seen": "What the publisher saw of tables: names and types alone, and never in place of what the log's owner entered.",
}
"""The places of the log that the publisher writes; other roles write none at all."""

MARKS: Final = {
    "holding": "Makes what a publisher knows old: it reads again.",
    "written": "Makes what a publisher knows old: it reads again, and asks the targets what they have.",
    "converted": "Batches that a conversion has done: the publisher's own work.",
    "seen": "Numbers of rows to look at first: all are looked at in the end.",
    "tracked": "Makes what a publisher knows of tables old: it reads the registry again.",
    "pace": "A figure that is shown.",
    "outputs": "What is shown of outputs.",
    "verified": "The last proofs: shown, and when the next one is due.",
    "served": "Names of outputs, for a question that is put to people.",
    "not followed": "Sentences for people.",
    "current at": "Spares the publisher itself a comparison; `check` and `triggers` always compare.",
    "publisher": "The lock: who may write it could stop the publisher anyway.",
    "log": "Which log this is: who writes documents could say another name there anyway.",
    "epoch": "A number that grows: the publisher alone gives it to outputs.",
    "resumed: ": "How far an output was behind: shown.",
    "try now: ": "Asks for an attempt.",
    "looks refused": "Why looks fail, for people: a remark of `check`.",
}
"""Names of marks that are read, or what these begin with."""

CATALOGS: Final = {
    "pg_class": "Names and kinds of relations: looked up by identity or by a name that the log's owner gave, and quoted.",
    "pg_attribute": "Names and types of columns: always quoted; types of somebody's own are written by their output functions.",
    "pg_constraint": "Keys and references: they say by which columns rows are known, of tables that the registry names.",
    "pg_index": "Unique indexes, as keys are; expressions and predicates are passed over.",
    "pg_inherits": "Which tables are parts of others: relations that triggers depend on.",
    "pg_type": "Types by number; who made them is asked, and none of their casts is used.",
    "pg_namespace": "Names of schemas: quoted.",
    "pg_trigger": "A trigger is ours when the registry names its function; others are told as STRAY, by names that are escaped.",
    "pg_proc": "Functions by number; ours are owned by the log's owner, in a schema where nobody else creates.",
    "pg_rewrite": "Whether a rule does something instead: a remark for people.",
    "pg_attrdef": "Defaults of columns of captured tables: shown to people, never computed.",
    "pg_depend": "Which sequence a column has.",
    "pg_locks": "Who keeps whom waiting: shown.",
    "pg_stat_activity": "Sessions and their application names: shown, and counted.",
    "pg_sequence": "Numbers that a sequence of the log's keeps for a session.",
    "pg_event_trigger": "Only superusers make event triggers.",
    "pg_enum": "Labels of types: values, which are escaped.",
    "pg_collation": "How texts compare: a name that is quoted.",
    "pg_statistic": "Estimates: a total that is shown.",
    "pg_shdepend": "Who owns what.",
}
"""Catalogs that a login without rights writes by its own DDL, and that code reads all the same."""


def queries() -> Iterator[tuple[Path, str]]:
    """The SQL of the program, without its comments: a comment reads nothing."""
    for file in sorted((DATABASES / "postgresql").glob("*.sql")):
        yield file, re.sub(r"--[^\n]*", "", file.read_text())
    for file in sorted((ROOT / "eventlog").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "FROM pg_" in node.value:
                yield file, node.value


@pytest.fixture
def site(postgresql: Engine) -> Iterator[People]:
    with people(postgresql) as found:
        yield found


def writable(site: People, part: str) -> set[str]:
    """Tables of the log that a role may write, or the columns where these are not all."""
    role = site.name(part)
    found = set()
    tables = site.ask(
        "SELECT oid::bigint, relname FROM pg_class WHERE relnamespace = 'capture'::regnamespace AND relkind IN ('r', 'p', 'v')"
    )
    for number, table in tables:
        rights = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "TRIGGER")
        whole = ", ".join(f"has_table_privilege('{role}', {number}::oid, '{right}')" for right in rights)
        if any(site.ask(f"SELECT {whole}")[0]):
            held = [right for right, may in zip(rights, site.ask(f"SELECT {whole}")[0], strict=True) if may]
            found.add(str(table) if held != ["DELETE"] or table != "event_log" else "event_log rows")
        columns = site.ask(
            f"SELECT attname FROM pg_attribute WHERE attrelid = {number} AND attnum > 0 AND NOT attisdropped AND"
            f" (has_column_privilege('{role}', attrelid, attnum, 'UPDATE') OR has_column_privilege('{role}', attrelid, attnum, 'INSERT'))"
        )
        if str(table) not in found:
            found |= {f"{table}.{column}" for (column,) in columns}
    return found


def test_the_tables_of_the_log_are_written_by_the_publisher_alone_and_each_has_its_reason(site: People) -> None:
    for part in ("owner", "tenant", "writer", "reader", "stranger"):
        assert writable(site, part) == set(), part
    unnamed = {place for place in writable(site, "publisher") if place not in LOG_TABLES and place != "event_log rows"}
    assert unnamed == set()


def test_what_the_owner_of_the_log_entered_of_tables_nobody_else_writes(site: People) -> None:
    written = writable(site, "publisher")
    assert {
        place for place in written if re.match(r"event_log_(schema|tracked|trigger|relation|version)", place)
    } == set()
    assert "event_log_mark" in written, "what can be written is found"


def test_nobody_but_its_owner_makes_or_runs_anything_in_the_logs_schema(site: People) -> None:
    for part in ("owner", "tenant", "writer", "publisher", "reader", "stranger"):
        role = site.name(part)
        assert site.ask(f"SELECT has_schema_privilege('{role}', 'capture', 'CREATE')") == [(False,)], part
        called = site.ask(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'capture'::regnamespace"
            f" AND has_function_privilege('{role}', oid, 'EXECUTE')"
        )
        assert called == [], part
        sequences = site.ask(
            "SELECT relname FROM pg_class WHERE relnamespace = 'capture'::regnamespace"
            f" AND CASE WHEN relkind = 'S' THEN has_sequence_privilege('{role}', oid, 'USAGE, UPDATE') END"
        )
        assert sequences == [], part


def catalogs_written(site: People) -> set[str]:
    """The catalogs that a login without rights fills by its own DDL, comments and temporary objects."""
    statements = [
        *Attacker("stranger", Random(1)).start(),
        'CREATE TABLE mal.t (idu integer PRIMARY KEY DEFAULT 1, fname text COLLATE "C", CHECK (idu > 0))',
        "CREATE TABLE mal.child () INHERITS (mal.t)",
        "CREATE TABLE mal.whole (idu integer) PARTITION BY LIST (idu)",
        "CREATE TABLE mal.part PARTITION OF mal.whole DEFAULT",
        "CREATE TEMPORARY TABLE passing (idu serial PRIMARY KEY)",
        "CREATE TRIGGER event_log_app_usr_insert AFTER INSERT ON mal.t FOR EACH ROW EXECUTE FUNCTION mal.fire()",
        "COMMENT ON TRIGGER event_log_app_usr_insert ON mal.t IS 'eventlog {}'",
        "CREATE RULE instead AS ON INSERT TO mal.t DO INSTEAD NOTHING",
        "CREATE POLICY hiding ON mal.t USING (true)",
        "CREATE STATISTICS mal.guessed ON idu, fname FROM mal.t",
        "CREATE COLLATION mal.compared (locale = 'C')",
        "ANALYZE mal.t",
        "ALTER DEFAULT PRIVILEGES IN SCHEMA mal GRANT SELECT ON TABLES TO PUBLIC",
        "CREATE AGGREGATE mal.both (text) (sfunc = textcat, stype = text)",
        "CREATE OPERATOR mal.=== (leftarg = text, rightarg = text, function = texteq)",
        "CREATE TEXT SEARCH DICTIONARY mal.words (template = simple)",
        "SELECT pg_advisory_lock(1)",
        "SET application_name = 'eventlog'",
    ]
    names = [
        str(name)
        for (name,) in site.ask(
            "SELECT relname FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind = 'r'"
        )
    ]

    def counted() -> dict[str, object]:
        return {name: site.ask(f"SELECT count(*) FROM pg_catalog.{name}")[0][0] for name in names}

    before = counted()
    with session(site.stranger) as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
        after = counted()
    return {name for name in names if before[name] != after[name]} | {"pg_locks", "pg_stat_activity"}


def test_each_catalog_that_code_reads_and_anybody_writes_has_its_reason(site: People) -> None:
    """Comments are for people: the catalog that keeps them has no reason."""
    written = catalogs_written(site)
    assert {"pg_description", "pg_trigger", "pg_class"} <= written
    read: dict[str, set[str]] = {}
    for file, query in queries():
        for name in re.findall(r"\b(pg_\w+)\b", query):
            read.setdefault(name, set()).add(f"{file.parent.name}/{file.name}")
        if re.search(r"\b(?:obj|col|shobj)_description\s*\(", query):
            read.setdefault("pg_description", set()).add(f"{file.parent.name}/{file.name}")
    unnamed = {name: sorted(files) for name, files in read.items() if name in written and name not in CATALOGS}
    assert unnamed == {}


def test_each_mark_that_code_reads_has_its_reason() -> None:
    """Names of marks are constants of sources/marks.py; none is read under another one, and none says what is run."""
    named = set()
    for node in ast.parse((ROOT / "eventlog" / "sources" / "marks.py").read_text()).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str(value))) if (
                name.isupper() and name[0] != "_"
            ):
                named.add(value)
    assert named - MARKS.keys() == set()
    begins = set()
    for file in sorted((ROOT / "eventlog").rglob("*.sql")):
        begins |= set(re.findall(r"event_log_mark\b[^;]*?name\s+LIKE\s+'([^%']*)", file.read_text()))
        begins |= set(re.findall(r"event_log_mark SET name = '([^']*)'", file.read_text()))
    assert begins - MARKS.keys() == set()


SETTINGS: Final = re.compile(r"current_setting\(\s*'([\w.]+)'")
SETTINGS_READ: Final = {
    "eventlog.facts": "What two of our triggers hand over within one statement: the second one takes what the first has set anew.",
    "eventlog.keep_key": "Whoever sets it refuses to drop keys of tracked tables to themselves.",
    "server_version_num": "Nobody sets it.",
    "block_size": "Nobody sets it.",
    "is_superuser": "Nobody sets it.",
    "default_transaction_read_only": "Of the program's own session.",
    "session_replication_role": "Only superusers set it.",
    "track_commit_timestamp": "Set when the server starts.",
    "max_identifier_length": "Nobody sets it.",
    "synchronous_commit": "Of the program's own session, or of its database and role: `check` tells it.",
    "transaction_isolation": "Of the transaction that asks.",
    "wal_level": "Set when the server starts.",
}


def test_each_setting_that_code_reads_has_its_reason(site: People) -> None:
    """A setting of a session is anybody's, where it is not the server's own."""
    read = {name.lower() for _, query in queries() for name in SETTINGS.findall(query)}
    anybodys = {str(name) for (name,) in site.ask("SELECT name FROM pg_settings WHERE context = 'user'")}
    known = {str(name) for (name,) in site.ask("SELECT name FROM pg_settings")}
    unnamed = {name for name in read if (name in anybodys or name not in known) and name not in SETTINGS_READ}
    assert unnamed == set()


def test_nobody_reads_columns_that_nobody_is_to_see(site: People) -> None:
    """`rights` grants columns, so that the server itself keeps what is excluded."""
    for part in ("publisher", "reader"):
        may = {
            column: site.ask(f"SELECT has_column_privilege('{site.name(part)}', 'app.usr', '{column}', 'SELECT')")[0][0]
            for column in ("idu", "fname", "secret")
        }
        assert may == {"idu": True, "fname": True, "secret": False}, part
    assert set(PARTS) >= {"publisher", "reader"}


@pytest.mark.parametrize("server", mysqls())
def test_on_mariadb_the_publisher_writes_what_has_its_reason_and_others_write_nothing(
    request: pytest.FixtureRequest, server: str
) -> None:
    admin: Engine = request.getfixturevalue(server)
    number = next(_numbers)
    names = {part: f"{part}_may_{number}" for part in ("installer", "writer", "publisher", "reader", "stranger")}
    run(admin, *(f"CREATE USER '{name}'@'%'" for name in names.values()))
    run(admin, "CREATE TABLE usr (idu INTEGER NOT NULL PRIMARY KEY, fname VARCHAR(40), secret VARCHAR(40))")
    run(admin, f"GRANT SELECT, INSERT, UPDATE, DELETE ON usr TO '{names['writer']}'")
    give_rights(admin, Roles(installer=f"{names['installer']}@%"), tables=["usr"])
    installer = create_engine(admin.url.set(username=names["installer"]))
    install(installer)
    track(installer, ["usr"])
    installer.dispose()
    give_rights(admin, Roles(writer=names["writer"], publisher=names["publisher"]))
    give_rights(admin, Roles(reader=names["reader"]))
    written: dict[str, set[str]] = {part: set() for part in names}
    with admin.connect() as connection:
        for part, name in names.items():
            for rights, place in (("table", "''"), ("column", "column_name")):
                found = connection.execute(
                    text(
                        f"SELECT table_name, {place} FROM information_schema.{rights}_privileges WHERE table_schema = DATABASE()"
                        " AND grantee LIKE :who AND privilege_type NOT IN ('SELECT', 'REFERENCES')"
                        + (
                            " AND NOT (table_name = 'event_log' AND privilege_type = 'DELETE')"
                            if rights == "table"
                            else ""
                        )
                    ),
                    {"who": f"'{name}'@%"},
                )
                written[part] |= {f"{table}.{column}" if column else str(table) for table, column in found}
    run(admin, *(f"DROP USER '{name}'@'%'" for name in names.values()))
    assert written["writer"] == {"usr"}
    assert (written["reader"], written["stranger"]) == (set(), set())
    assert {place for place in written["publisher"] if place not in LOG_TABLES} == set()
