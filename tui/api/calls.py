"""Single calls for scripts and notebooks."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING

from tpuprof.parsers.files.logdir import open_logdir
from tpuprof.parsers.session.diff.compare import compare_launches
from tpuprof.parsers.session.diff.sides import launches, refuse_arrays, refuse_same, run_before
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.chosen import check_texts
from tpuprof.tui.api.opening import Bytes, open_profile, opener, path_of, written
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.api.result import Result, oom_of
from tpuprof.tui.pages import command_named

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Int64s
    from tpuprof.parsers.memory.batch.fit import BatchFit
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.parsers.pages.memory.compiled import CompiledModules
    from tpuprof.tui.api.table import Table


def findings(
    path: str | os.PathLike[str] | Bytes, *, run: str | None = None, host: str | None = None
) -> tuple[Finding, ...]:
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
    with open_profile(path, run=run, host=host) as profile:
        return profile.findings()


def kernel_times(
    path: str | os.PathLike[str] | Bytes,
    name: str,
    *,
    module: str | None = None,
    core: str | int | None = None,
) -> Int64s:
    """Times each run of a kernel.

    Args:
        path: of a profile, or its bytes, as in `tpuprof.open`.
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
    with open_profile(path, core=core) as profile:
        return profile.kernel_times(name, module)


def runs(path: str | os.PathLike[str], *, facts: bool = False) -> Table:
    """The runs of a logdir, the newest first.

    Args:
        path: as in `tpuprof.open`.
        facts: whether to look into each run, some 10 ms each, for its step time, device and modules.

    Raises:
        ProfileError: the path leads to no run.

    >>> import tpuprof
    >>> tpuprof.runs("demo")["name"].tolist()
    ['demo']
    """
    logdir, opened = open_logdir(path_of(path)), opener()
    return Profile(logdir, opened(logdir.runs[0]), None, opened).table("runs", facts=facts)


def diff(
    before: str | os.PathLike[str] | Profile,
    after: str | os.PathLike[str] | Profile | None = None,
    *,
    host: str | None = None,
) -> Result:
    """Compares two runs: what changed, why, and how much of it is noise.

    Args:
        before, after: open profiles, or paths as in `tpuprof.open`; patterns mean several launches. Without `after`,
            the newest run of a logdir is compared with the run before it.
        host: the only host to compare; None for all.

    Returns:
        A result whose `page` is the comparison, and whose main table has the ops, the largest change first.

    Raises:
        ProfileError: there is only one run, or a run can't be read.
    """
    check_texts('diff("logs", host="host0")', host=host)
    refuse_arrays(path_of(side) for side in (before, after) if not isinstance(side, Profile | None))
    opened = opener()

    def sessions(side: str | os.PathLike[str] | Profile) -> list[Session]:
        if isinstance(side, Profile):
            return [side.session]
        return [opened(run) for run in launches(path_of(side), open_logdir(path_of(side)))]

    if after is None:
        logdir = open_logdir(path_of(before))
        one, other = [opened(run_before(path_of(before), logdir, logdir.runs[0]))], [opened(logdir.runs[0])]
    else:
        one, other = sessions(before), sessions(after)
    runs_before = [session.run for session in one]
    refuse_same(runs_before, [session.run for session in other], runs_before)
    compared, _ = compare_launches((one, other), host)
    return Result("diff", compared, command_named("diff").load_report().read(compared))


def oom(*sources: str | os.PathLike[str] | Bytes | Exception) -> Result:
    """Finds out what ran out of memory, and what to do first.

    Args:
        sources: the path of a log, its text or bytes, or the error that JAX raised; beside it the compiler's dump, and
            a device memory profile.

    Returns:
        A result whose main table has the errors; those of `advice` and `buffers` are about the first one. Its `page`
        has each error in `triages`.

    Raises:
        ProfileError: there is no out-of-memory error, or a file can't be read.
    """
    with TemporaryDirectory(prefix="tpuprof-") as folder:
        return oom_of([_source(source, folder) for source in sources])


def _source(source: str | os.PathLike[str] | Bytes | Exception, folder: str) -> str:
    """The path of a source; of a text that is not a path the path of a file with it."""
    if isinstance(source, Exception):
        source = str(source).encode("utf-8", "surrogateescape")
    if isinstance(source, str) and ("\n" in source or (" " in source and not os.path.lexists(source))):
        source = source.encode("utf-8", "surrogateescape")
    return written(source, mkdtemp(dir=folder)) if isinstance(source, Bytes) else path_of(source)


def memory(path: str | os.PathLike[str] | Bytes) -> CompiledModules:
    """The memory of compiled modules: of a profile, or of a compiler's dump; errors as of `tpuprof.open`."""
    with open_profile(path) as profile:
        return profile.memory()


def fit(path: str | os.PathLike[str] | Bytes, *, module: str | None = None, device: str | None = None) -> BatchFit:
    """The largest batch with which a compiled module fits; see `Profile.fit`, and for `path` `tpuprof.open`.

    >>> import tpuprof
    >>> found = tpuprof.fit("demo")
    >>> found.batch, found.largest
    (8, 13)
    """
    with open_profile(path) as profile:
        return profile.fit(module, device)
