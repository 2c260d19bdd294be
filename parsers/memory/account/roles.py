"""What a buffer is for, judged by its op, its name and its shape: attention logits, a layer's activation, a moment …

Where the facts come from:

- JAX's name stack: ``jvp(…)`` is the forward pass of what is differentiated, ``transpose(jvp(…))`` its backward pass,
  ``rematted_computation`` what `jax.checkpoint` computes again. A buffer that the forward pass defines and that is in
  memory at the peak of a training step is kept for the backward pass, or waits to be used.
- `lax.scan` becomes a ``while`` loop. What it keeps for each iteration lies in one array with the iterations as leading
  dimension, filled with zeros or left empty at first and written by ``dynamic_update_slice``.
- Parameters carry their place in the arguments, ``state['mean']['layers']['up']`` or ``opt_state[0].mu``.
- What the compiler copies to another place or layout (``copy-start``) carries no op; where it leads with the batch it
  grows with that.

A role that the evidence does not carry is ``other``, and nothing is advised for it but what holds for every array.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from tpuprof.parsers.base.intervals import grouped, totals
from tpuprof.parsers.base.record import dataclass, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.formats.hlo.shapes import Shape, parse_shape
from tpuprof.parsers.memory.account.need import MARGIN, Need, fits
from tpuprof.parsers.memory.model import Buffer

Role = (
    Literal["attention", "loss", "activation", "backward", "forward", "gradient", "optimizer", "weight copy", "copy"]
    | Literal["parameter", "cache", "output", "scoped", "other"]
)
"""``activation`` is kept for the backward pass, ``forward`` is of a program that says nothing of passes, ``copy`` is
the compiler's own of something that leads with the batch."""

Type = tuple[str, tuple[int, ...]]
"""An array's element type and its dimensions."""

KEPT_NARROW = ".remat_compressed"  # in the names of what the compiler keeps in another layout, to save memory
MUCH_AGAIN = 0.1  # of the need: what the compiler computes again by itself counts from here on
_MOST_COPIES = 4  # times that a token is in what mixtures of experts gather, with room to spare
LONG = 256  # from this length on two equal last dimensions are those of attention, not of heads or of a small matrix
VOCABULARY = 4096  # a last dimension from this size on may be a vocabulary where the op is one of the loss
LARGE_VOCABULARY = 30_000  # from here on it is taken for one without an op that says so
_FLOATS = frozenset(("f32", "bf16", "f16", "f64"))
_ATTENTION = pattern(r"atten|attn|softmax|bhqk|bhts|bqhk", re.IGNORECASE)
_ATTENDS = pattern(r"atten|attn", re.IGNORECASE)
_LOSS = pattern(r"logit|softmax|cross_?entropy|xent|\bloss|nll|lm_?head|unembed|logsumexp", re.IGNORECASE)
_OPTIMIZER = pattern(
    r"(?<![A-Za-z])(opt_?state|optimi[sz]er\w*|mu|nu|mean|square|adam\w*|momentum|moments?\d?|exp_avg\w*|velocity"
    r"|trace|slots?)(?![A-Za-z])",
    re.IGNORECASE,
)
_WEIGHTS = pattern(r"param|weight|kernel|bias|scale|embed|state|cache|opt_|momentum", re.IGNORECASE)
_STATISTICS = pattern(r"batch_?stats|running_|moving_", re.IGNORECASE)
_OPTIMIZER_SCOPE = pattern(r"(?:^|/)(?:adam\w*|sgd|lion|adafactor|optimi[sz]er\w*|opt_?update\w*)/", re.IGNORECASE)
_LABEL = pattern(r"%?[\w.\-]{1,200} = (?:[a-z0-9]{1,12}\[\S{1,400} )?([a-z][a-z0-9\-]{0,60})\(([^()]{0,400})")
_WEIGHT = pattern(r"%?(?:param|Arg_|arg)[\w.\-]*\Z")
_NUMBERED = pattern(r"[A-Za-z][A-Za-z_]*?[_.\[]?\d+\]?\Z")
_WRAPPING = pattern(r"(?:jvp|transpose|vmap|jit|pjit|shard_map|named)\(|[()]")
_NO_LAYERS = frozenset(("jit", "pjit", "main"))
_COPIES = frozenset(
    ("bitcast", "convert", "copy", "copy-done", "copy-start", "dynamic-slice", "reshape", "slice", "transpose")
)


@dataclass(frozen=True, slots=True)
class BufferFacts:
    """A buffer with what its name, shape and op say about it.

    Attributes:
        index: of the buffer in the need.
        size: bytes, not negative.
        shape: its array's shape; None for tuples and where it is unknown.
        element: its element type, ``f32``; empty where unknown.
        dims: its dimensions without `stack`; () where unknown.
        stack: number of layers that it holds, its leading dimension, where a scan made it; 1 else.
        opcode, operands: of the instruction; empty where unknown.
        op, layer: its framework op, and the layer's name in that, ``layer_0``; empty where unknown.
    """

    index: int
    buffer: Buffer
    size: int
    shape: Shape | None
    element: str
    dims: tuple[int, ...]
    opcode: str
    operands: str
    op: str
    layer: str
    stack: int = 1
    role: Role = "other"

    @property
    def whole_dims(self) -> tuple[int, ...]:
        """Dimensions, the layers' included."""
        return self.dims if self.stack == 1 else (self.stack, *self.dims)

    @property
    def padded_dims(self) -> tuple[int, ...] | None:
        """The whole array's dimensions with padding; None where its shape or layout is unknown."""
        return self.shape.padded_dimensions if self.shape is not None else None

    @property
    def is_tensorflow(self) -> bool:
        """Whether its op is TensorFlow's, ``MaxPool``; older JAX prints types as well, ``concatenate``."""
        return (self.buffer.operator or "")[:1].isupper()

    @property
    def op_name(self) -> str:
        """The last part of its op, without the parameters in brackets that older JAX prints there."""
        return self.op.partition("[")[0].rstrip("/").rsplit("/", 1)[-1]

    @property
    def is_float(self) -> bool:
        """Whether its elements are floating-point numbers of 2 bytes or more."""
        return self.element in _FLOATS

    @property
    def is_temporary(self) -> bool:
        """Whether the program makes it while it runs."""
        return self.buffer.category == "temporary"


@dataclass(frozen=True, slots=True)
class NeedFacts:
    """A need with what its buffers say about batch, layers and roles.

    Attributes:
        items: the need's buffers in its order.
        batch: the leading dimension that most bytes of activations share; None where there is none.
        layers: how many layers the ops name, or a scan stacks; 0 where neither.
        listed_bytes: all buffers together.
        stacks: leading dimensions that are a scan's iterations.
        everywhere: the same of all the program's buffers, those at the peak first; None where only those are known.
    """

    need: Need
    items: tuple[BufferFacts, ...]
    batch: int | None
    layers: int
    listed_bytes: int
    stacks: frozenset[int]
    everywhere: NeedFacts | None = None

    @property
    def whole_bytes(self) -> int:
        """What shares are taken of: the need, or all listed buffers where that is more or the need unknown."""
        return max(self.need.used_bytes or 0, self.listed_bytes)

    @property
    def is_wide(self) -> bool:
        """Whether the passes compute in float32, by most bytes of what they keep.

        What is used by matrix products alone is in bfloat16 then too: the compiler narrows it.
        """
        sizes = Counter(totals((item.element, item.size) for item in self.items if item.role == "activation"))
        return sizes["f32"] > sizes["bf16"] + sizes["f16"]

    @property
    def again(self) -> list[BufferFacts]:
        """What the compiler computes again by itself, each once, the largest first; nothing where that is little."""
        every = largest_first((self.everywhere or self).items)[::-1]
        found = largest_first({name: item for item in every if (name := again_as(item.buffer.name))}.values())
        return found if sum(item.size for item in found) >= MUCH_AGAIN * self.whole_bytes else []

    def of(self, *roles: Role) -> list[BufferFacts]:
        return largest_first(item for item in self.items if item.role in roles)


def again_as(name: str) -> str:
    """What the compiler computes again by itself to save memory, by a buffer's name; nothing of another buffer."""
    before, mark, _ = name.partition(".remat")
    return before if mark else ""


def most_needed(before: int, after: int, again: Collection[int], there: int | None = None) -> int:
    """What a program may need after a change that makes it smaller, where the compiler computes much again now.

    With more room it does so less: half of what is saved may be kept for that, as far as there is as much to compute
    again, and at least the largest buffer.

    Args:
        there: how much memory there is, where the change leaves the program as it is but for its size: then it computes
            again as much as it has to.
    """
    least = after + max(again, default=0)
    most = max(least, min((before + after) // 2, after + sum(again)))
    return most if there is None or not fits(least, there) else min(most, int((1 - MARGIN) * there))


def largest_first(items: Iterable[BufferFacts]) -> list[BufferFacts]:
    """Items by size, equal ones in the need's order."""
    return sorted(items, key=lambda item: (-item.size, item.index))


def by_type(items: Iterable[BufferFacts]) -> dict[Type, list[BufferFacts]]:
    """Items of each type, in their order."""
    return grouped(((item.element, item.dims), item) for item in items)


def read(need: Need) -> NeedFacts:
    """Reads every buffer of a need; time grows with their number alone."""
    facts = _read(need)
    if need.moments is None:
        return facts
    every = _read(replace(need, buffers=(*need.buffers, *need.moments.elsewhere)))
    return replace(facts, everywhere=replace(every, batch=facts.batch, layers=facts.layers))


def _read(need: Need) -> NeedFacts:
    shapes = {buffer.shape: parse_shape(buffer.shape) for buffer in need.buffers if buffer.shape}
    items = [_item(index, buffer, shapes.get(buffer.shape or "")) for index, buffer in enumerate(need.buffers)]
    stacks = _stacks(items)
    items = [_stacked(item, stacks) for item in items]
    weights = frozenset(
        item.dims
        for item in items
        if item.is_float and len(item.dims) > 1 and (item.buffer.category == "parameter" or _is_weight_copy(item))
    )
    known = need.known
    items = [replace(item, role=known.role(item.buffer) or _role(item, weights)) for item in items]
    grown = {item.whole_dims for item in items if known.grows(item.buffer)}
    items = [_not_weights(item) if item.whole_dims in grown else item for item in items]
    batch = known.batch if known.is_read else _batch(items)
    if is_lone(need) and items[0].role in ("other", "attention"):
        items = [_lone(items[0])]
        batch = items[0].dims[0] if items[0].role != "other" else batch
    items = [_unnamed(item, batch, weights) for item in items]
    attention = frozenset(item.dims for item in items if item.role == "attention")
    items = [_batch_copy(_like_attention(item, attention), batch, stacks, weights) for item in items]
    kept = [item for item in items if item.role in ("attention", "activation")]
    layers = max([len({item.layer for item in kept if item.layer}), *(item.stack for item in kept)])
    layers = layers if layers > 1 else known.layers
    return NeedFacts(need, tuple(items), batch, layers, sum(item.size for item in items), stacks)


def is_lone(need: Need) -> bool:
    """Whether an error names one buffer that alone is larger than the memory, so that nothing is known of the rest."""
    sizes = [each.size_bytes for each in need.buffers]
    is_too_large = need.memory_space == "hbm" and (need.over_bytes or 0) > 0
    return need.kind == "compile" and is_too_large and not need.is_whole and sizes == [need.used_bytes]


def _lone(item: BufferFacts) -> BufferFacts:
    """That buffer, larger than the memory: scores, or what else leads with a batch.

    Heads may be part of the batch, so that scores have three dimensions.
    """
    if len(item.dims) < 2 or not item.is_temporary or not item.is_float or item.dims[0] < 2:
        return item
    is_square = len(item.dims) > 2 and item.dims[-1] == item.dims[-2] >= 4 * LONG
    return replace(item, role="attention" if is_square else "forward")


def _not_weights(item: BufferFacts) -> BufferFacts:
    """What grows with the batch is no copy and no gradient of weights."""
    return replace(item, role="copy") if item.role in ("weight copy", "gradient") else item


def _item(index: int, buffer: Buffer, shape: Shape | None) -> BufferFacts:
    label = _LABEL.match(buffer.label[:4096]) if buffer.label else None
    op = buffer.framework_op or ""
    item = BufferFacts(
        index=index,
        buffer=buffer,
        size=max(0, buffer.size_bytes),
        shape=shape,
        element=shape.element_type if shape is not None else "",
        dims=shape.dimensions if shape is not None else (),
        opcode=buffer.opcode or (label[1] if label else ""),
        operands=label[2] if label else "",
        op=op,
        layer=_layer(op),
    )
    return replace(item, layer=item.op_name) if item.is_tensorflow else item


def _layer(op: str) -> str:
    """The first part of an op's scope that ends in a number, ``layer_0``, ``h_7``; an op of its own in TensorFlow's."""
    scope = [part for part in _WRAPPING.sub("/", op.partition("[")[0]).split("/") if part][:-1]
    return next((part for part in scope if _NUMBERED.match(part) and part not in _NO_LAYERS), "")


def _zero_filled(item: BufferFacts) -> bool:
    """Whether it starts as zeros or as nothing, to be filled by a loop."""
    if item.buffer.slices is not None and "/while" in item.op:
        return True
    if item.opcode == "broadcast":
        return not item.operands or item.operands.lstrip("%").startswith("constant")
    return item.opcode == "custom-call" and item.op_name.startswith("broadcast")


def _stacks(items: Sequence[BufferFacts]) -> frozenset[int]:
    """Leading dimensions that are a scan's iterations: written slice by slice in a loop, or shared by the weights.

    A leading dimension of the weights counts where two different shapes of at least three dimensions have it.
    """
    sizes = {
        item.dims[0]
        for item in items
        if item.is_temporary and len(item.dims) > 2 and "/while" in item.op and "dynamic_update" in item.op
    }
    shapes = {
        item.dims
        for item in items
        if len(item.dims) > 2 and (_is_weight_copy(item) or item.buffer.category == "parameter")
    }
    sizes |= {size for size, count in Counter(dims[0] for dims in shapes).items() if count > 1}
    inputs = {item.dims[0] for item in items if item.buffer.category == "parameter" and item.dims and not item.is_float}
    return frozenset(size for size in sizes - inputs if size > 1)


def _stacked(item: BufferFacts, stacks: Iterable[int]) -> BufferFacts:
    """Takes the layers off the dimensions of what a scan collects."""
    slices = item.buffer.slices
    if slices is not None and "/while" in item.op and item.dims[:1] == (slices,) and slices > 1 and len(item.dims) > 1:
        return replace(item, dims=item.dims[1:], stack=slices)
    filled = _zero_filled(item) or "dynamic_update" in item.op
    if not (item.is_temporary and filled and len(item.dims) > 2 and item.dims[0] in stacks):
        return item
    return replace(item, dims=item.dims[1:], stack=item.dims[0])


def _is_weight_copy(item: BufferFacts) -> bool:
    """Whether it is a conversion or a copy of an argument, as the text of its instruction says."""
    return item.opcode in ("convert", "copy") and bool(_WEIGHT.match(item.operands.strip()))


def _role(item: BufferFacts, weights: frozenset[tuple[int, ...]]) -> Role:
    category = item.buffer.category
    if category == "scoped":
        return "scoped"
    if item.buffer.category == "parameter":
        name = item.op or item.buffer.name
        return "optimizer" if _OPTIMIZER.search(name) and not _STATISTICS.search(name) else "parameter"
    if category != "temporary":
        return "output" if category == "output" else "other"
    backward = "transpose(" in item.op or item.op.startswith("gradients/") or "/gradients/" in item.op
    return _role_of_weights(item, weights, backward) or _role_of_layers(item, backward)


def _role_of_weights(item: BufferFacts, weights: frozenset[tuple[int, ...]], backward: bool) -> Role | None:
    """What has the shape of weights, or is the optimizer's; None for the rest."""
    if _is_weight_copy(item):
        return "weight copy"
    if item.is_float and item.whole_dims in weights:
        filled = _zero_filled(item)
        if backward or (filled and "jvp(" not in item.op):
            return "gradient"
        if filled or item.opcode in ("convert", "copy") or item.op.endswith("convert_element_type"):
            return "weight copy"  # a scan keeps the cast weights of each layer for the backward pass
    return "optimizer" if _OPTIMIZER_SCOPE.search(item.op) else None


def _role_of_layers(item: BufferFacts, backward: bool) -> Role:
    """What the passes compute."""
    if KEPT_NARROW in item.buffer.name:
        return "activation"
    if _is_attention(item):
        return "attention"
    if _is_loss(item, backward):
        return "loss"
    if backward:
        return "backward"
    if "jvp(" in item.op:
        return "activation"
    return "forward" if "/" in item.op or item.buffer.operator else "other"


def _is_attention(item: BufferFacts) -> bool:
    """Logits or weights of attention: the last two dimensions long, heads before them, and an op that says so.

    Without an op they must be equal and four times as long, since images have two equal dimensions too.
    """
    if len(item.dims) < 4 or min(item.dims[-2:]) < LONG or not item.element:
        return False
    if _ATTENTION.search(item.op):
        return True
    rows, columns = item.dims[-2:]
    silent = not item.op or (_zero_filled(item) and item.stack > 1)
    return silent and item.is_float and rows == columns >= 4 * LONG and item.dims[-3] <= LONG


def _is_loss(item: BufferFacts, backward: bool) -> bool:
    """Logits over a vocabulary; a gradient of two dimensions is one of weights."""
    dims = item.dims
    if not item.is_float or not 2 <= len(dims) <= 3 or dims[-1] < VOCABULARY or item.stack > 1:
        return False
    if len(dims) == 2 and backward:
        return False
    if item.op:
        return bool(_LOSS.search(item.op)) and dims[-1] > dims[-2] and not _ATTENDS.search(item.op)
    return dims[-1] >= LARGE_VOCABULARY and dims[-1] > dims[0] and not item.operands


def _batch(items: Sequence[BufferFacts]) -> int | None:
    """The leading dimension that most bytes share, of what the passes make; None without two that do.

    Where an input has such a dimension, the others are none: experts lead too.
    """
    computed = [
        item
        for item in items
        if item.role in ("attention", "loss", "activation", "backward", "forward") and len(item.dims) > 1
    ]
    inputs = {dims[0]: math.prod(dims[:2]) for dims in _inputs(items)}
    growing = {
        length: sum(item.size for item in computed if leads(item.dims, length, (tokens,)))
        for length, tokens in inputs.items()
    }
    if growing and max(growing.values()):
        return max(growing, key=lambda length: (growing[length], -length))
    sizes = grouped((item.dims[0], item.size) for item in computed)
    batch = max(sizes, key=lambda length: (sum(sizes[length]), -length), default=1)
    return batch if batch > 1 and len(sizes[batch]) > 1 else None


def leads(dims: Sequence[int], batch: int, tokens: Collection[int]) -> bool:
    """Whether an array leads with the batch, with all tokens, or with experts and the tokens of each."""
    if dims[0] == batch:
        return True
    whole = dims[0] * dims[1] if len(dims) > 2 else dims[0]
    return any(length <= whole <= _MOST_COPIES * length and whole % length == 0 for length in tokens if length > batch)


def _inputs(items: Sequence[BufferFacts]) -> list[tuple[int, ...]]:
    """Dimensions of arguments that are no weights: of integers, or of a shape and a name of their own."""
    arguments = [item for item in items if item.buffer.category == "parameter" and len(item.dims) > 1]
    counts = Counter(item.dims for item in items if item.role in ("parameter", "optimizer", "gradient", "weight copy"))
    return [
        item.dims
        for item in arguments
        if not item.is_float or (counts[item.dims] == 1 and not _WEIGHTS.search(item.op or item.buffer.name))
    ]


def _unnamed(item: BufferFacts, batch: int | None, weights: frozenset[tuple[int, ...]]) -> BufferFacts:
    """What a scan collects without an op that shows its role: activations where the batch follows the layers, gradients
    where the shape is the weights'.
    """
    if item.role not in ("other", "forward", "activation") or not _zero_filled(item) or not item.is_float:
        return item
    if item.whole_dims in weights:
        return replace(item, role="gradient")
    if item.role != "activation" and item.stack > 1 and len(item.dims) > 1 and item.dims[0] == batch:
        return replace(item, role="activation")
    return item


def _like_attention(item: BufferFacts, shapes: frozenset[tuple[int, ...]]) -> BufferFacts:
    """What has the dimensions of attention logits, and an op that says nothing else, is taken for them."""
    alike = item.role == "activation" and item.dims in shapes and _zero_filled(item)
    return replace(item, role="attention") if alike else item


def _batch_copy(
    item: BufferFacts, batch: int | None, stacks: frozenset[int], weights: frozenset[tuple[int, ...]]
) -> BufferFacts:
    """What the compiler copies of something that leads with the batch, or with the layers and then the batch."""
    if item.role != "other" or item.op or item.opcode not in _COPIES or not item.is_temporary:
        return item
    if batch is None or len(item.dims) < 2 or item.whole_dims in weights:
        return item
    if item.dims[0] == batch:
        return replace(item, role="copy")
    if len(item.dims) > 2 and item.dims[0] in stacks and item.dims[1] == batch:
        return replace(item, dims=item.dims[1:], stack=item.dims[0], role="copy")
    return item
