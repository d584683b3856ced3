"""Names of tables as SQL quotes them."""

from __future__ import annotations

import pytest

from eventlog.core.table_names import read_name


@pytest.mark.parametrize(
    "name, parts",
    [
        ("usr", ("", "usr")),
        ("app.usr", ("app", "usr")),
        ('"we ird"', ("", "we ird")),
        ('"a.b"', ("", "a.b")),
        ('app."a.b"', ("app", "a.b")),
        ('"my app"."a.b"', ("my app", "a.b")),
        ('"say ""hi"""', ("", 'say "hi"')),
        ('half"quoted', ("", 'half"quoted')),
        ('"unended', ("", '"unended')),
    ],
)
def test_the_read_name_a_name(name: str, parts: tuple[str, str]) -> None:
    assert read_name(name) == parts
