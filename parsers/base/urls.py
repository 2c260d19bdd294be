"""Addresses with a scheme: their parts, and what of them may be printed.

What is printed of a URL has gone through `printable_url`, and every other text that may hold one through `masked`: the
errors' sentences and hints, what goes to standard error, tracebacks. So passwords, tokens and signatures stay out of
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable

_SCHEME = pattern(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LOGIN = pattern(r"(:/+|//+)[^/\s:@]*:[^/\s]*@")  # also where a slash or the scheme is missing
_SECRET = pattern(
    r"([?&;#][^?=&;#\s]{0,60}(?:token|secret|passw|pwd|sig|credential|key|auth|session|delegation|sas)"
    r"[^?=&;#\s]{0,60}=)[^&;#\s'\"<>]+|(\bauthorization['\"]?\s?[:=]\s?['\"]?(?:bearer |basic )?)[^\s'\",]+",
    re.IGNORECASE,
)
_IN_TEXT = pattern(r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>]+")


def scheme_of(path: str) -> str:
    """``gs`` of ``gs://bucket/x``, in lower case; empty for a path without a scheme."""
    match = _SCHEME.match(path)
    return match[1].lower() if match else ""


def is_http(url: str) -> bool:
    """Whether it is a web address: files there have queries, and folders only where the server draws an index."""
    return scheme_of(url) in ("http", "https")


def split(url: str) -> tuple[str, str, str]:
    """Beginning (scheme and machine or bucket), path, and the query with its question mark (of web addresses alone)."""
    match = _SCHEME.match(url)
    begin = match.end() if match else 0
    rest, query = url[begin:], ""
    if is_http(url):
        rest, mark, query = rest.partition("#")[0].partition("?")
        query = mark + query
    if scheme_of(url) == "memory":  # one place for all
        return url[:begin], rest, ""
    place, slash, path = rest.partition("/")
    return url[:begin] + place, slash + path, query


def without_login(begin: str) -> str:
    """The beginning of a URL without what logs in: ``user:password@`` anywhere, ``token@`` in a web address."""
    scheme, mark, place = begin.partition("://")
    login, _, machine = place.rpartition("@")
    return f"{scheme}{mark}{machine}" if ":" in login or is_http(begin) else begin


def printable_url(url: str) -> str:
    """A URL fit to print: without login and query (a signed URL's query is as good as a password), on one line."""
    if not scheme_of(url):
        return printable(_without_secrets(url))
    begin, path, query = split(url)
    return printable(_without_secrets(without_login(begin) + path) + ("?…" if query else ""))


def masked(text: str, known: Iterable[str] = ()) -> str:
    """A text of any lines, such as a traceback, with each URL in it as `printable_url` has it.

    Args:
        known: what may stand in it word for word; a URL among these is found even where a blank or a quote is in its
            password, which end a URL in a text otherwise.
    """
    for word in known:
        if scheme_of(word):
            text = text.replace(word, printable_url(word)).replace(repr(word)[1:-1], printable_url(word))
    return _without_secrets(_IN_TEXT.sub(lambda match: printable_url(match[0]), text))


def _without_secrets(text: str) -> str:
    """A text without the values of what is named like a secret, and without logins of what is nearly a URL."""
    return _SECRET.sub(r"\1\2…", _LOGIN.sub(r"\1", text))


def request_url(url: str) -> str:
    """The URL as a server takes it: what may not stand in a web address is quoted, what is quoted stays."""
    if not is_http(url):
        return url
    from urllib.parse import quote  # noqa: PLC0415 - for web addresses alone

    return quote(url.partition("#")[0], safe="%/:=&?~+!$,;'@()*[]-._", errors="surrogateescape")
