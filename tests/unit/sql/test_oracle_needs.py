"""What Oracle must allow, as docs/how-to/least-rights.md names it: packages, views and privileges.

Each test fails when a statement uses another, and when the page lacks one.
"""

from __future__ import annotations

import re
from pathlib import Path

import eventlog.databases.oracle
from eventlog.databases.oracle.dialect import ORACLE
from eventlog.sql.dialect import texts
from tests.oracle.generated import installation, triggers

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "least-rights.md").read_text()
PACKAGES = {"dbms_transaction", "dbms_utility", "utl_encode", "utl_raw"}
VIEWS = {
    *("nls_database_parameters", "product_component_version", "session_privs"),
    *("dba_role_privs", "dba_sys_privs", "dba_tab_privs"),
}
"""Those that are not ALL_ views, of which each user sees his part."""
SYSTEM = {
    "CREATE TABLE": "CREATE TABLE",
    "CREATE INDEX": "CREATE TABLE",
    "ALTER TABLE": "CREATE TABLE",
    "DROP TABLE": "CREATE TABLE",
    "DROP INDEX": "CREATE TABLE",
    "CREATE SEQUENCE": "CREATE SEQUENCE",
    "ALTER SEQUENCE": "CREATE SEQUENCE",
    "DROP SEQUENCE": "CREATE SEQUENCE",
    "CREATE PACKAGE": "CREATE PROCEDURE",
    "DROP PACKAGE": "CREATE PROCEDURE",
    "CREATE TRIGGER": "CREATE TRIGGER",
    "ALTER TRIGGER": "CREATE TRIGGER",
    "DROP TRIGGER": "CREATE TRIGGER",
}
"""The privilege by which a user does this in a schema of his own."""
ANY = {
    "CREATE PACKAGE": "CREATE ANY PROCEDURE",
    "DROP PACKAGE": "DROP ANY PROCEDURE",
    "CREATE TRIGGER": "CREATE ANY TRIGGER",
    "ALTER TRIGGER": "ALTER ANY TRIGGER",
    "DROP TRIGGER": "DROP ANY TRIGGER",
}
"""The same in the schema of somebody else, whose tables are captured."""


def code() -> list[str]:
    """The room's SQL and Python without comments."""
    room = Path(eventlog.databases.oracle.__file__).parent
    files = [file.read_text() for file in (*room.glob("*.sql"), *room.glob("*.py"))]
    return [re.sub(r"^\s*--.*$", "", text, flags=re.MULTILINE) for text in files]


def granted(query: str) -> set[str]:
    """The system privileges that `eventlog rights` gives."""
    found = re.match(r"GRANT (.*) TO ", texts(ORACLE)[query])
    assert found is not None
    return set(found[1].split(", "))


def verbs(statements: list[str]) -> set[str]:
    """What the statements make, change or take away."""
    head = r"(CREATE|ALTER|DROP) (?:OR REPLACE )?(?:UNIQUE )?(\w+)"
    found = [re.match(head, text) for text in statements]
    return {f"{one[1]} {one[2]}" for one in found if one is not None}


def test_no_statement_uses_a_package_that_is_not_named() -> None:
    packages = r"\b((?:DBMS|UTL|CTX|OWA|APEX)_\w+)\."
    used = {name.lower() for text in code() for name in re.findall(packages, text)}
    assert used == PACKAGES
    assert [name for name in PACKAGES if f"`{name.upper()}`" not in PAGE] == []


def test_no_statement_reads_a_view_of_the_catalog_that_is_not_named() -> None:
    catalog = r"\b(?:(?:dba|cdb|user|session|nls|product)_[a-z_]+|g?v\$\w+|[a-z]+\$)(?![\w$])"
    named = texts(ORACLE).items()
    bare = [re.sub(r"'[^']*'", "", text) for name, text in named if name != "session"]
    read = {name.lower() for text in bare for name in re.findall(catalog, text, re.IGNORECASE)}
    assert read == VIEWS
    assert [name for name in VIEWS if f"`{name.upper()}`" not in PAGE] == []


def test_whoever_installs_has_what_the_statements_need_and_nothing_else() -> None:
    made = [text for source in (installation, triggers) for _, text in source()]
    needed = {SYSTEM[verb] for verb in verbs(made)}
    assert granted("installer_on_schema") == needed | {"CREATE SESSION"}


def test_whoever_captures_tables_of_others_has_what_that_needs_and_nothing_else() -> None:
    needed = {ANY[verb] for verb in verbs([text for _, text in triggers()])}
    assert granted("installer_on_place") == needed
    said = needed | granted("installer_on_schema")
    assert [name for name in said if f"`{name}`" not in PAGE] == []


def test_of_the_log_a_publisher_changes_the_status_alone() -> None:
    """UPDATE is granted on that column, and INSERT to owners of tables and to installers."""
    named = texts(ORACLE).items()
    adding = {name for name, text in named if re.search(r"(?:INSERT|MERGE) INTO /\* log \*/", text)}
    assert adding == {"function_body", "refresh_row", "try_log"}
    setting = r"UPDATE /\* log \*/\w+\s+SET ([^;]*?)\s+WHERE\b"
    changes = {found for _, text in named for found in re.findall(setting, text)}
    assert len(changes) > 2
    status = r"/\* status \*/status = (?::\w+|'\w'|/\* status \*/status)"
    assert [one for one in changes if not re.fullmatch(status, one)] == []


def test_whoever_reads_captured_tables_cannot_lock_their_rows() -> None:
    """SELECT would let a user lock rows of a table, and so stop its writers."""
    reading = ("installer_on_table", "publisher_on_table", "publisher_on_registry")
    assert [query for query in reading if not texts(ORACLE)[query].startswith("GRANT READ ON ")] == []
