"""Findings about an idle device: it waits for input, or for the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Floats, median
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples
from tpuprof.parsers.base.words import sentence_name, share, shortened, time
from tpuprof.parsers.files.core_names import host_of
from tpuprof.parsers.ops.host_events.activity import Activity, IdleTime, is_of_program, is_of_runtime, waits_for_python
from tpuprof.parsers.pages.findings.budget import IDLE_OWNERS, Budget, Claimed, Steps, detects
from tpuprof.parsers.pages.findings.claims import NO_CLAIM, Claim, joined, taken
from tpuprof.parsers.pages.findings.finding import JumpTarget, Kind
from tpuprof.parsers.pages.findings.idle import meanwhile
from tpuprof.parsers.pages.findings.when import When, when
from tpuprof.parsers.steps.accounts.owners import OWNER_GROUPS, WAITS, owner_index
from tpuprof.parsers.steps.requests.serving import answers_requests

LEAST_INPUT = 0.05
"""XProf calls a program moderately input-bound from this share of step time on."""

LEAST_PATTERN = 0.01
"""A regular pattern of waits is no chance, so it counts from this smaller share on."""

_QUIET = 0.25  # most steps do not wait where the median is below this share of the mean

LEAST_IDLE = 0.03
"""XProf speaks of idle time from this share of step time on, waiting for input aside."""

_IN_FLIGHT = 0.5
"""An asynchronous op causes the gaps if it is in flight for at least this share of them."""

_STANDS_OUT = 1.1  # multiple of the mean from which on a core or a step is named

_ELSEWHERE = 1.5
"""Gaps that are longer than this multiple of the idle time in steps lie outside of the steps."""

_UNEVEN = 1.5  # multiple of the median step's idle time from which on a step is named

_MOST_NAMED = 3
_HARDLY = 0.05  # share of the gaps below which a further activity is not worth a line

INPUT = Kind(
    "input",
    "waits for input",
    advice="Prefetch more batches, read and decode on more workers, or move the work off the step's thread.",
    rank=4,
    owners=("input",),
    page="input",
)


@detects(INPUT)
def waiting_for_input(budget: Budget) -> Claimed:
    """The device waits for input often, or in a regular pattern.

    Where cores wait for different times, the mean counts, and the time that the others wait for the last one.
    """
    steps = budget.steps
    if steps is None:
        return _infeed_of_capture(budget)
    own, others = budget.take_all("input"), waits_for_the_last(budget, steps.of("input"))
    claim = joined(own, others)
    waits, worth = claim.cells.sum(axis=2).mean(axis=0), claim.worth_ps
    timing = when(waits, steps.names, LEAST_INPUT * budget.whole_ps)
    budget.needs(worth, LEAST_PATTERN if timing.period else LEAST_INPUT)
    most = int(waits.argmax())
    longest, name = float(waits[most]), steps.names[most]
    is_host = steps.grid.input_source == "host"
    measured = "idle device time while the host waited for input or sent it" if is_host else "time in infeed ops"
    worst = f"; {time(longest)} in step {name}" if longest >= _STANDS_OUT * worth else ""
    mean = "mean over steps" if steps.core_count < 2 else "mean over cores and steps"
    for_last, host = others.worth_ps, _host_with_input(steps)
    maker, feeding = _feeding(budget, host) if is_host else (None, ())
    more = f", and their wait for the last core ({time(for_last)})" if for_last >= 1 else ""
    return budget.finding(
        INPUT,
        claim,
        _input_title(waits, timing, host)
        + (f": {shortened(meanwhile.titled(maker.name))}" if maker is not None else ""),
        f"Mean over cores and complete steps of {measured}{more}.",
        [
            f"The device waits for input {budget.amount(worth)}, {mean}{worst}."
            if for_last < 1
            else f"Cores wait for input {budget.amount(own.worth_ps)}, and the others {time(for_last)} for the "
            f"last core, {mean}: {time(worth)} in all{worst}.",
            timing.sentence("the device waits for") if timing.is_regular else "",
            _worst_core(steps, budget),
            "The program has no infeed ops, so this is inferred from what the host did at that time."
            if is_host
            else "",
            *feeding,
        ],
        JumpTarget("input", name),
        is_estimate=is_host,
    )


def _feeding(budget: Budget, host: str) -> tuple[Activity | None, tuple[str, ...]]:
    """What makes the input that a host waits for, and sentences on it: another thread's work comes before that wait.

    Args:
        host: the one that waits most; empty for that of the core that is idle most.
    """
    gaps = budget.evidence.host_gaps.get(host) or budget.evidence.gaps or IdleTime()
    at_work = [
        each
        for each in meanwhile.working(replace(gaps, activities=gaps.feeding))
        if each.overlap_ps >= _HARDLY * gaps.feeding_ps > 0
        if is_of_program(each.name) and not waits_for_python(each.name) and not each.marks_step
    ]
    own = meanwhile.launcher(gaps)
    at_work.sort(key=lambda each: each.thread == own and each.occurrences == 1)  # the loop around all comes last
    at_work.sort(key=lambda each: each.thread == own or each.overlap_ps < meanwhile.EXPLAINS * gaps.feeding_ps)
    words = tuple(
        f"Meanwhile {sentence_name(each.thread) or 'a host thread'} is in {sentence_name(each.name)} for "
        f"{share(min(1.0, each.overlap_ps / gaps.feeding_ps))} of the time ({counted(each.occurrences, 'time')})."
        for each in at_work[:_MOST_NAMED]
    )
    makes = at_work and at_work[0].overlap_ps >= meanwhile.EXPLAINS * gaps.feeding_ps
    return at_work[0] if makes else None, words


def waits_for_the_last(budget: Budget, own_ps: Floats) -> Claim:
    """What cores wait for the one that has most of something in each step: up to how much more of it that core has.

    They wait in collectives, at barriers and behind the end of their step, or they are idle longer than that core.

    Args:
        own_ps: float64[cores, steps], the time of what delays a core, such as waiting for input.
    """
    last = own_ps.argmax(axis=0)[None]
    longer = np.take_along_axis(own_ps, last, axis=0) - own_ps
    waits = taken(budget.cells, WAITS, longer)
    if budget.steps is None:
        return Claim.of_cells(waits)
    idle = budget.steps.of(*IDLE_OWNERS)
    more = np.minimum(longer - waits.sum(axis=2), idle - np.take_along_axis(idle, last, axis=0))
    return Claim.of_cells(waits + taken(budget.cells, IDLE_OWNERS, more))


def _input_title(waits: Floats, timing: When, host: str) -> str:
    """In which steps the device waits, and for which host's input, where that is one of several."""
    of = f" on {host}" if host else ""
    if timing.period:
        return f"{timing.first} waits for input{of}"
    if not timing.is_regular and len(waits) > 2 and median(waits) <= _QUIET * waits.mean():
        count = int((waits >= waits.mean()).sum())
        return f"{count} of {counted(len(waits), 'step')} {'waits' if count == 1 else 'wait'} for input{of}"
    return f"Steps wait for input{of}{timing.after}"


def _host_with_input(steps: Steps) -> str:
    """The host whose cores have nearly all of the waiting for input; empty where several have it, or there is one."""
    by_core, hosts = steps.of("input").mean(axis=1), steps.account.hosts
    worst = int(by_core.argmax())
    elsewhere = hosts != hosts[worst]
    if not elsewhere.any() or by_core[elsewhere].mean() > _HARDLY * by_core[~elsewhere].mean():
        return ""
    return sentence_name(host_of(steps.core(worst)))


def _worst_core(steps: Steps, budget: Budget) -> str:
    means = steps.of("input").mean(axis=1)
    worst = int(means.argmax())
    if len(means) < 2 or means[worst] < _STANDS_OUT * means.mean():
        return ""
    return f"Core {steps.core(worst)} waits most, {budget.amount(float(means[worst]))}."


def _infeed_of_capture(budget: Budget) -> Claimed:
    """Waiting for input in a capture without steps, which only infeed ops show."""
    table = budget.evidence.table
    rows = np.array([row for row in budget.rows["host"] if table.category[row] == "infeed"], np.intp)
    claim = budget.take_ops(rows, budget.op_ps(rows))
    worth = claim.worth_ps
    budget.needs(worth, LEAST_INPUT)
    return budget.finding(
        INPUT,
        claim,
        "The device waits for input",
        "Time in infeed ops in the whole capture, mean over cores: it has no steps.",
        [f"Infeed ops take {budget.amount(worth)}, most of it in {sentence_name(table.name[rows[0]])}."],
        JumpTarget("input"),
    )


HOST = Kind(
    "host",
    "work of the host that delays the device",
    advice="Take that work off the thread that launches steps, do it every few steps, or do it asynchronously.",
    rank=6,
    owners=OWNER_GROUPS["host"],
)

SERVING = Kind(
    "serving",
    "idle time between requests",
    advice="Batch more requests per run, and launch the next run before the current one ends.",
    rank=7,
    owners=OWNER_GROUPS["host"],
)

IDLE = Kind(
    "idle",
    "idle time",
    advice="Launch the next step before this one ends: read results a step later, and move other work to a thread.",
    rank=8,
    owners=IDLE_OWNERS,
)


@detects(IDLE, HOST, SERVING)
def idle_gaps(budget: Budget) -> Claimed:
    """Gaps between ops in which a core waits neither for input nor for other cores."""
    return gaps_of_all(budget, False)


def gaps_of_all(budget: Budget, for_the_last: bool) -> Claimed:
    """The same, where a late host may be the reason for them.

    Args:
        for_the_last: whether what cores wait for the one that is idle longest is part of it.
    """
    steps, gaps = budget.steps, budget.evidence.gaps or IdleTime()
    claim, claimed_ps = budget.take_all(*IDLE_OWNERS, "compile"), budget.claimed(*IDLE_OWNERS, "compile")
    inside, compiled = claim.worth_ps + claimed_ps, _compiled_ps(budget)
    step, means, idlest = None, "Mean over cores", ""
    if steps is not None:
        inside = float(steps.of(*IDLE_OWNERS).sum(axis=1).max()) + compiled + budget.between_ps * len(steps)
        by_step = budget.whole_cells[:, :, [owner_index(owner) for owner in IDLE_OWNERS]].sum(axis=2).mean(axis=0)
        step, means = steps.names[int(by_step.argmax())], "Mean over cores and complete steps"
        idlest = _idlest(by_step, step)
    inside = max(1.0, inside)
    longest = gaps.longest[1] - gaps.longest[0]
    if max(float(gaps.gap_ps or inside), longest) > _ELSEWHERE * inside:
        gaps = IdleTime()  # what the long gaps outside of the steps are for says nothing here
    gaps = meanwhile.of_launcher(meanwhile.but_for_compiling(gaps, compiled))
    everything = float(gaps.gap_ps or inside)
    kind, title, place = _gap_title(gaps, everything, step)
    result = meanwhile.reading(gaps)
    if result is not None and result.overlap_ps < _HARDLY * everything and not title.startswith(_READS):
        result = None  # it is there when the host asks for it
    late = (  # a host that launches too late sends input too late as well
        NO_CLAIM
        if result is None or steps is None
        else budget.take(("input",), np.array(median(steps.of("input").mean(axis=0))))
    )
    others = waits_for_the_last(budget, steps.of(*IDLE_OWNERS)) if steps is not None and for_the_last else NO_CLAIM
    own_ps, claim = claim.worth_ps, joined(claim, late, others)
    worth, between = claim.worth_ps, 0.0
    if steps is not None and budget.between_ps:  # programs may run there, too
        idle = [owner_index(owner) for owner in (*IDLE_OWNERS, "compile")]
        between = min(own_ps, float(steps.account.mean_between_ps[idle].sum()))
    budget.needs(worth, LEAST_IDLE)
    main, programs = meanwhile.main_activity(gaps, everything), ""
    if kind is IDLE and place.target == step and (main is None or is_of_runtime(main.name)):
        title, programs = _many_programs(budget, title, claim.worth_ps)
    serves = budget.evidence.serves
    between_runs = 2 * gaps.unlaunched_ps >= everything
    if kind is IDLE and title == _UNEXPLAINED and between_runs and any(answers_requests(name) for name, _, _ in serves):
        kind, title = SERVING, f"Device idle between runs of {shortened(serves[0][0])}"
    timing = None
    if steps is not None and not budget.between_ps:
        idle_ps = steps.of(*IDLE_OWNERS).mean(axis=0)
        timing = when(idle_ps, steps.names, float(idle_ps.mean()))
    if timing is not None and timing.words:
        title = title.replace("Device idle", f"{timing.first} the device is idle")
    other = "" if claimed_ps < 1 else f"; {time(claimed_ps)} counted by other findings is left out"
    return budget.finding(
        kind,
        claim,
        title,
        f"{means} of time without any op, except waits for input and for other cores{other}.",
        [
            f"The device is idle between its ops for {budget.amount(own_ps)}, without waits for input.",
            f"For another {time(others.worth_ps)}, cores wait for the core that is idle longest."
            if others.worth_ps
            else "",
            f"For another {time(late.worth_ps)}, the host sends input that it could send ahead."
            if late.worth_ps
            else "",
            ""
            if result is None
            else f"The host launches a step only after {sentence_name(result.name)}, "
            f"{counted(result.occurrences, 'time')}.",
            f"{time(between)} of that lies between one step and the next." if between >= 1 else "",
            f"{counted(gaps.count, 'long gap')} on the core that is idle most; the longest is {time(longest)}."
            if gaps.count > 0
            else "",
            timing.sentence("it is idle for") if timing is not None and timing.is_regular else idlest,
            programs,
            _where_in_runs(gaps, everything),
            *_meanwhile(gaps, everything, steps is None or steps.grid.source in ("steps", "annotations")),
            *([_phases(serves)] if serves else []),
        ],
        place,
        advice=_READ_LATER if title.startswith(_READS) else _ONE_PROGRAM if programs else "",
    )


def _compiled_ps(budget: Budget) -> float:
    """The idle time of compilations, on the core that has most of it; another finding is on it."""
    if budget.steps is not None:
        return float(budget.steps.of("compile").sum(axis=1).max())
    return budget.claimed("between_ops") if budget.evidence.compilations else 0.0  # the owner that it claims then


_WHILE = "Device idle while the host runs"
_READS = "Device idle after the host reads results"
_READ_LATER = (
    "Read results of an earlier step, or only every tenth one, so that the next step is launched before this one ends: "
    "block_until_ready, np.asarray, float() and print of an array delay the launch."
)
_UNEXPLAINED = "Device idle between its ops"
_MANY_PROGRAMS = 2
_ONE_PROGRAM = "Put what these programs do into one jit: the host launches it once, and XLA fuses across them."


def _many_programs(budget: Budget, title: str, idle_ps: float) -> tuple[str, str]:
    """A title and a sentence on idle time between many programs of a step; another title and nothing where it has few.

    Args:
        idle_ps: the idle time of a step.
    """
    if budget.steps is None:
        return title, ""
    grid, runs, evidence = budget.steps.grid, dict[str, float](), budget.evidence
    for name, (start, _) in evidence.runs.items():
        inside = (start >= int(grid.start_ps.min())) & (start < int(grid.end_ps.max()))
        on_a_core = int(np.count_nonzero(inside)) * evidence.ran_on.get(name, 1.0)
        runs[name.partition("(")[0]] = runs.get(name.partition("(")[0], 0.0) + on_a_core
    a_step = sum(runs.values()) / len(budget.steps)
    if a_step < _MANY_PROGRAMS:
        return title, ""
    named = sorted(runs, key=lambda name: -runs[name])
    words = examples(list(map(shortened, named)), _MOST_NAMED)
    return (
        f"Device idle while the host launches {a_step:,.0f} programs a step",
        f"A step runs {a_step:,.1f} programs ({words}), with {time(idle_ps / a_step)} without an op for each.",
    )


def _where_in_runs(gaps: IdleTime, everything: float) -> str:
    """A sentence on whether gaps lie between runs of programs or inside them."""
    outside = min(1.0, gaps.unlaunched_ps / everything)
    if not gaps.unlaunched_ps:
        return ""
    if outside >= _NEARLY_ALL:
        return "The idle time lies between runs of programs, not inside them."
    return f"{share(outside)} of the idle time lies between runs of programs, the rest inside them."


_NEARLY_ALL = 0.99


def _phases(serves: Sequence[tuple[str, int, float]]) -> str:
    """A sentence on the modules of a program that serves: prefill and decode are modules of their own, or shapes."""
    words = [f"{sentence_name(name)} {counted(runs, 'time')}, {time(ps)} each" for name, runs, ps in serves]
    return f"The program runs {'; '.join(words[:_MOST_NAMED])}."


def _gap_title(gaps: IdleTime, everything: float, step: str | None) -> tuple[Kind, str, JumpTarget]:
    async_op = next(iter(gaps.in_flight), "")
    if async_op and gaps.in_flight[async_op] >= _IN_FLIGHT * everything:
        return IDLE, f"Device idle while {shortened(async_op)} is in flight", JumpTarget("timeline", async_op)
    first = meanwhile.main_activity(gaps, everything)
    if first is not None:
        kind = HOST if is_of_program(first.name) else IDLE
        return kind, f"{_WHILE} {meanwhile.titled(first.name)}", JumpTarget("timeline", step)
    result = meanwhile.reading(gaps)
    if result is not None:
        return HOST, f"{_READS}: {meanwhile.titled(result.name)}", JumpTarget("timeline", step)
    return IDLE, _UNEXPLAINED, JumpTarget("timeline", step)


def _idlest(by_step: Floats, step: str) -> str:
    """A sentence on the step with the longest gaps, where it stands out."""
    most, usual = float(by_step.max()), median(by_step)
    stands_out = most > usual and most >= _UNEVEN * usual
    return f"Step {step} has {time(most)} of idle time, the median step {time(usual)}." if stands_out else ""


def _meanwhile(gaps: IdleTime, everything: float, are_marked: bool) -> Iterator[str]:
    """Sentences on the asynchronous op that was under way most, and on what the host did; work comes before waiting.

    Args:
        are_marked: whether annotations of the program mark these steps, and no runs of a program.
    """
    for name, ps in list(gaps.in_flight.items())[:1]:
        part = share(min(1.0, ps / everything))
        yield f"Asynchronous op {sentence_name(name)} is in flight for {part} of the idle time."
    work, main = meanwhile.working(gaps), meanwhile.main_activity(gaps, everything)
    named = [each for each in work or gaps.activities if not each.marks_step]
    if main is not None and main not in named:
        named = [main, *named]
    for number, activity in enumerate(named[:_MOST_NAMED]):
        if number and activity.overlap_ps < _HARDLY * everything:
            break
        yield (
            f"Meanwhile {sentence_name(activity.thread) or 'a host thread'} is in "
            f"{sentence_name(activity.name)} for {share(min(1.0, activity.overlap_ps / everything))} of the "
            f"idle time ({counted(activity.occurrences, 'time')})."
        )
    for activity in [each for each in gaps.activities if each.marks_step][:1]:
        if activity.overlap_ps >= _HARDLY * everything:
            part, name = share(min(1.0, activity.overlap_ps / everything)), sentence_name(activity.name)
            which = ", which marks the step" if are_marked else ""
            yield f"For {part} of the idle time, nothing was traced inside {name}{which}."
    if gaps.activities and not work:
        yield "The host's threads only wait, so its events do not say why."
