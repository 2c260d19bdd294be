"""Random programs: no detector ever fails, whatever their ops hand to each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.pages.findings.build import PEAKS, Op, evidence, findings, grid, modules, with_
from tpuprof.parsers.base.op_class import OpClass
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.pages.findings.budget import budget
from tpuprof.parsers.pages.findings.finding import Evidence
from tpuprof.parsers.pages.findings.ops.losses import losses
from tpuprof.parsers.steps.step_account import tpu_account

Instruction = hlo_pb2.HloInstructionProto
Computation = hlo_pb2.HloComputationProto

TYPES = (16, 16, 11, 11, 10, 8, 2, 1, 5)  # bf16, f32, f16, u32, s8, pred, s64
SIZES = ((4096, 1024), (1024, 4096), (16, 1024, 1024), (1024, 1024), (4096,), (64, 64), (8, 2048, 512), ())
ONE = (b"convert", b"bitcast", b"copy", b"negate", b"transpose", b"broadcast", b"reduce", b"slice", b"pad", b"iota")
MORE = (b"add", b"multiply", b"subtract", b"select", b"dot", b"gather", b"concatenate", b"dynamic-update-slice")
BITS = (b"xor", b"shift-left", b"shift-right-logical", b"compare")
HANDS = (b"tuple", b"get-tuple-element", b"opt-barrier", b"copy-start", b"copy-done", b"async-start", b"async-done")
CALLS = (b"fusion", b"fusion", b"fusion", b"while", b"call", b"conditional", b"custom-call")
OTHERS = (b"sort", b"all-reduce", b"all-to-all", b"collective-permute", b"infeed", b"send", b"recv", b"rng")
FUSED = (*ONE, *MORE, *BITS, *BITS, b"tuple")
ENTRY = (*ONE, *MORE, *HANDS, *HANDS, *CALLS, *CALLS, *OTHERS)

CATEGORIES = {
    b"fusion": ("loop fusion", "loop fusion", "convolution fusion", "custom fusion", "data formatting", "input fusion"),
    b"dot": ("convolution",),
    b"call": ("call",),
    b"broadcast": ("broadcast", "data formatting"),
}
SCOPES = ("a/add", "transpose(jvp(f))/dot", "rematted_computation/dot", "debug_print", "")
CLASSES: tuple[OpClass, ...] = ("compute", "vector", "copy", "unknown", "collective", "host", "idle")


@dataclass
class Maker:
    """Makes a program.

    Attributes:
        ran: its instructions that may be rows of the op table.
    """

    rng: Random
    proto: hlo_pb2.HloProto
    ran: list[Instruction]
    number: int = 0

    def next(self) -> int:
        """An id that nothing has."""
        self.number += 1
        return self.number

    def shape(self, into: hlo_pb2.ShapeProto, like: hlo_pb2.ShapeProto | None = None) -> None:
        """Fills in an array's shape, in HBM mostly."""
        if like is not None and self.rng.random() < 0.6:
            into.CopyFrom(like)
            return
        sizes = self.rng.choice(SIZES)
        into.element_type, into.dimensions[:] = self.rng.choice(TYPES), sizes
        order = list(range(len(sizes)))
        into.layout.minor_to_major[:] = order if self.rng.random() < 0.2 else order[::-1]
        into.layout.memory_space = int(self.rng.random() < 0.1)

    def tuple_shape(self, into: hlo_pb2.ShapeProto, parts: list[hlo_pb2.ShapeProto]) -> None:
        """Fills in the shape of a tuple."""
        into.element_type = 13
        for part in parts:
            into.tuple_shapes.add().CopyFrom(part)

    def computation(self, given: list[hlo_pb2.ShapeProto], depth: int) -> Computation:
        """A computation of some parameters; of a fusion where it is not run by itself (`depth` below 0)."""
        fused, rng = depth < 0, self.rng
        within = self.proto.hlo_module.computations.add(id=self.next(), is_fusion_computation=fused)
        within.name = b"c.%d" % within.id
        if rng.random() < 0.03:
            return within  # an empty one
        found: list[Instruction] = []
        for at, shape in enumerate(given):
            parameter = Instruction(id=self.next(), opcode=b"parameter", parameter_number=at)
            parameter.shape.CopyFrom(shape)
            found.append(parameter)
        for _ in range(rng.randint(0 if given else 1, 6 if fused else 14)):
            found.append(self.instruction(rng.choice(FUSED if fused else ENTRY), found, depth))
        if rng.random() < 0.5:
            root = Instruction(id=self.next(), opcode=b"tuple")
            root.operand_ids[:] = [rng.choice(found).id for _ in range(rng.randint(0, 3))]
            made = {each.id: each.shape for each in found}
            self.tuple_shape(root.shape, [made[each] for each in root.operand_ids])
            found.append(root)
        for each in found:
            each.name = each.name or b"%s.%d" % (each.opcode, each.id)
        within.instructions.extend(found)
        within.root_id = rng.choice(found).id if rng.random() < 0.3 else found[-1].id
        if not fused:
            self.ran += found
        return within

    def instruction(self, opcode: bytes, found: list[Instruction], depth: int) -> Instruction:
        """One of some opcode; what it is given may be read by others too."""
        rng, each = self.rng, Instruction(id=self.next(), opcode=opcode)
        operands = [rng.choice(found) for _ in range(rng.randint(1, 3))] if found else []
        if opcode in (*MORE, *BITS) and operands and rng.random() < 0.7:
            same = [other for other in found if other.shape.dimensions == operands[0].shape.dimensions]
            operands = [operands[0], rng.choice(same)]
        each.operand_ids[:] = [operand.id for operand in operands]
        first = operands[0].shape if operands else None
        arrays = [shape for shape in (operand.shape for operand in operands) if not shape.tuple_shapes]
        if opcode == b"get-tuple-element" and first is not None and first.tuple_shapes:
            each.operand_ids[:], each.tuple_index = [operands[0].id], rng.randrange(len(first.tuple_shapes))
            each.shape.CopyFrom(first.tuple_shapes[each.tuple_index])
        elif opcode == b"tuple":
            self.tuple_shape(each.shape, [operand.shape for operand in operands])
        elif opcode in (b"sort", b"copy-start", b"recv", b"all-reduce") or (opcode == b"fusion" and rng.random() < 0.3):
            self.tuple_shape(each.shape, [hlo_pb2.ShapeProto() for _ in range(rng.randint(1, 3))])
            for part in each.shape.tuple_shapes:
                self.shape(part, rng.choice(arrays) if arrays else None)
        else:
            self.shape(each.shape, rng.choice(arrays) if arrays else None)
        if opcode in (b"broadcast", b"reduce", b"transpose", b"concatenate"):
            most = len(each.shape.dimensions if opcode == b"broadcast" or first is None else first.dimensions)
            each.dimensions[:] = rng.sample(range(most), rng.randint(0, most))
        if opcode == b"dot":
            each.dot_dimension_numbers.lhs_contracting_dimensions[:] = [rng.randint(0, 2)]
            each.dot_dimension_numbers.rhs_contracting_dimensions[:] = [rng.randint(0, 2)]
            each.precision_config.operand_precision[:] = [rng.randint(0, 2)] * 2
        if opcode == b"custom-call":
            each.custom_call_target = rng.choice((b"tpu_custom_call", b"ConcatBitcast", b"Sharding"))
        if opcode in (b"fusion", b"call", b"async-start") and rng.random() < 0.95:
            inside = depth - 1 if opcode == b"call" and depth > 0 else -1
            given = [operand.shape for operand in operands]
            each.called_computation_ids[:] = [self.computation(given, inside).id]
        if opcode in (b"while", b"conditional") and depth > 0 and first is not None:
            count = rng.randint(1, 2)
            each.called_computation_ids[:] = [self.computation([first], depth - 1).id for _ in range(count)]
            each.operand_ids[:], each.backend_config = [operands[0].id], b'{"known_trip_count":{"n":"4"}}'
            each.shape.CopyFrom(first)
        return each


def evidence_of(rng: Random) -> Evidence:
    """A program, and how long its ops took."""
    maker = Maker(rng, hlo_pb2.HloProto(), [])
    given = [hlo_pb2.ShapeProto() for _ in range(rng.randint(0, 4))]
    for shape in given:
        maker.shape(shape)
        if rng.random() < 0.2:
            parts = [hlo_pb2.ShapeProto.FromString(shape.SerializeToString())] * 2
            shape.Clear()
            maker.tuple_shape(shape, parts)
    entry = maker.computation(given, 2)
    maker.proto.hlo_module.entry_computation_id = entry.id
    if given and rng.random() < 0.3:
        maker.proto.hlo_module.input_output_alias.entries.add(parameter_number=rng.randrange(len(given)))
    kept = [each for each in maker.ran if rng.random() < 0.9]
    ops = list(_ops(rng, kept))
    cores = rng.choice((1, 2, 4))
    times = {name: rng.choice((0, 5, 100)) for name in CLASSES} | {"vector": 400}
    steps = grid(times, cores=cores, hosts=rng.choice((1, cores))) if rng.random() < 0.8 else None
    of = evidence(steps, ops, total=20_000, cores=cores)
    return with_(
        of,
        modules=(modules(maker.proto.SerializeToString()),) if rng.random() < 0.95 else (),
        peaks=rng.choice((PEAKS, PEAKS, Peaks())),
        device_type=rng.choice(("TPU v5p", "TPU v6 lite", None)),
        memory=rng.choice((None, (90, 100), (10 << 30, 16 << 30))),
        offloaders=frozenset(op.name for op in ops if rng.random() < 0.1),
    )


def _ops(rng: Random, ran: list[Instruction]) -> Iterator[Op]:
    """Rows of the table: some take hardly any time, some move what HBM can."""
    for each in ran:
        name = each.name.decode()
        kind = each.opcode.decode()
        us = rng.choice((0, 0.01, 1, 20, 400)) * 20
        moved = round(us / 20 * 1e-6 * 1000e9 * rng.choice((0, 0.01, 0.5, 0.85, 0.85)))
        flops = round(us / 20 * 1e-6 * 100e12 * rng.choice((0, 0, 0.02, 0.5)))
        scope = rng.choice(SCOPES if rng.random() < 0.1 else SCOPES[:2])
        yield Op(name, rng.choice(CATEGORIES.get(each.opcode, (kind,))), us, 20, flops, moved, scope=scope)


@settings(derandomize=True, max_examples=3 * EXAMPLES, phases=(Phase.generate,))
@given(st.randoms(use_true_random=False))
def test_no_detector_ever_fails(rng: Random) -> None:
    of = evidence_of(rng)
    findings(of)
    failed: list[str] = []
    whole = budget(of, tpu_account(of.grid))
    assert whole is None or all(loss.time_ps > 0 for loss in losses(whole, 1e9, failed))
    assert not failed
