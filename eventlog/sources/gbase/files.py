"""Files of captured bytes: binary ones as they are, and texts of hexadecimal digits, one record or read a line."""

from __future__ import annotations

import binascii
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from eventlog.core.errors import DataError, SourceError, shortened

CHUNK: Final = 1 << 18
"""Bytes of a binary file that are read at once."""
_MARKS: Final = ("valid", "tail")


def chunks_of(path: Path) -> Iterator[bytes]:
    """The bytes of a file, or of all files of a folder in the order of their names; `.hex` files are texts."""
    for file in files_of(path):
        yield from _hex_file(file) if file.suffix.lower() == ".hex" else _binary(file)


def files_of(path: Path) -> list[Path]:
    """The file, or those of the folder; hidden ones are left out."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))


def read_hex(lines: Iterable[str], *, origin: str = "the text") -> Iterator[bytes]:
    """One piece of bytes for each line. `#` begins a comment; blanks do not count.

    A line may begin with a label and `valid` or `tail`, as `R1 valid 0000…`: tails are what a program printed beyond
    what it had read, and are left out.
    """
    for number, line in enumerate(lines, start=1):
        words = line.partition("#")[0].split()
        if len(words) > 2 and words[1] in _MARKS:
            if words[1] == "tail":
                continue
            words = words[2:]
        if not words:
            continue
        try:
            yield binascii.unhexlify("".join(words))
        except (ValueError, binascii.Error):
            shown = shortened(line.strip(), 40)
            raise DataError(f"{origin}, line {number}: {shown!r} is no row of hexadecimal digits.") from None


def _binary(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as opened:
            while chunk := opened.read(CHUNK):
                yield chunk
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}.", may_pass=False) from error


def _hex_file(file: Path) -> Iterator[bytes]:
    try:
        with file.open(encoding="utf-8-sig") as opened:
            yield from read_hex(opened, origin=str(file))
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}.", may_pass=False) from error
    except UnicodeDecodeError:
        raise DataError(f"{file} is no text of hexadecimal digits; give binary files another name.") from None
