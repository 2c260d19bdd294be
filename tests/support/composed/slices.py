"""A program on two slices: two hosts a slice, two cores a host, in a mesh ``slice=2, data=2, fsdp=2``.

In each step a core sends gradients to the other slice and computes meanwhile, gathers weights along ``fsdp``
asynchronously, and adds gradients up along ``data``; core 1 of the second host of a slice computes longer, so that
the others wait for it. The times are made up. What XProf reads of collectives between slices (`dcn_*`) is all there:
the module's frontend attributes, the stat of the send, and host events named ``MegaScale:``.

`host_space` gives a host as an `XSpace`, to which a test can add planes (`PlaneBuilder(space, name)`) before it is
written.
"""

from __future__ import annotations

from pathlib import Path

from tests.support import build
from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

US = 1_000_000
"""Picoseconds."""

STEP_US = 1000
STEPS = 4
LATE_US = 60
"""By so much more core 1 of the late hosts computes."""

HOSTS = ("slice0-host0", "slice0-host1", "slice1-host0", "slice1-host1")
LATE_HOSTS = ("slice0-host1", "slice1-host1")
PROGRAM = 7
MODULE = f"jit_train_step({PROGRAM})"
GRADIENTS = (256, 1024)
WEIGHTS = (512, 1024)
_CHANNEL = {1: 3, 2: 5}
_TRANSFER = {1: (b"ALL_REDUCE", 5), 2: (b"ALL_GATHER", 4)}
RENDEZVOUS = {1: "all-reduce.dcn.3", 2: "all-gather.dcn.5"}
"""Collectives between slices by the number of their ops."""

_F32, _U32, _TUPLE, _TOKEN = 11, 8, 13, 17
_SLICES = 2
_GATHERED = "bf16[2048,1024]{1,0:T(8,128)(2,1)}"
_SHARD = "bf16[1024,1024]{1,0:T(8,128)(2,1)}"
_SUMMED = "f32[1024,512]{1,0:T(8,128)}"
_MESH = "mesh['slice'=2,'data'=2,'fsdp'=2]"

# name: HLO category, text, framework op
OPS: dict[str, tuple[str, str, str]] = {
    "fusion.1": ("convolution fusion", "f32[8] fusion(f32[8] %p), kind=kOutput", "jit(step)/jvp(mlp)/dot_general:"),
    "fusion.2": ("loop fusion", "f32[8] fusion(f32[8] %p), kind=kLoop", "jit(step)/transpose(jvp(mlp))/mul:"),
    "all-gather-start.1": (
        "all-gather-start",
        f"({_SHARD}, {_GATHERED}) all-gather-start({_SHARD} %p), channel_id=1, replica_groups={_MESH} {{'fsdp'}}, "
        "dimensions={0}",
        "jit(step)/jvp(mlp)/all_gather:",
    ),
    "all-gather-done.1": (
        "all-gather-done",
        f"{_GATHERED} all-gather-done(({_SHARD}, {_GATHERED}) %all-gather-start.1)",
        "jit(step)/jvp(mlp)/all_gather:",
    ),
    "all-reduce.1": (
        "all-reduce",
        f"{_SUMMED} all-reduce({_SUMMED} %p), channel_id=2, replica_groups={{{{0,2}},{{1,3}},{{4,6}},{{5,7}}}}, "
        "to_apply=%add",
        "jit(step)/transpose(jvp(mlp))/psum:",
    ),
    "reduce-scatter.1": (
        "reduce-scatter",
        f"{_SUMMED} reduce-scatter(f32[2048,512]{{1,0:T(8,128)}} %p), channel_id=4, "
        "replica_groups=[4,2]<=[8], dimensions={0}",
        "jit(step)/transpose(jvp(mlp))/psum_scatter:",
    ),
}

"""Ops within a slice."""


def _between_slices(number: int) -> dict[str, tuple[str, str, str]]:
    """The four ops of a collective between slices, as `OPS`."""
    dims = ",".join(map(str, GRADIENTS if number == 1 else WEIGHTS))
    moving, channel = f"(f32[{dims}], u32[], token[])", f"channel_id={_CHANNEL[number]}"
    n = number
    return {
        f"send.{n}": ("host send", f"{moving} send(f32[{dims}] %p, token[] %t), {channel}", ""),
        f"send-done.{n}": ("host send-done", f"token[] send-done({moving} %send.{n}), {channel}", ""),
        f"recv.{n}": ("host recv", f"{moving} recv(token[] %t), {channel}", ""),
        f"recv-done.{n}": ("host recv-done", f"(f32[{dims}], token[]) recv-done({moving} %recv.{n}), {channel}", ""),
    }


OPS |= _between_slices(1) | _between_slices(2)


def _schedule(is_late: bool) -> list[tuple[str, int, int]]:
    """Name, begin and duration in microseconds of each op of a step; an all-reduce ends for all cores at once."""
    more = LATE_US if is_late else 0
    return [
        ("send.1", 0, 11),
        ("recv.1", 11, 3),
        ("send.2", 14, 4),
        ("all-gather-start.1", 20, 1),
        ("fusion.1", 21, 300),
        ("recv.2", 322, 4),
        ("send-done.1", 330, 7),
        ("all-gather-done.1", 340, 24),
        ("send-done.2", 364, 4),
        ("fusion.2", 370, 200 + more),
        ("all-reduce.1", 570 + more, 110 - more),
        ("reduce-scatter.1", 690, 40),
        ("recv-done.1", 740, 90),
        ("recv-done.2", 840, 60),
    ]


def host_space(host: str, steps: int = STEPS) -> XSpace:
    space = XSpace(hostnames=[host.encode()])
    number = HOSTS.index(host) if host in HOSTS else 0
    for core in range(2):
        plane = PlaneBuilder(space, f"/device:TPU:{core}", core + 1)
        plane.stat("device_type_string", "TPU v5e")
        plane.stat("peak_teraflops_per_second", 197.0)
        plane.stat("peak_hbm_bw_gigabytes_per_second", 819.0)
        markers, modules, ops = plane.line("Steps"), plane.line("XLA Modules"), plane.line("XLA Ops")
        spans = plane.line("Async XLA Ops")
        late = core == 1 and host in LATE_HOSTS
        for step in range(steps):
            begin = (STEP_US * (step + 1) + 5 * number) * US  # hosts' clocks differ
            plane.event(markers, plane.event_id(str(step)), begin, (STEP_US - 10) * US)
            plane.event(modules, plane.event_id(MODULE), begin, (STEP_US - 20) * US, run_id=step)
            for name, at, duration in _schedule(late):
                plane.event(ops, _op(plane, name), begin + at * US, duration * US)
            start = plane.event_id(f"%all-gather-start.1 = {OPS['all-gather-start.1'][1]} ", "async-all-gather")
            plane.event(spans, start, begin + 20 * US, 344 * US, hlo_op="all-gather-done.1")
    _add_module(space)
    _add_host_events(space, steps)
    return space


def _op(plane: PlaneBuilder, name: str) -> int:
    category, text, framework_op = OPS[name]
    stats: dict[str, StatInput] = {
        "program_id": PROGRAM,
        "symbol_id": list(OPS).index(name) + 1,
        "hlo_category": category,
        "tf_op": framework_op,
    }
    if name.startswith("send."):
        stats["dcn_collective_info"] = _collective_info(_TRANSFER[int(name[-1])][1])
    return plane.event_id(f"%{name} = {text}", name, **stats)


def _collective_info(kind: int) -> bytes:
    """XProf's `DcnCollectiveInfoProto` of some kind, over one group of one endpoint (slice, device) a slice."""
    endpoints = b"".join(b"\x0a\x04\x08" + bytes([slice_id]) + b"\x10\x00" for slice_id in range(_SLICES))
    return b"\x08" + bytes([kind]) + b"\x12" + bytes([len(endpoints)]) + endpoints


def _add_host_events(space: XSpace, steps: int) -> None:
    """Megascale's events on the host; XProf looks for one with such a name."""
    plane = PlaneBuilder(space, "/host:CPU", 80)
    line = plane.line("megascale/1")
    for step in range(steps):
        plane.event(
            line,
            plane.event_id("MegaScale: Communication Transport Receive"),
            (step * STEP_US + 500) * US,
            US,
            dcn_label=RENDEZVOUS[1],
            dcn_source_slice_id=1,
            dcn_source_per_slice_device_id=0,
            dcn_destination_slice_id=0,
            dcn_destination_per_slice_device_id=0,
            dcn_chunk=0,
            dcn_loop_index=0,
            payload_size_bytes=1 << 20,
            duration_us=400,
        )


# --- the compiled module


def _array(shape: hlo_pb2.ShapeProto, element_type: int, *dimensions: int) -> None:
    shape.element_type = element_type
    shape.dimensions.extend(dimensions)
    shape.is_dynamic_dimension.extend([False] * len(dimensions))
    if element_type != _TOKEN:
        shape.layout.minor_to_major.extend(range(len(dimensions) - 1, -1, -1))
        shape.layout.tail_padding_alignment_in_elements = 1


def _tuple_of(shape: hlo_pb2.ShapeProto, *parts: tuple[int, tuple[int, ...]]) -> None:
    shape.element_type = _TUPLE
    for element_type, dimensions in parts:
        _array(shape.tuple_shapes.add(), element_type, *dimensions)


def hlo_module() -> bytes:
    """``jit_train_step`` with its sends and receives, as an `HloProto`."""
    proto = hlo_pb2.HloProto()
    module = proto.hlo_module
    module.name, module.entry_computation_name, module.id = b"jit_train_step", b"main", 1
    module.entry_computation_id = 1
    main = module.computations.add(name=b"main", id=1)
    numbers: dict[str, int] = {}

    def add(name: str, opcode: str, *operands: str) -> hlo_pb2.HloInstructionProto:
        numbers[name] = len(numbers) + 1
        return main.instructions.add(
            name=name.encode(), opcode=opcode.encode(), id=numbers[name], operand_ids=[numbers[of] for of in operands]
        )

    _array(add("t", "after-all").shape, _TOKEN)
    for number, dims in ((1, GRADIENTS), (2, WEIGHTS)):
        data = (_F32, dims)
        in_flight = (data, (_U32, ()), (_TOKEN, ()))
        _array(add(f"p.{number}", "parameter").shape, *(_F32, *dims))
        main.instructions[-1].parameter_number = number - 1
        _tuple_of(add(f"send.{number}", "send", f"p.{number}", "t").shape, *in_flight)
        _array(add(f"send-done.{number}", "send-done", f"send.{number}").shape, _TOKEN)
        _tuple_of(add(f"recv.{number}", "recv", "t").shape, *in_flight)
        _tuple_of(add(f"recv-done.{number}", "recv-done", f"recv.{number}").shape, data, (_TOKEN, ()))
        for each in main.instructions:
            if each.opcode.startswith((b"send", b"recv")) and each.name.endswith(str(number).encode()):
                each.channel_id, each.is_host_transfer = _CHANNEL[number], True
                each.frontend_attributes.map["_xla_host_transfer_handler_name"] = b"xla_megascale_runtime"
                each.frontend_attributes.map["_xla_host_transfer_rendezvous"] = RENDEZVOUS[number].encode()
                each.frontend_attributes.map["_xla_megascale_transfer_type"] = _TRANSFER[number][0]
    _array(add("got", "get-tuple-element", "recv-done.1").shape, *(_F32, *GRADIENTS))
    main.root_id = numbers["got"]
    for shape in (main.program_shape, module.host_program_shape):
        for name, dims in ((b"p.1", GRADIENTS), (b"p.2", WEIGHTS)):
            _array(shape.parameters.add(), *(_F32, *dims))
            shape.parameter_names.append(name)
        _array(shape.result, *(_F32, *GRADIENTS))
    return proto.SerializeToString()


def _add_module(space: XSpace) -> None:
    plane = PlaneBuilder(space, "/host:metadata", 90)
    entry = plane.plane.event_metadata[PROGRAM]
    entry.id, entry.name = PROGRAM, MODULE.encode()
    plane.fill(entry.stats.add(), "Hlo Proto", hlo_module())


def host_bytes(host: str, steps: int = STEPS) -> bytes:
    return host_space(host, steps).SerializeToString()


def write_run(folder: Path) -> Path:
    """A logdir with one run of all hosts."""
    return build.write_run(folder, **{host: host_bytes(host) for host in HOSTS})
