"""Single calls for scripts and notebooks."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tpuprof.tui.api.profile import open_profile

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Int64s
    from tpuprof.parsers.pages.findings.finding import Finding


def findings(path: str | os.PathLike[str], *, run: str | None = None, host: str | None = None) -> tuple[Finding, ...]:
    """Finds why a program is slow, the largest saving first; `Profile.table` has the findings as columns.

    Args:
        path, run, host: as in `tpuprof.open`.

    Returns:
        Frozen dataclasses: `kind`, `title`, `worth_ps` (picoseconds a step, or in the capture: `per` says which; None
        where unknown), `evidence`, `advice`, and `subject` with the ops, hosts and cores.

    Raises:
        ProfileError: as `tpuprof.open`.

    >>> import tpuprof
    >>> [finding.kind for finding in tpuprof.findings("demo")][:2]
    ['collective', 'unfused']
    """
    return open_profile(path, run=run, host=host).findings()


def kernel_times(
    path_or_bytes: str | os.PathLike[str] | bytes | bytearray | memoryview,
    name: str,
    *,
    module: str | None = None,
    core: str | None = None,
) -> Int64s:
    """Times each run of a kernel.

    Args:
        path_or_bytes: the path of a profile (see `tpuprof.open`), or the bytes of an XSpace.
        name: of an HLO op, a kernel (a custom call), or a framework op.
        module: ``name`` or ``name(program id)`` of its module; None for the module in which it takes most time.
        core: the only core to read; None for all.

    Returns:
        int64[runs], in picoseconds (divide by 1e6 for microseconds): core by core, each in the order of the profile;
        from start to end by the device's clock.

    Raises:
        ProfileError: `unknown_op` with the nearest names; `no_runs` if the profile has the op but no run of it; and
            those of `tpuprof.open`.

    >>> import numpy, tpuprof
    >>> times = tpuprof.kernel_times("demo", "fusion.349")
    >>> len(times), float(numpy.median(times)) / 1e6  # microseconds
    (240, 2439.5776)
    """
    if not isinstance(path_or_bytes, bytes | bytearray | memoryview):
        return open_profile(path_or_bytes, core=core).kernel_times(name, module)
    with TemporaryDirectory(prefix="tpuprof-") as folder:  # sessions read files: one name finds the same runs in both
        path = os.path.join(folder, "memory.xplane.pb")
        with open(path, "wb") as file:
            file.write(path_or_bytes)
        return open_profile(path, core=core, cache=False).kernel_times(name, module)
