"""Paths of SCIM, and what resources have there."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventlog.core.errors import ConfigError
from eventlog.sinks.scim.merge import apply_operations, apply_whole, list_changes, write_operations
from eventlog.sinks.scim.paths import ENTERPRISE_USER, Path, get_value, list_values, read_path, set_value

READ = {
    "userName": Path("userName"),
    "urn:ietf:params:scim:schemas:core:2.0:User:userName": Path("userName"),
    "name.givenName": Path("name", "givenName"),
    'emails[type eq "work"].value': Path("emails", "value", (("type", "work"),)),
    'emails[type eq "work" and primary eq true]': Path("emails", "", (("type", "work"), ("primary", True))),
    f"{ENTERPRISE_USER}:manager.value": Path("manager", "value", (), ENTERPRISE_USER),
    'urn:example:2.0:User:badges[kind eq "door"].number': Path(
        "badges", "number", (("kind", "door"),), "urn:example:2.0:User"
    ),
    'emails[value eq "a]b\\"c"]': Path("emails", "", (("value", 'a]b"c'),)),
}


@pytest.mark.parametrize("text", READ)
def test_a_path_is_read_and_written(text: str) -> None:
    path = read_path(text, "here")
    assert path == READ[text]
    assert read_path(str(path), "here") == path


@pytest.mark.parametrize(
    "text",
    ["", "user name", "name.", ".name", "name.a.b", "emails[type]", "emails[type gt 1]", "urn:x", "emails[]", "1a"],
)
def test_what_is_no_path_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ConfigError, match=r"output\.scim\.here is .*"):
        read_path(text, "output.scim.here")


PATHS = [path for path in READ.values() if path.sub or not path.filter]
VALUES = st.one_of(st.none(), st.text(max_size=3), st.booleans())


@st.composite
def resources(draw: st.DrawFn) -> dict[str, Any]:
    resource: dict[str, Any] = {"id": "1", "schemas": ["x"]}
    for path in PATHS:
        set_value(resource, path, draw(VALUES))
    members = draw(st.lists(st.sampled_from("abcd"), unique=True))
    if members:
        resource["members"] = [{"value": member} for member in members]
    return resource


@given(resources(), st.sampled_from(PATHS), VALUES)
def test_what_is_set_is_there_and_all_else_stays(resource: dict[str, Any], path: Path, value: Any) -> None:
    before = copy.deepcopy(resource)
    set_value(resource, path, value)
    assert get_value(resource, path) == value
    others = [other for other in PATHS if other != path and other.attribute != path.attribute]
    assert [get_value(resource, other) for other in others] == [get_value(before, other) for other in others]


def plain(resource: Any) -> Any:
    """Without what says nothing, and without the order of members."""
    if isinstance(resource, dict):
        parts = {key: plain(part) for key, part in resource.items()}
        return {key: part for key, part in parts.items() if part not in (None, {}, [])}
    if isinstance(resource, list):
        return sorted((plain(part) for part in resource), key=repr)
    return resource


@given(resources(), resources())
def test_the_changes_between_two_resources_make_one_of_the_other(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert plain(apply_operations(before, list_changes(before, after))) == plain(after)


@given(resources(), resources())
def test_a_whole_resource_decides_at_its_paths_and_leaves_the_rest(there: dict[str, Any], told: dict[str, Any]) -> None:
    there |= {"nickName": "kept", "phoneNumbers": [{"value": "1"}]}
    after = apply_whole(there, told, PATHS)
    assert [get_value(after, path) for path in PATHS] == [get_value(told, path) for path in PATHS]
    assert (after["nickName"], after["phoneNumbers"], after.get("members")) == (
        "kept",
        [{"value": "1"}],
        there.get("members"),
    )


def test_others_values_of_an_attribute_stay_and_what_a_server_adds_to_ours() -> None:
    there = {"emails": [{"type": "home", "value": "h"}, {"type": "work", "value": "old", "display": "d"}]}
    paths = [read_path('emails[type eq "work"].value', "here")]
    after = apply_whole(there, {"emails": [{"type": "work", "value": "new"}]}, paths)
    assert after["emails"] == [{"type": "home", "value": "h"}, {"type": "work", "value": "new", "display": "d"}]
    assert apply_whole(there, {}, paths)["emails"] == [{"type": "home", "value": "h"}]


def test_what_is_removed_is_found_by_a_filter() -> None:
    removed = {"op": "remove", "path": "members", "value": [{"value": 'a"b'}, {"value": "c", "type": "User"}]}
    assert write_operations([removed]) == [
        {"op": "remove", "path": 'members[value eq "a\\"b"]'},
        {"op": "remove", "path": 'members[value eq "c" and type eq "User"]'},
    ]


def test_values_that_another_path_selects_are_not_those_of_a_path_without_a_filter() -> None:
    urn = "urn:example:2.0:User"
    resource = {
        "emails": [{"type": "work", "value": "a"}, {"value": "b"}, "c"],
        urn: {"badges": [{"number": 1}, {"number": 2}]},
    }
    every, work = (read_path(text, "here") for text in ("emails.value", 'emails[type eq "work"].value'))
    badges = read_path(f"{urn}:badges.number", "here")
    assert list_values(resource, every, []) == ["a", "b", "c"]
    assert list_values(resource, every, [every, work, badges]) == ["b", "c"]
    assert list_values(resource, work, [every, work]) == ["a"]
    assert list_values(resource, badges, [every, work, badges]) == [1, 2]
    assert list_values({}, badges, []) == []
