"""What was probably meant where a configuration is no TOML: said beside the parser's words."""

from __future__ import annotations

import re
from typing import Final

_place = re.compile(r"\(at line (\d+), column \d+\)")
_key: Final = r"[\w.-]+"
_yaml = re.compile(rf"\s*({_key})\s*:(?:\s|$)").match
_json = re.compile(r"\s*[{{]").match
_truth = re.compile(rf"\s*({_key})\s*=\s*(true|false|yes|no|on|off)\s*(?:#.*)?$", re.IGNORECASE).match
_bare = re.compile(rf"\s*({_key})\s*=\s*[^\s\"'\[{{0-9+-]").match
_equal = re.compile(rf"\s*{_key}\s*==").match
_hour = re.compile(r"[^\"'#]*[=\[,]\s*\d\d?:\d\d").match
_zeros = re.compile(rf"\s*({_key})\s*=\s*[+-]?0+(\d+)\s*(?:#.*)?$").match
_grouped = re.compile(rf"\s*({_key})\s*=\s*(\d{{1,3}}(?:[, .]\d{{3}})+)\s*(?:#.*)?$").match
_unit = re.compile(rf"\s*({_key})\s*=\s*(\d+)\s*[a-zA-Z%]+\s*(?:#.*)?$").match
_comment = re.compile(r"\s*(?://|--|;)|[^#]*\s//").match
_round = re.compile("[\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb]")


_listed = re.compile(r"\s*\[\[\s*([^\]]+?)\s*\]\]")

_SAID: Final = {
    "Unclosed array": "In a list there are commas between the values, and a bracket at its end.",
    "at the end of a table": "A section is written as [section] on a line of its own.",
    "Illegal character '\\n'": "A quote that opens in this line is not closed in it.",
    "after a statement": "A line has one key and its value, and nothing behind it: no comma, no semicolon.",
}
"""What the parser's words mean to somebody who writes a configuration."""


def explain_mistake(text: str, problem: str) -> str | None:
    """Explain what is wrong in the line of which the parser speaks; no value of it is repeated."""
    found = _place.search(problem)
    lines = text.splitlines()
    number = int(found[1]) if found else len(lines)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    if _json(text):
        return "This looks like JSON: TOML has [section] on a line of its own, and key = value."
    if _round.search(line):
        return 'Quotes are straight in TOML: "…".'
    if key := _yaml(line):
        return f'TOML joins a key and its value by =, as in {key[1]} = "…", and a section is written as [section].'
    if "overwrite a value" in problem and (section := _listed.match(line)):
        return f"[{section[1]}] above and [[{section[1]}]] here are two ways to write it: outputs, policies and steps have [[…]]."
    if "overwrite a value" in problem:
        key_twice = line.partition("=")[0].strip()
        return f"{key_twice} is there twice in its section."
    if _comment(line):
        return "A comment begins with # in TOML."
    if "declare" in problem and "twice" in problem:
        return f"{line.strip()} is there twice: write its keys below the first one."
    if truth := _truth(line):
        return f"Write {truth[1]} = true or {truth[1]} = false, in small letters."
    if "\\" in line:
        return "A backslash in double quotes means something: write a path in single quotes, as in 'C:\\out'."
    if _equal(line):
        return "A key and its value are joined by one =."
    if number_meant := _explain_number(line):
        return number_meant
    if bare := _bare(line):
        return f'Write a text in quotes: {bare[1]} = "…".'
    if said := next((said for words, said in _SAID.items() if words in problem), None):
        return said
    return "A section is written as [section], and an output as [[output]]." if line.lstrip()[:1] == "[" else None


def _explain_number(line: str) -> str | None:
    """Explain a number that is written as people write it, and TOML does not."""
    if _hour(line):
        return 'Write a time of day in quotes, as in ["02:00", "14:30"].'
    if zeros := _zeros(line):
        return f"A number has no zeros in front: {zeros[1]} = {zeros[2]}."
    if grouped := _grouped(line):
        digits = re.sub(r"\D", "", grouped[2])
        return f"A number has nothing between its digits: {grouped[1]} = {digits}."
    if unit := _unit(line):
        return f"Write a number without its unit: {unit[1]} = {unit[2]}."
    return None
