"""What a path leads to, as a doctor sees it: runs, their hosts and sizes, what they hold, lack, and what is wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import Problem, ProfileError, one_part
from tpuprof.parsers.base.record import replace
from tpuprof.parsers.base.text import counted, examples, printable
from tpuprof.parsers.base.urls import printable_url
from tpuprof.parsers.base.words import SOURCE_WORDS
from tpuprof.parsers.files.file_kinds import may_be_hlo
from tpuprof.parsers.files.folder_search import sibling_files
from tpuprof.parsers.files.logdir import Run, local_path, open_logdir
from tpuprof.parsers.pages.memory.key import MEMORY
from tpuprof.parsers.pages.overview.model import OVERVIEW
from tpuprof.parsers.session.live_arrays import leads_to_arrays
from tpuprof.tui.cli.arguments.options import PROGRAM
from tpuprof.tui.cli.commands.doctor.parts import DoctorLine, DoctorSection
from tpuprof.tui.draw.format import binary_size, duration, size, utc

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts
    from tpuprof.tui.terminal.detect import Config

MOST_RUNS = 10  # runs that are described; the others are counted
MOST_PROBLEMS = 5
MOST_BYTES = 1 << 30  # of a run that is read for its warnings, some seconds
_MOST_FILES = 4
_NOT_READ = f"of the newest run alone, where it can be read and has at most {size(MOST_BYTES)}"

_MARKING = "jax.profiler.StepTraceAnnotation around each step marks them"
_TRACING = {
    "annotations": "on (annotations and the runtime's own; level 1 or more), Python tracer off",
    "python": "on, with Python calls",
}


def logdir(path: str, config: Config) -> DoctorSection:
    """What a path leads to; with the exit code of the error where that is not a profile.

    Args:
        config: where summaries of its newest run are kept.
    """
    part = DoctorSection("logdir", f"Logdir {printable_url(path)}", (), {"path": path})
    try:
        if (arrays := leads_to_arrays(path)) is not None:
            return _with(part, "device memory profile", _arrays(arrays))
        return _runs(path, part, config)
    except ProfileError as error:
        if (modules := _modules(path)) is not None:
            return _with(part, "XLA dump", modules)
        rows = [DoctorLine("nothing", error.sentence, True), *([DoctorLine("try", error.hint)] if error.hint else [])]
        facts = {"kind": None, "hint": error.hint, "unknown": {"kind": error.sentence}}
        return replace(part, rows=rows, facts={**part.facts, **facts}, exit_code=error.exit_code)


def _with(part: DoctorSection, kind: str, rows: Sequence[DoctorLine]) -> DoctorSection:
    """What holds no runs: its facts are what its rows say."""
    return replace(part, rows=rows, facts={**part.facts, "kind": kind, "rows": [[row.name, row.text] for row in rows]})


def _runs(path: str, part: DoctorSection, config: Config) -> DoctorSection:
    """The runs of a logdir.

    Raises:
        ProfileError: see `open_logdir`.
    """
    found = open_logdir(path)
    total, files = sum(run.size_bytes for run in found.runs), sum(len(run.hosts) for run in found.runs)
    unreadable = sum(not run.hosts for run in found.runs)
    none = f"; {counted(unreadable, 'run')} without readable files" if unreadable else ""
    holds = f"{counted(len(found.runs), 'run')}, {counted(files, 'profile')}, {size(total)}{none}"
    rows = [DoctorLine("holds", holds), *(DoctorLine("searched", line) for line in found.searched)]
    rows += [DoctorLine("problem", problem.sentence, True) for problem in found.problems]
    if len(found.runs) > MOST_RUNS:
        rows.append(DoctorLine("described", f"the newest {MOST_RUNS} runs; {len(found.runs) - MOST_RUNS:,} are older"))
    facts = {
        "kind": "logdir",
        "run_count": len(found.runs),
        "profile_count": files,
        "size_bytes": total,
        "unreadable_run_count": unreadable,
        "searched": found.searched,
        "problems": _told(found.problems),
    }
    runs = [_run(run, None if index else config) for index, run in enumerate(found.runs[:MOST_RUNS])]
    return replace(part, rows=rows, facts={**part.facts, **facts}, parts=runs)


def _more(name: str, number: int, is_wrong: bool = False) -> list[DoctorLine]:
    return [DoctorLine(name, f"and {number:,} more", is_wrong)] if number > 0 else []


def _told(problems: Sequence[Problem]) -> list[dict[str, str]]:
    return [{"code": problem.code, "sentence": problem.sentence, "hint": problem.hint} for problem in problems]


def _arrays(path: str) -> list[DoctorLine]:
    """What a device memory profile holds.

    Raises:
        ProfileError: it can't be read, or is a pprof profile of something else.
    """
    from tpuprof.parsers.memory.live_arrays import read_live_arrays  # noqa: PLC0415 - numpy may be missing

    page = read_live_arrays(path)
    buffers, executables = page.buffers, page.executables
    rows = [
        DoctorLine(
            "holds", f"a device memory profile, {printable(page.name)}: the memory that was alive when it was written"
        ),
        DoctorLine("buffers", f"{buffers.count:,} of arrays, {binary_size(buffers.size_bytes)}"),
        DoctorLine("executables", f"{executables.count:,}, {binary_size(executables.size_bytes)}"),
    ]
    of_device = [f"{one.device}: {binary_size(one.total.size_bytes)}" for one in page.devices]
    rows += [DoctorLine("device", words) for words in of_device[:MOST_RUNS]]
    rows += _more("device", len(page.devices) - MOST_RUNS)
    rows += [DoctorLine("problem", text, True) for text in page.warnings]
    return [*rows, DoctorLine("try", f"{PROGRAM} {printable(path)}")]


def _modules(path: str) -> list[DoctorLine] | None:
    """What a dump of XLA, or a file of it, holds; None where the path leads to something else."""
    if not may_be_hlo(local_path(path)):
        return None
    try:
        from tpuprof.parsers.memory.model import space_name  # noqa: PLC0415 - numpy may be missing
        from tpuprof.parsers.session.hlo import HloSession, leads_to_hlo, open_hlo  # noqa: PLC0415

        if not leads_to_hlo(path):
            return None
        found = open_hlo(path)
    except (ImportError, ProfileError):
        return None
    page = HloSession(found.find_run()).page(MEMORY).page()
    readable = sum(module.problem is None for module in page.modules)
    holds = f"an XLA dump: {counted(len(page.modules), 'compiled module')}, {readable:,} with its buffers"
    rows = [DoctorLine("holds", holds)]
    for module in page.modules[:MOST_RUNS]:
        peaks = ", ".join(f"{space_name(space)} {binary_size(peak)}" for space, peak in module.peaks.items())
        words = f"{module.module}: {module.problem or f'peak {peaks}'}"
        rows.append(DoctorLine("module", words, module.problem is not None))
    rows += _more("modules", len(page.modules) - MOST_RUNS)
    rows += [DoctorLine("note", text) for text in page.warnings]
    lacks = "times: a dump is not a profile"
    return [*rows, DoctorLine("lacks", lacks), DoctorLine("try", f"{PROGRAM} {printable(path)}")]


def _run(run: Run, config: Config | None) -> DoctorSection:
    """A run; with a configuration, which the newest run has, also what its pages warn of."""
    hosts = counted(len(run.hosts), "host") if run.hosts else "none that can be read"
    files = [f"{os.path.basename(host.path)} {size(host.size_bytes)}" for host in run.hosts]
    rows = [DoctorLine("hosts", f"{hosts}, {size(run.size_bytes)}")]
    rows += [DoctorLine("files", examples(files, _MOST_FILES))] if files else []
    rows.append(DoctorLine("written", utc(run.modified) or "unknown"))
    told: dict[str, object] = {
        "name": run.name,
        "path": run.path,
        "hosts": [{"host": host.host, "path": host.path, "size_bytes": host.size_bytes} for host in run.hosts],
        "size_bytes": run.size_bytes,
        "modified": utc(run.modified) or None,
    }
    problems = [*run.problems]
    try:
        from tpuprof.parsers.pages.shared.split_runs import split_words  # noqa: PLC0415
        from tpuprof.parsers.session.run_facts import METRICS, run_facts  # noqa: PLC0415 - numpy may be missing

        facts = run_facts(run)
    except (ImportError, ProfileError) as error:  # the very thing that a doctor is called for
        why = error.sentence if isinstance(error, ProfileError) else str(error)
        told["unknown"] = {"content": why}
        rows.append(DoctorLine("content", f"not read: {why}", True))
    else:
        lacks = lacking(facts) if facts.host is not None else []
        rows += [DoctorLine("belongs", words) for words in split_words(run)]
        told_of = {problem.sentence for problem in (*problems, *facts.problems)}
        warnings = _warnings(run, config)
        rows += [DoctorLine("warning", printable(text)) for text in warnings or () if text not in told_of]
        told |= {name: getattr(facts, name) for name in METRICS} | {"warnings": warnings}
        told |= {"is_simulated": facts.simulated, "lacks": lacks}
        told["unknown"] = {**facts.unknown, **({"warnings": _NOT_READ} if warnings is None else {})}
        problems += facts.problems
        if run.hosts and facts.host is not None:
            rows += _content(facts, len(run.hosts))
        elif run.hosts:
            why = facts.unknown["device_type"]
            is_told = any(problem.sentence == why for problem in problems)
            rows.append(DoctorLine("content", f"unknown: {'see the problem' if is_told else why}", not is_told))
        rows += [DoctorLine("lacks", line) for line in lacks]
    beside = list(sibling_files(run.path))
    rows += [DoctorLine("beside", f"{one.kind}: {one.count:,}, such as {one.example}") for one in beside]
    rows += [DoctorLine("problem", problem.sentence, True) for problem in problems[:MOST_PROBLEMS]]
    rows += _more("problem", len(problems) - MOST_PROBLEMS, True)
    told |= {"beside": {one.kind: one.count for one in beside}, "problems": _told(problems)}
    return DoctorSection("runs", printable(run.name), rows, told)


def _warnings(run: Run, config: Config | None) -> Sequence[str] | None:
    """What the pages warn of; None where the run is not read for that."""
    from tpuprof.parsers.session.opening import open_run  # noqa: PLC0415 - numpy may be missing

    if config is None or run.size_bytes > MOST_BYTES or not run.hosts:
        return None
    with suppress(ProfileError), one_part("look for what the pages warn of"):
        session = open_run(run, lambda _: None, lambda: False, cache=config.cache, cache_bytes=config.cache_bytes)
        return session.page(OVERVIEW).warnings
    return None


def _content(facts: RunFacts, hosts: int) -> list[DoctorLine]:
    kind = facts.device_type or "unknown type"
    cores = counted(facts.core_count or 0, "GPU" if "GPU" in kind else "core")
    device = f"{kind}, {cores} on {'the first of the hosts' if hosts > 1 else 'the host'}"
    rows = [DoctorLine("device", "none" if facts.core_count == 0 else device)]
    if facts.versions:
        rows.append(DoctorLine("software", ", ".join(facts.versions)))
    if facts.core_step_ps is not None:
        what = SOURCE_WORDS[facts.step_source or "steps"]
        steps = counted(facts.step_count or 0, "step")
        rows.append(DoctorLine("steps", f"{duration(facts.core_step_ps, True)}, median of {steps} on one core, {what}"))
    if facts.modules:
        more = (facts.module_count or 0) - len(facts.modules)
        rows.append(DoctorLine("modules", ", ".join(facts.modules) + (f" and {more:,} more" if more else "")))
    if facts.duration_ps is not None:
        rows.append(DoctorLine("profiled", duration(facts.duration_ps, True)))
    if facts.has_hlo:
        rows.append(DoctorLine("HLO", "compiled modules are in the profile"))
    if facts.host_tracing in _TRACING:
        rows.append(DoctorLine("host tracer", _TRACING[facts.host_tracing]))
    if facts.simulated:
        rows.append(DoctorLine("times", "SIMULATED, according to the profile"))
    return rows


def lacking(facts: RunFacts) -> list[str]:
    """What a profile does not hold, what that costs, and how to have it the next time."""
    lines, or_lost = [], ", or it was lost with the rest of the file" if facts.problems else ""
    if facts.core_count == 0:
        asked = "did the program run on a device during the capture?"
        lines.append(f"device events: ops, steps and utilization are unknown; {asked}")
    elif facts.core_step_ps is None:
        lines.append(f"steps ({facts.unknown.get('core_step_ps', 'unknown')}): {_MARKING}")
    elif facts.step_source in ("cycle", "modules"):
        lines.append(f"step markers: step time is inferred; {_MARKING}")
    if facts.has_hlo is False:
        lines.append("compiled HLO: no memory page, and no sources of ops; --xla_dump_to saves the modules" + or_lost)
    if facts.host_tracing == "off":
        lines.append("host events: what a step waits for on the host is unknown; host_tracer_level was 0" + or_lost)
    if facts.duration_ps is None:
        lines.append("start and stop of the capture: older profilers record none" + or_lost)
    return lines
