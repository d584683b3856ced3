"""What may be read anywhere: texts without secrets, and without what a terminal would obey.

`mask_secrets` is the one place where a secret is taken out of a text, `visible` the one where a text of
others loses its hold on a terminal; `make_readable` does both. Errors, the journal, notes, marks and the
page go through them. Settings that may hold secrets do not print their texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

import msgspec
from msgspec import Struct

HIDDEN: Final = "***"
"""What stands where a secret stood."""

SECRET_PARTS: Final = (
    "authorization",
    "keypem",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "token",
)
"""What a secret's name holds, signs aside: sslpassword, oauth_client_secret, ssl.key.pem."""

SECRET_NAMES: Final = frozenset(
    (
        "accesskey",
        "accountkey",
        "adlsaccountkey",
        "apikey",
        "credential",
        "pass",
        "pw",
        "scramclientkey",
        "scramserverkey",
        "sig",
    )
)
"""Names of secrets that hold none of these; what names a file, such as passfile or sslkey, is none.
"""

_padding = re.compile(r"""[="'\])}>,;.]*""").fullmatch
_authority_end = re.compile(r"[/?#]")
_address_end = re.compile(r"[?#]")
_host = re.compile(r"(?:\[[^]]*\]|[^:]*)(?::\d*)?").fullmatch
_codes = re.compile(r"%([0-9A-Fa-f]{2})")
_word_signs = re.compile(r"[^a-z0-9]")
_secret_part = re.compile("|".join(SECRET_PARTS))
_words = re.compile(r"\S+")
# Greedy up to the last @ that can end a password, within bounds, so that a long text takes no time
# by its square.
_word_sign = re.compile(r"\w").match
# Who forgot to write an @ in a password as %40 has it here all the same.
_userinfo = re.compile(r"((?<!http)(?<!https)://[^/:@?#]{0,256}):[^@]*+@(?:[^@?#]{0,256}@){0,8}", re.IGNORECASE)
# Oracle's user/password@place, as SQL*Plus takes it.
_scott_tiger = re.compile(r"(\boracle[\w+]{0,20}:(?://)?[^\s/:@?#]{1,256})/[^\s/@]{1,8192}?(?:@|%40)")
# What is hidden already is no secret, so that masking twice changes nothing.
_is_hidden = re.compile(r"\*\*\*(?:[\s&,;)}\]\"']|\Z)").match
# NAME=value, "NAME": value in JSON, and the header Authorization, whose colon stands without
# quotes.
_named = re.compile(
    r"""(?<![\w%.+-])(?P<name>[\w%.+-]++)(?:["']?\s*+=\s*|["']\s*+:\s*|(?<=horization):\s*)""", re.IGNORECASE
)
_quoted_end = r"[^\s&,;)}\]]*"
_value = re.compile(
    rf"""'(?:[^'\\]|\\.)*(?:'|\Z){_quoted_end}|"(?:[^"\\]|\\.)*(?:"|\Z){_quoted_end}|\{{[^}}]*\}}{_quoted_end}"""
    r"|(?:(?:Basic|Bearer)\s+)?[^\s&]*",
    re.IGNORECASE | re.DOTALL,
)
# `++` gives nothing back, so that a long text takes no time by its square.
# Behind an address as a value nobody knows whose the next parameter is: all of it is the value.
_parameter = re.compile(r"(?<=[?&])(?P<name>[^\s=&?]++)=(?P<value>(?=[^\s&]*https?://)\S++|[^\s&]++)", re.IGNORECASE)
# Up to the next one, as in a list without blanks; behind a ? all belongs to a value.
_web_address = re.compile(r"https?://(?:[^\s?#]*?(?=https?://)|\S+)", re.IGNORECASE)
# Control characters, and those that turn the direction of a text or end a line for Unicode alone.
_obeyed = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
# The same without tabs and line breaks.
_obeyed_in_lines = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def mask_secrets(text: str, secrets: Collection[str] = ()) -> str:
    """Hide secrets in text: those given, as whole words, and those in URLs and behind names."""
    known = _whole_words(tuple(secrets))
    if known is not None:
        text = known.sub(HIDDEN, text)
    # No name and no URL without one of these, and errors mostly have neither.
    if "=" not in text and ":" not in text:
        return text
    return _hide(_parameter.sub(_without_inner, text))


@lru_cache(maxsize=8)
def _whole_words(secrets: tuple[str, ...]) -> re.Pattern[str] | None:
    r"""Compile a pattern for them as words: `pub` is none in `published`, and one behind `%3A` or `\n`."""
    words = []
    # The longest first: another one may be its beginning.
    for secret in sorted({*secrets} - {""}, key=len, reverse=True):
        begin, end = "", ""
        if _word_sign(secret[0]):
            begin = r"(?:(?<!\w)|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"
        if _word_sign(secret[-1]):
            end = r"(?!\w)"
        words.append(begin + re.escape(secret) + end)
    if not words:
        return None
    return re.compile("|".join(words))


def visible(text: str, *, lines: bool = False, json: bool = False) -> str:
    """Escape a terminal's control characters; with `lines` keep line ends.

    In JSON the escape is JSON's own, so that a reader gets the original text.
    """
    pattern = _obeyed_in_lines if lines else _obeyed
    if json:
        return pattern.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
    return pattern.sub(lambda character: character[0].encode("unicode_escape").decode(), text)


def make_readable(text: str) -> str:
    """Make text safe to show: no secrets, no control characters."""
    return visible(mask_secrets(text))


def is_secret(name: str) -> bool:
    """Return True if this name stands for a secret, however it is spelled."""
    plain = _word_signs.sub("", decode_percents(name).casefold())
    return plain in SECRET_NAMES or _secret_part.search(plain) is not None


def find_named_secrets(text: str) -> Iterator[tuple[int, int]]:
    """Yield the places of secrets behind their names: in a URL's query, in words of a driver, in JSON."""
    at = 0
    for name in _named.finditer(text):
        # A value may look like a name with another value; it is hidden as a whole already.
        if name.start() < at or not is_secret(name["name"]):
            continue
        value = _value.match(text, name.end())
        if value is not None and value[0] and not _is_hidden(text, name.end()):
            at = value.end()
            yield value.span()


def decode_percents(text: str) -> str:
    """Resolve percent signs."""
    # Byte by byte, for one character may be written as several codes.
    codes = _codes.sub(lambda match: bytes.fromhex(match[1]).decode("latin-1"), text)
    return codes.encode("latin-1", "replace").decode("utf-8", "replace")


def _hide(text: str) -> str:
    """Hide secrets of web addresses, passwords in other URLs, and values behind a secret's name."""
    if "://" in text:
        text = _web_address.sub(_hide_in_address, text)
    if "@" in text:
        text = _words.sub(_without_user, text)
    text = _scott_tiger.sub(rf"\1/{HIDDEN}@", text)
    kept: list[str] = []
    at = 0
    for begin, end in find_named_secrets(text):
        kept += (text[at:begin], HIDDEN)
        at = end
    return "".join((*kept, text[at:]))


def _without_user(word: re.Match[str]) -> str:
    """Hide passwords of URLs in a word. Behind its last @ is none, so nobody looks there."""
    users, sign, rest = word[0].rpartition("@")
    return _userinfo.sub(rf"\1:{HIDDEN}@", users + sign) + rest


def _without_inner(parameter: re.Match[str]) -> str:
    """Hide secrets in a URL's parameter: its value may be a connection too, as `odbc_connect` is."""
    value = decode_percents(parameter["value"])
    if _hide(value) == value:
        return parameter[0]
    return f"{parameter['name']}={HIDDEN}"


class AddressPiece(Struct, frozen=True):
    """A part of a web address; `name` is the name of a value in its query."""

    text: str
    is_secret: bool = False
    is_login: bool = False
    name: str = ""

    @property
    def shown(self) -> str:
        if self.is_secret and self.text.replace(HIDDEN, "").strip(":"):
            return HIDDEN
        return self.text


def cut_address(address: str) -> Iterator[AddressPiece]:
    """Cut an address of http or https into pieces, secret ones marked.

    The login, every value of the query and the fragment are secret: nobody knows how a receiver
    names its key.
    """
    scheme, sign, rest = address.partition("://")
    yield AddressPiece(scheme + sign)
    authority = _authority_end.split(rest, maxsplit=1)[0]
    login, at, _ = (authority if "@" in authority or _host(authority) else rest).rpartition("@")
    if at:
        yield AddressPiece(login, is_secret=True, is_login=True)
        rest = rest[len(login) :]
    rest, number_sign, fragment = rest.partition("#")
    path, question_mark, query = rest.partition("?")
    yield AddressPiece(path + question_mark)
    for number, part in enumerate(query.split("&")):
        name, equals, value = part.partition("=")
        # Base64 may end so, and then there is no name.
        if _padding(value):
            name, equals, value = "", "", part
        yield AddressPiece("&" * (number > 0) + name + equals)
        yield AddressPiece(value, is_secret=True, name=name)
    yield AddressPiece(number_sign)
    yield AddressPiece(fragment, is_secret=True)


def bare_address(url: str) -> str:
    """Strip login, query and fragment from a URL: a name for a place, without secrets."""
    scheme, sign, rest = url.partition("://") if "://" in url else ("", "", url)
    place = _address_end.split(rest, maxsplit=1)[0]
    # The last @ ends the login: a password may hold one.
    authority, slash, path = place.partition("/")
    return f"{scheme.lower()}{sign}{authority.rpartition('@')[2]}{slash}{path}"


def _hide_in_address(address: re.Match[str]) -> str:
    return "".join(piece.shown for piece in cut_address(address[0]))


OPTIONS: Final = frozenset(("", "catalog", "connect", "options"))
"""Settings whose keys are a driver's own settings."""

SettingPath = tuple[str | int, ...]
"""Where a value stands in a configuration: names of tables, numbers in a list, and the key."""

LIKELY_SECRET_CHARACTERS: Final = 8
"""Characters from which on a value of a web address is hidden outside of addresses too, whatever
its name is.
"""

_password = re.compile(r"(?<!http)(?<!https)://[^/@:?#]*:([^@]+)@", re.IGNORECASE).search
_scheme = re.compile(r"\A(?:Basic|Bearer)\s+", re.IGNORECASE)


class SecretSettings(Struct, frozen=True, kw_only=True):
    """Shows of texts only that they are there: each may be a secret, or hold one as a URL does."""

    def __repr__(self) -> str:
        parts = []
        for field in msgspec.structs.fields(self):
            value = getattr(self, field.name)
            if value == field.default:
                continue
            # Numbers and truth values can be no secret.
            text = "…"
            if isinstance(value, bool | int | float | None):
                text = repr(value)
            parts.append(f"{field.name}={text}")
        return f"{type(self).__name__}({', '.join(parts)})"


def secret_paths(settings: object, path: SettingPath = (), name: str = "") -> Iterator[tuple[SettingPath, str]]:
    """Yield every secret in a configuration with its path; one may have several spellings."""
    if isinstance(settings, Struct):
        for field in msgspec.structs.fields(settings):
            yield from secret_paths(getattr(settings, field.name), (*path, field.name), field.name)
    elif isinstance(settings, Mapping):
        for key, value in settings.items():
            # Elsewhere keys are the names of tables, and a table may be called anything.
            inner = name if name and isinstance(value, Mapping) else str(key)
            yield from secret_paths(value, (*path, str(key)), inner if name in OPTIONS else "")
    elif isinstance(settings, tuple | list):
        for number, value in enumerate(settings):
            yield from secret_paths(value, (*path, number), name)
    elif isinstance(settings, str) and settings:
        secrets: Iterable[str] = ()
        if is_secret(name):
            # Whoever refuses a header may say what stands behind its scheme alone.
            secrets = filter(None, dict.fromkeys((settings, _scheme.sub("", settings))))
        elif "://" in settings or "=" in settings:
            secrets = secrets_of(settings)
        yield from ((path, secret) for secret in secrets)


def format_path(path: SettingPath) -> str:
    """Write a path as errors do: output[0].path."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def secrets_of(text: str) -> Iterator[str]:
    """Yield every secret in a URL or a connection string, as written and as meant."""
    match = _password(text)
    secrets = [match[1]] if match else []
    for address in _web_address.findall(text):
        for piece in filter(lambda piece: piece.is_secret, cut_address(address)):
            value, is_password = piece.text, is_secret(piece.name)
            # Of a user and a password only the password is one.
            if piece.is_login and ":" in value:
                value, is_password = value.partition(":")[2], True
            if value and (is_password or len(value) >= LIKELY_SECRET_CHARACTERS):
                secrets += (value, value.replace("+", " "))
    for begin, end in find_named_secrets(text):
        # A connection string of ODBC ends a value with a semicolon, which other values may hold.
        secrets += (text[begin:end], text[begin:end].partition(";")[0])
    for secret in secrets:
        yield from dict.fromkeys((secret, decode_percents(secret)))
