"""Front matter: a block of YAML between two `---` lines, before a Markdown body (data model 4.3 and 4.4).

Owns reading it from anybody, and writing it in one fixed form. The body is never touched: not stripped, not re-wrapped,
its line ends stay. Refuses over-large blocks, aliases, deep nesting, duplicate keys and custom tags, so that reading
costs little and writing back loses nothing. Pure; may be called from any thread.

HANDLER is a handler for python-frontmatter, whose functions take it (`frontmatter.loads(text, handler=HANDLER)`). They
strip the blank space around a body; `split` and `join` do not, and everything in this package calls these two.

libyaml parses where PyYAML was built with it, because it is fast. A block that libyaml refuses, or may read in another
way, is read by PyYAML's own parser, so that a block means the same on every machine.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import yaml
from frontmatter import Post
from frontmatter.default_handlers import BaseHandler
from yaml.composer import Composer

MAX_BLOCK_CHARS = 32_768  # a hostile note can cost about 0.2 s of PyYAML's own parser
_MAX_DEPTH = 16
_MAX_KEY_CHARS = 128  # YAML takes 1,024 on a line, and writing one may need six of them

_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^---[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_BLANK_LINE = re.compile(r"\r?\n")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_WORDS_WITH_MEANING = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})  # to YAML 1.1 readers
# Outside what YAML takes as printable, or a line break to YAML 1.1 though not to JSON.
_MUST_ESCAPE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# What `join` writes for strings without escapes and for plain numbers. Nearly every note and memory has nothing else,
# and need not be read by a YAML parser in pure Python.
_STRING = '"[^"\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]*"'
_STRINGS = rf"\[(?:{_STRING}(?:, {_STRING})*)?\]"
_NUMBER = r"(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,15})?"
_ENTRY = rf"{_PLAIN_KEY.pattern}: {_STRINGS}"
_VALUE = rf"(?:({_STRING})|({_STRINGS}|{_NUMBER})|\{{({_ENTRY}(?:, {_ENTRY})*)\}})"
_LINE = rf"({_PLAIN_KEY.pattern}): {_VALUE}\n"
_AS_WE_WRITE = re.compile(f"(?:{_LINE})+")
_ONE_ENTRY = re.compile(rf"({_PLAIN_KEY.pattern}): ({_STRINGS})")
_ONE_LINE = re.compile(_LINE)
# libyaml accepts a tab where a blank belongs, a comment right behind the head of a block scalar, an empty scalar with a
# tag as a text, a question mark in a list and a byte order mark. PyYAML refuses these, or reads them as something else.
_READ_OTHERWISE = re.compile(r"[\t!?\ufeff]|[|>][-+0-9]*#")


class FrontMatterError(ValueError):
    """There is a front matter block, but it cannot be used as metadata."""


class Handler(BaseHandler):
    """The format as python-frontmatter calls it. Its methods may be called from any thread."""

    FM_BOUNDARY = _OPENING
    START_DELIMITER = END_DELIMITER = "---"

    def split(self, text: str) -> tuple[str, str]:
        """The block and the body. ValueError when there is no front matter, FrontMatterError when it is too large."""
        opening = _OPENING.match(text)
        closing = _CLOSING.search(text, opening.end()) if opening else None
        if opening is None or closing is None:  # the latter: a thematic break at the top of a page
            raise ValueError("there is no front matter")
        block = text[opening.end() : closing.start()]
        if len(block) > MAX_BLOCK_CHARS:
            raise FrontMatterError(f"the block is over {MAX_BLOCK_CHARS} characters long")
        blank = _BLANK_LINE.match(text, closing.end())
        return block, text[blank.end() if blank else closing.end() :]

    def load(self, fm: str) -> dict[str, Any]:
        """The metadata of a block. Raises FrontMatterError."""
        known = _as_we_write(fm)
        return _load(fm) if known is None else known

    def export(self, metadata: Mapping[str, Any], **kwargs: object) -> str:
        """The block of some metadata. Raises FrontMatterError when it gets too large."""
        block = "".join(f"{_key(key)}: {_value(value)}\n" for key, value in metadata.items())
        if len(block) > MAX_BLOCK_CHARS:
            raise FrontMatterError(f"the block would be over {MAX_BLOCK_CHARS} characters long")
        return block

    def format(self, post: Post, **kwargs: object) -> str:
        """A post as one text. The library's own method would strip the text."""
        return join(post.metadata, post.content)


HANDLER = Handler()


def split(text: str) -> tuple[dict[str, Any], str]:
    """The metadata and the body of a text; `({}, text)` when it has no front matter.

    Values are str, int, float, bool, None, and lists and dicts of them. A date or a time stays the string that was
    written. One blank line after the block belongs to the block. Raises FrontMatterError.
    """
    try:
        block, body = HANDLER.split(text)
    except FrontMatterError:
        raise
    except ValueError:
        return {}, text
    return HANDLER.load(block), body


def join(metadata: Mapping[str, Any], body: str) -> str:
    """Metadata and body as one text that `split` takes apart again.

    Strings are double-quoted, lists in one line, keys in the mapping's order. Without metadata the text is the body,
    unless the body itself would be read as front matter. Raises FrontMatterError when the block gets too large.
    """
    if not metadata and not HANDLER.detect(body):
        return body
    return f"---\n{HANDLER.export(metadata)}---\n\n{body}"


# --- writing ---------------------------------------------------------------------------------------------------


def _key(key: str) -> str:
    if len(key) > _MAX_KEY_CHARS:
        raise FrontMatterError(f"a key is over {_MAX_KEY_CHARS} characters long")
    plain = _PLAIN_KEY.fullmatch(key) and key.lower() not in _WORDS_WITH_MEANING
    return key if plain else _quoted(key)


def _value(value: object) -> str:
    """One value in flow style. A type that `split` never yields is written as its text."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else _quoted(repr(value))
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(str(key))}: {_value(item)}" for key, item in value.items()) + "}"
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """A JSON string, which YAML reads as a double-quoted scalar once a few characters are escaped."""
    return _MUST_ESCAPE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


# --- reading ---------------------------------------------------------------------------------------------------


def _as_we_write(block: str) -> dict[str, Any] | None:
    """The metadata of a block that `export` wrote, as `_load` would read it; None for any other block."""
    if _AS_WE_WRITE.fullmatch(block) is None:
        return None
    lines = _ONE_LINE.findall(block)
    values = ((line[0], line[1][1:-1] if line[1] else _simple(line[2], line[3])) for line in lines)
    return _plain(values)


def _simple(other: str, entries: str) -> object:
    """A number, a list of strings, or a mapping to such lists; None where YAML has to read it."""
    if other:
        return json.loads(other)
    return _plain((key, json.loads(strings)) for key, strings in _ONE_ENTRY.findall(entries))


def _plain(items: Iterable[tuple[str, object]]) -> dict[str, Any] | None:
    """A mapping whose keys are plain strings to YAML too, each once; None for any other."""
    mapping: dict[str, Any] = {}
    for key, value in items:
        if key in mapping or value is None or len(key) > _MAX_KEY_CHARS or key.lower() in _WORDS_WITH_MEANING:
            return None
        mapping[key] = value
    return mapping


def _load(block: str) -> dict[str, Any]:
    if _C_LOADER is not None and _READ_OTHERWISE.search(block) is None:
        with suppress(FrontMatterError):  # PyYAML's own parser decides, and its message is the one that is shown
            return _loaded(block, _C_LOADER)
    return _loaded(block, _Loader)


def _loaded(block: str, loader_class: type[_Loader]) -> dict[str, Any]:
    try:
        loader = loader_class(block)
        try:
            data = loader.get_single_data()
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise FrontMatterError(str(error)) from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise FrontMatterError("the block is not a mapping")
    return data


class _Loader(yaml.SafeLoader):
    """YAML with the scalars of its 1.2 core: `no`, `12:30`, `007` and dates are strings, as their writers meant.

    Starts without any resolvers and constructors, so every tag that is not listed below is an error.
    """

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - declared like the base class does
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Refuses aliases and deep nesting: with them a small block becomes a huge value."""
        if self.check_event(yaml.AliasEvent):
            raise FrontMatterError("aliases are not taken")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise FrontMatterError(f"nested over {_MAX_DEPTH} deep")
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def text(self, node: yaml.ScalarNode) -> str:
        """A string. An escaped surrogate pair, as JSON writers make them, becomes the one character it stands for."""
        value = str(self.construct_scalar(node))
        if _SURROGATE.search(value):
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value

    def sequence(self, node: yaml.SequenceNode) -> list[Any]:
        """A list."""
        return [self.construct_object(item, deep=True) for item in node.value]

    def mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        """A dict with string keys; a key that is a number stays the text that was written."""
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise FrontMatterError("a key must be a plain word")
            key = self.text(key_node)
            if len(key) > _MAX_KEY_CHARS:
                raise FrontMatterError(f"a key is over {_MAX_KEY_CHARS} characters long")
            if key in result:
                raise FrontMatterError(f"{key} is there twice")
            result[key] = self.construct_object(value_node, deep=True)
        return result


_TAG = "tag:yaml.org,2002:"


def _add_scalar(name: str, pattern: str, first: str, read: Callable[[str], object]) -> None:
    """Add a kind of plain scalar: its pattern, the characters it may start with, and how to read it."""

    def construct(loader: _Loader, node: yaml.ScalarNode) -> object:
        return read(str(loader.construct_scalar(node)))

    _Loader.add_implicit_resolver(_TAG + name, re.compile(rf"(?:{pattern})\Z"), list(first) or [""])
    _Loader.add_constructor(_TAG + name, construct)


def _refuse_tag(_loader: _Loader, node: yaml.Node) -> object:
    raise FrontMatterError(f"the tag {node.tag} is not taken")


def _read_float(text: str) -> float | str:
    """A number; one that is too large for a float stays a text, because arithmetic with infinity would go wrong."""
    value = float(text)
    return value if math.isfinite(value) else text


_add_scalar("null", "~|null|Null|NULL", "~nN", lambda _text: None)
_add_scalar("null", "", "", lambda _text: None)
_add_scalar("bool", "true|True|TRUE|false|False|FALSE", "tTfF", lambda text: text.lower() == "true")
_add_scalar("int", "[-+]?(?:0|[1-9][0-9]{0,299})", "-+0123456789", int)
_add_scalar(
    "float",  # an exponent needs its sign: 12345678e9 is most likely a hash
    r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+][0-9]+)?|[-+]?[0-9]+[eE][-+][0-9]+",
    "-+0123456789.",
    _read_float,
)
_Loader.add_constructor(_TAG + "str", _Loader.text)
_Loader.add_constructor(_TAG + "seq", _Loader.sequence)
_Loader.add_constructor(_TAG + "map", _Loader.mapping)
_Loader.add_constructor(None, _refuse_tag)


_C_LOADER: type[_Loader] | None = None
if yaml.__with_libyaml__:

    class _CLoader(yaml.CSafeLoader, _Loader):
        """libyaml's parser with PyYAML's composer, which `compose_node` can stop."""

        get_single_node = Composer.get_single_node

        def __init__(self, stream: str) -> None:
            yaml.CSafeLoader.__init__(self, stream)
            Composer.__init__(self)

    _C_LOADER = _CLoader
