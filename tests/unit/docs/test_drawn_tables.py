"""The drawn tables: what stands beside a picture as text is what triggers wrote and what roles were granted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

from docs import drawn_tables
from eventlog.tracked.options import Style

HOW_TO = Path(drawn_tables.__file__).parent / "how-to"


def texts(picture: str) -> list[str]:
    return [str(element.text) for element in etree.fromstring(picture.encode()).iter("{*}text")]


def test_the_rows_of_each_style_are_those_of_its_triggers() -> None:
    assert [style.value for style in Style] == list(drawn_tables.STYLES), "a new style is drawn too"
    lines = (HOW_TO / "tracking.md").read_text(encoding="utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if line.startswith("| style |"))
    told: dict[str, list[tuple[str, ...]]] = {}
    name = ""
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        called, *cells = (cell.strip().strip("`") for cell in line.strip("|").split("|"))
        name = called or name
        # The key is written once in the table.
        told.setdefault(name, []).append((cells[0], "idu=7", *cells[2:]))
    assert told == {style: drawn_tables.logged(style) for style in drawn_tables.STYLES}
    shown = texts(drawn_tables.styles())
    for rows in told.values():
        assert {cell for row in rows for cell in row if cell} <= set(shown)


def test_who_writes_a_captured_table_may_do_nothing_with_the_log() -> None:
    granted = drawn_tables.granted()
    assert {role for role, _ in granted} == {"publisher", "reader"}
    assert granted["publisher", "the log"] == ["reads", "marks", "deletes"]
    assert granted["publisher", "the registry"] == ["reads"]
    assert granted["reader", "captured tables"] == ["reads"]
    shown = texts(drawn_tables.roles())
    assert shown.count("nothing") == 4 + 1 + 4
    table = re.findall(r"^\| (\w+)", (HOW_TO / "least-rights.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert table[1:5] == [role.name for role in drawn_tables.ROLES]


@pytest.mark.parametrize("name", ["styles.svg", "roles.svg"])
def test_no_text_leaves_its_picture(name: str) -> None:
    root = etree.fromstring(drawn_tables.pictures()[name].encode())
    width = float(root.get("width") or 0)
    for element in root.iter("{*}text"):
        half = len(element.text or "") * drawn_tables.LETTER / (2 if element.get("text-anchor") else 1)
        assert float(element.get("x") or 0) + half <= width, element.text
    assert "prefers-color-scheme:dark" in drawn_tables.pictures()[name]
