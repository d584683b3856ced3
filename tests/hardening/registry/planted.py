"""Functions and operators of a stranger's that fit the calls of eventlog's statements better than the server's own.

Each tells a sequence, which keeps what is rolled back, that it ran.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from sqlalchemy import Connection, Engine

SCALARS = "text varchar name bpchar oid int8 int4 int2 numeric regclass bool json jsonb timestamptz timestamp bytea interval float8"
LISTS = "text[] name[] varchar[] int4[] int8[] oid[] int2[] int2vector aclitem[]"
OFTEN = "text varchar name int4 int8 oid bool timestamptz"
COMPARISONS = "= <> < > <= >= ~ !~ ~~"
OTHERS = "|| + - * / % -> ->> &"
FURTHER = (
    "current_schemas",
    "format_type",
    "generate_subscripts",
    "array_agg",
    "to_regtype",
    "unnest",
    "generate_series",
)
"""What SQLAlchemy and psycopg call."""

MAKE = """
DO $do$
DECLARE made record; body CONSTANT text = 'SELECT pg_catalog.nextval(''planter.ran''); SELECT NULL::';
BEGIN
FOR made IN
  WITH one (kind) AS (SELECT unnest(string_to_array($scalars$, ' ') || string_to_array($lists$, ' '))),
       often (kind) AS (SELECT unnest(string_to_array($often$, ' '))),
       called (name) AS (SELECT unnest(string_to_array($called$, ' '))),
       known AS (SELECT DISTINCT proname, prokind, pronargs, provariadic FROM pg_proc JOIN called ON proname = called.name
                 WHERE pronamespace = 'pg_catalog'::regnamespace),
       taken (proname, prokind, args) AS (
         SELECT proname, prokind, kind FROM known, one WHERE pronargs = 1
         UNION SELECT proname, prokind, a.kind || ', ' || b.kind FROM known, often AS a, often AS b
               WHERE pronargs = 2 AND prokind = 'f'
         UNION SELECT proname, prokind, array_to_string(array_fill('text'::text, ARRAY[n]), ', ')
               FROM known, generate_series(1, 8) AS n WHERE prokind = 'f' AND (pronargs > 2 OR provariadic > 0)
         UNION SELECT proname, prokind, 'text, int4, int4' FROM known WHERE pronargs = 3)
  SELECT CASE prokind
    WHEN 'a' THEN format('CREATE AGGREGATE $schema$.%I (%s) (SFUNC = planter.step, STYPE = text)', proname, args)
    ELSE format('CREATE FUNCTION $schema$.%I (%s) RETURNS text LANGUAGE sql AS %L', proname, args, body || 'text') END AS sql
  FROM taken WHERE prokind IN ('a', 'f')
LOOP
  BEGIN EXECUTE made.sql; EXCEPTION WHEN others THEN NULL; END;
END LOOP;
FOR made IN
  WITH one (kind) AS (SELECT unnest(string_to_array($often$ || ' regclass jsonb', ' '))),
       list (kind) AS (SELECT unnest(string_to_array($lists$, ' '))),
       pair (a, b) AS (SELECT a.kind, b.kind FROM one AS a, one AS b UNION SELECT kind, kind FROM list
                       UNION SELECT kind, 'text' FROM list UNION SELECT kind, 'int4' FROM list),
       sign (name, gives) AS (SELECT unnest(string_to_array($comparisons$, ' ')), 'bool'
                              UNION SELECT unnest(string_to_array($others$, ' ')), 'text')
  SELECT format('CREATE OR REPLACE FUNCTION $schema$.planted_%1$s (%2$s, %3$s) RETURNS %1$s LANGUAGE sql AS %4$L',
                gives, a, b, body || gives) AS function,
         format('CREATE OPERATOR $schema$.%s (FUNCTION = $schema$.planted_%s, LEFTARG = %s, RIGHTARG = %s)', name, gives, a, b) AS sql
  FROM pair, sign
LOOP
  BEGIN EXECUTE made.function; EXECUTE made.sql; EXCEPTION WHEN others THEN NULL; END;
END LOOP;
END $do$"""


@cache
def called_names() -> str:
    """Name every function that a statement of ours calls, and some that SQLAlchemy and the driver call."""
    folders = ("eventlog.databases.postgresql", "eventlog.sql.common")
    queries = [file.read_text() for folder in folders for file in files(folder).iterdir() if file.name.endswith(".sql")]
    return " ".join(sorted({*re.findall(r"\b([a-z][a-z0-9_]*)\(", "".join(queries)), *FURTHER}))


def plant(planter: Engine, schema: str) -> int:
    """Make them in a schema as the planter; return how many there are."""
    holes = {"scalars": SCALARS, "lists": LISTS, "often": OFTEN, "called": called_names()}
    holes |= {"comparisons": COMPARISONS, "others": OTHERS}
    sql = MAKE.replace("$schema$", schema)
    for hole, value in holes.items():
        sql = sql.replace(f"${hole}$", f"'{value}'")
    with planter.begin() as connection:
        say_nothing_of_others(connection)
        connection.exec_driver_sql("SET LOCAL check_function_bodies = off")
        connection.connection.cursor().execute(sql)
        count = f"SELECT count(*) FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace"
        return int(connection.exec_driver_sql(count).scalar_one())


def say_nothing_of_others(connection: Connection) -> None:
    """Look for names in the server's own schema alone."""
    connection.exec_driver_sql("SET LOCAL search_path = pg_catalog")
