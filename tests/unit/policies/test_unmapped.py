"""The guard: a column that no step and no mapping names does not leave, whatever a table gets."""

from __future__ import annotations

from typing import Any

import pytest

from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog, Child, Column, Table
from eventlog.policies import steps
from eventlog.policies.bound import Policy
from eventlog.policies.settings import PolicyConfig, steps_of
from eventlog.sinks.outputs import FilesOutput
from eventlog.sinks.scim.plugin import ScimOutput
from eventlog.sinks.scim.settings import ResourceSettings, ScimSettings

CHILD = Child(name="phone", parent_key=("idu",), columns=(Column(name="idu", type="integer"), Column(name="no")))
NAMES = ("login", "mail", "ssn")
USR = Table(
    name="usr",
    schema="hr",
    columns=(Column(name="idu", type="integer", key=1), *(Column(name=name) for name in NAMES)),
    children=(CHILD,),
)
GRP = Table(name="grp", schema="hr", columns=(Column(name="idg", type="integer", key=1), Column(name="name")))
KEEP = steps.Keep(attributes=("login", "mail", "phone.no"), classes=("usr",))
UPPER = steps.Text(attributes=("log*",), to="upper")


def told(output: Any, *, columns: tuple[str, ...] = (*NAMES, "phone.no"), table: str = "usr") -> set[str]:
    """The columns that leave of a change of all of them."""
    policy = Policy(steps_of(output, [PolicyConfig(name="shared", steps=(KEEP,))]), Catalog([USR, GRP]))
    edits = tuple(Edit(column=name, new="x") for name in columns)
    change = Change(row=RowId("hr", table, "idu=1"), op=Op.ADD, edits=edits, positions=((1,),))
    after = policy.apply(change)
    return set() if isinstance(after, Refusal) else {edit.column for edit in after.edits}


def scim(unmapped: Any, *columns: str) -> ScimOutput:
    mapping = ResourceSettings(
        columns={"login": "userName", **{name: f"x{number}" for number, name in enumerate(columns)}}
    )
    return ScimOutput(url="http://x", unmapped=unmapped, scim=ScimSettings(tables={"usr": mapping}))


def test_without_a_guard_all_leave() -> None:
    assert told(FilesOutput(path="x")) == {*NAMES, "phone.no"}


@pytest.mark.parametrize(
    "some,left",
    [
        ((), set()),
        ((UPPER,), set()),
        ((steps.Text(attributes=("login",), to="upper"),), {"login"}),
        ((steps.Rename(attributes={"login": "name"}),), {"name"}),
        ((steps.Rename(attributes={"ssn": "login2", "login": "ssn"}), steps.Drop(attributes=("login2",))), {"ssn"}),
        ((steps.Text(attributes=("phone.no",), to="upper"),), {"phone.no"}),
        ((steps.Constant(attribute="from", value="x"),), {"from"}),
    ],
)
def test_what_a_step_names_leaves_and_nothing_else(some: tuple[Any, ...], left: set[str]) -> None:
    assert told(FilesOutput(path="x", unmapped="drop", steps=some)) == left


def test_steps_of_shared_policies_name_columns_too() -> None:
    assert told(FilesOutput(path="x", unmapped="drop", policies=("shared",))) == {"login", "mail", "phone.no"}


def test_a_mapping_names_its_columns() -> None:
    assert told(scim("drop", "mail")) == {"login", "mail"}


def test_a_table_without_a_mapping_is_not_sent_and_needs_none() -> None:
    assert told(scim("stop", "mail", "ssn", "phone.no"), columns=("name",), table="grp") == {"name"}


@pytest.mark.parametrize("output", [FilesOutput(path="x", unmapped="stop", policies=("shared",)), scim("stop", "mail")])
def test_the_output_stops_with_the_name_of_the_column(output: Any) -> None:
    with pytest.raises(ConfigError, match=r"is named by no mapping and no policy, and unmapped is 'stop'\."):
        told(output)


def test_the_output_goes_on_once_all_are_named() -> None:
    assert told(scim("stop", "mail", "ssn", "phone.no")) == {*NAMES, "phone.no"}
