"""``doctor PATH --require device,steps``: whether the newest run holds what somebody needs, before they build on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, EXIT_UNREADABLE, FAILED, ProfileError, one_part
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.pages.memory.key import MEMORY_PROFILE
from tpuprof.parsers.pages.ops.key import OPS
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.pages.shared.key import MODULES, SUMMARIES
from tpuprof.parsers.session.opening import open_run
from tpuprof.parsers.session.run_facts import RunFacts, run_facts
from tpuprof.parsers.session.session import Session
from tpuprof.tui.cli.commands.doctor.parts import DoctorLine, DoctorSection
from tpuprof.tui.terminal.detect import Config

_ANY_SIZE = 1 << 62
"""Bytes that are read for facts: a gate looks as long as it takes."""


@dataclass(frozen=True)
class Profile:
    """What a requirement is judged by."""

    session: Session
    facts: RunFacts


Why = str
"""Why something is missing; empty where it is there."""


def _device(of: Profile) -> Why:
    page = of.session.page(OPS)
    if page.runs_on == "host thread":
        return "only the host ran ops"
    return "" if len(page) else page.unknown.get("ops", "no op ran on a device")


def _steps(of: Profile) -> Why:
    page = of.session.page(OVERVIEW)
    known = page.performance.step_time is not None
    return "" if known else page.unknown.get("performance.step_time_ms") or "the profile has no steps"


def _markers(of: Profile) -> Why:
    time = of.session.page(OVERVIEW).performance.step_time
    if time is None:
        return _steps(of)
    return "" if time.source == "steps" else f"steps are inferred: {time.note}" if time.note else "steps are inferred"


def _hlo(of: Profile) -> Why:
    named = any(modules.names for modules in of.session.page(MODULES))
    return "" if named else "the profile holds no compiled HLO"


def _source(of: Profile) -> Why:
    page = of.session.page(OPS)
    return "" if any(page.table.texts("source")) else "no op names its source line"


def _peaks(of: Profile) -> Why:
    peaks = of.session.page(OPS).peaks
    known = peaks.flops_per_second is not None and peaks.hbm is not None
    return "" if known else "the device plane lacks the peak of FLOPS or of HBM"


def _host(of: Profile) -> Why:
    tracing = of.facts.host_tracing
    if tracing is None:
        return of.facts.unknown.get("host_tracing", "the profile does not say")
    return "the host was not traced" if tracing == "off" else ""


def _python(of: Profile) -> Why:
    return _host(of) or ("" if of.facts.host_tracing == "python" else "no call of a Python function was traced")


def _memory(of: Profile) -> Why:
    page = of.session.page(MEMORY_PROFILE)
    return "" if page.allocators else page.why_empty or "no allocator reported anything"


def _whole(of: Profile) -> Why:
    run, summaries = of.session.run, of.session.page(SUMMARIES)
    problems = [*run.problems, *of.facts.problems, *(problem for each in summaries for problem in each.problems)]
    if not problems and len(summaries) < len(run.hosts):
        return f"{counted(len(run.hosts) - len(summaries), 'host')} can't be read"
    return problems[0].sentence.rstrip(".") if problems else ""


def _measured(of: Profile) -> Why:
    return "its times are simulated" if of.session.page(OVERVIEW).environment.simulated else ""


@dataclass(frozen=True)
class Requirement:
    """What may be required.

    Attributes:
        missing: why a profile lacks it; empty where it does not.
    """

    meaning: str
    missing: Callable[[Profile], Why]
    advice: str


_LEVEL = "host_tracer_level"
REQUIREMENTS: Mapping[str, Requirement] = {
    "device": Requirement(
        "ops of a device", _device, "capture from the process that holds the chip, device_tracer_level = 1"
    ),
    "steps": Requirement("steps, marked or inferred", _steps, "capture several steps"),
    "markers": Requirement(
        "steps that the program marks", _markers, "jax.profiler.StepTraceAnnotation around each step"
    ),
    "hlo": Requirement("compiled modules", _hlo, "enable_hlo_proto = True, or --xla_dump_to beside the profile"),
    "source": Requirement("source lines of ops", _source, "capture with HLO; JAX writes lines into its metadata"),
    "peaks": Requirement("the device's peaks", _peaks, "open the .xplane.pb: a trace for a viewer has no peaks"),
    "host": Requirement("events of the host's threads", _host, f"{_LEVEL} = 2"),
    "python": Requirement("calls of Python functions", _python, "python_tracer_level = 1"),
    "memory": Requirement("reports of the allocators", _memory, f"{_LEVEL} = 2, and capture while they allocate"),
    "whole": Requirement("all hosts' files, complete", _whole, "capture fewer steps, and copy each file whole"),
    "measured": Requirement("measured times", _measured, "capture a profile on hardware"),
}
"""Everything that may be required, by its name."""


def _why_missing(name: str, profile: Profile, failed: list[str]) -> Why:
    """Why a profile lacks something; `failed` gets its name where an error in looking keeps that unknown."""
    try:
        with one_part(f"look for {REQUIREMENTS[name].meaning}"):
            return REQUIREMENTS[name].missing(profile)
    except ProfileError as error:
        if error.code != FAILED:
            raise
        failed.append(name)
        return error.sentence


def required(path: str, names: Sequence[str], config: Config) -> DoctorSection:
    """What of the named the newest run at a path has, and what it lacks; the exit code is 7 where it lacks any.

    What can't be read has none of it, and the exit code of that error.
    """
    run, failed = None, list[str]()
    try:
        run = open_logdir(path).find_run()
        session = open_run(run, lambda _: None, lambda: False, cache=config.cache, cache_bytes=config.cache_bytes)
        profile = Profile(session, run_facts(run, _ANY_SIZE))
        found = {name: _why_missing(name, profile, failed) for name in names}
    except ProfileError as error:
        rows = [DoctorLine("nothing", error.sentence, True)]
        rows += [DoctorLine("try", error.hint)] if error.hint else []
        told: dict[str, object] = {"run": None if run is None else run.name, "required": names, "is_met": False}
        told |= {"missing": [{"name": name, "why": error.sentence, "hint": error.hint} for name in names]}
        return DoctorSection("require", "Required", rows, told, exit_code=error.exit_code)
    title = f"Required of {printable(run.name)}"
    missing = {name: why for name, why in found.items() if why}
    rows = []
    for name, why in found.items():
        meaning = REQUIREMENTS[name].meaning
        rows.append(DoctorLine(name, f"MISSING: {why}" if why else f"present: {meaning}", bool(why)))
        rows += [DoctorLine("try", REQUIREMENTS[name].advice)] if why else []
    words = f"lacks {counted(len(missing), 'thing')} of {len(found)}" if missing else "has all that is required"
    facts = {
        "run": run.name,
        "required": names,
        "is_met": not missing,
        "missing": [{"name": name, "why": why, "hint": REQUIREMENTS[name].advice} for name, why in missing.items()],
    }
    exit_code = EXIT_UNREADABLE if failed else EXIT_CAPTURE_FAILED if missing else 0
    return DoctorSection("require", title, [*rows, DoctorLine("verdict", words)], facts, exit_code=exit_code)
