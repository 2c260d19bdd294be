"""Needs for tests, built from figures of real out-of-memory texts and by chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st

from tpuprof.parsers.formats.hlo.shapes import parse_shape
from tpuprof.parsers.memory.account.need import Need, OomKind
from tpuprof.parsers.memory.model import CATEGORIES, Buffer, Category

GIB, MIB = 1 << 30, 1 << 20


def buffer(
    shape: str | None,
    op: str | None = None,
    *,
    name: str = "fusion.1",
    category: Category = "temporary",
    size: int | None = None,
    label: str | None = None,
    opcode: str | None = None,
    source: str | None = None,
    operator: str | None = None,
    tag: str | None = None,
) -> Buffer:
    """A buffer with the size that its shape says."""
    read = parse_shape(shape) if shape else None
    if size is None:
        size = (read.padded_bytes if read is not None else None) or 0
    return Buffer(
        name=name,
        category=category,
        size_bytes=size,
        unpadded_bytes=read.unpadded_bytes if read is not None else None,
        shape=shape,
        opcode=opcode,
        framework_op=op,
        source=source,
        label=label,
        operator=operator,
        tag=tag,
    )


def need_of(
    *buffers: Buffer,
    used: int | None = None,
    capacity: int | None = None,
    space: str = "hbm",
    kind: OomKind | None = "compile",
    whole: bool = False,
    arguments: int | None = None,
    outputs: int | None = None,
    aliased: int | None = None,
    temporaries: int | None = None,
    fragmentation: int | None = None,
    program: str | None = None,
    requested: int | None = None,
    free: int | None = None,
    is_scoped_limit: bool = False,
) -> Need:
    """A need; where nothing is said the buffers are all that is used."""
    return Need(
        memory_space=space,
        used_bytes=sum(each.size_bytes for each in buffers) if used is None and buffers else used,
        capacity_bytes=capacity,
        arguments_bytes=arguments,
        outputs_bytes=outputs,
        aliased_bytes=aliased,
        temporaries_bytes=temporaries,
        fragmentation_bytes=fragmentation,
        buffers=buffers,
        is_whole=whole,
        kind=kind,
        program=program,
        requested_bytes=requested,
        free_bytes=free,
        is_scoped_limit=is_scoped_limit,
    )


MADE: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("needs.json").read_text("utf-8"))
"""Needs by what they show: the arguments of `need_of`, and under ``buffers`` those of `buffer`."""


def made(name: str) -> Need:
    """One of `MADE`; figures of the large ones are those of libtpu 0.0.17 for a v5e."""
    arguments = dict(MADE[name])
    return need_of(*(buffer(**each) for each in arguments.pop("buffers")), **arguments)


_OPS = st.sampled_from(
    [
        None,
        "",
        "jit(f)/jvp(layer_0)/attention/sub",
        "jit(f)/jvp(layer_1)/attention/sub",
        "jit(f)/jvp(layer_1)/mlp/dot_general",
        "jit(f)/transpose(jvp(layer_1))/mlp/dot_general",
        "jit(f)/jvp(layers)/while/body/dynamic_update_slice",
        "jit(f)/jvp(layers)/broadcast_in_dim",
        "jit(f)/jvp(logits)/log_softmax",
        "jit(f)/adam/mul",
        "state['mean']['w']",
        "opt_state[0].mu['w']",
        "params['w']",
        "broadcast.53",
        "resnet/MaxPool_1",
    ]
)
_LABELS = st.sampled_from(
    [None, "convert.1 = convert(param.3)", "copy.1 = copy(%Arg_0.1)", "broadcast.1 = broadcast(constant.2)", "x"]
)
_TAGS = st.sampled_from(
    [
        None,
        "scratch operand",
        "input window allocation for operator input 0. The window shape is f32[16,8], while the full shape is "
        "f32[32,8]. This allocation has 2 buffering levels.",
    ]
)


# Strategies that are made while others draw would be validated anew each time, which takes longer than drawing.
_ELEMENTS = st.sampled_from(["f32", "bf16", "s32", "pred"])
_DIMENSIONS = st.lists(st.sampled_from([1, 3, 4, 8, 18, 64, 256, 1024, 16384, 2**40]), max_size=5)
_TILES = st.sampled_from(["", ":T(8,128)", ":T(4,128)", ":T(256)", ":T(0,128)"])


@st.composite
def shapes(draw: st.DrawFn) -> str:
    """A shape with few different dimensions, so that buffers share them, tiled as TPU compilers do."""
    element = draw(_ELEMENTS)
    dims = draw(_DIMENSIONS)
    order = draw(st.permutations(range(len(dims))))
    tile = draw(_TILES) if dims else ""
    layout = f"{{{','.join(str(axis) for axis in order)}{tile}}}"
    return f"{element}[{','.join(str(size) for size in dims)}]{layout if dims else ''}"


_SHAPES = st.none() | shapes() | st.just("(f32[8], s32[])")
_SIZES_OR_OWN = st.integers(-5, 2**63) | st.none()
_UNPADDED_OR_OWN = st.none() | st.integers(-1, 2**63) | st.just(-2)
_NAMES = st.sampled_from(["fusion.1", "copy.2", "param.3"])
_CATEGORIES: st.SearchStrategy[Category] = st.sampled_from(CATEGORIES) | st.just("temporary")
_OPCODES = st.sampled_from([None, "convert", "copy", "broadcast", "custom-call", "fusion"])
_SOURCES = st.sampled_from([None, "model.py:3"])
_OPERATORS = st.sampled_from([None, None, "MaxPool"])


@st.composite
def buffers(draw: st.DrawFn) -> Buffer:
    """Any buffer, also with sizes that contradict its shape."""
    shape = draw(_SHAPES)
    read = parse_shape(shape) if shape else None
    padded = read.padded_bytes if read is not None else None
    size = draw(_SIZES_OR_OWN)
    if size is None:
        size = padded if padded is not None else 512
    unpadded = draw(_UNPADDED_OR_OWN)
    if unpadded == -2:
        unpadded = read.unpadded_bytes if read else None
    return Buffer(
        name=draw(_NAMES),
        category=draw(_CATEGORIES),
        size_bytes=size,
        unpadded_bytes=unpadded,
        shape=shape,
        opcode=draw(_OPCODES),
        framework_op=draw(_OPS),
        source=draw(_SOURCES),
        operator=draw(_OPERATORS),
        label=draw(_LABELS),
        tag=draw(_TAGS),
    )


_SIZES = st.none() | st.integers(-(2**40), 2**63) | st.integers(0, 2**40)

_THE_SUM = -(2**41)
_SIZES_OR_SUM = _SIZES | st.just(_THE_SUM)
_BUFFERS = st.lists(buffers(), max_size=6)
_SPACES = st.sampled_from(["hbm", "hbm", "hbm", "vmem", "smem", "host"])
_KINDS: st.SearchStrategy[OomKind | None] = st.sampled_from([None, "compile", "load", "runtime"])
_PROGRAMS = st.sampled_from([None, "jit__identity_fn", "jit_\x1bstep"])


@st.composite
def needs(draw: st.DrawFn) -> Need:
    listed = draw(_BUFFERS)
    used = draw(_SIZES_OR_SUM)
    return need_of(
        *listed,
        used=sum(each.size_bytes for each in listed) if used == _THE_SUM else used,
        capacity=draw(_SIZES),
        space=draw(_SPACES),
        kind=draw(_KINDS),
        whole=draw(st.booleans()),
        arguments=draw(_SIZES),
        outputs=draw(_SIZES),
        aliased=draw(_SIZES),
        temporaries=draw(_SIZES),
        fragmentation=draw(_SIZES),
        program=draw(_PROGRAMS),
        requested=draw(_SIZES),
        free=draw(_SIZES),
        is_scoped_limit=draw(st.booleans()),
    )
