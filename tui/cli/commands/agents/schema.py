"""What the answers of tools hold, as JSON Schema: from the fields of pages, which `--describe` prints too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tpuprof.tui.report.describe import Described

Schema = dict[str, Any]

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("text", "ISO 8601, UTC"), "string"),
    **dict.fromkeys(("list of texts", "list of problems", "list of counts", "objects"), "array"),
    **dict.fromkeys(("object", "bytes by name"), "object"),
    "true or false": "boolean",
}
"""Types of values by their units; those of all other units are numbers."""


def schema_of(keys: Iterable[Described], places: Sequence[tuple[str, str]]) -> Schema:
    """The schema of an answer; it may have other keys too.

    Args:
        keys: those of the page that the answer is made of.
        places: what stands in the answer in the place of beginnings of keys; of several the longest counts.
    """
    whole: Schema = {"type": "object", "properties": {"unknown": _maybe("object")}}
    for each in keys:
        begin = max((begin for begin, _ in places if each.key.startswith(begin)), key=len, default=None)
        for place in (place for one, place in places if one == begin):
            if each.json and each.key not in ("schema", "unknown"):
                _put(whole, (place + each.key.removeprefix(begin or "")).split("."), _TYPES.get(each.unit, "number"))
    return whole


def _put(within: Schema, key: Sequence[str], kind: str) -> None:
    """Puts a dotted key into the schema of an object."""
    name, *rest = key
    item = _maybe("object" if rest else kind)
    properties = within.setdefault("properties", {})
    if name.endswith("[]"):
        item = properties.setdefault(name[:-2], _maybe("array")).setdefault("items", item)
    else:
        item = properties.setdefault(name, item)
    if rest:
        _put(item, rest, kind)


def _maybe(kind: str) -> Schema:
    """A value that may be unknown; a large one that does not fit into an answer is a text that says so."""
    return {"type": [kind, "null"] if kind in ("string", "number", "boolean") else [kind, "string", "null"]}
