"""Uploads in parts that were broken off: S3 keeps their parts, unseen and paid for, until somebody
aborts them.

obstore can neither list nor abort them, so boto3 does. It asks where obstore asks, as who obstore
is: what obstore signs tells the endpoint and the region.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from eventlog.core.packages import is_there

if TYPE_CHECKING:
    from obstore.store import S3Store

CONNECT_SECONDS: Final = 5
ANSWER_SECONDS: Final = 20
TRIES: Final = 2
SIGNED_SECONDS: Final = 60


def abort_uploads(store: S3Store, names: Sequence[str]) -> bool:
    """Aborts the uploads in parts of objects of these names; False where that is to be tried again.

    Where the store refuses it, as without a right, it is left to a rule of the bucket: it is no
    reason to stop the work.
    """
    if not is_there("boto3"):
        return False
    from botocore.exceptions import BotoCoreError, ClientError
    from obstore.exceptions import BaseError

    try:
        client = _client(store)
        for name in names:
            _abort(client, store.config["bucket"], _key(store, name))
    except ClientError as error:
        status: int = error.response["ResponseMetadata"]["HTTPStatusCode"]
        # What is the server's fault may be otherwise later.
        return status < HTTPStatus.INTERNAL_SERVER_ERROR
    except (BotoCoreError, BaseError):
        return False
    return True


def _abort(client: Any, bucket: str, key: str) -> None:
    pages = client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=key)
    for upload in [upload for page in pages for upload in page.get("Uploads", ())]:
        # A prefix is the beginning of other names too.
        if upload["Key"] == key:
            try:
                client.abort_multipart_upload(Bucket=bucket, Key=key, UploadId=upload["UploadId"])
            except client.exceptions.NoSuchUpload:
                continue  # it has ended meanwhile


def _key(store: S3Store, name: str) -> str:
    if not store.prefix:
        return name
    return f"{store.prefix}/{name}"


def _client(store: S3Store) -> Any:
    """Make a boto3 client with obstore's endpoint, region and credentials."""
    import boto3
    import botocore.session
    from botocore.config import Config

    endpoint, region, style = _endpoint(store)
    # Only obstore's provider of credentials knows profiles, and only where one was asked for.
    no_file = (None, None, os.devnull, None)
    no_profile = (None, None, None, None)
    variables = {"profile": no_profile, "credentials_file": no_file, "config_file": no_file}
    session = botocore.session.Session(session_vars=variables)
    credentials = {}
    if store.credential_provider is not None:
        provided: Any = store.credential_provider()
        credentials = {
            "aws_access_key_id": provided["access_key_id"],
            "aws_secret_access_key": provided["secret_access_key"],
            "aws_session_token": provided.get("token"),
        }
    config = Config(
        connect_timeout=CONNECT_SECONDS,
        read_timeout=ANSWER_SECONDS,
        retries={"max_attempts": TRIES},
        s3={"addressing_style": style},
    )
    return boto3.Session(botocore_session=session).client(
        "s3", endpoint_url=endpoint, region_name=region, config=config, **credentials
    )


def _endpoint(store: S3Store) -> tuple[str, str, str]:
    """Return a store's endpoint, region and style of addressing (bucket in path or host)."""
    import obstore

    # What obstore took from the environment it does not tell; what it signs has it.
    name = "any"
    signed = urlsplit(obstore.sign(store, "GET", name, timedelta(seconds=SIGNED_SECONDS)))
    bucket = store.config["bucket"]
    slashes = _key(store, name).count("/") + 1
    base = f"{signed.scheme}://{signed.netloc}{signed.path}".rsplit("/", slashes)[0]
    region = parse_qs(signed.query)["X-Amz-Credential"][0].split("/")[-3]
    if base.endswith(f"/{bucket}"):
        return base.removesuffix(f"/{bucket}"), region, "path"
    return base.replace(f"://{bucket}.", "://", 1), region, "virtual"
