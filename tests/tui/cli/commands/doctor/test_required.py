"""A gate in front of a profile: what somebody needs is there, or is named with its reason and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.build import tpu_plane, write_run
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_NOT_FOUND, EXIT_OK, EXIT_UNREADABLE, EXIT_USAGE
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.tui.cli.arguments.itself import REQUIRED
from tpuprof.tui.cli.commands.doctor.required import REQUIREMENTS

US = 1_000_000


def host(marked: bool = True, has_ops: bool = True) -> bytes:
    """A core that runs one op in each of five steps, without HLO, host events and source lines."""
    space = XSpace()
    ops = [("fusion.1", "loop fusion", step * 100 * US, 50 * US) for step in range(5)] if has_ops else []
    spans = [(str(step), step * 100 * US, (step * 100 + 90) * US) for step in range(5)]
    tpu_plane(space, 0, ops, steps=spans if marked else [], modules=[("jit_f(7)", b, e) for _, b, e in spans])
    return space.SerializeToString()


def refused(call: Call, run: Path, wanted: str) -> dict[str, Any]:
    """What is said of a run that lacks something."""
    told: dict[str, Any] = json.loads(call("doctor", run, "--require", wanted, "--json", code=EXIT_CAPTURE_FAILED).out)
    required: dict[str, Any] = told["require"]
    return required


def test_the_options_name_every_requirement() -> None:
    assert tuple(REQUIREMENTS) == REQUIRED
    assert all(each.meaning and each.advice for each in REQUIREMENTS.values())


def test_a_profile_that_has_all_of_it(call: Call) -> None:
    wanted = "device,steps,markers,hlo,source,peaks,host,memory,whole"
    told = call.json("doctor", "demo", "--require", wanted, "--json")
    assert told["require"]["is_met"] and told["require"]["missing"] == []
    assert told["require"]["required"] == wanted.split(",")
    assert "has all that is required" in call("doctor", "demo", "--require", "device", "--require", "steps").out


def test_the_demo_is_not_measured_and_lacks_python(call: Call) -> None:
    out = call("doctor", "demo", "--require", "steps,measured,python", code=EXIT_CAPTURE_FAILED).out
    assert "! measured      MISSING: its times are simulated" in out and "  steps         present" in out
    assert "! python        MISSING: no call of a Python function was traced" in out
    assert "lacks 2 things of 3" in out


@pytest.mark.parametrize(
    ("marked", "has_ops", "missing"),
    [
        (True, True, {"hlo", "source", "host", "python", "memory"}),
        (False, True, {"markers", "hlo", "source", "host", "python", "memory"}),
        (True, False, {"device", "hlo", "source", "host", "python", "memory"}),
    ],
)
def test_what_is_missing_is_named_with_its_reason(
    tmp_path: Path, call: Call, marked: bool, has_ops: bool, missing: set[str]
) -> None:
    run = write_run(tmp_path, a=host(marked, has_ops))
    told = refused(call, run, ",".join(REQUIRED))
    assert not told["is_met"] and {each["name"] for each in told["missing"]} == missing
    assert all(each["why"] and each["hint"] for each in told["missing"])


def test_a_file_that_is_cut_off_and_a_host_that_can_not_be_read_are_not_whole(tmp_path: Path, call: Call) -> None:
    whole = write_run(tmp_path / "whole", a=host(), b=host())
    assert call("doctor", whole, "--require", "whole", code=EXIT_OK).out
    for number, broken in enumerate((host()[:-20], b"no profile")):
        run = write_run(tmp_path / str(number), a=host(), b=broken)
        assert "! whole         MISSING: " in call("doctor", run, "--require", "whole", code=EXIT_CAPTURE_FAILED).out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["demo", "--require", "stepps"], EXIT_USAGE, "--require does not know stepps."),
        (["demo", "--require", "\x1b[2J"], EXIT_USAGE, "--require does not know"),
        (["demo", "--require", " , "], EXIT_USAGE, "--require is empty."),
        (["--require", "device"], EXIT_USAGE, "needs the PATH"),
    ],
)
def test_what_can_not_be_required(call: Call, arguments: list[str], code: int, words: str) -> None:
    error = call("doctor", *arguments, code=code)
    assert words in error.err and "\ntry: " in error.err and "\x1b" not in error.err and not error.out


def test_a_path_that_leads_to_no_profile_keeps_its_exit_code(tmp_path: Path, call: Call) -> None:
    assert "Required" not in call("doctor", tmp_path / "none", "--require", "device", code=EXIT_NOT_FOUND).out
    (tmp_path / "a.xplane.pb").write_bytes(b"no profile")
    out = call("doctor", tmp_path / "a.xplane.pb", "--require", "device", code=EXIT_UNREADABLE).out
    assert "! nothing" in out and "Required" in out
