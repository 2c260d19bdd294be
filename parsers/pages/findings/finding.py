"""Findings, and the evidence that they rest on: sums by step, by op and by name, never single events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, get_args

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.formats.hlo.programs import HloModules
from tpuprof.parsers.ops.core.calls import CallRuns
from tpuprof.parsers.ops.core.times import CoreOpTimes
from tpuprof.parsers.ops.device import Peaks
from tpuprof.parsers.ops.host.activity import Compilation, IdleTime
from tpuprof.parsers.ops.roofline import Rates
from tpuprof.parsers.ops.table import OpTable
from tpuprof.parsers.pages.findings.figures import other_figures, without_figures
from tpuprof.parsers.pages.findings.subject import NOTHING, Subject
from tpuprof.parsers.steps.accounts.owners import OWNER_GROUPS, WAITS, Owner
from tpuprof.parsers.steps.aligned import AlignedSteps

FindingKind = Literal[
    "no-device",
    "memory-full",
    "uncounted",
    "input",
    "compilation",
    "host",
    "serving",
    "idle",
    "slow-core",
    "straggler",
    "barrier",
    "imbalance",
    "pipeline",
    "dcn",
    "sparse-core",
    "collective",
    "slow-step",
    "debug-print",
    "host-offload",
    "copy-wait",
    "copy",
    "shuffle",
    "precision",
    "padding",
    "kernel-wait",
    "slow-kernel",
    "recomputation",
    "tiny-loop",
    "latency-bound",
    "vector-work",
    "unfused",
    "memory-bound",
    "unexplained",
]

KINDS: tuple[FindingKind, ...] = get_args(FindingKind)
"""All kinds; of findings that are worth the same the one whose kind comes first here comes first."""

ADVICE: Mapping[FindingKind, str] = {
    "no-device": "Capture again while the device works: tpuprof-tui capture HOST:PORT --ms 2000 --device-tracer-level "
    "1; in JAX jax.profiler.ProfileOptions().device_tracer_level = 1.",
    "memory-full": "Little more fits: shard or offload state, or recompute activations, before you grow the batch.",
    "uncounted": "Give these kernels a cost estimate (pl.CostEstimate), and compare their time with it.",
    "input": "Prefetch more batches, read and decode on more workers, or move the work off the step's thread.",
    "compilation": "Keep shapes, dtypes and static arguments steady, and compile ahead of the loop.",
    "host": "Take that work off the thread that launches steps, do it every few steps, or do it asynchronously.",
    "serving": "Batch more requests per run, and launch the next run before the current one ends.",
    "idle": "Launch steps ahead of the device: the host should neither wait for results nor work between steps.",
    "slow-core": "Check that chip's clock, temperature and power; have it replaced if it stays slow.",
    "straggler": "Balance the cores' work: the shards, the batch, or work that only this core or host does.",
    "barrier": "Balance the work before the barrier, launch programs on all hosts at the same time, and use fewer, "
    "larger programs.",
    "imbalance": "Balance the tokens per expert: an auxiliary loss, a lower capacity factor, other routing.",
    "pipeline": "Use more micro-batches per step, or an interleaved schedule, and stages of equal length.",
    "dcn": "Send less between slices: reduce within a slice first, compress gradients, or overlap with the "
    "backward pass.",
    "sparse-core": "Start it earlier, or give it less to do. For a collective, raise the latency that the compiler "
    "assumes: "
    "--xla_tpu_sparse_core_all_gather_latency_multiplier above 1, or the same flag for all-reduce or "
    "reduce-scatter; this takes more memory.",
    "collective": "Overlap it with compute, shard along another axis, or send less (bfloat16) in fewer, larger "
    "transfers.",
    "slow-step": "On the timeline, look for what these steps do that the others do not.",
    "debug-print": "Take jax.debug.print and debugging callbacks out of the step, or print only every hundredth "
    "step (jax.lax.cond).",
    "host-offload": "Offload less, or fetch earlier, so that the transfer runs beside the computation.",
    "copy-wait": "Start the copy earlier: give prefetching more VMEM, or give the copy more work to hide behind.",
    "copy": "Give producer and consumer the same layout, donate buffers, and avoid transposes between them.",
    "shuffle": "Index instead of concatenating, padding and slicing, keep one layout from op to op, and choose sizes "
    "that are multiples of 128.",
    "precision": "Use bfloat16 operands, or the default precision, if the model's accuracy allows it.",
    "padding": "Choose sizes that are multiples of the matrix unit's width, or fold small dimensions together.",
    "kernel-wait": "Give the block that it waits for a second buffer (pl.Buffered(2)), or use larger blocks, which are "
    "copied less often; the page kernels shows blocks and buffers.",
    "slow-kernel": "Tune its block sizes and its pipelining, or let the compiler do the work.",
    "recomputation": "Save more activations (another checkpoint policy) as far as memory allows.",
    "tiny-loop": "Process many elements per trip: vectorise the loop, unroll it, or use an associative scan.",
    "latency-bound": "Make the slices larger: sort or block the indices, or use a one-hot product for small tables.",
    "vector-work": "Write it as a dot product, so that it runs on the matrix unit.",
    "unfused": "Let the compiler fuse them: one jit, no barrier between them, and the same layout.",
    "memory-bound": "Move fewer bytes: fuse, use bfloat16, recompute what is cheap.",
    "unexplained": "In the op profile, check the shapes and layouts of these ops, and what is fused in them.",
}
"""What to try, by kind."""

KIND_OWNERS: Mapping[str, tuple[Owner, ...]] = {
    "input": ("input",),
    "compilation": ("compile",),
    "host": OWNER_GROUPS["host"],
    "serving": OWNER_GROUPS["host"],
    "idle": (*OWNER_GROUPS["host"], "between_ops"),
    "slow-core": WAITS,
    "straggler": WAITS,
    "imbalance": WAITS,
    "barrier": ("barrier",),
    "dcn": ("collective_transfer",),
    "collective": ("collective_wait", "collective_transfer"),
    "debug-print": ("host_transfer",),
    "host-offload": ("host_transfer",),
    "copy-wait": ("copy",),
    "copy": ("copy",),
}
"""Whose time findings of some kinds are about, and of nothing else; the others are about parts of an owner's time."""

UNSEEN: frozenset[FindingKind] = frozenset(("debug-print", "sparse-core"))
"""Kinds that were found in composed profiles alone: no profile of hardware that has them was at hand."""

NEVER_SEEN = "Untested on hardware: such ops are recognised as XProf's source does."

Tab = Literal["input", "op-profile", "timeline", "memory"]


@dataclass(frozen=True, slots=True)
class JumpTarget:
    """Where to look.

    Attributes:
        tab: which tab.
        target: the HLO op or step to jump to there by name; None for the tab itself.
        view: the view of that tab, by the name of its page; empty for the first view that has the target.
    """

    tab: Tab
    target: str | None = None
    view: Literal["", "kernels"] = ""


@dataclass(frozen=True, slots=True)
class OwnerClaim:
    """Time of an owner in the account that a finding is about: a mean over cores, and steps where there are any."""

    owner: Owner
    time_ps: float


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason why the program is slow, or one thing to know before looking for reasons.

    Times are means over cores. No two findings count the same time, unless the `basis` says so.

    Attributes:
        kind: the kind of reason.
        title: a few words, without a full stop.
        worth_ps: time that it costs the program, as mean per complete step or, without steps, in the whole capture. The
            most that can be won. Above 0; None where it is unknown what can be won.
        per: whether `worth_ps` is of a step or of the capture.
        worth_fraction: the same as a fraction (0-1] of step time, or of the capture; None where that is.
        after_ps: the time that a step (or the capture) would take without it; None where `worth_ps` is.
        is_estimate: whether a model or rule of thumb gives `worth_ps`; otherwise it is measured.
        basis: a sentence on how `worth_ps` was computed, or on why it is unknown.
        evidence: sentences with figures.
        advice: a sentence on what to try.
        place: where to look.
        claims: whose time in the account it is about, in the order of `OWNERS`; they add up to `worth_ps`, and no two
            findings claim the same time. Empty where `worth_ps` is None.
        subject: what it is about as data: ops, hosts, cores, the worst step, figures.
    """

    kind: FindingKind
    title: str
    worth_ps: float | None
    per: Literal["step", "capture"]
    worth_fraction: float | None
    after_ps: float | None
    is_estimate: bool
    basis: str
    evidence: tuple[str, ...]
    advice: str
    place: JumpTarget
    claims: tuple[OwnerClaim, ...] = ()
    subject: Subject = NOTHING


def names_of(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What the findings of a run are called: by their kind, with a number behind it where several are of one kind."""
    of_kind, seen, names = Counter(finding.kind for finding in findings), Counter[str](), []
    for finding in findings:
        seen[finding.kind] += 1
        names.append(finding.kind if of_kind[finding.kind] == 1 else f"{finding.kind}-{seen[finding.kind]}")
    return tuple(names)


def told(finding: Finding) -> Finding:
    """A finding whose sentences are for people alone: each figure in them is among those of its subject."""
    title, advice = (without_figures(text)[0] for text in (finding.title, finding.advice))
    basis, of_basis = without_figures(finding.basis)
    evidence = [without_figures(sentence) for sentence in finding.evidence]
    figures = dict.fromkeys((*(figure for _, found in evidence for figure in found), *of_basis))
    words = tuple(sentence for sentence, _ in evidence)
    exact = (*figures, *finding.subject.figures)
    subject = replace(finding.subject, figures=(*exact, *other_figures(words, (title, basis), exact)))
    return replace(finding, title=title, basis=basis, evidence=words, advice=advice, subject=subject)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What findings rest on.

    Attributes:
        grid: the steps that all cores share; None without steps.
        table: time by op over all cores and the whole capture.
        rates: rates of the table's rows.
        peaks: the peaks of one core.
        device_type: such as ``TPU v5p``; None where unknown.
        total_ps: the cores' whole time, idle time included, summed over cores.
        core_count: how many cores `total_ps` and `table` cover.
        gaps: what happened in the gaps of the core that is idle most; None where unknown.
        host_gaps: the same for each host, of the core of that host that is idle most.
        runs: starts and durations, int64[n] each, of the runs of each module on the first host with steps, by name.
        barriers: how long each core waited for others at barriers, by name; empty where no core records it.
        offloaders: names of the ops that began work on a SparseCore.
        compilations: what the host compiled during the capture.
        modules: compiled programs, for the shapes of matrix products; only those of large ops are parsed.
        core_ops: time of the largest ops by core; None where it is unknown.
        memory: bytes of HBM that the fullest allocator had in use at most, and its capacity; None where unknown.
        calls: kernels of which the profile has the spans inside, over all hosts.
        serves: for a program that does not train, the modules that it runs: name, runs, and the median time of one.
        no_device: why there are no device events; empty where there are.
    """

    grid: AlignedSteps | None
    table: OpTable
    rates: Rates
    peaks: Peaks
    device_type: str | None
    total_ps: int
    core_count: int
    gaps: IdleTime | None = None
    host_gaps: Mapping[str, IdleTime] = field(default_factory=dict)
    runs: Mapping[str, tuple[Int64s, Int64s]] = field(default_factory=dict)
    barriers: Mapping[str, int] = field(default_factory=dict)
    offloaders: frozenset[str] = frozenset()
    compilations: tuple[Compilation, ...] = ()
    modules: Sequence[HloModules] = ()
    core_ops: CoreOpTimes | None = None
    memory: tuple[int, int] | None = None
    calls: Sequence[CallRuns] = ()
    serves: tuple[tuple[str, int, float], ...] = ()
    no_device: str = ""
