"""Random statements of everybody who has some right, drawn by a seed: each is one that its role may run, or may try.

Comments with markers, temporary objects, names with quotes and with what once were signs of the program's, marks, functions,
triggers, types and casts of an attacker's own, DDL on an own table, settings. Whatever code they leave calls a canary.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from tests.hardening.registry.forging import marker
from tests.hardening.registry.people import HIDDEN

NAMES: Final = (
    "t",
    "usr",
    "event_log",
    "event_log_mark",
    "event_log_tracked",
    "event_log_trigger",
    "event_log_relation",
    "eventlog{x",
    "eventlog{columns:field}",
    "eventlog{}.eventlog{1}",
    "/* eventlog ddl 1 2 3 */",
    'a"b',
    "it's",
    "%s %I %L",
    "a\\'b",
    "$eventlog$",
    "app.usr",
    "a;b,c+d=e",
    "select",
    "Ünï",
)
OURS: Final = (
    "event_log_app_usr_insert",
    "event_log_app_usr_update",
    "event_log_app_usr_delete",
    "event_log_own_mine_insert",
)
"""Names that triggers and functions of the program have, or once had."""
TABLES: Final = ("app.usr", "own.mine", "app.private", "app.other", "mal.t", "usr")
TYPES: Final = ("integer", "bigint", "text", "varchar(80)", "numeric", "{home}.mood", "{home}.code")
KEPT: Final = (
    "asked: app.usr",
    "asked: own.mine",
    "given: 1",
    "verified",
    "outputs",
    "not followed",
    "current at",
    "refresh app.usr",
    "zzz",
)
"""Names of marks that are not the lock, the places and the memory of a publisher who works under the same name: who writes those
stops it, as it could by a lock of its rows."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Attacker:
    """What one role does: `home` is the schema of its own, or the one of its temporary objects."""

    def __init__(self, part: str, dice: Random) -> None:
        self.part = part
        self.dice = dice
        self.home = {"stranger": "mal", "tenant": "own"}.get(part, "pg_temp")
        self._ways: list[Callable[[], str]] = [
            self.make_table,
            self.alter_table,
            self.make_trigger,
            self.comment,
            self.comment,
            self.make_function,
            self.set,
            self.tell,
            self.make_type,
        ]
        self._ways += {
            "tenant": [self.alter_own] * 4 + [self.write_own] * 3,
            "writer": [self.write] * 8 + [self.write_own] * 2,
            "reader": [self.read] * 3,
            "publisher": [self.mark] * 4 + [self.enter],
            "stranger": [],
        }[part]

    def start(self) -> list[str]:
        """What it begins with: its trap, a type and a domain of its own, and a cast that springs it."""
        home, place = self.home, literal(f"{self.part}: ")
        body = f"$$ BEGIN RETURN canary.sing({place} || place) IS NOT NULL; END $$"
        cast = f"$$ SELECT CASE WHEN {home}.trap('a cast') THEN 'low' END $$"
        fire = f"$$ BEGIN PERFORM {home}.trap('a trigger'); RETURN NEW; END $$"
        return [
            f"CREATE OR REPLACE FUNCTION {home}.trap(place text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS {body}",
            f"CREATE TYPE {home}.mood AS ENUM ('low', 'high')",
            f"CREATE FUNCTION {home}.told({home}.mood) RETURNS text IMMUTABLE LANGUAGE sql AS {cast}",
            f"CREATE CAST ({home}.mood AS text) WITH FUNCTION {home}.told({home}.mood) AS IMPLICIT",
            f"CREATE DOMAIN {home}.code AS text CHECK ({home}.trap('a domain'))",
            f"CREATE FUNCTION {home}.fire() RETURNS trigger LANGUAGE plpgsql AS {fire}",
        ]

    def statement(self) -> str:
        return self.dice.choice(self._ways)()

    # --- what anybody may do ----------------------------------------------------------------------

    def _name(self) -> str:
        return quoted(self.dice.choice(NAMES))

    def _own_table(self) -> str:
        return f"{self.dice.choice((self.home, 'pg_temp'))}.{self._name()}"

    def _type(self) -> str:
        return self.dice.choice(TYPES).format(home=self.home)

    def _condition(self) -> str:
        return f"{self.home}.trap('a condition')"

    def _marker(self) -> str:
        options: dict[str, Any] = {}
        for name, values in (
            ("when", [self._condition(), "1 = 0", "true) AND 1 = 0; SELECT 1; --"]),
            ("exclude", [["fname"], ["secret"], []]),
            ("columns", [["secret"], ["idu"]]),
            ("key", [["secret"], ["*"], ["fname"]]),
            ("children", [["app.private"], ["app.other"]]),
            ("style", ["image", "field", "row-back", "nonsense"]),
            ("follow_ddl", [True]),
            ("rows", [True]),
        ):
            if self.dice.random() < 0.25:
                options[name] = self.dice.choice(values)
        table = self.dice.choice(TABLES)
        written = marker(table, **options)
        return self.dice.choice((written, written[:-1], written + " */", "eventlog {}", "/* eventlog ddl 1 2 3 */"))

    def make_table(self) -> str:
        table = self._own_table()
        if self.dice.random() < 0.4:
            return f"DROP TABLE IF EXISTS {table} CASCADE"
        columns = f"idu integer PRIMARY KEY, fname {self._type()}, {self._name()} text"
        return f"CREATE TABLE {table} ({columns})"

    def alter_table(self) -> str:
        kind = self.dice.choice(("TABLE", "TABLE", "VIEW", "INDEX"))
        what = self.dice.choice(
            (
                f"RENAME TO {self._name()}",
                f"RENAME COLUMN fname TO {self._name()}",
                f"RENAME COLUMN {self._name()} TO fname",
                f"ADD COLUMN {self._name()} {self._type()}",
                "DROP COLUMN fname",
                f"ALTER COLUMN fname TYPE {self._type()}",
            )
        )
        if not what.startswith("RENAME"):
            kind = "TABLE"
        return f"ALTER {kind} {self._own_table()} {what}"

    def make_trigger(self) -> str:
        table, name = self._own_table(), self.dice.choice((*OURS, "mine"))
        when = self.dice.choice(("BEFORE INSERT", "AFTER INSERT", "AFTER UPDATE", "BEFORE DELETE"))
        return f"CREATE OR REPLACE TRIGGER {name} {when} ON {table} FOR EACH ROW EXECUTE FUNCTION {self.home}.fire()"

    def comment(self) -> str:
        table = self._own_table()
        target = self.dice.choice(
            (
                f"TRIGGER {self.dice.choice(OURS)} ON {table}",
                f"TRIGGER {self.dice.choice(OURS)} ON {table}",
                f"TABLE {table}",
                f"COLUMN {table}.fname",
                f"FUNCTION {self.home}.fire()",
                f"TYPE {self.home}.mood",
            )
        )
        return f"COMMENT ON {target} IS {literal(self._marker())}"

    def make_function(self) -> str:
        name = quoted(self.dice.choice((*OURS, "event_log_ddl", "concat", "to_json", "mine")))
        body = self.dice.choice(
            ("", f"/* {self._marker().replace('*/', '')} */", "/* eventlog ddl [[1,null]] x e30= */")
        )
        run = f"BEGIN {body} PERFORM {self.home}.trap('a function'); RETURN NULL; END"
        return f"CREATE OR REPLACE FUNCTION {self.home}.{name}() RETURNS trigger LANGUAGE plpgsql AS {literal(run)}"

    def set(self) -> str:
        return self.dice.choice(
            (
                f"SET search_path = {self.home}, pg_temp, pg_catalog",
                "RESET search_path",
                'SELECT set_config(\'eventlog.facts\', \'[[["idu=9", 1, "fname", null, "forged"]]]\', false)',
                "SET check_function_bodies = off",
                "SET row_security = off",
                "SET bytea_output = 'escape'",
                "SET DateStyle = 'German'",
                "SET IntervalStyle = 'sql_standard'",
                "SET standard_conforming_strings = on",
                "SET TimeZone = 'Asia/Tokyo'",
                "SET extra_float_digits = 0",
                "RESET ALL",
            )
        )

    def tell(self) -> str:
        number = self.dice.randrange(1 << 40)
        return self.dice.choice(
            (
                "NOTIFY event_log",
                "NOTIFY event_log, 'x'",
                "SELECT pg_notify('capture.event_log', 'x')",
                f"SELECT pg_try_advisory_lock({number})",
                "SELECT pg_try_advisory_lock(1702257011, 1)",
                "SELECT pg_advisory_unlock_all()",
            )
        )

    def make_type(self) -> str:
        home = self.home
        return self.dice.choice(
            (
                f"ALTER TYPE {home}.mood RENAME VALUE 'low' TO 'lower'",
                f"ALTER TYPE {home}.mood RENAME VALUE 'lower' TO 'low'",
                f"ALTER TYPE {home}.mood ADD VALUE IF NOT EXISTS {literal(self.dice.choice(NAMES))}",
                f"CREATE OR REPLACE VIEW {home}.seen AS SELECT {home}.trap('a view') AS idu",
                f"DROP VIEW IF EXISTS {home}.seen",
                f"ALTER DOMAIN {home}.code DROP CONSTRAINT IF EXISTS more",
                f"ALTER DOMAIN {home}.code ADD CONSTRAINT more CHECK ({home}.trap('a domain')) NOT VALID",
            )
        )

    # --- what a part may do -----------------------------------------------------------------------

    def alter_own(self) -> str:
        """DDL of who owns a tracked table."""
        name = self._name()
        return self.dice.choice(
            (
                f"ALTER TABLE own.mine ADD COLUMN {name} {self._type()}",
                f"ALTER TABLE own.mine DROP COLUMN IF EXISTS {name} CASCADE",
                f"ALTER TABLE own.mine RENAME COLUMN more TO {name}",
                f"ALTER VIEW own.mine RENAME COLUMN {name} TO more",
                f"ALTER TABLE own.mine ALTER COLUMN more TYPE {self._type()} USING NULL",
                "CREATE INDEX IF NOT EXISTS mine_trap ON own.mine (own.trap(note))",
                "DROP INDEX IF EXISTS own.mine_trap",
                "ALTER TABLE own.mine ADD CONSTRAINT checked CHECK (own.trap('a check'))",
                "ALTER TABLE own.mine DROP CONSTRAINT IF EXISTS checked",
                "CREATE POLICY hiding ON own.mine USING (own.trap('a policy'))",
                "DROP POLICY IF EXISTS hiding ON own.mine",
                "ALTER TABLE own.mine ENABLE ROW LEVEL SECURITY",
                "ALTER TABLE own.mine DISABLE ROW LEVEL SECURITY",
                "CREATE OR REPLACE TRIGGER zzz BEFORE UPDATE ON own.mine FOR EACH ROW EXECUTE FUNCTION own.fire()",
                "DROP TRIGGER IF EXISTS zzz ON own.mine",
                f"COMMENT ON TRIGGER event_log_own_mine_insert ON own.mine IS {literal(self._marker())}",
                f"COMMENT ON TRIGGER event_log_own_mine_update ON own.mine IS {literal(self._marker())}",
                f"COMMENT ON TABLE own.mine IS {literal(self._marker())}",
                "CREATE STATISTICS IF NOT EXISTS own.guessed ON (own.trap(note)), more FROM own.mine",
                "CREATE TABLE IF NOT EXISTS own.part (PRIMARY KEY (id)) INHERITS (own.mine)",
                "DROP TABLE IF EXISTS own.part",
                "ANALYZE own.mine",
                "ALTER TABLE own.mine RENAME CONSTRAINT mine_pkey TO other_pkey",
                "ALTER INDEX own.other_pkey RENAME TO mine_pkey",
            )
        )

    def write_own(self) -> str:
        number = self.dice.randrange(20)
        return self.dice.choice(
            (
                f"INSERT INTO own.mine (id, note) VALUES ({number}, 'n{number}') ON CONFLICT DO NOTHING",
                f"UPDATE own.mine SET note = 'u{self.dice.randrange(1000)}' WHERE id = {number}",
                f"DELETE FROM own.mine WHERE id = {number}",
            )
        )

    def write(self) -> str:
        """A change of the table that nobody attacks, each with a text of its own, and with something to hide."""
        number, token = self.dice.randrange(12), f"v{self.dice.randrange(1 << 40):x}"
        return self.dice.choice(
            (
                f"INSERT INTO app.usr VALUES ({number}, '{token}', 'l', '{HIDDEN}') ON CONFLICT DO NOTHING",
                f"UPDATE app.usr SET fname = '{token}', secret = '{HIDDEN} {token}' WHERE idu = {number}",
                f"UPDATE app.usr SET secret = '{HIDDEN} {token}' WHERE idu = {number}",
                f"DELETE FROM app.usr WHERE idu = {number}",
            )
        )

    def read(self) -> str:
        return self.dice.choice(("SELECT * FROM app.usr", "SELECT * FROM own.mine", "SELECT count(*) FROM app.private"))

    def mark(self) -> str:
        name = self.dice.choice(KEPT)
        value = self.dice.choice((self._marker(), "no json", "{}", '{"table": "app.usr", "options": {"exclude": []}}'))
        if self.dice.random() < 0.3:
            return f"DELETE FROM capture.event_log_mark WHERE name = {literal(name)}"
        kept = f"INSERT INTO capture.event_log_mark (name, value) VALUES ({literal(name)}, {literal(value)})"
        return f"{kept} ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value"

    def enter(self) -> str:
        """A definition of a table that is not the publisher's to define."""
        described = self.dice.choice(("no json", "{}", '{"raw": [{"relation": 1}]}'))
        entered = self.dice.choice(("event_log_schema", "event_log_seen", "event_log_seen"))
        return (
            f"INSERT INTO capture.{entered} (table_name, table_version, seen_at, first_record, described)"
            f" VALUES ('{self.dice.choice(TABLES)}', {self.dice.randrange(100, 999_999)},"
            f" '2030-01-01T00:00:00+00:00', {self.dice.randrange(5)}, {literal(described)})"
        )
