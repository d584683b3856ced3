"""Whether a folder, or a place in an object store, can be used by an output; nothing is left behind
there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from eventlog.core.errors import ConfigError, SinkError
from eventlog.core.plugins import Finding
from eventlog.sinks.store.address import StoreSettings, is_address

LEAST_FREE_BYTES: Final = 1 << 20
"""With less than this no document of any size gets written."""


def target_findings(path: str, store: StoreSettings) -> Iterator[Finding]:
    """Yield whether a folder or a place in an object store can be used."""
    if is_address(path):
        from eventlog.sinks.store.objects import objects_at
        from eventlog.sinks.store.plans import POSITION

        # Reading asks for the bucket and for the credentials; writing would leave something there.
        objects_at(path, store, "output.path").read(POSITION)
        sentence = f"{path} can be read; whether it can be written shows the publisher's start"
        yield Finding(message=sentence)
        return
    folder = Path(path)
    # The folder, or the first above it that is there: in that it would be made.
    above = (folder.absolute(), *folder.absolute().parents)
    existing = next(ancestor for ancestor in above if os.path.lexists(ancestor))
    if not existing.is_dir():
        message = f"{folder} cannot be a folder: {existing} is something else."
        raise ConfigError(message, hint="Change the output's `path`.")
    if not os.access(existing, os.W_OK | os.X_OK):
        message = f"{existing} cannot be written by this user."
        raise ConfigError(message, hint="Change its owner or mode, or the output's `path`.")
    if shutil.disk_usage(existing).free < LEAST_FREE_BYTES:
        message = f"The disk of {existing} is full."
        raise SinkError(message, hint="Free some space, or change the output's `path`.")
    if existing != folder.absolute():
        mend = "The publisher makes it; is a volume not mounted?"
        yield Finding(message=f"The folder {folder} does not exist.", mend=mend)
    else:
        yield Finding(message=f"the folder {folder} can be written")
