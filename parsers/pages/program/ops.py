"""What a compiled program does, op by op in the order of its schedule, and how long each takes.

At least: the larger of FLOPs at the peak and of bytes at HBM's peak, each array moved once. What may not run at all, in
a branch or in a loop whose trips are not stated, counts nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.record import dataclass, field
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_bits, matrix_works, spatial_kinds
from tpuprof.parsers.formats.hlo.modules import KERNEL_TARGET, HloModule
from tpuprof.parsers.formats.hlo.shapes import elements
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.pages.program.tiles import Tiles, tiles_of
from tpuprof.parsers.pages.program.told import SCALED_BAND, UNCLAIMED_BAND, Chip, Told, product_told, stream_told
from tpuprof.parsers.pages.program.traffic import Read, reads_of, written_of
from tpuprof.parsers.pages.program.trips import trip_count

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

    Proto = hlo_pb2.HloInstructionProto

NO_TRIPS = "it is in a loop whose trips the program does not state: its figures are those of one trip"
IN_BRANCH = "it is in a branch, which runs where the condition chooses it"
BESIDE = "it runs beside other ops"
COLLECTIVE = "how long a collective takes depends on the links and on when the other chips come"
KERNEL = "how long a Mosaic kernel takes is not in its tiles"
SLIDING = "convolutions that slide a window are told 40% wrong"
SLOW_FUNCTION = "functions such as tanh and softplus behind a product take time of their own"
FEW_LANES = "a reduction over 64 lanes or fewer fills no register"
FEW_ROWS = "a product with so few rows takes as long as it takes to begin"
NO_TILES = "the module holds no tiles of this product"
CHOSEN = "which parts of an array it touches is known when it runs"
NO_ESTIMATE = "the compiler gives no estimate of it"

_NOTHING = frozenset(
    (
        b"parameter",
        b"constant",
        b"tuple",
        b"get-tuple-element",
        b"bitcast",
        b"opt-barrier",
        b"after-all",
        b"async-update",
    )
)
_FREE = frozenset((b"AllocateBuffer", b"ConcatBitcast"))
_COLLECTIVES = (b"all-", b"reduce-scatter", b"collective-", b"ragged-all-to-all", b"send", b"recv")
_CALLS = frozenset((b"call", b"while", b"conditional"))
_SLOW = frozenset((b"tanh", b"log", b"log-plus-one", b"exponential-minus-one", b"erf", b"power", b"sine", b"cosine"))
_CHOOSING = frozenset((b"gather", b"scatter", b"sort"))
_MOVES = frozenset((b"copy", b"transpose", b"reshape", b"slice", b"pad", b"concatenate", b"dynamic-update-slice"))
_LANES, _LARGE, _ROWS, _FEW_FLOPS = 64, 10**6, 8, 10**9
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class ProgramOp:
    """One instruction of a program that does something. Times and bytes are those of one run.

    Attributes:
        name, opcode: as in the HLO.
        category: ``product``, ``loop`` (a fusion without one), ``kernel``, ``collective``, else the opcode.
        trips: how often it runs; None where the program does not state it.
        flops: of its products.
        reads: its operands; `sides` says which is the ``left`` and the ``right`` one of its product.
        written: bytes that it writes to HBM.
        tiles: how it is cut up; None where the compiler does not say.
        compute_s, hbm_s: seconds that FLOPs and bytes take at the peaks; 0 where it runs beside others.
        told: seconds by its tiles, also where nothing is claimed of it.
        reason: why nothing is claimed of its time; empty where something is.
        source: ``file:line``; None where the compiler does not say.
    """

    name: str
    opcode: str
    category: str
    trips: int | None
    flops: int
    reads: tuple[Read, ...]
    written: int
    tiles: Tiles | None
    compute_s: float
    hbm_s: float
    told: Told
    reason: str
    source: str | None
    sides: dict[int, str] = field(default_factory=dict)

    @property
    def hbm_bytes(self) -> int:
        """Bytes that it moves between HBM and the chip, each array once."""
        return self.written + sum(read.bytes for read in self.reads if read.in_hbm)

    @property
    def streamed_bytes(self) -> int:
        """Bytes that it moves through HBM, each array as often as its tiles stream it."""
        return self.hbm_bytes + sum(read.bytes * (self.streams(read) - 1) for read in self.reads if read.in_hbm)

    def streams(self, read: Read) -> int:
        """How often an operand passes from HBM to the chip; 0 where it does not lie there."""
        side = self.sides.get(read.number)
        return int(read.in_hbm) if self.tiles is None or side is None or not read.in_hbm else self.tiles.streams(side)

    @property
    def certain_trips(self) -> int:
        """How often it runs at least."""
        return 0 if self.reason == IN_BRANCH else self.trips or 0

    @property
    def bound_s(self) -> float:
        return max(self.compute_s, self.hbm_s)

    @property
    def told_s(self) -> tuple[float, float]:
        """The band of what is told, which does not go below the bound."""
        seconds, band = self.told
        return max(self.bound_s, seconds * (1 - band)), max(self.bound_s, seconds * (1 + band))


def program_ops(graph: HloGraph, chip: Chip) -> list[ProgramOp]:
    """The ops of a program in the order in which they run, those of loops and calls where these stand."""
    return list(_in(graph, chip, graph.entry, 1, "", 0))


def _in(graph: HloGraph, chip: Chip, number: int, trips: int | None, why: str, depth: int) -> Iterator[ProgramOp]:
    """The ops of a computation that runs so often; `why` nothing is claimed of all that is in it."""
    for row in graph.rows(number) if depth < _DEEPEST else ():
        proto = graph.proto(row)
        if proto.opcode in _CALLS:
            own = trip_count(graph.module, proto) if proto.opcode == b"while" else 1
            inner = None if own is None or trips is None else trips * own
            reason = why or (IN_BRANCH if proto.opcode == b"conditional" else NO_TRIPS if own is None else "")
            for called in graph.called[row].tolist():
                yield from _in(graph, chip, called, inner, reason, depth + 1)
        elif not _is_free(proto):
            yield _op(graph.module, proto, chip, trips, why)


def _is_free(proto: Proto) -> bool:
    """Whether an instruction takes no time that matters: it names values, waits, or computes a single number."""
    is_number = not (proto.shape.dimensions or proto.shape.tuple_shapes or proto.called_computation_ids)
    is_done = proto.opcode in _NOTHING or proto.opcode.endswith(b"-done") or proto.custom_call_target in _FREE
    return is_done or (is_number and proto.opcode != b"custom-call")


def _op(module: HloModule, proto: Proto, chip: Chip, trips: int | None, why: str) -> ProgramOp:
    """An instruction with its work and its time on a chip."""
    name, opcode, inside = text(proto.name), text(proto.opcode), _inside(module, proto)
    products = [one for one in inside if one.opcode in (b"convolution", b"dot")]
    works = matrix_works(module, name, chip.side) if products else ()
    product = products[0] if len(products) == 1 and products[0].opcode == b"convolution" else None
    tiles, reads, written = tiles_of(module, proto, product), reads_of(module, proto), written_of(module, proto)
    moved = [(read.number, read.bytes) for read in reads if read.in_hbm] + [(-1, written)]
    flops, hbm_bytes = sum(work.flops for work in works), sum(size for _, size in moved)
    peak, sides = chip.peak(matrix_bits(module, name) if works else None), dict[int, str]()
    compute, hbm = flops / peak, hbm_bytes / chip.hbm
    if product is not None and tiles is not None and tiles.axes:
        sides = dict(zip(_operands(proto, inside, product), ("left", "right"), strict=True))
        told = product_told(tiles, [(sides.get(number, "out"), size) for number, size in moved], peak, chip)
    else:
        told = stream_told(opcode, hbm_bytes, tiles.cycles if tiles is not None else 0, chip)
    has_tiles = tiles is not None and (not works or bool(tiles.axes))
    reason = why or _no_claim(module, proto, inside, works, has_tiles)
    band = UNCLAIMED_BAND if reason else told.band if chip.is_fitted else SCALED_BAND
    told = Told(max(told.seconds, compute, hbm), band)
    if opcode.endswith("-start"):
        compute, hbm, told, reason = 0.0, 0.0, Told(0.0, 0.0), BESIDE
    category, source = _category(proto, bool(works)), module.source(proto)
    shown = printable(name), printable(opcode), category
    return ProgramOp(*shown, trips, flops, reads, written, tiles, compute, hbm, told, reason, source, sides)


def _category(proto: Proto, is_product: bool) -> str:
    if is_product:
        return "product"
    if proto.opcode == b"custom-call":
        return "kernel" if proto.custom_call_target == KERNEL_TARGET else "custom-call"
    if proto.opcode.startswith(_COLLECTIVES):
        return "collective"
    return "loop" if proto.opcode == b"fusion" else printable(text(proto.opcode))


def _no_claim(
    module: HloModule, proto: Proto, inside: Sequence[Proto], works: Sequence[MatrixWork], has_tiles: bool
) -> str:
    """Why nothing is claimed of the time of an instruction, by all that it fuses; empty where something is."""
    opcodes = {one.opcode for one in inside}
    if proto.opcode.startswith(_COLLECTIVES):
        return COLLECTIVE
    if proto.opcode == b"custom-call":  # a kernel that the compiler makes has no scope of the program
        is_asked_for = not proto.metadata.op_name or b"/" in proto.metadata.op_name
        return NO_ESTIMATE if proto.custom_call_target != KERNEL_TARGET else KERNEL if is_asked_for else ""
    if opcodes & _CHOOSING:
        return CHOSEN
    if works:
        if any(_slides(module, one) for one in inside if one.opcode == b"convolution"):
            return SLIDING
        is_small = sum(work.flops for work in works) < _FEW_FLOPS
        few = FEW_ROWS if is_small and min(work.m or 0 for work in works) <= _ROWS else ""
        return NO_TILES if not has_tiles else few or (SLOW_FUNCTION if opcodes & _SLOW else "")
    if any(_reduces_few(module, one) for one in inside if one.opcode == b"reduce"):
        return FEW_LANES
    return "" if has_tiles or proto.opcode in _MOVES else NO_ESTIMATE


def _slides(module: HloModule, product: Proto) -> bool:
    """Whether positions of a convolution's result meet several of its input each."""
    left, right = (operand.shape.dimensions for operand in module.operand_protos(product) if operand is not None)
    numbers, out = product.convolution_dimension_numbers, product.shape.dimensions
    places = zip(numbers.kernel_spatial_dimensions, numbers.output_spatial_dimensions, strict=True)
    slid = [right[kernel] > 1 and out[place] > 1 for kernel, place in places]
    return any(slid[at] for at, kind in enumerate(spatial_kinds(product, left, right, out)) if kind == "row")


def _reduces_few(module: HloModule, reduce: Proto) -> bool:
    """Whether a reduction is over few elements of the dimension that lies along the lanes."""
    given = module.instruction_by_id(reduce.operand_ids[0])
    lanes = given.shape.layout.minor_to_major[0] if given is not None and given.shape.layout.minor_to_major else -1
    if given is None or lanes not in reduce.dimensions:
        return False
    return 1 < given.shape.dimensions[lanes] <= _LANES and elements(given.shape) > _LARGE


def _inside(module: HloModule, proto: Proto) -> list[Proto]:
    """An instruction, and all that it fuses."""
    found: list[Proto] = []
    waiting, entered = [proto], set[int]()
    while waiting:
        found.append(waiting.pop())
        inside = module.wrapped(found[-1]) if found[-1].opcode == b"fusion" else None
        if inside is not None and inside.id not in entered:
            entered.add(inside.id)
            waiting.extend(inside.instructions)
    return found


def _operands(proto: Proto, inside: Sequence[Proto], product: Proto) -> tuple[int, int]:
    """Which operands of a fusion its product takes left and right: the largest of those that a side is made of."""
    if proto is product:
        return 0, 1
    by_id = {one.id: one for one in inside}

    def largest(number: int) -> int:
        waiting, seen, found = [number], set[int](), [(-1, -1)]
        while waiting:
            one = by_id.get(waiting.pop())
            if one is not None and one.id not in seen:
                seen.add(one.id)
                waiting.extend(one.operand_ids)
                found += [(elements(one.shape), one.parameter_number)] if one.opcode == b"parameter" else []
        return max(found)[1]

    return largest(product.operand_ids[0]), largest(product.operand_ids[1])
