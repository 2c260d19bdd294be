"""A damaged part costs its own sentence: what does not come of the part stays as it is, on every page."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.parsers.memory.allocators import made as allocators
from tests.parsers.pages.ops.kernels.test_compiled import profile
from tests.support.build import host_bytes, write_run
from tests.support.composed import slices
from tests.support.files.counters import with_custom_calls
from tests.tui.cli.calls import Call
from tpuprof.parsers.base.errors import EXIT_UNREADABLE, INTERNAL, ProfileError
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages import PAGES
from tpuprof.tui.report.page import ReportRequest, TextLook

Leaves = dict[str, object]
"""What pages say, by page and the path of keys to it."""

Change = Callable[[bytes], bytes]
Part = Callable[[XSpace, Change], None]
"""Changes a part of a profile."""


def leaves(folder: Path, data: bytes, **others: bytes) -> Leaves:
    """What all pages say of a run of one host, or of several."""
    logdir, found = open_logdir(str(write_run(folder, host0=data, **others))), Leaves()
    sessions: dict[str, Session] = {}

    def session(run: Run) -> Session:
        return sessions.setdefault(run.path, Session(run))

    for page in (page for page in PAGES if not page.is_of_arrays):
        options: dict[str, Any] = dict.fromkeys(page.options)
        asked = ReportRequest(logdir, None, None, session, "json", TextLook(100, False, False), options=options)
        report: Any = page.load_report()
        try:
            made = json.loads("".join(report.writers["json"](report.read(asked), asked)).replace(str(folder), ""))
        except ProfileError as error:
            made = {"error": error.sentence}
        found |= _flat(page.name, made)
    return {
        path: value for path, value in found.items() if not re.search(r"\.(path|modified|size_bytes|written)\b", path)
    }


def _flat(path: str, value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _flat(f"{path}.{key}", each)
    else:
        yield path, value


def check(whole: Leaves, without: Leaves, damaged: Leaves, own: str = "graph") -> None:
    """What a part has no influence on is as it was; no page is lost but one of the part alone."""
    apart = re.compile(rf"warnings|unknown|notes|{own}")
    for path, value in whole.items():
        assert without.get(path) != value or apart.search(path) or damaged.get(path) == value, path
    assert {path for path in damaged if path.endswith(".error")} <= {"graph.error", *whole, *without}


# --- profiles, and their parts


def _of_stat(space: XSpace, name: bytes, change: Change) -> None:
    """Changes the bytes of all stats of a name in metadata; one of which nothing is left goes."""
    for plane in space.planes:
        numbers = [key for key, stat in plane.stat_metadata.items() if stat.name == name]
        for event in plane.event_metadata.values():
            for stat in [stat for stat in event.stats if stat.metadata_id in numbers]:
                stat.bytes_value = change(stat.bytes_value)
                if not stat.bytes_value:
                    event.stats.remove(stat)


def kernel(space: XSpace, change: Change) -> None:
    """The Mosaic module of a kernel."""

    def of_body(data: bytes) -> bytes:
        proto = HloProto.FromString(data)
        (call,) = (each for each in proto.hlo_module.computations[0].instructions if each.opcode == b"custom-call")
        config = json.loads(call.backend_config)
        body = change(base64.b64decode(config["custom_call_config"]["body"]))
        config["custom_call_config"]["body"] = base64.b64encode(body).decode()
        call.backend_config = json.dumps(config).encode()
        return proto.SerializeToString()

    _of_stat(space, b"Hlo Proto", of_body)


def schedule(space: XSpace, change: Change) -> None:
    _of_stat(space, b"llo_proto", change)


def module(space: XSpace, change: Change) -> None:
    _of_stat(space, b"Hlo Proto", change)


def between_slices(space: XSpace, change: Change) -> None:
    _of_stat(space, b"dcn_collective_info", change)


def counters(space: XSpace, change: Change) -> None:
    """Counters and allocators: each line as it is, or none."""
    for plane in space.planes:
        kept = [line for line in plane.lines if line.name.startswith(b"XLA")]
        del plane.lines[:]
        plane.lines.extend(kept)


@cache
def made(of: str) -> bytes:
    if of == "slices":
        return slices.host_bytes("host0", 3)
    if of == "kernel":
        return profile()
    space = XSpace.FromString(with_custom_calls(1, 4))
    stats: dict[str, Any] = {"allocator_name": "0", "bytes_allocated": 1 << 20, "bytes_available": 1 << 30}
    space.MergeFrom(allocators.host_space([allocators.given(5, **stats)]))
    return space.SerializeToString()


def changed(of: str, parts: Sequence[Part], change: Change) -> bytes:
    space = XSpace.FromString(made(of))
    for part in parts:
        part(space, change)
    return space.SerializeToString()


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Leaves]:
    """What pages say of a profile, or of it without some parts; each is read once."""
    return cache(lambda of, *parts: leaves(tmp_path_factory.mktemp("known"), changed(of, parts, lambda _: b"")))


PARTS: dict[str, Part] = {"kernel": kernel, "schedule": schedule, "module": module, "counters": counters}


# --- parts whose bytes are damaged

DAMAGES: tuple[Change, ...] = (
    lambda data: data[: len(data) // 2],
    lambda data: data[:-1] + b"\xff",
    lambda data: b"\xff" * 40,
    lambda data: b"\x0a\x05" + data,  # a text where a message is to be
    lambda data: b"\x08\x07" + data[1:],  # a number where one is to be
    lambda data: bytes(byte ^ (0x55 if at % 97 == 50 else 0) for at, byte in enumerate(data)),
)


@pytest.mark.parametrize(
    ("of", "parts"), [("kernel", (schedule, kernel)), ("kernel", (module,)), ("slices", (between_slices, module))]
)
def test_damage_stays_where_it_is(
    known: Callable[..., Leaves], tmp_path: Path, of: str, parts: tuple[Part, ...]
) -> None:
    for number, damage in enumerate(DAMAGES):
        found = leaves(tmp_path / f"{number}", changed(of, parts, damage))
        check(known(of), known(of, *parts), found)
        assert INTERNAL not in str(found.values())


# --- parts whose work fails, whatever their bytes are

WALLS = """
kernel kernel,schedule
  formats.mosaic.spec.read_kernel            could not read its Mosaic module
  formats.llo.stored.read_schedule           could not read the schedule of mm.1
kernel schedule
  pages.ops.kernels.page.stored_schedules    could not find schedules
kernel schedule
  pages.ops.kernels.tpu.static_schedule      could not follow the schedule of mm.1
slices none
  pages.ops.details.call_stack               could not read its call stack
slices module
  formats.hlo.programs._stored               could not read the compiled HLO of jit_train_step
slices module
  pages.graph.programs.HloGraph              could not follow the compiled HLO of jit_train_step(7)
  pages.memory.compiled.module_peaks         could not find the memory of jit_train_step(7)
  pages.overview.model_use.blocks.HloFlow    could not follow the compiled HLO of jit_train_step:
  pages.overview.model_use.page.samples_of   could not count the samples of a step
slices module
  pages.collectives.host._slice_ops          host0: could not read collectives between slices
counters counters
  pages.counters.page.read_counters          host0: could not read the counters of /device:TPU:0
  memory.allocators.profile.module_runs      host0: could not read the runs of modules of /device:TPU:0
counters counters
  pages.ops.kernels.page.call_units          could not read the counters:
  memory.allocators.profile.allocator_events host0: could not read the allocators
"""
"""A profile and its parts that are lost; then where these enter, and the sentence that says so."""


def _fails(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("planted")


@pytest.mark.parametrize("walls", re.findall(r"^\w.*\n(?:  .*\n)+", WALLS, re.MULTILINE))
def test_a_part_that_fails_costs_its_sentence(
    known: Callable[..., Leaves], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, walls: str
) -> None:
    head, *lines = walls.splitlines()
    of, names = head.split()
    whole, without = known(of), known(of, *(PARTS[name] for name in names.split(",") if name in PARTS))
    said = [line.split(maxsplit=1) for line in lines]
    for where, _ in said:
        monkeypatch.setattr(f"tpuprof.parsers.{where}", _fails)
    found = leaves(tmp_path, made(of))
    check(whole, without, found, own="graph|collectives")
    told = "\n".join(value for value in found.values() if isinstance(value, str) and INTERNAL in value)
    for _, sentence in said:
        assert sentence in told, told


# --- hosts and runs


def _failing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """No reader can stand a file of this name any more."""
    opened = Trace.open
    monkeypatch.setattr(Trace, "open", lambda path, *rest: _fails() if name in path else opened(path, *rest))


def test_a_host_that_fails_is_as_one_that_is_no_profile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    garbage = leaves(tmp_path / "garbage", host_bytes(), other=BAD["garbage"])
    _failing(monkeypatch, "/other.")
    found = leaves(tmp_path / "fails", host_bytes(), other=host_bytes())
    check(garbage, garbage, found, own="reason|problems")
    assert "/other.xplane.pb: internal error" in str(found.values())


BAD: dict[str, bytes] = {
    "empty": b"",
    "garbage": bytes(range(256)) * 9,
    "JSON": b'{"traceEvents": 7}',
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(90),
    "fails": host_bytes(),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_run_costs_its_row(monkeypatch: pytest.MonkeyPatch, call: Call, tmp_path: Path, bad: str) -> None:
    _failing(monkeypatch, "fails/host0")
    for number, name in enumerate(("1", "3", bad)):
        folder = write_run(tmp_path, name, host0=BAD.get(name, host_bytes())) / "plugins" / "profile" / name
        for path in (*folder.iterdir(), folder):
            os.utime(path, (1.7e9 + 60 * number,) * 2)
    for page, key, step in (("trend", "run", "step_time_ms"), ("runs", "name", "core_step_ps")):
        facts = ["--facts"] if page == "runs" else []
        made = json.loads(call("report", page, tmp_path, "--format", "json", *facts, code=EXIT_UNREADABLE).out)
        steps = {row[key]: row[step] for row in made["runs"]}
        assert steps["1"] == steps["3"] is not None and steps[bad] is None
        assert f"{bad}/host0.xplane.pb" in str(made)
    runs = tmp_path / "plugins" / "profile"
    for command in ("diff", "verify"):
        assert bad in call(command, runs / "1", runs / bad, code=EXIT_UNREADABLE).err
    assert bad in call("doctor", tmp_path, "--require", "device,steps", code=EXIT_UNREADABLE).out
    assert call("diff", runs / "1", runs / "3").out
