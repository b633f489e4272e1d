"""Markdown and code of strangers as markup that can do nothing.

Three walls stand behind each other: the parser takes no HTML, the renderer makes no links and no
pictures, and what comes out is cleaned against a short list of tags. The page's policy is the fourth.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
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

from harness.viewer.shown import visible
from harness.viewer.tables import limited_tables

__all__ = ["code", "markdown"]

MAX_HIGHLIGHTED = 3_000
"""Characters of one piece of code that are coloured; longer pieces stay plain."""

# Strangers choose the language and the code, and many lexers take minutes over a few thousand characters made for
# it: these are those that were measured and do not.
_LANGUAGES = {
    *("bash", "sh", "shell", "zsh", "console", "c", "c++", "cpp", "css"),
    *("diff", "docker", "dockerfile", "go", "golang", "html", "ini", "java", "javascript"),
    *("js", "jsx", "json", "kotlin", "lua", "markdown", "md", "perl", "php"),
    *("pycon", "python", "py", "python3", "r", "rb", "ruby", "rs", "rust"),
    *("sql", "swift", "toml", "ts", "typescript", "xml", "yaml", "yml"),
}
_RUN = re.compile(r"(.)\1{199}", re.DOTALL)
"""The same sign so often in a row is no code, and dear to lexers."""

_TAGS = {
    *("p", "br", "hr", "em", "strong", "s", "blockquote", "pre", "code", "span", "ul", "ol", "li"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"),
}
_CLASSES = {"span": {*STANDARD_TYPES.values(), "address"} - {""}}
_ATTRIBUTES = {"ol": {"start"}}


def markdown(text: str) -> Markup:
    """Text of a person or a model, formatted; HTML in it is shown as it was written, links are text."""
    html = _parser().render(str(visible(text)))
    return _clean(html)


def code(text: str, language: str = "") -> Markup:
    """Code in colours where the language is known and the piece is not long."""
    return _clean(_highlighted(str(visible(text)), language, ""))


def _clean(html: str) -> Markup:
    return Markup(  # noqa: S704 - this is the one place where text becomes markup, cleaned in the same breath
        nh3.clean(html, tags=_TAGS, attributes=_ATTRIBUTES, allowed_classes=_CLASSES, url_schemes=set(), link_rel=None)
    )


def _highlighted(text: str, language: str, _attributes: str) -> str:
    lexer = _lexer(language.strip().lower()) if len(text) <= MAX_HIGHLIGHTED else None
    if lexer is None or _RUN.search(text):
        return str(escape(text))
    return str(highlight(text, lexer, HtmlFormatter(nowrap=True)))


@cache
def _parser() -> MarkdownIt:
    # Character references stay as they were typed: the reader wants to see what stood there.
    options = {"html": False, "linkify": False, "breaks": True, "highlight": _highlighted}
    parser = _Parser("commonmark", options).enable(["table", "strikethrough"]).disable("entity")
    parser.block.ruler.at("table", limited_tables, {"alt": ["paragraph", "reference"]})
    parser.add_render_rule("link_open", _link_open)
    parser.add_render_rule("link_close", _link_close)
    parser.add_render_rule("image", _image)
    return parser


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the parser's own name for it
        """Any address will do: none is ever used, all are shown."""
        return isinstance(url, str)


def _lexer(language: str) -> Any:
    return _known_lexer(language) if language in _LANGUAGES else None


@cache
def _known_lexer(language: str) -> Any:
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)


def _link_open(_renderer: RendererHTML, _tokens: Sequence[Token], _index: int, _options: Any, _env: Any) -> str:
    return ""


def _link_close(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    """Behind the words of a link stands its address, unless they are the same."""
    depth = 0
    for at in range(index, -1, -1):
        depth += (tokens[at].type == "link_close") - (tokens[at].type == "link_open")
        if depth == 0:
            address = str(tokens[at].attrGet("href") or "")
            words = "".join(token.content for token in tokens[at + 1 : index])
            return "" if words == address else _address(address)
    return ""


def _image(_renderer: RendererHTML, tokens: Sequence[Token], index: int, _options: Any, _env: Any) -> str:
    token = tokens[index]
    return f"{escape(token.content)}{_address(str(token.attrGet('src') or ''))}"


def _address(url: str) -> str:
    return f' <span class="address">({escape(url)})</span>'
