"""Pages as JSON: one object, keys and units as the documentation fixes them, `null` never without a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.base.record import asdict, dataclass
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import Run
from tpuprof.tui.report.fields import NO_REASON

NOT_FINITE = "the figure is not a finite number"

COUNTS = ("all_rows", "left_out_rows", "next")
"""Keys that say which rows are left out."""

HEAD = ("schema", "run", "warnings", *COUNTS)
"""Keys that every answer begins with."""


@dataclass(frozen=True, slots=True)
class Written:
    """A value that is JSON text already, and why something in it is null, by dotted key."""

    text: str
    unknown: Mapping[str, str]


def schema(page: str) -> str:
    """The name of a page's JSON format; keys may be added to it, none is renamed."""
    return f"tpuprof.{page}/1"


def head(page: str, run: Run, hosts: Sequence[str], warnings: Sequence[str]) -> dict[str, object]:
    """What every object begins with: its schema, named after the page, the run, and warnings."""
    facts: dict[str, object] = {"name": run.name, "path": run.path, "hosts": list(hosts)}
    if run.core:
        facts |= {"hosts": [file.host for file in run.hosts], "core": run.core}
    return {"schema": schema(page), "run": facts, "warnings": list(warnings)}


def left_out(lists: Mapping[str, tuple[int, int]], rest: str) -> dict[str, object]:
    """What an object says of lists that lack rows, by their keys; nothing where they are whole.

    Args:
        lists: how many rows each has in all, and how many of them are here.
        rest: how to get the others.
    """
    left = {name: every - here for name, (every, here) in lists.items() if here < every}
    all_rows = {name: lists[name][0] for name in left}
    return {"all_rows": all_rows, "left_out_rows": left, "next": rest} if left else {}


def document(head: Mapping[str, object], body: Mapping[str, object], reasons: Mapping[str, str]) -> str:
    """Both together as text, and at the end `unknown`, with the reasons of what is null."""
    return laid_out(with_unknown({**head, **body}, reasons))


def line(body: Mapping[str, object], reasons: Mapping[str, str]) -> str:
    """The same as one line, for a stream of them."""
    return json.dumps(with_unknown(body, reasons), ensure_ascii=False, allow_nan=False) + "\n"


def with_unknown(body: Mapping[str, object], reasons: Mapping[str, str]) -> dict[str, object]:
    """Values fit for JSON, and at the end `unknown`, with the reasons of what is null."""
    unknown: dict[str, str] = {}
    fit = {key: json_value(value, key, reasons, unknown) for key, value in body.items()}
    fit["unknown"] = {key: printable(reason) for key, reason in unknown.items()}
    return fit


def laid_out(document: Mapping[str, object]) -> str:
    """A line for each key, and for each item of a list of objects: to read, to compare, and ten times as fast to write.

    (The library's own indentation runs in Python, value by value.)
    """
    dump = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    lines = []
    for key, value in document.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            text = "[\n    " + ",\n    ".join(map(dump, value)) + "\n  ]"
        elif isinstance(value, dict) and value:
            entries = (f"{dump(name)}: {dump(item)}" for name, item in value.items())
            text = "{\n    " + ",\n    ".join(entries) + "\n  }"
        else:
            text = value.text if isinstance(value, Written) else dump(value)
        lines.append(f"  {dump(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def json_value(value: object, path: str, reasons: Mapping[str, str], unknown: dict[str, str]) -> object:
    """`value` fit for JSON; notes in `unknown` why something in it is null."""
    if isinstance(value, Problem):
        value = asdict(value)
    if isinstance(value, dict):
        return {
            key: item  # most values of a long report are numbers and texts: they need no call and no path
            if type(item) is int or (type(item) is float and isfinite(item))
            else printable(item)
            if type(item) is str
            else json_value(item, f"{path}.{key}", reasons, unknown)
            for key, item in value.items()
        }
    if isinstance(value, list):
        path = f"{path}[]"
        return [json_value(item, path, reasons, unknown) for item in value]
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float) and not isfinite(value):
        unknown[path] = NOT_FINITE
        return None
    if isinstance(value, Written):
        unknown.update(value.unknown)
    if value is None:
        unknown.setdefault(path, reasons.get(path) or NO_REASON)
    return value
