"""The XDS format: changes in, whole `<nds>` documents out, each with up to a batch of changes.

Templates: everything that is the same for all changes of one table, written once.

Elements: the `<add>`, `<modify>` or `<delete>` of one change.

Text is put together directly. A harmless str in a plain field takes one regex test and one
concatenation; everything else goes through the field's writer. A property test proves the result
equal to a tree that lxml builds.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from eventlog.core.errors import ConfigError, ExpressionError, value_shown
from eventlog.core.model import CellOrAbsent, Change, Document, Edit, Edits, ImageEdits, Op, Position, Refusal
from eventlog.core.schema import Catalog, Table
from eventlog.core.seams import FormerNames, OnValue, Writer, Written, encode
from eventlog.core.table_names import read_name
from eventlog.core.who import who_fields
from eventlog.version import VERSION
from eventlog.xds.row_forms import RowForms
from eventlog.xds.values import (
    Field,
    Fields,
    Settings,
    TimeSyntax,
    association_end,
    attribute,
    escape,
    special,
    values,
    write_references,
)

if TYPE_CHECKING:
    from eventlog.xds.nearest import XdsSayer

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'

HEARTBEAT = "0-heartbeat"
"""The id of every heartbeat: it sorts before all others, because none has fewer than twenty digits.
"""


class XdsFormat(Struct, frozen=True, kw_only=True):
    """Writes XDS documents. `schema_name` stands in associations where the table has no schema of
    its own.

    Without `envelope` a document is a bare `<input>`, for receivers that put it into an envelope of
    theirs. `rising` lets ids follow the order of writing where that is not the order of positions. With
    `who` an `<operation-data>` says who is behind a change.
    """

    batch_size: int = 1
    time_syntax: TimeSyntax = 3
    on_value: OnValue = "omit"
    enable_refs: bool = True
    schema_name: str | None = None
    instance: str = "eventlog"
    envelope: bool = True
    rising: bool = False
    who: bool = False

    former_names: ClassVar[FormerNames] = FormerNames.NEW
    suffix: ClassVar[str] = ".xml"
    counts: ClassVar[bool] = False
    """A document says nothing of transactions."""

    def __post_init__(self) -> None:
        """Refuses settings that no document could be written with."""
        if self.batch_size < 1:
            raise ConfigError(f"batch_size is {self.batch_size}; a document holds at least 1 change.")
        if self.time_syntax not in (1, 2, 3):
            raise ConfigError(f"time_syntax is {value_shown(self.time_syntax)}; choose 1, 2 or 3.")
        for name in ("instance", "schema_name"):
            try:
                attribute(getattr(self, name) or "")
            except ExpressionError as error:
                raise ConfigError(f"{name}: {error}.") from error

    def writer(self, catalog: Catalog | None = None) -> Writer:
        """Writes each change as it stands in a document, or says why XDS cannot express it."""
        templates, who = _templates(catalog, self.settings()), self.who

        def write_change(change: Change) -> Written:
            event_id = change.event_id
            text = element(change, change.edits, event_id, templates, who=who)
            return Written(event_id, change.positions, text, change.route)

        def write(changes: Iterable[Change]) -> Iterator[Written | Refusal]:
            for change in changes:
                edits = change.edits
                # An image has all columns, also those that did not change.
                if change.whole and change.op is Op.MODIFY and not (edits := find_changed(edits)):
                    continue
                event_id = change.event_id
                try:
                    text = element(change, edits, event_id, templates, who=who)
                    yield Written(event_id, change.positions, text, change.route)
                except ExpressionError as error:
                    from eventlog.on_value import write_otherwise  # most publishers never see such a value

                    sayer, edited = templates.sayer(change, self.time_syntax), replace(change, edits=edits)
                    refusal, instead = write_otherwise(edited, error, sayer, self.on_value, write_change)
                    yield refusal
                    if instead is not None:
                        yield instead

        return write

    def bind(self, written: Iterable[Written], after: str = "", whole: bool = False) -> Iterator[Document]:
        """Join changes of one place to documents, in order."""
        opening, closing = self.wrapping()
        size = None if whole else self.batch_size
        for batch in _batches(written, size):
            identity = document_id(batch[-1].positions[-1])
            # Rows that waited have lower numbers than what went out since. Where names of files
            # must rise, such an id goes on from the last one instead.
            if self.rising:
                identity = after = rising_id(identity, after)
            covers = dict(map(_event, batch))
            body = "".join([opening, *map(_text, batch), closing]).encode()
            yield Document(id=identity, body=body, covers=covers, route=batch[0].route)

    def encode(
        self, changes: Iterable[Change], catalog: Catalog | None = None, after: str = ""
    ) -> Iterator[Document | Refusal]:
        """Yield documents in order of changes, and refusals as they occur."""
        return encode(self, changes, catalog, after)

    def heartbeat(self) -> Document:
        """Write the document that reports a living publisher."""
        opening, closing = self.wrapping()
        indent = "    " if self.envelope else "  "
        body = f'{opening}{indent}<status level="success" type="heartbeat"/>\n{closing}'
        return Document(id=HEARTBEAT, body=body.encode(), covers={})

    def fragment(self, change: Change, catalog: Catalog | None = None) -> str:
        """Write the element of one change without its document; raise ExpressionError where XDS has none."""
        # Cut out of its document, it begins at the first column.
        templates = _templates(catalog, self.settings(""))
        return element(change, change.edits, change.event_id, templates, who=self.who)

    def settings(self, indent: str | None = None) -> Settings:
        """Return what elements depend on; `indent` is before each, as deep as a document has them if not said."""
        if indent is None:
            # A bare <input> is one level less.
            indent = "    " if self.envelope else "  "
        return Settings(
            time_syntax=self.time_syntax,
            enable_refs=self.enable_refs,
            schema_name=self.schema_name,
            indent=indent,
        )

    def wrapping(self) -> tuple[str, str]:
        """Return the text before and after the elements of a document."""
        if not self.envelope:
            return f"{DECLARATION}<input>\n", "</input>\n"
        return _envelope(self.instance), "  </input>\n</nds>\n"


@cache  # every document of an output has the same
def _envelope(instance: str) -> str:
    return (
        f'{DECLARATION}<nds dtdversion="2.0" ndsversion="8.x">\n  <source>\n'
        f'    <product version="{VERSION}" instance="{attribute(instance)}">eventlog</product>\n'
        "    <contact>eventlog</contact>\n  </source>\n  <input>\n"
    )


_event, _text, _route = attrgetter("event_id", "positions"), attrgetter("text"), attrgetter("route")


def _batches(written: Iterable[Written], size: int | None) -> Iterator[list[Written]]:
    """Yield batches of at most so many changes of one place; without a size, all of them."""
    if size is None:
        # What was one document must stay one, whatever it has.
        if batch := list(written):
            yield batch
        return
    changes = iter(written)
    left: list[Written] = []
    while batch := [*left, *islice(changes, size - len(left))]:
        end = len(batch)
        # A document goes to one place, so a change for another one waits for the next document.
        if len({*map(_route, batch)}) > 1:
            end = next(place for place, change in enumerate(batch) if change.route != batch[0].route)
        left = batch[end:]
        yield batch[:end]


def find_changed(edits: Edits) -> tuple[Edit, ...]:
    """Return the edits of a modify of which the values differ."""
    if isinstance(edits, ImageEdits):
        return edits.changed()
    return tuple([edit for edit in edits if edit.old != edit.new])


def document_id(position: Position) -> str:
    """Make the id of a document from the position of its last change: ids sort as text like positions."""
    return ".".join(map("{:020d}".format, position))


def rising_id(identity: str, after: str) -> str:
    """Return the id, or the next one after an id that it must not precede."""
    # A folder may have files that are not ours: their names are no ids.
    former = _counted(after)
    if former is None or identity > after:
        return identity
    # An id that went on already has a count behind it, which goes on in its turn.
    base, count = former.groups()
    return f"{base}_{int(count or 0) + 1:012d}"


_counted = re.compile(r"(\d{20}(?:\.\d{20})*)(?:_(\d{12}))?", re.ASCII).fullmatch


class Frame(Struct, frozen=True, kw_only=True):
    """The ready pieces of one operation's element: id, key and attributes go between them."""

    opening: str
    to_key: str
    after_key: str
    closing: str


class Template(Struct, frozen=True, kw_only=True):
    """What one table's changes are written with."""

    fields: Fields
    forms: RowForms | None
    """None where what is written in the place of values depends on more than the columns."""
    frames: dict[Op, Frame]


class Templates(dict[tuple[str | None, str], Template]):
    """The templates by schema and table, each made when it is first met."""

    def __init__(self, catalog: Catalog | None, settings: Settings) -> None:
        super().__init__()
        self._catalog = catalog
        self._settings = settings
        self.indent = settings.indent

    def __missing__(self, key: tuple[str | None, str]) -> Template:
        made = self[key] = template(*key, self._catalog, self._settings)
        return made

    def sayer(self, change: Change, syntax: TimeSyntax) -> XdsSayer | None:
        """Describe the values of the change's table; None where its name is inexpressible."""
        with suppress(ExpressionError):
            from eventlog.xds.nearest import XdsSayer

            return XdsSayer(self[change.row.schema, change.row.table].fields, syntax)
        return None


@lru_cache(maxsize=16)  # the same tables come with each batch
def _templates(catalog: Catalog | None, settings: Settings) -> Templates:
    return Templates(catalog, settings)


def template(schema: str | None, name: str, catalog: Catalog | None, settings: Settings) -> Template:
    """Make the template of a table; raise ExpressionError when XML cannot carry a name of it."""
    table: Table | None = None
    if catalog is not None:
        table = catalog.class_named(schema, name)
        # Not its namesake in another schema.
        if (
            table is not None
            and table.schema is not None
            and schema is not None
            and catalog.fold(table.schema) != catalog.fold(schema)
        ):
            table = None
    if table is not None:
        schema, name = table.schema or schema, table.name
    elif schema is None and "." in name:
        # A log that nobody described names its tables with their schema.
        schema, name = read_name(name)
    try:
        class_name = attribute((table and table.class_name) or name)
        end = association_end(name, schema or settings.schema_name)
        after_key = f"{escape(end)}</association>"
    except ExpressionError as error:
        raise ExpressionError(f"the name of table {value_shown(name)}: {error}") from error
    frames: dict[Op, Frame] = {}
    indent = settings.indent
    for op in _WRITERS:
        # An element stands on lines of its own; a delete, which has no attributes, on one.
        to_key, closing = f'">\n{indent}  <association>', f"\n{indent}</{op.value}>\n"
        if op is Op.DELETE:
            to_key, closing = '"><association>', f"</{op.value}>\n"
        opening = f'{indent}<{op.value} class-name="{class_name}" event-id="'
        frames[op] = Frame(opening=opening, to_key=to_key, after_key=after_key, closing=closing)
    fields = Fields(table, catalog, settings)
    return Template(fields=fields, forms=RowForms(fields), frames=frames)


RESET = "<remove-all-values/>"

Attributes = Callable[[Edits, Fields, RowForms | None], str]


def element(change: Change, edits: Edits, event_id: str, templates: Templates, *, who: bool = False) -> str:
    """Write the element of a change with these edits, in lines that end in a newline; raise ExpressionError where
    XDS has none.
    """
    row = change.row
    key, template = row.key, templates[row.schema, row.table]
    frame = template.frames.get(change.op)
    if frame is None:
        problem = "XDS has no word for emptying a table"
        raise ExpressionError(f"{problem}; publish it in another format, or empty it there")
    # Of the log's own changes the key is known always; a stream's table may have none.
    if change.whole and not key:
        raise ExpressionError("its key is unknown, and XDS names every object by its key")
    fields, forms = template.fields, template.forms
    if change.called:
        fields, forms = fields.calling(change.called), None
    attributes = _WRITERS[change.op](edits, fields, forms)
    # Few keys have a character that XML must escape.
    if special(key) is not None:
        try:
            key = escape(key)
        except ExpressionError as error:
            raise ExpressionError(f"the key: {error}") from error
    if who:
        attributes += write_who(change, templates.indent)
    return f"{frame.opening}{event_id}{frame.to_key}{key}{frame.after_key}{attributes}{frame.closing}"


def write_who(change: Change, indent: str) -> str:
    """Write who is behind a change: the last element of its own, which is the receiver's to read."""
    attributes = {name: text for name, text in who_fields(change.who).items() if text is not None}
    if not attributes:
        return ""
    facts = "".join([f' {name}="{attribute(text)}"' for name, text in attributes.items()])
    line = "" if change.op is Op.DELETE else f"\n{indent}  "
    return f"{line}<operation-data><who{facts}/></operation-data>"


def _add_attributes(edits: Edits, fields: Fields, forms: RowForms | None) -> str:
    """Write the `<add-attr>` elements; leave out attributes without a value."""
    news: Sequence[CellOrAbsent]
    # An image need not have its edits made for this.
    if isinstance(edits, ImageEdits):
        names, news = edits.names, edits.after or ()
    else:
        names, news = tuple([edit.column for edit in edits]), [edit.new for edit in edits]
    # Nearly every row has values in the columns in which one before it had some.
    if forms is not None and (row := forms.write(names, news)) is not None:
        return row
    pieces: dict[str, str] = {}
    for column, new in zip(names, news, strict=True):
        # Nothing is said of it, not even its name.
        if new is None:
            pieces[column] = ""
            continue
        field = fields[column]
        # Nearly every value: plain text, in which nothing has to be escaped.
        if type(new) is str and field.odd(new) is None:
            pieces[column] = f"{field.add}{field.opening}{new}</value></add-attr>"
        else:
            written = "".join(values(field, new, column))
            pieces[column] = f"{field.add}{written}</add-attr>" if written else ""
    if len(pieces) == len(edits):
        return "".join(pieces.values())
    # A column of a child table has several edits, which come in one element.
    together: list[str] = []
    for column, several in _together(edits).items():
        field = fields[column]
        if written := "".join(_remaining(several, field)):
            together.append(f"{field.add}{written}</add-attr>")
    return "".join(together)


def _modify_attributes(edits: Edits, fields: Fields, _forms: RowForms | None) -> str:
    """Write the `<modify-attr>` elements; leave out edits that express nothing."""
    pieces: dict[str, str] = {}
    for edit in edits:
        column = edit.column
        field = fields[column]
        old, new, odd = edit.old, edit.new, field.odd
        # Most values are plain text, of which nothing has to be escaped: without two calls.
        if edit.reset:
            gone = RESET
        elif type(old) is str and odd(old) is None:
            gone = f"<remove-value>{field.opening}{old}</value></remove-value>"
        elif type(old) is str and odd is special and old.isprintable():
            gone = f"<remove-value>{field.opening}{write_references(old)}</value></remove-value>"
        else:
            gone = _write_removal(field, edit)
        if type(new) is str and odd(new) is None:
            come = f"<add-value>{field.opening}{new}</value></add-value>"
        elif type(new) is str and odd is special and new.isprintable():
            come = f"<add-value>{field.opening}{write_references(new)}</value></add-value>"
        else:
            come = _write_addition(field, edit)
        pieces[column] = f"{field.modify}{gone}{come}</modify-attr>" if gone or come else ""
    if len(pieces) != len(edits):
        # A column of a child table has several edits, which come in one element.
        pieces.clear()
        for column, several in _together(edits).items():
            field = fields[column]
            written = "".join([_write_removal(field, edit) + _write_addition(field, edit) for edit in several])
            if written:
                pieces[column] = f"{field.modify}{written}</modify-attr>"
    attributes = "".join(pieces.values())
    if not attributes:
        problem = "the modify has no attribute with an old or a new value"
        raise ExpressionError(f"{problem}, so there is nothing to say")
    return attributes


def _write_removal(field: Field, edit: Edit) -> str:
    if edit.reset:
        return RESET
    written = "".join(values(field, edit.old, edit.column))
    return f"<remove-value>{written}</remove-value>" if written else ""


def _write_addition(field: Field, edit: Edit) -> str:
    written = "".join(values(field, edit.new, edit.column))
    return f"<add-value>{written}</add-value>" if written else ""


def _together(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    """Group the edits by attribute, each at the place of its first, in row order."""
    of_column: defaultdict[str, list[Edit]] = defaultdict(list)
    for edit in edits:
        of_column[edit.column].append(edit)
    return of_column


def _remaining(edits: Iterable[Edit], field: Field) -> Iterable[str]:
    """Yield the `<value>` elements of a new object's final state.

    A removal takes back the first equal value listed before it.
    """
    # Places are kept by value, so that a removal does not search: a change may hold 10^5 edits of
    # one attribute.
    listed: dict[int, str] = {}
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    count = 0
    for edit in edits:
        if edit.reset:
            listed.clear()
            places.clear()
        # Values are compared as they are written, for that is what a receiver compares.
        removed = edit.old if isinstance(edit.old, tuple) else (edit.old,)
        for value in removed:
            # One that cannot be written was never listed.
            with suppress(ExpressionError):
                for gone in values(field, value, edit.column):
                    if places[gone]:
                        del listed[places[gone].popleft()]
        for come in values(field, edit.new, edit.column):
            listed[count] = come
            places[come].append(count)
            count += 1
    return listed.values()


def _delete_attributes(_edits: Edits, _fields: Fields, _forms: RowForms | None) -> str:
    """Write nothing: a delete has no attributes."""
    return ""


_WRITERS: dict[Op, Attributes] = {Op.ADD: _add_attributes, Op.MODIFY: _modify_attributes, Op.DELETE: _delete_attributes}
