"""Devices: which planes are cores, the peaks of a core, and what an op's category means."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache

import numpy as np

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, ProfileError
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.base.record import dataclass, fields
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.core_names import core_label, title_of
from tpuprof.parsers.files.places import TimePart
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.parts_of_lines import keep_started
from tpuprof.parsers.formats.xspace.source import OnFetched
from tpuprof.parsers.formats.xspace.trace import Plane, Trace
from tpuprof.parsers.formats.xspace.walk import VARINT, varint

ENVIRONMENT_PLANE = "Task Environment"
"""The plane whose stats describe the capture."""

_TENSOR_CORE = pattern(r"^/device:TPU:(\d+)$")
_SPARSE_CORE = pattern(r"^/device:TPU:(\d+) SparseCore[ x]*(\d+)$")
_GPU = pattern(r"^/device:GPU:(\d+)$")

OFF_DUTY = frozenset(
    {
        *("infeed", "outfeed", "host send", "host send-done", "host recv", "host recv-done"),
        *("async-done", "megacore fusion"),
    }
)
"""HLO categories during which a core waits or moves data for the host: not part of its duty cycle."""

HOLDS_OPS = frozenset({"while", "conditional", "call", "megacore fusion"})
"""HLO categories of ops that contain other ops; their FLOPs and bytes are those of the ops inside."""

CUSTOM_CALL = "custom-call"
"""HLO category of kernels, such as Pallas ones, and other calls out of the compiler's own code."""

_KERNEL_TARGET = "tpu_custom_call"
_TARGET = pattern(r'custom_call_target="([^"]*)"')

_COLLECTIVE = pattern(r"all-reduce|all-gather|all-to-all|reduce-scatter|collective|^send|^recv|partition-id|^nccl")
_HOST = pattern(r"^infeed|^outfeed|^host (send|recv)|host-|^memcpy .*host")
_COPY = pattern(
    r"copy|data formatting|^dynamic-(update-)?slice|^slice|^concatenate|^pad$|^reshape|^transpose|^bitcast"
    r"|^mem(cpy|set)"
)
_COMPUTE = pattern(r"convolution|^dot|output fusion|matmul")
_FUSED_COPY = pattern(r"(?:copy|transpose|bitcast|reshape)(?:_(?:copy|transpose|bitcast|reshape))*_fusion(?:\.|\Z)")
"""XLA names a fusion after the instructions in it: ``copy_bitcast_fusion.3`` computes nothing."""
_ENDING = pattern(r"(-start|-done)?(\.\d+)*\Z")

HOST_TRANSFER = pattern(r"^host (send|recv)")
"""HLO categories of sends to the host and receives from it, which between slices carry collectives."""

_HANDLER = "_xla_host_transfer_handler_name"
_BETWEEN_CORES = pattern(r"psum|pmean|all_reduce|all_gather|reduce_scatter|psum_scatter|all_to_all|ppermute")
_SEEN = 4000
_PRODUCT = pattern(
    r"(dot_general|ragged_dot\w*|scaled_dot\w*|conv_general_dilated|(Batch|Fused)?MatMul\w*|\w*Conv[23]\w*|Einsum"
    r"|XlaDot\w*|CudnnRNN\w*)\Z"
)
"""Types of framework ops that multiply matrices."""


def is_kernel(text: str) -> bool:
    """Whether a custom call's HLO is that of a kernel: what the compiler calls by itself has another target."""
    target = _TARGET.search(text)
    return target is None or target.group(1) == _KERNEL_TARGET


def is_tensor_core(plane: Plane) -> bool:
    """Whether a plane is a TPU TensorCore (``/device:TPU:3``)."""
    return bool(_TENSOR_CORE.match(plane.name))


def tensor_cores(trace: Trace) -> list[Plane]:
    """The planes of TensorCores by their numbers; a file that was merged of pieces has them in any order."""
    return sorted(filter(is_tensor_core, trace.planes), key=device_ordinal)


def is_sparse_core(plane: Plane) -> bool:
    """Whether a plane is a TPU SparseCore (``/device:TPU:3 SparseCore 0``)."""
    return bool(_SPARSE_CORE.match(plane.name))


def is_gpu(plane: Plane) -> bool:
    """Whether a plane is a GPU."""
    return bool(_GPU.match(plane.name))


def shortcoming(trace: Trace) -> int:
    """Ranks a host's file: 0 for a whole profile with a device, 1 for a damaged one or a trace, 2 without a device."""
    has_device = any(is_tensor_core(plane) or is_gpu(plane) for plane in trace.planes)
    return (1 if trace.problems else 0) if has_device else 2


def capture_start_ns(environment: Plane | None) -> int | None:
    """When the capture began by the host's clock, in nanoseconds since 1970; None where its plane does not say."""
    began = None if environment is None else environment.stats.get("profile_start_time")
    return began if isinstance(began, int) and began > 0 else None


def device_ordinal(plane: Plane) -> int:
    """The number in a device plane's name; 0 for other planes."""
    match = _TENSOR_CORE.match(plane.name) or _SPARSE_CORE.match(plane.name) or _GPU.match(plane.name)
    return int(match.group(1)) if match else 0


def is_device(plane: Plane) -> bool:
    """Whether a plane is a core or a GPU, or a SparseCore."""
    return is_tensor_core(plane) or is_sparse_core(plane) or is_gpu(plane)


def device_numbers(trace: Trace) -> set[int]:
    """The numbers of the devices that a profile has."""
    return {device_ordinal(plane) for plane in trace.planes if is_device(plane)}


@dataclass(frozen=True, slots=True)
class Peaks:
    """The peaks of one core; `None` where the profile gives zero or nothing.

    Attributes:
        flops_per_second: in FLOP/s (the plane gives teraflops).
        hbm, on_chip_read, …: in bytes/s (the plane gives 1e9 bytes), named as the columns of `op_metadata.TRAFFIC`.
            On-chip peaks are the plane's `sram` ones.
    """

    flops_per_second: float | None = None
    hbm: float | None = None
    on_chip_read: float | None = None
    on_chip_write: float | None = None
    cmem_read: float | None = None
    cmem_write: float | None = None
    vmem_read: float | None = None
    vmem_write: float | None = None

    @property
    def ridge_point(self) -> float | None:
        """FLOP per byte of HBM traffic from which on the peak FLOP/s bound a program and not HBM."""
        return self.flops_per_second / self.hbm if self.flops_per_second and self.hbm else None


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """What a device plane says of its device.

    Attributes:
        device_type: such as ``TPU v6 Lite``.
        peaks: the core's peaks.
        chip: key of the chip that the core sits on; cores of one chip share a duty cycle.
    """

    device_type: str | None
    peaks: Peaks
    chip: str


_BANDWIDTHS = (
    ("hbm", "hbm"),
    ("on_chip_read", "sram_rd"),
    ("on_chip_write", "sram_wr"),
    ("cmem_read", "cmem_rd"),
    ("cmem_write", "cmem_wr"),
    ("vmem_read", "vmem_rd"),
    ("vmem_write", "vmem_wr"),
)

_LEAST_PEAK, _MOST_PEAK = 1e-3, 1e9
"""A plausible peak lies between these, in tera-FLOP/s or gigabytes/s."""


def _peak(value: object, factor: float) -> float | None:
    """A peak in FLOP/s or bytes/s; None for a value that is not a number, zero, or beyond any device."""
    is_one = isinstance(value, int | float) and _LEAST_PEAK <= value <= _MOST_PEAK
    return float(value) * factor if is_one and isinstance(value, int | float) else None


_CORE_NUM, _LOCAL_CHIP_ID, _GLOBAL_CHIP_ID = 3, 4, 5


def _detail(plane: Plane, number: int) -> int | None:
    """A number of a core's `CoreDetails`, 0 where absent; None where it has no such details, or damaged ones."""
    details = plane.stats.get("core_details")
    if not isinstance(details, bytes):
        return None
    fields_of = split_fields(details)
    if fields_of.status or fields_of.next != len(details):
        return None
    chosen = np.flatnonzero((fields_of.number == number) & (fields_of.wire == VARINT))
    if not len(chosen):
        return 0
    begin, end = int(fields_of.begin[chosen[-1]]), int(fields_of.end[chosen[-1]])
    return varint(details[begin:end]) & 0xFFFFFFFF


def chip_number(plane: Plane) -> int | None:
    """The chip of a core as XProf's timeline numbers it, over all hosts where the profile does; None where unknown."""
    local, everywhere = (_detail(plane, number) for number in (_LOCAL_CHIP_ID, _GLOBAL_CHIP_ID))
    return everywhere or local


def core_title(plane: Plane) -> str:
    """How the timeline calls a TensorCore, by its chip and its number there; empty where that is no name of its own."""
    chip, number = chip_number(plane), _detail(plane, _CORE_NUM)
    return "" if chip is None or number is None or plane.profile else title_of(chip, number)


_NVIDIA = (
    ((2, 0), "Fermi"),
    ((3, 0), "Kepler"),
    ((5, 0), "Maxwell"),
    ((6, 0), "Pascal"),
    ((7, 0), "Volta"),
    ((7, 5), "Turing"),
    ((8, 0), "Ampere"),
    ((8, 9), "Ada Lovelace"),
    ((9, 0), "Hopper"),
    ((10, 0), "Blackwell"),
)
_AMD = {(9, 4): "gfx942", (9, 5): "gfx950"}
_AMD_SERIES = {9: "gfx-9XX series", 10: "gfx-10XX series", 11: "gfx-11XX series"}


def gpu_type(plane: Plane) -> str:
    """XProf's name of a GPU, from vendor, device name and compute capability in the plane's stats."""
    stats = plane.stats
    major, minor = (
        value if isinstance(value := stats.get(f"compute_cap_{part}"), int) else 0 for part in ("major", "minor")
    )
    if stats.get("device_vendor") == "Nvidia":
        named = [name for lowest, name in _NVIDIA if lowest[0] == major and lowest[1] <= minor]
        return f"Nvidia GPU ({named[-1]})" if named else "Nvidia GPU"
    if stats.get("device_vendor") == "AMD":
        name = stats.get("gpu_device_name")
        if not (isinstance(name, str) and re.fullmatch("gfx[0-9a-fA-F]{3,}", name)):  # the architecture: gfx90a
            name = _AMD.get((major, minor)) or _AMD_SERIES.get(major)
        return f"AMD GPU - {name}" if name else "AMD GPU"
    return "GPU"


def device_info(plane: Plane) -> DeviceInfo:
    """Reads the stats of a device plane; the plane of a GPU gives the bandwidth of its memory in bytes/s."""
    stats = plane.stats
    kind = stats.get("device_type_string")
    chip = _detail(plane, _LOCAL_CHIP_ID)
    peaks = {name: _peak(stats.get(f"peak_{stat}_bw_gigabytes_per_second"), 1e9) for name, stat in _BANDWIDTHS}
    bandwidth = stats.get("memory_bandwidth")
    if peaks["hbm"] is None and isinstance(bandwidth, int | float):
        peaks["hbm"] = _peak(bandwidth / 1e9, 1e9)
    named = gpu_type(plane) if is_gpu(plane) else None
    return DeviceInfo(
        device_type=kind if isinstance(kind, str) and kind else named,
        peaks=Peaks(flops_per_second=_peak(stats.get("peak_teraflops_per_second"), 1e12), **peaks),
        chip=plane.name if chip is None or plane.profile else f"chip {chip}",
    )


def open_host(
    path: str, host: str, core: str = "", on_fetched: OnFetched | None = None, part: TimePart | None = None
) -> Trace:
    """Opens a host's file, as much of it as is looked at.

    Args:
        on_fetched: as for `Trace.open`.
        core: the core (``2``), cores (``0,2``) or chip (``chip1``) whose planes are all that it has of devices; empty
            for all. SparseCores go with the TensorCore whose number they have. What the host did and metadata stay.
        part: the part of the capture whose events are all that its lines have; None for all of them.

    Raises:
        ProfileError: as `Trace.open`; `unknown_core`, exit code 3, with the cores that there are.
    """
    trace = Trace.open(path, on_fetched)
    if core:
        try:
            wanted = _numbers(trace, host, core)
        except ProfileError:
            trace.close()
            raise
        trace.keep(lambda plane: not is_device(plane) or device_ordinal(plane) in wanted)
        trace.devices = frozenset() if any(map(is_device, trace.planes)) else frozenset(wanted)
    if part is not None:
        for plane in trace.planes:
            keep_started(plane, part.of_core(device_ordinal(plane)) if is_device(plane) else part.spans)
    return trace


def _numbers(trace: Trace, host: str, core: str) -> set[int]:
    """Numbers of the planes of a core or chip; errors as for `open_host`."""
    cores = [plane for plane in trace.planes if is_tensor_core(plane) or is_gpu(plane)]
    chips = {device_ordinal(plane): f"chip{chip}" for plane in cores if (chip := chip_number(plane)) is not None}
    asked = core.split(",")
    wanted = {number for number in map(device_ordinal, cores) if str(number) in asked or chips.get(number) == core}
    ran_on_cpu = not any(map(is_device, trace.planes)) and any(plane.stat_ids(("hlo_op",)) for plane in trace.planes)
    if not wanted and ran_on_cpu and all(map(str.isdecimal, asked)):
        return set(map(int, asked))  # of the host's CPU, whose events alone know its devices
    if not wanted:
        names = [str(number) for number in sorted(map(device_ordinal, cores))]
        there_are = f"its cores are {examples(names, 16)}" if names else "its profile holds no device"
        there_are += f", its chips {examples(list(dict.fromkeys(chips.values())), 16)}" if chips else ""
        what = core if core.startswith("chip") else f"core {core}"
        sentence = f"Host {printable(host)} has no {what}: {there_are}."
        near = _nearest(asked[0], {*chips.values()} if core.startswith("chip") and chips else {*names})
        near = [printable(core_label(host, name)) for name in near]
        hint = f"--core {' or '.join(near)}" if near else "leave --core out"
        raise ProfileError("unknown_core", sentence, hint, EXIT_NOT_FOUND)
    return wanted


def _nearest(core: str, known: Set[str]) -> list[str]:
    """The two cores, or chips, whose numbers come nearest to that of one that is not there."""

    def number(name: str) -> int:
        return int(name.removeprefix("chip"))

    return sorted(known, key=lambda name: (abs(number(name) - number(core)), number(name)))[:2]


def merge_devices(infos: Sequence[DeviceInfo]) -> tuple[DeviceInfo | None, tuple[str, ...]]:
    """Describes the device of several cores; each figure comes from the first core that has it.

    Returns:
        The device, None without any core; and sentences on the figures in which cores differ.
    """
    if not infos:
        return None, ()
    remarks = []
    types = list(dict.fromkeys(info.device_type for info in infos if info.device_type))
    if len(types) > 1:
        remarks.append(f"the cores are of several types ({', '.join(types[:3])}); utilizations are against the first")
    known: dict[str, float | None] = {}
    for field in fields(Peaks):
        values = list(dict.fromkeys(value for info in infos if (value := getattr(info.peaks, field.name)) is not None))
        known[field.name] = values[0] if values else None
        if len(values) > 1 and len(types) <= 1:
            remarks.append(f"the cores give different peaks ({field.name}); utilizations are against the first")
    return DeviceInfo(types[0] if types else None, Peaks(**known), infos[0].chip), tuple(remarks)


def depends_on_name(category: str) -> bool:
    """Whether the class of an op of this HLO category depends on its name."""
    return category.startswith("async") or category in ("custom fusion", "loop fusion")


@lru_cache(1 << 14)
def op_class(category: str | None, name: str = "", has_flops: bool = False, framework_type: str = "") -> OpClass:
    """What a core does while an op of this HLO category runs (see `OpClass`).

    Args:
        category: the op's `hlo_category`, or None.
        name: the op's short name; it shows what an asynchronous op or a custom call does, and what is fused in a loop
            fusion that only moves data.
        has_flops: whether the profile counts FLOPs for it; a custom call with FLOPs is a kernel on the matrix unit.
        framework_type: type of the framework op that it comes from, ``dot_general``; on GPUs, where nothing counts
            FLOPs, it shows what a library's kernel does, or stands for the category.
    """
    if not category or category.lower() == "unknown":
        return "unknown"
    if category.startswith("async") or (category == "custom fusion" and name.startswith("async-collective")):
        category = name
    if _HOST.search(category):
        return "host"
    if _COLLECTIVE.search(category):
        return "collective"
    if _COMPUTE.search(category):
        return "compute"
    is_product = _PRODUCT.match(framework_type) is not None
    if is_product and category == framework_type:
        return "compute"
    if category.startswith("custom-call") or category == "custom fusion":
        rest: OpClass = "unknown" if category.startswith("custom-call") else "vector"
        return "compute" if has_flops or is_product else rest
    if _COPY.search(category) or (category == "loop fusion" and _FUSED_COPY.match(name)):
        return "copy"
    return "vector"


STAGES = pattern(r"^(collective-permute|send|recv)")
"""What collectives do that send to the next stage of a pipeline, or along a ring (`kind_by_name`)."""


def kind_by_name(category: str, name: str) -> str:
    """What a collective does: ``all-gather``, whether it is a fusion or the end of an asynchronous one."""
    words = name if category.startswith(("async", "custom")) else category
    words = words.replace("all-reduce-scatter", "reduce-scatter")  # it is carried out as such
    return _ENDING.sub("", words.removesuffix(" fusion")).removeprefix("async-") or "collective"


def is_across_slices(category: str, text: str, framework_op: str, attributes: Mapping[str, bytes] | None) -> bool:
    """Whether an op sends to other slices, or receives from them, through the hosts.

    The compiler names the runtime that carries it (``xla_megascale_runtime``) in the instruction's frontend attributes;
    without these (None) the framework op decides.
    """
    if not HOST_TRANSFER.search(category):
        return False
    named = attributes or {}
    if _HANDLER in named:
        return b"megascale" in named[_HANDLER]
    if any(key.startswith(("_xla_megascale", "_xla_host_transfer_rendezvous")) for key in named):
        return True
    return "megascale" in text[:_SEEN] or bool(_BETWEEN_CORES.search(framework_op))
