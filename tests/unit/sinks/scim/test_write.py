"""Requests of SCIM as the format writes them, and mappings that are refused."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from eventlog.core.errors import ConfigError
from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.core.seams import Format, Written
from eventlog.sinks.scim.paths import CORE_USER, ENTERPRISE_USER
from eventlog.sinks.scim.requests import show_request
from eventlog.sinks.scim.settings import ScimSettings
from eventlog.sinks.scim.write import ScimFormat
from eventlog.testing import FormatSuite

USR = Table(
    name="usr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="login"),
        Column(name="fname"),
        Column(name="mail"),
        Column(name="boss", type="integer", references="usr"),
        Column(name="works", type="char(1)"),
        Column(name="since", type="timestamp"),
        Column(name="level", type="integer"),
    ),
    children=(
        Child(name="phone", parent_key=("idu",), columns=(Column(name="idu", type="integer"), Column(name="no"))),
    ),
)
CATALOG = Catalog([USR])
COLUMNS: dict[str, Any] = {
    "idu": f"{ENTERPRISE_USER}:employeeNumber",
    "login": "userName",
    "fname": "name.givenName",
    "mail": 'emails[type eq "work"].value',
    "boss": f"{ENTERPRISE_USER}:manager.value",
    "works": "active",
    "since": "urn:example:User:since",
    "level": "urn:example:User:level",
    "phone.no": 'phoneNumbers[type eq "work"].value',
}


def settings(**table: Any) -> ScimSettings:
    return msgspec.convert({"tables": {"usr": {"columns": COLUMNS} | table}}, ScimSettings)


def written(op: Op, *edits: Edit, more: dict[str, Any] | None = None, **table: Any) -> Any:
    change = Change(row=RowId(None, "usr", "idu=7"), op=op, edits=edits, positions=((1,),), **(more or {}))
    [item] = ScimFormat(settings(**table)).writer(CATALOG)([change])
    return json.loads(item.text) if isinstance(item, Written) else item


def new(**cells: Any) -> list[Edit]:
    return [Edit(column=name.replace("__", "."), new=cell) for name, cell in cells.items()]


def test_a_new_row_is_a_whole_resource() -> None:
    edits = new(login="ada", fname="Ada", mail="a@x", boss=3, works="Y", since="2025-03-23 10:57:19", level="4")
    edits += new(phone__no="1") + new(phone__no="2")
    assert written(Op.ADD, *edits) == {
        "method": "POST",
        "path": "/Users",
        "object": "usr idu=7",
        "unique": {"path": "userName", "values": ["ada"]},
        "mapping": "usr",
        "body": {
            "schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", "urn:example:User", ENTERPRISE_USER],
            "userName": "ada",
            "name": {"givenName": "Ada"},
            "emails": [{"type": "work", "value": "a@x"}],
            "active": True,
            "phoneNumbers": [{"type": "work", "value": "1"}, {"type": "work", "value": "2"}],
            "urn:example:User": {"since": "2025-03-23T10:57:19Z", "level": 4},
            ENTERPRISE_USER: {"manager": {"value": {"$id-of": "usr idu=3"}}, "employeeNumber": "7"},
        },
    }


@pytest.mark.parametrize(
    "edit, operations",
    [
        (Edit(column="fname", old="Ada", new="A"), [{"op": "replace", "path": "name.givenName", "value": "A"}]),
        (Edit(column="fname", old="Ada", new=None), [{"op": "remove", "path": "name.givenName"}]),
        (
            Edit(column="mail", old=None, new="a@x"),
            [{"op": "add", "path": "emails", "value": [{"type": "work", "value": "a@x"}]}],
        ),
        (
            Edit(column="mail", old="b@x", new="a@x"),
            [{"op": "replace", "path": 'emails[type eq "work"].value', "value": "a@x"}],
        ),
        (Edit(column="mail", old="b@x", new=None), [{"op": "remove", "path": 'emails[type eq "work"]'}]),
        (
            Edit(column="phone.no", old="1", new=ABSENT),
            [{"op": "remove", "path": "phoneNumbers", "value": [{"type": "work", "value": "1"}]}],
        ),
        (
            Edit(column="phone.no", new=("1", "2"), reset=True),
            [
                {"op": "remove", "path": 'phoneNumbers[type eq "work"]'},
                {
                    "op": "add",
                    "path": "phoneNumbers",
                    "value": [{"type": "work", "value": "1"}, {"type": "work", "value": "2"}],
                },
            ],
        ),
        (Edit(column="works", old="Y", new="n"), [{"op": "replace", "path": "active", "value": False}]),
    ],
)
def test_a_change_tells_what_changed(edit: Edit, operations: list[Any]) -> None:
    request = written(Op.MODIFY, edit)
    assert (request["method"], request["path"]) == ("PATCH", "/Users/{id}")
    assert request["body"]["Operations"] == operations


def test_a_new_value_of_a_child_table_is_no_new_object() -> None:
    request = written(Op.ADD, *new(phone__no="1"))
    assert request["method"] == "PATCH"


def test_what_is_gone_is_deleted_or_disabled() -> None:
    old = Edit(column="login", old="ada")
    assert written(Op.DELETE, old) == {
        "method": "DELETE",
        "path": "/Users/{id}",
        "object": "usr idu=7",
        "unique": {"path": "userName", "values": ["ada"]},
        "mapping": "usr",
        "ends": True,
    }
    request = written(Op.DELETE, old, delete="disable")
    assert request["body"]["Operations"] == [{"op": "replace", "path": "active", "value": False}]


@pytest.mark.parametrize(
    "columns, active",
    [
        ({"login": "userName"}, {"active": True}),
        ({"login": "userName", "works": "active"}, {}),
        ({"login": "userName", "works": f"{CORE_USER}:Active"}, {}),
    ],
    ids=["no column for it", "no value", "by its whole name"],
)
def test_a_new_row_enables_unless_a_column_says_whether(columns: dict[str, str], active: dict[str, bool]) -> None:
    request = written(Op.ADD, *new(login="ada", works=None), columns=columns, delete="disable")
    assert request["body"] == {"schemas": [CORE_USER], "userName": "ada", **active}


def test_unchanged_columns_of_a_whole_row_are_no_change_and_unmapped_ones_never() -> None:
    same = Edit(column="fname", old="Ada", new="Ada")
    change = Change(row=RowId(None, "usr", "idu=7"), op=Op.MODIFY, edits=(same,), positions=((1,),), whole=True)
    assert not list(ScimFormat(settings()).writer(CATALOG)([change]))
    columns = {"login": "userName"}
    assert not list(ScimFormat(settings(columns=columns)).writer(CATALOG)([change]))


def test_a_table_without_a_mapping_is_left_out() -> None:
    change = Change(row=RowId(None, "grp", "idg=1"), op=Op.ADD, positions=((1,),))
    [refusal] = ScimFormat(settings()).writer(CATALOG)([change])
    assert isinstance(refusal, Refusal)
    assert refusal.filtered


@pytest.mark.parametrize(
    "op, edits, words",
    [
        (Op.ADD, new(login="ada", works="maybe"), "is not a truth value"),
        (Op.TRUNCATE, [], "SCIM has no request that empties a table"),
        (Op.ADD, new(login="ad\ud800a"), "half a character"),
    ],
)
def test_what_cannot_be_said_is_refused_with_the_reason(op: Op, edits: list[Edit], words: str) -> None:
    refusal = written(op, *edits)
    assert isinstance(refusal, Refusal)
    assert words in refusal.note


@pytest.mark.parametrize(
    "mapping, words",
    [
        ({"tables": {}}, "names no table|is empty"),
        ({"tables": {"usr": {"columns": {}}}}, r"tables\.usr\.columns is empty"),
        ({"tables": {"usr": {"columns": {"a": "name.familyName"}}}}, "has nothing that goes to userName"),
        ({"tables": {"usr": {"columns": {"a": "userName", "b": "username"}}}}, "two columns that go to username"),
        ({"tables": {"usr": {"columns": {"a": "user name"}}}}, r"columns\.a is 'user name', which is no path"),
        ({"tables": {"usr": {"type": "Role", "columns": {"a": "value"}}}}, r"usr\.type is 'Role'"),
        (
            {"tables": {"grp": {"type": "Group", "delete": "disable", "columns": {"a": "displayName"}}}},
            "only a User can",
        ),
        ({"tables": {"usr": {"unique": "externalId", "columns": {"a": "externalId"}}}}, "servers find nothing by it"),
    ],
)
def test_a_mapping_of_which_no_request_can_be_made_is_refused(mapping: dict[str, Any], words: str) -> None:
    with pytest.raises((ConfigError, msgspec.ValidationError), match=words):
        msgspec.convert(mapping, ScimSettings)


def test_a_request_is_shown_as_people_read_it() -> None:
    [item] = ScimFormat(settings(columns={"login": "userName"})).writer(CATALOG)(
        [Change(row=RowId(None, "usr", "idu=7"), op=Op.ADD, edits=tuple(new(login="ada")), positions=((1,),))]
    )
    assert show_request(item.text).splitlines()[:2] == ["POST /Users", "{"]
    assert '"userName": "ada"' in show_request(item.text)


class TestScimFormat(FormatSuite):
    @pytest.fixture
    def form(self) -> Format:
        mapping = {"tables": {"people": {"columns": {"name": "userName", "id": "externalId"}}}}
        return ScimFormat(msgspec.convert(mapping, ScimSettings))


def test_a_manager_is_called_as_its_row_spells_its_key() -> None:
    usr = Table(
        name="usr", columns=(Column(name="login", key=1, alike=("case",)), Column(name="boss", references="usr"))
    )
    mapping = {"tables": {"usr": {"columns": {"login": "userName", "boss": f"{ENTERPRISE_USER}:manager.value"}}}}
    row = RowId(None, "usr", "login=Ada")
    change = Change(
        row=row, op=Op.MODIFY, edits=(Edit(column="boss", new="BOB"),), positions=((1,),),
        called={RowId(None, "usr", "login=BOB"): "login=Bob"},
    )  # fmt: skip
    [item] = ScimFormat(msgspec.convert(mapping, ScimSettings)).writer(Catalog([usr]))([change])
    assert isinstance(item, Written)
    assert "usr login=Bob" in item.text
    assert "login=BOB" not in item.text
