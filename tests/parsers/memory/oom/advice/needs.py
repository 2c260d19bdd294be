"""Needs for tests, built from figures of real out-of-memory texts and by chance."""

from __future__ import annotations

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


STEP = "jit(transformer_train_step)/jit(main)"
MODELS = "train/models.py"


def transformer() -> Need:
    """A transformer of four layers, batch 64, that needs 27.8 of 15.75 GiB: figures of libtpu 0.0.17 for a v5e."""
    logits = "f32[64,4,2048,2048]{2,3,1,0:T(8,128)}"
    stream = "bf16[64,2048,1024]{2,1,0:T(8,128)(2,1)}"
    values = "bf16[64,4,128,2048]{3,2,1,0:T(8,128)(2,1)}"
    heads = "bf16[64,2048,4,128]{3,1,2,0:T(8,128)(2,1)}"
    return need_of(
        buffer("f32[64,2047,16000]{2,1,0:T(8,128)}", f"{STEP}/jvp(jit(log_softmax))/sub", source=f"{MODELS}:64"),
        *(buffer(logits, f"{STEP}/jvp(layer_{n})/attention/sub", source=f"{MODELS}:53") for n in (0, 2, 1)),
        buffer("bf16[64,2047,16000]{2,1,0:T(8,128)(2,1)}", f"{STEP}/jvp(logits)/dot_general", source=f"{MODELS}:63"),
        buffer(stream, f"{STEP}/jvp(logits)/convert_element_type", source=f"{MODELS}:48"),
        *(
            buffer(stream, f"{STEP}/jvp(layer_{n})/mlp/{op}", source=f"{MODELS}:55")
            for n in range(4)
            for op in ("reduce_sum", "dot_general")
        ),
        *(buffer(values, f"{STEP}/jvp(layer_{n})/attention/bhts,bshk->bthk/dot_general") for n in range(3)),
        *(buffer(heads, f"{STEP}/jvp(layer_{n})/attention/btd,dhk->bthk/dot_general") for n in (2, 0, 0)),
        used=int(27.81 * GIB),
        capacity=int(15.75 * GIB),
        arguments=0,
        temporaries=int(27.81 * GIB),
        fragmentation=int(259.92 * MIB),
    )


def adam_scan() -> Need:
    """A scan over 32 layers with Adam that needs 38.1 of 15.75 GiB; most entries name no op."""
    up, down = "32,16384,4096", "32,4096,16384"
    heads = "f32[32,4096,32,128]{3,2,1,0:T(8,128)}"
    moved = "bf16[32,4096,32,128]{3,1,2,0:T(8,128)(2,1)}"
    zeros = "broadcast(constant.766), dimensions={}"
    return need_of(
        buffer(f"f32[{up}]{{2,1,0:T(8,128)}}", label=f"broadcast.666 = {zeros}"),
        buffer(f"f32[{down}]{{2,1,0:T(8,128)}}", label=f"broadcast.665 = {zeros}"),
        buffer(f"bf16[{up}]{{2,1,0:T(8,128)(2,1)}}", label="convert.599 = convert(param.14)"),
        buffer(f"bf16[{down}]{{2,1,0:T(8,128)(2,1)}}", label="convert.598 = convert(param.13)"),
        *(buffer(heads, label=f"broadcast.663.clone{n} = {zeros}") for n in ("2.1", "2", "")),
        buffer("f32[32,32,128,4096]{3,2,1,0:T(8,128)}", label=f"broadcast.664 = {zeros}"),
        buffer("bf16[32,4,512,2,4096]{4,2,1,3,0:T(8,128)(2,1)}", label="copy.152 = copy(all-to-all.7)"),
        *(buffer(moved, label=f"copy.{n} = copy(param.{n})") for n in (146, 145, 144)),
        buffer("bf16[32,32,128,4096]{3,2,1,0:T(8,128)(2,1)}", label="convert.634 = convert(param.10)"),
        buffer(
            "bf16[8,512,4096]{2,1,0:T(8,128)(2,1)}",
            f"{STEP}/transpose(jvp(logits))/convert_element_type",
            source=f"{MODELS}:48",
        ),
        used=int(38.13 * GIB),
        capacity=int(15.75 * GIB),
        arguments=0,
        temporaries=int(38.13 * GIB),
        fragmentation=int(1.10 * GIB),
    )


def vmem_blocks() -> Need:
    """A kernel with an input and an output window of 64 MiB each, held twice."""
    tag = (
        "{0} window allocation for operator {0} 0. The window shape is f32[16384,1024], while the full shape is "
        "f32[32768,1024]. The u8 shape/size shown above represents the raw byte size of this window in VMEM. "
        "This allocation has 2 buffering levels."
    )
    op = "jit(<lambda>)/shard_map/big_block_kernel/pallas_call"
    label = 'big_block_kernel.1 = custom-call(param.1), custom_call_target="tpu_custom_call"'
    windows = (
        buffer("u8[134217728]{0}", op, category="scoped", size=128 * MIB, tag=tag.format(side), label=label)
        for side in ("input", "output")
    )
    return need_of(*windows, space="vmem", used=256 * MIB, capacity=128 * MIB)


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
