"""Looks into reports."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

EVIL = "\x1b]0;owned\x07\u202eevil\n|`<b>*_[x](y)\\\x9b31m\udcff"
"""A name that a terminal, Markdown or a table would take for more than text."""


def nulls(value: Any, path: str = "") -> Iterator[str]:
    """Keys of what is null, `[]` for any index of a list, once for children however deep."""
    if value is None:
        yield re.sub(r"(\.children\[\])+", ".children[]", path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from nulls(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from nulls(item, f"{path}[]")


def parsed(text: str) -> dict[str, Any]:
    """A JSON document; a constant that is no JSON, such as NaN, fails."""
    document: dict[str, Any] = json.loads(text, parse_constant=_no_constant)
    return document


def _no_constant(text: str) -> float:
    raise AssertionError(f"JSON knows no {text}")


def csv_rows(text: str) -> list[dict[str, str]]:
    """The rows of a table, by their columns."""
    return list(csv.DictReader(io.StringIO(text)))


# --- HTML

HTML_VOID = {"meta", "br"}
HTML_TAGS = {
    *("html", "head", "meta", "title", "style", "body", "nav", "a", "section", "footer", "figure", "figcaption", "div"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "ol", "li", "strong", "table", "thead", "tbody", "tr", "th", "td"),
    *("svg", "path", "text", "span", "i"),
}
HTML_ATTRIBUTES = {
    *("lang", "charset", "http-equiv", "content", "name", "id", "href", "class", "viewBox", "viewbox", "role"),
    *("aria-label", "d", "x", "y", "text-anchor"),
}


class Read(HTMLParser):
    """Reads a page, and fails at what no page of ours has."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.policy = self.style = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert tag in HTML_TAGS and given.keys() <= HTML_ATTRIBUTES, (tag, attrs)
        assert (given.get("href") or "#").startswith("#")
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"] or ""
        if tag not in HTML_VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.style += data
        elif data.strip():
            self.texts.append((self.open[-1], data))

    def of(self, *tags: str) -> list[str]:
        return [text for tag, text in self.texts if tag in tags]


def check_page(html: str) -> Read:
    """A page that asks for nothing, and whose policy allows its own style alone."""
    read = Read(html)
    digest = base64.b64encode(hashlib.sha256(read.style.encode()).digest()).decode()
    allowed = f"default-src 'none'; style-src 'sha256-{digest}'"
    assert read.policy == f"{allowed}; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression|://", read.style)
    return read
