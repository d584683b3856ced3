"""Objects of a store: what an address is, and what each thing that goes wrong is called. No server is asked."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import obstore
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError, UnauthenticatedError
from obstore.store import MemoryStore

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config
from eventlog.core.errors import ConfigError, SinkError, UsageError
from eventlog.sinks.outputs import FILES, FilesOutput
from eventlog.sinks.store import objects as module
from eventlog.sinks.store.address import StoreSettings, is_address, refuse_unknown
from eventlog.sinks.store.objects import Bucket, objects_at
from eventlog.verify.opening import target_of

SECRET = "sig=a-secret-of-tests"


@pytest.fixture
def objects() -> Bucket:
    return Bucket(MemoryStore(), "s3://bucket/p")


def answer(code: str, status: int = 403) -> str:
    """What the library says of an answer, which has all of the request in it."""
    return (
        f"Generic S3 error: Error performing PUT https://bucket.example/p?{SECRET} in 3ms - Server returned non-2xx status"
        f' code: {status} Forbidden: <?xml version="1.0"?><Error><Code>{code}</Code><Message>{SECRET}</Message></Error>'
    )


@pytest.mark.parametrize(
    "error,said",
    [
        (FileNotFoundError(answer("NoSuchBucket", 404)), "has no such bucket"),
        (FileNotFoundError(answer("ContainerNotFound", 404)), "has no such container"),
        (PermissionDeniedError(answer("AccessDenied")), "may not be used with these credentials"),
        (
            PermissionDeniedError(answer("RequestTimeTooSkewed")),
            "does not believe the clock of this machine. Set the clock",
        ),
        (PermissionDeniedError(answer("SignatureDoesNotMatch")), "does not know these credentials"),
        (GenericError(answer("AuthorizationHeaderMalformed", 400)), "is in another region"),
        (
            GenericError("Received redirect without LOCATION, this normally indicates a wrong region"),
            "in another region",
        ),
        (GenericError(answer("SlowDown", 503)), "asks for fewer requests"),
        (GenericError("Server returned non-2xx status code: 503 Busy: "), "asks for fewer requests"),
        (GenericError("Server returned non-2xx status code: 418 Teapot: "), "answers 418. Look at the store"),
        (GenericError(answer("Unheard", 400)), "answers Unheard"),
        (UnauthenticatedError("no"), "cannot be asked without credentials"),
        (
            GenericError("PUT http://169.254.169.254/latest/api/token - status code: 403"),
            "cannot be asked without cred",
        ),
        (GenericError(f"HTTP error: error sending request for {SECRET}"), "does not answer"),
        (TimeoutError(), "does not answer"),
    ],
)
def test_each_trouble_has_a_sentence_and_may_pass_and_tells_no_secret(
    objects: Bucket, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise error

    for name in ("get", "put", "copy", "delete", "list"):
        monkeypatch.setattr(obstore, name, refuse)
    for act in (
        lambda: objects.read("a"),
        lambda: objects.put("a", b""),
        lambda: objects.put_over("a", b"", None),
        lambda: objects.copy("a", "b"),
        lambda: objects.remove(["a"]),
        lambda: list(objects.names()),
    ):
        with pytest.raises(SinkError, match=said) as caught:
            act()
        assert caught.value.may_pass
        assert str(caught.value).startswith("s3://bucket/p ")
        assert str(caught.value).endswith("nothing is lost.")
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize("size", [10, 6_000_000])
def test_a_file_is_put_in_one_or_in_parts(
    objects: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(module, "IN_ONE_BYTES", 1000)
    file = tmp_path / "file"
    file.write_bytes(b"x" * size)
    objects.put("a", file)
    found = objects.read("a")
    assert found is not None
    assert found.content == file.read_bytes()


def test_one_that_is_gone_ends_no_removal_where_the_store_stops_at_it(
    objects: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Azure and Google say so of each object."""
    usual = obstore.delete

    def delete(store: MemoryStore, names: list[str]) -> None:
        if "gone" in names:
            raise FileNotFoundError
        usual(store, names)

    monkeypatch.setattr(obstore, "delete", delete)
    objects.put("a", b"")
    objects.remove(["gone", "a"])
    assert list(objects.names()) == []


@pytest.mark.parametrize("path", ["s3://b/p", "s3a://b", "gs://b/p", "az://c/p", "abfs://c@a.dfs.core.windows.net/p"])
def test_what_is_an_address(path: str) -> None:
    refuse_unknown("output.path", path)
    assert is_address(path)
    assert FILES.place(FilesOutput(path=path)) == f"files {path}"


@pytest.mark.parametrize(
    "path,said",
    [
        ("ftp://host/p", r"output\.path is ftp://host/p, and nothing is written to ftp://\. It is a folder, or s3://"),
        ("file:///tmp", "nothing is written to file://"),
        ("s3://", "no address of a bucket"),
        ("s3:///p", "no address of a bucket"),
        ("s3://b/p?key=1", "no address of a bucket"),
        ("s3://key:secret@b/p", "no address of a bucket"),
    ],
)
def test_what_is_no_address_is_refused_where_the_configuration_is_read(path: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        FilesOutput(path=path)
    assert "secret" not in str(caught.value)


def test_a_folder_has_no_endpoint() -> None:
    with pytest.raises(ConfigError, match=r"output\.store is about an object store"):
        FilesOutput(path="out", store=StoreSettings(region="eu-west-1"))


@pytest.mark.parametrize("form", ["xds", "change-tables"])
def test_without_the_library_it_is_said_what_to_install(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ConfigError, match=r"path = \"s3://…\" needs the package obstore.* pip install .*'obstore>="):
        outputs_of(Config(output=(FilesOutput(path="s3://b/p", format=form),)))


def test_what_the_environment_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(ConfigError, match=r"az://c/p cannot be used.* AZURE_STORAGE_ACCOUNT_NAME"):
        objects_at("az://c/p")
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigError, match="AWS_PROFILE needs the package boto3"):
        objects_at("s3://b/p", StoreSettings(endpoint="http://127.0.0.1:1", region="eu-west-1"))


def test_check_asks_whether_the_place_can_be_read(objects: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "objects_at", lambda *_: objects)
    assert FILES.check is not None
    [found] = FILES.check(FilesOutput(path="s3://bucket/p"))
    assert found.message.startswith("s3://bucket/p can be read")

    def down(*_: Any) -> None:
        raise GenericError(answer("NoSuchBucket", 404))

    monkeypatch.setattr(obstore, "get", down)
    with pytest.raises(SinkError, match="has no such bucket"):
        list(FILES.check(FilesOutput(path="s3://bucket/p")))


def test_verify_says_that_it_does_not_read_there() -> None:
    with pytest.raises(UsageError, match=r"Change tables at s3://bucket/p cannot be read back"):
        target_of(FilesOutput(path="s3://bucket/p", format="change-tables"), lambda _: pytest.fail("opened"))


@pytest.mark.parametrize("form", ["xds", "change-tables", "messages", "jsonl"])
def test_a_configuration_builds_an_output_to_an_address_without_asking_it(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    store = StoreSettings(endpoint="http://127.0.0.1:9", region="eu-west-1")
    [output] = outputs_of(Config(output=(FilesOutput(path="s3://b/p", format=form, store=store),)))
    with pytest.raises(SinkError, match="s3://b/p does not answer"):
        output.sink.open(None)


def test_a_profile_is_read_by_the_library_that_knows_profiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_profile", lambda: lambda: {"access_key_id": "a", "secret_access_key": "b"})
    monkeypatch.setenv("AWS_PROFILE", "mine")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    assert objects_at("s3://b/p/").address == "s3://b/p"
