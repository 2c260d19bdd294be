"""The quantities of the overview."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from tpuprof.parsers.base.text import counted
from tpuprof.parsers.base.words import NO_CATEGORY
from tpuprof.parsers.pages.overview.ledger import OwnerTime
from tpuprof.parsers.pages.overview.model import Environment, Overview, Share, Step, StepPart, TopOp
from tpuprof.parsers.steps.accounts.owners import OWNER_TITLES, OWNER_WORDS
from tpuprof.parsers.steps.model import GenericBreakdown
from tpuprof.tui.draw.format import UNKNOWN, duration, flop_rate, percent, utc
from tpuprof.tui.report.fields import NO_REASON, Metric, Table, attribute, in_order, listed, nested, object_table
from tpuprof.tui.report.shared import quantities
from tpuprof.tui.report.shared.quantities import BOTTLENECK, LATENCIES, RANK, STEP_TIME, latency_metrics
from tpuprof.tui.report.units import COUNT, FLAG, PERCENT, SHARE, TEXTS, TIME_MS, TIME_PS, VERBATIM, Unit, plain

if TYPE_CHECKING:
    from tpuprof.parsers.pages.findings.finding import Finding, OwnerClaim
    from tpuprof.parsers.pages.shared.groups import CoreGroup
    from tpuprof.parsers.pages.shared.latencies import InferencePage
    from tpuprof.tui.report.describe import Section

# --- what it ran on, and its figures

TIME_OF_DAY = Unit(
    "ISO 8601, UTC",
    lambda values: [None if ns is None else utc(ns / 1e9) for ns in values],
    lambda ns, _: UNKNOWN if ns is None else utc(ns / 1e9) or UNKNOWN,
    is_text=True,
)

_DURATION = "from start to stop as the profiler noted them, else from the first event to the end of the last"
_SILENCE = "the longest time in which a core or GPU ran nothing; cores and GPUs without any op do not count"
_BETWEEN_OPS = (
    "busy share of cores or GPUs that ran something, from the first op of all to the last, not of the capture"
)
_START, _STARTED = "when the first host's profiler began", "environment.profile_start_ns"
_TRAINING = "whether the framework name of an op comes from a gradient"
ENVIRONMENT = (
    attribute("environment.host_count", COUNT, "hosts with a readable profile"),
    attribute("environment.task_count", COUNT, "hosts with a device, at least 1"),
    attribute("environment.device_type", VERBATIM, "as the profile names it", null=NO_REASON, short="device type"),
    attribute("environment.device_core_count", COUNT, "TensorCores, or GPUs, of all hosts"),
    attribute("environment.is_training", FLAG, _TRAINING, null=NO_REASON, short="training"),
    attribute(
        "environment.profile_start_time",
        TIME_OF_DAY,
        _START,
        null=NO_REASON,
        short="start of the capture",
        name=_STARTED,
    ),
    attribute("environment.profile_duration_ms", TIME_MS, _DURATION, null=NO_REASON, short="capture length"),
    *(
        attribute(f"environment.{key}", unit, meaning, null=NO_REASON, short=short, name=f"environment.{name}")
        for key, unit, name, short, meaning in (
            ("first_op_ms", TIME_MS, "first_op_ps", "first op", "when the first op of all cores or GPUs starts"),
            ("last_op_ms", TIME_MS, "last_op_ps", "end of the last op", "when the last op of all cores or GPUs ends"),
            ("longest_silence_ms", TIME_MS, "silence_ps", "longest silence", _SILENCE),
            ("busy_between_percent", PERCENT, "busy_between_percent", "busy from first to last op", _BETWEEN_OPS),
        )
    ),
    attribute("environment.simulated", FLAG, "whether the profile says that its times are simulated, not measured"),
)


def _percent(key: str, short: str, meaning: str, heading: str = "", name: str = "") -> Metric[Overview]:
    key, name = f"performance.{key}", f"performance.{name or key}"
    return attribute(key, PERCENT, meaning, heading or short, null=NO_REASON, short=short, name=name)


_DUTY = "share of the capture in which a chip runs ops other than waits and infeed; copies of host memory count"
_IDLE = "share of the capture, not of the steps, in which a core ran no op; GPUs that ran nothing do not count"
_XPROF = "XProf's {}, over the time from {} first op or step to its last, not over the capture"
_FLOPS = (
    "FLOPs of all ops by the compiler's count, first op to last, over the device's peak at its nominal clock. Includes "
    "extra passes of higher precision and recomputation; MFU (page model) does not"
)
_BYTES = "bytes that ops move to and from HBM by the compiler's count, first op to last, over the device's peak"
_LARGER = "utilization of the resource nearest to its peak, FLOPS or a memory: how close the program is to its roof"
_OF_HBM = "memory bandwidth utilization, of peak"
ACTIVITY = (
    _percent("device_duty_cycle_percent", "duty cycle", _DUTY, "device duty cycle"),
    _percent("device_idle_percent", "device idle", _IDLE),
    _percent("xprof_duty_cycle_percent", "XProf's duty cycle", _XPROF.format("duty cycle", "a chip's")),
    _percent(
        "xprof_idle_percent", "XProf's device idle", _XPROF.format("time in which a core ran no op", "each core's")
    ),
    _percent("host_idle_percent", "host idle", "time of the host's threads in which they ran no framework op"),
)
COUNTERS = (
    _percent("mxu_utilization_percent", "MXU counter", "matrix unit use, counted", "MXU utilization, counter"),
    _percent("hbm_utilization_percent", "HBM counter", "HBM bandwidth use, counted", "HBM utilization, counter"),
)
FLOPS = _percent("flops_utilization_percent", "FLOPS utilization", _FLOPS, "FLOPS utilization, of peak")
ROOFLINE = _percent("roofline_efficiency_percent", "roofline efficiency", _LARGER)
BANDWIDTH = _percent("memory_bandwidth_utilization_percent", "HBM bandwidth", _BYTES, _OF_HBM)
_SPLIT = (
    (
        ("host", "device"),
        *("op_placement.{}_percent", "ops on {}", "occurrences of framework ops that are on the {}"),
        *("ops on the {}", "{}_op_percent"),
    ),
    (
        ("host", "device"),
        *("eager_percent.{}", "eager time on {}", "self time of ops on the {} that are marked as run eagerly"),
        *("run eagerly, of {} op time", "eager_{}_percent"),
    ),
    (
        ("16", "32"),
        *("compute_precision.bits{}_percent", "{}-bit compute", "time of matrix ops with operands of {} bits"),
        *("{}-bit operands, of matrix op time", "bits{}_percent"),
    ),
)
SPLIT = tuple(_percent(*(words.format(part) for words in texts)) for parts, *texts in _SPLIT for part in parts)
MARKDOWN = (*ACTIVITY, FLOPS, BANDWIDTH, ROOFLINE, *COUNTERS, *SPLIT, *BOTTLENECK)  # figures in the order of Markdown

# --- device time, steps, findings

SHARES: Table[Sequence[Share]] = object_table(
    "shares",
    (
        attribute("class", VERBATIM, "what the cores do", "class", name="op_class"),
        attribute("time_ps", TIME_PS, "self time, over all cores", "time over all cores"),
        attribute("fraction", SHARE, "of the cores' whole time, 0-1", "share"),
    ),
    markdown=("class", "fraction", "time_ps"),
)


def _part(key: str, meaning: str, null: str = "") -> Metric[Any]:
    return attribute(key, TIME_MS, meaning, name=f"{key}_ps", null=null)


_NO_IDS = "no event has an all_reduce_unique_id: which all-reduces of the cores belong together is unknown"


BREAKDOWN = (
    _part("compute", "XProf's: ops of any kind, on the least busy core"),
    _part("active", "an op ran, mean over the cores"),
    _part("infeed", "XProf's: waiting for input, on the core that waits most"),
    _part("outfeed", "XProf's: handing over output, mean over the cores"),
    _part("idle", "XProf's: the rest of the step; host transfers are part of it"),
    _part("host_transfer", "XProf's: sends to the host and receives from it, on the core that takes longest"),
    _part("all_reduce_compute", "all-reduce, on the core that needs the least time for it", _NO_IDS),
    _part("all_reduce_sync", "all-reduce, waiting for the other cores", _NO_IDS),
    _part("sparse_core", "waiting for a SparseCore"),
)
GENERIC_BREAKDOWN = (
    _part("device_compute", "on GPUs: kernels"),
    _part("device_compute_16bit", "on GPUs: kernels with 16 bits, by the types of their tensors or their names"),
    _part("device_to_device", "on GPUs: copies on and between devices"),
    _part("device_collectives", "on GPUs: collectives"),
    _part("input", "on GPUs: copying to them; without a TPU also: waiting for input while no GPU or op ran"),
    _part("output", "on GPUs: copies to the host"),
    _part("host_ops", "without a TPU or GPU: ops that XLA ran on the host's CPU"),
    _part("host_compute", "without a TPU: what else the host did in the step while no GPU or op ran"),
    _part("kernel_launch", "on GPUs: the host launched kernels while no GPU did anything"),
    _part("compile", "without a TPU: the host compiled while no GPU or op ran"),
    _part("all_other", "without a TPU: none of these"),
)
SPARSE_CORE = (
    _part("step", "mean time over the SparseCores"),
    _part("compute", "least compute time of one"),
    _part("idle", "mean idle time"),
)
_PARTS = nested(BREAKDOWN, (GenericBreakdown, GENERIC_BREAKDOWN))
_NOT_MARKED = "these steps are not marked in the profile, so their time cannot be broken down"
STEP_PARTS: Table[Sequence[StepPart]] = object_table(
    "step_parts",
    (
        attribute("part", VERBATIM, "as in the steps' breakdown", name="name"),
        attribute("average_ms", TIME_MS, "mean over the steps that are broken down"),
        attribute("standard_deviation_ms", TIME_MS, "of the sample; 0 for one step"),
        attribute("fraction", SHARE, "of the mean step, 0-1; parts may overlap"),
    ),
)
_BESIDE, _NO_SPARSE_CORES = "what the SparseCores do", "the profile has no SparseCores with steps"
STEPS: Table[Sequence[Step]] = object_table(
    "steps",
    (
        attribute("name", VERBATIM, "of the step's marker"),
        attribute("group_id", COUNT, "the step's number in the capture"),
        attribute("start_ps", TIME_PS, "when it begins in the profile"),
        attribute("duration_ms", TIME_MS, "of its slowest core"),
        attribute("breakdown_ms", _PARTS, "where its time went", null=_NOT_MARKED),
        attribute("sparse_core_ms", nested(SPARSE_CORE), _BESIDE, null=_NO_SPARSE_CORES),
    ),
)


def worth(finding: Finding, ascii_only: bool) -> str:
    """What a finding is worth; ``~`` marks an estimate."""
    if finding.worth_ps is None:
        return ""
    return ("~" if finding.is_estimate else "") + duration(finding.told_ps(finding.worth_ps), ascii_only)


def share(finding: Finding) -> str:
    """The same of the step or the capture; nothing where it is unknown."""
    return "" if finding.worth_fraction is None else percent(100 * finding.worth_fraction)


def findings_heading(page: Overview, ascii_only: bool) -> str:
    """What the figures are of: a step, the time from one to the next, or the capture where there are no steps."""
    if any(finding.per != "step" for finding in page.findings):
        return "saves in the capture"
    units = {finding.unit.name if finding.unit is not None else "step" for finding in page.findings if finding.worth_ps}
    if units - {"step"}:
        return f"saves per {units.pop()}" if len(units) == 1 else "saves per run of its program, or step"
    if page.account is None or not page.account.steps_lie_apart:
        return "saves per step"
    return f"saves of {duration(page.account.period_ps, ascii_only)} from step to step"


_NO_ROLE, _NO_STEPS = "the name of its program does not say it", "its cores share no step"
GROUPS: Table[Sequence[CoreGroup]] = object_table(
    "groups",
    (
        attribute("number", COUNT, "as --group takes it", "group"),
        attribute("cores", TEXTS, "its cores", name="core_names"),
        attribute("programs", TEXTS, "what they run, most time first"),
        attribute("role", VERBATIM, "trainer, rollout, prefill, decode or evaluation", null=_NO_ROLE),
        attribute("step_time_ms", TIME_MS, "median step", null=_NO_STEPS, name="step_ps"),
        attribute("run_ms", TIME_MS, "median run of its first program", name="run_ps"),
        attribute("run_count", COUNT, "runs of that program, over its cores"),
        attribute("busy_percent", PERCENT, "time of its cores in which an op ran", null=NO_REASON),
    ),
)

CLAIMS: Table[Sequence[OwnerClaim]] = object_table(
    "claims",
    (
        attribute("owner", VERBATIM, "whose time it is: an owner of the ledger"),
        attribute("time_ms", TIME_MS, "mean over cores, and over steps where there are any"),
    ),
)

_CLAIMED = (
    "the time of the ledger's owners that it is about, which adds up to worth_ms; no two findings claim the same time"
)
_NO_WORTH = "the saving is unknown; the finding says where the time is"
_NO_TARGET = "the finding is about the tab as a whole"
FINDING: tuple[Metric[Finding], ...] = (
    attribute("kind", VERBATIM, "what it is about", "kind"),
    attribute("title", VERBATIM, "what it is, in a few words", "finding"),
    attribute("worth_ms", TIME_MS, "the most time that can be saved", "worth", null=_NO_WORTH),
    attribute("per", VERBATIM, "whether that is of a step or of the whole capture"),
    attribute("worth_fraction", SHARE, "of the step or capture, 0-1", "share", null=_NO_WORTH),
    attribute("after_ms", TIME_MS, "the step's time without it, or the capture's", "then", null=_NO_WORTH),
    attribute("is_estimate", FLAG, "whether that is computed from a model, not measured"),
    attribute("basis", VERBATIM, "how that was computed"),
    attribute("evidence", TEXTS, "sentences with figures"),
    attribute("advice", VERBATIM, "what to try"),
    attribute("tab", VERBATIM, "where to look", "where", name="place.tab"),
    attribute("target", VERBATIM, "the op or step there", null=_NO_TARGET, name="place.target"),
    attribute("claims", listed(CLAIMS), _CLAIMED),
)
"""The quantities of a finding."""

FINDINGS: Table[Sequence[Finding]] = object_table(
    "findings",
    FINDING,
    csv=in_order("kind title worth_ms per worth_fraction after_ms is_estimate basis evidence advice tab target"),
    markdown=("kind", "title", "worth_ms", "worth_fraction", "after_ms", "tab"),
)

# --- the top ops

OP_RATE = Unit("GFLOP/s", plain, lambda value, _: flop_rate(value))
_NO_FLOPS = "the profile has no FLOPs for these ops"
_KIND = "the HLO category, else the type of the framework op"
TOP_OP = (
    attribute("name", VERBATIM, "of the framework op, else of the HLO op", "op"),
    attribute("category", VERBATIM, "type of the framework op, Unknown without one"),
    attribute("class", VERBATIM, "what the core does", "class", name="op_class"),
    attribute("hlo_category", VERBATIM, "which takes most of its time", null=NO_CATEGORY),
    attribute("self_time_percent", PERCENT, "of the self time of all ops, without idle time", "self"),
    attribute("cumulative_percent", PERCENT, "the same with all ops before it", "cumulative"),
    attribute("self_time_ps", TIME_PS, "over all cores", "self time"),
    attribute("occurrences", COUNT, "how often it ran, over all cores", "count"),
    attribute("gflops_per_second", OP_RATE, "FLOPs over the total time", "FLOP/s", null=_NO_FLOPS),
    attribute("clones", COUNT, "ops that the row adds up and that differ only by numbers; 1: the op alone"),
)
TOP_OPS: Table[Sequence[TopOp]] = object_table(
    "top_ops",
    TOP_OP,
    (RANK, Metric("kind", VERBATIM, lambda op: op.hlo_category or op.category, _KIND, heading="category")),
    csv=("rank", *(figure.key for figure in TOP_OP)),
    markdown=("rank", "name", "kind", *(figure.key for figure in TOP_OP if figure.heading and figure.key != "name")),
)

# --- the whole

INFERENCE = (
    attribute("source", VERBATIM, "what a session is: requests, or module runs"),
    attribute("subject", VERBATIM, "the request events' name, or the module's"),
    attribute("sessions", COUNT, "how many there are"),
    attribute("percentiles", listed(LATENCIES), "latencies"),
)


def _latencies_of(page: Overview) -> InferencePage | None:
    return page.inference if page.infers and page.inference is not None and page.inference.source is not None else None


_NO_SESSIONS = "a training program, or one without requests and runs of modules"
OF_STEPS = attribute("performance.step_time_ms", STEP_TIME, "times of the steps", null=NO_REASON, short="step time")
BEFORE_OPS: tuple[Metric[Overview], ...] = (
    *ENVIRONMENT,
    OF_STEPS,
    *(*ACTIVITY, *COUNTERS, FLOPS, ROOFLINE, BANDWIDTH, *SPLIT),
    attribute("groups", listed(GROUPS), "cores that depend on each other, where these are several groups"),
    attribute("shares", listed(SHARES), "the cores' time by class of op, idle time included"),
    attribute("steps", listed(STEPS), "in order of time"),
    attribute("step_parts", listed(STEP_PARTS), "where the time of the mean step goes"),
    attribute("findings", listed(FINDINGS), "why it is slow; what saves most comes first"),
)
OP_COUNTS = (
    attribute("op_count", COUNT, "distinct HLO ops, without those of SparseCores"),
    attribute("op_event_count", COUNT, "how often they ran, over all cores"),
)
AFTER_OPS: tuple[Metric[Overview], ...] = (
    *BOTTLENECK,
    Metric("inference", nested(INFERENCE), _latencies_of, "latencies of a program that serves", _NO_SESSIONS),
    *OP_COUNTS,
)
"""Figures that stand before the top ops in JSON, and after them."""
METRICS = (*BEFORE_OPS, *AFTER_OPS)

# --- all figures, for the screen

_PARTS_BY_KEY = {part.key: part for part in (*BREAKDOWN, *GENERIC_BREAKDOWN)}


def _part_of_mean(part: StepPart) -> Metric[Overview]:
    """The mean of a part of the steps, with its deviation and share in what it means."""
    known = _PARTS_BY_KEY.get(part.name)
    spread = f"deviation {duration(part.standard_deviation_ps)}, {percent(100 * part.fraction)} of the mean step"
    meaning = f"{known.meaning}; {spread}" if known is not None else spread
    return Metric(part.name, TIME_MS, lambda _: part.average_ps, meaning)


def _part_of_step(of: OwnerTime) -> Metric[Overview]:
    """An owner's part of the mean step, with its share and definition in what it means."""
    return Metric(
        OWNER_TITLES[of.owner],
        TIME_MS,
        lambda _: of.time_ps,
        f"{percent(100 * of.fraction)} of the mean step: {OWNER_WORDS[of.owner]}",
    )


def sections(page: Overview) -> list[Section]:
    """All figures of the page by what they are about."""
    time, inference = page.performance.step_time, _latencies_of(page)
    times = (
        [(figure, time) for figure in (*quantities.STEP_TIMES, quantities.STEP_COUNT)]
        if time is not None
        else [(OF_STEPS, page)]
    )
    owners = () if page.account is None else sorted(page.account.owners, key=lambda of: -of.time_ps)
    latency: list[tuple[Metric[Any], Any]] = []
    if inference is not None:
        latency = [(figure, inference) for figure in INFERENCE if not figure.unit.parts]
        latency += [(figure, inference.average) for figure in latency_metrics() if inference.average is not None]

    def of_page(metrics: Iterable[Metric[Overview]]) -> list[tuple[Metric[Any], Any]]:
        return [(figure, page) for figure in metrics]

    return [
        ("Step time", times),
        *([("Where a step goes", of_page(map(_part_of_step, owners)))] if owners else []),
        *(
            [("Mean step by XProf, whose parts overlap", of_page(map(_part_of_mean, page.step_parts)))]
            if page.step_parts
            else []
        ),
        ("Device and host", of_page((*ACTIVITY, FLOPS, BANDWIDTH, ROOFLINE, *COUNTERS))),
        ("Framework ops, and matrix ops by the width of their operands", of_page(SPLIT)),
        ("Bottleneck", of_page(BOTTLENECK[:4])),
        *([("Latency, mean session", latency)] if latency else []),
        ("Program and capture", of_page((*ENVIRONMENT, *OP_COUNTS))),
    ]


def machine(environment: Environment, ascii_only: bool = False) -> str:
    """The machine and the capture in one phrase: how long was captured, or its events last where nobody noted that."""
    cores, kind = environment.device_core_count, environment.device_type
    parts = [kind or ("device unknown" if cores else "no device")]
    if cores:
        parts.append(counted(cores, "GPU" if "GPU" in (kind or "") else "core"))
    parts.append(counted(environment.host_count, "host"))
    if environment.is_training is not None:
        parts.append("training" if environment.is_training else "inference")
    if environment.profile_duration_ps is not None:
        noted = "captured" if environment.profile_start_ns is not None else "of events"
        parts.append(f"{duration(environment.profile_duration_ps, ascii_only)} {noted}")
    return ", ".join(parts)
