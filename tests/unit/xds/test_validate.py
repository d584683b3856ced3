"""Validation: each problem in words with its line, and agreement of the words with the RELAX NG grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from eventlog.xds.grammar import grammar_text, vocabulary
from eventlog.xds.validate import Problem, _misfits, validate
from tests.support.shares import met, shares

A = "<association>k=1</association>"
MODEL = "must hold {} in this order; it holds {}."


def problems(event: str) -> list[str]:
    """What is wrong with an event on line 2 of an otherwise good document."""
    found = validate(f'<nds dtdversion="2.0"><input>\n{event}\n</input></nds>'.encode())
    assert {problem.line for problem in found} <= {2}
    return [problem.message for problem in found]


@pytest.mark.parametrize(
    "event",
    [
        f'<add class-name="a">{A}</add>',
        (f'<add class-name="a" event-id="1" src-dn="s" src-entry-id="1" dest-dn="" dest-entry-id="2" template-dn="t"'
        f' timestamp="1" cached-time="2" qualified-src-dn="q">{A}<add-attr attr-name="x" enforce-password-policy="true">'
        '<value type="structured" timestamp="1" naming="true" association-ref="a">text<component name="n" association-ref="b">c'
        '</component></value><value/></add-attr><password a="b"><x/></password><operation-data><y z="1">t</y></operation-data>'
        "<driver-operation-data/></add>"),
        (f'<modify class-name="a" from-merge="true" from-reset="false" password-admin-reset="x">{A}<modify-attr attr-name="b">'
        "<remove-value><value/></remove-value><remove-all-values/><add-value><value/></add-value><remove-all-values/>"
        "</modify-attr></modify>"),
        f'<delete xmlns:jdbc="urn:dirxml:jdbc" jdbc:database-local-time="1">{A}</delete>',
        f'<sync from-move="false">{A.replace(">k", " state=" + repr("associated") + ">k")}<operation-data/></sync>',
        '<status level="success" type="heartbeat"/>',
        ('<status level="error" event-id="1"><description>d</description><jdbc:exception xmlns:jdbc="urn:dirxml:jdbc"'
        ' jdbc:class="c"><jdbc:message>m</jdbc:message></jdbc:exception><a xml:space="preserve"> <add/></a></status>'),
        "",
    ],
)  # fmt: skip
def test_what_the_reference_lists_is_valid(event: str) -> None:
    assert problems(event) == []


@pytest.mark.parametrize(
    "event, expected",
    [
        (f"<add>{A}</add>", "<add> needs the attribute class-name."),
        (f'<add class-name="a" colour="b">{A}</add>', "<add> cannot have the attribute colour."),
        (f'<add class-name="a" xmlns:x="urn:x" x:y="">{A}</add>', "<add> cannot have the attribute {urn:x}y."),
        (f'<add class-name="a" xmlns:x="urn:dirxml:jdbc" x:y="" z="">{A}</add>', "<add> cannot have the attribute z."),
        (f'<add class-name="a">{A}<add-attr><value/></add-attr></add>', "<add-attr> needs the attribute attr-name."),
        (f'<add class-name="a">{A}<add-attr attr-name="b"/></add>', f"<add-attr> {MODEL.format('value+', 'nothing')}"),
        (f'<add class-name="a">{A}{A}</add>', "<add> " + MODEL.format(
            "association?, add-attr*, password?, operation-data?, driver-operation-data?", "association, association")),
        (f'<modify class-name="a">{A}</modify>', "<modify> " + MODEL.format(
            "association?, modify-attr+, operation-data?", "association")),
        (f'<modify class-name="a">{A}<modify-attr attr-name="b"><value/></modify-attr></modify>',
         "<modify-attr> cannot hold <value>."),
        (f'<modify class-name="a">{A}<modify-attr attr-name="b"><remove-all-values>x</remove-all-values></modify-attr></modify>',
         "<remove-all-values> cannot hold text."),
        (f"<delete>{A}x</delete>", "<delete> cannot hold text."),
        (f'<sync from-move="maybe">{A}</sync>', "<sync> has from-move='maybe'; it must be one of true, false."),
        ('<status level="great"/>',
         "<status> has level='great'; it must be one of success, warning, error, retry, fatal."),
        ("<status/>", "<status> needs the attribute level."),
        ("<queries/>", "<queries> is not an element of XDS."),
        ('<query scope="all"/>', "<query> has scope='all'; it must be one of entry, subordinates, subtree."),
        ("<query><search-attr attr-name='a'/></query>", f"<search-attr> {MODEL.format('value+', 'nothing')}"),
        (f"<rename>{A}</rename>", "<rename> " + MODEL.format("association?, new-name, operation-data?", "association")),
        (f"<move>{A}</move>", "<move> " + MODEL.format("association?, parent, operation-data?", "association")),
        (f"<modify-association>{A}</modify-association>", "<modify-association> " + MODEL.format(
            "association, association, operation-data?", "association")),
        (f"<modify-password>{A}</modify-password>", "<modify-password> " + MODEL.format(
            "association?, old-password?, password, operation-data?", "association")),
        ("<instance/>", "<input> cannot hold <instance>."),
        ("<rename><new-name>b</new-name></rename>", "<rename> has no <association>, which every published event needs."),
        ('<x:add xmlns:x="urn:x"/>', "<{urn:x}add> is not an element of XDS."),
        ("<source/>", "<input> cannot hold <source>."),
        (f'<add class-name="a">{A}<add-attr attr-name="b"><value type="text"/></add-attr></add>',
         ("<value> has type='text'; it must be one of string, octet, int, state, dn, time, counter, interval, teleNumber,"
         " className, count, structured.")),
    ],
)  # fmt: skip
def test_a_problem_is_told_in_words(event: str, expected: str) -> None:
    assert problems(event) == [expected]


BOTH = "<association>a</association><association>b</association>"
VALUE = '<value type="string">Jones</value>'


@pytest.mark.parametrize(
    "event",
    [
        ('<query class-name="User" event-id="0" dest-dn="a" scope="subtree"><search-class class-name="User"/>'
         f'<search-attr attr-name="Surname">{VALUE}</search-attr><read-attr attr-name="CN"/><read-parent/></query>'),
        f'<query-ex max-result-count="50" class-name="User">{A}<read-attr type="xml"/><query-token>t</query-token></query-ex>',
        '<query-schema event-id="1"/>',
        f'<rename class-name="User" src-dn="b" old-src-dn="a" remove-old-name="true">{A}<new-name>b</new-name></rename>',
        f'<move class-name="User" old-src-dn="a">{A}<parent src-dn="c"><association>c</association></parent></move>',
        f'<modify-association event-id="1">{BOTH}</modify-association>',
        '<add-association dest-dn="a" dest-entry-id="33">b</add-association><remove-association>b</remove-association>',
        f'<modify-password class-name="User">{A}<old-password>a</old-password><password>b</password></modify-password>',
        '<check-password event-id="0">secret</check-password>',
        f'<check-object-password dest-dn="a">{A}<password>b</password></check-object-password>',
        "<get-named-password>mail</get-named-password>",
        '<init-params src-dn="a"><driver-options><anything b="c"/></driver-options></init-params>',
    ],
)  # fmt: skip
def test_commands_and_questions_of_the_engine_are_known(event: str) -> None:
    assert problems(event) == []
    assert validate(f"<output>{event}</output>".encode()) == []


@pytest.mark.parametrize(
    "reply",
    [
        f'<instance class-name="User" src-dn="a">{A}<parent src-dn="b"/><attr attr-name="CN">{VALUE}</attr></instance>',
        "<query-token>t</query-token>",
        ('<schema-def hierarchical="true" dn-format="slash" application-name="x"><class-def class-name="User" container="false">'
         '<attr-def attr-name="CN" type="string" multi-valued="true" naming="true" required="true"/></class-def></schema-def>'),
    ],
)  # fmt: skip
def test_answers_are_known_and_are_no_input(reply: str) -> None:
    assert validate(f"<output>{reply}<status level='success'/></output>".encode()) == []
    assert problems(reply) != []


def test_publishing_needs_more_than_the_grammar() -> None:
    lacking = "has no <association>, which every published event needs."
    body = '<modify-attr attr-name="b"><remove-all-values/></modify-attr>'
    assert problems('<add class-name="a"/>') == [f"<add> {lacking}"]
    assert problems("<delete><association> \n</association></delete>") == [f"<delete> {lacking}"]
    assert problems("<sync><association/></sync>") == [f"<sync> {lacking}"]
    assert problems(f"<modify>{A}{body}</modify>") == [
        "<modify> has no class-name, which every published modify needs."
    ]
    assert validate(b"<output><delete/></output>") == []


@pytest.mark.parametrize(
    "body, expected",
    [
        ("", Problem(line=1, message="this is not well-formed XML: document is empty.")),
        ("\n<nds>", Problem(line=2, message="this is not well-formed XML: premature end of data in tag nds line 2.")),
        ("<input>\x01</input>", Problem(line=1, message="this is not well-formed XML: PCDATA invalid Char value 1.")),
        ("<!DOCTYPE nds><nds/>", Problem(
            line=1, message="a document type declaration is not accepted; send the document without it.")),
        ("\n<add/>", Problem(line=2, message="a document is <nds>, <input> or <output>, not <add>.")),
        ("<nds dtdversion='2.0'/>", Problem(line=1, message="<nds> must hold source?, (input | output) in this order; it holds nothing.")),
        ("<nds><input/></nds>", Problem(line=1, message="<nds> needs the attribute dtdversion.")),
    ],
)  # fmt: skip
def test_the_document_itself(body: str, expected: Problem) -> None:
    assert validate(body.encode()) == [expected]


def test_problems_come_by_line_however_far_down() -> None:
    body = "<input>" + "\n" * 70_000 + "<queries/>\n\n<add/>\n</input>"
    assert [problem.line for problem in validate(body.encode())] == [70_001, 70_003, 70_003]


def test_a_document_in_an_encoding_that_only_libxml2_knows_has_lines_too() -> None:
    body = '<?xml version="1.0" encoding="GB18030"?>\n<input>\n<queries>中</queries></input>'
    assert [problem.line for problem in validate(body.encode("gb18030"))] == [3]


def test_deep_nesting_is_no_danger() -> None:
    body = b"<input>" + b"<value>" * 2000 + b"</value>" * 2000 + b"</input>"
    assert {problem.message for problem in validate(body)} == {
        "<input> cannot hold <value>.",
        "<value> cannot hold <value>.",
    }


names = st.sampled_from([*vocabulary(), "queries", "{urn:x}y"])
attributes = st.dictionaries(
    st.sampled_from(["class-name", "attr-name", "level", "dtdversion", "name", "type", "state", "from-merge", "x"])
    | st.just("{urn:dirxml:jdbc}x"),
    st.sampled_from(["", "true", " true ", "error", "string", "manual"]),
    max_size=2,
)


@st.composite
def elements(draw: st.DrawFn, name: str, depth: int) -> etree._Element:
    """An element that is often right: required attributes and allowed children are likelier than others."""
    word = vocabulary().get(name)
    element = etree.Element(name)
    for required in word.required if word else ():
        if draw(st.integers(0, 9)):
            element.set(
                required,
                draw(st.sampled_from(word.attributes[required] if word and word.attributes[required] else ["v"])),
            )
    if not draw(st.integers(0, 4)):
        for key, value in draw(attributes).items():
            element.set(key, value)
    if not draw(st.integers(0, 4)):
        element.text = draw(st.sampled_from(["t", " \n", "\xa0"]))
    known = sorted(word.children & set(vocabulary())) if word else []
    likely = st.sampled_from(known) if known else names
    for _ in range(draw(st.integers(0, 3)) if depth and (known or not draw(st.integers(0, 9))) else 0):
        child = draw(elements(draw(likely if draw(st.integers(0, 9)) else names), depth - 1))
        child.tail = draw(st.sampled_from([None, None, None, " ", "t"]))
        element.append(child)
    return element


@shares(valid=0.02, wrong=0.3)
@given(st.sampled_from(["nds", "input", "output"]).flatmap(lambda name: elements(name, 4)))
def test_the_words_find_a_problem_exactly_where_relax_ng_does(root: etree._Element) -> None:
    root = etree.fromstring(etree.tostring(root))  # the tree may hold what comes back different, as no text at all
    valid = etree.RelaxNG(etree.fromstring(grammar_text())).validate(root)
    met(valid=valid and len(root), wrong=not valid)
    assert (list(_misfits(root)) == []) == valid


def test_every_element_of_the_grammar_has_its_definition() -> None:
    grammar = etree.fromstring(grammar_text())
    space = {"r": "http://relaxng.org/ns/structure/1.0"}
    written = {element.get("name") for element in grammar.iterfind(".//r:element[@name]", namespaces=space)}
    vocabulary.cache_clear()  # it was read while tests were collected, and coverage does not look then
    assert written == set(vocabulary())


def test_an_element_that_takes_any_attribute_is_no_problem_beside_one() -> None:
    [said] = problems(f'<add class-name="a" nonsense="1">{A}<password a="b"/></add>')
    assert "nonsense" in said
