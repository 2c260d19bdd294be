"""The block of a model that each op of a compiled program belongs to, by what it computes and by its neighbours.

Names come first (`names`). Where they give no block, the instructions decide:

- a batched product of two arrays that are not weights is attention's, and the products by weights that feed it or use
  its result are attention's projections;
- a product over the vocabulary, which is the length of the table that tokens are looked up in, makes logits;
- any other product by weights is a layer of an MLP, or the router's where a choice of the largest follows, in a program
  that has attention, a vocabulary or a backward pass;
- in a program with passes, an op outside them with the shape of weights is the optimizer's;
- ``rsqrt`` without a product is a norm.

Every other op belongs to the block of its neighbours, if they have only one. The rest is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.formats.hlo.modules import HloModule
from tpuprof.parsers.formats.xspace.walk import text
from tpuprof.parsers.ops.framework_op import pass_of
from tpuprof.parsers.pages.overview.model_use.names import Block, block_of, block_of_name, layer_of, scopes_of
from tpuprof.parsers.pages.overview.model_use.weights import MOVES, Weights, dims_of

if TYPE_CHECKING:
    from tpuprof.parsers.formats.proto import hlo_pb2

_PRODUCTS = (b"dot", b"convolution")
_NO_NODES = frozenset((b"parameter", b"constant", b"iota", b"after-all", b"partition-id", b"replica-id"))
_PASSED = frozenset((b"tuple", b"get-tuple-element", b"bitcast", b"opt-barrier"))
_KINDS = frozenset(
    (b"while", b"conditional", b"call", b"infeed", b"outfeed", b"send", b"send-done", b"recv", b"recv-done", b"rng")
)
_COLLECTIVES = (b"all-", b"reduce-scatter", b"collective-", b"ragged-all-to-all")
_CHOICES = (b"topk", b"sort")
_MOST_WRAPPED = 2_000
_MOST_PASSED = 4_000
"""The most tuples and elements that are searched between an instruction and its neighbours."""

_ROUNDS = 4
_LEAST_VOCABULARY = 1_000
_MOST_EXPERTS = 512
_FAR = 8
"""The most instructions between a product of attention and a projection."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Where an op belongs.

    Attributes:
        block: None while it is unknown.
        phase: ``forward``, ``backward``, ``recomputed``; empty where its names do not give it.
        layer: None where no name has one.
        by_name: whether its names give the block, and not its computation or its neighbours.
        is_named: whether it is in a scope, of a block or not.
        hint: the block of names that decide only if nothing else does, such as ``linear``.
    """

    block: Block | None
    phase: str = ""
    layer: str | None = None
    by_name: bool = False
    is_named: bool = False
    hint: Block | None = None


def placed_by_names(framework_op: str, name: str) -> Placed:
    """Where an op belongs by its names alone.

    Args:
        name: of the instruction, which is that of a kernel.
    """
    scopes = scopes_of(framework_op)
    again = ".remat" in name or "rematted_computation" in framework_op
    said, is_sure = block_of(scopes, "jvp(" in framework_op)
    block = said if is_sure else block_of_name(name)
    is_named = any(not scope.is_function for scope in scopes)
    return Placed(block, pass_of(framework_op, again), layer_of(scopes), block is not None, is_named, said)


class _Wrapped:
    """What an instruction wraps, or itself where it wraps nothing: one object for all that wrap the same."""

    __slots__ = ("chooses", "gathers", "moves_between", "named", "opcodes", "product")

    def __init__(self, inner: Sequence[hlo_pb2.HloInstructionProto]) -> None:
        self.opcodes = frozenset(each.opcode for each in inner)
        self.product = next((each for each in reversed(inner) if each.opcode in _PRODUCTS), None)
        self.gathers = tuple(each for each in inner if each.opcode == b"gather")
        self.chooses = any(each.opcode in _CHOICES or each.custom_call_target == b"TopK" for each in inner)
        self.moves_between = any(opcode.startswith(_COLLECTIVES) for opcode in self.opcodes)
        self.named: Block | None = None
        """The only block that the names of several instructions give."""
        if len(inner) > 1 and self.product is None:
            blocks = {place.block for each in inner if (place := _named(each, "")).block is not None}
            self.named = blocks.pop() if len(blocks) == 1 else None


class _Node:
    """An instruction that runs, with what it wraps."""

    __slots__ = ("operands", "place", "proto", "shapes", "wrapped")

    def __init__(self, proto: hlo_pb2.HloInstructionProto, wrapped: _Wrapped) -> None:
        self.proto, self.wrapped = proto, wrapped
        self.operands = tuple(proto.operand_ids)
        self.shapes = tuple(dims_of(proto.shape))
        self.place = self._placed()

    def _placed(self) -> Placed:
        """By its own names and those that it wraps: a product comes first, because the rest is fused to it."""
        own, inner = _named(self.proto, text(self.proto.name)), self.wrapped.product
        if inner is not None and inner is not self.proto:
            product = _named(inner, "")
            return replace(
                product if product.block is not None or own.block is None else own,
                phase=product.phase or own.phase,
                layer=product.layer or own.layer,
                is_named=product.is_named or own.is_named,
            )
        if own.block is None and own.hint is None and self.wrapped.named is not None:
            return replace(own, hint=self.wrapped.named)
        return own


def _named(proto: hlo_pb2.HloInstructionProto, name: str) -> Placed:
    return placed_by_names(text(proto.metadata.op_name), name)


def _within(
    hlo: HloModule, outer: hlo_pb2.HloComputationProto, seen: set[int], depth: int = 2
) -> Iterator[hlo_pb2.HloInstructionProto]:
    """The instructions of a computation and of what fusions in it wrap, without parameters and constants."""
    seen.add(outer.id)
    for each in outer.instructions:
        if each.opcode in (b"parameter", b"constant"):
            continue
        yield each
        inside = hlo.wrapped(each) if depth else None
        if inside is not None and inside.id not in seen:
            yield from _within(hlo, inside, seen, depth - 1)


class _Way(NamedTuple):
    """A step from an instruction, or from what passes its value on, to another: where to, from where, which element."""

    number: int
    giver: int
    element: int | None


class HloFlow:
    """A compiled program, and where each of its instructions belongs."""

    def __init__(self, hlo: HloModule) -> None:
        self._hlo = hlo
        self._weights = Weights(hlo)
        self._nodes: dict[int, _Node] = {}
        self._users: dict[int, list[int]] = {}
        self._inside: dict[int, _Wrapped] = {}
        wrapped = set(self._weights.wrapped)
        for computation in hlo.proto.hlo_module.computations:
            if computation.id in wrapped:
                continue
            for proto in computation.instructions:
                for operand in proto.operand_ids:
                    self._users.setdefault(operand, []).append(proto.id)
                if proto.opcode not in _NO_NODES and proto.opcode not in _PASSED:
                    self._nodes[proto.id] = _Node(proto, self._wrapped(proto))
        self._places = {number: node.place for number, node in self._nodes.items()}
        self._has_passes = any(place.phase == "backward" for place in self._places.values())
        self._vocabulary = self._found_vocabulary()
        self._products()
        self._others()
        self._neighbours()

    def _wrapped(self, proto: hlo_pb2.HloInstructionProto) -> _Wrapped:
        """What an instruction wraps, looked at once for all that wrap it."""
        inside = self._hlo.wrapped(proto)
        if inside is None:
            return _Wrapped((proto,))
        known = self._inside.get(inside.id)
        if known is None:
            found = list(islice(_within(self._hlo, inside, set()), _MOST_WRAPPED))
            known = self._inside[inside.id] = _Wrapped(found or (proto,))
        return known

    def places(self) -> Mapping[str, Placed]:
        """Name of each instruction that runs to where it belongs."""
        return {text(node.proto.name): self._last(number) for number, node in self._nodes.items()}

    def _last(self, number: int) -> Placed:
        """Where an instruction finally belongs: with a known kind or scope it is not unknown."""
        place, node = self._places[number], self._nodes[number]
        if place.block is not None:
            return place
        if place.hint is not None:
            return replace(place, block=place.hint, by_name=True)
        opcode = node.proto.opcode
        known = place.is_named or opcode in _KINDS or opcode.startswith(_COLLECTIVES)
        known = known or node.wrapped.moves_between
        return replace(place, block="other" if known else "unknown", by_name=place.is_named)

    def _set(self, number: int, block: Block) -> None:
        if self._places[number].block is None:
            self._places[number] = replace(self._places[number], block=block)

    # --- products

    def _found_vocabulary(self) -> int:
        """The length of the longest table of weights that rows are looked up in; 0 without any."""
        found = 0
        for node in self._nodes.values():
            for each in node.wrapped.gathers:
                if (table := self._operand(each, 0)) is not None:
                    dims = tuple(table.shape.dimensions)
                    if len(dims) == 2 and dims in self._weights.shapes and dims[0] >= _LEAST_VOCABULARY:
                        found = max(found, dims[0])
        return found

    def _operand(self, proto: hlo_pb2.HloInstructionProto, place: int) -> hlo_pb2.HloInstructionProto | None:
        return self._hlo.instruction_by_id(proto.operand_ids[place]) if place < len(proto.operand_ids) else None

    def _products(self) -> None:
        """Products by what they multiply, those of attention first."""
        open_ones: list[int] = []
        seeds: list[int] = []
        for number, node in self._nodes.items():
            place, product = self._places[number], node.wrapped.product
            if product is None or place.block is not None:
                seeds += [number] if product is not None and place.block == "attention" else []
                continue
            if place.is_named and text(product.metadata.op_name).endswith("conv_general_dilated"):
                continue
            operands = [self._operand(product, side) for side in (0, 1)]
            shapes = [tuple(each.shape.dimensions) for each in operands if each is not None]
            out = tuple(product.shape.dimensions)
            if self._vocabulary and any(self._vocabulary in dims for dims in (*shapes, out)):
                self._set(number, "loss")
            elif _is_batched(product) and not any(map(self._is_weight, operands)):
                self._set(number, "attention")
                seeds.append(number)
            else:
                open_ones.append(number)
        near = self._near(seeds)
        is_model = bool(seeds or self._vocabulary or self._has_passes)
        for number in open_ones:
            hint = self._places[number].hint
            if hint is None and not is_model:  # a product by itself is nobody's layer
                continue
            found: Block = "attention" if number in near else "router" if self._chooses(number) else "mlp"
            self._places[number] = replace(self._places[number], block=hint or found, by_name=hint is not None)

    def _is_weight(self, proto: hlo_pb2.HloInstructionProto | None) -> bool:
        return proto is not None and self._weights.is_weight(proto)

    def _near(self, seeds: Iterable[int]) -> set[int]:
        """Products that feed products of attention or use their results, with no product in between."""
        found: set[int] = set()
        for ways in (self._operands_of, self._users_of):
            front, seen = list(seeds), set(seeds)
            for _ in range(_FAR):
                following = []
                for number in front:
                    for each in ways(number):
                        if each in seen:
                            continue
                        seen.add(each)
                        if self._nodes[each].wrapped.product is not None:
                            found.add(each)
                        elif self._places[each].block in (None, "attention"):
                            following.append(each)
                front = following
        return found

    def _operands_of(self, number: int) -> list[int]:
        """The instructions that run whose results an instruction takes."""

        def before(proto: hlo_pb2.HloInstructionProto, way: _Way) -> list[_Way]:
            operands: Sequence[int] = proto.operand_ids
            element = way.element
            if proto.opcode == b"get-tuple-element":
                element = proto.tuple_index
            elif proto.opcode == b"tuple" and element is not None:
                operands, element = operands[element : element + 1], None
            return [_Way(each, way.giver, element) for each in operands]

        return self._reached([_Way(each, number, None) for each in self._nodes[number].operands], before)

    def _users_of(self, number: int) -> list[int]:
        """The instructions that run which take the result of an instruction."""

        def after(proto: hlo_pb2.HloInstructionProto, way: _Way) -> list[_Way]:
            element = way.element
            if proto.opcode == b"tuple":
                element = next((at for at, of in enumerate(proto.operand_ids) if of == way.giver), None)
            elif proto.opcode == b"get-tuple-element":
                if element is not None and proto.tuple_index != element:
                    return []
                element = None
            return [_Way(user, proto.id, element) for user in self._users.get(proto.id, ())]

        return self._reached([_Way(each, number, None) for each in self._users.get(number, ())], after)

    def _reached(
        self, ways: list[_Way], beyond: Callable[[hlo_pb2.HloInstructionProto, _Way], list[_Way]]
    ) -> list[int]:
        """The instructions that run at the end of some ways; `beyond` leads on from those that only pass values on."""
        found: list[int] = []
        seen: set[_Way] = set()
        while ways and len(seen) < _MOST_PASSED:
            way = ways.pop()
            if way in seen:
                continue
            seen.add(way)
            if way.number in self._nodes:
                found.append(way.number)
                continue
            proto = self._hlo.instruction_by_id(way.number)
            if proto is not None and proto.opcode in _PASSED:
                ways += beyond(proto, way)
        return found

    def _chooses(self, number: int) -> bool:
        """Whether a product has few numbers per row, of which the largest are chosen."""
        product = self._nodes[number].wrapped.product
        if product is None or not product.shape.dimensions or min(product.shape.dimensions) > _MOST_EXPERTS:
            return False
        front = [number]
        for _ in range(3):
            front = list({each for at in front for each in self._users_of(at)})[:_MOST_PASSED]
            for each in front:
                if self._nodes[each].wrapped.chooses:
                    return True
        return False

    # --- what is no product

    def _others(self) -> None:
        for number, node in self._nodes.items():
            place = self._places[number]
            if place.block is not None or node.wrapped.product is not None or node.proto.opcode in _KINDS:
                continue
            block = self._block_of(node, place)
            if block is not None:
                self._set(number, block)
            elif place.hint is not None:
                self._places[number] = replace(place, block=place.hint, by_name=True)

    def _block_of(self, node: _Node, place: Placed) -> Block | None:
        opcodes = node.wrapped.opcodes
        is_outside = self._has_passes and not place.phase and bool(node.proto.metadata.op_name)
        shapes = [dims for dims in node.shapes if len(dims) > 1]
        taken = [dims for at in node.operands for dims in self._weights.dims(at) if len(dims) > 1]
        if is_outside and not opcodes <= MOVES and not place.is_named:
            of_weights = [dims in self._weights.shapes for dims in (shapes or taken)]
            if of_weights and all(of_weights):
                return "optimizer"
        if b"rsqrt" in opcodes and not is_outside:
            return "norm"
        if self._vocabulary and not opcodes <= MOVES:
            table = any(dims[:1] == (self._vocabulary,) and dims in self._weights.shapes for dims in (*shapes, *taken))
            if opcodes & {b"gather", b"scatter"} and table:
                return "embedding"
            if any(self._vocabulary == dims[-1] for dims in (*shapes, *taken)) and not table:
                return "loss"
        return None

    # --- neighbours

    def _neighbours(self) -> None:
        """Places open instructions with their neighbours if these agree; what only moves data goes with its users."""
        for _ in range(_ROUNDS):
            found: dict[int, Placed] = {}
            for number, node in self._nodes.items():
                place = self._places[number]
                if place.block is None and not place.is_named and node.proto.opcode not in _KINDS:
                    near = self._beside(number, node)
                    if near is not None:
                        found[number] = near
            if not found:
                return
            self._places.update(found)

    def _beside(self, number: int, node: _Node) -> Placed | None:
        users = [self._places[each] for each in self._users_of(number)]
        makers = [self._places[each] for each in self._operands_of(number)]
        after, before = (_common(places) for places in (users, makers))
        place = self._places[number]
        moves = node.wrapped.opcodes <= MOVES or node.proto.opcode.startswith(_COLLECTIVES)
        if moves:
            near = after if after is not None else before if not users else None
        else:
            near = after if after is not None and (before is None or before.block == after.block) and makers else None
            near = None if before is None and any(each.block is not None for each in makers) else near
        if near is None:
            return None
        return replace(place, block=near.block, phase=place.phase or near.phase, layer=place.layer or near.layer)


def _common(places: Iterable[Placed]) -> Placed | None:
    """The block of the places that have one; None if they have several, or none."""
    known = [place for place in places if place.block is not None]
    if len({place.block for place in known}) != 1:
        return None
    passes, layers = {place.phase for place in known}, {place.layer for place in known}
    return Placed(known[0].block, passes.pop() if len(passes) == 1 else "", layers.pop() if len(layers) == 1 else None)


def _is_batched(product: hlo_pb2.HloInstructionProto) -> bool:
    """Whether a product is batched.

    The compiler writes a batched product as a convolution whose window pairs the elements of the batch: it is as long
    as the batch, and strides or dilates by as much.
    """
    if product.opcode == b"dot":
        numbers = product.dot_dimension_numbers
        return len(numbers.lhs_batch_dimensions) > 0
    windows = product.window.dimensions
    return any(each.size > 1 and max(each.stride, each.base_dilation) == each.size for each in windows)
