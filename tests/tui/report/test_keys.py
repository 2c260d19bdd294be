"""Keys of a report's JSON alone."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.tui.report.shared.keys import picked

DOCUMENT: dict[str, Any] = {
    "schema": "tpuprof.x/1",
    "run": {"name": "r"},
    "warnings": ["w"],
    "a": {"b": 1, "c": {"d": None, "e": 2}},
    "rows": [{"x": 1, "y": [{"z": 3, "v": 4}]}, {"x": None, "y": []}],
    "none": None,
    "unknown": {"a.c.d": "why d", "rows[].x": "why x", "none": "why none"},
}
HEAD = {key: DOCUMENT[key] for key in ("schema", "run", "warnings")}


@pytest.mark.parametrize(
    ("keys", "kept", "unknown"),
    [
        ("a.b", {"a": {"b": 1}}, []),
        ("a", {"a": DOCUMENT["a"]}, ["a.c.d"]),
        ("a.c.e, a.c", {"a": {"c": {"d": None, "e": 2}}}, ["a.c.d"]),
        ("rows[].x", {"rows": [{"x": 1}, {"x": None}]}, ["rows[].x"]),
        ("rows.y.z,a.b", {"a": {"b": 1}, "rows": [{"y": [{"z": 3}]}, {"y": []}]}, []),
        ("none.deeper", {"none": None}, ["none"]),
        ("warnings", {}, []),
        ("unknown", {}, ["a.c.d", "rows[].x", "none"]),
    ],
)
def test_picked(keys: str, kept: dict[str, Any], unknown: list[str]) -> None:
    """What is asked for stays, in the document's order, with the reasons of what is null in it."""
    got = json.loads(picked(json.dumps(DOCUMENT), keys))
    assert list(got.pop("unknown")) == unknown
    assert list(got.items()) == list({**HEAD, **kept}.items())


@pytest.mark.parametrize(
    ("keys", "named", "hint"),
    [
        ("c.e", "c", "--keys a.c"),
        ("a.x", "a.x", "--keys rows.x"),
        ("a.b.x", "a.b.x", "--keys rows.x"),
        ("rows.y.q", "rows.y.q", "--keys rows.y.z"),
        ("schemes", "schemes", "--keys schema"),
        ("zzz", "zzz", "--keys schema or run or warnings or a"),
    ],
)
def test_unknown_key(keys: str, named: str, hint: str) -> None:
    """One that is not there is named, with the nearest, or with where it stands."""
    with pytest.raises(ProfileError) as caught:
        picked(json.dumps(DOCUMENT), keys)
    assert caught.value.sentence == f"The JSON of this page has no key {named}."
    assert caught.value.hint.startswith(hint)


def test_commands(call: Call) -> None:
    """Reports and comparisons take keys, of JSON alone."""
    whole = call.json("report", "overview", "demo", "--format", "json")
    part = call.json("report", "overview", "demo", "--format", "json", "--keys", "performance.step_time_ms")
    assert part["performance"] == {"step_time_ms": whole["performance"]["step_time_ms"]}
    assert list(part) == ["schema", "run", "warnings", "performance", "unknown"]
    described = ("report", "overview", "--describe")
    for command in (("report", "ops", "demo"), described, ("diff", "demo", "demo"), ("verify", "demo", "demo")):
        assert call.error(EXIT_USAGE, *command, "--keys", "x")[1] == "try: --format json"
