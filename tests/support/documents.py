"""Looks into JSON reports."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


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
