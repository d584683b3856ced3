"""Signatures of Standard Webhooks: the id, the time and the body of a request, under each secret
that a receiver may know.
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Iterable


def signatures(keys: Iterable[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """Return the header `webhook-signature`: one signature a key, separated by blanks."""
    content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    made = [hmac.digest(key, content, "sha256") for key in keys]
    encoded = [binascii.b2a_base64(signature, newline=False).decode() for signature in made]
    # v1 is HMAC with SHA-256; a receiver takes any that fits.
    return " ".join([f"v1,{text}" for text in encoded])


def message_id(plan: str, document: str) -> str:
    """Return the header `webhook-id`: the same for a repeated document, another after a requeue."""
    # A dot would end it where it is signed.
    return f"{plan}_{document}".strip("_").replace(".", "_")
