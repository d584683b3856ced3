"""Policies in the configuration: whose steps an output has, and what is refused, with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from eventlog.config.build import outputs_of
from eventlog.config.settings import Config, load
from eventlog.core.errors import ConfigError
from eventlog.core.model import Change, Edit, Op, RowId
from eventlog.core.secrets import secret_paths
from eventlog.policies.bound import PolicyFormat
from eventlog.policies.plugin import needs_of
from eventlog.policies.settings import line_of, steps_of
from eventlog.policies.steps import Lookup, PlacedRoute
from eventlog.streams.stream_session import refuse_lookups
from eventlog.xds.write import XdsFormat
from tests.support.strategies import CATALOG

FILE = """\
[[output]]
sink = "stdout"
policies = ["words", "hidden"]

[[output.steps]]
do = "drop"
attributes = ["lname"]

[[policy]]
name = "hidden"

[[policy.steps]]
do = "hash"
attributes = ["Name"]
secret = "${KEY}"

[[policy]]
name = "words"

[[policy.steps]]
do = "rename"
attributes = { fname = "Name" }

[[policy.steps]]
do = "text"
attributes = ["Name"]
to = "upper"
"""
SECRET = "a secret of tests only"


def loaded(folder: Path, text: str = FILE) -> Config:
    file = folder / "my.toml"
    file.write_text(text)
    return load(file, {"KEY": SECRET})


def test_an_output_has_the_steps_of_its_policies_and_then_its_own(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    tags = [step.__struct_config__.tag for step in steps_of(config.output[0], config.policy)]
    assert tags == ["rename", "text", "hash", "drop"]
    assert SECRET in {secret for _, secret in secret_paths(config)}
    assert SECRET not in repr(config)


@pytest.mark.parametrize(
    "line, instead, said",
    [
        ('do = "drop"', 'do = "drpo"', "my.toml, line 5: 'drpo' is nothing that a step can do. Did you mean drop?"),
        ('do = "drop"\n', "", "my.toml, line 5: a step has no `do`"),
        ('to = "upper"', 'two = "upper"', "my.toml, line 24: two is no key of a step with do = 'text'"),
        ('to = "upper"', 'to = "UPPER"', "my.toml: policy[1].steps[1].to takes lower, trim, upper."),
        ('secret = "${KEY}"', 'secrt = "${KEY}"', "my.toml, line 12: secrt is no key of a step with do = 'hash'"),
        ('"words", "hidden"', '"wrods"', "An output names the policy wrods, and there is none. Did you mean words?"),
        ('name = "hidden"', 'name = "words"', "Two policies are called words."),
        ('name = "hidden"', 'name = "a/b"', "policy.name is 'a/b'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, line: str, instead: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        loaded(tmp_path, FILE.replace(line, instead, 1))
    assert said in str(error.value)
    assert SECRET not in str(error.value)


def test_a_step_may_be_written_in_a_line_and_then_has_no_line_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"my.toml: 'x' is nothing"):
        loaded(tmp_path, '[[output]]\nsink = "stdout"\nsteps = [{ do = "x" }]\n')
    with pytest.raises(ConfigError, match="steps"):
        loaded(tmp_path, '[[output]]\nsink = "stdout"\nsteps = ["x"]\n')
    with pytest.raises(ConfigError, match="steps"):
        loaded(tmp_path, '[[output]]\nsink = "stdout"\nsteps = "x"\n')
    assert line_of("[[policy]]\n[[output]]\n", "output", 0, 0) == ""


def test_where_there_is_no_policy_it_is_said_how_one_is_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="policy words, and there is none") as error:
        loaded(tmp_path, '[[output]]\nsink = "stdout"\npolicies = ["words"]\n')
    assert str(error.value.hint).startswith("Write it as [[policy]]")


def test_an_output_that_routes_knows_the_places_of_its_sink(tmp_path: Path) -> None:
    config = loaded(
        tmp_path, '[[output]]\nsink = "files"\npath = "out"\n[[output.steps]]\ndo = "route"\nto = "{table}"\n'
    )
    [step] = steps_of(config.output[0], config.policy)
    assert isinstance(step, PlacedRoute)


def test_a_stream_has_no_tables_to_look_in(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        '[[output]]\nsink = "stdout"\n[[output.steps]]\ndo = "lookup"\nattribute = "x"\nof = "a"\ntable = "t"\ntake = "b"\n',
    )
    with pytest.raises(ConfigError, match="a stream has no database to read them from"):
        refuse_lookups(config)


def test_a_step_for_what_is_not_there_is_its_outputs_fault(tmp_path: Path) -> None:
    config = loaded(tmp_path, FILE.replace('attributes = ["lname"]', 'attributes = ["lnmae"]'))
    needs = needs_of([("hr", steps_of(config.output[0], config.policy))], CATALOG)
    assert list(needs.faults) == ["hr"]
    assert "lnmae is no attribute" in needs.faults["hr"].message


def changed(**edits: str) -> Change:
    told = tuple([Edit(column=name, old="a", new=new) for name, new in edits.items()])
    return Change(row=RowId(None, "usr", "idu=1"), op=Op.MODIFY, edits=told, positions=((1,),))


def test_a_format_writes_what_the_policy_leaves_and_nothing_else(tmp_path: Path) -> None:
    config = loaded(tmp_path)
    form = PolicyFormat(XdsFormat(), steps_of(config.output[0], config.policy))
    [first] = form.writer(CATALOG)([changed(fname="b", lname="taint")])
    [second] = form.writer(CATALOG)([changed(fname="b", lname="taint")])
    assert first == second
    assert 'attr-name="Name"' in first.text
    assert "taint" not in first.text
    [document] = form.bind([first], "")
    assert document.covers == {"1": ((1,),)}
    refused, written, last = form.writer(CATALOG)([changed(lname="taint"), changed(fname="b"), changed(lname="x")])
    assert (refused.filtered, written.event_id, last.filtered) == (True, "1", True)


def test_a_format_stands_behind_the_steps_only_where_there_are_any(tmp_path: Path) -> None:
    [output] = outputs_of(loaded(tmp_path))
    assert isinstance(output.format, PolicyFormat)
    assert output.format.suffix == ".xml"
    assert output.format.heartbeat() == XdsFormat().heartbeat()
    [plain] = outputs_of(loaded(tmp_path, '[[output]]\nsink = "stdout"\n'))
    assert isinstance(plain.format, XdsFormat)


def test_what_policies_need_is_asked_for_together(tmp_path: Path) -> None:
    config = loaded(
        tmp_path,
        '[[output]]\nsink = "stdout"\n[[output.steps]]\ndo = "join"\nattribute = "full"\nof = ["fname", "lname"]\n',
    )
    mine = steps_of(config.output[0], config.policy)
    needs, looks, _ = needs_of([("a", ()), ("b", mine)], CATALOG)
    assert needs is not None
    assert needs(changed(fname="b")) == {"lname"}
    assert looks is None
    assert needs_of([("a", ())], CATALOG)[:2] == (None, None)
    look = Lookup(attribute="found", of="fname", table="usr", take="lname")
    needs, looks, _ = needs_of([("a", (look,)), ("b", mine), ("c", (replace(look, take="fname"),))], CATALOG)
    assert needs is not None
    assert looks is not None
    assert needs(changed(fname="b")) == {"lname"}
    assert looks(changed(fname="b")) == {
        f"usr.{name}[idu={key}]": (RowId(None, "usr", f"idu={key}"), name)
        for key in "ab"
        for name in ("fname", "lname")
    }
