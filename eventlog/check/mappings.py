"""Points about mappings: whether their tables and columns are there, and are logged as they need it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from sqlalchemy import Engine

from eventlog.check.point import Point, ok, warning
from eventlog.config.build import catalog_of
from eventlog.config.settings import Config
from eventlog.core.outputs import OutputKeys
from eventlog.core.registry import steps_plugin
from eventlog.core.schema import Catalog, Table
from eventlog.policies.bound import Policy
from eventlog.sql.findlog import with_schema
from eventlog.tracked.classes import list_tracked_tables
from eventlog.tracked.options import Style, TriggerOptions, words

READ_BACK = (Style.ROW_BACK, Style.FIELD_BACK)
"""The styles with which all values of an attribute come together."""


def mapping_points(engine: Engine, config: Config) -> Iterator[Point]:
    """Warn of what mappings name and nobody has or logs; no point without a mapping."""
    outputs = [output for output in config.output if output.mapped is not None]
    if not outputs:
        return
    names = config.source.wanted_names
    catalog = catalog_of(engine, names, config)
    with engine.connect() as connection:
        tracked = {
            (table.schema, table.name): found.options
            for table, found in list_tracked_tables(connection, with_schema(connection, names))
        }
    for output in outputs:
        policy = Policy(steps_plugin().of_output(output, config.policy), catalog)
        # A table as it is captured, and as it is behind the policies.
        tables = [(shape.source, shape.table) for shape in policy.shapes if not shape.left_out]
        behind = catalog if policy.catalog is None else policy.catalog
        found = [*_of_output(output, tables or [(table, table) for table in catalog], behind, tracked)]
        yield from found
        if not found:
            yield ok("mapping", f"all is there that {_place(output)} names")


def _place(output: OutputKeys) -> str:
    return f"output.{output.sink}.tables"


def _of_output(
    output: OutputKeys,
    tables: Sequence[tuple[Table, Table]],
    behind: Catalog,
    tracked: Mapping[tuple[str | None, str], TriggerOptions],
) -> Iterator[Point]:
    known = {name.casefold(): pair for pair in tables for name in (pair[1].name, pair[1].whole)}
    for name, columns in output.mapped or ():
        if name.casefold() not in known:
            message = f"{_place(output)} has {name}, and there is no such table"
            yield warning("mapping", message, f"There are: {', '.join(table.name for _, table in tables)}.")
            continue
        source, table = known[name.casefold()]
        options = tracked.get((source.schema, source.name))
        where = f"{_place(output)}.{name}"
        if options is None:
            yield _untracked(where, source, columns)
        else:
            found = [*_of_columns(where, source, table, columns, options, is_together=output.takes_all_values)]
            yield from found
            if not found and (fault := output.find_mapping_fault(table, behind)):
                yield warning(
                    "mapping", f"{where}: {fault}", "Change the mapping: as it is, all rows of this table end E."
                )


def _untracked(where: str, source: Table, columns: Sequence[str]) -> Point:
    """Warn of a table that no trigger of ours logs, with the child tables that the mapping names."""
    own = {attribute.casefold() for attribute in source.loggable}
    dotted = (name.rpartition(".")[0] for name in columns if name.casefold() not in own)
    children = tuple(dict.fromkeys(child for child in dotted if child))
    command = ["eventlog", "track", source.whole, *(["--child", ",".join(children)] if children else [])]
    message = f"{where} maps {source.whole}, which is not tracked: nothing of it is sent"
    return warning("mapping", message, f"Run `{shlex.join(command)}`, unless triggers of others log it.")


def _of_columns(
    where: str,
    source: Table,
    table: Table,
    columns: Sequence[str],
    options: TriggerOptions,
    *,
    is_together: bool,
) -> Iterator[Point]:
    """Warn of columns that a tracked table does not have, or does not log, or not as the receiver needs it."""
    captured = {name.casefold() for name in (*table.key, *table.attributes)}
    there = {attribute.name.casefold(): attribute for attribute in table.loggable.values()}
    if missing := [column for column in columns if column.casefold() not in there]:
        message = f"{where}.columns has {', '.join(missing)}, which {table.whole} does not have"
        mend = f"There are: {', '.join(table.loggable)}."
        if children := [child for column in missing if (child := column.rpartition(".")[0])]:
            asked = replace(options, children=tuple(dict.fromkeys([*options.children, *children])))
            mend = f"If it is of a child table, run `{_track(source, asked)}`. {mend}"
        yield warning("mapping", message, mend)
    unlogged = [column for column in columns if column.casefold() in {*there} - captured]
    if unlogged:
        # Policies may have renamed them.
        attributes = [there[column.casefold()] for column in unlogged]
        names = [f"{one.child}.{one.column.name}" if one.child else one.column.name for one in attributes]
        folded = {name.casefold() for name in names}
        kept = tuple(name for name in options.exclude if name.casefold() not in folded)
        asked = replace(options, exclude=kept, columns=(*options.columns, *names) if options.columns else ())
        message = (
            f"{where}.columns has {', '.join(unlogged)}, which {source.whole} is tracked without: it is never sent"
        )
        mend = f"Run `{_track(source, asked)}`, or leave it out of the mapping."
        yield warning("mapping", message, mend)
    several = [name for column in columns if (name := column.casefold()) in captured and name in there]
    several = [there[name].name for name in several if there[name].multiple]
    if several and is_together and options.style not in READ_BACK:
        message = (
            f"{where}.columns has {', '.join(several)}, of which the receiver takes all values together, and"
            f" {source.whole} is tracked with the style {options.style.value}, which logs each by itself: such rows end E"
        )
        yield warning("mapping", message, f"Run `{_track(source, replace(options, style=Style.ROW_BACK))}`.")


def _track(source: Table, options: TriggerOptions) -> str:
    """Write the command that tracks a table with these options; all are named, so that a DBA sees what is asked for."""
    return f"{shlex.join(['eventlog', 'track', source.whole])} {words(options)} --reset"
