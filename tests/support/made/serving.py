"""Made profiles of servers: requests on host threads, the modules that they launch, and transfers in between.

Times are whole microseconds, so that what a page must say can be found by adding up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.support.build import PlaneBuilder, StatInput, tpu_plane
from tests.support.host_events import read_host
from tpuprof.parsers.formats.proto.xplane_pb2 import XLine, XSpace
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import is_tensor_core
from tpuprof.parsers.steps.boundaries.runs import module_runs
from tpuprof.parsers.steps.groups.groups import GROUP_STATS, event_groups
from tpuprof.parsers.steps.launches import Launches
from tpuprof.parsers.steps.requests.requests import REQUEST_STATS, HostRequests, has_requests, host_requests

US = 1_000_000  # picoseconds
LAUNCH = 12
"""What XLA's TPU runtime writes as `_pt` and `_ct` of a launch and the run that it starts."""

Span = tuple[int, int]
"""Start and end in microseconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request on a thread of its own: its span, its transfers, and what it ran on the device."""

    span: Span
    runs: Sequence[Span] = ()
    to_device: Sequence[Span] = ()
    from_device: Sequence[Span] = ()
    model: str = ""
    name: str = "SessionRun"
    is_root: int | None = 1
    stats: dict[str, StatInput] = field(default_factory=dict)


def put(plane: PlaneBuilder, line: XLine, name: str, span: Span, **stats: StatInput) -> None:
    """Adds an event of a span in microseconds."""
    plane.event(line, plane.event_id(name), span[0] * US, (span[1] - span[0]) * US, **stats)


def serving_profile(requests: Sequence[Request], module: str = "jit_serve(7)", threads: int = 2) -> XSpace:
    """A server with one core; its threads take requests in turn and launch their runs by `DoEnqueueProgram`."""
    space = XSpace()
    device = tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, US)])
    modules = device.line("XLA Modules")
    host = PlaneBuilder(space, "/host:CPU", 100)
    lines = [host.line(f"server/{at}") for at in range(threads)]
    run_id = 0
    for at, request in enumerate(requests):
        line = lines[at % threads]
        own: dict[str, StatInput] = dict(request.stats)
        if request.is_root is not None:
            own["_r"] = request.is_root
        if request.model:
            own["model_id"] = request.model
        put(host, line, request.name, request.span, **own)
        for span in request.to_device:
            put(host, line, "TransferH2DRequest", span)
        for span in request.runs:
            run_id += 1
            link = 1000 + run_id
            launch = (max(request.span[0], span[0] - 5), max(request.span[0], span[0] - 5) + 2)
            put(host, line, "DoEnqueueProgram", launch, run_id=run_id, device_ordinal=0, _pt=LAUNCH, _p=link)
            put(device, modules, module, span, run_id=run_id, _ct=LAUNCH, _c=link)
        for span in request.from_device:
            put(host, line, "TransferD2HRequest", span)
    return space


def five_requests(name: str = "SessionRun", is_root: int | None = 1, models: bool = True) -> list[Request]:
    """Latencies of 110 to 150 µs, of which 31 to 35 are the device's, 10 go to it and 6 to 10 come from it."""
    return [
        Request(
            span=(1000 * at, 1000 * at + 100 + 10 * at),
            runs=[(1000 * at + 30, 1000 * at + 60 + at)],
            to_device=[(1000 * at + 10, 1000 * at + 20)],
            from_device=[(1000 * at + 70, 1000 * at + 75 + at)],
            model=("m:2", "m:1")[at % 2] if models else "",
            name=name,
            is_root=is_root,
        )
        for at in range(1, 6)
    ]


def batching_profile(name: str = "BatchingSessionRun") -> XSpace:
    """Five requests put into two batches, the second of which ends after its requests' own events.

    The batches run 110 and 320 µs on the device and transfer for 15 µs.
    """
    space = XSpace()
    device = tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, US)])
    modules = device.line("XLA Modules")
    host = PlaneBuilder(space, "/host:CPU", 100)
    spans = [(1000, 1300, 1), (1010, 1310, 1), (1020, 1420, 2), (1500, 1900, 2), (1510, 1905, 2)]
    for at, (start, end, batch) in enumerate(spans):
        line = host.line(f"rpc/{at}")
        put(host, line, name, (start, end), _r=1)
        put(host, line, "ScheduleWithoutSplit", (start + 2, start + 4), _pt=2, _p=batch)
    line = host.line("batcher")
    for batch, (start, end) in {1: (1100, 1290), 2: (1600, 2000)}.items():
        put(host, line, "ProcessBatch", (start, end), _ct=2, _c=batch)
        put(host, line, "SessionRun", (start + 10, end - 5), model_id="m:1", _r=1)
        put(host, line, "TransferH2DRequest", (start + 15, start + 20))
        put(host, line, "DoEnqueueProgram", (start + 21, start + 23), device_ordinal=0, _pt=LAUNCH, _p=batch)
        put(host, line, "TransferD2HRequest", (end - 40, end - 30))
        put(device, modules, "jit_serve(7)", (start + 30, end - 50), _ct=LAUNCH, _c=batch)
    return space


def issuing_profile() -> XSpace:
    """Four requests of 300 µs whose inputs go to the device from an event on one thread to one on another, 25 µs."""
    space = XSpace()
    device = tpu_plane(space, 0, [("fusion.1", "loop fusion", 0, US)])
    modules = device.line("XLA Modules")
    host = PlaneBuilder(space, "/host:CPU", 100)
    server, issuer, finisher = (host.line(name) for name in ("server", "issuer", "finisher"))
    issue = "tpu::System::TransferToDevice=>IssueEvent"
    for at in range(1, 5):
        start = 1000 * at
        put(host, server, "SessionRun", (start, start + 300), _r=1)
        put(host, server, "tpu::System::TransferToDevice", (start + 5, start + 6), _pt=7, _p=50 + at)
        put(host, issuer, issue, (start + 10, start + 12), _ct=7, _c=50 + at)
        put(host, finisher, f"{issue}=>Done", (start + 30, start + 35), _ct=7, _c=50 + at)
        put(host, server, "DoEnqueueProgram", (start + 80, start + 82), device_ordinal=0, _pt=LAUNCH, _p=at)
        put(device, modules, "jit_serve(7)", (start + 100, start + 200), _ct=LAUNCH, _c=at)
    return space


ModuleRun = tuple[str, int, int]
"""Name, start and end in microseconds."""


def modules_profile(cores: Sequence[Sequence[ModuleRun]], run_ids: Sequence[Sequence[int]] | None = None) -> XSpace:
    """Cores with module runs, each launched 5 µs before it began; run ids count from 0 on each core unless given."""
    space = XSpace()
    host = PlaneBuilder(space, "/host:CPU", 100)
    line = host.line("main")
    for ordinal, runs in enumerate(cores):
        device = tpu_plane(space, ordinal, [("fusion.1", "loop fusion", 0, US)])
        modules = device.line("XLA Modules")
        for at, (name, start, end) in enumerate(runs):
            link = 1000 * ordinal + at
            put(host, line, "DoEnqueueProgram", (start - 5, start - 4), _pt=LAUNCH, _p=link)
            run_id = run_ids[ordinal][at] if run_ids else at
            put(device, modules, name, (start, end), run_id=run_id, _ct=LAUNCH, _c=link)
    return space


def read_requests(space: XSpace) -> HostRequests:
    """The requests of a profile, as a session reads them."""
    return requests_of(Trace(MemorySource(space.SerializeToString())))


def requests_of(trace: Trace) -> HostRequests:
    cores = [plane for plane in trace.planes if is_tensor_core(plane)]
    host = read_host(trace, tuple(dict.fromkeys((*GROUP_STATS, *REQUEST_STATS))))
    groups = event_groups(host, cores) if host is not None and has_requests(host) else None
    launches = Launches.of(host)
    return host_requests(host, groups, cores, [launches.of_runs(module_runs(plane)) for plane in cores])
