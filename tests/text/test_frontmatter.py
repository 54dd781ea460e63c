"""Front matter is split and joined without loss, and safe to read from anybody."""

from __future__ import annotations

import time

import frontmatter as python_frontmatter
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from livememfs.text import frontmatter
from livememfs.text.frontmatter import FrontMatterError, join, split

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**200), 10**200)
    | st.floats(allow_nan=False)
    | st.text(max_size=20)
    | st.sampled_from(
        ["no", "yes", "null", "~", "true", "12:30", "2026-02-20", "007", "1e5", "0x1f", "", "- a", "a: b"]
    )
)
names = st.text(max_size=20) | st.sampled_from(["null", "true", "no", "<<", "=", "? ", "a: b", "#", "---"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
metadata = st.dictionaries(names, values, max_size=5)
bodies = st.text() | st.lists(
    st.sampled_from(["---\n", "---\r\n", "\n", "\r\n", "--- \n", "a: 1\n", "text", "\ufeff", "\r", "\u2028"]),
    max_size=8,
).map("".join)


@given(metadata, bodies)
def test_what_was_joined_splits_into_the_same(data: dict[str, object], body: str) -> None:
    assert split(join(data, body)) == (data, body)


@given(bodies)
def test_reading_never_fails_but_with_its_own_error(text: str) -> None:
    try:
        fields, body = split(text)
    except FrontMatterError:
        return
    assert text.endswith(body)
    assert fields or body == text or text.startswith("---")


def test_the_form_is_that_of_the_data_model() -> None:
    data = {"timestamp": "2026-02-20T14:00:00Z", "tags": ["auth", "é"], "count": 42, "x": None}

    assert join({**data, "on": True, "d": {"k": 0.5}}, "Body\n") == (
        '---\ntimestamp: "2026-02-20T14:00:00Z"\ntags: ["auth", "é"]\ncount: 42\nx: null\n"on": true\nd: {k: 0.5}\n'
        "---\n\nBody\n"
    )


def test_without_metadata_the_text_is_the_body() -> None:
    assert join({}, "plain\n") == "plain\n"
    assert split("plain\n") == ({}, "plain\n")


def test_a_body_that_looks_like_front_matter_is_fenced_off() -> None:
    body = "---\nagent: x\n---\n"

    assert split(join({}, body)) == ({}, body)


def test_scalars_mean_what_whoever_wrote_them_meant() -> None:
    kept = {"d": "2026-02-20", "t": "2026-02-20T14:00:00Z", "n": "no", "h": "12:30", "z": "007", "e": "12345678e9"}
    text = "".join(f"{name}: {value}\n" for name, value in {**kept, "f": "1.5", "i": "-3", "v": ""}.items())

    assert split(f"---\n{text}---\n")[0] == {**kept, "f": 1.5, "i": -3, "v": None}


@pytest.mark.parametrize(
    ("text", "data", "body"),
    [
        ("---\na: 1\n---\nbody", {"a": 1}, "body"),
        ("---\na: 1\n---\n\nbody", {"a": 1}, "body"),
        ("---\na: 1\n---\n\n\nbody", {"a": 1}, "\nbody"),
        ("---\r\na: 1\r\n---\r\n\r\nbody\r\n", {"a": 1}, "body\r\n"),
        ("--- \na: 1\n---\t\nbody", {"a": 1}, "body"),
        ("---\na: 1\n---", {"a": 1}, ""),
        ("---\n---\nbody", {}, "body"),
        ("---\n# a comment\n---\nbody", {}, "body"),
        ("---\na: |\n  two\n  lines\n---\n", {"a": "two\nlines\n"}, ""),
        ("---\na:\n- x\n- y\n---\n", {"a": ["x", "y"]}, ""),
        ("---\n1: x\ntrue: y\n---\n", {"1": "x", "true": "y"}, ""),
        ('---\na: "\\ud83d\\ude00"\n---\n', {"a": "\U0001f600"}, ""),
        ('---\na: "\\ud83d"\n---\n', {"a": "\ufffd"}, ""),
        ("---\n\ntext after a rule\n", {}, "---\n\ntext after a rule\n"),
        ("----\na: 1\n---\n", {}, "----\na: 1\n---\n"),
        (" ---\na: 1\n---\n", {}, " ---\na: 1\n---\n"),
        ("", {}, ""),
        ("---", {}, "---"),
    ],
)
def test_foreign_shapes(text: str, data: dict[str, object], body: str) -> None:
    assert split(text) == (data, body)


@pytest.mark.parametrize(
    "block",
    [
        "just a line between two rules",
        "- a\n- list",
        "a: [1, 2",
        "a: 1\na: 2",
        "a:\n\tb: 1",
        "a: &x 1\nb: *x",
        "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]",
        "a: " + "[" * 60 + "]" * 60,
        "a: " + "[" * 5_000,
        "? [a, b]\n: 1",
        "a: !!python/object/apply:os.system [ls]",
        "a: !!binary aGVsbG8=",
        "a: !!timestamp 2026-02-20",
        "a: !mine 1",
        "a: 1\n...\nb: 2",
        "a: \x07",
        '"unclosed: 1',
        "k" * 200 + ": 1",
        "a: " + "x" * frontmatter.MAX_BLOCK_CHARS,
        "a: 1\n" * 200_000,
    ],
)
def test_what_must_not_be_taken_as_metadata_is_refused(block: str) -> None:
    with pytest.raises(FrontMatterError):
        split(f"---\n{block}\n---\nbody")


def test_a_large_hostile_block_costs_little() -> None:
    """A megabyte is refused by its length, not by reading it."""
    before = time.process_time()
    with pytest.raises(FrontMatterError):
        split("---\n" + "a: {b: [c, d]}\n" * 70_000 + "---\n")

    assert time.process_time() - before < 0.5


@pytest.mark.parametrize("fields", [{"a": "x" * frontmatter.MAX_BLOCK_CHARS}, {"k" * 200: 1}], ids=["block", "key"])
def test_nothing_is_written_that_would_not_be_read(fields: dict[str, object]) -> None:
    with pytest.raises(FrontMatterError):
        join(fields, "")


# --- our own form is read without YAML ------------------------------------------------------------------------

pieces = st.sampled_from(
    [
        "a: ", "b: ", "yes: ", "a", '"', '"x"', '"y z"', "[", "]", "[]", ", ", ",", "\n", "\n", " ", "\\", "'", "#",
        "é", "\t", ":", "é\U0001f600", "\u2028", "\ufeff",
    ]
)  # fmt: skip


@given(st.lists(pieces, max_size=14).map("".join))
@example('a: "x"\n')
@example('a: "x"\na: "y"\n')
@example('a: ["x", "y z"]\nb: []\n')
@example('a: " x "\n')
@example('a: ["x",  "y"]\n')
@example('a: ["x", ]\n')
@example("a: 0.6\nb: 10\nc: 007\nd: 1.0\n")
@example("a: 0.1234567890123456\nb: 12345678901234567\n")
@example('a: {b: ["x: []", "y"], c: []}\n')
@example('a: {b: ["x"], b: ["y"]}\n')
@example('a: {no: ["x"]}\n')
@example("a: {}\n")
@settings(max_examples=8 * settings.default.max_examples)
def test_a_short_cut_reads_what_yaml_reads(block: str) -> None:
    known = frontmatter._as_we_write(block)

    if known is not None:
        assert repr(known) == repr(frontmatter._load(block))


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        st.text(max_size=20)
        | st.lists(st.text(max_size=9), max_size=3)
        | st.integers()
        | st.floats(min_value=0, max_value=1)
        | st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.lists(st.text(max_size=9), max_size=3)),
        min_size=1,
    )
)
def test_what_we_write_is_read_alike_with_and_without_yaml(data: dict[str, object]) -> None:
    block = join(data, "").removeprefix("---\n").removesuffix("---\n\n")

    assert frontmatter._as_we_write(block) in (None, frontmatter._load(block))


# --- libyaml and PyYAML's own parser read alike ---------------------------------------------------------------

BLOCKS = [
    "title: A note by hand\ntags:\n- one\n- two\n# a comment\ncreated: 2026-02-20\nflags: [no, 12:30, 007, 1.5, ~]\n",
    "a: |\n  two\n  lines\nb: >-\n  folded\n  text\n\nc: 'it''s'\nd: \"x\\n\\u00e9 \\\n  y\"\n",
    "a: {b: [c, d], e: {f: 0x1f}}\n? g\n: h\n",
    "a: {b:c}\nd: [e:f, g]\nh: http://x#y\n",
    "a: \tb\n",
    "a: [b?]\nc: |#x\nd: ! #x\n",
    "\ufeffa: 1\n",
    'a: "\\ud83d\\ude00"\n',
    "a: &x 1\nb: !!str 2\n",
    "a: b\x85c: d\u2028e: f\rg: h\r\n",
]
YAML_PIECES = [
    "a", "a: ", "b: ", ": ", ":", "- ", "? ", "?", ",", "[", "]", "{", "}", "{a:1}", "#", " #x", "&a ", "!", "!!str ",
    "|", "|\n", ">-\n", "|2\n", "'", "''", '"', '""', "\\", "\\n", "\\x41", "\\ud83d", "%", "@", "~", "<<", "...",
    "\n...\n", "\n---\n", " ", "\n", "\n  ", "\n- ", "\r\n", "\t", "\x85", "\u2028", "\xa0", "\x7f", "\ufeff", "é",
    "\U0001f600", "\0", "no", "12:30", "007", "1e+5", "null", "true", "http://x", "a:b", "x#y", "it's",
    "%YAML 1.1\n", "\ud800",
]  # fmt: skip


def read_with(block: str, loader: type[frontmatter._Loader] | None) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frontmatter, "_C_LOADER", loader)
        try:
            return repr(frontmatter._load(block))
        except FrontMatterError as error:
            return str(error)


@given(st.sampled_from(BLOCKS) | st.lists(st.sampled_from(YAML_PIECES), max_size=12).map("".join))
@settings(max_examples=8 * settings.default.max_examples)
def test_a_block_means_the_same_with_libyaml_and_without(block: str) -> None:
    assert frontmatter._C_LOADER is not None
    for text in (block, f"a: {block}"):
        assert read_with(text, frontmatter._C_LOADER) == read_with(text, None)


@pytest.mark.parametrize("block", BLOCKS[:2])
def test_what_people_write_is_read_with_libyaml(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = frontmatter._loaded(block, frontmatter._Loader)
    monkeypatch.delattr(frontmatter, "_Loader")

    assert frontmatter._load(block) == expected


# --- python-frontmatter takes the handler ----------------------------------------------------------------------


@given(metadata, st.text())
def test_python_frontmatter_reads_and_writes_with_the_handler(data: dict[str, object], body: str) -> None:
    text = join(data, body)

    assert python_frontmatter.dumps(python_frontmatter.Post(body, frontmatter.HANDLER, **data)) == text
    if data:
        assert python_frontmatter.loads(text, handler=frontmatter.HANDLER).metadata == data


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": "2026-02-20T14:00:00Z", "agent": "zoë", "tags": ["a b", "c"], "empty": []},
        {"type": "fact", "importance": 0.6, "links": {"updates": ["a"], "part_of": ["b", "c"]}},
    ],
    ids=["note", "memory"],
)
def test_an_object_as_we_write_it_needs_no_yaml(fields: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    text = join(fields, "body")
    expected = split(text)
    monkeypatch.delattr(frontmatter, "_load")

    assert split(text) == expected


def test_a_block_is_nested_as_deep_as_it_may_be_and_no_deeper() -> None:
    most = 15  # lists; the block itself is one level more, what they hold another
    block = "---\na: {}\n---\n"

    assert split(block.format("[" * (most - 1) + "1" + "]" * (most - 1)))[0] != {}
    with pytest.raises(FrontMatterError, match="16 deep"):
        split(block.format("[" * most + "1" + "]" * most))
