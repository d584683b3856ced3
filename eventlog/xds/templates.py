"""Templates: everything that is the same for all changes of one table, written once."""

from __future__ import annotations

from msgspec import Struct

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Op
from eventlog.core.schema import Catalog, Table
from eventlog.xds.fields import Fields, Settings, association_end
from eventlog.xds.text import attribute, escaped, shown


class Frame(Struct, frozen=True, kw_only=True):
    """The ready pieces of one operation's element: event-id, canonical key and attributes go between them."""

    opening: str
    to_key: str
    after_key: str
    closing: str


class Template(Struct, frozen=True, kw_only=True):
    """What one table's changes are written with."""

    fields: Fields
    frames: dict[Op, Frame]


class Templates(dict[tuple[str | None, str], Template]):
    """The templates by schema and table, each made when it is first met."""

    def __init__(self, catalog: Catalog | None, settings: Settings) -> None:
        super().__init__()
        self._catalog = catalog
        self._settings = settings

    def __missing__(self, place: tuple[str | None, str]) -> Template:
        made = self[place] = template(*place, self._catalog, self._settings)
        return made


def template(schema: str | None, name: str, catalog: Catalog | None, settings: Settings) -> Template:
    """The template of a table; ExpressionError when a name of it has a character that XML cannot carry."""
    table = _described(schema, name, catalog) if catalog is not None else None
    if table is not None:
        schema, name = table.schema or schema, table.name
    elif schema is None and "." in name:
        schema, _, name = name.rpartition(".")  # a log that nobody described names its tables with their schema
    try:
        class_name = attribute((table and table.class_name) or name)
        after_key = escaped(association_end(name, schema or settings.schema_name)) + "</association>"
    except ExpressionError as error:
        raise ExpressionError(f"the name of table {shown(name)}: {error}") from error
    frames: dict[Op, Frame] = {
        op: _frame(op, class_name, after_key, settings.indent) for op in Op if op is not Op.TRUNCATE
    }
    return Template(fields=Fields(table, catalog, settings), frames=frames)


def _described(schema: str | None, name: str, catalog: Catalog) -> Table | None:
    """The table as the catalog describes it, and not its namesake in another schema."""
    table = catalog.class_named(schema, name)
    if table is None or table.schema is None or schema is None:
        return table
    return table if catalog.fold(table.schema) == catalog.fold(schema) else None


def _frame(op: Op, class_name: str, after_key: str, indent: str) -> Frame:
    """An element on lines of its own; a delete, which has no attributes, on one."""
    short = op is Op.DELETE
    return Frame(
        opening=f'{indent}<{op.value} class-name="{class_name}" event-id="',
        to_key='"><association>' if short else f'">\n{indent}  <association>',
        after_key=after_key,
        closing=f"</{op.value}>\n" if short else f"\n{indent}</{op.value}>\n",
    )
