"""What several pages show of a profile, and where; and where a page shows something else under a like name."""

from __future__ import annotations

from tests.tui.report.consistency.documents import At, How, keys_of
from tpuprof.parsers.base.record import dataclass


@dataclass(frozen=True)
class Apart:
    """A quantity that is like another one, and is not the same.

    Attributes:
        at: where it is shown.
        words: of what `--describe` says of it, which the other's description has not.
        why: how the two differ.
        on: the profiles on which they may differ; empty for any.
    """

    at: At
    words: str
    why: str
    on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Quantity:
    """One quantity.

    Attributes:
        places: where it is shown; all must agree, on each profile on which they know it.
        apart: what is like it.
        within: milliseconds, or percent, by which the places may differ because of `why`; 0 for rounding alone.
    """

    name: str
    places: tuple[At, ...]
    apart: tuple[Apart, ...] = ()
    within: float = 0.0
    why: str = ""


OP_PAGES = ("ops", "op-profile", "sources", "framework-ops", "kernels", "roofline")
IDLE = ("host", "dispatch", "compile", "between_ops")
WAITS = ("collective_wait", "barrier")
COMPUTE = ("ideal", "loss", "uncounted", "copy")

OWN_STEPS = "A host, or a core, is shown with its own steps; those of the run end with the slowest core of all hosts."
WHOLE_HOSTS = "Hosts whose file is cut off are not compared with the others, so that steps are those of whole hosts."
ALL_GPUS = "The GPUs of a host, and its CPU, run one stream of steps together, which is a single row."
XPROF_INPUT = "XProf takes the core that waits most in each step; the account has the mean over the cores."
OF_VERDICT = "The verdict has the time up to the next step too, and what others wait for the core that waits for input."
OUTSIDE = "Where all collectives run outside of the steps, and on GPUs, the page takes the whole time for a step."
BEYOND = 0.01
BEYOND_WHY = (
    "What a step's last ops have beyond its end is the next step's in the account, which cuts all owners alike."
)
CUT_OFF = ("several-hosts",)
UNEQUAL = "Hosts are captured for times that differ."
GROUPS = ("replicas", "trainer-and-rollout")
OF_GROUP = "A series follows the group of cores whose steps the overview shows; its idle time is that of all cores."
HALVES = "The account compares the start and the done of an asynchronous collective over cores, the page both together."


def each(pages: tuple[str, ...], key: str, how: How = "each") -> tuple[At, ...]:
    """One key of several pages."""
    return tuple(At(page, key, how=how) for page in pages)


def owners(key: str, *names: str) -> At:
    """The time of some owners, or their share."""
    return At("ledger", f"owners[].{key}", f"owner={'|'.join(names)}", "sum")


def step_time(name: str, *more: At, apart: tuple[Apart, ...] = ()) -> Quantity:
    """One figure of the summary over the steps."""
    rows = [At(page, f"{page}[].step_time_ms.{name}", how="mean") for page in ("hosts", "cores")]
    own = [Apart(at, "of its own steps", OWN_STEPS) for at in rows if name != "count"]
    places = (
        *each(("overview",), f"performance.step_time_ms.{name}"),
        *each(("findings",), f"step_time_ms.{name}"),
        *each(("input",), f"device.step_time_ms.{name}"),
    )
    return Quantity(f"the steps' {name}", (*places, *more, *(rows if name == "count" else ())), (*own, *apart))


def part(name: str, *names: str) -> Quantity:
    """A part of the mean step, which hosts and cores show by its name and the ledger by its owners."""
    hosts, cores = (At(page, f"{page}[].breakdown_ms.{name}", how="mean") for page in ("hosts", "cores"))
    own = Apart(cores, "of its own steps where", WHOLE_HOSTS, CUT_OFF)
    waits = name in ("collective", "wait")  # for cores that the whole hosts have not
    places = (owners("time_ms", *names), hosts, *(() if waits else (cores,)))
    return Quantity(f"{name} of the mean step", places, (own,) if waits else ())


MEAN_STEP = At("ledger", "step_time_ms")
STEP_TIMES = (
    step_time(
        "average",
        MEAN_STEP,
        *(At("ledger", f"{table}[].time_ms", how="mean") for table in ("hosts", "cores", "steps")),
        At("ledger", "owners[].time_ms", how="sum"),
        At("trend", "runs[].mean_step_time_ms", how="first"),
        At("model", "step_time_ms"),
        apart=(
            Apart(At("collectives", "step_time_ms"), "outside of the steps", OUTSIDE, ("v6e",)),
            Apart(At("ledger", "period_ms"), "up to the next step", "A step begins that often; time lies between."),
        ),
    ),
    step_time(
        "median",
        At("model", "step_median_ms"),
        apart=(Apart(At("runs", "runs[].core_step_ps", how="first"), "on one core", "A list of runs reads one core."),),
    ),
    step_time("standard_deviation", At("model", "step_deviation_ms")),
    *(step_time(name, At("model", f"step_{name}_ms")) for name in ("minimum", "maximum")),
    step_time(
        "count",
        *each(("collectives", "model"), "step_count"),
        At("overview", "steps[].name", how="count"),
        At("trend", "runs[].step_count", how="first"),
        apart=(
            Apart(At("runs", "runs[].step_count", how="first"), "each marker", "A list reads no host's events."),
            *(
                Apart(
                    At(page, "steps[].name", how="count"), "", "Without ops nobody knows where steps go.", ("requests",)
                )
                for page in ("ledger", "input")
            ),
        ),
    ),
    Quantity(
        "exposed collectives of the mean step",
        (
            At("trend", "runs[].exposed_collective_ms", how="first"),
            owners("time_ms", "collective_wait", "collective_transfer"),
        ),
    ),
    Quantity(
        "the part of a step at the roof", (At("trend", "runs[].roof_percent", how="first"), owners("percent", "ideal"))
    ),
    Quantity(
        "idle time, in the trend",
        (At("overview", "performance.device_idle_percent"),),
        (Apart(At("trend", "runs[].device_idle_percent", how="first"), "of the group", OF_GROUP, GROUPS),),
    ),
    Quantity(
        "the time of each step",
        (*each(("overview", "input"), "steps[].duration_ms"), At("ledger", "steps[].time_ms")),
        (
            Apart(At("hosts", "steps[].duration_ms"), "of all hosts compared", WHOLE_HOSTS, CUT_OFF),
            Apart(At("collectives", "steps[].step_time_ms"), "outside of the steps", OUTSIDE, ("v6e", "gpus")),
        ),
    ),
)
"""How long steps take, and how many there are."""

PARTS = (
    part("input", "input"),
    part("idle", *IDLE),
    part("wait", *WAITS),
    part("collective", "collective_transfer"),
    part("compute", *COMPUTE),
    Quantity(
        "transfers to and from the host",
        (
            owners("time_ms", "host_transfer"),
            *(
                At(page, f"{page}[].breakdown_ms.transfer + {page}[].breakdown_ms.output", how="mean")
                for page in ("hosts", "cores")
            ),
        ),
        (
            Apart(
                At("overview", "steps[].breakdown_ms.host_transfer", how="mean"),
                "XProf's: sends to the host",
                "XProf leaves out copies of host memory, and takes the core that takes longest.",
            ),
        ),
    ),
    Quantity(
        "the mean step, computing",
        (owners("time_ms", *COMPUTE),),
        (
            Apart(
                At("overview", "steps[].breakdown_ms.compute", how="mean"),
                "least busy core",
                "XProf counts every op but infeed, outfeed and transfers, collectives too, on the least busy core.",
            ),
        ),
    ),
    Quantity(
        "waiting for input, of the step",
        (owners("percent", "input"), *(At(page, f"{page}[].input_percent", how="mean") for page in ("hosts", "cores"))),
        (
            Apart(At("overview", "bottleneck.input_percent"), "as a share of a step (or of step to step", OF_VERDICT),
            Apart(
                At("input", "device.infeed_percent.average"),
                "mean of the steps' shares",
                "XProf takes the mean of shares, in which a long step that waits counts as much as a short one.",
            ),
        ),
    ),
    Quantity("the verdict's share of waiting for input", each(("overview", "input"), "bottleneck.input_percent")),
    Quantity("the verdict's share of output", each(("overview", "input"), "bottleneck.output_percent")),
    Quantity("the verdict's share of idle time", each(("overview", "input"), "bottleneck.idle_percent")),
    Quantity(
        "each step's waiting for input",
        (At("ledger", "steps[].input_ms"),),
        (Apart(At("input", "steps[].wait_ms"), "the core that waits most", XPROF_INPUT),),
    ),
    Quantity(
        "each step's waiting for input on the core that waits most",
        (At("overview", "steps[].breakdown_ms.infeed"), At("input", "steps[].wait_ms")),
    ),
    Quantity(
        "idle, of the step",
        (owners("percent", *IDLE), At("cores", "cores[].step_idle_percent", how="mean")),
        (
            Apart(At("overview", "bottleneck.idle_percent"), "as a share of a step (or of step to step", OF_VERDICT),
            Apart(
                At("overview", "performance.device_idle_percent"),
                "of the capture",
                "The capture reaches beyond its steps, and whatever keeps a core from running ops is idle time there.",
            ),
        ),
    ),
    Quantity(
        "collectives, of the step",
        (owners("percent", "collective_wait", "collective_transfer"),),
        (
            Apart(At("collectives", "exposed_percent"), "those between slices", OUTSIDE, ("v6e", "gpus")),
            Apart(
                At("hosts", "hosts[].collective_percent", how="mean"),
                "for other cores elsewhere",
                "Hosts and cores have the waiting at barriers beside that in collectives.",
            ),
        ),
        BEYOND,
        BEYOND_WHY,
    ),
    Quantity(
        "collectives and waiting, of the step",
        (owners("percent", "collective_transfer", *WAITS), At("hosts", "hosts[].collective_percent", how="mean")),
        (Apart(At("cores", "cores[].collective_percent", how="mean"), "of its own steps where", WHOLE_HOSTS, CUT_OFF),),
    ),
    Quantity(
        "waiting for other cores, of the step",
        (
            owners("percent", *WAITS),
            *(At(page, f"{page}[].collective_wait_percent", how="mean") for page in ("hosts", "cores")),
        ),
    ),
    Quantity(
        "waiting in collectives",
        (owners("time_ms", "collective_wait"),),
        (Apart(At("collectives", "waiting_time_ms"), "without those between slices", OUTSIDE, ("v6e", "gpus")),),
        1e-4,
        HALVES,
    ),
    Quantity(
        "time in collectives",
        (owners("time_ms", "collective_wait", "collective_transfer"),),
        (Apart(At("collectives", "exposed_time_ms"), "those between slices", OUTSIDE, ("v6e", "gpus")),),
        BEYOND,
        BEYOND_WHY,
    ),
    Quantity(
        "each step's time in collectives",
        (At("ledger", "steps[].collective_wait_ms + steps[].collective_transfer_ms"),),
        (Apart(At("collectives", "steps[].exposed_time_ms"), "those between slices", OUTSIDE, ("v6e", "gpus")),),
        BEYOND,
        BEYOND_WHY,
    ),
)
"""Where the mean step goes."""

CAPTURE = (
    Quantity(
        "idle, of the capture",
        (At("overview", "performance.device_idle_percent"),),
        (Apart(At("hosts", "hosts[].device_idle_percent", how="mean"), "its cores", UNEQUAL),),
    ),
    Quantity(
        "idle, from the first op to the last",
        (At("overview", "performance.xprof_idle_percent"), At("overview", "shares[].fraction", "class=idle", "sum")),
    ),
    Quantity(
        "idle time from the first op to the last",
        (
            At("overview", "shares[].time_ps", "class=idle", "sum"),
            *each(("ops", "op-profile", "sources"), "idle_time_ps"),
            At("framework-ops", "device_idle_time_ps"),
        ),
    ),
    Quantity(
        "the cores' whole time",
        (
            At("overview", "shares[].time_ps", how="sum"),
            *each(("ops", "op-profile", "sources"), "total_time_ps"),
            At("framework-ops", "device_total_time_ps"),
        ),
    ),
    Quantity(
        "duty cycle",
        (At("overview", "performance.device_duty_cycle_percent"),),
        (Apart(At("hosts", "hosts[].device_duty_cycle_percent", how="mean"), "its chips", UNEQUAL),),
    ),
    *(
        Quantity(
            f"{unit} by counters",
            (
                At("overview", f"performance.{unit}_utilization_percent"),
                At("hosts", f"hosts[].{unit}_utilization_percent", how="mean"),
            ),
        )
        for unit in ("mxu", "hbm")
    ),
    Quantity(
        "length of the capture",
        (At("overview", "environment.profile_duration_ms"), At("runs", "runs[].profile_duration_ps", how="first")),
        (
            Apart(
                At("hosts", "hosts[].profile_duration_ms", how="first"), "", "Each host has its own.", ("two-slices",)
            ),
        ),
    ),
    Quantity(
        "FLOP/s of peak",
        (
            At("overview", "performance.flops_utilization_percent"),
            At("op-profile", "by_program.flops_utilization"),
            At("roofline", "program.flops_utilization"),
        ),
    ),
    Quantity(
        "HBM's bandwidth of peak",
        (
            At("overview", "performance.memory_bandwidth_utilization_percent"),
            At("op-profile", "by_program.bandwidth_utilization.hbm"),
            At("roofline", "program.hbm_bandwidth_utilization"),
        ),
    ),
    Quantity(
        "the program's share of its roof",
        (At("overview", "performance.roofline_efficiency_percent"), At("roofline", "program.roofline_efficiency")),
    ),
    *(
        Quantity(f"{key} of the device", each(OP_PAGES, key))
        for key in keys_of("ops")
        if (key.startswith("device.peak") and "cmem" not in key) or key == "device.ridge_point"
    ),
)
"""What is of the whole capture, and of the device."""

COUNTS = (
    Quantity(
        "HLO ops",
        (At("overview", "op_count"), *each(("op-profile", "sources", "roofline"), "op_count")),
        (Apart(At("ops", "op_count"), "those of SparseCores too", "The table of ops lists those of SparseCores too."),),
    ),
    Quantity("rows of the table of ops", (At("ops", "op_count"), At("ops", "ops[].name", how="count"))),
    Quantity(
        "how often ops ran",
        (
            At("overview", "op_event_count"),
            *(At("op-profile", f"{tree}.occurrences") for tree in ("by_program", "by_category", "by_provenance")),
        ),
        (
            Apart(
                At("ops", "ops[].occurrences", how="sum"),
                "how often the op ran",
                "The table of ops lists those of SparseCores too.",
            ),
        ),
    ),
    Quantity(
        "cores",
        (
            At("hosts", "hosts[].core_count", how="sum"),
            At("cores", "cores[].core", how="count"),
            At("ops", "device.cores"),
        ),
        (
            Apart(At("overview", "environment.device_core_count"), "", "The host's CPU is no device.", ("host-alone",)),
            Apart(At("ledger", "cores[].name", how="count"), "of the core", ALL_GPUS),
            Apart(
                At("collectives", "core_count"),
                "the means are over",
                "GPUs that ran nothing have no collectives; a program on the CPU may have several devices.",
            ),
        ),
    ),
    Quantity("cores that ops run on", each(OP_PAGES, "device.cores")),
    Quantity("hosts", (At("overview", "environment.host_count"), At("hosts", "hosts[].host", how="count"))),
    Quantity(
        "collectives",
        (
            At("collectives", "collective_groups[].collectives", how="sum"),
            At("collectives", "collectives[].name", how="count"),
        ),
    ),
    Quantity(
        "findings",
        (
            At("findings", "findings[].kind", how="count"),
            At("overview", "findings[].kind", how="count"),
            At("findings", "kinds[].found", how="sum"),
        ),
    ),
    Quantity("what findings are worth", each(("overview", "findings"), "findings[].worth_ms")),
    Quantity("time of owners that findings claim", each(("overview", "findings"), "findings[].claims[].time_ms")),
    Quantity("shares that findings are worth", each(("overview", "findings"), "findings[].worth_fraction")),
    Quantity("what is left without findings", each(("overview", "findings"), "findings[].after_ms")),
    Quantity("time from one step to the next", each(("ledger", "model"), "period_ms")),
    Quantity(
        "capacity of HBM",
        (At("memory", "capacity_bytes"),),
        (
            Apart(
                At("memory-profile", "allocators[].capacity_bytes", how="first"),
                "free memory at the peak",
                "The allocator of a running program has what it asked the system for, not what a device has at most.",
            ),
        ),
    ),
    Quantity("what a program leaves of HBM", (At("memory", "headroom_bytes"), At("program", "headroom_bytes"))),
    Quantity(
        "peak of a program in HBM",
        (At("memory", "peak_bytes"),),
        (
            Apart(
                At("memory-profile", "allocators[].peak_bytes", how="first"),
                "stack and heap",
                "An allocator has the arrays of all programs, and what is reserved for those that do not run.",
            ),
        ),
    ),
    Quantity("sessions", (At("overview", "inference.sessions"), At("inference", "sessions"))),
    *(
        Quantity(
            f"latencies of sessions, {part}",
            (At("overview", f"inference.percentiles[].{part}"), At("inference", f"percentiles[].{part}")),
        )
        for part in ("percentile", "total_ms", "host_ms", "device_ms", "communication_ms")
    ),
    *(
        Quantity(
            f"{key} of counters",
            (At("timeline", f"counters[].{key}", by="name"), At("counters", f"counters[].{key}", by="counter")),
        )
        for key in ("samples", "first_ps", "minimum", "maximum", "mean")
    ),
    Quantity(
        "the last value of counters",
        (At("timeline", "counters[].last_ps", by="name"),),
        (
            Apart(
                At("counters", "counters[].last_ps", by="counter"),
                "or ended",
                "A value that holds for some time ends later than it was taken.",
            ),
        ),
    ),
)
"""How many there are of what."""

SHARED_OF_OPS = tuple(
    key.removeprefix("ops[].") for key in keys_of("ops") if key.startswith("ops[].") and key in keys_of("roofline")
)
"""Columns that the table of HLO ops and the roofline share."""

OF_GRAPH = ("self_time_ps", "occurrences", "self_time_percent")
NOT_NUMBERS = ("text", "true or false")

OPS = (
    *(
        Quantity(
            f"{key} of ops",
            (
                At("ops", f"ops[].{key}", by="name"),
                At("roofline", f"ops[].{key}", by="name"),
                *([At("graph", f"nodes[].{key}", by="name")] if key in OF_GRAPH else ()),
                *([At("op", f"ops[].{key}", by="name")] if f"ops[].{key}" in keys_of("op") else ()),
            ),
        )
        for key in SHARED_OF_OPS
        if keys_of("ops")[f"ops[].{key}"].unit not in NOT_NUMBERS
    ),
    Quantity("DMA stall of ops", tuple(At(page, "ops[].dma_stall_percent", by="name") for page in ("ops", "op"))),
    *(
        Quantity(f"{key} of the op's runs", (At("op", f"runs.{of_runs}"), At("op", f"ops[].{key}", how="sum")))
        for key, of_runs in (("occurrences", "count"), ("total_time_ps", "total_ps"))
    ),
    Quantity("runs of the op", (At("op", "runs.count"), At("graph", "op.occurrences"))),
    *(
        Quantity(f"{key} of operands", tuple(At(page, f"operands[].{key}", by="name") for page in ("op", "graph")))
        for key in ("self_time_ps", "size_bytes")
    ),
    Quantity(
        "HBM traffic of ops",
        (
            At("ops", "ops[].bandwidth_gigabytes_per_second.hbm", by="name"),
            At("roofline", "ops[].hbm_gigabytes_per_second", by="name"),
        ),
    ),
    *(
        Quantity(
            f"{key} of framework ops",
            (At("overview", f"top_ops[].{key}", by="name"), At("framework-ops", f"ops[].{key}", by="name")),
        )
        for key in ("self_time_ps", "occurrences", "gflops_per_second")
    ),
)
"""What is of each op; names that several rows have stand for none of them."""

ALL = (*STEP_TIMES, *PARTS, *CAPTURE, *COUNTS, *OPS)
