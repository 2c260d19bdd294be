"""A memory space made by hand: a training step whose activations pile up and are used up again."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.memory.model import CATEGORIES, Buffer, Capacity, LiveRanges, ModuleLabel, SpaceMemory

GIB = 1 << 30
MIB = 1 << 20


def space_of(
    buffers: Sequence[Buffer],
    points: int,
    instructions: Sequence[str] | None = None,
    capacity: int | None = None,
    allocations: Sequence[int] | None = None,
    heap_allocation: int = 0,
) -> SpaceMemory:
    """The memory space that these buffers make, all figures derived from them.

    Args:
        allocations: index of each buffer's allocation; by default temporaries share one and others have their own.
    """
    born = np.array([0 if one.born is None else one.born for one in buffers], np.int64)
    dies = np.array([points if one.dies is None else one.dies for one in buffers], np.int64)
    size = np.array([one.size_bytes for one in buffers], np.int64)
    elements = np.array([-1 if one.unpadded_bytes is None else one.unpadded_bytes for one in buffers], np.int64)
    category = np.array([CATEGORIES.index(one.category) for one in buffers], np.int64)
    offset = np.array([-1 if one.offset_bytes is None else one.offset_bytes for one in buffers], np.int64)
    own = np.where(category == CATEGORIES.index("temporary"), heap_allocation, np.arange(len(buffers)) + 1)
    live_ranges = LiveRanges(
        logical_buffer=np.arange(len(buffers), dtype=np.int64),
        category=category,
        size_bytes=size,
        unpadded_bytes=elements,
        allocation=np.array(allocations, np.int64) if allocations is not None else own.astype(np.int64),
        offset_bytes=offset,
        born=born,
        dies=dies,
    )
    heap, unpadded = (_heap(values, born, dies, points) for values in (size, np.where(elements < 0, size, elements)))
    peak = int(heap.argmax())
    named = list(instructions) if instructions is not None else [f"op.{at}" for at in range(points - 1)]

    def total(name: str) -> int:
        return int(size[category == CATEGORIES.index(name)].sum())

    throughout = int(size[(born == 0) & (dies >= points)].sum())
    gaps = int((offset + size)[category == CATEGORIES.index("temporary")].max(initial=0))
    return SpaceMemory(
        module=ModuleLabel("jit_train_step", 17342, "host-0"),
        space=0,
        capacity=None if capacity is None else Capacity(capacity, "TPU v5e: limit in the compiler's errors"),
        peak_bytes=int(heap.max()),
        peak_unpadded_bytes=int(unpadded[peak]),
        peak_position=peak,
        peak_instruction=named[peak - 1] if 0 < peak <= len(named) else None,
        total_allocation_bytes=throughout + gaps,
        arguments_bytes=total("parameter"),
        outputs_bytes=total("output"),
        aliased_bytes=0,
        temporaries_bytes=int(heap.max()) - throughout,
        constants_bytes=total("constant"),
        thread_local_bytes=total("thread-local"),
        padding_bytes=int(heap[peak] - unpadded[peak]),
        fragmentation=max(0, gaps - int(heap.max()) + throughout) / gaps if gaps else None,
        scoped_bytes=None,
        scoped_instruction=None,
        heap_bytes=heap,
        heap_unpadded_bytes=unpadded,
        instructions=tuple(named),
        live_ranges=live_ranges,
        buffers=tuple(buffers),
        unknown={} if capacity is not None else {"capacity": "the profile does not say which TPU this ran on"},
    )


def _heap(size: np.ndarray, born: np.ndarray, dies: np.ndarray, points: int) -> np.ndarray:
    steps = np.zeros(points + 1, np.int64)
    np.add.at(steps, born, size)
    np.add.at(steps, np.minimum(dies, points), -size)
    return np.cumsum(steps)[:points]


def training_space(layers: int = 12, capacity: int | None = 16 * GIB) -> SpaceMemory:
    """A step of so many layers: parameters, their moments, activations that live until the backward pass."""
    points = layers * 8 + 9
    buffers = [
        Buffer(
            name=f"param.{at}",
            category="parameter",
            size_bytes=(192 - 24 * at) * 4 * MIB,
            unpadded_bytes=(192 - 24 * at) * 4 * MIB,
            shape=f"f32[{(192 - 24 * at)},1024,1024]{{2,1,0:T(8,128)}}",
            opcode="parameter",
            framework_op=f"state['{tree}']['layers']['{leaf}']",
            allocation_type="parameter",
            offset_bytes=0,
            born=0,
            dies=points,
        )
        for at, (tree, leaf) in enumerate(
            (tree, leaf) for tree in ("params", "mean", "square") for leaf in ("qkv", "up")
        )
    ]
    buffers.append(
        Buffer("constant.3", "constant", 512, 4, "f32[]{:T(128)}", "constant", offset_bytes=0, born=0, dies=points)
    )
    top = 0
    for layer in range(layers):
        born, dies = 1 + layer * 3, points - 2 - layer * 4
        for name, size, padded, shape, line in (
            ("attention/dot_general", 512, 1, "bf16[8,32,1024,1024]{3,2,1,0:T(8,128)(2,1)}", 212),
            ("attention/softmax/div", 16, 8, "f32[8,1024,32,16]{3,2,1,0:T(8,128)}", 218),
            ("mlp/dot_general", 256, 1, "bf16[8,1024,16384]{2,1,0:T(8,128)(2,1)}", 260),
        ):
            buffers.append(
                Buffer(
                    name=f"fusion.{layer * 3 + line}",
                    category="temporary",
                    size_bytes=size * padded * MIB,
                    unpadded_bytes=size * MIB,
                    shape=shape,
                    opcode="fusion",
                    framework_op=f"jit(train_step)/jvp(Model)/h_{layer}/{name}",
                    source=f"models/transformer.py:{line}",
                    stack=(f"models/transformer.py:{line} attention", "train.py:88 loss", "train.py:140 train_step"),
                    allocation_type="HLO temp",
                    offset_bytes=top,
                    born=born,
                    dies=dies,
                )
            )
            top += size * padded * MIB + (8 * MIB if layer % 3 == 0 else 0)
            born += 1
    return space_of(buffers, points, capacity=capacity)
