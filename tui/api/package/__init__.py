"""Profiles of TPU programs in Python: the same figures as ``tpuprof-tui report``, as columns and dataclasses.

    >>> import tpuprof
    >>> profile = tpuprof.open("demo")
    >>> profile.overview().performance.step_time.count
    20
    >>> ops = profile.table("ops", sort="self_time_ps", limit=3)
    >>> ops["name"].tolist()
    ['fusion.397', 'fusion.362', 'fusion.315']

`open` opens a profile, `findings` says why a program is slow, `kernel_times` gives the times of one kernel's runs, and
`capture` asks a running program for a profile. Errors are `ProfileError`.

Names in `__all__` are stable; everything below `tpuprof.parsers` and `tpuprof.tui` may change from version to version,
except the dataclasses that the methods of a `Profile` return: they keep their attributes within a major version.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpuprof.parsers.base.errors import ProfileError
    from tpuprof.tui.api.calls import findings, kernel_times
    from tpuprof.tui.api.live import capture
    from tpuprof.tui.api.profile import Profile
    from tpuprof.tui.api.profile import open_profile as open
    from tpuprof.tui.api.table import Column, Table

__all__ = ["Column", "Profile", "ProfileError", "Table", "capture", "findings", "kernel_times", "open"]

_PLACES = {
    "Column": "tui.api.table:Column",
    "Profile": "tui.api.profile:Profile",
    "ProfileError": "parsers.base.errors:ProfileError",
    "Table": "tui.api.table:Table",
    "capture": "tui.api.live:capture",
    "findings": "tui.api.calls:findings",
    "kernel_times": "tui.api.calls:kernel_times",
    "open": "tui.api.profile:open_profile",
}
"""Where each name comes from. It is imported when it is used first, for the command line imports this file too."""


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any of the names above
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _PLACES[name].partition(":")
    found = getattr(import_module(f"{__name__}.{module}"), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
