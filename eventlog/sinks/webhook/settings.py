"""Where webhooks go and with what they are signed: the keys of an output whose sink is webhook."""

from __future__ import annotations

import binascii
from typing import Final, Literal
from urllib.parse import urlsplit

from eventlog.core.errors import ConfigError
from eventlog.core.places import PlaceTemplate
from eventlog.sinks.http.oauth import OauthSettings

SECRET_PREFIX: Final = "whsec_"  # noqa: S105  # how secrets begin
LEAST_SECRET_BYTES: Final = 24
MOST_SECRET_BYTES: Final = 64
URL_FIELDS: Final = ("schema", "table")


class WebhookSettings(OauthSettings, frozen=True, kw_only=True):
    """Where events are POSTed. `url` may have {schema} and {table} in parts of its path. With each
    of the `secrets` every request is signed, so that a receiver may learn a new one before the old
    one goes.
    """

    secrets: tuple[str, ...]
    compression: Literal["none", "gzip"] = "none"

    def __post_init__(self) -> None:
        """Refuses what no request could be made with; a secret never gets into the message."""
        OauthSettings.__post_init__(self)
        if not self.secrets:
            problem = "output.secrets is empty"
            raise ConfigError(f"{problem}; requests are signed with one secret or several.")
        for number, secret in enumerate(self.secrets):
            if secret_bytes(secret) is None:
                form = f"whsec_ and {LEAST_SECRET_BYTES} to {MOST_SECRET_BYTES} bytes in Base64"
                raise ConfigError(f"output.secrets[{number}] is no secret of Standard Webhooks: {form}.")
        # A value in the host or the query would send what is signed elsewhere.
        beside = urlsplit(self.url)._replace(path="").geturl()
        if "{" in beside or "}" in beside:
            problem = "output.url has a brace outside of its path"
            raise ConfigError(f"{problem}; {{table}} is a part of the path.")
        if self.address is not None and not self.address.fields:
            problem = "output.url has braces, and no field in them"
            raise ConfigError(f"{problem}; it knows {{schema}} and {{table}}.")

    @property
    def base(self) -> str:
        """Return the address up to the first path segment with a field."""
        parts = urlsplit(self.url)
        return parts._replace(path=_split(parts.path)[0]).geturl()

    @property
    def address(self) -> PlaceTemplate | None:
        """Return the template of the rest, one address a table; None if all share one address."""
        below = _split(urlsplit(self.url).path)[1]
        if not below:
            return None
        return PlaceTemplate(below, "output.url", URL_FIELDS)


def secret_bytes(secret: str) -> bytes | None:
    """Decode the key in a secret; None if malformed."""
    if not secret.startswith(SECRET_PREFIX):
        return None
    try:
        key = binascii.a2b_base64(secret.removeprefix(SECRET_PREFIX), strict_mode=True)
    except ValueError:
        return None
    return key if LEAST_SECRET_BYTES <= len(key) <= MOST_SECRET_BYTES else None


def _split(path: str) -> tuple[str, str]:
    """Split a path before the first segment with a brace."""
    parts = path.split("/")
    first = len(parts)
    for index, part in enumerate(parts):
        if "{" in part or "}" in part:
            first = index
            break
    return "/".join(parts[:first]), "/".join(parts[first:])
