"""Answers of the server's tools: short forms of the JSON of reports, where what matters most comes first.

What they hold is told as JSON Schema, from the fields of pages, which `--describe` prints too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.text import nearest, printable
from tpuprof.tui.report.describe import Described

Document = dict[str, Any]
Arguments = Mapping[str, Any]

_OF_REASON = ("title", "worth_ms", "per", "worth_fraction", "is_estimate", "target", "source")
"""What the list of reasons has of each."""

_SAME = "same"
"""What `diff` marks that changed by no more than noise."""


def _head(document: Document) -> Document:
    run = document.get("run", {})
    return {"run" if key == "name" else key: value for key, value in run.items()} | _warnings(document)


def _warnings(document: Document) -> Document:
    return {"warnings": document["warnings"]} if document.get("warnings") else {}


def _unknown(document: Document, values: Document) -> Document:
    why = {
        key: reason
        for key, reason in document.get("unknown", {}).items()
        if key.partition(".")[0].removesuffix("[]") in values
    }
    return values | ({"unknown": why} if why else {})


def runs(document: Document, _: Arguments) -> Document:
    """The runs."""
    rows = [{key: value for key, value in row.items() if value not in ([], None)} for row in document["runs"]]
    return {"runs": rows} | _warnings(document)


def why(document: Document, given: Arguments) -> Document:
    """The reasons by name, or one of them whole.

    Raises:
        ProfileError: there is no reason of that name.
    """
    named = {found["name"]: found for found in document["findings"]}
    if given["reason"] is not None:
        found = _reason(named, given["reason"])
        values = _head(document) | {"reason": given["reason"], "finding": found}
        return _unknown(_renamed(document, "finding"), values)
    reasons = [{"reason": name} | {key: one[key] for key in _OF_REASON} for name, one in named.items()]
    untold: dict[str, list[str]] = {}
    for kind in document["kinds"]:
        if kind["untold"] is not None and not kind["found"]:
            untold.setdefault(kind["untold"], []).append(kind["kind"])
    values = {"step_time_ms": document["step_time_ms"], "reasons": reasons}
    values["cannot_tell"] = [{"why": reason, "kinds": kinds} for reason, kinds in untold.items()]
    return _unknown(_renamed(document, "reasons[]"), _head(document) | values)


def _renamed(document: Document, place: str) -> Document:
    """The document with the reasons for what is null in findings at the place where they stand here."""
    return document | {"unknown": {key.replace("findings[]", place): why for key, why in document["unknown"].items()}}


def _reason(named: Mapping[str, Document], name: str) -> Document:
    if name in named:
        return named[name]
    near = nearest(name, named) or list(named)
    hint = f"one of: {', '.join(near)}" if near else "why without a reason lists what was looked for"
    raise ProfileError("not_found", f"There is no reason {printable(name)[:60]}.", hint, EXIT_NOT_FOUND)


def rows(document: Document, _: Arguments) -> Document:
    """The rows of a table that a filter keeps."""
    keys = ("page", "filter", "sort", "all_rows", "matching_rows", "left_out_rows", "totals")
    values = {key: document[key] for key in (*keys, "next", "rows", "why_none") if document.get(key, "") != ""}
    return _unknown(document, _head(document) | values)


def sql(document: Document) -> Document:
    """The rows of a query in SQL; `has_more` where the query gives more than were read."""
    values = {"tables": document["tables"], "rows": document["rows"]}
    values |= {"has_more": True} if document["has_more"] else {}
    return _unknown(document, _head(document) | values)


def page(document: Document, _: Arguments) -> Document:
    """A page as it is, below a short head."""
    values = {key: value for key, value in document.items() if key not in ("schema", "run", "warnings", "unknown")}
    return _unknown(document, _head(document) | values)


def timeline(document: Document, given: Arguments) -> Document:
    """Tracks, or what ran in an interval and its events."""
    values = page(document, given)
    if "summary" in values:
        values["summary"] = [_track(row) for row in values["summary"] if row["events"]]
    return {key: value for key, value in values.items() if value != []}


def _track(row: Document) -> Document:
    kept = {key: row[key] for key in ("section", "core", "track", "events", "busy_ps", "busy_fraction")}
    return kept | {"top_ops": row["top_ops"][:3]}


def diff(document: Document, _: Arguments) -> Document:
    """What changed by more than noise, first by owner, then by group of ops and by op."""
    values: Document = {}
    for key, value in document.items():
        if key in ("before", "after") and isinstance(value, dict):
            values[key] = {name: value[name] for name in ("name", "step_count", "step_time_ms", "warnings")}
        elif isinstance(value, list):
            values[key] = [row for row in value if not isinstance(row, dict) or row.get("mark") != _SAME]
        elif key not in ("schema", "unknown"):
            values[key] = value
    kept = {key: value for key, value in values.items() if value != []}
    return _unknown(document, kept)


# --- what they hold

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
