"""Elements: the `<add>`, `<modify>` or `<delete>` of one change.

Text is put together directly. A harmless str in a plain field takes one regex test and one concatenation; everything
else goes through the field's writer. A property test proves the result equal to a tree that lxml builds.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress

from eventlog.core.errors import ExpressionError
from eventlog.core.model import Change, Edit, Op
from eventlog.xds.fields import Field, Fields, values
from eventlog.xds.templates import Templates
from eventlog.xds.text import escaped, special

RESET = "<remove-all-values/>"

Attributes = Callable[[Sequence[Edit], Fields], str]


def element(change: Change, event_id: str, templates: Templates) -> str:
    """The element, in lines that end in a newline; ExpressionError when XDS cannot express the change."""
    schema, table, key = change.row.schema, change.row.table, change.row.key
    template = templates[schema, table]
    frame = template.frames.get(change.op)
    if frame is None:
        raise ExpressionError("XDS has no word for emptying a table; publish it in another format, or empty it there")
    if change.whole and not key:
        raise ExpressionError("nobody said what its key is, and XDS names every object by its key")
    attributes = _WRITERS[change.op](change.edits, template.fields)
    if special(key) is not None:
        key = _key(key)
    return f"{frame.opening}{event_id}{frame.to_key}{key}{frame.after_key}{attributes}{frame.closing}"


def _key(key: str) -> str:
    try:
        return escaped(key)
    except ExpressionError as error:
        raise ExpressionError(f"the key: {error}") from error


def _added(edits: Sequence[Edit], fields: Fields) -> str:
    """The `<add-attr>` elements; an attribute without a value is left out."""
    pieces: dict[str, str] = {}
    for edit in edits:
        column = edit.column
        field = fields[column]
        new = edit.new
        if type(new) is str and field.odd(new) is None:
            pieces[column] = f"{field.add}{field.opening}{new}</value></add-attr>"
        else:
            written = "".join(values(field, new, column))
            pieces[column] = f"{field.add}{written}</add-attr>" if written else ""
    if len(pieces) == len(edits):
        return "".join(pieces.values())
    return "".join(_added_together(edits, fields))


def _modified(edits: Sequence[Edit], fields: Fields) -> str:
    """The `<modify-attr>` elements; an edit that expresses nothing is left out."""
    pieces: dict[str, str] = {}
    for edit in edits:
        column = edit.column
        field = fields[column]
        old, new, odd = edit.old, edit.new, field.odd
        value = field.opening  # what _gone and _come say, without two calls: most modifies are of these kinds
        if type(new) is not str or odd(new) is not None:
            written = _gone(edit, field) + _come(edit, field)
        elif edit.reset:
            written = f"{RESET}<add-value>{value}{new}</value></add-value>"
        elif type(old) is str and odd(old) is None:
            written = f"<remove-value>{value}{old}</value></remove-value><add-value>{value}{new}</value></add-value>"
        else:
            written = _gone(edit, field) + _come(edit, field)
        pieces[column] = f"{field.modify}{written}</modify-attr>" if written else ""
    found = "".join(pieces.values() if len(pieces) == len(edits) else _modified_together(edits, fields))
    if not found:
        raise ExpressionError("the modify has no attribute with an old or a new value, so there is nothing to say")
    return found


def _gone(edit: Edit, field: Field) -> str:
    if edit.reset:
        return RESET
    old = edit.old
    if type(old) is str and field.odd(old) is None:
        return f"<remove-value>{field.opening}{old}</value></remove-value>"
    written = "".join(values(field, old, edit.column))
    return f"<remove-value>{written}</remove-value>" if written else ""


def _come(edit: Edit, field: Field) -> str:
    new = edit.new
    if type(new) is str and field.odd(new) is None:
        return f"<add-value>{field.opening}{new}</value></add-value>"
    written = "".join(values(field, new, edit.column))
    return f"<add-value>{written}</add-value>" if written else ""


def _together(edits: Iterable[Edit]) -> dict[str, list[Edit]]:
    """The edits of each attribute, at the place of its first and in row order: a child table's column has many."""
    found: defaultdict[str, list[Edit]] = defaultdict(list)
    for edit in edits:
        found[edit.column].append(edit)
    return found


def _modified_together(edits: Sequence[Edit], fields: Fields) -> Iterator[str]:
    for column, several in _together(edits).items():
        field = fields[column]
        written = "".join([_gone(edit, field) + _come(edit, field) for edit in several])
        if written:
            yield f"{field.modify}{written}</modify-attr>"


def _added_together(edits: Sequence[Edit], fields: Fields) -> Iterator[str]:
    for column, several in _together(edits).items():
        field = fields[column]
        written = "".join(_remaining(several, field))
        if written:
            yield f"{field.add}{written}</add-attr>"


def _remaining(edits: Iterable[Edit], field: Field) -> Iterable[str]:
    """The `<value>` elements that a new object ends with: a removal takes back the first equal value listed before it.

    Places are kept by value, so that a removal does not search: a change may hold 10^5 edits of one attribute.
    """
    listed: dict[int, str] = {}
    places: defaultdict[str, deque[int]] = defaultdict(deque)
    count = 0
    for edit in edits:
        if edit.reset:
            listed.clear()
            places.clear()
        for gone in _taken_back(edit, field):
            if places[gone]:
                del listed[places[gone].popleft()]
        for come in values(field, edit.new, edit.column):
            listed[count] = come
            places[come].append(count)
            count += 1
    return listed.values()


def _taken_back(edit: Edit, field: Field) -> Iterator[str]:
    """The values that an edit of a new object removes; one that cannot be written was never listed."""
    for value in edit.old if isinstance(edit.old, tuple) else (edit.old,):
        with suppress(ExpressionError):
            yield from values(field, value, edit.column)


def _deleted(_edits: Sequence[Edit], _fields: Fields) -> str:
    """A delete has no attributes."""
    return ""


_WRITERS: dict[Op, Attributes] = {Op.ADD: _added, Op.MODIFY: _modified, Op.DELETE: _deleted}
