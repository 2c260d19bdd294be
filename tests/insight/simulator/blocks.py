"""What programs are made of: matrix products, fusions, kernels, copies and collectives, with the time they need."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import ceil, prod

from tests.demo.profile.hlo_cost import Traffic
from tests.insight.simulator.code import (
    DCN_BYTES,
    DCN_LATENCY_PS,
    HBM_REACHED,
    LINK_LATENCY_PS,
    MATRIX_REACHED,
    OVERHEAD_PS,
    PASSES,
    PCIE_BYTES,
    US,
    VECTOR_LANES,
    Code,
    Groups,
    Value,
    array,
    count_of,
    dims_of,
    kind_of,
    scalar,
    size_of,
    tuple_of,
)

_PRECISION_NUMBER = {"default": 0, "high": 1, "highest": 2}
VMEM, HOST = 1, 5


def hbm_ps(code: Code, size: float, reached: float = HBM_REACHED) -> float:
    """Time to move bytes to or from HBM."""
    return size / (code.device.hbm_bytes * reached) * 1e12


def matrix_ps(
    code: Code, m: int, k: int, n: int, batch: int = 1, precision: str = "default", pad: bool = True
) -> float:
    """Time of the matrix unit for products of [m, k] by [k, n], of padded ones unless `pad` is False."""
    side = 256 if code.device.kind.startswith(("TPU v6", "TPU v7")) else 128
    if pad:
        m, k, n = (ceil(size / unit) * unit for size, unit in ((m, 8), (k, side), (n, side)))
    return 2.0 * m * k * n * batch * PASSES[precision] / (code.device.flops * MATRIX_REACHED) * 1e12


def product(
    code: Code,
    left: Value,
    right: Value,
    base: str = "convolution_fusion",
    precision: str = "default",
    pad: bool = True,
    also: Sequence[Value] = (),
    out: str = "",
    window: int = 0,
) -> Value:
    """A fused product of [m, k] by [k, n], or of [b, m, k] by [b, k, n]; `also` is added to the result.

    With a `window`, the side of its tiles, HLO says these, and the operands of [m, k] by [k, n] are streamed by them.
    """
    batch, m, k = (1, *dims_of(left))[-3:]
    n = dims_of(right)[-1]
    operands = [left, right, *also]
    with code.fused(operands) as inside:
        dims = (*((batch,) if len(dims_of(left)) > 2 else ()), m, n)
        space = left.shape.layout.memory_space
        shape = array(out or kind_of(left.shape), *dims, space=space)
        root = code.emit("convolution", shape, inside[:2])
        _as_product(root, batch if len(dims_of(left)) > 2 else 0, precision)
        for other in inside[2:]:
            root = code.emit("add", shape, [root, other])
    value = code.fusion(root, operands, "kOutput", base)
    moved = hbm_ps(code, 0 if space else size_of(*operands, value))
    if window:
        steps, side = [str(size // window) for size in (n, m, k)], [str(window // 8), str(window // 128)]
        bounds = dict.fromkeys((f"{of}_window_bounds" for of in ("input", "kernel", "output")), side)
        value.backend_config = json.dumps({"window_config": {"iteration_bounds": steps, **bounds}}).encode()
        moved = hbm_ps(code, size_of(left) * (n // window) + size_of(right) * (m // window) + size_of(value))
    return code.run(value, max(matrix_ps(code, m, k, n, batch, precision, pad), moved) + OVERHEAD_PS)


def part_of(code: Code, x: Value, *dims: int) -> Value:
    """So many elements of the activations under another shape, free of cost; a parameter where these have fewer."""
    if count_of(x) < prod(dims):
        return code.param(kind_of(x.shape), *dims)
    flat = code.bitcast(x, count_of(x))
    return code.bitcast(code.emit("slice", array(kind_of(x.shape), prod(dims)), [flat]), *dims)


def _as_product(root: Value, batch: int, precision: str) -> None:
    """Writes a convolution as the compiler writes a dot; a batch is a spatial dimension with holes."""
    numbers = root.convolution_dimension_numbers
    first = 1 if batch else 0
    numbers.input_batch_dimension, numbers.input_feature_dimension = first, first + 1
    numbers.kernel_input_feature_dimension, numbers.kernel_output_feature_dimension = first, first + 1
    numbers.output_batch_dimension, numbers.output_feature_dimension = first, first + 1
    if batch:
        numbers.input_spatial_dimensions.append(0)
        numbers.kernel_spatial_dimensions.append(0)
        numbers.output_spatial_dimensions.append(0)
        root.window.dimensions.add(size=batch, stride=max(1, batch - 1), window_dilation=1, base_dilation=batch)
    level = _PRECISION_NUMBER[precision]
    if level:  # `precision_config`, field 51: one level for each operand
        root.MergeFromString(bytes([51 << 3 & 127 | 2 | 128, 51 << 3 >> 7, 4, 10, 2, level, level]))


def dense(
    code: Code,
    x: Value,
    n: int,
    base: str = "convolution_fusion",
    precision: str = "default",
    pad: bool = True,
    out: str = "",
) -> Value:
    """A product of activations [m, k] with weights [k, n]."""
    weights = code.param(kind_of(x.shape), dims_of(x)[-1], n)
    return product(code, x, weights, base, precision, pad, out=out)


def pointwise(
    code: Code,
    operands: Sequence[Value],
    ops: Sequence[str] = ("multiply", "add"),
    base: str = "multiply_add_fusion",
    kind: str = "",
    reached: float = HBM_REACHED,
) -> Value:
    """A loop fusion over arrays of one size, bound by memory; it writes one more."""
    with code.fused(operands) as inside:
        shape = array(kind or kind_of(operands[0].shape), *dims_of(operands[0]))
        root = inside[0]
        for number, opcode in enumerate(ops):
            root = code.emit(opcode, shape, [root, inside[(number + 1) % len(inside)]])
    value = code.fusion(root, operands, "kLoop", base)
    lanes = VECTOR_LANES * code.device.clock_hz
    ps = max(hbm_ps(code, size_of(*operands, value), reached), count_of(value) * len(ops) / lanes * 1e12)
    return code.run(value, ps + OVERHEAD_PS)


def update(code: Code, rows: int, columns: int, count: int = 1) -> None:
    """Adam's update of f32 parameters: reads gradient, weights and both moments, writes three."""
    with code.at("adam/sub", "optimizer.py:64"):
        for _ in range(count):
            arrays = [code.param("f32", rows, columns) for _ in range(4)]
            shape = arrays[0].shape
            with code.fused(arrays) as inside:
                parts = []
                for array_in in inside[1:]:
                    scaled = code.emit("multiply", shape, [array_in, inside[0]])
                    parts.append(code.emit("subtract", shape, [array_in, scaled]))
                root = code.emit("tuple", tuple_of(shape, shape, shape), parts)
            value = code.fusion(root, arrays, "kLoop", "multiply_subtract_fusion")
            code.run(value, hbm_ps(code, size_of(*arrays, value)) + OVERHEAD_PS)


def kernel(
    code: Code, operands: Sequence[Value], base: str, ps: float, flops: int = 0, size: int = 0, dims: Sequence[int] = ()
) -> Value:
    """A Pallas kernel; FLOPs and bytes are what its author declared, 0 where nobody did."""
    shape = array(kind_of(operands[0].shape), *(dims or dims_of(operands[0])))
    value = code.emit("custom-call", shape, operands, base)
    value.custom_call_target = b"tpu_custom_call"
    if flops or size:
        cost = f'"cost_estimate":{{"flops":"{flops}","transcendentals":"0","bytes_accessed":"{size}"}}'
        value.backend_config = f'{{"custom_call_config":{{{cost}}}}}'.encode()
    return code.run(value, ps, "custom-call", flops, Traffic(size * 2 // 3, size - size * 2 // 3))


def relayout(code: Code, value: Value) -> Value:
    """A copy into another layout; it reaches less of HBM's bandwidth than ops that read in order."""
    dims = dims_of(value)
    order = (len(dims) - 2, len(dims) - 1, *range(len(dims) - 3, -1, -1))
    moved = code.emit("copy", array(kind_of(value.shape), *dims, order=order), [value])
    return code.run(moved, hbm_ps(code, 2 * size_of(value), 0.6) + OVERHEAD_PS)


# ---- collectives ----------------------------------------------------------------------------------------------------


def everyone(code: Code) -> Groups:
    """One group of all cores."""
    return (tuple(range(code.cores)),)


def wire_ps(code: Code, opcode: str, size: int, groups: Groups, over_dcn: bool = False) -> float:
    """Time that a collective over an array of so many bytes (the whole, gathered one) is on the wire."""
    members = len(groups[0])
    sent = size * (members - 1) / members * (2 if opcode == "all-reduce" else 1)
    if over_dcn:
        return sent / DCN_BYTES * 1e12 + DCN_LATENCY_PS
    return sent / (2 * code.device.link_bytes) * 1e12 + LINK_LATENCY_PS * members


def _result(code: Code, opcode: str, value: Value, members: int) -> tuple[tuple[int, ...], int]:
    """Sizes of what a collective gives, and bytes of the whole array."""
    rows, *others = dims_of(value)
    if opcode == "all-gather":
        return (rows * members, *others), size_of(value) * members
    if opcode == "reduce-scatter":
        return (rows // members, *others), size_of(value)
    return (rows, *others), size_of(value)


def collective(code: Code, opcode: str, value: Value, groups: Groups = (), over_dcn: bool = False) -> Value:
    """A collective that the program waits for."""
    groups = groups or everyone(code)
    dims, size = _result(code, opcode, value, len(groups[0]))
    made = code.emit(opcode, array(kind_of(value.shape), *dims), [value])
    flops = count_of(made) if opcode in ("all-reduce", "reduce-scatter") else 0
    return code.meet(made, wire_ps(code, opcode, size, groups, over_dcn), groups, flops)


def start_collective(code: Code, opcode: str, value: Value, groups: Groups = ()) -> Value:
    """Starts a collective that goes on beside the program."""
    groups = groups or everyone(code)
    dims, size = _result(code, opcode, value, len(groups[0]))
    shape = tuple_of(value.shape, array(kind_of(value.shape), *dims))
    return code.start(code.emit(f"{opcode}-start", shape, [value]), wire_ps(code, opcode, size, groups), "link", groups)


def finish(code: Code, started: Value, base: str = "") -> Value:
    """Waits for what was started."""
    opcode = started.opcode.decode().replace("-start", "-done")
    shape = started.shape
    return code.done(opcode, started, shape.tuple_shapes[1] if shape.tuple_shapes else shape, base)


def across_slices(code: Code, value: Value, transfer_ps: float) -> Value:
    """Sends an array to another slice and waits for that one's, over the data centre's network: the hosts carry it."""
    sent = code.emit("send", tuple_of(value.shape, array("u32"), scalar("pred")), [value])
    back = code.emit("recv", tuple_of(value.shape, array("u32"), scalar("pred")), [sent])
    done = code.emit("recv-done", value.shape, [back])
    for part in (sent, back, done):
        _by_megascale(part)
    for part in (sent, back):
        code.run(part, 4 * US, f"host {part.opcode.decode()}", 0, Traffic())
    return code.run(done, transfer_ps, "host recv-done", 0, Traffic())


def start_across_slices(code: Code, value: Value, transfer_ps: float, slices: Groups) -> Value:
    """Starts what `across_slices` waits for; cores of different `slices` begin when the last of their group does."""
    shape = tuple_of(value.shape, array("u32"), scalar("pred"))
    sent = _by_megascale(code.emit("send", shape, [value]))
    code.run(sent, 4 * US, "host send", 0, Traffic())
    back = _by_megascale(code.emit("recv", shape, [sent]))
    return code.start(back, transfer_ps, "host", slices, category="host recv", traffic=Traffic())


def arrive_across_slices(code: Code, started: Value) -> Value:
    """Waits for an array from another slice."""
    done = _by_megascale(code.emit("recv-done", started.shape.tuple_shapes[0], [started]))
    return code.wait(done, started, "host recv-done", Traffic())


def _by_megascale(part: Value) -> Value:
    part.is_host_transfer = True
    part.channel_id = 900
    part.frontend_attributes.map["_xla_host_transfer_handler_name"] = b"xla_megascale_runtime"
    part.frontend_attributes.map["_xla_host_transfer_rendezvous"] = b"all-reduce.7"
    return part


def permute(code: Code, value: Value, route: Groups) -> Value:
    """Starts to send an array along a route from core to core."""
    words = [array("u32", space=2), array("u32", space=2)]
    shape = tuple_of(value.shape, value.shape, *words)
    transfer = size_of(value) / (2 * code.device.link_bytes) * 1e12 + LINK_LATENCY_PS
    return code.start(code.emit("collective-permute-start", shape, [value]), transfer, "link", route=route)


# ---- copies beside the program --------------------------------------------------------------------------------------


def fetch(code: Code, value: Value, space: int = VMEM, sliced: bool = False, slowness: float = 1.0) -> Value:
    """Starts a copy of an array into another memory: VMEM, or HBM's (0) from the host's."""
    there = array(kind_of(value.shape), *dims_of(value), space=space)
    shape = tuple_of(there, value.shape, array("u32", space=2))
    rate = PCIE_BYTES if HOST in (space, value.shape.layout.memory_space) else code.device.hbm_bytes * 0.85
    transfer = size_of(value) / rate * 1e12 * slowness + OVERHEAD_PS
    if not sliced:
        return code.start(code.emit("copy-start", shape, [value]), transfer, "copy")
    shape = tuple_of(tuple_of(value.shape), there, scalar("s32"))
    return code.start(code.emit("async-start", shape, [value], "slice-start"), transfer, "copy")


def arrive(code: Code, started: Value) -> Value:
    """Waits for a copy."""
    if started.opcode == b"copy-start":
        return code.done("copy-done", started, started.shape.tuple_shapes[0])
    return code.done("async-done", started, started.shape.tuple_shapes[1], "slice-done")


# ---- scattered access -----------------------------------------------------------------------------------------------


def lookup(
    code: Code, opcode: str, table: Value, rows: int, ns_a_row: float, base: str = "", update_of: Value | None = None
) -> Value:
    """A gather from a table, a scatter into it, or slices of it, that takes so long for every row."""
    width = dims_of(table)[-1]
    indices = code.param("s32", rows)
    kind = kind_of(table.shape)
    operands = [table, indices] if update_of is None else [table, indices, update_of]
    shape = array(kind, rows, width) if update_of is None else table.shape
    with code.fused(operands) as inside:
        root = code.emit(opcode, shape, inside)
    value = code.fusion(root, operands, "kCustom", base or f"{opcode}_custom_fusion")
    moved = prod((rows, width)) * (2 if kind == "bf16" else 4)
    traffic = Traffic(moved + rows * 4, moved) if update_of is None else Traffic(2 * moved + rows * 4, moved)
    return code.run(value, rows * ns_a_row * 1000 + OVERHEAD_PS, "custom fusion", 0, traffic)


def busy_turns(turns: int, first: tuple[int, ...], several: int, waits: bool) -> tuple[tuple[float, ...], ...]:
    """Whether each stage works in each turn: on so many microbatches from its first turn on, or in all turns."""
    return tuple(tuple(float(not waits or 0 <= turn - begin < several) for begin in first) for turn in range(turns))


def moved(code: Code, value: Value, reached: float) -> Value:
    """An op that reads as much of HBM as it writes, and reaches this share of its peak."""
    traffic = Traffic(size_of(value), size_of(value))
    return code.run(value, hbm_ps(code, traffic.hbm, reached) + OVERHEAD_PS, traffic=traffic)
