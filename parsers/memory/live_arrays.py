"""Who holds device memory: the live arrays and executables of a JAX program, from its device memory profile.

JAX (`jax.profiler.save_device_memory_profile`, XLA's `PyClient::HeapProfile`) writes a pprof profile with a sample for
each stack, size and device: how many buffers of that size were made there and are alive, and what they take together.
An array has a buffer on each device that holds a shard of it. Executables are compiled programs with the size of their
code; they are of no device.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, partial
from typing import Literal, get_args

from tpuprof.parsers.base.errors import EXIT_UNREADABLE, ProfileError
from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, natural_key, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.formats.pprof.messages import Frame, Pprof, Sample, SampleType, read_pprof
from tpuprof.parsers.ops.frames import INSTALLED, OF_JAX

By = Literal["source", "function", "stack", "device", "kind"]
BY: tuple[By, ...] = get_args(By)
"""What buffers can be grouped by."""

BUFFER, EXECUTABLE = "buffer", "executable"
"""Kinds that JAX distinguishes."""

_COUNTS = ("allocations", "inuse_objects", "objects")
_SIZES = ("space", "inuse_space")


@dataclass(frozen=True, slots=True)
class Allocation:
    """What was made at one place, in one size, on one device, and is alive.

    Attributes:
        kind: `buffer` of an array or `executable`; None where the file does not say.
        device: ``TPU_0(process=0,(0,0,0,0))``; None for executables.
        count: how many.
        size_bytes: of all of them together.
        stack: where it was made, the innermost call first; empty where the program kept none.
        own: index in the stack of the innermost call that is the user's own; 0 where all are a library's.
    """

    kind: str | None
    device: str | None
    count: int
    size_bytes: int
    stack: tuple[Frame, ...]
    own: int

    @property
    def frame(self) -> Frame | None:
        """The line of code that is to be named; None without a stack."""
        return self.stack[self.own] if self.stack else None

    @property
    def each_bytes(self) -> int | None:
        """Size of one of them; None where they differ."""
        return self.size_bytes // self.count if self.count > 0 and self.size_bytes % self.count == 0 else None


@dataclass(frozen=True, slots=True)
class Total:
    """How many there are, and what they take together."""

    count: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeviceTotal:
    """What is alive on one device."""

    device: str
    total: Total


@dataclass(frozen=True, slots=True)
class LiveArrays:
    """A device memory profile.

    Attributes:
        name, path: of the file.
        allocations: the largest first.
        total, buffers, executables: of all, of arrays, and of compiled programs.
        devices: the fullest first.
        time_ns: since 1970, when it was written; None where the file does not say, as JAX's do not.
        warnings: what is wrong with the file, a sentence each.
    """

    name: str
    path: str
    allocations: tuple[Allocation, ...]
    total: Total
    buffers: Total
    executables: Total
    devices: tuple[DeviceTotal, ...]
    time_ns: int | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AllocationGroup:
    """Allocations that have something in common.

    Attributes:
        title: that in words; empty where it is unknown.
        source, function: where they were made, where that is one place.
        kind: of them.
        devices: of them, without None.
        total: of them together.
        members: indices of `LiveArrays.allocations`, the largest first.
    """

    title: str
    source: str
    function: str
    kind: str | None
    devices: tuple[str, ...]
    total: Total
    members: tuple[int, ...]


def read_live_arrays(path: str) -> LiveArrays:
    """Reads a device memory profile.

    Raises:
        ProfileError: `not_memory` for a pprof profile of something else, such as CPU time; and what
            `parsers.formats.pprof.messages.read_pprof` raises.
    """
    return live_arrays(read_pprof(path), printable_url(os.path.basename(path.rstrip("/"))), path)


def live_arrays(profile: Pprof, name: str, path: str) -> LiveArrays:
    """The live arrays that a pprof profile of memory describes.

    Raises:
        ProfileError: `not_memory`, for one of something else.
    """
    count_at, size_at = _columns(profile.types, name)
    own_of = partial(_own_frame, [cache(library.search) for library in (INSTALLED, OF_JAX)])
    allocations = [_allocation(sample, count_at, size_at, own_of) for sample in profile.samples]
    allocations.sort(key=lambda one: -one.size_bytes)
    warnings = [f"{note[:1].upper()}{note[1:]}." for note in profile.notes]
    if allocations and all(one.kind is None for one in allocations):
        warnings.append("JAX has not written this file: it may list memory of the host.")
    of_device = grouped((one.device, one) for one in allocations if one.device is not None)
    devices = [DeviceTotal(device, total_of(those)) for device, those in of_device.items()]
    devices.sort(key=lambda one: (-one.total.size_bytes, natural_key(one.device)))
    return LiveArrays(
        name,
        path,
        tuple(allocations),
        total_of(allocations),
        total_of(one for one in allocations if one.kind == BUFFER),
        total_of(one for one in allocations if one.kind == EXECUTABLE),
        tuple(devices),
        profile.time_ns,
        tuple(warnings),
    )


def total_of(allocations: Iterable[Allocation]) -> Total:
    """How many these are, and what they take."""
    count = size = 0
    for one in allocations:
        count, size = count + one.count, size + one.size_bytes
    return Total(count, size)


def _columns(types: Sequence[SampleType], name: str) -> tuple[int | None, int]:
    """Which values of samples are counts and sizes of what is alive."""
    sizes = [at for at, one in enumerate(types) if one.unit == "bytes" and one.name in _SIZES]
    if not sizes:
        what = examples([f"{one.name} in {one.unit}" if one.unit else one.name for one in types])
        is_cpu = any(one.unit in ("nanoseconds", "microseconds", "milliseconds", "seconds") for one in types)
        kind = "of time on a processor" if is_cpu else "of something else"
        sentence = f"{printable(name)} is a pprof profile {kind} ({what}), not of device memory."
        raise ProfileError("not_memory", sentence, "go tool pprof shows it", EXIT_UNREADABLE)
    counts = [at for at, one in enumerate(types) if one.unit == "count" and one.name in _COUNTS]
    return (counts[0] if counts else None), sizes[0]


def _allocation(
    sample: Sample, count_at: int | None, size_at: int, own_of: Callable[[tuple[Frame, ...]], int]
) -> Allocation:
    values = sample.values
    count = values[count_at] if count_at is not None and count_at < len(values) else 1
    size = values[size_at] if size_at < len(values) else 0
    return Allocation(
        sample.labels.get("kind") or None,
        sample.labels.get("device") or None,
        count,
        size,
        sample.stack,
        own_of(sample.stack),
    )


def is_library(frame: Frame) -> bool:
    """Whether a call is one of an installed package or of Python itself, by its file."""
    return not frame.file or bool(INSTALLED.search(frame.file))


def _own_frame(libraries: Sequence[Callable[[str], object]], stack: tuple[Frame, ...]) -> int:
    """The innermost call that is no library's, else the innermost that is not JAX's, else the innermost."""
    for is_of_library in libraries:
        for place, frame in enumerate(stack):
            if frame.file and not is_of_library(frame.file):
                return place
    return 0


# --- groups


def groups(
    page: LiveArrays, by: By = "source", device: str | None = None, kind: str | None = None
) -> tuple[AllocationGroup, ...]:
    """Allocations put together, the largest group first; buffers and executables never together.

    Args:
        device, kind: only of this device or kind; None for all.
    """
    members = grouped(
        (_key(one, by), index)
        for index, one in enumerate(page.allocations)
        if (device is None or one.device == device) and (kind is None or one.kind == kind)
    )
    made = [_group(page, by, tuple(indices)) for indices in members.values()]
    return tuple(sorted(made, key=lambda group: -group.total.size_bytes))


def _key(one: Allocation, by: By) -> Hashable:
    frame = one.frame
    common: dict[By, Hashable] = {
        "source": frame and (frame.file, frame.line),
        "function": frame and (frame.file, frame.function),
        "stack": one.stack,
        "device": one.device,
        "kind": None,
    }
    return common[by], one.kind


def _group(page: LiveArrays, by: By, members: tuple[int, ...]) -> AllocationGroup:
    those = [page.allocations[index] for index in members]
    frames = dict.fromkeys(one.frame for one in those if one.frame is not None)
    places = list(dict.fromkeys(frame.place for frame in frames))
    functions = list(dict.fromkeys(frame.function for frame in frames))
    source = places[0] if len(places) == 1 else ""
    function = functions[0] if len(functions) == 1 else ""
    titles = {
        "device": those[0].device,
        "kind": those[0].kind,
        "function": function,
        "stack": " < ".join(frame.function or "?" for frame in those[0].stack[those[0].own :]),
    }
    return AllocationGroup(
        titles.get(by, source) or "",
        source,
        function,
        those[0].kind,
        tuple(sorted(dict.fromkeys(one.device for one in those if one.device), key=natural_key)),
        total_of(those),
        members,
    )


def short_device(device: str) -> str:
    """``TPU_0`` of ``TPU_0(process=0,(0,0,0,0))``."""
    return device.partition("(")[0] or device


@dataclass(frozen=True, slots=True)
class Holders:
    """What is alive on one device, by source line.

    Attributes:
        page: the device memory profile.
        device: None where the file names none.
        is_named: whether that is the device that was asked for, rather than the fullest.
        groups: the largest first.
        total: of them.
    """

    page: LiveArrays
    device: str | None
    is_named: bool
    groups: tuple[AllocationGroup, ...]
    total: Total


def holders_of(page: LiveArrays, named: str | None = None) -> Holders:
    """Who holds the memory of the device that is `named`, by default of the fullest.

    A device is named as an error calls it, ``1x0x0_HBM0`` of the chip at (1, 0, 0), or as the file does; where the file
    has none like it, the fullest is taken.
    """
    names = [one.device for one in page.devices]
    same = [name for name in names if named and _same(name, named)]
    device = same[0] if same else next(iter(names), None)
    made = groups(page, "source", device)
    count = sum(group.total.count for group in made)
    return Holders(page, device, bool(same), made, Total(count, sum(group.total.size_bytes for group in made)))


def _same(device: str, named: str) -> bool:
    """Whether ``TPU_2(process=0,(1,0,0,0))``, the last number being the core, is what an error names."""
    chip = re.fullmatch(r"([0-9x]+)_HBM([0-9]+)", named)
    place = re.search(r"\(([0-9,]+)\)\)$", device)
    if chip is None or place is None:
        return named in (device, short_device(device))
    return place[1].split(",") == [*chip[1].split("x"), chip[2]]
