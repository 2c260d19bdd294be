"""A damaged part costs its own sentence: what does not come of the part stays as it is, on every page."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.parsers.memory.allocators import made as allocators
from tests.parsers.pages.ops.kernels.test_compiled import profile
from tests.support.build import write_run
from tests.support.composed import slices
from tests.support.files.counters import with_custom_calls
from tpuprof.parsers.base.errors import INTERNAL, ProfileError
from tpuprof.parsers.files.logdir import Run, open_logdir
from tpuprof.parsers.formats.proto.hlo_pb2 import HloProto
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace
from tpuprof.parsers.session.session import Session
from tpuprof.tui.pages import PAGES
from tpuprof.tui.report.page import ReportRequest, TextLook

Leaves = dict[str, object]
"""What pages say, by page and the path of keys to it."""

Change = Callable[[bytes], bytes]
Part = Callable[[XSpace, Change], None]
"""Changes a part of a profile."""


def leaves(folder: Path, data: bytes) -> Leaves:
    """What all pages say of a profile."""
    logdir, found = open_logdir(str(write_run(folder, host0=data))), Leaves()
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

_FORMATS, _PAGES = "tpuprof.parsers.formats.", "tpuprof.parsers.pages."
_MEMORY = "tpuprof.parsers.memory.allocators.profile."
WALLS: list[tuple[str, tuple[Part, ...], dict[str, str]]] = [
    (
        "kernel",
        (kernel, schedule),
        {
            f"{_FORMATS}mosaic.spec.read_kernel": "could not read its Mosaic module",
            f"{_FORMATS}llo.stored.read_schedule": "could not read the schedule of mm.1",
        },
    ),
    ("kernel", (schedule,), {f"{_PAGES}ops.kernels.page.stored_schedules": "could not find schedules"}),
    ("kernel", (schedule,), {f"{_PAGES}ops.kernels.tpu.static_schedule": "could not follow the schedule of mm.1"}),
    ("slices", (), {f"{_PAGES}ops.sources.call_stack": "", f"{_PAGES}ops.details.call_stack": "read its call stack"}),
    ("slices", (module,), {f"{_FORMATS}hlo.programs._stored": "could not read the compiled HLO of jit_train_step"}),
    (
        "slices",
        (module,),
        {
            f"{_PAGES}graph.programs.HloGraph": "could not follow the compiled HLO of jit_train_step(7)",
            f"{_PAGES}memory.compiled.module_peaks": "could not find the memory of jit_train_step(7)",
            f"{_PAGES}overview.model_use.blocks.HloFlow": "could not follow the compiled HLO of jit_train_step:",
            f"{_PAGES}overview.model_use.page.samples_of": "could not count the samples of a step",
        },
    ),
    ("slices", (module,), {f"{_PAGES}memory.compiled.space_memory": "could not find the memory of"}),
    ("slices", (module,), {f"{_PAGES}collectives.host._slice_ops": "host0: could not read collectives between slices"}),
    (
        "counters",
        (counters,),
        {
            f"{_PAGES}ops.kernels.call_units.scope_uses": "",
            f"{_PAGES}counters.host.read_counters": "host0: could not read the counters of /device:TPU:0",
            f"{_MEMORY}_profile": "host0: could not read the allocator 0",
            f"{_MEMORY}module_runs": "host0: could not read the runs of modules of /device:TPU:0",
        },
    ),
    (
        "counters",
        (counters,),
        {
            f"{_PAGES}ops.kernels.page.call_units": "could not read the counters:",
            f"{_MEMORY}allocator_events": "host0: could not read the allocators",
        },
    ),
]
"""Profiles, the parts that are lost, and where each enters, with the sentence that says so."""


def _fails(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("planted")


@pytest.mark.parametrize(
    ("of", "parts", "walls"), WALLS, ids=lambda value: "-".join(value) if isinstance(value, dict) else ""
)
def test_a_part_that_fails_costs_its_sentence(
    known: Callable[..., Leaves],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    of: str,
    parts: tuple[Part, ...],
    walls: dict[str, str],
) -> None:
    whole, without = known(of), known(of, *parts)
    for wall in walls:
        monkeypatch.setattr(wall, _fails)
    found = leaves(tmp_path, made(of))
    check(whole, without, found, own="graph|collectives")
    said = "\n".join(value for value in found.values() if isinstance(value, str) and INTERNAL in value)
    for sentence in walls.values():
        assert sentence in said, said
