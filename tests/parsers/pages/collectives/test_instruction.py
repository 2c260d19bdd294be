"""What is read of collective ops, from their texts and from the compiled HLO."""

from __future__ import annotations

import pytest

from tests.support.composed.slices import OPS, RENDEZVOUS, hlo_module
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.pages.collectives.instruction import read_instruction, read_slice_transfer
from tpuprof.parsers.pages.collectives.slices import group_size, network_bytes
from tpuprof.parsers.steps.boundaries.replica_groups import ALL


def test_a_whole_op() -> None:
    text = "%all-reduce.1 = bf16[8,1024]{1,0:T(8,128)(2,1)} all-reduce(bf16[8,1024] %p), replica_groups={}, to_apply=%a"
    read = read_instruction("all-reduce", "all-reduce.1", text, None)
    assert (read.kind, read.role, read.groups, read.result_bytes) == ("all-reduce", "", ALL, 16384)
    assert read.payload == 16384


def test_an_op_with_several_results_has_all_their_bytes() -> None:
    text = "%all-to-all = (f32[4]{0}, f32[4]{0}) all-to-all(f32[4] %a, f32[4] %b), replica_groups={{0,1}}"
    assert read_instruction("all-to-all", "all-to-all", text, None).result_bytes == 32


def test_a_reduce_scatter_counts_what_goes_in() -> None:
    text = "%reduce-scatter.2 = f32[128]{0} reduce-scatter(f32[512] %p), replica_groups={{0,1,2,3}}, dimensions={0}"
    assert read_instruction("reduce-scatter", "reduce-scatter.2", text, None).payload == 4 * 512
    alone = text.replace(", replica_groups={{0,1,2,3}}", "")
    assert read_instruction("reduce-scatter", "reduce-scatter.2", alone, None).payload is None


def test_the_halves_of_an_asynchronous_op() -> None:
    start, done = (f"%{name} = {OPS[name][1]}" for name in ("all-gather-start.1", "all-gather-done.1"))
    first = read_instruction("all-gather-start", "all-gather-start.1", start, None)
    second = read_instruction("all-gather-done", "all-gather-done.1", done, None)
    assert (first.kind, first.role, first.result_bytes) == ("all-gather", "start", None)
    assert first.groups is not None and first.groups.axis == "fsdp"
    assert (second.kind, second.role, second.waits_for) == ("all-gather", "done", "all-gather-start.1")
    assert second.result_bytes == 2048 * 1024 * 2


def test_without_its_text_the_names_tell() -> None:
    read = read_instruction("async-done", "all-reduce-done.7", "", None)
    assert (read.kind, read.role, read.waits_for) == ("all-reduce", "done", "all-reduce-start.7")
    assert (read.groups, read.result_bytes) == (None, None)
    assert read_instruction("all-gather fusion", "fusion.3", "", None).kind == "all-gather"
    fused = read_instruction("custom fusion", "async-collective-done.3", "", None)
    assert (fused.kind, fused.waits_for) == ("collective", "async-collective-start.3")
    assert read_instruction("async-start", "async-collective-permute-start", "", None).kind == "collective-permute"


def fused_module() -> HloModule:
    """A fusion that starts an all-gather, the elements of its result, and a fusion that ends it."""
    proto = hlo_pb2.HloProto()
    inside = proto.hlo_module.computations.add(name=b"fused", id=2)
    gather = inside.instructions.add(name=b"all-gather.9", opcode=b"all-gather", id=21)
    gather.replica_groups.add(replica_ids=(0, 2))
    gather.replica_groups.add(replica_ids=(1, 3))
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    main.instructions.add(name=b"async-collective-start.4", opcode=b"fusion", id=1, called_computation_ids=[2])
    main.instructions.add(name=b"element", opcode=b"get-tuple-element", id=2, operand_ids=[1])
    main.instructions.add(name=b"async-collective-done", opcode=b"fusion", id=3, operand_ids=[2])
    return HloModule(proto)


def test_fused_halves_are_looked_up_in_the_compiled_hlo() -> None:
    module = fused_module()
    text = "%async-collective-done = bf16[64]{0} fusion(bf16[32] %element), kind=kCustom, calls=%fused.2"
    done = read_instruction("custom fusion", "async-collective-done", text, module)
    assert (done.kind, done.role, done.waits_for) == ("all-gather", "done", "async-collective-start.4")
    assert done.groups is not None and done.groups.label == "2×2"
    assert done.result_bytes == 128
    start = read_instruction("custom fusion", "async-collective-start.4", "", module)
    assert (start.kind, start.role) == ("all-gather", "start")


def test_an_all_reduce_that_is_cut_is_a_reduce_scatter() -> None:
    proto = hlo_pb2.HloProto()
    inside = proto.hlo_module.computations.add(name=b"all-reduce-scatter.1", id=2)
    reduce = inside.instructions.add(name=b"all-reduce.9", opcode=b"all-reduce", id=21)
    reduce.shape.element_type = 11  # f32
    reduce.shape.dimensions.append(64)
    reduce.replica_groups.add(replica_ids=(0, 1, 2, 3))
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    main.instructions.add(name=b"fusion.1", opcode=b"fusion", id=1, called_computation_ids=[2])
    text = "%fusion.1 = f32[18]{0} fusion(f32[64] %p), kind=kCustom, calls=%all-reduce-scatter.1"
    read = read_instruction("all-reduce-scatter fusion", "fusion.1", text, HloModule(proto))
    assert (read.kind, read.payload) == ("reduce-scatter", 256)  # the result is padded, the sum is not
    alone = read_instruction("all-reduce-scatter fusion", "fusion.1", text, None)
    assert (alone.kind, alone.payload) == ("reduce-scatter", None)


def test_transfers_between_slices_from_hlo_and_from_text() -> None:
    module = HloModule(hlo_pb2.HloProto.FromString(hlo_module()))
    known = read_slice_transfer("", module.instruction_proto("recv-done.1"))
    assert (known.opcode, known.rendezvous, known.channel) == ("recv-done", RENDEZVOUS[1], 3)
    assert (known.transfer_type, known.buffer_bytes) == ("ALL_REDUCE", 256 * 1024 * 4)
    told = read_slice_transfer(f"%recv-done.1 = {OPS['recv-done.1'][1]}", None)
    assert (told.opcode, told.rendezvous, told.channel) == ("recv-done", "", 3)
    assert told.buffer_bytes == known.buffer_bytes
    assert read_slice_transfer("", None).opcode == ""


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [
        ("ONE_TO_ONE", 1, 1200),
        ("ALL_GATHER", 4, 900),
        ("ALL_REDUCE", 4, 1800),
        ("ALL_TO_ALL", 4, 900),
        ("REDUCE_SCATTER", 4, 3600),
        ("RAGGED", 4, None),
        ("ALL_REDUCE", 0, None),
    ],
)
def test_bytes_over_the_network(kind: str, size: int, expected: int | None) -> None:
    assert network_bytes(1200, size, kind) == expected


def test_slices_that_take_part() -> None:
    assert group_size(None) == group_size(b"") == group_size(b"\x12\x0c\x0a") == group_size(b"\x08\x05") == 0
    assert group_size(b"\x08\x02\x1a\x00") == 1
    assert group_size(b"\x08\x05\x12\x06\x0a\x01\x08\x0a\x01\x08") == 2
