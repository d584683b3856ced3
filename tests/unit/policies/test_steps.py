"""Each step of a policy: what becomes of a change, of the table, and what is refused at the start."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core.errors import ConfigError
from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, Row, RowId
from eventlog.core.schema import Catalog, Child, Column, Made, Table
from eventlog.core.sql_types import Category
from eventlog.policies import steps
from eventlog.policies.bound import Policy
from eventlog.policies.steps import Step
from eventlog.policies.values import decrypt, hashing

SECRET = "a secret of tests only"
USR = Table(
    name="usr",
    schema="hr",
    columns=(
        Column(name="idu", type="integer", key=1),
        Column(name="fname", type="varchar(64)"),
        Column(name="lname", made=Made.DOMAIN),
        Column(name="salary", type="numeric(10,2)"),
        Column(name="active", type="boolean"),
        Column(name="manager", type="integer", references="usr"),
    ),
    children=(
        Child(name="phone", parent_key=("idu",), columns=(Column(name="idu", type="integer"), Column(name="no"))),
    ),
    class_name="person",
)
GRP = Table(name="grp", schema="hr", columns=(Column(name="idg", key=1), Column(name="fname")))
VIEW = Table(name="v", view=True, columns=tuple([Column(name=name) for name in ("pk_idu", "sv_fname", "mv_no", "x")]))
CATALOG = Catalog([USR, GRP, VIEW])


def change(op: Op = Op.MODIFY, table: str = "usr", key: str = "idu=1", **told: Any) -> Change:
    """A change whose edits are told as `name=[old, new]`, or `name=new` where all former values go."""
    facts = {name: told.pop(name) for name in ("whole", "beside", "created") if name in told}
    edits = [
        Edit(column=name.replace("__", "."), old=value[0], new=value[1])
        if isinstance(value, list)
        else Edit(column=name.replace("__", "."), new=value, reset=True)
        for name, value in told.items()
    ]
    schema = None if table == "v" else "hr"
    return Change(row=RowId(schema, table, key), op=op, edits=tuple(edits), positions=((7,),), **facts)


def made_of(one: Change, *some: Step) -> Change:
    found = Policy(some, CATALOG).apply(one)
    assert isinstance(found, Change), found
    return found


def told(one: Change, *some: Step) -> dict[str, Any]:
    """What is told of a change: old and new by attribute, or new alone where all former values go."""
    return {edit.column: edit.new if edit.reset else [edit.old, edit.new] for edit in made_of(one, *some).edits}


def refused(one: Change, *some: Step) -> Refusal:
    found = Policy(some, CATALOG).apply(one)
    assert isinstance(found, Refusal)
    assert found.positions == one.positions
    return found


def table_behind(*some: Step, name: str = "usr") -> Table:
    catalog = Policy(some, CATALOG).catalog
    assert catalog is not None
    found = catalog.class_named(None if name == "v" else "hr", name)
    assert found is not None
    return found


def misfit(*some: Step) -> str:
    with pytest.raises(ConfigError) as error:
        Policy(some, CATALOG).check()
    return str(error.value)


DROP, HIDE = steps.Drop(attributes=("salary",)), steps.Redact(attributes=("fname", "lname"))
KEEP = steps.Keep(attributes=("fname", "phone.*"))
RENAME = steps.Rename(class_name="User", attributes={"fname": "Given Name", "phone.no": "Telephone", "idu": "Id"})
CONSTANT = steps.Constant(attribute="origin", value="hr")
JOIN = steps.Join(attribute="full", of=("fname", "lname", "phone.no"), separator=", ")
PAY = steps.Compute(attribute="pay", expression="new.salary * 12.0", type="numeric(12,2)")
GONE_WITH = change(fname=["a", "b"], beside={"lname": "L", "phone.no": ("1", "2")})


def text(to: Any) -> Step:
    return steps.Text(attributes=("fname", "salary", "lname"), to=to)


def mapped(name: str, values: dict[str, str], **more: Any) -> Step:
    return steps.Map(attributes=(name,), values=values, **more)


TOLD: list[tuple[Change, tuple[Step, ...], dict[str, Any]]] = [
    (change(fname="a", salary="1", phone__no=("1",)), (KEEP,), {"fname": "a", "phone.no": ("1",)}),
    (change(Op.ADD, salary=[ABSENT, "2"]), (DROP,), {}),
    (change(fname=["a", "b"], salary=["1", "2"], whole=True), (DROP,), {"fname": ["a", "b"]}),
    # Tables are meant by their class too.
    (change(fname="a", lname="b"), (steps.Drop(classes=("person",), attributes=("lname",)),), {"fname": "a"}),
    (
        change(fname="a", lname="b"),
        (steps.Drop(classes=("grp",), attributes=("fname",)),),
        {"fname": "a", "lname": "b"},
    ),
    (change(fname="a", phone__no=("1",)), (RENAME,), {"Given Name": "a", "Telephone": ("1",)}),
    (change(fname="a", lname="b"), (RENAME, steps.Drop(attributes=("Given Name",), classes=("usr",))), {"lname": "b"}),
    # Nothing stays nothing where values are hidden.
    (change(fname=["a", None], salary="1"), (HIDE, DROP), {"fname": ["***", None]}),
    (change(fname=" aB ", salary=" 1 ", lname=7), (text("upper"),), {"fname": " AB ", "salary": " 1 ", "lname": 7}),
    (change(fname=" aB "), (text("lower"),), {"fname": " ab "}),
    (change(fname=" aB "), (text("trim"),), {"fname": "aB"}),
    (change(active=["t", False]), (mapped("active", {"true": "A", "false": "I"}),), {"active": ["A", "I"]}),
    (change(fname=["a", "c"]), (mapped("fname", {"a": "b"}),), {"fname": ["b", "c"]}),
    (change(fname=["c", None]), (mapped("fname", {"a": "b"}, otherwise="?"),), {"fname": ["?", None]}),
    # A constant is told where an object is told whole.
    (change(Op.ADD, fname=[ABSENT, "a"]), (CONSTANT,), {"fname": [ABSENT, "a"], "origin": [ABSENT, "hr"]}),
    (change(fname="a"), (CONSTANT,), {"fname": "a", "origin": "hr"}),
    (change(fname=["a", "b"], whole=True), (CONSTANT,), {"fname": ["a", "b"], "origin": ["hr", "hr"]}),
    (change(fname=["a", "b"], created=True), (CONSTANT,), {"fname": ["a", "b"], "origin": ["hr", "hr"]}),
    (change(Op.DELETE, fname=["a", ABSENT]), (CONSTANT,), {"fname": ["a", ABSENT], "origin": ["hr", ABSENT]}),
    (change(fname=["a", "b"]), (CONSTANT,), {"fname": ["a", "b"]}),
    (change(Op.DELETE), (CONSTANT,), {}),
    (change(Op.TRUNCATE, key=""), (CONSTANT,), {}),
    # Values are joined with what was read beside.
    (GONE_WITH, (JOIN,), {"fname": ["a", "b"], "full": ["a, L, 1, 2", "b, L, 1, 2"]}),
    (change(fname=["a", None]), (JOIN,), {"fname": ["a", None], "full": ["a", None]}),
    (change(salary=["1", "2"]), (JOIN,), {"salary": ["1", "2"]}),
    # Values are computed from before and from after.
    (change(salary=["1.5", "2.5"]), (PAY,), {"salary": ["1.5", "2.5"], "pay": [18.0, 30.0]}),
    (change(salary=["abc", "2.5"]), (PAY,), {"salary": ["abc", "2.5"], "pay": 30.0}),
]


@pytest.mark.parametrize("one, some, expected", TOLD)
def test_what_is_told_behind_a_step(one: Change, some: tuple[Step, ...], expected: dict[str, Any]) -> None:
    assert told(one, *some) == expected


@pytest.mark.parametrize(
    "expression, value",
    [
        ("null", None),
        ("b'ab'", b"ab"),
        ("true", "true"),
        ("7", "7"),
        ("new['phone.no'][0]", "1"),
        ("op + ' ' + table + ' ' + string(new['fname'] == 'a')", "add usr true"),
    ],
)
def test_an_expression_has_a_value_of_its_type(expression: str, value: Any) -> None:
    step = steps.Compute(attribute="x", expression=expression)
    assert told(change(Op.ADD, fname=[ABSENT, "a"], phone__no=[ABSENT, ("1", "2")]), step)["x"] == [ABSENT, value]


def test_what_stays_the_same_is_the_same_change() -> None:
    one = change(fname="a", beside={"lname": "x"})
    assert Policy((), CATALOG).apply(one) is one
    assert (Policy((), CATALOG).needs(one), Policy((DROP,), CATALOG).looks(one)) == (frozenset(), {})
    for step in (steps.Keep(attributes=("*",)), steps.Rename(classes=("usr",), class_name="U"), DROP):
        assert Policy((step,), CATALOG).apply(one) is one


def test_a_table_that_nobody_described_is_refused_and_not_guessed() -> None:
    unknown = replace(change(), row=RowId(None, "else", "id=1"))
    assert "else is not described" in refused(unknown, steps.Drop(attributes=("fname",))).note
    assert isinstance(Policy((steps.Drop(attributes=("fname",)),), None).apply(change()), Refusal)


@pytest.mark.parametrize("step", [steps.OnlyTables(classes=("grp",)), steps.WithoutTables(classes=("hr.u*",))])
def test_tables_that_are_left_out_are_no_part_of_the_catalog(step: Step) -> None:
    found = refused(change(fname=["a", "b"]), step, steps.Constant(attribute="x", value="y"))
    assert (found.filtered, found.reason) == (True, "filtered")
    assert "the table is left out" in found.note
    catalog = Policy((step,), CATALOG).catalog
    assert catalog is not None
    assert "usr" not in [table.name for table in catalog]
    assert isinstance(Policy((step,), CATALOG).apply(change(table="grp", key="idg=1", fname="x")), Change)


def test_a_change_of_nothing_but_what_is_dropped_is_left_out() -> None:
    assert refused(change(salary=["1", "2"]), DROP).filtered
    assert refused(change(fname=["a", "a"], salary=["1", "2"], whole=True), DROP).filtered
    assert made_of(change(fname=["a", "b"], beside={"salary": 1, "lname": "x"}), DROP).beside == {"lname": "x"}


def test_tables_are_described_as_they_are_told() -> None:
    assert set(table_behind(KEEP).loggable) == {"idu", "fname", "phone.no"}
    behind = table_behind(RENAME)
    assert (behind.class_name, behind.key, "Telephone" in behind.multiple) == ("User", ("idu",), True)
    assert table_behind(steps.Redact(attributes=("salary",))).loggable["salary"].column.category is Category.STRING
    assert table_behind(CONSTANT).loggable["origin"].column.type == "varchar"
    assert table_behind(PAY).loggable["pay"].column.category is Category.NUMBER


def test_columns_of_views_keep_what_their_names_say() -> None:
    rename = steps.Rename(attributes={"fname": "mv_Name", "no": "Telephone"})
    behind = table_behind(rename, steps.Constant(attribute="mv_y", value="1"), name="v")
    assert behind.multiple == {"Telephone"}
    assert behind.key == ("pk_idu",)
    assert {"mv_Name", "Telephone", "pk_idu", "mv_y"} <= set(behind.loggable)


def test_a_hash_is_the_same_for_equal_values_however_they_came() -> None:
    step = steps.Hash(attributes=("idu", "salary", "manager", "phone.no"), secret=SECRET)
    logged = made_of(change(salary="1.50", manager="2", phone__no=("1", None), beside={"salary": "1"}), step)
    read = made_of(change(salary=Decimal("1.5"), manager=2, phone__no=("1", None), beside={"salary": 1}), step)
    assert logged == read
    assert logged.row.key == f"idu={hashing(SECRET, Category.INT)('1')!s}"
    assert len(logged.row.key) == len("idu=") + 64
    assert logged.beside == {"salary": hashing(SECRET, Category.NUMBER)(1)}
    behind = table_behind(step).loggable
    assert (behind["manager"].column.references, behind["salary"].column.references) == ("usr", None)
    assert "1.5" not in repr(logged)


def test_other_key_columns_stay_and_a_key_that_cannot_be_read_is_refused() -> None:
    step = steps.Hash(attributes=("idu",), secret=SECRET)
    assert made_of(change(key='idu=1+other="a,b"', fname="x"), step).row.key.endswith('+other="a,b"')
    assert "the key cannot be read" in refused(change(key="", fname="x"), step).note
    of_view = steps.Hash(attributes=("pk_idu",), secret=SECRET)
    for key in ("idu=1", "pk_idu=1"):
        assert not made_of(change(table="v", key=key, fname="x"), of_view).row.key.endswith("=1")


def test_what_is_encrypted_can_be_read_by_who_has_the_secret() -> None:
    step = steps.Encrypt(attributes=("salary", "fname"), secret=SECRET)
    found = told(change(salary=["1.50", "2"], fname=["x", "x"]), step)
    assert [decrypt(SECRET, "salary", text) for text in found["salary"]] == ["1.5", "2"]
    assert found["fname"][0] == found["fname"][1]
    assert found == told(change(salary=["1.50", "2"], fname=["x", "x"]), step)
    for secret, attribute in (("another secret of tests", "salary"), (SECRET, "fname")):
        with pytest.raises(ValueError, match="not encrypted with this secret"):
            decrypt(secret, attribute, found["salary"][0])


LEAVING = steps.Where(condition="new.fname == 'a'", when_leaving="delete")
ALL_BUT_FNAME = USR.attribute_names - {"fname"}


@pytest.mark.parametrize(
    "step, one, needed",
    [
        (JOIN, change(fname=["a", "b"]), {"lname", "phone.no"}),
        (JOIN, change(salary=["1", "2"]), set()),
        (JOIN, change(fname=["a", "b"], whole=True), set()),
        (JOIN, change(Op.DELETE), set()),
        (steps.Where(condition="new.active == true"), change(salary=["1", "2"]), {"active"}),
        # For an object that comes, everything is read.
        (LEAVING, change(fname=["b", "a"]), ALL_BUT_FNAME),
        (LEAVING, change(lname=["b", "a"]), {"fname"}),
        (steps.Where(condition="size(new) > 1 && 'new.nothing' != ''"), change(fname=["a", "b"]), ALL_BUT_FNAME),
    ],
)
def test_what_is_read_beside_a_change(step: Step, one: Change, needed: set[str]) -> None:
    assert Policy((step,), CATALOG).needs(one) == needed


@pytest.mark.parametrize("expression", ["new.fname + 1", "[new.fname]", "new.lname", "int(new.fname)"])
def test_what_cannot_be_computed_is_refused_without_its_values(expression: str) -> None:
    one = change(fname=["a", "taint"], lname=["taint", ABSENT])
    note = refused(one, steps.Compute(attribute="x", expression=expression)).note
    assert "the value of x is not known" in note
    assert "taint" not in note


@pytest.mark.parametrize("expression", ["[new.fname]", "new.fname + 1"])
def test_what_cannot_be_computed_may_be_nothing(expression: str) -> None:
    silent = steps.Compute(attribute="x", expression=expression, on_error="null")
    assert told(change(fname=["a", "b"]), silent)["x"] == [None, None]


def test_a_condition_is_about_the_row_as_it_is_known() -> None:
    where = steps.Where(condition="new.active == true && old.salary < new.salary")
    one = change(salary=["1", "2"])
    assert told(replace(one, beside={"active": True}), where) == {"salary": ["1", "2"]}
    assert refused(replace(one, beside={"active": False}), where).filtered
    assert not refused(one, where).filtered
    gone = refused(replace(one, beside={}), where)
    assert gone.filtered
    assert "its object is gone" in gone.note


@pytest.mark.parametrize("on_error, outcome", [("tell", "told"), ("leave-out", "filtered"), ("refuse", "refused")])
@pytest.mark.parametrize("condition", ["new.salary > 1", "new.fname", "new.fname == 'a' && new.salary > 1"])
def test_a_condition_that_cannot_be_decided_has_the_outcome_that_was_said(
    condition: str, on_error: Any, outcome: str
) -> None:
    step = steps.Where(condition=condition, on_error=on_error)
    found = Policy((step,), CATALOG).apply(change(salary=["1", None], fname=["x", "a"]))
    assert (outcome == "told") == isinstance(found, Change)
    if isinstance(found, Refusal):
        assert found.filtered == (outcome == "filtered")
        assert "cannot be decided" in found.note


def test_of_a_delete_the_row_that_went_is_looked_at() -> None:
    where = steps.Where(condition="new.fname == 'a'")
    assert told(change(Op.DELETE), where) == told(change(Op.TRUNCATE, key=""), where) == {}
    assert told(change(Op.DELETE, fname=["a", ABSENT]), where) == {"fname": ["a", ABSENT]}
    assert refused(change(Op.DELETE, fname=["b", ABSENT]), where).filtered


KNOWN: Row = {"lname": "L", "salary": 2}


@pytest.mark.parametrize(
    "one, op, expected",
    [
        (change(fname=["a", "b"]), Op.DELETE, {}),
        (change(fname="b"), Op.DELETE, {}),
        (change(fname=["b", "a"], beside=KNOWN), Op.ADD, {"fname": "a", **KNOWN}),
        (change(fname="a", beside={"lname": "L"}), Op.MODIFY, {"fname": "a", "lname": "L"}),
        (change(lname=["x", "y"], beside={"fname": "a"}), Op.MODIFY, {"lname": "y"}),
        (change(fname=["a", "a"]), Op.MODIFY, {"fname": "a"}),
    ],
)
def test_who_leaves_is_deleted_and_who_comes_is_told_whole(one: Change, op: Op, expected: dict[str, Any]) -> None:
    found = made_of(one, LEAVING)
    assert (found.op, {edit.column: edit.new for edit in found.edits}) == (op, expected)
    assert refused(change(fname=["b", "c"]), LEAVING).filtered


def test_the_key_can_be_looked_at_whatever_it_is_called() -> None:
    rename = steps.Rename(attributes={"idu": "Id", "fname": "Name"}, classes=("usr",))
    join = steps.Join(attribute="both", of=("Id", "Name"), classes=("usr",))
    where = steps.Where(condition="new.Id == 1 && old['Id'] < 2 && new.Name < 'c'", classes=("usr",))
    assert told(change(fname=["a", "b"]), rename, join, where) == {"Name": ["a", "b"], "both": ["1 a", "1 b"]}
    of_view = steps.Where(condition="new.pk_idu == '1'", classes=("v",))
    assert all(told(change(table="v", key=key, fname="x"), of_view) for key in ("idu=1", "pk_idu=1"))
    for key in ("", "?"):
        assert "cannot be decided" in refused(change(key=key, fname=["a", "b"]), rename, where).note


def test_later_steps_see_what_earlier_ones_have_hidden() -> None:
    where = steps.Where(condition="new.fname == '***' && new.lname == '***'")
    assert told(change(fname=["a", "b"], beside={"lname": "x"}), HIDE, where) == {"fname": ["***", "***"]}
    gone = steps.Drop(attributes=("lname",))
    assert "lname is no attribute" in misfit(gone, steps.Where(condition="new.lname == 'x'"))


def test_each_step_that_did_something_can_be_seen() -> None:
    some = (steps.Text(attributes=("salary",), to="upper"), HIDE, steps.WithoutTables(classes=("usr",)))
    found = list(Policy(some, CATALOG).trace(change(fname=["A", "B"])))
    assert [one.step for one in found] == ["2. redact", "3. without"]
    assert isinstance(found[-1].after, Refusal)
    assert list(Policy((steps.Keep(attributes=("lname",)),), CATALOG).trace(change(lname="x"))) == []


@pytest.mark.parametrize(
    "step, said",
    [
        (steps.Drop(attributes=("salry",)), "Step 1 (do = 'drop'): salry is no attribute. Did you mean salary?"),
        (steps.Drop(classes=("usrr",), attributes=("salary",)), "usrr is no table. Did you mean usr?"),
        (steps.Rename(attributes={"fnam": "x"}), "fnam is no attribute"),
        (steps.Where(condition="new.fnam == 'x'"), "fnam is no attribute. Did you mean fname?"),
        (steps.Join(attribute="x", of=("fnam",)), "fnam is no attribute"),
        (steps.Drop(attributes=("idu",)), "idu is a key column of hr.usr"),
        (steps.Redact(attributes=("id*",)), "is a key column"),
        (steps.Encrypt(attributes=("idu",), secret=SECRET), "is a key column"),
        (steps.Map(attributes=("idu",), values={}), "is a key column"),
        (steps.Text(attributes=("idu",), to="upper"), "is a key column"),
        (steps.Constant(attribute="idu", value="x"), "is a key column"),
        (steps.Join(attribute="idu", of=("fname",)), "is a key column"),
        (steps.Compute(attribute="idu", expression="1"), "is a key column"),
        (steps.Rename(attributes={"fname": "lname"}), "hr.usr has an attribute lname already"),
        (steps.Where(condition="nwe.x == 1"), "undeclared reference to 'nwe.x'"),
        (steps.Where(condition="new.fname =="), "CEL cannot read the expression"),
    ],
)  # fmt: skip
def test_what_a_policy_cannot_mean_is_said_at_the_start(step: Step, said: str) -> None:
    assert said in misfit(step)


def test_of_a_part_of_the_tables_only_what_is_certain_is_said() -> None:
    some = (steps.Drop(classes=("other",), attributes=("x",)), steps.Drop(attributes=("x",)))
    Policy(some, CATALOG).check(whole=False)
    with pytest.raises(ConfigError, match="x is no attribute"):
        Policy((steps.Drop(classes=("usr",), attributes=("x",)),), CATALOG).check(whole=False)


@pytest.mark.parametrize(
    "made",
    [
        steps.OnlyTables,
        steps.WithoutTables,
        lambda: steps.Join(attribute="x", of=()),
        steps.Rename,
        lambda: steps.Rename(attributes={"a": "x", "b": "x"}),
        lambda: steps.Rename(attributes={"a": ""}),
        lambda: steps.Hash(attributes=("a",), secret="short"),
    ],
)
def test_a_step_that_says_nothing_is_refused(made: Callable[[], Step]) -> None:
    with pytest.raises(ConfigError):
        made()
