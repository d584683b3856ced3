"""Addresses of object stores as they stand in a configuration or on the command line; nothing is
loaded to know one.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from msgspec import Struct

from eventlog.core.errors import ConfigError
from eventlog.core.secrets import visible
from eventlog.sinks.plans import Plans

SCHEMES: Final = ("s3", "s3a", "gs", "az", "abfs", "abfss")
MODULE: Final = "obstore"

_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://").match
_one_slash = re.compile(rf"(({'|'.join(SCHEMES)}):/)(?!/)").match
_bucket = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#]+(/[^?#]*)?").fullmatch


class StoreSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where an object store is, if not where its cloud is; who may write there says the
    environment.
    """

    endpoint: str = ""
    region: str = ""


def is_address(target: str) -> bool:
    """Return True if the target is an address rather than a folder."""
    return _scheme(target) is not None


def refuse_unknown(what: str, target: str) -> None:
    """Raise ConfigError for an address of no object store; `what` names the setting."""
    if not target:
        raise ConfigError(f"{what} is empty.", hint="Name a folder; this one is a point.")
    if "\0" in target:
        raise ConfigError(f"{what} is {visible(target)}, and no path holds a NUL.", hint="Leave it out.")
    scheme = _scheme(target)
    if scheme is None:
        if slashes := _one_slash(target):
            hint = f"Write {slashes[2]}://BUCKET/PREFIX, or ./{slashes[1]}… if it is a folder."
            raise ConfigError(f"{what} is {visible(target)}, with one slash behind {slashes[2]}:.", hint=hint)
        if target.startswith("~") or (target.startswith("$") and not target.startswith("${")):
            hint = "Write the whole path, or a variable as ${HOME}."
            raise ConfigError(
                f"{what} is {visible(target)}, and only a shell knows what {target[0]} stands for.", hint=hint
            )
        return
    name = scheme[1]
    if name not in SCHEMES:
        hint = "It is a folder, or s3://BUCKET/PREFIX, gs://…, az://… or abfs://…."
        problem = f"{what} is {visible(target)}, and nothing is written to {name}://."
        raise ConfigError(problem, hint=hint)
    # abfs has its account behind an @; elsewhere a login stands there.
    if _bucket(target) is None or ("@" in target and not name.startswith("abfs")):
        hint = "Credentials come from the environment;"
        hint = f"{hint} an address has no settings after a question mark."
        problem = f"{what} is no address of a bucket and a prefix, as s3://BUCKET/PREFIX."
        raise ConfigError(problem, hint=hint)


def target_of(path: str, settings: StoreSettings, *, ordered: bool) -> Path | Plans:
    """Open an output's folder or place in a store.

    `ordered`: files of one plan get their names in order.
    """
    if not is_address(path):
        return Path(path)
    from eventlog.sinks.store.objects import objects_at
    from eventlog.sinks.store.plans import StoredPlans

    return StoredPlans(objects_at(path, settings, "output.path"), ordered=ordered)
