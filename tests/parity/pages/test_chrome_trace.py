"""A trace gives the same answers as the profile that it was made from, wherever it holds what a page is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fence.reports import said
from tests.support.files.chrome import packed, xprof_trace
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

PAGES = ("ops", "framework-ops", "overview", "findings", "ledger", "input", "inference", "timeline")
NOT_TOLD = {
    *("peak", "ridge_point", "device_type", "utilization", "bound_by", "roofline", "of_peak", "use_fraction"),
    *("hbm", "sram", "cmem", "vmem", "bandwidth", "chip", "unknown", "warnings", "run.", "device.type", "rates"),
}
"""Parts of keys that hang on what a trace never holds."""


def differences(ours: Any, other: Any, key: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Keys at which two reports differ, and what they say there."""
    if isinstance(ours, dict) and isinstance(other, dict):
        for name in ours.keys() | other.keys():
            yield from differences(ours.get(name), other.get(name), f"{key}.{name}")
    elif isinstance(ours, list) and isinstance(other, list) and len(ours) == len(other):
        for one, two in zip(ours, other, strict=True):
            yield from differences(one, two, f"{key}[]")
    elif ours != other and not any(part in key for part in NOT_TOLD):
        yield key, ours, other


def report(page: str, path: Path) -> Any:
    """A page as JSON."""
    return json.loads(said(["report", page, str(path), "--format", "json", "--no-cache"], path.parent).split("---")[0])


@pytest.mark.shared
def test_ops_of_a_real_profile_and_of_its_traces_agree(shared: Path, tmp_path: Path) -> None:
    """As XProf writes it, and as this program does."""
    source = next((shared / "profiles/tpu-v6e-inference").rglob("*.xplane.pb"))
    whole = tmp_path / "whole" / "host0.xplane.pb"
    whole.parent.mkdir()
    whole.write_bytes(source.read_bytes())
    of_xprof, ours = tmp_path / "xprof" / "host0.trace.json.gz", tmp_path / "ours" / "host0.trace.json.gz"
    of_xprof.parent.mkdir()
    of_xprof.write_bytes(packed(xprof_trace(XSpace.FromString(source.read_bytes()))))
    ours.parent.mkdir()
    said(["report", "timeline", str(whole), "--format", "perfetto", "--output", str(ours)], tmp_path)
    for page in ("ops", "input", "inference"):
        expected = report(page, whole)
        for trace in (of_xprof, ours):
            assert sorted({key for key, *_ in differences(expected, report(page, trace))}) == [], (page, trace)
