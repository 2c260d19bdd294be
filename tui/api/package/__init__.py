"""Profiles of TPU programs in Python: the same figures as ``tpuprof-tui report``, as columns and dataclasses.

    >>> import tpuprof
    >>> profile = tpuprof.open("demo")
    >>> profile.overview().performance.step_time.count
    20
    >>> ops = profile.table("ops", sort="self_time_ps", limit=3)
    >>> ops["name"].tolist()
    ['fusion.397', 'fusion.362', 'fusion.315']

`open` opens a profile, `findings` says why a program is slow, `kernel_times` gives the times of one kernel's runs,
`runs` lists the runs of a logdir, `diff` compares two, `oom` explains an out-of-memory error, `memory` reads compiled
modules, `program` says how long one takes before it runs, `fit` how large a batch may be, and `capture` asks a running
program for a profile. Errors are `ProfileError`.

Names in `__all__` are stable; everything below `tpuprof.parsers` and `tpuprof.tui` may change from version to version,
except the dataclasses that the methods of a `Profile` return: they keep their attributes within a major version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpuprof.parsers.base.errors import ProfileError
    from tpuprof.tui.api.calls import capture, diff, findings, fit, kernel_times, memory, oom, program, runs
    from tpuprof.tui.api.calls import open_profile as open
    from tpuprof.tui.api.profile import Profile
    from tpuprof.tui.api.result import Result
    from tpuprof.tui.api.table import Table
    from tpuprof.tui.report.shared.columns import Column

    __version__: str

__all__ = [
    "Column",
    "Profile",
    "ProfileError",
    "Result",
    "Table",
    "capture",
    "diff",
    "findings",
    "fit",
    "kernel_times",
    "memory",
    "oom",
    "open",
    "program",
    "runs",
]

_PLACES = {
    "Column": "tui.report.shared.columns",
    "Profile": "tui.api.profile",
    "ProfileError": "parsers.base.errors",
    "Result": "tui.api.result",
    "Table": "tui.api.table",
}
"""Where names come from that are not calls. They are imported when they are used: the command line imports this too."""

_ELSEWHERE = {
    "TraceProcessor": 'tpuprof.open(path).query("SELECT name, sum(duration_ps) AS ps FROM events GROUP BY name")',
    "EventAccumulator": "tpuprof.runs(path)",
    "xspace_to_tool_data": 'tpuprof.open(path).report("overview")',
}
"""What does here what names of other packages do there."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - slow

        return version("tpuprof-tui")
    if name in _ELSEWHERE:  # of an AttributeError `from tpuprof import` would hide the words
        raise ImportError(f"{__name__} has no {name}. Try {_ELSEWHERE[name]}.", name=__name__)
    name = "open" if name in ("load", "read") else name
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}. It has {', '.join(__all__)}.")
    module = import_module(f"{__name__}.{_PLACES.get(name, 'tui.api.calls')}")
    found = getattr(module, "open_profile" if name == "open" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
