"""How a session opens the files of its run's hosts, and which one before the others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.files.logdir import HostFile
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.device import open_host, shortcoming


def opened(file: HostFile) -> Trace:
    """A host's file, as much of it as is looked at; errors as for `open_host`."""
    return open_host(file.path, file.host, file.core)


def best_first(files: Sequence[HostFile]) -> Sequence[HostFile]:
    """The hosts in order, but whole files with a device before damaged ones, and those without a device last."""
    return sorted(files, key=_shortcoming) if len(files) > 1 else files


def _shortcoming(file: HostFile) -> int:
    """See `device.shortcoming`; 2 for a file that can't be read."""
    try:
        with closing(opened(file)) as trace:
            return shortcoming(trace)
    except ProfileError:
        return 2
