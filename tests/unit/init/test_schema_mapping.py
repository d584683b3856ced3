"""Schema mappings of the identity engine, as policies."""

from __future__ import annotations

import tomllib

import pytest

from eventlog.config.settings import from_settings
from eventlog.core.errors import ConfigError, DataError
from eventlog.init.schema_mapping import policy_text, read_mapping
from eventlog.policies.steps import Rename


def mapping(*inner: str) -> bytes:
    return f"<rule name='m'><attr-name-map>{''.join(inner)}</attr-name-map></rule>".encode()


def mapped(tag: str, vault: str, name: str, owner: str = "") -> str:
    named = f" class-name='{owner}'" if owner else ""
    return f"<{tag}{named}><nds-name>{vault}</nds-name><app-name> {name} </app-name></{tag}>"


USER = mapped("class-name", "User", "indirect.usr")


def test_classes_and_attributes_get_the_names_of_the_vault() -> None:
    found = read_mapping(
        mapping(
            USER,
            mapped("attr-name", "Given Name", "fname", "User"),
            mapped("attr-name", "Surname", "indirect.usr.lname", "User"),
            mapped("attr-name", "Mail", "usr.mail", "User"),
            mapped("attr-name", "Telephone Number", "indirect.usr_phone.phoneno", "User"),
            mapped("attr-name", "Fax", "usr_fax.faxno", "User"),
            mapped("attr-name", "same", "same", "User"),
            mapped("attr-name", "Description", "descr"),
            mapped("attr-name", "CN", "name", "Printer"),
            mapped("attr-name", "", "nothing", "User"),
            mapped("class-name", "grp", "grp"),
        ),
        "m.xml",
    )
    names = {
        "fname": "Given Name",
        "lname": "Surname",
        "mail": "Mail",
        "usr_phone.phoneno": "Telephone Number",
        "usr_fax.faxno": "Fax",
    }
    assert found == (
        Rename(classes=("indirect.usr",), class_name="User", attributes=names),
        Rename(classes=("grp",), class_name="grp"),
        Rename(classes=("Printer",), attributes={"name": "CN"}),
        Rename(attributes={"descr": "Description"}),
    )
    read = from_settings(tomllib.loads(policy_text("words", found)), {}, origin="test").policy
    assert (read[0].name, read[0].steps) == ("words", found)


def test_what_maps_nothing_is_no_step() -> None:
    assert read_mapping(mapping(mapped("attr-name", "a", "a")), "m.xml") == ()
    assert policy_text("words", ()) == '[[policy]]\nname = "words"\n'


def test_names_are_written_so_that_toml_reads_them() -> None:
    odd = 'a"b\\\u007f\n'
    text = policy_text("words", (Rename(attributes={odd: "x"}),))
    assert tomllib.loads(text)["policy"][0]["steps"][0]["attributes"] == {odd: "x"}
    with pytest.raises(ConfigError):
        policy_text("a/b", ())


@pytest.mark.parametrize(
    "body, said",
    [
        (b"<rule/>", "m.xml holds 0 <attr-name-map>"),
        (b"<a><attr-name-map/><attr-name-map/></a>", "m.xml holds 2 <attr-name-map>"),
        (mapping(USER, mapped("class-name", "Person", "indirect.usr")), "indirect.usr is mapped twice"),
        (mapping(mapped("attr-name", "a", "x"), mapped("attr-name", "a", "y")), "y or a is mapped twice"),
        (mapping(mapped("attr-name", "a", "x"), mapped("attr-name", "b", "x")), "x or b is mapped twice"),
        (b"<a", "Line 1"),
    ],
)
def test_what_is_no_mapping_is_said(body: bytes, said: str) -> None:
    with pytest.raises(DataError) as error:
        read_mapping(body, "m.xml")
    assert said in str(error.value)
