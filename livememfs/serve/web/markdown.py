"""Stored Markdown as harmless HTML.

Owns which elements are shown. The text is untrusted: HTML in it is shown as text, a picture as its alternative text, a
link only with allowed schemes, and another program cleans the result again. Refuses to render large texts. Pure and
slow; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

MAX_RENDERED = 256 << 10
"""Most characters rendered as Markdown; a longer text is shown as source."""
MAX_SHOWN = 1 << 20
_TAGS = {
    "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s", "a", "hr",
    "br", "table", "thead", "tbody", "tr", "th", "td", "span",
}  # fmt: skip
_CLASSES = {"span": {name for name in STANDARD_TYPES.values() if name}}
"""Those that a highlighted word can have; the style sheet gives them colours, and nothing else."""
_ATTRIBUTES = {"a": {"href", "title"}, "ol": {"start"}}
_SCHEMES = {"http", "https", "mailto"}
_DEEPEST = 6
_LANGUAGES = frozenset((
    "bash", "c", "console", "cpp", "css", "diff", "docker", "dockerfile", "go", "html", "http", "ini", "java",
    "javascript", "js", "json", "kotlin", "lua", "make", "php", "py", "python", "rb", "ruby", "rust", "rs", "sh",
    "shell", "sql", "swift", "toml", "ts", "typescript", "xml", "yaml", "yml", "zsh",
))  # fmt: skip
MAX_HIGHLIGHTED = 8 << 10
"""Most characters of a block that are highlighted: the time that a lexer takes is not bounded by anybody else."""
EXCERPT_LINES, EXCERPT = 8, 600
_MARKS = re.compile(r"```\w*|\|(?:\s*:?-+:?\s*\|)+|(?<!\S)(?:#{1,6}|\|)(?!\S)|^\s*(?:>|[-*+]\s)", re.MULTILINE)
"""What begins a block: of code, a table, a heading, a quotation, an item of a list."""
_AROUND = re.compile(r"\*\*|__|~~|(?<!`)`(?!`)")


def excerpt(text: str) -> tuple[Markup, bool]:
    """The HTML of the beginning of a text, and whether there is more."""
    text = text.strip("\n")
    beginning = "\n".join(text.split("\n", EXCERPT_LINES)[:EXCERPT_LINES])[:EXCERPT]
    return _beginning(beginning), len(beginning) < len(text)


@lru_cache(maxsize=1024)
def _beginning(text: str) -> Markup:
    """A list has the same ones again, each time that somebody looks at it."""
    return rendered(text)


def rendered(text: str) -> Markup:
    """The HTML of a text; its headings stand one level lower, below the title of the page."""
    text = text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()  # a lone surrogate is no character
    if len(text) > MAX_RENDERED:
        return _plain(text)
    try:
        html = _parser().render(text)
    except RecursionError:  # nested too deep
        return _plain(text)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        allowed_classes=_CLASSES,
        url_schemes=_SCHEMES,
        link_rel="noopener noreferrer",
    )
    return Markup(clean)


def plain(text: str) -> str:
    """A line of Markdown without its marks, where it is shown as a line of text."""
    return " ".join(_MARKS.sub(" ", _AROUND.sub("", text)).split())


def _plain(text: str) -> Markup:
    more = "" if len(text) <= MAX_SHOWN else "\n…"
    return Markup("<pre>{}{}</pre>").format(escape(text[:MAX_SHOWN]), more)


@cache
def _parser() -> MarkdownIt:
    options = {"html": False, "linkify": False, "highlight": _highlighted}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.core.ruler.push("lower_headings", _lower_headings)
    parser.add_render_rule("image", _image)
    return parser


def _highlighted(code: str, language: str, _: str) -> str:
    """Code as HTML with classes; empty, which leaves it plain, in a language of which nothing is known."""
    if language.lower() not in _LANGUAGES or len(code) > MAX_HIGHLIGHTED:
        return ""
    try:
        lexer = get_lexer_by_name(language.lower(), stripnl=False)
    except ClassNotFound:
        return ""
    return str(highlight(code, lexer, HtmlFormatter(nowrap=True)))


def _lower_headings(state: Any) -> None:
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(int(token.tag[1]) + 1, _DEEPEST)}"


def _image(renderer: RendererHTML, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """The alternative text of a picture. Loading the picture would tell an unknown server who reads the page."""
    words = renderer.renderInlineAsText(tokens[index].children or [], options, env)
    return f"<em>[picture: {escape(words)}]</em>"
