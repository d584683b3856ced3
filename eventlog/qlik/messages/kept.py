"""Messages as people keep them: lines, pretty-printed JSON, arrays, Base64, what kcat -J writes,
and single values.

kcat writes the bytes of an Avro value into a string of JSON, which is then no UTF-8; nothing of
them is lost in it.
"""

from __future__ import annotations

import binascii
import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any, Final

from eventlog.core.errors import DataError
from eventlog.qlik.messages.reader import MessageReader, Read, bytes_of

CONTAINER: Final = b"Obj\x01"
# Not strict, for kcat does not escape the control characters of a value.
_decode = json.JSONDecoder(strict=False).raw_decode
# The white space of JSON, which has less than Python's.
_blank = re.compile(r"[ \t\r\n]*").match
Kept = tuple[str, bytes | dict[str, Any] | DataError | None]
"""Where a message stands, and its value, the object that it is, or why it is none."""


def read_messages(content: bytes) -> Iterator[Kept]:
    """Yield the messages of a file that is no container."""
    content = content.removeprefix(BOM_UTF8)
    # Bytes that are no UTF-8 stay, one by one, as half characters, and become bytes again later.
    text = content.decode("utf-8", "surrogateescape")
    begin = _end_of_blank(text, 0)
    # The whole file is one value: an envelope, what has a number of a registry, or Avro without
    # either.
    avro_or_number = text[begin : begin + 1] not in ("", "{", "[", '"')
    if avro_or_number and _base64(_line(text, begin)) is None:
        yield "value", content
        return
    at, line = 0, 1
    while True:
        begin = _end_of_blank(text, at)
        line += text.count("\n", at, begin)
        if begin == len(text):
            return
        value, end = _next(text, begin)
        yield from _messages_in(value, f"line {line}")
        line += text.count("\n", begin, end)
        at = end


def read_kept(
    reader: MessageReader,
    message: bytes | dict[str, Any] | DataError | None,
) -> Read | DataError:
    """Read a message, or return the error."""
    if isinstance(message, DataError):
        return message
    try:
        if isinstance(message, dict):
            return reader.read_json(message)
        return reader.read(message)
    except DataError as error:
        return error


def read_record(reader: MessageReader, record: Any) -> Read | DataError:
    """Read a record of a container, or return the error."""
    if not isinstance(record, dict):
        return DataError("This is no message: messages are records.")
    try:
        return reader.read_record(record)
    except DataError as error:
        return error


def _next(text: str, begin: int) -> tuple[Any, int]:
    """Read the value of JSON that begins there, over as many lines as it has, or the line in Base64.

    Return also its end.
    """
    line = _line(text, begin)
    # A line in Base64 never begins with one of these, and JSON of a message always does.
    if text[begin] not in '{["':
        value = _base64(line)
        if value is not None:
            return value, begin + len(line)
    try:
        return _decode(text, begin)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            why = error.msg
        # Only the rest of this line is given up; the next one may be a message again.
        return DataError(f"This is no JSON: {why}."), begin + len(line)


def _messages_in(value: Any, where: str) -> Iterator[Kept]:
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _messages_in(item, f"{where}, item {number}")
        return
    # What a tool says of a message, the message among it.
    if isinstance(value, dict) and "topic" in value:
        value = value.get("value", value.get("payload", value))
    if isinstance(value, str):
        value = bytes_of(value)
    if value is None or isinstance(value, bytes | dict | DataError):
        yield where, value
    else:
        yield where, DataError("This is no message: messages are objects.")


def _line(text: str, begin: int) -> str:
    end = text.find("\n", begin)
    if end < 0:
        return text[begin:]
    return text[begin:end]


def _end_of_blank(text: str, at: int) -> int:
    match = _blank(text, at)
    assert match is not None
    return match.end()


def _base64(line: str) -> bytes | None:
    """Decode a line of Base64, unless it is an ordinary word."""
    line = line.strip()
    # Every word of four letters is Base64; eight are taken for a message's bytes.
    if len(line) < 8:
        return None
    try:
        return binascii.a2b_base64(line, strict_mode=True)
    except ValueError:  # binascii.Error is one; text that is not ASCII is another
        return None
