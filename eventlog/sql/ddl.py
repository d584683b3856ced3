"""What tables, triggers and scripts may be in a database."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Ddl(Struct, frozen=True, kw_only=True, eq=False):
    """What one database takes of tables and triggers, and how scripts of them are written."""

    names_storage: bool = False
    """A statement that makes a table names its tablespace, and how many rows a partition has."""
    cascades_fire_triggers: bool = True
    """Rows that a foreign key deletes or changes fire the triggers of their table."""
    hides_virtual_columns: bool = False
    """A trigger cannot read a column that is computed when read; its formula stands for it."""
    qualified_in_triggers: bool = True
    """A trigger's text may name the schema of the tables it writes to."""
    bare_beside_triggers: bool = False
    """A name without a schema means a table beside the trigger, whatever schema its writers are in."""
    triggers_in_schemas: bool = False
    """A trigger's own name may have a schema; elsewhere it goes with its table."""
    procedural_triggers: bool = False
    """One trigger stands for all events and is replaced in place; its conditions hold no queries,
    so those are asked before; and it must not look at a table that the same statement changes."""
    unseen_types: frozenset[str] = frozenset()
    """Types of columns whose values a trigger cannot read; they are read back."""
    unseen_lengths: Mapping[str, int] = {}
    """Types whose values a trigger can read up to a length."""
    next_number: str | None = None
    """The next number of a sequence, where a log may have one instead of an identity."""
    trigger_bytes: int | None = None
    """How long a trigger's text may be."""
    long_text: str | None = None
    """Makes a text of any length from a string, where strings may not be as long."""
    line_characters: int | None = None
    """How long a line of a script may be."""
    row_names: tuple[str, str] = ("OLD", "NEW")
    """What a row trigger calls the row before and after."""
    script_end: str = ";"
    """Ends a statement in a script, also one that has semicolons inside."""
    partial_indexes: bool = False
    waiting_number: str | None = None
    """The number of a row that waits, else NULL: what is indexed without partial indexes."""
    log_has_key: bool = True
    """The log we make has a primary key; without it only the identity makes numbers unique."""
    transactional_ddl: bool = False
    begin_ddl: str | None = None
    """Opens a transaction where the driver would let DDL run outside of one."""
    ddl_limits: tuple[str, str] = ("", "")
    """Bounds the waiting for locks of what follows, and takes that back where no end does."""
    script_commit: str = ""
    """Ends a script whose last statements are not on disk yet."""
    script_head: str = ""
    """Begins every script: it ends with the first error, and waits for locks as we do."""
    script_start: str = ""
    """Begins a script, where the database's shell must be told how its statements end."""
    checks_identity: bool = True
    """A CHECK may speak of a column that numbers itself."""
    fixed_types: frozenset[str] = frozenset()
    """Types whose text no session's settings change; others need settings of the trigger's own."""
