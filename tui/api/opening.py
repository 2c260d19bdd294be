"""Opens profiles, and what opens like one: dumps of a compiler, device memory profiles, logs, and the bytes of each."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from numbers import Integral
from tempfile import mkdtemp

from tpuprof.parsers.files.file_kinds import may_be_hlo, recognised
from tpuprof.parsers.files.logdir import Logdir, Run, local_path, open_logdir
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.session.hlo import HloSession, leads_to_hlo, open_hlo
from tpuprof.parsers.session.live_arrays import leads_to_arrays, open_arrays
from tpuprof.parsers.session.one_core import narrowed
from tpuprof.parsers.session.opening import open_run
from tpuprof.parsers.session.session import Session
from tpuprof.tui.api.chosen import check_texts, refused
from tpuprof.tui.api.kinds import ARRAYS, LOG, MODULES, PROFILE, Kind
from tpuprof.tui.api.profile import Profile
from tpuprof.tui.demo import demo_path
from tpuprof.tui.terminal.custom import read_config
from tpuprof.tui.terminal.progress import FIRST_AFTER_SECONDS, ProgressLine

DEMO = "demo"
Bytes = bytes | bytearray | memoryview


def open_profile(
    path: str | os.PathLike[str] | Bytes,
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
    check_texts('tpuprof.open("logs", run="2026_01_31", host="host0")', run=run, host=host)
    core_name = str(core) if isinstance(core, Integral) else core
    check_texts("core=0", core=core_name)
    folder = None
    if isinstance(path, Bytes):
        folder, cache = mkdtemp(prefix="tpuprof-"), False
        path = written(path, folder)
    try:
        where = path_of(path)
        logdir, kind = _found(where)
        opened = opener(cache, jobs, progress)
        if kind is not PROFILE:
            made = HloSession(logdir.runs[0]) if kind is MODULES else None
            return Profile(logdir, made, None, opened, kind, folder)
        chosen = logdir.find_run(run)
        chosen = chosen if core_name is None else narrowed(chosen, str(core_name), host)
        chosen.files(host)
        return Profile(logdir, opened(chosen), host, opened, folder=folder)
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def path_of(path: object) -> str:
    """A path as a text; that of the demo for its name.

    Raises:
        ProfileError: it is of a wrong kind.
    """
    if not isinstance(path, str | os.PathLike):
        raise refused("path", path, "a path, or the bytes of a file", 'tpuprof.open("logs")')
    return demo_path() if path == DEMO else os.fsdecode(path)


def written(data: Bytes, folder: str) -> str:
    """A file in a folder with some bytes, for readers of files: its name says nothing of what it is."""
    path = os.path.join(folder, "data", "bytes")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    return path


def opener(cache: bool = True, jobs: int | None = None, progress: bool | None = None) -> Callable[[Run], Session]:
    """What opens a run; arguments as of `open_profile`."""
    config = read_config(os.environ)
    is_shown = hasattr(sys, "ps1") if progress is None else progress
    shown: Callable[[Progress], None] = _LineWhileReading() if is_shown else lambda _: None

    def opened(run: Run) -> Session:
        is_kept = cache and config.cache
        return open_run(run, shown, lambda: False, cache=is_kept, cache_bytes=config.cache_bytes, jobs=jobs)

    return opened


class _LineWhileReading(ProgressLine):
    """How far reading is, on standard error; gone when all is read."""

    def __init__(self) -> None:
        super().__init__(sys.stderr.write)

    def __call__(self, progress: Progress) -> None:
        if progress.bytes_done < progress.bytes_total:
            super().__call__(progress)
        else:
            self.clear()
            self._due = self._clock() + FIRST_AFTER_SECONDS


def _found(path: str) -> tuple[Logdir, Kind]:
    """What a path leads to, by a first look as on the command line; to a profile if it leads to nothing else."""
    if (arrays := leads_to_arrays(path)) is not None:
        return open_arrays(arrays), ARRAYS
    where = local_path(path)
    known = recognised(where)
    if known is not None and known.reader == "log":
        return Logdir(path, (Run(os.path.basename(where), where, (), ()),), (), ()), LOG
    if may_be_hlo(where) and leads_to_hlo(path):
        return open_hlo(path), MODULES
    return open_logdir(path), PROFILE
