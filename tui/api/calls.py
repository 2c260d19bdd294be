"""What `import tpuprof` offers to call: opening, and single questions for scripts and notebooks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from tempfile import TemporaryDirectory, mkdtemp
from typing import TYPE_CHECKING

from tpuprof.parsers.capture.model import CaptureOptions
from tpuprof.parsers.files.file_kinds import may_be_hlo, recognised
from tpuprof.parsers.files.logdir import Logdir, Run, local_path, open_logdir
from tpuprof.parsers.formats.hlo.files import is_program_text
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.pages.shared.key import Later
from tpuprof.parsers.session.diff.compare import compare_launches
from tpuprof.parsers.session.diff.sides import compared_runs, refuse_arrays
from tpuprof.parsers.session.hlo import HloSession, leads_to_hlo, open_hlo
from tpuprof.parsers.session.live_arrays import leads_to_arrays, open_arrays
from tpuprof.parsers.session.one_core import narrowed
from tpuprof.parsers.session.opening import open_run
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.arguments import check
from tpuprof.tui.api.profile import ARRAYS, LOG, MODULES, PROFILE, Kind, Profile
from tpuprof.tui.api.result import Result, oom_of, result_of
from tpuprof.tui.demo import demo_path
from tpuprof.tui.terminal.detect import read_config
from tpuprof.tui.terminal.progress import ProgressLine

if TYPE_CHECKING:
    from tpuprof.parsers.base.intervals import Int64s
    from tpuprof.parsers.memory.batch.fit import BatchFit
    from tpuprof.parsers.pages.findings.finding import Finding
    from tpuprof.tui.api.table import Table

Bytes = bytes | bytearray | memoryview
Path = str | os.PathLike[str]
_CAPTURE = Later("tpuprof.parsers.capture.session:capture")
"""Loads gRPC."""


def open_profile(
    path: Path | Bytes,
    *,
    run: str | None = None,
    host: str | None = None,
    core: str | int | None = None,
    cache: bool = True,
    jobs: int | None = None,
    progress: bool | None = None,
) -> Profile:
    """Opens a profile; files are read on demand.

    Args:
        path: a logdir, any folder above it, a run, a file, an archive, a glob or a URL; ``"demo"`` for the demo; a
            compiler's dump, a device memory profile, a log with an out-of-memory error; or the bytes of a file.
        run: name of the run, or its beginning; None for the newest.
        host: the only host to read; None for all hosts.
        core: the one core (``0``, ``host0:2``) or chip (``host0:chip1``), by any of its names; None for all cores.
        cache: whether to keep what was read in the user's cache folder, unless ``TPUPROF_CACHE`` is ``off``.
        jobs: how many processor cores may read; None for all.
        progress: whether a line on standard error says how far reading is; None: in a notebook or another interactive
            session.

    Raises:
        ProfileError: the path has no profile (exit code 3), it can't be read (4), or it has no such run, host or core
            (3).

    >>> import tpuprof
    >>> with tpuprof.open("demo", core=0) as profile:
    ...     profile.name, profile.run.core
    ('demo', 'demo:0')
    """
    check(run=run, host=host, core=core)
    with ExitStack() as folder:
        if isinstance(path, Bytes):
            cache, data = False, path
            path = _written(data, folder.enter_context(TemporaryDirectory(prefix="tpuprof-")))
        logdir, kind = _found(_path_of(path))
        opened = _opener(cache, jobs, progress)
        if kind is not PROFILE:
            made = HloSession(logdir.runs[0]) if kind is MODULES else None
            return Profile(logdir, made, None, opened, kind, folder.pop_all().close)
        chosen = logdir.find_run(run)
        chosen = chosen if core is None else narrowed(chosen, str(core), host)
        chosen.files(host)
        return Profile(logdir, opened(chosen), host, opened, PROFILE, folder.pop_all().close)


def _found(path: str) -> tuple[Logdir, Kind]:
    """What a path leads to, by a first look as on the command line; to a profile if it leads to nothing else."""
    if (arrays := leads_to_arrays(path)) is not None:
        return open_arrays(arrays), ARRAYS
    where = local_path(path)
    known = recognised(where)
    if known is not None and known.reader == "log":
        return Logdir(path, (Run(os.path.basename(where), where, (), ()),), (), ()), LOG
    if is_program_text(where) or (may_be_hlo(where) and leads_to_hlo(path)):
        return open_hlo(path, as_text=is_program_text(where)), MODULES
    return open_logdir(path), PROFILE


def _path_of(path: object) -> str:
    """A path as a text, also that of a row of `tpuprof.runs`; that of the demo for its name."""
    path = getattr(path, "path", path)
    check(path=path)
    return demo_path() if path == "demo" else os.fsdecode(path)  # type: ignore[arg-type] # it is checked


def _written(data: Bytes, folder: str) -> str:
    """A file in a folder with some bytes, for readers of files: its name says nothing of what it is."""
    path = os.path.join(folder, "data", "bytes")
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(data)
    return path


def _opener(cache: bool = True, jobs: int | None = None, progress: bool | None = None) -> Callable[[Run], Session]:
    """What opens a run; arguments as of `open_profile`."""
    config, line = read_config(os.environ), ProgressLine(sys.stderr.write)
    is_shown = hasattr(sys, "ps1") if progress is None else progress

    def draw(now: Progress) -> None:
        if now.bytes_done < now.bytes_total:
            line(now)
        else:
            line.clear()

    def opened(run: Run) -> Session:
        on_progress, is_kept = draw if is_shown else lambda _: None, cache and config.cache
        return open_run(run, on_progress, lambda: False, cache=is_kept, cache_bytes=config.cache_bytes, jobs=jobs)

    return opened


def capture(
    address: str | Sequence[str],
    logdir: Path = ".",
    *,
    ms: int = CaptureOptions().duration_ms,
    options: CaptureOptions | None = None,
) -> Profile:
    """Asks running programs for a profile, writes it below a logdir, and opens it.

    Args:
        address: of the profiler server, ``host:port``, or several of them; ``@workers:port`` for all of a slice.
        logdir: the run is written to ``LOGDIR/plugins/profile/YYYY_MM_DD_HH_MM_SS``.
        ms: how long to trace.
        options: all options of a capture, instead of `ms`.

    Raises:
        ProfileError: no server gave a profile, or the folder can't be written (exit code 7).
    """
    addresses = [address] if isinstance(address, str) else list(address)
    result = _CAPTURE(addresses, options or CaptureOptions(duration_ms=ms), os.fspath(logdir))
    return open_profile(result.run_path)


def runs(path: Path, *, facts: bool = False) -> Table:
    """The runs of a logdir, the newest first; with `facts` their step time, device and modules, some 10 ms each.

    >>> import tpuprof
    >>> tpuprof.runs("demo")["name"].tolist()
    ['demo']
    """
    return open_profile(path).table("runs", facts=facts)


def findings(path: Path | Bytes, *, run: str | None = None, host: str | None = None) -> tuple[Finding, ...]:
    """Why a program is slow; see `Profile.findings`, and for the arguments `tpuprof.open`.

    >>> import tpuprof
    >>> [finding.kind for finding in tpuprof.findings("demo")][:2]
    ['collective', 'unfused']
    """
    with open_profile(path, run=run, host=host) as profile:
        return profile.findings()


def kernel_times(path: Path | Bytes, name: str, *, module: str | None = None, core: str | int | None = None) -> Int64s:
    """How long each run of a kernel took, in picoseconds; see `Profile.kernel_times`, and for `path` `tpuprof.open`.

    >>> import numpy, tpuprof
    >>> times = tpuprof.kernel_times("demo", "fusion.349")
    >>> len(times), float(numpy.median(times)) / 1e6  # microseconds
    (240, 2439.5776)
    """
    with open_profile(path, core=core) as profile:
        return profile.kernel_times(name, module)


def memory(path: Path | Bytes) -> Result:
    """The memory of compiled modules: of a profile, or of a compiler's dump; errors as of `tpuprof.open`.

    Its main table has the HBM buffers of the largest module at its peak, `modules` all modules.
    """
    with open_profile(path) as profile:
        return profile.result("memory", {})


def program(path: Path | Bytes, *, module: str | None = None, device: str | None = None) -> Result:
    """A compiled program before it runs: of a profile, of a compiler's dump, or its text; errors as of `tpuprof.open`.

    Its main table has the ops, the longest first, `arrays` what they move, `modules` all programs of the path.

    Args:
        module: the name of the program; None for the one that takes longest.
        device: the TPU that it is for, such as ``v6e``; None for the one that the file says.
    """
    given = {"module": module, "device": device}
    with open_profile(path) as profile:
        return profile.result("program", {name: value for name, value in given.items() if value is not None})


def fit(path: Path | Bytes, *, module: str | None = None, device: str | None = None) -> BatchFit:
    """The largest batch with which a compiled module fits; see `Profile.fit`, and for `path` `tpuprof.open`.

    >>> import tpuprof
    >>> found = tpuprof.fit("demo")
    >>> found.batch, found.largest
    (8, 12)
    """
    with open_profile(path) as profile:
        return profile.fit(module, device)


def diff(before: Path | Profile, after: Path | Profile | None = None, *, host: str | None = None) -> Result:
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
    check(host=host)
    sides, opened = [side for side in (before, after) if side is not None], _opener()
    profiles = {side.path: side for side in sides if isinstance(side, Profile)}
    paths = [side.path if isinstance(side, Profile) else _path_of(side) for side in sides]
    refuse_arrays(paths)
    logdirs = [Logdir(path, (profiles[path].run,), (), ()) if path in profiles else open_logdir(path) for path in paths]
    one, other = (
        [profiles[run.path].session if run.path in profiles else opened(run) for run in runs]
        for runs in compared_runs(paths, logdirs)
    )
    compared, _ = compare_launches((one, other), host)
    return result_of("diff", compared, compared)


def oom(*sources: Path | Bytes | Exception) -> Result:
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


def _source(source: Path | Bytes | Exception, folder: str) -> str:
    """The path of a source; of a text that is not a path the path of a file with it."""
    if isinstance(source, Exception):
        source = str(source).encode("utf-8", "surrogateescape")
    if isinstance(source, str) and ("\n" in source or (" " in source and not os.path.lexists(source))):
        source = source.encode("utf-8", "surrogateescape")
    return _written(source, mkdtemp(dir=folder)) if isinstance(source, Bytes) else _path_of(source)
