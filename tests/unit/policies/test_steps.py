"""Each step of a policy: what becomes of a change, of the table, and what is refused at the start."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from eventlog.core import steps
from eventlog.core.errors import ConfigError
from eventlog.core.model import ABSENT, Change, Edit, Op, Refusal, Row, RowId
from eventlog.core.schema import Catalog, Child, Column, Made, Table
from eventlog.core.sql_types import Category
from eventlog.core.steps import Step
from eventlog.policies import Policy
from eventlog.policies.values import decrypted, hashing

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
VIEW = Table(
    name="v",
    view=True,
    columns=(Column(name="pk_idu"), Column(name="sv_fname"), Column(name="mv_no"), Column(name="x")),
)
CATALOG = Catalog([USR, GRP, VIEW])


def change(op: Op = Op.MODIFY, table: str = "usr", key: str = "idu=1", **told: Any) -> Change:
    """A change whose edits are told as `name=(old, new)`, or `name=new` where all former values go."""
    facts = {name: told.pop(name) for name in ("whole", "beside", "created") if name in told}
    edits = [
        Edit(column=name.replace("__", "."), old=value[0], new=value[1])
        if isinstance(value, list)
        else Edit(column=name.replace("__", "."), new=value, reset=True)
        for name, value in told.items()
    ]
    schema = None if table == "v" else "hr"
    return Change(row=RowId(schema, table, key), op=op, edits=tuple(edits), positions=((7,),), **facts)


def told(one: Change, *some: Step) -> dict[str, Any]:
    """What is told of a change: old and new by attribute, or new alone where all former values go."""
    found = Policy(some, CATALOG).tell(one)
    assert isinstance(found, Change), found
    return {edit.column: edit.new if edit.reset else [edit.old, edit.new] for edit in found.edits}


def refused(one: Change, *some: Step) -> Refusal:
    found = Policy(some, CATALOG).tell(one)
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


def test_a_table_that_nobody_described_is_refused_and_not_guessed() -> None:
    unknown = replace(change(), row=RowId(None, "else", "id=1"))
    assert "else is not described" in refused(unknown, steps.Drop(attributes=("fname",))).note
    assert isinstance(Policy((steps.Drop(attributes=("fname",)),), None).tell(change()), Refusal)


@pytest.mark.parametrize("step", [steps.OnlyTables(classes=("grp",)), steps.WithoutTables(classes=("hr.u*",))])
def test_tables_that_are_left_out_are_no_part_of_the_catalog(step: Step) -> None:
    found = refused(change(fname=["a", "b"]), step, steps.Constant(attribute="x", value="y"))
    assert (found.filtered, found.reason) == (True, "filtered")
    assert "the table is left out" in found.note
    catalog = Policy((step,), CATALOG).catalog
    assert catalog is not None
    assert "usr" not in [table.name for table in catalog]
    assert isinstance(Policy((step,), CATALOG).tell(change(table="grp", key="idg=1", fname="x")), Change)


def test_tables_are_meant_by_their_class_too() -> None:
    assert told(change(fname=["a", "b"], lname=["c", "d"]), steps.Drop(classes=("person",), attributes=("lname",))) == {
        "fname": ["a", "b"]
    }
    assert "lname" in told(change(lname=["c", "d"]), steps.Drop(classes=("grp",), attributes=("fname",)))


def test_what_is_kept_is_told_and_the_rest_is_not() -> None:
    keep = steps.Keep(attributes=("fname", "phone.*"))
    assert told(change(fname="a", salary="1", phone__no=("1",)), keep) == {"fname": "a", "phone.no": ("1",)}
    assert set(table_behind(keep).loggable) == {"idu", "fname", "phone.no"}
    assert Policy((steps.Keep(attributes=("*",)),), CATALOG).tell(one := change(fname="a")) is one


def test_a_change_of_nothing_but_what_is_dropped_is_left_out() -> None:
    drop = steps.Drop(attributes=("salary",))
    assert refused(change(salary=["1", "2"]), drop).filtered
    whole = change(fname=["a", "a"], salary=["1", "2"], whole=True)
    assert refused(whole, drop).filtered
    assert told(change(Op.ADD, salary=[ABSENT, "2"]), drop) == {}
    assert told(change(fname=["a", "b"], salary=["1", "2"], whole=True), drop) == {"fname": ["a", "b"]}


def test_what_is_dropped_goes_out_of_what_was_read_beside_too() -> None:
    found = Policy((steps.Drop(attributes=("salary",)),), CATALOG).tell(
        change(fname=["a", "b"], beside={"salary": 1, "lname": "x"})
    )
    assert isinstance(found, Change)
    assert found.beside == {"lname": "x"}
    one = change(fname=["a", "b"], beside={"lname": "x"})
    assert Policy((steps.Drop(attributes=("salary",)),), CATALOG).tell(one) is one


def test_attributes_and_classes_get_other_names_and_associations_stay() -> None:
    rename = steps.Rename(class_name="User", attributes={"fname": "Given Name", "phone.no": "Telephone", "idu": "Id"})
    drop = steps.Drop(attributes=("Given Name",), classes=("usr",))
    assert told(change(fname="a", lname="b", phone__no=("1",)), rename) == {
        "Given Name": "a",
        "lname": "b",
        "Telephone": ("1",),
    }
    assert told(change(fname="a", lname="b"), rename, drop) == {"lname": "b"}
    behind = table_behind(rename, drop)
    assert (behind.class_name, behind.key) == ("User", ("idu",))
    assert "Telephone" in behind.multiple
    assert "Given Name" not in behind.loggable
    assert Policy((steps.Rename(classes=("usr",), class_name="U"),), CATALOG).tell(one := change(fname="a")) is one


def test_columns_of_views_keep_what_their_names_say() -> None:
    rename = steps.Rename(attributes={"fname": "mv_Name", "no": "Telephone"})
    behind = table_behind(rename, steps.Constant(attribute="mv_y", value="1"), name="v")
    assert behind.multiple == {"Telephone"}
    assert behind.key == ("pk_idu",)
    assert {"mv_Name", "Telephone", "pk_idu", "mv_y"} <= set(behind.loggable)


def test_values_are_redacted_and_nothing_stays_nothing() -> None:
    redact = steps.Redact(attributes=("salary", "fname"), value="-")
    assert told(change(fname=["a", None], salary="1", lname="b"), redact) == {
        "fname": ["-", None],
        "salary": "-",
        "lname": "b",
    }
    assert table_behind(redact).loggable["salary"].column.category is Category.STRING


def test_a_hash_is_the_same_for_equal_values_however_they_came() -> None:
    step = steps.Hash(attributes=("idu", "salary", "manager", "phone.no"), secret=SECRET)
    logged = Policy((step,), CATALOG).tell(
        change(salary="1.50", manager="2", phone__no=("1", None), beside={"salary": "1"})
    )
    read = Policy((step,), CATALOG).tell(
        change(salary=Decimal("1.5"), manager=2, phone__no=("1", None), beside={"salary": 1})
    )
    assert logged == read
    assert isinstance(logged, Change)
    assert logged.row.key == f"idu={hashing(SECRET, Category.INT)('1')!s}"
    assert len(logged.row.key) == len("idu=") + 64
    assert logged.beside == {"salary": hashing(SECRET, Category.NUMBER)(1)}
    behind = table_behind(step).loggable
    assert (behind["manager"].column.references, behind["salary"].column.references) == ("usr", None)
    assert "1.5" not in repr(logged)


def test_other_key_columns_stay_and_a_key_that_cannot_be_read_is_refused() -> None:
    step = steps.Hash(attributes=("idu",), secret=SECRET)
    found = Policy((step,), CATALOG).tell(change(key='idu=1+other="a,b"', fname="x"))
    assert isinstance(found, Change)
    assert found.row.key.endswith('+other="a,b"')
    assert "the key cannot be read" in refused(change(key="", fname="x"), step).note
    view = Policy((steps.Hash(attributes=("pk_idu",), secret=SECRET),), CATALOG)
    for key in ("idu=1", "pk_idu=1"):
        one = view.tell(change(table="v", key=key, fname="x"))
        assert isinstance(one, Change)
        assert not one.row.key.endswith("=1")


def test_what_is_encrypted_can_be_read_by_who_has_the_secret() -> None:
    step = steps.Encrypt(attributes=("salary", "fname"), secret=SECRET)
    found = told(change(salary=["1.50", "2"], fname=["x", "x"]), step)
    assert [decrypted(SECRET, "salary", text) for text in found["salary"]] == ["1.5", "2"]
    assert found["fname"][0] == found["fname"][1]
    assert found == told(change(salary=["1.50", "2"], fname=["x", "x"]), step)
    for secret, attribute in (("another secret of tests", "salary"), (SECRET, "fname")):
        with pytest.raises(ValueError, match="not encrypted with this secret"):
            decrypted(secret, attribute, found["salary"][0])


@pytest.mark.parametrize("way, written", [("upper", " AB "), ("lower", " ab "), ("trim", "aB")])
def test_text_is_written_otherwise_and_other_values_are_not(way: Any, written: str) -> None:
    step = steps.Text(attributes=("fname", "salary", "lname"), to=way)
    assert told(change(fname=" aB ", salary=" 1 ", lname=7), step) == {"fname": written, "salary": " 1 ", "lname": 7}


def test_values_are_mapped() -> None:
    yes = steps.Map(attributes=("active",), values={"true": "A", "false": "I"})
    assert told(change(active=["t", False], fname="a"), yes) == {"active": ["A", "I"], "fname": "a"}
    assert told(change(fname=["a", "c"]), steps.Map(attributes=("fname",), values={"a": "b"})) == {"fname": ["b", "c"]}
    other = steps.Map(attributes=("fname",), values={"a": "b"}, otherwise="?")
    assert told(change(fname=["c", None]), other) == {"fname": ["?", None]}


def test_a_constant_is_told_where_an_object_is_told_whole() -> None:
    step = steps.Constant(attribute="origin", value="hr")
    assert told(change(Op.ADD, fname=[ABSENT, "a"]), step)["origin"] == [ABSENT, "hr"]
    assert told(change(fname="a"), step)["origin"] == "hr"
    assert told(change(fname=["a", "b"], whole=True), step)["origin"] == ["hr", "hr"]
    assert told(change(fname=["a", "b"], created=True), step)["origin"] == ["hr", "hr"]
    assert told(change(Op.DELETE, fname=["a", ABSENT]), step)["origin"] == ["hr", ABSENT]
    assert "origin" not in told(change(fname=["a", "b"]), step)
    for silent in (change(Op.DELETE), change(Op.TRUNCATE, key="")):
        assert told(silent, step) == {}
    assert table_behind(step).loggable["origin"].column.type == "varchar"


def test_values_are_joined_with_what_was_read_beside() -> None:
    step = steps.Join(attribute="full", of=("fname", "lname", "phone.no"), separator=", ")
    policy = Policy((step,), CATALOG)
    one = change(fname=["a", "b"])
    assert policy.needs(one) == {"lname", "phone.no"}
    assert policy.needs(change(salary=["1", "2"])) == frozenset()
    assert policy.needs(replace(one, whole=True)) == policy.needs(change(Op.DELETE)) == frozenset()
    assert told(replace(one, beside={"lname": "L", "phone.no": ("1", "2")}), step)["full"] == [
        "a, L, 1, 2",
        "b, L, 1, 2",
    ]
    assert told(change(fname=["a", None]), step)["full"] == ["a", None]
    assert "full" not in told(change(salary=["1", "2"]), step)


def test_values_are_computed_from_before_and_from_after() -> None:
    step = steps.Compute(attribute="pay", expression="new.salary * 12.0", type="numeric(12,2)")
    assert told(change(salary=["1.5", "2.5"]), step)["pay"] == [18.0, 30.0]
    assert told(change(salary=["abc", "2.5"]), step)["pay"] == 30.0
    phones = steps.Compute(attribute="first", expression="new['phone.no'][0]")
    assert told(change(phone__no=("1", "2")), phones)["first"] == "1"
    assert table_behind(step).loggable["pay"].column.category is Category.NUMBER
    text = steps.Compute(attribute="fname", expression="op + ' ' + table + ' ' + string(new['fname'] == 'a') + ''")
    assert told(change(fname=["a", "b"]), text) == {"fname": ["modify usr true", "modify usr false"]}
    for expression, value in (("null", None), ("b'ab'", b"ab"), ("true", "true"), ("7", "7")):
        step = steps.Compute(attribute="x", expression=expression)
        assert told(change(Op.ADD), step)["x"] == [ABSENT, value]


@pytest.mark.parametrize("expression", ["new.fname + 1", "[new.fname]", "new.lname", "int(new.fname)"])
def test_what_cannot_be_computed_is_refused_without_its_values(expression: str) -> None:
    one = change(fname=["a", "taint"], lname=["taint", ABSENT])
    note = refused(one, steps.Compute(attribute="x", expression=expression)).note
    assert "the value of x is not known" in note
    assert "taint" not in note


@pytest.mark.parametrize("expression", ["[new.fname]", "new.fname + 1"])
def test_what_cannot_be_computed_may_be_nothing(expression: str) -> None:
    step = steps.Compute(attribute="x", expression=expression, on_error="null")
    assert told(change(fname=["a", "b"]), step)["x"] == [None, None]


def test_a_condition_is_about_the_row_as_it_is_known() -> None:
    where = steps.Where(condition="new.active == true && old.salary < new.salary")
    policy = Policy((where,), CATALOG)
    one = change(salary=["1", "2"])
    assert policy.needs(one) == {"active"}
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
    found = Policy((steps.Where(condition=condition, on_error=on_error),), CATALOG).tell(
        change(salary=["1", None], fname=["x", "a"])
    )
    assert (outcome == "told") == isinstance(found, Change)
    if isinstance(found, Refusal):
        assert found.filtered == (outcome == "filtered")
        assert "cannot be decided" in found.note


def test_of_a_delete_the_row_that_went_is_looked_at() -> None:
    where = steps.Where(condition="new.fname == 'a'")
    assert told(change(Op.DELETE), where) == {}
    assert told(change(Op.TRUNCATE, key=""), where) == {}
    assert told(change(Op.DELETE, fname=["a", ABSENT]), where) == {"fname": ["a", ABSENT]}
    assert refused(change(Op.DELETE, fname=["b", ABSENT]), where).filtered


def leaving(*, beside: Row | None = None, **told: Any) -> Change | Refusal:
    where = steps.Where(condition="new.fname == 'a'", when_leaving="delete")
    return Policy((where,), CATALOG).tell(replace(change(**told), beside=beside))


def test_who_leaves_is_deleted_and_who_comes_is_told_whole() -> None:
    left = leaving(fname=["a", "b"])
    assert isinstance(left, Change)
    assert (left.op, left.edits) == (Op.DELETE, ())
    unknown = leaving(fname="b")
    assert isinstance(unknown, Change)
    assert unknown.op is Op.DELETE
    never = leaving(fname=["b", "c"])
    assert isinstance(never, Refusal)
    assert never.filtered
    came = leaving(fname=["b", "a"], beside={"lname": "L", "salary": 2})
    assert isinstance(came, Change)
    assert came.op is Op.ADD
    assert {edit.column: edit.new for edit in came.edits} == {"fname": "a", "lname": "L", "salary": 2}
    perhaps = leaving(fname="a", beside={"lname": "L"})
    assert isinstance(perhaps, Change)
    assert perhaps.op is Op.MODIFY
    assert [(edit.column, edit.reset) for edit in perhaps.edits] == [("fname", True), ("lname", True)]
    for same in ({"lname": ["x", "y"], "beside": {"fname": "a"}}, {"fname": ["a", "a"]}):
        found = leaving(**same)
        assert isinstance(found, Change)
        assert found.op is Op.MODIFY


def test_the_key_can_be_looked_at_whatever_it_is_called() -> None:
    rename = steps.Rename(attributes={"idu": "Id", "fname": "Name"}, classes=("usr",))
    join = steps.Join(attribute="both", of=("Id", "Name"), classes=("usr",))
    where = steps.Where(condition="new.Id == 1 && old['Id'] < 2 && new.Name < 'c'", classes=("usr",))
    assert told(change(fname=["a", "b"]), rename, join, where) == {"Name": ["a", "b"], "both": ["1 a", "1 b"]}
    view = steps.Where(condition="new.pk_idu == '1'", classes=("v",))
    for key in ("idu=1", "pk_idu=1"):
        assert told(change(table="v", key=key, fname="x"), view)
    assert "cannot be decided" in refused(change(key="", fname=["a", "b"]), rename, where).note
    assert "cannot be decided" in refused(change(key="?", fname=["a", "b"]), rename, where).note


def test_later_steps_see_what_earlier_ones_have_hidden() -> None:
    hide = steps.Redact(attributes=("fname", "lname"))
    where = steps.Where(condition="new.fname == '***' && new.lname == '***'")
    assert told(change(fname=["a", "b"], beside={"lname": "x"}), hide, where) == {"fname": ["***", "***"]}
    gone = steps.Drop(attributes=("lname",))
    assert "lname is no attribute" in misfit(gone, steps.Where(condition="new.lname == 'x'"))


def test_each_step_that_did_something_can_be_seen() -> None:
    some = (
        steps.Text(attributes=("salary",), to="upper"),
        steps.Redact(attributes=("fname",)),
        steps.WithoutTables(classes=("usr",)),
    )
    found = list(Policy(some, CATALOG).trace(change(fname=["a", "b"])))
    assert [one.step for one in found] == ["2. redact", "3. without"]
    assert isinstance(found[-1].after, Refusal)
    one = change(lname="x")
    assert list(Policy((steps.Keep(attributes=("fname", "lname")),), CATALOG).trace(one)) == []


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
    Policy((steps.Drop(classes=("other",), attributes=("x",)), steps.Drop(attributes=("x",))), CATALOG).check(
        whole=False
    )
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
def test_a_step_that_says_nothing_is_refused(made: Any) -> None:
    with pytest.raises(ConfigError):
        made()
