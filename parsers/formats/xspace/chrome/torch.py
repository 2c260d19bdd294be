"""Traces of PyTorch's profiler (Kineto): which processes are devices, which events are steps, and what links events."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LABEL = re.compile(r"(?:CPU|(?:GPU|XPU|MTIA|PrivateUse1) ?(\d{1,5})\b.*)", re.ASCII | re.DOTALL)
_STEP = re.compile(r"ProfilerStep\s?#(\d{1,18})", re.ASCII)
_ON_DEVICE = frozenset(("kernel", "gpu_memcpy", "gpu_memset"))
ANNOTATIONS = 0xDEADBEEF + 1
"""The row of a device's annotations, which span the kernels of a stream: one of those that XProf derives."""


def row_name(tid: object, is_device: bool) -> str:
    """What a row without a name is called."""
    return "annotations" if tid == ANNOTATIONS else f"{'stream' if is_device else 'thread'} {tid}"


def device_of(label: str) -> str | None:
    """The plane of a process by its label, ``GPU 0``; None for a label that PyTorch does not write."""
    match = _LABEL.fullmatch(label)
    if match is None:
        return None
    return "/host:CPU" if match[1] is None else f"/device:GPU:{match[1]}"


def translated(event: dict[str, Any]) -> dict[str, Any]:
    """An event as XProf would have written it; one of another profiler's categories as it is.

    A step has its number as an argument, a kernel how it was launched, and what starts it the same correlation.
    """
    category, args = event.get("cat"), event.get("args")
    args = args if isinstance(args, dict) else {}
    if category == "user_annotation" and (step := _STEP.fullmatch(str(event.get("name")))) is not None:
        return {**event, "name": "ProfilerStep", "args": {"step_num": int(step[1])}}
    if category == "gpu_user_annotation":
        return {**event, "tid": ANNOTATIONS}
    if "correlation" in args:
        args = {**args, "correlation_id": args["correlation"]}
    if category in _ON_DEVICE and (details := _details(args)):
        args = {**args, "kernel_details": details}
    return {**event, "args": args} if args else event


def _details(args: Mapping[str, Any]) -> str:
    """How a kernel was launched, as XProf writes it: ``regs:38 grid:4,1,1 block:128,1,1``."""
    said = {
        "regs": args.get("registers per thread"),
        "static_shared": args.get("shared memory"),
        **{name: ",".join(map(str, size)) for name in ("grid", "block") if isinstance(size := args.get(name), list)},
        "occ_pct": args.get("est. achieved occupancy %"),
    }
    return " ".join(f"{name}:{value}" for name, value in said.items() if value is not None)
