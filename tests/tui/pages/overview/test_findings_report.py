"""`report findings` says what it knows of the profile itself, and nothing that it does not."""

from __future__ import annotations

from pathlib import Path

from tests.support.build import tpu_plane
from tests.tui.cli.calls import Call
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace


def printed(path: Path, data: bytes, call: Call) -> str:
    """The report's words, wherever its lines break."""
    path.write_bytes(data)
    return " ".join(call("report", "findings", path, "--width", "100").out.split())


def test_a_profile_that_is_cut_off_says_so(tmp_path: Path, call: Call) -> None:
    space = XSpace()
    ops = [(f"fusion.{number}", "loop fusion", number * 100, 80) for number in range(60)]
    tpu_plane(space, 0, ops, steps=[(str(number), number * 1000, (number + 1) * 1000) for number in range(6)])
    whole = space.SerializeToString()
    assert "cut off" not in printed(tmp_path / "whole.xplane.pb", whole, call)
    assert "is cut off after" in printed(tmp_path / "cut.xplane.pb", whole[:-40], call)


def test_kinds_that_nobody_could_look_for_are_not_called_absent(tmp_path: Path, call: Call) -> None:
    space = XSpace()
    tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, 80)])
    space.planes[0].name = b"/device:GPU:0"
    out = printed(tmp_path / "gpu.xplane.pb", space.SerializeToString(), call)
    assert "Not found" not in out
    assert "Can't be told: no-device" in out
