"""Properties of the XDS writer: equal to a tree built by lxml, well-formed, read back unchanged, nothing lost."""

from __future__ import annotations

import re

from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree
from msgspec.structs import replace

from eventlog.core.errors import ExpressionError
from eventlog.core.model import ABSENT, Change, Document, Edit, Op, Refusal, RowId
from eventlog.core.schema import Catalog
from eventlog.core.seams import OnValue, encode
from eventlog.xds.validate import validate
from eventlog.xds.values import attribute, check, escape
from eventlog.xds.write import XdsFormat
from tests.support.shares import met, shares
from tests.support.strategies_xds import CATALOG, any_text, changes, xml_text
from tests.support.xds_events import read_events
from tests.support.xds_tree import TreeWriter

formats = st.builds(
    XdsFormat,
    batch_size=st.integers(1, 4),
    time_syntax=st.sampled_from([1, 2, 3]),
    enable_refs=st.booleans(),
    schema_name=st.none() | st.just("dflt,"),
    instance=xml_text,
    envelope=st.booleans(),
)
catalogs = st.sampled_from([CATALOG, None])


def many(*, fit: bool, values_fit: bool | None = None) -> st.SearchStrategy[list[Change]]:
    return st.integers(0, 5).flatmap(
        lambda count: st.tuples(*(changes(n, fit=fit, values_fit=values_fit) for n in range(count))).map(list)
    )


def canonical(element: etree._Element) -> bytes:
    """The canonical form; what stands between the elements of an event is layout."""
    for inner in element.iter():
        if inner.tag not in ("association", "value"):
            inner.text = None
        inner.tail = None
    return etree.tostring(element, method="c14n")


def as_tree(writer: TreeWriter, change: Change) -> bytes | None:
    try:
        return canonical(writer.element(change))
    except (ValueError, ExpressionError):  # lxml answers with ValueError to what XML cannot carry
        return None


def as_text(settings: XdsFormat, change: Change, catalog: Catalog | None) -> bytes | None:
    try:
        text = settings.fragment(change, catalog)
    except ExpressionError:
        return None
    return canonical(etree.fromstring(text.encode(), etree.XMLParser(huge_tree=True)))


@shares(written=0.4, refused=0.03)
@given(formats, st.booleans().flatmap(lambda fit: changes(fit=fit)), catalogs)
def test_the_text_is_what_lxml_would_write(settings: XdsFormat, change: Change, catalog: Catalog | None) -> None:
    text = as_text(settings, change, catalog)
    met(written=text, refused=text is None)
    assert text == as_tree(TreeWriter(settings, catalog), change)


@given(formats, changes(fit=True), catalogs)
def test_a_row_of_columns_that_came_before_is_written_as_the_first(
    settings: XdsFormat, change: Change, catalog: Catalog | None
) -> None:
    """What stands between the values is made once for a set of columns, and used when they come again."""
    added = replace(change, op=Op.ADD)
    again = {as_text(settings, added, catalog) for _ in range(3)}
    assert again == {as_tree(TreeWriter(settings, catalog), added)}


@shares(documents=0.1)
@given(formats, many(fit=False), catalogs)
def test_a_repeated_batch_gives_the_same_documents(
    settings: XdsFormat, told: list[Change], catalog: Catalog | None
) -> None:
    first = list(encode(settings, told, catalog, ""))
    assert list(encode(settings, told, catalog, "later")) == first
    ids = [each.id for each in first if isinstance(each, Document)]
    met(documents=ids)
    assert ids == sorted(set(ids))


@shares(carried=0.1, refused=0.1)
@given(any_text)
def test_exactly_what_lxml_cannot_carry_is_refused(text: str) -> None:
    element = etree.Element("a")
    try:
        element.text = text
    except ValueError:
        carried = False
    else:
        carried = True
    met(carried=carried, refused=not carried)
    try:
        check(text)
    except ExpressionError:
        assert not carried
    else:
        assert carried


NOTHING_LEFT = Change(
    row=RowId("indirect", "usr", "idu=1"),
    op=Op.MODIFY,
    edits=(Edit(column="age", old=ABSENT, new=""),),
    positions=((0,),),
)
"""Its only value cannot be said, so that leaving it out leaves no document."""


@shares(covered=0.3, refused=0.05)
@given(formats, st.booleans().flatmap(lambda fit: many(fit=fit)), catalogs, st.sampled_from(["omit", "refuse-object"]))
@example(XdsFormat(), [NOTHING_LEFT], CATALOG, "omit")
def test_every_change_is_told_once_and_in_order_or_refused_and_documents_are_valid(
    settings: XdsFormat, told: list[Change], catalog: Catalog | None, on_value: OnValue
) -> None:
    chosen = replace(settings, on_value=on_value)
    made = list(encode(chosen, told, catalog, ""))
    documents = [each for each in made if isinstance(each, Document)]
    covered = [each for document in documents for each in document.covers.values()]
    refusals = {each.positions: each for each in made if isinstance(each, Refusal)}
    refused = [each for each in refusals.values() if not each.partial]
    met(covered=covered, refused=refused)

    def is_written(change: Change) -> bool:
        return any(isinstance(each, Document) for each in encode(chosen, [change], catalog, ""))

    ids = [each.event_id for document in documents for each in read_events(document.body)]
    assert ids == [key for document in documents for key in document.covers]
    assert covered == [change.positions for change in told if change.positions in covered]
    for change in told:
        refusal = refusals.get(change.positions)
        if refusal is not None and refusal.partial and change.positions not in covered:
            assert change.op is Op.MODIFY
            assert not any(is_written(replace(change, edits=(edit,))) for edit in change.edits), "nothing was left"
            continue
        assert (change.positions in covered) == (refusal is None or refusal.partial)
    for each in refused:
        assert each.note.encode().decode() == each.note  # a note can be stored and printed anywhere
        assert len(each.note) < 600
    assert all(validate(document.body) == [] for document in documents if settings.envelope)


@shares(covered=0.4, altered=0.02)
@given(formats, many(fit=True, values_fit=False), catalogs, st.sampled_from(["omit", "replace"]))
def test_a_value_that_cannot_be_said_refuses_no_object(
    settings: XdsFormat, told: list[Change], catalog: Catalog | None, on_value: OnValue
) -> None:
    """Only what is wrong with a key or a name refuses a change; each document is valid, and each refusal has its note."""
    made = list(encode(replace(settings, on_value=on_value), told, catalog, ""))
    documents = [each for each in made if isinstance(each, Document)]
    covered = {each for document in documents for each in document.covers.values()}
    refusals = {each.positions: each for each in made if isinstance(each, Refusal)}
    met(covered=covered, altered=any(each.partial for each in refusals.values()))
    for change in told:
        refusal = refusals.get(change.positions)
        assert refusal is not None or change.positions in covered
        if refusal is not None and not refusal.partial:
            assert re.search("the key|the name|nothing to say", refusal.note)
    assert all(validate(document.body) == [] for document in documents if settings.envelope)


@given(xml_text, xml_text)
def test_text_comes_back_from_a_parser_unchanged(content: str, value: str) -> None:
    root = etree.fromstring(f'<a b="{attribute(value)}">{escape(content)}</a>'.encode())
    assert (root.text or "", root.get("b")) == (content, value)
