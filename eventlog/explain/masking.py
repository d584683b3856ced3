"""What the page, `eventlog explain` and `purge --hide` do not tell of a log: values that policies
hide from every output.

The log itself has them, for it is what policies are applied to; who may read the log, or a whole
archive, sees them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec.structs import asdict, replace

from eventlog.care.rows import LogRow
from eventlog.config.settings import Config
from eventlog.core.errors import DataError
from eventlog.core.model import Change
from eventlog.core.rules.images import decode_image, encode_image
from eventlog.core.rules.screen import HIDDEN, Identities
from eventlog.core.schema import Catalog
from eventlog.core.tablekey import format_parts, parse
from eventlog.core.view_columns import read_column_name
from eventlog.policies.bound import Policy
from eventlog.policies.settings import steps_of

NAMED: Final = ("table_name", "table_key", "column_name")


class Mask:
    """Hides values of attributes.

    What stands in no catalog is hidden whole: nobody knows what of it a policy hides.
    """

    def __init__(
        self,
        hidden: Mapping[tuple[str | None, str], frozenset[str]],
        catalog: Catalog,
    ) -> None:
        self._hidden = hidden
        self._former = catalog.former
        self._identities = Identities(catalog)
        self._keys: dict[tuple[str | None, str], set[str]] = {}
        for table in catalog:
            table_name = table.schema, table.name
            keys: set[str] = set()
            self._keys[table_name] = keys
            for name, attribute in table.loggable.items():
                column = attribute.column.name
                if attribute.child is None and column in table.key and name in hidden.get(table_name, ()):
                    # A key in a row may spell the column as the attribute, as the database, or as a
                    # view's, with its prefix.
                    keys |= {name, column, read_column_name(column).column}

    def hides(self, table: str | None, column: str | None) -> bool:
        """Return True if values of a row with these names are hidden."""
        try:
            naming = self._identities.naming(table)
            if naming.table is None:
                return True
            hidden = self._hidden.get((naming.table.schema, naming.table.name), frozenset())
            return bool(hidden) and naming.attribute(column) in hidden
        except DataError:
            return True

    def key(self, table: str | None, key: str | None) -> str | None:
        """Hide parts of a key."""
        try:
            known = self._identities.naming(table).table
        except DataError:
            return HIDDEN
        if key is None:
            return None
        if known is None:
            return HIDDEN
        if known.whole_row and self._hidden.get((known.schema, known.name)):
            return key and HIDDEN  # it is made of all that the row holds
        names = {name.casefold() for name in self._keys[known.schema, known.name]}
        if not names:
            return key
        try:
            parts = parse(key).parts
        except DataError:
            return HIDDEN
        # None of its names is one that is hidden, though the table's key has such: nobody knows
        # what of it is.
        if not any(name.casefold() in names for name, _ in parts):
            return HIDDEN
        return format_parts((name, HIDDEN if name.casefold() in names else text) for name, text in parts)

    def row(self, row: LogRow) -> LogRow:
        """Hide parts of a row of the log, in its note as well."""
        return replace(row, **self.texts(asdict(row)))

    def texts(self, row: Mapping[str, Any]) -> dict[str, str | None]:
        """Hide parts of a row's key, values and note."""
        table, key, column, old, new = [row[name] for name in (*NAMED, "old_value", "new_value")]
        note = without(row["note"], self.secrets(table, key, column, (old, new)))
        old, new = (self.value(table, column, text) for text in (old, new))
        return {"table_key": self.key(table, key), "old_value": old, "new_value": new, "note": note}

    def value(self, table: str | None, column: str | None, text: str | None) -> str | None:
        """Mask a value; in an image single values are masked."""
        if text and self.hides(table, column):
            image = None if column else self._image(table, text)
            return HIDDEN if image is None else image[0]
        return text

    def _image(self, table: str | None, text: str) -> tuple[str, list[str]] | None:
        """Mask an image and name the masked columns; None if it is none, or its columns are
        unknown.
        """
        decoded = decode_image(text)
        if decoded is None or self._former is None:
            return None
        number, values = decoded
        names = self._former.image_columns(table, number)
        if names is None or len(names) != len(values):
            return None
        hides = [value is not None and self.hides(table, name) for name, value in zip(names, values, strict=True)]
        shown = [HIDDEN if hidden else value for hidden, value in zip(hides, values, strict=True)]
        secrets = [value for hidden, value in zip(hides, values, strict=True) if hidden and value]
        return encode_image(number, shown), secrets

    def secrets(
        self, table: str | None, key: str | None, column: str | None, values: tuple[str | None, str | None]
    ) -> list[str | None]:
        """List the hidden texts of a row, the longest first, for one may be a part of another."""
        hidden: list[str | None] = []
        if any(values) and self.hides(table, column):
            for text in values:
                image = self._image(table, text) if text and not column else None
                hidden += [text] if image is None else image[1]
        shown = self.key(table, key)
        if key is not None and shown != key:
            hidden.append(key)
            # A key that cannot be read is hidden as a whole already.
            with suppress(DataError):
                hidden += [text for _, text in parse(key).parts if text not in (shown or "")]
        return sorted(hidden, key=lambda text: -len(text or ""))

    def change(self, change: Change) -> Change | None:
        """Drop the hidden attributes of a change.

        Return None where its object is called by one of them.
        """
        table_name = change.row.schema, change.row.table
        if self._keys.get(table_name, True):
            return None
        hidden = self._hidden.get(table_name, frozenset())
        return replace(change, edits=tuple([edit for edit in change.edits if edit.column not in hidden]))

    def names(self, change: Change) -> frozenset[str]:
        """Name the hidden attributes of a change, as the source does."""
        return self._hidden.get((change.row.schema, change.row.table), frozenset())


def mask_of(config: Config, catalog: Catalog | None) -> Mask | None:
    """Make the mask of a configuration; None where every value goes to some output."""
    all_steps = [steps_of(output, config.policy) for output in config.output]
    if catalog is None or not all_steps or not all(all_steps):
        return None
    policies = [Policy(steps, catalog) for steps in all_steps]
    hidden = {}
    for table in catalog:
        table_name = table.schema, table.name
        # What one output gets is no secret of the log's.
        hidden[table_name] = frozenset.intersection(
            *[policy.hidden.get(table_name, frozenset()) for policy in policies]
        )
    if not any(hidden.values()):
        return None
    return Mask(hidden, catalog)


def without(text: str | None, secrets: list[str | None]) -> str | None:
    for secret in secrets:
        if text and secret:
            text = text.replace(secret, HIDDEN)
    return text
