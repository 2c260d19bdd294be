"""Looks into reports."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
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
