"""What a file is that somebody takes for a text: said by its first bytes."""

from __future__ import annotations

import codecs
from typing import Final

_BEGINNINGS: Final = {
    # UTF-32 first: its mark begins as that of UTF-16 does.
    codecs.BOM_UTF32_LE: "is in UTF-32; save it as UTF-8",
    codecs.BOM_UTF32_BE: "is in UTF-32; save it as UTF-8",
    codecs.BOM_UTF16_LE: "is in UTF-16; save it as UTF-8",
    codecs.BOM_UTF16_BE: "is in UTF-16; save it as UTF-8",
    b"PK\x03\x04": "is a ZIP archive or a spreadsheet and no text",
    b"\x1f\x8b": "is packed by gzip; unpack it, or end its name with .gz where that is read",
    b"SQLite format 3\0": "is a SQLite database and no text",
    b"PAR1": "is a Parquet file and no text",
}


def find_form(data: bytes) -> str | None:
    """Recognize a file by its beginning, if it is not UTF-8 for a known reason."""
    for beginning, form in _BEGINNINGS.items():
        if data.startswith(beginning):
            return form
    if b"\0" not in data:
        return None
    # Without a mark, letters of UTF-16 have a zero each.
    plain = data[:200]
    if plain[1::2].count(0) > len(plain) // 3 or plain[::2].count(0) > len(plain) // 3:
        return "is in UTF-16; save it as UTF-8"
    return "holds zero bytes and is no text"
