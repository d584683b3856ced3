"""Signatures of Standard Webhooks: the id, the time and the body of a request, under each secret
that a receiver may know.
"""

from __future__ import annotations

import binascii
import hmac
from collections.abc import Iterable


def signatures(keys: Iterable[bytes], message_id: str, timestamp: int, body: bytes) -> str:
    """The header `webhook-signature`: one signature for each key, with blanks between them."""
    content = b"%s.%d.%s" % (message_id.encode(), timestamp, body)
    made = [hmac.digest(key, content, "sha256") for key in keys]
    encoded = [binascii.b2a_base64(signature, newline=False).decode() for signature in made]
    # v1 is HMAC with SHA-256; a receiver takes any that fits.
    return " ".join([f"v1,{text}" for text in encoded])


def message_id(plan: str, document: str) -> str:
    """The header `webhook-id`: the same whenever a document comes again, another where somebody has
    requeued its rows.
    """
    # A dot would end it where it is signed.
    return f"{plan}_{document}".strip("_").replace(".", "_")
