"""Writes out-of-memory texts of all forms from numbers, so that tests know the truth."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from fractions import Fraction

from tpuprof.parsers.memory.model import Buffer
from tpuprof.parsers.memory.oom.model import OomReport
from tpuprof.parsers.memory.oom.read.scan import scan_log

KIB, MIB, GIB = 1024, 1024**2, 1024**3
RULE = "     " + "=" * 26


def size_text(value: int) -> str:
    """Bytes as the compiler prints them: two decimals, one for K, none for B."""
    if value < KIB:
        return f"{value}B"
    if value < MIB:
        return f"{value / KIB:.1f}K"
    for unit, letter in ((MIB, "M"), (GIB, "G")):
        if value < unit * 1024:
            return f"{value / unit:.2f}{letter}"
    return f"{value / 1024**4:.2f}T"


def printed_bytes(value: int) -> int:
    """What a reader can know of a size that was printed."""
    text = size_text(value)
    unit = {"B": 1, "K": KIB, "M": MIB, "G": GIB, "T": 1024**4}[text[-1]]
    return round(Fraction(text[:-1]) * unit)


@dataclass(frozen=True)
class Allocation:
    """An entry of the list; sizes in bytes that its shape has."""

    name: str
    shape: str
    padded: int
    unpadded: int
    opcode: str = "fusion"
    op_name: str | None = None
    op_type: str | None = None
    file: str | None = None
    line: int | None = None
    frame: int | None = None
    tag: str | None = None
    type: str = "HLO temp"
    percent: bool = False

    @property
    def label(self) -> str:
        """As newer compilers write it, or older ones."""
        if self.percent:
            return f"%{self.name} = {self.shape} {self.opcode}(f32[8]{{0:T(8)}} %p.1), kind=kLoop, calls=%fused..."
        return f"{self.name} = {self.opcode}(copy-done.1, p.1), kind=kLoop, calls=fused_computation.1"

    @property
    def operator(self) -> str | None:
        """The line without its key; None where nothing is known."""
        parts = [
            f'op_type="{self.op_type}"' if self.op_type is not None else "",
            f'op_name="{self.op_name}"' if self.op_name is not None else "",
            f'source_file="{self.file}"' if self.file is not None else "",
            f"source_line={self.line}" if self.line is not None else "",
            f"stack_frame_id={self.frame}" if self.frame is not None else "",
        ]
        return " ".join(part for part in parts if part) or None

    def lines(self, number: int) -> list[str]:
        """The entry, with the empty line behind it."""
        extra = self.padded - self.unpadded
        times = f"{self.padded / self.unpadded:.1f}x"
        lines = [
            f"  {number}. Size: {size_text(self.padded)}",
            f"     Operator: {self.operator}" if self.operator is not None else "",
            f"     Shape: {self.shape}",
            f"     Unpadded size: {size_text(self.unpadded)}",
            f"     Extra memory due to padding: {size_text(extra)} ({times} expansion)" if extra else "",
            f"     Tag: {self.tag}" if self.tag is not None else "",
            f"     XLA label: {self.label}",
            f"     Allocation type: {self.type}",
            RULE,
        ]
        return [line for line in lines if line] + [""]

    def buffer(self) -> Buffer:
        """What is to be read."""
        return Buffer(
            name=self.name,
            category="scoped" if self.type == "scoped" else "constant" if self.type == "global" else "temporary",
            size_bytes=self.padded,
            unpadded_bytes=self.unpadded,
            shape=self.shape,
            opcode=self.opcode,
            framework_op=self.op_name,
            source=f"{self.file}:{self.line}" if self.file is not None else None,
            allocation_type=self.type,
            operator=self.op_type,
            tag=self.tag,
            label=self.label,
        )


@dataclass(frozen=True)
class CompileError:
    """The long form; None leaves a line out."""

    used: int
    capacity: int
    space: str = "hbm"
    reserved: int | None = 258 * MIB
    arguments: int | None = 0
    output: int | None = 0
    shared: int = 0
    rows: tuple[tuple[str, int], ...] = (("global", MIB),)
    temporaries: int | None = None
    unpadded: int | None = None
    fragmentation: int | None = None
    allocations: tuple[Allocation, ...] = ()
    code: str | None = None
    lead: str = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: "
    program: str | None = None
    has_tables: bool = True

    @property
    def sentence(self) -> str:
        """The first line, from its first word on."""
        exceeded = size_text(self.used - self.capacity)
        return (
            f"Ran out of memory in memory space {self.space}. Used {size_text(self.used)} of"
            f" {size_text(self.capacity)} {self.space}. Exceeded {self.space} capacity by {exceeded}."
        )

    def lines(self) -> list[str]:
        """The whole text."""
        code = f"{self.code}: CompileTimeHbmOom: " if self.code is not None else ""
        lines = [f"{self.lead}{code}XLA:TPU compile permanent error. {self.sentence}", ""]
        if not self.has_tables:
            return lines[:1]
        if self.reserved is not None:
            arguments = "unknown size" if self.arguments is None else size_text(self.arguments)
            lines += [
                f"Total {self.space} usage >= {size_text(self.used + self.reserved)}:",
                f"    reserved    {size_text(self.reserved):>12} ",
                f"    program     {size_text(self.used):>12} ",
                f"    arguments   {arguments:>12} ",
                "",
                "Output size unknown."
                if self.output is None
                else f"Output size {size_text(self.output)}; shares {size_text(self.shared)} with arguments.",
                "",
            ]
        lines.append(f"Program {self.space} requirement {size_text(self.used)}:")
        lines += [f"    {name:<10}  {size_text(value):>12}" for name, value in self.rows]
        if self.temporaries is not None:
            lines.append(f"    HLO temp    {size_text(self.temporaries):>12} ({self._inside()})")
        lines += ["", f"  Largest program allocations in {self.space}:", ""]
        for number, allocation in enumerate(self.allocations, 1):
            lines += allocation.lines(number)
        return [*lines, ""]

    def text(self) -> str:
        """The lines, each ended."""
        return "".join(line + "\n" for line in self.lines())

    def report(self) -> OomReport:
        """What is to be read from the text; without reasons for what is unknown."""
        parts = {f"{name}_bytes": printed_bytes(value) for name, value in self.rows}
        report = OomReport(
            kind="compile",
            memory_space=self.space,
            sentence=self.sentence,
            at_line=1,
            code=self.code,
            program=self.program,
            used_bytes=printed_bytes(self.used),
            capacity_bytes=printed_bytes(self.capacity),
            exceeded_bytes=printed_bytes(self.used - self.capacity),
        )
        if not self.has_tables:
            return replace(report, program=None)
        listed = sum(each.padded - each.unpadded for each in self.allocations)
        padding = listed if self.unpadded is None or self.temporaries is None else self.temporaries - self.unpadded
        full = self.reserved is not None
        return replace(
            report,
            reserved_bytes=printed_bytes(self.reserved) if self.reserved is not None else None,
            program_bytes=printed_bytes(self.used),
            arguments_bytes=printed_bytes(self.arguments) if full and self.arguments is not None else None,
            output_bytes=printed_bytes(self.output) if full and self.output is not None else None,
            shared_bytes=printed_bytes(self.shared) if full and self.output is not None else None,
            global_bytes=parts.get("global_bytes"),
            scoped_bytes=parts.get("scoped_bytes"),
            overlays_bytes=parts.get("overlays_bytes"),
            hlo_temp_bytes=printed_bytes(self.temporaries) if self.temporaries is not None else None,
            unpadded_bytes=printed_bytes(self.unpadded) if self.unpadded is not None else None,
            padding_bytes=padding,
            utilization=0.928 if self.temporaries is not None else None,
            fragmentation=0.003 if self.fragmentation is not None else None,
            fragmentation_bytes=printed_bytes(self.fragmentation) if self.fragmentation is not None else None,
            buffers=tuple(sorted((each.buffer() for each in self.allocations), key=lambda each: -each.size_bytes)),
        )

    def _inside(self) -> str:
        parts = "92.8% utilization"
        if self.unpadded is not None and self.temporaries is not None:
            parts += f": Unpadded ({size_text(self.unpadded)}) Padded ({size_text(self.temporaries)})"
        if self.fragmentation is not None:
            parts += f", 0.3% fragmentation ({size_text(self.fragmentation)})"
        return parts


LAYER = "jit(train_step)/jit(main)/jvp(layer_0)"
ALLOCATIONS = (
    Allocation(
        "fusion.35",
        "f32[64,2047,16000]{2,1,0:T(8,128)}",
        64 * 2048 * 16000 * 4,
        64 * 2047 * 16000 * 4,
        op_name=f"{LAYER}/attention/sub",
        file="train/models.py",
        line=64,
    ),
    Allocation(
        "convert.806.remat3",
        "bf16[64,4,2048,2048]{2,3,1,0:T(8,128)(2,1)}",
        2 * GIB,
        2 * GIB,
        opcode="convert",
        op_name=f"{LAYER}/mlp/dot_general",
        frame=12,
    ),
    Allocation(
        "fusion.1668",
        "f32[4,128,128,9,18]{4,3,0,2,1:T(8,128)}",
        512 * MIB,
        4 * 128 * 128 * 9 * 18 * 4,
        op_type="OneHot",
        op_name="one_hot",
        percent=True,
    ),
    Allocation("copy.7", "s32[16]{0:T(128)}", 512, 64, opcode="copy", type="global"),
)

WINDOW = Allocation(
    "big_block_kernel.1",
    "u8[134217728]{0}",
    128 * MIB,
    128 * MIB,
    opcode="custom-call",
    op_name="jit(<lambda>)/shard_map/big_block_kernel/pallas_call",
    tag="input window allocation for operator input 0. The window shape is f32[16384,1024], while the full shape is"
    " f32[32768,1024]. This allocation has 2 buffering levels.",
    type="scoped",
)

HBM = CompileError(
    used=28 * GIB,
    capacity=16128 * MIB,
    temporaries=27 * GIB,
    unpadded=26 * GIB,
    fragmentation=260 * MIB,
    allocations=ALLOCATIONS,
    program="jit_train_step",
)
OLD_HBM = replace(
    HBM,
    used=1802 * GIB // 100 + GIB // 4,
    capacity=16 * GIB,
    arguments=None,
    output=None,
    unpadded=None,
    rows=(("reserved", 12 * KIB), ("global", 980 * KIB), ("scoped", 5 * MIB)),
    lead="Compilation failure: ",
)
VMEM = CompileError(
    used=256 * MIB,
    capacity=128 * MIB,
    space="vmem",
    reserved=None,
    rows=(("scoped", 256 * MIB),),
    allocations=(WINDOW, replace(WINDOW, tag=WINDOW.tag and WINDOW.tag.replace("input", "output"))),
    program="jit__lambda_",
)
CODED = replace(HBM, code="E1000", used=30 * GIB)
BRIEF = replace(HBM, has_tables=False)


# Forms of one line
KERNEL = (
    '%body.2 = f32[32768,1024]{1,0:T(8,128)} custom-call(%param), custom_call_target="tpu_custom_call",'
    ' metadata={op_name="jit(f)/jit(main)/pallas_call" source_file="train/k.py" source_line=38}'
)
ONE_LINERS = {
    "stack": (
        f"jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: Ran out of memory in memory"
        f" space vmem while allocating on stack for {KERNEL}. Scoped allocation with size 33.84M and limit 32.00M"
        " exceeded scoped vmem limit by 1.84M. It should not be possible to run out of scoped vmem."
    ),
    "allocation": (
        "ValueError: RESOURCE_EXHAUSTED: Allocation (size=8388608) would exceed memory (size=1048576) :: #allocation2"
        " [shape = 's32[2097152]{0:T(128)}', space=smem, size = 0x800000, scoped, tag = 'scratch operand'] ::"
        " smem_kernel.1"
    ),
    "output allocation": (
        "ValueError: Allocation (size=107374182400) would exceed memory (size=17179869184) :: #allocation7 [shape ="
        " 'u8[327680,327680]{1,0:T(8,128)(4,1)}', space=hbm, size = 0xffffffffffffffff, tag = 'output of"
        " xor_convert_fusion@{}'] :: <no-hlo-instruction>"
    ),
    "short": (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: "
        "Ran out of memory on HBM, the total memory required for HLO temporaries (49.25G) exceeds available HBM"
        " (15.75G)."
    ),
    "short_module": (
        "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: E1000: CompileTimeHbmOom: "
        "Ran out of memory on HBM, the total memory required for HLO temporaries (49.25G) exceeds available HBM"
        " (15.75G)."
        " HLO module: jit_train_step."
    ),
    "cores": (
        "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 34.75G, SparseCore Hbm usage 174.00G, exceeding available bytes:"
        " 95.50G"
    ),
    "load": (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: "
        "Error loading program 'jit_f': Attempting to reserve 13.50G at the bottom of memory. That was not possible."
        " There are 7.50G free, 0B reserved, and 7.50G reservable."
    ),
    "runtime": (
        "RESOURCE_EXHAUSTED: E0100: RuntimeBufferAllocationFailure: "
        "Error allocating device buffer: Attempting to allocate 100.00M. That was not possible. There are 30.50M free."
        "; (0x0x0_HBM0)"
    ),
    "runtime of 2026": (
        "RESOURCE_EXHAUSTED: "
        "Error allocating device buffer: Attempting to allocate 2.00G. There are 4.00G free. The largest contiguous"
        " region of free memory is 1.00G due to fragmentation."
        "; (0x1x0_HBM0)"
    ),
    "replica": (
        "RESOURCE_EXHAUSTED: "
        "Error loading program: Attempting to allocate 1.25G. That was not possible. There are 1.00G free."
        "; (0x0x0_HBM0): while running replica 0 and partition 0 of a replicated computation (other replicas may have"
        " failed as well)."
    ),
    "runtime in bytes": (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: "
        "Could not allocate 50331648 bytes in memory 0x1x0_HBM0; 16777216 bytes allocatable, 67108864 bytes available."
    ),
    "cache": (
        "(EngineCore pid=77) ERROR 07-11 10:00:01 [core.py:12] ValueError: "
        "To serve at least one request with the models's max seq len (65536), (8.00 GiB KV cache is needed, which is"
        " larger than the available KV cache memory (6.50 GiB)."
        " Based on the available memory, the estimated maximum model length is 53248. Try increasing"
        " `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    ),
    "cache, tokens alone": (
        "ValueError: "
        "The model's max seq len (65536) is larger than the maximum number of tokens that can be stored in KV cache"
        " (5328)."
        " Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."
    ),
}

COMPILE_ERRORS = {"hbm": HBM, "old hbm": OLD_HBM, "vmem": VMEM, "coded": CODED, "brief": BRIEF}


def read_alone(line: str) -> OomReport:
    """What is read of a line that stands alone, without reasons for what is unknown."""
    (report,) = scan_log(io.BytesIO(line.encode())).reports
    return replace(report, unknown={})


ALL: dict[str, tuple[str, OomReport]] = {
    **{name: (error.text(), error.report()) for name, error in COMPILE_ERRORS.items()},
    **{name: (text + "\n", read_alone(text)) for name, text in ONE_LINERS.items()},
}
"""Every form: text and what is to be read; what is read of one line stands in ``logs.txt`` too."""
