"""Writes Chrome traces as XProf does, and reads what the program makes of one."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np

from tests.support.build import event_stats
from tpuprof.parsers.formats.proto.xplane_pb2 import XPlane, XSpace, XStat
from tpuprof.parsers.formats.xspace.chrome.translate import chrome_source
from tpuprof.parsers.formats.xspace.trace import Plane, Trace

Event = dict[str, Any]

_HIDDEN_STATS = {"_pt", "_p", "_ct", "_c", "_a", "_r", "flow", "flops", "program_id", "symbol_id"}
_HIDDEN_EVENTS = {"MemoryAllocation", "MemoryDeallocation"}


def xprof_trace(space: XSpace, host: str = "", grouped: bool = False) -> bytes:
    """The trace that the profiler writes beside a profile: every value as text, nothing of asynchronous ops.

    Args:
        host: stands before the names of processes, as in XProf's trace of several hosts; empty for none.
        grouped: whether an annotation that numbers a step has the number in its name, and events the group of the step
            that they are in, as in XProf's trace of one host.
    """
    names: list[Event] = []
    slices: list[Event] = []
    for plane in sorted(space.planes, key=lambda plane: plane.name != b"/host:CPU"):
        if plane.name != b"/host:CPU" and not plane.name.startswith(b"/device:"):
            continue
        pid = 701 if plane.name == b"/host:CPU" else 1 + plane.id
        shown = f"{host} {plane.name.decode()}".strip()
        names.append({"ph": "M", "pid": pid, "name": "process_name", "args": {"name": shown}})
        for line in plane.lines:
            tid = line.display_id or line.id
            names.append(_named(pid, tid, (line.display_name or line.name).decode()))
            if line.name != b"Async XLA Ops":
                start = line.timestamp_ns * 1000
                slices += [event for each in line.events if (event := _slice(plane, each, pid, tid, start))]
    if grouped:
        _group(slices)
    head = '{"displayTimeUnit":"ns","metadata":{"highres-ticks":true},"traceEvents":['
    texts = [json.dumps(event, separators=(",", ":")) for event in names + slices]
    return "".join([head, *(f"{text}," for text in texts), "{}]}"]).encode()


def _group(slices: list[Event]) -> None:
    steps = [event for event in slices if "step_num" in event["args"]]
    for step in steps:
        step["name"] += f" {step['args']['step_num']}"
    for event in slices:
        for number, step in enumerate(steps):
            if step["ts"] <= event["ts"] < step["ts"] + step["dur"]:
                event["args"] |= {"group_id": str(number), "step_name": step["name"]}


def _named(pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": name}}


def _slice(plane: XPlane, event: Any, pid: int, tid: int, start_ps: int) -> Event | None:
    metadata = plane.event_metadata[event.metadata_id]
    if metadata.name.decode() in _HIDDEN_EVENTS:
        return None
    args = {"long_name": metadata.name.decode()} if metadata.display_name else {}
    for stat in (*metadata.stats, *event.stats):
        name = plane.stat_metadata[stat.metadata_id].name.decode()
        if name not in _HIDDEN_STATS:
            args[name] = _text(plane, stat)
    at, lasts = start_ps + event.offset_ps, max(event.duration_ps, 1)
    out: Event = {"ph": "X", "pid": pid, "tid": tid, "ts": at / 1e6, "dur": lasts / 1e6}
    out["name"] = (metadata.display_name or metadata.name).decode()
    return {**out, "args": dict(sorted(args.items()))} if args else out


def _text(plane: XPlane, stat: XStat) -> str:
    kind = stat.WhichOneof("value")
    if kind == "bytes_value":
        return "<opaque bytes>"
    value = getattr(stat, kind)
    value = plane.stat_metadata[value].name if kind == "ref_value" else value
    return value.decode() if isinstance(value, bytes) else str(value)


def trace_of(*events: Event, pieces: int = 1 << 20) -> Trace:
    """A trace of these events, read some bytes at a time."""
    return read(json.dumps({"traceEvents": events}).encode(), pieces)


def read(data: bytes, pieces: int = 1 << 20, name: str = "/logs/h.trace.json") -> Trace:
    """A trace from its text."""
    parts = (data[at : at + pieces] for at in range(0, len(data), pieces))
    return Trace(chrome_source(parts, name, lambda: ""))


def events_of(plane: Plane) -> list[tuple[str, str, int, int, Event]]:
    """Line, name, start, duration and stats of each event of a plane."""
    out = []
    for line in plane.lines:
        events = line.events()
        names = plane.event_metadata.labels(events.metadata_id.astype(np.int64))
        for index, name in enumerate(names):
            span = int(events.offset_ps[index]), int(events.duration_ps[index])
            out.append((line.name, name, *span, event_stats(plane, events, index)))
    return out


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)
