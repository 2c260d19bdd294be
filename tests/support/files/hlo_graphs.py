"""Modules whose graph is known: a small one as HLO text, and one of any size as a proto."""

from __future__ import annotations

from collections.abc import Callable

from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.parse import read_module_text
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.model import ModuleLabel
from tpuprof.parsers.pages.graph.programs import OpTimes, Program, Programs
from tpuprof.parsers.pages.memory.compiled import CompiledModules, ModuleSource

SMALL = """\
HloModule jit_step, is_scheduled=true, entry_computation_layout={(f32[8,128]{1,0})->f32[8,128]{1,0}}

FileNames
1 "model.py"

FunctionNames
1 "step"

FileLocations
1 {file_name_id=1 function_name_id=1 line=12 end_line=12 column=1 end_column=9}

StackFrames
1 {file_location_id=1 parent_frame_id=1}

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

%fused (p0: f32[8,128], p1: f32[8,128]) -> f32[8,128] {
  %p0 = f32[8,128]{1,0:T(8,128)} parameter(0)
  %p1 = f32[8,128]{1,0:T(8,128)} parameter(1)
  %multiply.1 = f32[8,128]{1,0:T(8,128)} multiply(%p0, %p1)
  ROOT %add.1 = f32[8,128]{1,0:T(8,128)} add(%multiply.1, %p1), metadata={op_name="jit(step)/add" stack_frame_id=1}
}

%body (state: (s32[], f32[8,128], f32[8,128])) -> (s32[], f32[8,128], f32[8,128]) {
  %state = (s32[], f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %x = f32[8,128]{1,0:T(8,128)} get-tuple-element(%state), index=1
  %w = f32[8,128]{1,0:T(8,128)} get-tuple-element(%state), index=2
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %all-reduce-start = (f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)}) all-reduce-start(%x), \
channel_id=1, replica_groups={{0,1}}, to_apply=%add
  %copy.7 = f32[8,128]{0,1:T(8,128)} copy(%w)
  %all-reduce-done = f32[8,128]{1,0:T(8,128)} all-reduce-done(%all-reduce-start)
  %fusion.3 = f32[8,128]{1,0:T(8,128)} fusion(%all-reduce-done, /*index=1*/%copy.7), kind=kLoop, calls=%fused, \
control-predecessors={%next}, metadata={op_name="jit(step)/add" stack_frame_id=1}
  ROOT %tuple.1 = (s32[], f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)}) tuple(%next, %fusion.3, %w)
}

%condition (state.1: (s32[], f32[8,128], f32[8,128])) -> pred[] {
  %state.1 = (s32[], f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)}) parameter(0)
  %i.1 = s32[] get-tuple-element(%state.1), index=0
  %ten = s32[] constant(10)
  ROOT %less = pred[] compare(%i.1, %ten), direction=LT
}

ENTRY %main (arg: f32[8,128]) -> f32[8,128] {
  %arg = f32[8,128]{1,0:T(8,128)} parameter(0)
  %zero = s32[] constant(0)
  %copy-start = (f32[8,128]{1,0:T(8,128)S(1)}, f32[8,128]{1,0:T(8,128)}, u32[]) copy-start(%arg)
  %negate.2 = f32[8,128]{1,0:T(8,128)} negate(%arg)
  %copy-done = f32[8,128]{1,0:T(8,128)S(1)} copy-done(%copy-start)
  %tuple.2 = (s32[], f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)S(1)}) tuple(%zero, %negate.2, %copy-done)
  %while.1 = (s32[], f32[8,128]{1,0:T(8,128)}, f32[8,128]{1,0:T(8,128)}) while(%tuple.2), \
condition=%condition, body=%body
  %x.1 = f32[8,128]{1,0:T(8,128)} get-tuple-element(%while.1), index=1
  ROOT %exponential.4 = f32[8,128]{1,0:T(8,128)} exponential(%x.1)
}
"""
"""A loop over a fusion of what an all-reduce gives and of a copy that changes the layout of a prefetched argument."""


def small_graph() -> HloGraph:
    return HloGraph(HloModule(read_module_text("small", SMALL.splitlines())))


def program_of(graph: HloGraph) -> Program:
    """A graph as a program without a profile."""
    return Program(ModuleLabel(graph.module.name, 7, "host0"), graph, OpTimes(None))


def programs_of(*protos: hlo_pb2.HloProto) -> Programs:
    """The modules of a run without times, ids from 1 on."""
    modules = HloModules(
        {number: (str(proto.hlo_module.name, "utf-8"), _given(proto)) for number, proto in enumerate(protos, 1)}
    )
    return Programs(CompiledModules([ModuleSource("host0", modules)]), None)


def _given(proto: hlo_pb2.HloProto) -> Callable[[str], HloModule | str]:
    return lambda _: HloModule(proto)


def deep_module(instructions: int) -> hlo_pb2.HloProto:
    """A loop over layers of ten instructions each: one of them reads the weights of all, from one long tuple."""
    proto = hlo_pb2.HloProto()
    module = proto.hlo_module
    module.name, module.entry_computation_id = b"jit_deep", 2
    body = module.computations.add(id=1, name=b"body")
    layers = max(1, instructions // 10)
    number = 0

    def add(computation: hlo_pb2.HloComputationProto, opcode: str, *operands: int) -> hlo_pb2.HloInstructionProto:
        nonlocal number
        number += 1
        made = computation.instructions.add(id=number, name=f"{opcode}.{number}".encode(), opcode=opcode.encode())
        made.operand_ids.extend(operands)
        made.shape.element_type = 11
        made.shape.dimensions.extend((8, 128))
        made.shape.layout.minor_to_major.extend((1, 0))
        made.metadata.op_name = b"jit(deep)/layer"
        return made

    state = add(body, "parameter").id
    value = add(body, "get-tuple-element", state).id
    for layer in range(layers):
        weight = add(body, "get-tuple-element", state)
        weight.tuple_index = layer + 1
        last = [add(body, "copy", weight.id).id, value]
        for opcode in ("add", "multiply", "tanh", "subtract", "maximum", "copy", "negate"):
            last.append(add(body, opcode, last[-1], last[-2]).id)
        value = last[-1]
    body.root_id = add(body, "tuple", value).id
    main = module.computations.add(id=2, name=b"main")
    first = add(main, "parameter").id
    start = add(main, "tuple", first).id
    loop = add(main, "while", start)
    loop.called_computation_ids.append(1)
    main.root_id = loop.id
    for computation in module.computations:
        ids = [instruction.id for instruction in computation.instructions]
        module.schedule.sequences[computation.id].instruction_ids.extend(ids)
    return proto


def small_programs() -> Programs:
    return programs_of(read_module_text("small", SMALL.splitlines()))
