"""Writes what happened as a profiler would have recorded it: one XSpace a host."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from tests.demo.profile import encode
from tests.demo.profile.device_plane import CONSUMER_TYPE, device_stats, link_id, op_stats
from tests.demo.profile.hlo_module import shape_bytes
from tests.demo.profile.planes import NO_TABLES, PlaneWriter, Ref, StatValue, Tables, Uint
from tests.insight.simulator.code import US, Program
from tests.insight.simulator.play import MS, START_PS, Launch, Played
from tests.insight.simulator.scene import EXECUTE_LINK, EXECUTE_TYPE, Scene
from tests.support.files.wire import field
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine

START_NS = 1_751_360_400_000_000_000
LINES_BEGIN_NS = 212_990
HOSTS_APART_PS = 3_700 * US
"""Each host's profile starts so much later than that of the one before."""


def spaces(scene: Scene, played: Played) -> list[bytes]:
    """The profile of each host."""
    named = _named(scene, played) if scene.traced == "all" else _Named(NO_TABLES, {})
    return [_space(scene, played, host, named) for host in range(scene.hosts)]


@dataclass(frozen=True, slots=True)
class _Named:
    """What the planes of all cores name alike: their metadata, and the ids of each program's ops there."""

    tables: Tables
    ids: dict[int, list[int]]


def _named(scene: Scene, played: Played) -> _Named:
    plane = PlaneWriter("/device:TPU:0")
    _runs(plane, scene, played, 0, 0)
    ids = {id(program): _op_ids(plane, program, scene.scopes) for program in _programs(played)}
    return _Named(plane.tables(), ids)


def _space(scene: Scene, played: Played, host: int, named: _Named) -> bytes:
    planes: list[PlaneWriter] = []
    if scene.traced != "host":
        planes += [_device(scene, played, host, core, named) for core in range(scene.cores)]
    planes += [_metadata(scene, played), _host(scene, played, host), _environment(played, host)]
    chunks = [chunk for plane in planes for chunk in plane.chunks()]
    return b"".join(chunks) + field(4, f"host-{host}".encode())


def _device(scene: Scene, played: Played, host: int, core: int, named: _Named) -> PlaneWriter:
    plane = PlaneWriter(f"/device:TPU:{core}", 2 + 8 * core, named.tables)
    if scene.traced != "all":
        plane.plane_stats(device_stats(scene.device, core, host * scene.cores + core))
        for name, number in (("XLA Modules", 2), ("XLA Ops", 3), ("Async XLA Ops", 4)):
            plane.line(name, number)
        return plane
    at, shift = _runs(plane, scene, played, host, core)
    plane.add_line_bytes("XLA Ops", 3, _ops(plane, played, at, shift, named.ids))
    line = plane.line("Async XLA Ops", 4)
    if core == 0:  # as in real profiles
        for launch in played.launches:
            _async_ops(plane, line, launch, at, shift)
    plane.line("Overlay", 7)
    trace_me = plane.line("XLA TraceMe", 6)
    for launch in played.launches:
        begin = int(launch.begin[at]) + shift
        plane.event(trace_me, "dependency-wait", begin + 78, begin + 1_172)
        for start, end in launch.barriers:
            plane.event(trace_me, "barrier-cores", int(start[at]) + shift, int(end[at]) + shift)
        _inside_kernels(plane, trace_me, launch, at, shift)
    return plane


def _inside_kernels(plane: PlaneWriter, line: XLine, launch: Launch, at: int, shift: int) -> None:
    """Adds the spans of kernels that are traced."""
    traced = [number for number, timed in enumerate(launch.program.ops) if timed.spans]
    for row in np.flatnonzero(np.isin(launch.ops, traced)).tolist():
        start, length = int(launch.starts[row, at]) + shift, int(launch.durations[row, at])
        for name, begin, end in launch.program.ops[int(launch.ops[row])].spans:
            plane.event(line, name, start + int(begin * length), start + int(end * length))


def _runs(plane: PlaneWriter, scene: Scene, played: Played, host: int, core: int) -> tuple[int, int]:
    """Adds what a core is, and its steps and modules; returns its number, and how far its clock is off."""
    at = host * scene.cores + core
    plane.plane_stats(device_stats(scene.device, core, at))
    shift = -scene.chips.ahead_ps - host * HOSTS_APART_PS
    if scene.marks:
        _steps(plane, played, at, shift, scene.marks_first)
    _modules(plane, played, host, core, at, shift)
    return at, shift


def _programs(played: Played) -> list[Program]:
    return list({id(launch.program): launch.program for launch in played.launches}.values())


@lru_cache(maxsize=8)
def _stats(program: Program, scopes: bool) -> list[dict[str, StatValue]]:
    """Stats of a program's ops, the same on every core."""
    every = [op_stats(program.module, timed.op) for timed in program.ops]
    hidden = () if scopes else ("tf_op", "source", "source_stack")
    return [{key: value for key, value in stats.items() if key not in hidden} for stats in every]


def _op_ids(plane: PlaneWriter, program: Program, scopes: bool) -> list[int]:
    """Metadata ids of a program's ops."""
    ids = []
    for timed, stats in zip(program.ops, _stats(program, scopes), strict=True):
        value = timed.op.instruction
        ids.append(plane.new_metadata(program.module.text(value), value.name.decode(), stats).id)
    return ids


def _steps(plane: PlaneWriter, played: Played, at: int, shift: int, is_first: bool) -> None:
    line = plane.line("Steps", 1)
    last = {launch.step: launch.run_id for launch in played.launches}
    is_plain = is_first or len(last) == len(played.launches)
    for step, (begin, end) in enumerate(zip(played.step_begins[:, at], played.step_ends[:, at], strict=True)):
        launches = [launch for launch in played.launches if launch.step == step][: 1 if is_first else None]
        for launch in launches:  # a marker for each module, as the runtime leaves them
            first = int(begin) if launch is launches[0] else int(launch.begin[at])
            final = int(end) if launch.run_id == last[step] else int(launch.end[at])
            number = 100 + step if is_plain else launch.run_id
            plane.event(line, str(number), first + shift, final + shift)


def _modules(plane: PlaneWriter, played: Played, host: int, core: int, at: int, shift: int) -> None:
    line = plane.line("XLA Modules", 2)
    for launch in played.launches:
        stats: dict[str, StatValue] = {
            "run_id": Uint(launch.run_id),
            "replica_id": 0,
            "queue_id": Uint(0),
            "core_type": Uint(0),
            "_ct": CONSUMER_TYPE,
            "_c": link_id(host, launch.run_id, core),
        }
        name = launch.program.module.full_name
        plane.event(line, name, int(launch.begin[at]) + shift, int(launch.end[at]) + shift, stats)


def _ops(plane: PlaneWriter, played: Played, at: int, shift: int, ids: dict[int, list[int]]) -> list[bytes]:
    offset_id, duration_id = plane.stat_id("device_offset_ps"), plane.stat_id("device_duration_ps")
    names, begins, lengths = [], [], []
    for launch in played.launches:
        order = np.flatnonzero(launch.durations[:, at] > 0)
        names.append(np.array(ids[id(launch.program)])[launch.ops[order]])
        begins.append(launch.starts[order, at] + shift)
        lengths.append(launch.durations[order, at])
    name, begin, length = (np.concatenate(parts).astype(np.uint64) for parts in (names, begins, lengths))
    stats = [
        encode.StatColumn(offset_id, encode.UINT64_VALUE, begin - np.uint64(14 * US)),
        encode.StatColumn(duration_id, encode.UINT64_VALUE, length),
    ]
    return encode.events(name, begin, length, stats)


def _async_ops(plane: PlaneWriter, line: XLine, launch: Launch, at: int, shift: int) -> None:
    """From the issue of each asynchronous op to the end of its wait."""
    module = launch.program.module
    for start, done in launch.pairs:
        begin, end = int(launch.starts[start, at]), int(launch.starts[done, at] + launch.durations[done, at])
        of, to = (launch.program.ops[int(launch.ops[event])].op.instruction for event in (start, done))
        stats: dict[str, StatValue] = {"hlo_op": Ref(to.name.decode()), "_a": 1, "flow": Uint(616_168_039 + 4 * start)}
        plane.event(line, module.text(of), begin + shift, end + shift, stats)


def _metadata(scene: Scene, played: Played) -> PlaneWriter:
    plane = PlaneWriter("/host:metadata")
    if scene.hlo and scene.traced == "all":
        for program in _programs(played):
            key = (program.module.program_id ^ 1 << 63) - (1 << 63)
            proto: dict[str, StatValue] = {"Hlo Proto": program.module.proto_bytes}
            plane.new_metadata(program.module.full_name, stats=proto, key=key)
    return plane


def _host(scene: Scene, played: Played, host: int) -> PlaneWriter:
    plane = PlaneWriter("/host:CPU", 701)
    lines: dict[str, XLine] = {}
    origin = host * HOSTS_APART_PS

    def put(thread: str, name: str, begin: int, end: int, stats: dict[str, StatValue] | None = None) -> None:
        if thread not in lines:
            label = thread if "/" in thread else f"{thread}/4211"
            lines[thread] = plane.line(label, 4211 + len(lines), timestamp_ns=LINES_BEGIN_NS)
        plane.event(lines[thread], name, begin - origin, end - origin, stats)

    if scene.traced not in ("all", "host"):
        put("python", "$trainer.py:201 fit", START_PS, START_PS + 900 * MS)
        put("python", scene.traced, START_PS + MS, START_PS + 880 * MS)
        return plane
    for event in played.events[host]:
        if event.name.startswith("$") and not scene.python:
            continue
        put(event.thread, event.name, event.begin, event.end, dict(event.stats))
    for launch in played.launches:
        for core in range(scene.cores):
            begin = launch.enqueued[host] + 3 * core * US
            queued: dict[str, StatValue] = {
                "continuation": 1, "run_id": launch.run_id, "queue_id": 0, "device_ordinal": core, "core_type": 0,
                "_pt": CONSUMER_TYPE, "_p": link_id(host, launch.run_id, core),
            }  # fmt: skip
            execute = f"py_xla_execute/{4301 + core}"
            called: dict[str, StatValue] = {"_ct": EXECUTE_TYPE, "_c": EXECUTE_LINK + launch.run_id}
            prepare = "TfrtTpuLoadedExecutable::ExecutePrepare"
            put(execute, prepare, begin - 8 * US, begin + 12 * US, called)
            put(execute, "DoEnqueueProgram", begin, begin + 9 * US, queued)
            end = int(launch.end[host * scene.cores + core])
            put(execute, "MemoryAllocation", begin - 6 * US, begin - 5 * US, _allocation(scene, core, True))
            done: dict[str, StatValue] = {"run_id": launch.run_id, "queue_id": 0, "device_ordinal": core}
            callbacks = f"switchto-default-SDomainT/{4601 + core}"
            put(callbacks, "tpu::System::Execute=>Done", end + 12 * US, end + 19 * US, done)
            put(callbacks, "MemoryDeallocation", end + 20 * US, end + 21 * US, _allocation(scene, core, False))
    for begin, end, size in _between_slices(scene, played, host):
        stats: dict[str, StatValue] = {
            "dcn_label": "all-reduce.7", "dcn_source_slice_id": 1, "dcn_destination_slice_id": 0, "dcn_chunk": 0,
            "payload_size_bytes": size, "duration_us": (end - begin) // US,
        }  # fmt: skip
        put("megascale/7001", "MegaScale: Communication Transport Receive", begin, end, stats)
    return plane


def _between_slices(scene: Scene, played: Played, host: int) -> list[tuple[int, int, int]]:
    """Begin, end and bytes of what the host's first core received from other slices."""
    found = []
    for launch in played.launches if scene.traced == "all" else ():
        started = {done: start for start, done in launch.pairs}
        for row, op in enumerate(launch.ops.tolist()):
            value = launch.program.ops[op].op.instruction
            if value.opcode == b"recv-done" and "_xla_host_transfer_rendezvous" in value.frontend_attributes.map:
                begin = int(launch.starts[started.get(row, row), host * scene.cores])
                end = int(launch.starts[row, host * scene.cores] + launch.durations[row, host * scene.cores])
                found.append((begin, end, shape_bytes(value.shape)))
    return found


def _allocation(scene: Scene, core: int, is_new: bool) -> dict[str, StatValue]:
    """What the allocator says at an allocation of the step's results, or when they are freed."""
    capacity, size = scene.device.hbm_capacity, 1 << 20
    reserved, used = int(scene.memory.reserved * capacity), int(scene.memory.in_use * capacity) + size * is_new
    return {
        "index_on_host": core,
        "bytes_reserved": reserved,
        "bytes_allocated": used,
        "bytes_available": capacity - used - reserved,
        "fragmentation": 0.002,
        "peak_bytes_in_use": int(scene.memory.in_use * capacity) + size + reserved,
        "requested_bytes": size,
        "allocation_bytes": size,
        "addr": capacity - used,
        "id": 0,
    }


def _environment(played: Played, host: int) -> PlaneWriter:
    plane = PlaneWriter("Task Environment")
    ends = [launch.end.max() for launch in played.launches] + [event.end for part in played.events for event in part]
    start = START_NS + host * HOSTS_APART_PS // 1000
    stop = START_NS + (int(max(ends)) + 40 * MS) // 1000
    plane.plane_stats({"profile_start_time": Uint(start), "profile_stop_time": Uint(stop)})
    return plane
