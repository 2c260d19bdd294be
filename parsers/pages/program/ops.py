"""What compiled programs do, op by op in the order of their schedules, and how long that takes.

At least: the larger of FLOPs at the peak and of bytes at HBM's peak, each array moved once. What may not run at all, in
a branch or in a loop whose trips are not stated, counts nothing. Told: by the tiles that the compiler chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.errors import as_damage, behind_wall
from tpuprof.parsers.base.intervals import grouped
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.base.tpus import generation_of
from tpuprof.parsers.base.words import binary_parts, sentence_name, size
from tpuprof.parsers.formats.hlo.graph import HloGraph
from tpuprof.parsers.formats.hlo.matrix import MatrixWork, matrix_bits, matrix_works
from tpuprof.parsers.formats.hlo.modules import HloModule, all_fused, is_kernel
from tpuprof.parsers.formats.hlo.shapes import elements
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.core.kernel_work import spec_of
from tpuprof.parsers.pages.program.tiles import (
    BESIDE_PRODUCTS,
    CHIPS,
    FEW_BYTES,
    FITTED,
    SCALED_BAND,
    UNCLAIMED_BAND,
    Tiles,
    product_told,
    stream_told,
    tiles_of,
)
from tpuprof.parsers.pages.program.traffic import (
    COLLECTIVES,
    Read,
    begins,
    kernel_traffic,
    reads_of,
    touches_host,
    writes_of,
)
from tpuprof.parsers.pages.program.trips import trip_count

if TYPE_CHECKING:
    from tpuprof.parsers.formats.mosaic.spec import KernelSpec
    from tpuprof.parsers.formats.proto import hlo_pb2
    from tpuprof.parsers.pages.program.fingerprint import Fingerprint
    from tpuprof.parsers.pages.program.programs import CompiledProgram

    Proto = hlo_pb2.HloInstructionProto

BESIDE = "it runs beside other ops"
TO_HOST = "how long a copy to or from the host's memory takes depends on the host"
NO_TRIPS = "it is in a loop whose trips the program does not state: its figures are those of one trip"
IN_BRANCH = "it is in a branch, which runs where the condition chooses it"
COLLECTIVE = "how long a collective takes depends on the links and on when the other chips come"
SPARSE_CORE = "how long a SparseCore takes is not in the program"
ON_CHIP = "the compiler's estimate of a loop inside VMEM was compared with measured times of small ones alone"
RAGGED = "how many rows each group of a ragged product has is known when it runs"
SHORT = "an op takes a microsecond or so however little it does"
NO_ESTIMATE = "the compiler gives no estimate of it"
SLIDING = "convolutions that slide a window are told 40% wrong"

_UNTOLD = (NO_TRIPS, IN_BRANCH, COLLECTIVE, SPARSE_CORE, TO_HOST)
"""Why nothing is claimed of a whole program that has an op of which that is said."""

_NOTHING = frozenset(
    (b"parameter", b"constant", b"tuple", b"get-tuple-element", b"bitcast", b"opt-barrier", b"after-all")
)
_FREE_CALLS = frozenset((b"AllocateBuffer", b"ConcatBitcast"))
_SLOW = frozenset((b"tanh", b"log", b"log-plus-one", b"exponential-minus-one", b"erf", b"power", b"sine", b"cosine"))
_OPAQUE = frozenset(("kernel", "custom-call", "fft", "cholesky", "triangular-solve"))
_CHOOSING = frozenset((b"gather", b"scatter", b"sort"))
_MOVES = frozenset((b"copy", b"transpose", b"slice", b"pad", b"concatenate"))
"""What streams without an estimate. Reshapes and updates in place may touch parts of tiles: real ones took 50 times as
long as their bytes."""

_LANES, _LARGE, _ROWS, _FEW_FLOPS = 64, 10**6, 8, 10**9
_PS, _DEEPEST, _LONGEST, _NAMED = 1e12, 32, 1000, 2
_SHORTEST_S, _MOST_CYCLES = 1e-6, 20_000
"""Of ops inside VMEM: the largest that was measured has 15,242."""

_GROUPS = pattern(r'"num_groups_in_ragged_dot": ?"?([1-9][0-9]{0,8})')
_MOST_UNCLAIMED, _MOST_TOLD = 0.1, 2000
"""Nothing is claimed of a program where ops of which nothing is claimed take a larger part of it, and of whole models,
which have more ops."""


class Band(NamedTuple):
    """A time that is told, in picoseconds: from the least to the most."""

    low: int
    high: int


class Measured(NamedTuple):
    """What an op, or a program, took in a profile.

    Of an op `runs` are its occurrences on all cores, and `mean_ps` is its mean self time in picoseconds; of a program
    they are its runs and the mean from the first core's start to the last core's end.
    """

    runs: int
    mean_ps: float

    @property
    def all_ps(self) -> float:
        return self.runs * self.mean_ps


@dataclass(frozen=True, slots=True)
class ProgramOp:
    """One instruction of a program that does something. Times, FLOPs and bytes are those of one run.

    Its `category` is ``product``, ``loop`` (a fusion without one), ``kernel``, ``collective``, or else its opcode.
    `trips`, `tiles` and `source` are None where the program does not state them. `hbm_bytes` counts each array once, of
    a kernel as often as its grid copies it; `writes` are the bytes that it writes of each of its own. The times of
    compute and HBM are those at the peaks, 0 where it runs beside others, None where the chip is unknown. `guess` is
    what its tiles tell, no less than the bound; where nothing is claimed of it, `reason` says why. It is `measured`
    where a run of it is known.
    """

    name: str
    opcode: str
    category: str
    trips: int | None
    flops: int
    hbm_bytes: int
    reads: tuple[Read, ...]
    writes: tuple[int, ...]
    tiles: Tiles | None
    compute_ps: int | None
    hbm_ps: int | None
    guess: Band
    reason: str
    source: str | None
    measured: Measured | None = None

    @property
    def bound_ps(self) -> int | None:
        return None if self.compute_ps is None or self.hbm_ps is None else max(self.compute_ps, self.hbm_ps)

    @property
    def told_ps(self) -> Band | None:
        return None if self.reason else self.guess

    @property
    def times(self) -> float | None:
        """How many times the middle of what is told it took."""
        told, measured = self.told_ps, self.measured
        return None if told is None or measured is None else 2 * measured.mean_ps / (told.low + told.high)

    @property
    def certain_trips(self) -> int:
        """How often it runs at least."""
        return 0 if self.reason == IN_BRANCH else self.trips or 0

    @property
    def streamed_bytes(self) -> int:
        """Bytes that it moves through HBM, each array as often as its tiles stream it."""
        return sum(self.writes) + sum(read.bytes * read.streams for read in self.reads)

    @property
    def traffic_ps(self) -> float:
        """What these bytes take at HBM's peak."""
        return (self.hbm_ps or 0) * self.streamed_bytes / max(self.hbm_bytes, 1)

    @property
    def operands_read(self) -> list[Read]:
        """The operands that it reads something of: of one that is updated in place it reads nothing."""
        return [read for read in self.reads if read.bytes]

    @property
    def streamed(self) -> list[Read]:
        """The operands that its tiles stream from HBM more than once, those with most bytes first."""
        often = [read for read in self.reads if read.streams > 1 and read.bytes]
        return sorted(often, key=lambda read: -read.bytes * read.streams)

    @property
    def tile_words(self) -> str:
        """What the tiles of a product make it move, in a sentence; empty where its tiles are unknown."""
        if self.tiles is None or not self.tiles.axes:
            return ""
        steps = " x ".join(str(axis.steps) for axis in self.tiles.axes if axis.steps > 1) or "1"
        often = [f"{sentence_name(read.name)} {read.streams} times" for read in self.streamed[:_NAMED]]
        words = f"{steps} tiles stream {' and '.join(often) or 'nothing more than once'}"
        words = f"{words}: {size(self.streamed_bytes)} for {size(self.hbm_bytes)} at least"
        scoped = self.tiles.scoped_bytes
        return words if scoped is None else f"{words}; {' '.join(binary_parts(scoped))} of scoped VMEM"


@as_damage()
def op_of(module: HloModule, name: str, device: str | None) -> ProgramOp | None:
    """One op on a type of device; None where the module does not have it, or the device's peaks are unknown.

    Raises:
        Damaged: the module's instructions do not fit together; `program_ops` raises it too.
    """
    proto, chip = module.instruction_proto(name), generation_of(device)
    return None if proto is None or chip is None or chip not in CHIPS else _op(module, proto, chip, 1, "")


def streaming_ps(op: ProgramOp, device: str | None) -> float:
    """What a product's traffic takes: at what products come to where that was measured, else at HBM's peak."""
    return op.traffic_ps / (BESIDE_PRODUCTS if generation_of(device) == FITTED else 1.0)


@as_damage()
def program_ops(module: HloModule, chip: str) -> list[ProgramOp]:
    """The ops of a program for a chip of `CHIPS`, the longest first; those of loops and calls are among them.

    Where nothing is claimed, what an op takes at least counts: the compiler's estimate may be far off.
    """
    graph = HloGraph(module)
    ops = _in(graph, chip, graph.entry, 1, "", 0)
    return sorted(ops, key=_longest)


def _longest(op: ProgramOp) -> tuple[int, int]:
    known = (op.bound_ps or 0) if op.told_ps is None else op.told_ps.high
    return -known * (op.trips or 1), -op.guess.high * (op.trips or 1)


def _in(graph: HloGraph, chip: str, number: int, trips: int | None, why: str, depth: int) -> Iterator[ProgramOp]:
    """The ops of a computation that runs so often; `why` nothing is claimed of all that is in it."""
    for row in graph.rows(number) if depth < _DEEPEST else ():
        proto = graph.proto(row)
        if proto.opcode in (b"call", b"while", b"conditional"):
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
    is_done = proto.opcode in _NOTHING or proto.opcode.endswith(b"-done") or proto.custom_call_target in _FREE_CALLS
    return is_done or (is_number and proto.opcode != b"custom-call")


def _op(module: HloModule, proto: Proto, device: str, trips: int | None, why: str) -> ProgramOp:
    """An instruction with its work and its time on a chip."""
    name, opcode, inside, chip = text(proto.name), text(proto.opcode), all_fused(module, proto), CHIPS[device]
    products = [one for one in inside if one.opcode in (b"convolution", b"dot")]
    works = matrix_works(module, name, chip.side) if products else ()
    product = products[0] if len(products) == 1 and products[0].opcode == b"convolution" else None
    tiles, spec = tiles_of(module, proto, product), _spec(module, proto)
    reads, writes = (
        (reads_of(module, proto), writes_of(module, proto)) if spec is None else kernel_traffic(module, proto, spec)
    )
    written = sum(writes)
    groups = _GROUPS.search(text(module.backend_config(proto))) if works else None
    flops = sum(work.flops for work in works) // (int(groups[1]) if groups else 1)  # of a ragged product each row once
    hbm_bytes = written + sum(read.bytes * (min(read.streams, 1) if spec is None else read.streams) for read in reads)
    is_narrow = works and (matrix_bits(module, name) or 16) <= 8
    if spec is not None:
        flops, is_narrow = spec.matrix_flops.value or 0, any("8" in each.element for each in spec.buffers)
    peak = chip.flops * (2 if is_narrow else 1)  # narrow types may take half
    compute, hbm = flops / peak, hbm_bytes / chip.hbm
    if product is not None and tiles is not None and tiles.axes:
        sides = {0: "left", 1: "right"}
        if product.id != proto.id:
            sides = {_operand(module, number): sides[place] for place, number in enumerate(product.operand_ids)}
        moved = [(sides.get(read.number, "out"), read.bytes) for read in reads if read.streams]
        seconds, band = product_told(tiles, [*moved, ("out", written)], peak, chip)
        streams = {number: tiles.streams(side) for number, side in sides.items()}
        reads = tuple(read._replace(streams=read.streams * streams.get(read.number, 1)) for read in reads)
    else:
        seconds, band = stream_told(opcode, hbm_bytes, tiles.cycles if tiles is not None else 0, chip)
    reason = why or (RAGGED if groups else _no_claim(module, proto, inside, works, tiles))
    reason = reason or (NO_ESTIMATE if not seconds else SHORT if seconds < _SHORTEST_S else "")
    if not reason and tiles is not None and not works and hbm_bytes <= FEW_BYTES and tiles.cycles > _MOST_CYCLES:
        reason = ON_CHIP
    if begins(module, proto):
        beside = TO_HOST if touches_host(module, proto) else BESIDE
        compute, hbm, seconds, reason = 0.0, 0.0, 0.0, beside if opcode != "async-update" else SPARSE_CORE
    band = UNCLAIMED_BAND if reason else band if device == FITTED else SCALED_BAND
    low, high = (round(max(compute, hbm, seconds * way) * _PS) for way in (1 - band, 1 + band))
    return ProgramOp(
        name=printable(name),
        opcode=printable(opcode),
        category="product" if works else _category(proto, inside),
        trips=trips,
        flops=flops,
        hbm_bytes=hbm_bytes,
        reads=reads,
        writes=writes,
        tiles=tiles,
        compute_ps=round(compute * _PS),
        hbm_ps=round(hbm * _PS),
        guess=Band(low, high),
        reason=reason,
        source=module.source(proto),
    )


def _spec(module: HloModule, proto: Proto) -> KernelSpec | None:
    """What the module of a Mosaic kernel says; None for other instructions, and where it can't be read."""
    spec = spec_of(module, text(proto.name)) if is_kernel(proto) else None
    return None if spec is None or spec.reason else spec


def _category(proto: Proto, inside: Sequence[Proto]) -> str:
    if _is_collective(proto, inside):
        return "collective"
    if is_kernel(proto):
        return "kernel"
    return "loop" if proto.opcode == b"fusion" else printable(text(proto.opcode))


def _is_collective(proto: Proto, inside: Iterable[Proto]) -> bool:
    """Whether an instruction is a collective, alone or fused; other fusions only carry one along."""
    is_alone = proto.opcode != b"fusion" or proto.fusion_kind == b"kCustom"
    return is_alone and any(one.opcode.startswith(COLLECTIVES) for one in inside)


def _no_claim(
    module: HloModule, proto: Proto, inside: Sequence[Proto], works: Sequence[MatrixWork], tiles: Tiles | None
) -> str:
    """Why nothing is claimed of the time of an instruction, by all that it fuses; empty where something is."""
    opcodes = {one.opcode for one in inside}
    if _is_collective(proto, inside) and not works:
        return COLLECTIVE
    if is_kernel(proto):  # one that the compiler makes has no scope of the program
        is_asked_for = not proto.metadata.op_name or b"/" in proto.metadata.op_name
        return "how long a Mosaic kernel takes is not in its tiles" if is_asked_for else ""
    if opcodes & _CHOOSING:
        return "which parts of an array it touches is known when it runs"
    if works and (tiles is None or not tiles.axes):
        return (
            f"{'the module holds no tiles' if tiles is None else 'its sizes do not explain the tiles'} of this product"
        )
    if works and tiles is not None and tiles.slides:
        return SLIDING
    if works and sum(work.flops for work in works) < _FEW_FLOPS and min(work.m or 0 for work in works) <= _ROWS:
        return "a product with so few rows takes as long as it takes to begin"
    if works:
        return "functions such as tanh and softplus behind a product take time of their own" if opcodes & _SLOW else ""
    if any(_reduces_few(module, one) for one in inside if one.opcode == b"reduce"):
        return f"a reduction over {_LANES} lanes or fewer fills no register"
    return "" if tiles is not None or proto.opcode in _MOVES else NO_ESTIMATE


def _reduces_few(module: HloModule, reduce: Proto) -> bool:
    """Whether a reduction is over few elements of the dimension that lies along the lanes."""
    given = module.instruction_by_id(reduce.operand_ids[0])
    order = given.shape.layout.minor_to_major if given is not None else ()
    if given is None or not order or order[0] not in reduce.dimensions:
        return False
    return 1 < given.shape.dimensions[order[0]] <= _LANES and elements(given.shape) > _LARGE


def _operand(module: HloModule, number: int) -> int:
    """The operand of a fusion that a value in it is made of, by the largest of what makes it each time; -1 for none."""
    one = module.instruction_by_id(number)
    for _ in range(_LONGEST):
        made_of = [each for each in module.operand_protos(one) if each is not None] if one is not None else []
        if not made_of:
            break
        one = max(made_of, key=lambda each: elements(each.shape))
    return one.parameter_number if one is not None and one.opcode == b"parameter" else -1


class Total(NamedTuple):
    """The figures of a program's ops together, named as theirs are; without times where the chip is unknown."""

    flops: int
    hbm_bytes: int
    bound_ps: int | None = None
    compute_ps: int | None = None
    hbm_ps: int | None = None

    @property
    def bound_by(self) -> str | None:
        """What takes most of the bound."""
        return None if self.bound_ps is None else "compute" if (self.compute_ps or 0) >= (self.hbm_ps or 0) else "HBM"


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """A compiled program of a file, or of a profile, and how many of its place have its fingerprint.

    It is `measured` where a run of it, or of one of its fingerprint, is known; `origins` are those of all of them, and
    `compiled` is the first of them. Where `problem` says why nothing is known of its time, `total` is None; where
    `reason` says why nothing is claimed of it, `told` is. The longest of its `ops` is the first.
    """

    name: str
    origin: str
    chip: str | None
    fingerprint: Fingerprint | None
    problem: str = ""
    reason: str = ""
    count: int = 1
    ops: Sequence[ProgramOp] = ()
    module: HloModule | None = None
    total: Total | None = None
    told: Band | None = None
    origins: tuple[str, ...] = ()
    compiled: CompiledProgram | None = None
    measured: Measured | None = None

    @property
    def told_in_part(self) -> Band | None:
        """What is told of those of its ops of which something is, where nothing is told of it as a whole."""
        bands = [(op.told_ps, op.certain_trips) for op in self.ops if op.told_ps is not None and op.certain_trips]
        if self.told is not None or not bands:
            return None
        return Band(*(sum(band[end] * trips for band, trips in bands) for end in (0, 1)))

    @property
    def most_of_peak(self) -> float | None:
        """The share of the peak FLOP/s that it comes to at most, where HBM bounds it.

        None where more FLOPs may run than `total` counts: in a kernel that can't be read, in a branch, in a loop whose
        trips are not stated.
        """
        total = self.total
        if total is None or not total.bound_ps or not total.compute_ps or total.bound_by != "HBM":
            return None
        is_more = (op.category in _OPAQUE if not op.flops else not op.certain_trips for op in self.ops)
        return None if any(is_more) else total.compute_ps / total.bound_ps


def program_rows(programs: Iterable[CompiledProgram], device: str | None = None) -> list[ProgramRow]:
    """Programs, for their own chips or for another one, the longest first; equal ones are one row."""
    rows = (_row(program, device or program.device) for program in programs)
    alike = grouped((row.fingerprint or row.origin, row) for row in rows).values()
    merged = [replace(same[0], count=len(same), origins=tuple(row.origin for row in same)) for same in alike]
    return sorted(merged, key=_dearness)


def _dearness(row: ProgramRow) -> tuple[int, int]:
    """What programs are sorted by: the longest first, by bytes where no time is known."""
    total = row.total if row.total is not None else Total(0, 0)
    return -(total.bound_ps or 0) * row.count, -total.hbm_bytes * row.count


def _row(program: CompiledProgram, device: str | None) -> ProgramRow:
    """A program with what it takes, or why that is unknown."""
    chip, computations = generation_of(device), program.module.proto.hlo_module.computations
    row = ProgramRow(program.name, program.origin, chip, program.fingerprint, compiled=program)
    failed = list[str]()
    if not any(one.shape.layout.tiles for part in computations for one in part.instructions):
        return replace(row, problem="no array of it has tiles: it was compiled for another device than a TPU")
    why = "nothing says which chip it is for" if device is None else f"the peaks of {printable(device)} are unknown"
    why = "" if chip in CHIPS else f"{why} (--device v6e says one)"
    what = f"tell the time of {printable(program.name)}"
    ops = behind_wall(
        what, partial(program_ops, program.module, FITTED if chip is None or why else chip), failed, is_decoder=True
    )
    if ops is None:
        return replace(row, problem=failed[0])
    counted = [op for op in ops if op.reason not in (BESIDE, TO_HOST)]
    sums = {key: sum(getattr(op, key) * op.certain_trips for op in counted) for key in Total._fields}
    cut = "" if program.fingerprint is not None else "its text ends before the program does"
    if why:
        total = Total(sums["flops"], sums["hbm_bytes"])
        ops = [replace(op, compute_ps=None, hbm_ps=None, reason=why) for op in ops]
        return replace(row, ops=ops, module=program.module, total=total, problem=why, reason=cut)
    reason = cut or _no_claim_of_all(ops)
    band = Band(*(sum(op.guess[end] * op.certain_trips for op in ops) for end in (0, 1)))
    return replace(
        row, ops=ops, module=program.module, total=Total(**sums), told=None if reason else band, reason=reason
    )


def _no_claim_of_all(ops: Sequence[ProgramOp]) -> str:
    """Why nothing is claimed of a whole program; empty where something is."""
    worst = next((op for op in ops if op.reason in _UNTOLD), None)
    if worst is None and all(op.tiles is None and op.category != "kernel" for op in ops):
        return "the program holds no tiles: *.after_codegen.* of the same dump has them"
    unclaimed = [op for op in ops if op.reason]
    part = sum(op.guess.high * op.certain_trips for op in unclaimed)
    if worst is None and part > _MOST_UNCLAIMED * sum(op.guess.high * op.certain_trips for op in ops):
        worst = max(unclaimed, key=lambda op: op.guess.high * op.certain_trips)
    if worst is not None:
        return f"{worst.name}: {worst.reason}"
    return "whole models were never told and measured" if len(ops) > _MOST_TOLD else ""
