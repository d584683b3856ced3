"""Oracle's triggers as PostgreSQL's, by Debian's ora2pg and orafce: their logic runs, in another engine.

What the translation cannot carry is put right here, and this is all of it:

* compound triggers, types of packages and FORALL, which ora2pg leaves as they are: the procedure that says what a row's change
  means stands by itself, a row trigger calls it, and each row of the log is written when it is noted;
* a call of a procedure, which ora2pg does not know for one, gets its CALL;
* UTL_RAW.CAST_TO_RAW of an expression, which ora2pg takes apart wrongly, becomes a function of our own before;
* names that ora2pg and orafce leave as they are mean what shims.sql says.

Nothing is shown about: how a compound trigger gathers rows, '' being NULL, NLS settings, types that PostgreSQL lacks, sizes, privileges, mutating tables,
the compilation of PL/SQL, and the order in which Oracle fires triggers.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from eventlog.capture.render import Trigger

SHIMS = Path(__file__).with_name("shims.sql")
SETTINGS = "PG_VERSION 15\nUSE_ORAFCE 1\nNULL_EQUAL_EMPTY 0\n"
_kinds = {"CREATE OR REPLACE PROCEDURE": "PROCEDURE", "CREATE OR REPLACE TRIGGER": "TRIGGER"}


def missing(engine: Engine) -> str | None:
    """What this machine lacks for the translation, in words; None when all is there."""
    if shutil.which("ora2pg") is None:
        return "there is no ora2pg (Debian: apt install ora2pg)"
    with engine.connect() as connection:
        found = connection.execute(text("SELECT 1 FROM pg_available_extensions WHERE name = 'orafce'")).first()
    return None if found else "PostgreSQL has no orafce (Debian: apt install postgresql-15-orafce)"


def prepare(engine: Engine) -> None:
    """Makes a database understand what translated triggers say."""
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE EXTENSION orafce")
        connection.exec_driver_sql(SHIMS.read_text().replace("%", "%%"))
        name = engine.url.database
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET search_path = public, shims, oracle, pg_catalog")
    engine.dispose()


def translated(triggers: Iterable[Trigger], folder: Path) -> list[str]:
    """The PostgreSQL scripts of Oracle's triggers and of the procedures that they run."""
    (folder / "ora2pg.conf").write_text(SETTINGS)
    statements = [statement for trigger in triggers for statement in taken_apart(trigger)]
    called = re.findall(r"^CREATE OR REPLACE PROCEDURE (\S+?)\(", "\n".join(statements), re.MULTILINE)
    by_kind = {kind: [one for one in statements if one.startswith(head)] for head, kind in _kinds.items()}
    return [_called(_run(kind, some, folder), called) for kind, some in by_kind.items() if some]


def taken_apart(trigger: Trigger) -> list[str]:
    """The same without a package: two procedures and a row trigger."""
    name = trigger.function
    body = next(text for text in trigger.create if text.startswith("CREATE OR REPLACE PACKAGE BODY"))
    made = next(text for text in trigger.create if text.startswith("CREATE OR REPLACE TRIGGER"))
    note, row_changed, write_rows = re.split(r"^  PROCEDURE ", body, flags=re.MULTILINE)[1:]
    head = _between(note, "note(noted IN OUT NOCOPY log_rows, ", " IS")
    insert = re.sub(r"noted\(place\)\.", "", _between(write_rows, "FORALL place IN 1 .. noted.COUNT", "noted.DELETE"))
    logic = row_changed.replace("row_changed(noted IN OUT NOCOPY log_rows, ", f"{name}_row(")
    logic = logic.replace("note(noted, ", f"{name}_note(").rpartition("    IF noted.COUNT >= 100")[0]
    event = re.search(r"INSERT OR UPDATE OR DELETE ON \S+", made)
    assert event is not None
    call = _between(made, "row_changed(noted, ", ");\n")
    return [
        f"CREATE OR REPLACE PROCEDURE {name}_note({head} IS\nBEGIN\n{insert}END;",
        f"CREATE OR REPLACE PROCEDURE {logic}END;",
        f"{made.splitlines()[0]}\nAFTER {event[0]}\nFOR EACH ROW\nBEGIN\n{name}_row({call});\nEND;",
    ]


def _between(text: str, before: str, after: str) -> str:
    return text.partition(before)[2].partition(after)[0]


def load(connection: Connection, scripts: Iterable[str]) -> None:
    for script in scripts:
        connection.exec_driver_sql(script.replace("%", "%%"))


def _run(kind: str, statements: Iterable[str], folder: Path) -> str:
    """All of a kind at once, for a start of ora2pg is dear."""
    scripts = [one.replace("UTL_RAW.CAST_TO_RAW(", "bytes_of(") + "\n/\n" for one in statements]
    (folder / "in.sql").write_text("".join(scripts))
    command = ["ora2pg", "-q", "-c", "ora2pg.conf", "-t", kind, "-i", "in.sql", "-o", "out.sql", "-b", "."]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return re.sub(r"^\\.*$", "", (folder / "out.sql").read_text(), flags=re.MULTILINE)


def _called(script: str, procedures: Iterable[str]) -> str:
    for name in procedures:
        script = re.sub(rf"^(\s*)({re.escape(name)}\()", r"\1CALL \2", script, flags=re.MULTILINE)
    return script
