"""Which dimension of a compiled module is its batch, and what each buffer takes at another one.

The batch is the leading dimension of the program's inputs: of arguments that are no weights and no state. What equals
it, or is made of it, follows from the HLO (see `axes`). The places that a mixture of experts has for tokens are related
to no argument: where tokens are scattered into a whole multiple of their number, that grows with them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import prod

import numpy as np

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.hlo.shapes import Shape, plain_shape, shape_of_proto
from tpuprof.parsers.formats.proto import hlo_pb2
from tpuprof.parsers.memory.batch.axes import Axes, Leaf, Share, arrays_of, leaf_at
from tpuprof.parsers.memory.batch.structure import Argument, Structure, structure_of
from tpuprof.parsers.memory.model import SpaceMemory

_STATE = pattern(
    r"(?<!input)(?<!inputs_)(?:param|weight|kernel|bias|scale|embed|state|opt_|momentum|\bmu\b|\bnu\b)", re.IGNORECASE
)
_CACHE = pattern(r"cache|past_key|kv_", re.IGNORECASE)
_ALIKE = 3  # arguments of one shape: weights and an optimizer's two moments of them
_RANK_OF_CACHES = 3
_LONG = 128  # tokens of a sequence from which on an array of as many, and as many sequences, is one of all tokens
_ROWS = 8  # rows of a tile; an array with fewer gets a smaller tile
_TIMES = range(1, 9)  # how many places a program may set aside for each token
_MUCH_LESS = 0.2  # of the bytes that grow with one candidate: what grows with another that is not worth a name


@dataclass(frozen=True, slots=True)
class Growth:
    """How a module's buffers grow with its batch.

    Attributes:
        batch: how long that dimension is now, on one device.
        inputs: the arguments that lead with it, ``batch['tokens'][8,1024]``.
        rows: int64, rows of `SpaceMemory.live_ranges` that grow.
        shapes: of each, its array's shape; None where it is unknown.
        grown: of each, the dimensions that hold the batch.
    """

    batch: int
    inputs: tuple[str, ...]
    rows: Int64s
    shapes: tuple[Shape | None, ...]
    grown: tuple[tuple[int, ...], ...]

    def bytes_at(self, memory: SpaceMemory, batch: int) -> Int64s:
        """int64[rows]: what each takes at another batch."""
        sizes = memory.live_ranges.size_bytes[self.rows].tolist()
        cases = list(zip(sizes, self.shapes, self.grown, strict=True))
        alike = {case: resized(*case, self.batch, batch) for case in dict.fromkeys(cases)}
        return np.array([alike[case] for case in cases], np.int64)


def resized(size: int, shape: Shape | None, grown: Sequence[int], before: int, after: int) -> int:
    """Bytes of a buffer once the dimensions that hold the batch are as much longer, in whole tiles.

    An array with few rows has a tile of fewer rows, a power of two, which grows with them.
    """
    now = shape.padded_bytes if shape is not None else None
    if shape is None or not now:
        return -(-size * after // before)
    dims = [-(-each * after // before) if number in grown else each for number, each in enumerate(shape.dimensions)]
    tiles = shape.tiles
    if tiles and len(tiles[0]) == 2 and len(dims) > 1 and 0 < tiles[0][0] < _ROWS:
        rows = dims[shape.minor_to_major[1]]
        wanted = min(_ROWS, max(tiles[0][0], 1 << (rows - 1).bit_length()))
        tiles = ((wanted, tiles[0][1]), *tiles[1:])
    then = replace(shape, dimensions=tuple(dims), tiles=tiles, dynamic=()).padded_bytes
    return -(-size * after // before) if then is None else -(-size * then // now)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A dimension of arguments that may be the batch: its length, what leads with it, and the axes that it reaches."""

    length: int
    inputs: tuple[str, ...]
    reached: Mapping[int, Share]


def growth_of(hlo: HloModule, memory: SpaceMemory, structure: Structure | None = None) -> Growth | str:
    """How a module's buffers grow with its batch, or why that is not known, a sentence."""
    entry = hlo.computation(hlo.proto.hlo_module.entry_computation_id)
    if entry is None:  # texts name the instructions and not what they are in
        return "A dump's texts lack the arguments, --xla_dump_hlo_as_proto writes them; or the module is damaged."
    ids = [each.id for computation in hlo.proto.hlo_module.computations for each in computation.instructions]
    if len({*ids}) < len(ids):
        return "Several instructions of the module have one id, so what they are made of is unknown."
    known = structure or structure_of(hlo)
    axes = known.axes
    arguments = (*known.weights, *known.states, *known.caches, *known.others)
    given = {axes.root(axis) for each in arguments for axis in each.leaf.axes}
    candidates = _candidates(known)
    if not candidates:
        return (
            "No argument has a batch dimension: all with a leading dimension of their own are weights or state, by "
            "their names and uses."
        )
    growths = [_growth(axes, hlo, memory, candidate, given) for candidate in candidates]
    sizes = [int(memory.live_ranges.size_bytes[growth.rows].sum()) for growth in growths]
    if max(sizes) <= 0:
        return "Nothing that lies in HBM grows with a leading dimension of the arguments."
    order = sorted(range(len(growths)), key=lambda number: -sizes[number])
    likely = [number for number in order if sizes[number] > _MUCH_LESS * sizes[order[0]]]
    leading = [number for number in likely if len(growths[number].inputs) == max(len(g.inputs) for g in growths)]
    if len(likely) > 1 and len(leading) != 1:
        names = ", ".join(f"{growths[number].batch} of {growths[number].inputs[0]}" for number in likely)
        return f"Several dimensions of arguments may be the batch: {names}."
    return growths[leading[0] if len(likely) > 1 else likely[0]]


def _candidates(known: Structure) -> list[_Candidate]:
    """The leading dimensions of inputs that no weights have."""
    axes = known.axes
    counts = Counter((each.leaf.dims, each.element) for each in known.others)
    weights, vectors = set[int](), list[Leaf]()
    caches, inputs = [each.leaf for each in known.caches], list[Argument]()
    for each in (*known.weights, *known.states, *known.others):
        leaf = each.leaf
        if _CACHE.search(each.name):
            caches.append(leaf)
            continue
        is_alike = each.is_float and counts[leaf.dims, each.element] >= _ALIKE
        if each not in known.others or _STATE.search(each.name) or is_alike:
            weights |= {axes.root(axis) for axis in leaf.axes}
            vectors += [leaf] if prod(leaf.dims) == leaf.dims[0] else []
        else:
            inputs.append(each)
    # no weights are as long as an input of integers and nothing else; weights of samples are
    lengths = {each.leaf.dims[0] for each in inputs if not each.is_float}
    weights -= {axes.root(leaf.first) for leaf in vectors if leaf.dims[0] in lengths}
    stacks = {dims[0] for dims in {each.leaf.dims for each in known.weights} if len(dims) > 2} - lengths
    found: dict[int, list[tuple[str, int]]] = {}
    for each in inputs:
        length, root = each.leaf.dims[0], axes.root(each.leaf.first)
        if length > 1 and root not in weights and (length not in stacks or not each.is_float):
            found.setdefault(root, []).append((f"{each.name} {plain_shape(each.element, each.leaf.dims)}", length))
    leads = {axes.root(each.leaf.first): () if each.is_float else each.leaf.dims for each in inputs}
    candidates, reached_before = list[_Candidate](), set[int]()
    for root, members in found.items():
        if root in reached_before:
            continue
        length = members[0][1]
        alike = {other: Share(1, length) for other, named in found.items() if named[0][1] == length}
        alike |= {axes.root(axis): Share(1, length) for leaf in _like(axes, caches) for axis in _only(leaf, length)}
        reached = axes.batch_axes(alike | _alike(axes, leads[root]))
        if reached.keys() & weights:  # what looks like the inputs is something else
            reached = axes.batch_axes(alike)
        reached_before |= reached.keys()
        names = [name for other, named in found.items() if other in reached for name, _ in named]
        if not reached.keys() & weights:
            candidates.append(_Candidate(length, tuple(names), reached))
    return candidates


def _alike(axes: Axes, dims: tuple[int, ...]) -> dict[int, Share]:
    """The axes of arrays that have the dimensions of an input of tokens one after the other, or as one.

    What a kernel or a core of another kind makes of an input is related to it by nothing in the HLO. Where both
    dimensions are equal, as those of pictures are, nothing is certain.
    """
    if len(dims) != 2 or dims[1] < _LONG or dims[0] == dims[1]:
        return {}
    batch, length = dims
    found: dict[int, Share] = {}
    for leaf in (leaf for leaves in axes.leaves.values() for leaf in leaves):
        for number, each in enumerate(leaf.dims):
            if each == batch and leaf.dims[number + 1 : number + 2] == (length,):
                found[axes.root(leaf.first + number)] = Share(1, batch)
            elif each == batch * length and number == 0:
                found[axes.root(leaf.first)] = Share(length, batch)
    return found


def _like(axes: Axes, caches: Sequence[Leaf]) -> list[Leaf]:
    """Caches, and all arrays with the dimensions of one: what it becomes, however it is put together."""
    dims = {leaf.dims for leaf in caches if len(leaf.dims) >= _RANK_OF_CACHES}
    return [*caches, *(leaf for leaves in axes.leaves.values() for leaf in leaves if leaf.dims in dims)]


def _only(leaf: Leaf, length: int) -> list[int]:
    """The axis of an array that is as long, where only one is: of a cache that is the batch."""
    alike = [axis for axis, each in zip(leaf.axes, leaf.dims, strict=True) if each == length]
    return alike if len(alike) == 1 else []


def _growth(axes: Axes, hlo: HloModule, memory: SpaceMemory, candidate: _Candidate, given: Collection[int]) -> Growth:
    protos = {buffer.id: buffer for buffer in hlo.proto.buffer_assignment.logical_buffers}
    reached = _with_places(axes, hlo, candidate, given)
    rows, shapes, grown = list[int](), list[Shape | None](), list[tuple[int, ...]]()
    known: dict[int, tuple[Shape | None, tuple[int, ...]]] = {}
    for row, number in enumerate(memory.live_ranges.logical_buffer.tolist()):
        if number not in known:
            known[number] = _held(axes, hlo, protos.get(number), reached, candidate.length)
        shape, dims = known[number]
        if dims:
            rows.append(row)
            shapes.append(shape)
            grown.append(dims)
    return Growth(candidate.length, candidate.inputs, np.array(rows, np.int64), tuple(shapes), tuple(grown))


def _held(
    axes: Axes, hlo: HloModule, proto: hlo_pb2.LogicalBufferProto | None, reached: Mapping[int, Share], batch: int
) -> tuple[Shape | None, tuple[int, ...]]:
    """The shape of a logical buffer, and which of its dimensions hold the batch."""
    if proto is None:
        return None, ()
    made = hlo.defining(proto)
    number = None if made is None else leaf_at(made.shape, proto.defined_at.shape_index)
    if made is None or number is None:
        return None, ()
    leaf = axes.leaves[made.id][number]
    shares = {place: reached[axes.root(axis)] for place, axis in enumerate(leaf.axes) if axes.root(axis) in reached}
    return shape_of_proto(arrays_of(made.shape)[number]), tuple(_outer(shares, batch))


def _outer(shares: Mapping[int, Share], batch: int) -> list[int]:
    """Of the dimensions that hold the batch, those that grow: where tiles take it apart, the longest piece of each."""
    pieces = sorted((share.extent, place) for place, share in shares.items() if share.extent < batch)
    times = round(math.log(prod(extent for extent, _ in pieces), batch)) if pieces and batch > 1 else 0
    return [
        place
        for place, share in shares.items()
        if share.extent >= batch or (share.extent, place) in pieces[-times or -1 :]
    ]


def _with_places(axes: Axes, hlo: HloModule, candidate: _Candidate, given: Collection[int]) -> Mapping[int, Share]:
    """What is reached, and the places that a program sets aside for tokens: what they are scattered into.

    Args:
        given: axes of the program's arguments, by their roots, which are no such places.
    """
    reached = dict(candidate.reached)
    for computation in hlo.proto.hlo_module.computations:
        for each in computation.instructions:
            if each.opcode != b"scatter" or len(each.operand_ids) != 3:
                continue
            (places, *_), _, (tokens, *_) = (axes.leaves.get(operand, ()) or (None,) for operand in each.operand_ids)
            if places is None or tokens is None or not places.dims or not tokens.dims:
                continue
            root, times = axes.root(places.first), places.dims[0] / tokens.dims[0]
            if root not in reached and root not in given and axes.root(tokens.first) in reached and times in _TIMES:
                # of experts and the places that each has, the places grow: those are the inner ones
                reached = axes.batch_axes({**reached, root: Share(1, candidate.length)})
    return reached
