"""What the author of a kernel says of it: the metadata of `pallas_call`, such as block sizes, as texts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

_MOST, _LONGEST, _DEEPEST = 40, 60, 3


def parameters(metadata: Iterable[tuple[str, str]]) -> str:
    """Names and values, ``block_q 128, block_kv 128``; those of JSON one by one.

    Args:
        metadata: frontend attributes, as pairs of texts.
    """
    pairs = (pair for name, value in metadata for pair in _pairs(name, value, 0))
    words = (f"{name} {value}"[:_LONGEST] for name, value in pairs)
    return ", ".join(word for word, _ in zip(words, range(_MOST), strict=False))


def _pairs(name: str, value: object, depth: int) -> Iterator[tuple[str, str]]:
    """A name and a value, or those that the value holds as JSON."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):  # it only looks like JSON
            yield name, str(value)
            return
    if not isinstance(value, dict) or depth == _DEEPEST:
        yield name, json.dumps(value) if isinstance(value, bool | list | dict) else str(value)
        return
    for key, inner in value.items():
        yield from _pairs(str(key), inner, depth + 1)
