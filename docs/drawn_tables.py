"""Two pictures of the documentation: one UPDATE in every style, as triggers log it, and what each role may do with what,
as `eventlog rights` grants it. Both are kept in docs/pictures, so that a clone shows them too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from typing import Final

from msgspec import Struct
from sqlalchemy import create_engine, text
from sqlalchemy.pool import StaticPool

from eventlog.capture.install import install
from eventlog.capture.rights import CapturedTable, RightsScope, Roles, rights
from eventlog.capture.track import track
from eventlog.sql.dialect import dialect_of
from eventlog.sql.names import LogNames
from eventlog.tracked.options import Style, TriggerOptions

LOOK: Final = (
    "text{font:13px ui-monospace,monospace;fill:#1c2024}.quiet{fill:#5a636d}.strong{font-weight:700}"
    ".ground{fill:#fff}.card{fill:#f6f8fa;stroke:#d0d7de}.head{fill:#e8f0fa;stroke:#d0d7de}.line{stroke:#8c959f;fill:none}"
    ".old{fill:#fbe4e4}.new{fill:#dcf3e2}.reads{fill:#dbe9fb}.writes{fill:#dcf3e2}.owns{fill:#f8ecc9}"
    "@media(prefers-color-scheme:dark){text{fill:#e6e8ea}.quiet{fill:#a9b1ba}.ground{fill:#15181b}"
    ".card{fill:#1d2125;stroke:#3d444d}.head{fill:#22303f;stroke:#3d444d}.line{stroke:#7d8590}"
    ".old{fill:#4a2326}.new{fill:#1c3f2a}.reads{fill:#1c3350}.writes{fill:#1c3f2a}.owns{fill:#463b19}}"
)
LETTER: Final = 7.9
ROW: Final = 24


def pictures() -> dict[str, str]:
    """Both: the name of each file, and what is in it."""
    return {"styles.svg": styles(), "roles.svg": roles()}


def _whole(width: float, height: float, title: str, body: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
        f' role="img"><title>{escape(title)}</title><style>{LOOK}</style>'
        f'<rect class="ground" width="{width:g}" height="{height:g}" rx="8"/>{"".join(body)}</svg>\n'
    )


def _text(x: float, y: float, words: str, kind: str = "", *, middle: bool = False) -> str:
    anchor = ' text-anchor="middle"' if middle else ""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}"{anchor}>{escape(words)}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4"/>'


UPDATE: Final = "UPDATE usr SET fname = 'Ann', age = 31 WHERE idu = 7"
STYLES: Final[Mapping[str, str]] = {
    "row-back": "that the row has changed; its values are read back",
    "field": "each column, former and new value",
    "field-replace": "the same, and the new value replaces all",
    "field-back": "each column; its value is read back",
    "image": "the whole row, before and after",
}
"""The styles, and what a row of the log says."""

LOGGED: Final = ("event_type", "table_key", "column_name", "old_value", "new_value")
WIDTHS: Final = (95, 85, 105, 165, 165)
LEFT: Final = 362


def styles() -> str:
    """The rows of the log that one UPDATE makes, in every style."""
    width, y, body = LEFT + sum(WIDTHS) + 20, 24.0, []
    middles: list[float] = []
    for style, said in STYLES.items():
        rows = logged(style)
        height = 34 + ROW * len(rows) + 26
        body += [_box(LEFT - 10, y, sum(WIDTHS) + 20, height, "card"), _text(LEFT, y + 21, style, "strong")]
        body.append(_text(LEFT + 130, y + 21, said, "quiet"))
        body += _row_of_log(LOGGED, y + 44, names=True)
        for number, row in enumerate(rows):
            body += _row_of_log(row, y + 44 + ROW * (number + 1) - 2)
        middles.append(y + height / 2)
        y += height + 14
    middle = y / 2 - 20
    for end in middles:
        body.append(
            f'<path class="line" d="M{LEFT - 80} {middle:g}C{LEFT - 45} {middle:g} {LEFT - 45} {end:g} {LEFT - 12} {end:g}"/>'
        )
    return _whole(width, y + 6, f"{UPDATE}, in every style", [*body, *_row_of_table(middle)])


def _row_of_table(middle: float) -> Iterator[str]:
    """The row before and after."""
    yield _box(20, middle - 80, LEFT - 100, 160, "head")
    for number, line in enumerate(("UPDATE usr", "  SET fname = 'Ann', age = 31", "  WHERE idu = 7")):
        yield f'<text xml:space="preserve" x="32" y="{middle - 52 + 18 * number:g}">{escape(line)}</text>'
    for number, (name, old, new) in enumerate((("fname", "Anna", "Ann"), ("age", "30", "31"))):
        y = middle + 20 + 28 * number
        yield _text(32, y + 16, name, "quiet") + _box(90, y, 54, 22, "old") + _text(98, y + 16, old)
        yield _text(150, y + 16, "→", "quiet") + _box(170, y, 54, 22, "new") + _text(178, y + 16, new)


def _row_of_log(cells: Sequence[str], y: float, *, names: bool = False) -> Iterator[str]:
    x = float(LEFT)
    for name, cell, width in zip(LOGGED, cells, WIDTHS, strict=True):
        if cell and not names and name in ("old_value", "new_value"):
            yield _box(x - 4, y - 15, len(cell) * LETTER + 8, 20, name.removesuffix("_value"))
        yield _text(x, y, cell, "quiet" if names else "")
        x += width


def logged(style: str) -> list[tuple[str, ...]]:
    """The rows that triggers of a style write for the UPDATE."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE usr (idu integer PRIMARY KEY, fname text, age integer)"))
        connection.execute(text("INSERT INTO usr VALUES (7, 'Anna', 30)"))
    install(engine)
    track(engine, ["usr"], TriggerOptions(style=Style(style)))
    with engine.begin() as connection:
        connection.execute(text(UPDATE))
        rows = connection.execute(text(f"SELECT {', '.join(LOGGED)} FROM event_log ORDER BY record_id")).all()
    engine.dispose()
    return [tuple("" if cell is None else str(cell) for cell in row) for row in rows]


class Role(Struct, frozen=True, kw_only=True):
    """A role, what it is, and what it does by itself, beside what it is granted."""

    name: str
    what: str
    own: Mapping[str, str] = {}


OBJECTS: Final = ("captured tables", "the log", "the registry", "results, journal", "trigger functions")
ROLES: Final = (
    Role(
        name="installer",
        what="makes log and triggers",
        own={"captured tables": "makes triggers", "results, journal": "owns"}
        | dict.fromkeys(("the log", "the registry", "trigger functions"), "owns"),
    ),
    Role(name="writer", what="the application", own={"captured tables": "its own rights"}),
    Role(name="publisher", what="or a reader reads"),
    Role(name="reader", what="for the publisher"),
)
VERBS: Final = {
    "SELECT": "reads",
    "INSERT": "adds",
    "UPDATE (status)": "marks",
    "UPDATE": "changes",
    "DELETE": "deletes",
}
CELL: Final = 168
CELL_HEIGHT: Final = 64
NAMES: Final = 210


def granted() -> dict[tuple[str, str], list[str]]:
    """What `eventlog rights` grants each role on each kind of object, on PostgreSQL."""
    names = LogNames(schema="capture")
    usr = CapturedTable(schema="app", name="usr", owner="app_owner")
    scope = RightsScope(names=names, existing=True, tables=(usr,))
    kinds = {"app.usr": "captured tables", "capture.event_log": "the log"}
    kinds |= {f"capture.{table}": "results, journal" for table in names.beside}
    kinds |= {f"capture.{table}": "the registry" for table in names.owners}
    found: dict[tuple[str, str], list[str]] = {}
    asked = (Roles(writer="writer", publisher="publisher"), Roles(reader="reader"))
    for statement in chain.from_iterable(rights(dialect_of("postgresql"), some, scope) for some in asked):
        grant = re.fullmatch(r"GRANT (.+) ON (?!SCHEMA)(\S+) TO \w+", statement.sql)
        if grant is not None:
            given = [VERBS[right] for right in grant[1].split(", ")]
            former = found.setdefault((statement.part, kinds[grant[2]]), given)
            assert former == given, f"tables of one kind differ: {statement.sql}"
    return found


def roles() -> str:
    """What each role may do with what."""
    width = NAMES + CELL * len(OBJECTS) + 20
    height = 20 + 34 + (CELL_HEIGHT + 8) * len(ROLES) + 6
    body, given = [], granted()
    for number, name in enumerate(OBJECTS):
        body.append(_text(NAMES + CELL * (number + 0.5), 36, name, "strong", middle=True))
    for number, role in enumerate(ROLES):
        y = 54 + (CELL_HEIGHT + 8) * number
        body += [_box(14, y, NAMES - 22, CELL_HEIGHT, "head"), _text(26, y + 26, role.name, "strong")]
        body.append(_text(26, y + 46, role.what, "quiet"))
        for place, name in enumerate(OBJECTS):
            verbs = [role.own[name]] if name in role.own else given.get((role.name, name), [])
            body += _cell(NAMES + CELL * place, y, verbs)
    return _whole(width, height, "What each role may do with what", body)


def _cell(x: float, y: float, verbs: Sequence[str]) -> Iterator[str]:
    kind = "card" if not verbs else "reads" if verbs == ["reads"] else "writes"
    if verbs in (["owns"], ["makes triggers"]):
        kind = "owns"
    yield _box(x + 4, y, CELL - 8, CELL_HEIGHT, kind)
    lines = [", ".join(verbs[:2]), ", ".join(verbs[2:])] if verbs else ["nothing"]
    shown = [line for line in lines if line]
    for number, line in enumerate(shown):
        middle = y + CELL_HEIGHT / 2 + 5 + 20 * number - 10 * (len(shown) - 1)
        yield _text(x + CELL / 2, middle, line, "" if verbs else "quiet", middle=True)
