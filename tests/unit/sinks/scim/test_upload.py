"""What the format writes for Microsoft Entra's bulkUpload, how uploads are cut, and what the provisioning log means."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.model import Change, Edit, Op, Refusal, RowId, Status
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import Format, Written
from eventlog.sinks.scim.paths import CORE_USER, ENTERPRISE_USER
from eventlog.sinks.scim.provisioning import _judge, read_date, split_endpoint
from eventlog.sinks.scim.requests import ScimRequest, Unique
from eventlog.sinks.scim.settings import ScimSettings
from eventlog.sinks.scim.upload import cut_pairs
from eventlog.sinks.scim.write import ScimFormat
from eventlog.testing import FormatSuite

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="login"),
        Column(name="fname"),
        Column(name="boss", type="integer", references="usr"),
        Column(name="room", type="integer", references="room"),
        Column(name="works", type="integer"),
    ),
    children=(
        Child(name="phone", parent_key=("idu",), columns=(Column(name="idu", type="integer"), Column(name="no"))),
    ),
)
ROOM = Table(name="room", columns=(Column(name="id", type="integer", key=1),))
CATALOG = Catalog([USR, ROOM])
COLUMNS: dict[str, Any] = {
    "idu": "externalId",
    "login": "userName",
    "fname": "name.givenName",
    "boss": f"{ENTERPRISE_USER}:manager.value",
    "phone.no": "phoneNumbers.value",
}


def settings(columns: dict[str, Any] | None = None) -> ScimSettings:
    usr = {"columns": columns or COLUMNS, "delete": "disable"}
    return msgspec.convert({"mode": "entra", "tables": {"usr": usr}}, ScimSettings)


def written(op: Op, *edits: Edit, columns: dict[str, Any] | None = None, **more: Any) -> Any:
    change = Change(row=RowId(None, "usr", "idu=7"), op=op, edits=edits, positions=((1,),), **more)
    items = list(ScimFormat(settings(columns)).writer(CATALOG)([change]))
    return [json.loads(item.text)["body"] if isinstance(item, Written) else item for item in items]


def test_a_new_user_is_whole_and_active() -> None:
    edits = [Edit(column="login", new="ada@x"), Edit(column="fname", new=None), Edit(column="boss", new=3)]
    edits += [Edit(column="phone.no", new="1"), Edit(column="phone.no", new="2")]
    assert written(Op.ADD, *edits) == [
        {
            "schemas": [CORE_USER, ENTERPRISE_USER],
            "active": True,
            "externalId": "7",
            "userName": "ada@x",
            "name": {"givenName": None},
            ENTERPRISE_USER: {"manager": {"value": "3"}},
            "phoneNumbers": [{"value": "1"}, {"value": "2"}],
        }
    ]


def test_a_change_has_what_changed_and_null_for_what_is_empty() -> None:
    edits = [Edit(column="login", old="a", new="a"), Edit(column="fname", old="A", new=None)]
    [body] = written(Op.MODIFY, *edits)
    assert body == {"schemas": [CORE_USER, ENTERPRISE_USER], "externalId": "7", "name": {"givenName": None}}
    assert written(Op.MODIFY, edits[0]) == []
    [all_of_it] = written(Op.MODIFY, *edits, whole=True)
    assert all_of_it["userName"] == "a"


@pytest.mark.parametrize("works, active", [(1, {"active": True}), (0, {"active": False}), (None, {"active": None})])
def test_a_column_for_active_decides_alone(works: int | None, active: dict[str, Any]) -> None:
    [body] = written(Op.ADD, Edit(column="works", new=works), columns=COLUMNS | {"works": "active"})
    assert body == {"schemas": [CORE_USER, ENTERPRISE_USER], "externalId": "7", **active}


def test_all_phones_go_together() -> None:
    [body] = written(Op.MODIFY, Edit(column="phone.no", new=("1", "2"), reset=True))
    assert body["phoneNumbers"] == [{"value": "1"}, {"value": "2"}]
    [refused] = written(Op.MODIFY, Edit(column="phone.no", new="2"))
    assert isinstance(refused, Refusal)
    assert "bulkUpload takes all values of phone.no together" in str(refused.note)


def test_who_is_deleted_is_disabled() -> None:
    [body] = written(Op.DELETE)
    assert body == {"schemas": [CORE_USER, ENTERPRISE_USER], "active": False, "externalId": "7"}


@pytest.mark.parametrize(
    "op, columns, words",
    [
        (Op.TRUNCATE, COLUMNS, "no request that empties a table"),
        (Op.ADD, {"idu": "displayName", "login": "externalId"}, "is not in the key of usr"),
        (
            Op.ADD,
            COLUMNS | {"room": {"path": "title", "references": "room"}},
            "whose key is not what goes to externalId",
        ),
    ],
)
def test_what_cannot_be_told_is_refused(op: Op, columns: dict[str, Any], words: str) -> None:
    [refused] = written(op, Edit(column="login", new="a"), columns=columns)
    assert isinstance(refused, Refusal)
    assert words in str(refused.note)


@given(st.lists(st.integers(0, 60), max_size=200))
def test_uploads_keep_the_order_and_have_no_user_twice(numbers: list[int]) -> None:
    pairs = [
        (ScimRequest(method="POST", path="/Users", object=f"usr {n}", unique=Unique(""), mapping="usr"), [(place,)])
        for place, n in enumerate(numbers)
    ]
    parts = list(cut_pairs(pairs))
    assert [pair for part in parts for pair in part] == pairs
    for part in parts:
        assert 0 < len(part) <= 50
        assert len({request.object for request, _ in part}) == len(part)


@pytest.mark.parametrize(
    "status, more, wanted",
    [
        ("success", {}, (Status.SUCCESS, "")),
        ("warning", {}, (Status.WARNING, "Entra's provisioning log says warning")),
        ("unknownFutureValue", {}, (Status.WARNING, "Entra's provisioning log says unknownfuturevalue")),
        (
            "failure",
            {"errorCode": "X", "reason": "no  room"},
            (Status.ERROR, "Entra's provisioning log says failure: X: no room"),
        ),
    ],
)
def test_an_entry_of_the_log_is_judged(status: str, more: dict[str, str], wanted: tuple[Status, str]) -> None:
    info = {"status": status, "errorInformation": more or None}
    assert _judge({"provisioningStatusInfo": info, "provisioningSteps": []}) == wanted


def test_the_receivers_clock_counts_and_ours_where_it_has_none() -> None:
    assert read_date("Wed, 21 Oct 2015 07:28:00 GMT") == "2015-10-21T07:28:00Z"
    assert read_date("no date") > "2026"


def test_the_provisioning_log_is_beside_the_endpoint() -> None:
    address = "https://graph.microsoft.com/v1.0/servicePrincipals/1/synchronization/jobs/API2AAD.2.3/bulkUpload"
    assert split_endpoint(address) == ("https://graph.microsoft.com/v1.0/auditLogs/provisioning", "API2AAD.2.3")


class TestFormat(FormatSuite):
    @pytest.fixture
    def form(self) -> Format:
        mapping = {"tables": {"people": {"columns": {"name": "userName", "id": "externalId"}, "delete": "disable"}}}
        return ScimFormat(msgspec.convert(mapping | {"mode": "entra"}, ScimSettings))
