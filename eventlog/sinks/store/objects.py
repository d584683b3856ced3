"""The objects below an address: written whole, read, listed, copied, removed, and put only where nobody else has.

Law: an object is put in one request, or in parts that nobody sees before the last one; so it is there entirely or not at all.
What goes wrong has a sentence of ours: a store's own answer may hold what is secret, so nothing but its code is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from eventlog.core.errors import ConfigError, SinkError
from eventlog.core.packages import require
from eventlog.core.secrets import visible
from eventlog.sinks.store.address import MODULE, StoreSettings, refuse_unknown

if TYPE_CHECKING:
    from obstore.store import ObjectStore

REQUEST_THREADS: Final = 8
"""Requests that are on their way together."""

IN_ONE_BYTES: Final = 16_000_000
"""What is larger goes in parts."""

OURS: Final = ".eventlog/"
PARTS: Final = f"{OURS}parts/"
"""Below it stands the name of each object that is being uploaded in parts to S3, for who comes after a kill."""

PART_THREADS: Final = 4
"""Parts of 5 MB, of each file: with eight files on their way that is memory enough."""

TRIES: Final = 2
TRYING_SECONDS: Final = 20
ANSWER_SECONDS: Final = 60
"""The publisher waits and tries again by itself, and says why; so a request is not repeated for
minutes here.
"""

Tag = dict[str, Any]
"""Which state of an object it is, as the store calls it."""

Item = TypeVar("Item")
Result = TypeVar("Result")

_code = re.compile(r"<Code>(\w+)</Code>").search
_status = re.compile(r"status code: (\d{3})").search
_asked_the_machine = re.compile(r"http://(?:169\.254\.|metadata|\[fd00:ec2::)").search
"""Where a library looks for a role of the machine when it has no credentials."""

# What object_store says of a bucket that is in another region.
_redirected = re.compile("redirect without LOCATION", re.IGNORECASE).search


class StoredObject(Struct, frozen=True):
    """An object's content, and which state of it that is."""

    content: bytes
    tag: Tag


class MissingObjectError(Exception):
    """Nothing stands there."""


class ChangedObjectError(Exception):
    """The object is not in the state any more that was known."""


class Bucket:
    """The objects below `address`. Names are relative to it, with / between their parts."""

    def __init__(self, store: ObjectStore, address: str) -> None:
        self.address = address
        self._store = store

    def read(self, name: str) -> StoredObject | None:
        """Read an object; None if there is none."""
        import obstore

        try:
            with self._asking():
                got = obstore.get(self._store, name)
                return StoredObject(bytes(got.bytes()), _tag(got.meta))
        except MissingObjectError:
            return None

    def fetch(self, name: str, file: Path) -> None:
        """Brings an object to this machine, however large it is."""
        import obstore

        try:
            with self._asking(), file.open("wb") as out:
                for piece in obstore.get(self._store, name).stream():
                    out.write(piece)
        except MissingObjectError:
            hint = "Somebody removed it at the same time; begin again with what is there."
            message = f"{self.address}/{name} is gone."
            raise SinkError(message, hint=hint, may_pass=True) from None

    def put(self, name: str, content: bytes | Path) -> None:
        """Writes an object, whatever stood there. A large file goes in parts."""
        import obstore

        if isinstance(content, Path):
            with content.open("rb") as file:
                self.put_file(name, file)
            return
        with self._asking():
            obstore.put(self._store, name, content, use_multipart=False)

    def put_file(self, name: str, file: IO[bytes]) -> None:
        """Writes an object from an open file, from its begin."""
        import obstore

        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= IN_ONE_BYTES:
            self.put(name, file.read())
            return
        with self._note_upload(name), self._asking():
            obstore.put(self._store, name, file, use_multipart=True, max_concurrency=PART_THREADS)

    def put_over(self, name: str, content: bytes, former: Tag | None) -> Tag | None:
        """Writes an object if it still is in its former state, or is not there yet; None where it
        is not so any more.
        """
        import obstore

        mode: Any = "create" if former is None else former
        try:
            with self._asking():
                return _tag(obstore.put(self._store, name, content, mode=mode, use_multipart=False))
        except ChangedObjectError:
            return None

    def copy(self, source: str, target: str) -> bool:
        """Copies an object inside the store; False where there is none."""
        import obstore

        try:
            with self._asking():
                obstore.copy(self._store, source, target)
        except MissingObjectError:
            return False
        return True

    def remove(self, names: Sequence[str]) -> None:
        """Removes objects; those that are gone already are no trouble."""
        import obstore

        if not names:
            return
        try:
            with self._asking():
                obstore.delete(self._store, names)
        except MissingObjectError:  # outside S3 the first that is gone ends the request
            if len(names) > 1:
                for name in names:
                    self.remove([name])

    def names(self, below: str = "") -> Iterator[str]:
        """Yield the names with this prefix, unordered."""
        import obstore

        with self._asking():
            for several in obstore.list(self._store, prefix=below or None):
                yield from [entry["path"] for entry in several]

    def times(self) -> dict[str, int]:
        """Return the time of each object in nanoseconds."""
        import obstore

        with self._asking():
            entries = [entry for several in obstore.list(self._store) for entry in several]
        return {entry["path"]: _read_written_ns(entry) for entry in entries}

    def time(self, name: str) -> int | None:
        """Return the time of an object in nanoseconds; None if there is none."""
        import obstore

        try:
            with self._asking():
                return _read_written_ns(obstore.head(self._store, name))
        except MissingObjectError:
            return None

    def abort_uploads(self, notes: Sequence[str]) -> None:
        """Aborts uploads in parts, by their notes. One that cannot be aborted now stays noted."""
        from obstore.store import S3Store

        from eventlog.sinks.store.uploads import abort_uploads

        names = [note.removeprefix(PARTS) for note in notes]
        if names and isinstance(self._store, S3Store) and abort_uploads(self._store, names):
            self.remove(notes)

    def each(self, act: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Run many requests at once; stop at the first that fails."""
        several = list(items)
        if len(several) < 2:
            return [act(item) for item in several]
        with ThreadPoolExecutor(REQUEST_THREADS) as pool:
            return list(pool.map(act, several))

    @contextmanager
    def _note_upload(self, name: str) -> Iterator[None]:
        """Notes that an object is uploaded in parts, until it has been."""
        from obstore.store import S3Store

        # Only there can what was broken off be listed and aborted.
        if not isinstance(self._store, S3Store):
            yield
            return
        note = f"{PARTS}{name}"
        self.put(note, b"")
        yield
        self.remove([note])

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Tells apart what a store answers: what was to be expected, and what a sentence is needed
        for.
        """
        from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError

        try:
            yield
        except (AlreadyExistsError, PreconditionError):
            raise ChangedObjectError from None
        # An object that is not there is a FileNotFoundError, and so is a bucket that is not.
        except (BaseError, OSError) as error:
            if isinstance(error, FileNotFoundError) and _code_of(str(error)) not in GONE:
                raise MissingObjectError from None
            why, mend = reason(error)
            hint = f"{mend}; nothing is lost."
            raise SinkError(f"{self.address} {why}.", hint=hint, may_pass=True) from None


def objects_at(address: str, settings: StoreSettings | None = None, what: str = "The place") -> Bucket:
    """Open the bucket at an address; raise ConfigError if malformed or its library is missing."""
    refuse_unknown(what, address)
    require(f"{address.partition('://')[0]}://", MODULE)
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    store_settings = settings or StoreSettings()
    options: dict[str, Any] = {}
    if store_settings.endpoint:
        options["endpoint"] = store_settings.endpoint
    if store_settings.region:
        options["region"] = store_settings.region
    endpoint = store_settings.endpoint or os.environ.get("AWS_ENDPOINT_URL", "")
    # The library reads keys from the environment, and no profiles.
    has_profile = os.environ.get("AWS_PROFILE") and not os.environ.get("AWS_ACCESS_KEY_ID")
    if address.startswith("s3") and has_profile:
        options["credential_provider"] = _profile()
    try:
        store = from_url(
            address,
            client_options={
                # Without this the library refuses an address without TLS.
                "allow_http": endpoint.startswith("http://"),
                "timeout": timedelta(seconds=ANSWER_SECONDS),
                "connect_timeout": "5s",
            },
            retry_config={"max_retries": TRIES, "retry_timeout": timedelta(seconds=TRYING_SECONDS)},
            **options,
        )
    except (BaseError, ValueError, TypeError):
        hint = "For Azure the account is in AZURE_STORAGE_ACCOUNT_NAME,"
        hint = f"{hint} or in the address as abfs://CONTAINER@ACCOUNT.…."
        problem = f"{what} {visible(address)} cannot be used with these settings."
        raise ConfigError(problem, hint=hint) from None
    return Bucket(store, address.rstrip("/"))


def _profile() -> Any:
    """Load credentials of the environment's profile with boto3."""
    require("AWS_PROFILE", "boto3")
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()


def _read_written_ns(meta: Any) -> int:
    written: datetime = meta["last_modified"]
    return round(written.timestamp() * 1e9)


def _tag(meta: Any) -> Tag:
    return {name: meta[name] for name in ("e_tag", "version") if meta[name] is not None}


def _code_of(text: str) -> str:
    """Return the store's error code, else the status of its answer."""
    match = _code(text) or _status(text)
    return "" if match is None else match[1]


_CREDENTIALS: Final = ("does not know these credentials", "Correct them in the environment")
_REGION: Final = ("is in another region", "Correct output.store.region, or AWS_REGION")
REASONS: Final = {
    "NoSuchBucket": ("has no such bucket", "Make the bucket, or correct the address"),
    "ContainerNotFound": ("has no such container", "Make the container, or correct the address"),
    "RequestTimeTooSkewed": ("does not believe the clock of this machine", "Set the clock"),
    "SignatureDoesNotMatch": _CREDENTIALS,
    "InvalidAccessKeyId": _CREDENTIALS,
    "ExpiredToken": (
        "does not take credentials that have expired",
        "Renew them in the environment",
    ),
    "AccessDenied": (
        "may not be used with these credentials",
        "Give the right to read, write, list and delete there",
    ),
    "AuthorizationHeaderMalformed": _REGION,
    "PermanentRedirect": _REGION,
    "IllegalLocationConstraintException": _REGION,
    "NoSuchUpload": (
        "knows an upload no more, because a later run at the same place has ended it",
        "Let one run at a time write there",
    ),
    "SlowDown": ("asks for fewer requests", "Wait"),
}
"""What a store's code means, and what to do."""

GONE: Final = ("NoSuchBucket", "ContainerNotFound", "NoSuchUpload")

# An answer without a body, as that to HEAD, has no code.
STATUSES: Final = {
    "301": "PermanentRedirect",
    "401": "SignatureDoesNotMatch",
    "403": "AccessDenied",
    "503": "SlowDown",
}


def reason(error: Exception) -> tuple[str, str]:
    """Explain a failure: the problem and its correction."""
    text = str(error)
    code = _code_of(text)
    if _redirected(text):
        code = "PermanentRedirect"
    known = REASONS.get(code) or REASONS.get(STATUSES.get(code, ""))
    # Where it found no credentials the library asked the machine, and that is what failed.
    if _asked_the_machine(text) or type(error).__name__ == "UnauthenticatedError":
        return "cannot be asked without credentials", "Set them in the environment"
    if known is not None:
        return known
    if code:
        return f"answers {code}", "Look at the store"
    return "does not answer", "Look at the network and at the endpoint"
