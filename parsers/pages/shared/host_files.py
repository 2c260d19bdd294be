"""How the files of a run's hosts are opened, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

from tpuprof.parsers.base.errors import Part, ProfileError, one_part
from tpuprof.parsers.base.text import printable
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.progress import Meter
from tpuprof.parsers.ops.device import open_host


def opened(file: HostFile, meter: Meter | None = None) -> Trace:
    """A host's file, as much of it as is looked at; errors as for `open_host`.

    Args:
        meter: learns how far a remote file is fetched, and may end the work by `Cancelled`.
    """
    return open_host(file.path, file.host, file.core, None if meter is None else meter.fetched, file.part)


@contextmanager
def reading(file: HostFile, meter: Meter | None = None) -> Iterator[Trace]:
    """A host's file for as long as it is worked on; errors of opening it and of the work as for `one_part`."""
    with one_part(f"read {printable(file.path)}"), closing(opened(file, meter)) as trace:
        yield trace


def each_host(
    files: Sequence[HostFile], meter: Meter, work: Callable[[HostFile, Meter], Part]
) -> tuple[list[Part], list[ProfileError]]:
    """Works on one host after the other; returns what worked, and what failed."""
    parts: list[Part] = []
    failures: list[ProfileError] = []
    for index, file in enumerate(files):
        meter.begin(index)
        try:
            with one_part(f"read {printable(file.path)}"):
                parts.append(work(file, meter))
        except ProfileError as error:
            failures.append(error)
    return parts, failures


def nothing_to_read(run: Run) -> ProfileError:
    """The error for a run of which no host can be read."""
    reasons = " ".join(problem.sentence for problem in run.problems)
    hint = next((problem.hint for problem in run.problems if problem.hint), "capture a profile first")
    return ProfileError("no_hosts", f"Run {run.name} holds no readable profile. {reasons}".rstrip(), hint)
