"""A schema mapping of the identity engine, `<attr-name-map>`, as a policy: the application's names
become the vault's.

    <attr-name-map>
      <class-name>
        <nds-name>User</nds-name> <app-name>indirect.usr</app-name>
      </class-name>
      <attr-name class-name="User">
        <nds-name>Surname</nds-name> <app-name>lname</app-name>
      </attr-name>
    </attr-name-map>

It may stand anywhere in a file, as it does in an exported driver. `class-name` names the vault's
class; an `<attr-name>` without it is for all classes. What is not listed keeps its name.
"""

from __future__ import annotations

from collections.abc import Iterator

from eventlog.core.errors import DataError
from eventlog.core.outputs import refuse_name
from eventlog.init.first import quote_text
from eventlog.policies.steps import Rename
from eventlog.xds.read import XmlElement, line_of, parse


def read_mapping(body: bytes, origin: str) -> tuple[Rename, ...]:
    """Read the steps of a mapping; raise DataError where there is none, or it gives two names to one
    thing.
    """
    maps = list(parse(body, huge=True).iter("attr-name-map"))
    if len(maps) != 1:
        raise DataError(
            f"{origin} holds {len(maps)} <attr-name-map>; a policy is made of one.",
            hint="Cut it out.",
        )
    classes: dict[str, str] = {}
    for vault, table, element in _pairs(maps[0], "class-name"):
        if table in classes:
            raise DataError(
                f"{origin}, line {line_of(element)}: {table} is mapped twice.",
                hint="Keep one of them.",
            )
        classes[table] = vault
    named: dict[str, dict[str, str]] = {}
    for vault, name, element in _pairs(maps[0], "attr-name"):
        owner = element.get("class-name", "")
        tables = [table for table, mapped in classes.items() if mapped == owner]
        if not tables:
            # A class that is not mapped has one name; without a class it is for all tables.
            tables = [owner]
        for table in tables:
            attributes = named.setdefault(table, {})
            attribute = _bare(name, table)
            if attribute in attributes or vault in attributes.values():
                message = f"{origin}, line {line_of(element)}: {name} or {vault} is mapped twice."
                raise DataError(message, hint="Keep one of them: an attribute has one name.")
            attributes[attribute] = vault
    # What is for all tables comes last: the steps of a table have renamed what is its own by then.
    ordered = dict.fromkeys((*classes, *sorted(named, key=lambda table: not table)))
    steps = []
    for table in ordered:
        class_name = classes.get(table, "")
        attributes = {name: vault for name, vault in named.get(table, {}).items() if name != vault}
        # A step that renames nothing is refused, and what the mapping calls alike needs none.
        if class_name or attributes:
            only = (table,) if table else ()
            steps.append(Rename(classes=only, class_name=class_name, attributes=attributes))
    return tuple(steps)


def policy_text(name: str, steps: tuple[Rename, ...]) -> str:
    refuse_name("The policy's name", name)
    lines = ["[[policy]]", f"name = {quote_text(name)}"]
    for step in steps:
        lines += ["", "[[policy.steps]]", 'do = "rename"']
        lines += [f"classes = [{quote_text(name)}]" for name in step.classes]
        if step.class_name:
            lines.append(f"class_name = {quote_text(step.class_name)}")
        if step.attributes:
            lines += ["", "[policy.steps.attributes]"]
            lines += [f"{quote_text(old)} = {quote_text(new)}" for old, new in step.attributes.items()]
    return "\n".join(lines) + "\n"


def _pairs(mapping: XmlElement, tag: str) -> Iterator[tuple[str, str, XmlElement]]:
    """Yield the vault's name and the application's of each element.

    One that lacks a name maps nothing.
    """
    for element in mapping.iterchildren(tag):
        vault, name = [(element.findtext(child) or "").strip() for child in ("nds-name", "app-name")]
        if vault and name:
            yield vault, name, element


def _bare(name: str, table: str) -> str:
    """Return an attribute's name in changes: a column of a parent may be written with its table, and all
    with their schema.
    """
    schema, dot, parent = table.rpartition(".")
    if dot:
        name = name.removeprefix(f"{schema}.")
    return name.removeprefix(f"{parent}.")
