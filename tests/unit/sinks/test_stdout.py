"""The stdout sink: documents line by line, and a reader that goes away."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.stdout import StdoutSink

ENDLESS = """
import sys
from eventlog.core.errors import SinkError
from eventlog.core.model import Document
from eventlog.sinks.stdout import StdoutSink
sink = StdoutSink()
try:
    while True:
        sink.commit("", [Document(id="1", body=b"x" * 10000, covers={})])
except SinkError as error:
    sys.stderr.write(f"{error.may_pass} {error}")
    sys.exit(error.exit_code)
"""


def documents(*bodies: bytes) -> list[Document]:
    return [Document(id=str(number), body=body, covers={}) for number, body in enumerate(bodies, start=1)]


def test_documents_are_separated_by_a_newline_and_no_more() -> None:
    stream = io.BytesIO()
    sink = StdoutSink(io.BufferedWriter(stream))
    assert sink.commit("", documents(b"<a/>", b"<b/>\n")) == ()
    assert stream.getvalue() == b"<a/>\n<b/>\n", "it is flushed"
    sink.commit("", [])
    sink.close()
    assert sink.last() == "2"


def test_a_reader_that_went_away_is_told_once_and_not_by_a_traceback() -> None:
    process = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    said = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait() == 69
    assert said.startswith("False Nobody reads standard output")
    assert "Traceback" not in said


def test_other_errors_may_pass() -> None:
    read, write = os.pipe()
    os.close(write)
    with (
        os.fdopen(read, "rb", buffering=0) as stream,
        pytest.raises(SinkError, match="does not take documents") as caught,
    ):
        StdoutSink(stream).commit("", documents(b"<a/>"))
    assert caught.value.may_pass


def test_a_stream_without_a_descriptor_may_break_too() -> None:
    class Broken(io.BytesIO):
        def write(self, _content: object) -> int:
            raise BrokenPipeError

    with pytest.raises(SinkError, match="Nobody reads"):
        StdoutSink(Broken()).commit("", documents(b"<a/>"))
