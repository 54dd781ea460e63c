"""The XML of S3's replies: what is read of it, and that a part of it is never taken for the whole."""

from __future__ import annotations

from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.store.s3_xml import Malformed, parse

LISTING = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\n'
    "  <Name>b</Name>\n  <Prefix/>\n"
    "  <Contents>\n    <Key>k é</Key>\n    <Size>1</Size>\n  </Contents>\n"
    "  <CommonPrefixes><Prefix>p/</Prefix></CommonPrefixes>\n"
    "</ListBucketResult>"
).encode()


def test_a_document_is_its_root_its_values_and_its_rows() -> None:
    found = parse(LISTING)

    assert found.root == "ListBucketResult"
    assert found.values == {"Name": "b", "Prefix": ""}
    assert found.rows == [("Contents", {"Key": "k é", "Size": "1"}), ("CommonPrefixes", {"Prefix": "p/"})]


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]) | st.sampled_from("\t\n&<>\"' ")))
def test_any_text_that_xml_carries_is_read_as_it_was_meant(text: str) -> None:
    body = f"<R><Value>{escape(text)}</Value><Row><Cell>{escape(text)}</Cell></Row></R>".encode()
    found = parse(body)

    assert found.values == {"Value": text}
    assert found.rows == [("Row", {"Cell": text})]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a&amp;b&lt;&gt;&quot;&apos;", "a&b<>\"'"),
        ("&#34;&#x1F642;&#233;", '"🙂é'),
        ("<![CDATA[a<b>&amp;]]>", "a<b>&amp;"),
        ("a<![CDATA[ & ]]>b", "a & b"),
        ("a<!-- not this -->b<?nor this?>c", "abc"),
        ("x" * 100_000, "x" * 100_000),
        ("&#34;" * 5_000, '"' * 5_000),
    ],
    ids=["entities", "numbers", "cdata", "mixed", "comments", "long", "many entities"],
)
def test_however_a_text_is_written_it_is_one(written: str, meant: str) -> None:
    assert parse(f"<R><Row><Cell>{written}</Cell></Row></R>".encode()).rows == [("Row", {"Cell": meant})]


def test_what_nobody_asked_for_changes_nothing() -> None:
    """Owners, checksums and whatever comes next year; above all their names, which repeat those that matter."""
    body = (
        b"<R><New><Deep><Key>no</Key></Deep></New><Row><Owner><ID>no</ID><Key>no</Key></Owner><Key>k</Key>"
        b"<Restore><Size>9</Size></Restore></Row><Empty/><Name>n</Name></R>"
    )
    found = parse(body)
    (row,) = [cells for name, cells in found.rows if name == "Row"]

    assert row == {"Owner": "", "Key": "k", "Restore": ""}
    assert found.values == {"Empty": "", "Name": "n"}


def test_namespaces_are_left_out() -> None:
    found = parse(b'<s:R xmlns:s="http://s3.example/"><s:Row><s:Cell>1</s:Cell></s:Row><s:Value>2</s:Value></s:R>')

    assert (found.root, found.rows, found.values) == ("R", [("Row", {"Cell": "1"})], {"Value": "2"})


def test_blanks_ahead_of_the_declaration_keep_a_connection_alive() -> None:
    assert parse(b"  \n \n" + LISTING) == parse(LISTING)


def test_other_encodings_are_honoured() -> None:
    assert parse("<?xml version='1.0' encoding='iso-8859-1'?><R><V>é</V></R>".encode("latin-1")).values == {"V": "é"}


def test_a_part_is_never_the_whole() -> None:
    for end in range(len(LISTING)):
        with pytest.raises(Malformed):
            parse(LISTING[:end])


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"   ",
        b"not at all",
        b"{}",
        LISTING + b"<more/>",
        b"<a><b></a></b>",
        b"<R><V>&unheard;</V></R>",
        b"<R><V>\xff</V></R>",
        b"<?xml version='1.0' encoding='no-such'?><R/>",
        b"<?xml version='1.0' encoding='shift_jis'?><R/>",
        b"<!DOCTYPE html><html></html>",
        b'<!DOCTYPE R [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><R><V>&b;</V></R>',
    ],
)
def test_what_s3_would_not_send_is_refused(body: bytes) -> None:
    with pytest.raises(Malformed):
        parse(body)
