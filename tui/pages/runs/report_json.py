"""The list of runs as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tpuprof.parsers.base.errors import Problem
from tpuprof.parsers.files.logdir import Logdir, Run
from tpuprof.tui.report.json import document, head
from tpuprof.tui.report.values import utc

if TYPE_CHECKING:
    from tpuprof.parsers.session.run_facts import RunFacts


# Keys of a run and the attributes of `RunFacts` that they hold.
_FACTS = {
    "device_type": "device_type",
    "host_core_count": "core_count",
    "modules": "modules",
    "module_count": "module_count",
    "step_time_ps": "step_time_ps",
    "step_time_source": "step_source",
    "step_count": "step_count",
    "profile_duration_ps": "duration_ps",
    "has_hlo": "has_hlo",
    "host_tracing": "host_tracing",
}


def runs_json(logdir: Logdir, runs: Sequence[Run], facts: Mapping[str, RunFacts] | None = None) -> str:
    """The runs of a logdir as JSON text, with a newline at the end; `run` is the first of them.

    Args:
        facts: by path of the run, what to say of each beyond its files; None to leave that out.
    """
    body = {
        "runs": [
            {
                "name": run.name,
                "path": run.path,
                "hosts": [host.host for host in run.hosts],
                "size_bytes": run.size_bytes,
                "modified": utc(run.modified),
                "problems": [_problem(problem) for problem in run.problems],
                **({} if facts is None else _facts(facts.get(run.path))),
            }
            for run in runs
        ],
        "searched": list(logdir.searched),
    }
    first = runs[0] if runs else Run("", "", (), ())
    warnings = [problem.sentence for problem in logdir.problems]
    reasons = {"runs[].modified": "the file's time is out of range"}
    if facts is not None:
        reasons |= _facts_reasons([facts.get(run.path) for run in runs])
    return document(head("runs", first, [host.host for host in first.hosts], warnings), body, reasons)


def _facts(facts: RunFacts | None) -> dict[str, object]:
    """What is known of a run; null where it is not."""
    return {
        key: list(value) if isinstance(value := getattr(facts, name, None), tuple) else value
        for key, name in _FACTS.items()
    }


def _facts_reasons(facts: Sequence[RunFacts | None]) -> dict[str, str]:
    """One reason a key, of the first run that lacks it."""
    reasons: dict[str, str] = {}
    for one in facts:
        for key, name in _FACTS.items():
            if getattr(one, name, None) is None:
                reasons.setdefault(f"runs[].{key}", one.unknown.get(name, "") if one is not None else "not looked at")
    return reasons


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "code": problem.code,
        "subject": problem.subject,
        "sentence": problem.sentence,
        "hint": problem.hint,
    }
