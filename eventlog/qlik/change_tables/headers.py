"""Header columns: their names and types, and what stands in them for a change.

Numbers of transactions are written as the little-endian bytes of 128 bits in hex, as change tables have them; messages
write the same bytes from the other end.
"""

from __future__ import annotations

from typing import Final

from eventlog.core.model import Change, Op, Transaction, written
from eventlog.qlik.change_tables.settings import ChangeTableSettings

TYPES: Final = {
    "change_seq": "varchar(35)",
    "change_oper": "varchar(1)",
    "change_mask": "varbinary(128)",
    "stream_position": "varchar(128)",
    "operation": "varchar(12)",
    "transaction_id": "varchar(32)",
    "timestamp": "timestamp",
}
HEX_MASK: Final = "varchar(256)"
PARTITION_NAME: Final = "partition_name"
PARTITION_TYPE: Final = "varchar(31)"
BEFORE: Final = ("B", "BEFOREIMAGE")
OPERATIONS: Final = {
    Op.ADD: ("I", "INSERT"),
    Op.MODIFY: ("U", "UPDATE"),
    Op.DELETE: ("D", "DELETE"),
    Op.TRUNCATE: ("T", "TRUNCATE"),
}
"""change_oper and operation. That of a TRUNCATE is documented nowhere; T is a letter that no reader takes for a row."""
POSITION_LIMIT: Final = 128
_ALL_BITS: Final = (1 << 128) - 1


def header_columns(settings: ChangeTableSettings) -> list[tuple[str, str]]:
    """Names and types of the header columns that are there, in order."""
    types = TYPES | ({"change_mask": HEX_MASK} if settings.mask == "hex" else {})
    found = [(f"{settings.prefix}{name}", types[name]) for name in settings.present]
    if settings.partition_every:
        found.append((f"{settings.prefix}{PARTITION_NAME}", PARTITION_TYPE))
    return found


def transaction_id(transaction: Transaction | None) -> str:
    """32 hexadecimal digits; empty where nobody knows the transaction."""
    if transaction is None:
        return ""
    return (transaction.id & _ALL_BITS).to_bytes(16, "little").hex().upper()


def stream_position(change: Change) -> str:
    """Where the source's own log has the change, in the source's writing; never to be compared."""
    return (change.stream or written(change.positions[-1]))[:POSITION_LIMIT]
