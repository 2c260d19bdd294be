"""HLO modules of a profile: found without parsing, parsed once, safe against damage."""

from __future__ import annotations

import threading

import pytest

from tests.support.build import PlaneBuilder, bare_host, present, trace_of
from tpuprof.parsers.formats.hlo import programs
from tpuprof.parsers.formats.hlo.matrix import matrix_works
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.formats.xspace.trace import Trace

F32, S32, TUPLE = 11, 4, 13


def small() -> hlo_pb2.HloProto:
    """add(broadcast, parameter) in a fusion, wrapped once more in an asynchronous call."""
    proto = hlo_pb2.HloProto()
    module = proto.hlo_module
    module.name = b"jit_step"
    inner = module.computations.add(name=b"fused", id=1)
    array = hlo_pb2.ShapeProto(element_type=F32, dimensions=[5, 1024])
    array.layout.minor_to_major[:] = [1, 0]
    array.layout.tiles.add(dimensions=[8, 128])
    inner.instructions.add(name=b"param_0", opcode=b"parameter", id=10, shape=array)
    one = inner.instructions.add(name=b"c", opcode=b"constant", id=11, shape=hlo_pb2.ShapeProto(element_type=S32))
    one.literal.s32s.append(7)
    inner.instructions.add(name=b"broadcast.8", opcode=b"broadcast", id=12, shape=array, operand_ids=[11])
    add = inner.instructions.add(name=b"add.4", opcode=b"add", id=13, shape=array, operand_ids=[12, 10])
    add.metadata.op_name, add.metadata.source_file, add.metadata.source_line = b"jit(step)/add", b"a/b.py", 12
    entry = module.computations.add(name=b"main", id=2)
    entry.instructions.add(name=b"p", opcode=b"parameter", id=20, shape=array)
    fusion = entry.instructions.add(
        name=b"fusion.1", opcode=b"fusion", id=21, shape=array, operand_ids=[20], called_computation_ids=[1]
    )
    fusion.fusion_kind, fusion.metadata.stack_frame_id = b"kLoop", 2
    index = module.stack_frame_index
    index.file_names.extend([b"x.py", b"y.py"])
    index.file_locations.add(file_name_id=2, line=34)
    index.stack_frames.add(file_location_id=9)
    index.stack_frames.add(file_location_id=1, parent_frame_id=1)
    outer = module.computations.add(name=b"wrapper", id=3)
    outer.instructions.add(name=b"inner", opcode=b"fusion", id=30, called_computation_ids=[1])
    entry.instructions.add(name=b"start", opcode=b"async-start", id=22, called_computation_ids=[3], operand_ids=[20])
    entry.instructions.add(name=b"done", opcode=b"async-done", id=23, operand_ids=[22])
    entry.instructions.add(name=b"loop", opcode=b"while", id=24, called_computation_ids=[3], operand_ids=[20])
    return proto


def test_an_instruction_is_told_in_full() -> None:
    module = HloModule(small())
    add = present(module.instruction("%add.4"))
    assert add.expression == "%add.4 = f32[5,1024]{1,0:T(8,128)} add(%broadcast.8, %param_0)"
    assert (add.opcode, add.shape, add.operands) == ("add", "f32[5,1024]{1,0:T(8,128)}", ("broadcast.8", "param_0"))
    assert (add.framework_op, add.source, add.is_fusion) == ("jit(step)/add", "a/b.py:12", False)
    fusion = module.instruction("fusion.1")
    assert fusion is not None and fusion.is_fusion
    assert (fusion.framework_op, fusion.source) == (None, "y.py:34")
    assert fusion.expression.endswith("fusion(%p), kind=kLoop, calls=%fused")
    assert module.instruction("nothing") is None


def test_what_is_fused_comes_in_order_without_parameters() -> None:
    module = HloModule(small())
    assert [one.name for one in module.fused("fusion.1")] == ["c", "broadcast.8", "add.4"]
    assert [one.name for one in module.fused("start")] == ["inner"]
    assert [one.name for one in module.fused("done")] == ["inner"]
    assert module.fused("loop") == module.fused("add.4") == module.fused("nothing") == ()


def test_a_schedule_decides_the_order_where_it_is_whole() -> None:
    proto = small()
    proto.hlo_module.schedule.sequences[1].instruction_ids[:] = [11, 10, 13, 12]
    assert [one.name for one in HloModule(proto).fused("fusion.1")] == ["c", "add.4", "broadcast.8"]
    proto.hlo_module.schedule.sequences[1].instruction_ids[:] = [11, 11, 13, 12]
    assert [one.name for one in HloModule(proto).fused("fusion.1")] == ["c", "broadcast.8", "add.4"]


def test_expressions_keep_what_tells_instructions_apart() -> None:
    proto = small()
    main = proto.hlo_module.computations[1].instructions
    scalar = hlo_pb2.ShapeProto(element_type=S32)
    main.add(name=b"gte", opcode=b"get-tuple-element", id=40, operand_ids=[20], tuple_index=3, shape=scalar)
    main.add(name=b"cmp", opcode=b"compare", id=41, operand_ids=[20], comparison_direction=b"LT", shape=scalar)
    main.add(name=b"cc", opcode=b"custom-call", id=42, custom_call_target=b"Sharding", shape=scalar)
    dot = main.add(name=b"dot", opcode=b"dot", id=43, operand_ids=[20, 20], shape=scalar)
    dot.dot_dimension_numbers.lhs_contracting_dimensions.append(1)
    main.add(name=b"big", opcode=b"constant", id=44, shape=hlo_pb2.ShapeProto(element_type=F32, dimensions=[2]))
    main.add(name=b"tr", opcode=b"transpose", id=45, operand_ids=[20], dimensions=[1, 0], shape=scalar)
    module = HloModule(proto)
    found = {name: module.instruction(name) for name in ("gte", "cmp", "cc", "dot", "big", "tr", "param_0", "c")}
    assert {name: one.expression.partition(" = ")[2] for name, one in found.items() if one is not None} == {
        "gte": "s32[] get-tuple-element(%p), index=3",
        "cmp": "s32[] compare(%p), direction=LT",
        "cc": 's32[] custom-call(), custom_call_target="Sharding"',
        "dot": "s32[] dot(%p, %p), lhs_contracting_dims={1}, rhs_contracting_dims={}",
        "big": "f32[2] constant({...})",
        "tr": "s32[] transpose(%p), dimensions={1,0}",
        "param_0": "f32[5,1024]{1,0:T(8,128)} parameter(0)",
        "c": "s32[] constant(7)",
    }


def test_cycles_and_dangling_ids_end() -> None:
    proto = hlo_pb2.HloProto()
    main = proto.hlo_module.computations.add(name=b"main", id=1)
    main.instructions.add(name=b"self", opcode=b"fusion", id=1, operand_ids=[1, 99], called_computation_ids=[1, 77])
    main.instructions.add(name=b"a", opcode=b"async-done", id=2, operand_ids=[3])
    main.instructions.add(name=b"b", opcode=b"async-update", id=3, operand_ids=[2])
    main.instructions.add(name=b"lost", opcode=b"fusion", id=4, called_computation_ids=[77])
    main.instructions.add(name=b"frame", opcode=b"add", id=5).metadata.stack_frame_id = 9
    module = HloModule(proto)
    assert [one.name for one in module.fused("self")] == ["self", "a", "b", "lost", "frame"]
    assert module.fused("a") == module.fused("lost") == ()
    own = module.instruction("self")
    assert own is not None and own.operands == ("self",)
    frame = module.instruction("frame")
    assert frame is not None and frame.source is None
    assert matrix_works(module, "self", 128) == ()


def profile(**programs: bytes) -> bytes:
    """A profile whose metadata plane holds protos by label; stat name and id come from the label."""
    plane = PlaneBuilder.alone("/host:metadata")
    for label, body in programs.items():
        plane.event_id(f"jit_{label}({label})", "", **{"Hlo Proto": body})
    return plane.space.SerializeToString()


def test_programs_are_found_without_parsing_and_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[HloModule] = []

    class Counted(HloModule):
        def __init__(self, proto: hlo_pb2.HloProto) -> None:
            super().__init__(proto)
            parsed.append(self)

    monkeypatch.setattr(programs, "HloModule", Counted)
    trace = Trace.from_bytes(profile(a=small().SerializeToString(), b=small().SerializeToString()))
    found = HloModules.of(trace)
    trace.close()
    assert (dict(found.names), parsed) == ({1: "jit_a(a)", 2: "jit_b(b)"}, [])
    seen: list[HloModule | None] = []
    threads = [threading.Thread(target=lambda: seen.append(found.module(1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == parsed * 8 and len(parsed) == 1
    assert found.problem(1) is None


def test_ids_and_names_come_from_stats_old_names_and_metadata_ids() -> None:
    plane = PlaneBuilder.alone("/host:metadata")
    body = small().SerializeToString()
    plane.event_id("jit_f(5)", "", program_id=-1, **{"HLO Proto": body})
    plane.event_id("no proto", other="x")
    plane.event_id("plain", "", **{"Hlo Proto": body})
    plane.event_id("jit_f(-12)", "", **{"Hlo Proto": body})
    plane.event_id("again(5)", "", program_id=-1, **{"Hlo Proto": body})
    PlaneBuilder(plane.space, "/device:TPU:0").event_id("x(1)", "", **{"Hlo Proto": body})
    found = HloModules.of(trace_of(plane.space))
    assert list(found.names.items()) == [(3, "plain"), (4, "jit_f"), (2**64 - 1, "jit_f")]
    assert found.module(-1) is found.module(2**64 - 1) is not None


def test_what_cannot_be_read_says_why() -> None:
    found = HloModules.of(Trace.from_bytes(profile(good=small().SerializeToString(), bad=b"\x0a\xff\xff", none=b"")))
    assert found.module(2) is None
    assert found.problem(2) == "The compiled HLO of jit_bad(bad) is damaged: its 3 bytes do not read as an HloProto."
    assert found.problem(3) == "The compiled HLO of jit_none(none) is empty: it has no computations."
    assert found.module(9) is None
    assert found.problem(9) == "The profile does not hold the compiled HLO of program 9."
    assert found.module(1) is not None
    assert not HloModules.of(trace_of(bare_host())).names
