"""Opens a run, with the cache of hosts where that is wanted."""

from __future__ import annotations

from collections.abc import Callable

from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.hosts.progress import Progress
from tpuprof.parsers.session.session import Session


def open_run(
    run: Run,
    on_progress: Callable[[Progress], None],
    is_cancelled: Callable[[], bool],
    *,
    cache: bool = False,
    cache_bytes: int | None = None,
    jobs: int | None = None,
) -> Session:
    """A session of a run.

    Args:
        on_progress, is_cancelled, jobs: see `Session`.
        cache, cache_bytes: whether what is read is kept for the next time, and how much at most (None: as usual).
    """
    return Session(run, on_progress, is_cancelled, cache=host_cache(cache, cache_bytes), jobs=jobs)


def host_cache(is_wanted: bool, most_bytes: int | None) -> HostCache | None:
    """The cache of hosts, where it is wanted; arguments as of `open_run`."""
    return HostCache(bound=most_bytes) if is_wanted else None
