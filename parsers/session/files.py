"""How a session opens the files of its run's hosts, and which one before the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TypeVar

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, ProfileError
from tpuprof.parsers.base.text import examples, nearest_hint, printable
from tpuprof.parsers.files.core_names import core_label, core_named
from tpuprof.parsers.files.logdir import HostFile, Run
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.hosts.progress import Meter
from tpuprof.parsers.ops.device import core_title, device_ordinal, open_host, shortcoming, tensor_cores

_Part = TypeVar("_Part")


def opened(file: HostFile, meter: Meter | None = None) -> Trace:
    """A host's file, as much of it as is looked at; errors as for `open_host`.

    Args:
        meter: learns how far a remote file is fetched, and may end the work by `Cancelled`.
    """
    return open_host(file.path, file.host, file.core, None if meter is None else meter.fetched, file.part)


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


def each_host(
    files: Sequence[HostFile], meter: Meter, work: Callable[[HostFile, Meter], _Part]
) -> tuple[list[_Part], list[ProfileError]]:
    """Works on one host after the other; returns what worked, and what failed."""
    parts: list[_Part] = []
    failures: list[ProfileError] = []
    for index, file in enumerate(files):
        meter.begin(index)
        try:
            parts.append(work(file, meter))
        except ProfileError as error:
            failures.append(error)
    return parts, failures


def nothing_to_read(run: Run) -> ProfileError:
    """The error for a run of which no host can be read."""
    reasons = " ".join(problem.sentence for problem in run.problems)
    hint = next((problem.hint for problem in run.problems if problem.hint), "capture a profile first")
    return ProfileError("no_hosts", f"Run {run.name} holds no readable profile. {reasons}".rstrip(), hint)


# --- one core of a run


def narrowed(run: Run, core: str, host: str | None = None) -> Run:
    """The run with one core, or one chip, as all that is looked at, by any of its names (`parsers.files.core_names`).

    A title, ``Chip 2: TPU core 0``, is looked up in the profiles, of `host` or of all: they alone know its number.

    Raises:
        ProfileError: as `Run.of_core` and `open_host`; `unknown_core`, exit code 3, where no core has the title;
            `usage`, exit code 2, where cores of several hosts have it.
    """
    named = core_named(core)
    if named is None or not named.title or (named.host and host not in (None, named.host)):
        return run.of_core(core, host)
    having: list[str] = []
    titles: list[str] = []
    for file in run.files(named.host or host):
        of_file = _titles(file)
        titles += of_file
        having += [core_label(file.host, number) for title, number in of_file.items() if title == named.title]
    if not having:
        sentence = f"Run {printable(run.name)} has no core {named.title}."
        there_are = f"its cores are {examples(titles, 8)}" if titles else "its profile does not name the chips of cores"
        raise ProfileError("unknown_core", sentence, nearest_hint(named.title, titles, there_are), EXIT_NOT_FOUND)
    if len(having) > 1:
        sentence = f"Run {printable(run.name)} has several cores {named.title}: it is unclear which one is meant."
        raise ProfileError("usage", sentence, f"--core with one of: {examples(having, 8)}", EXIT_USAGE)
    return run.of_core(having[0])


def _titles(file: HostFile) -> dict[str, int]:
    """The titles of a host's cores, and the numbers of their planes."""
    with closing(open_host(file.path, file.host)) as trace:
        return {title: device_ordinal(plane) for plane in tensor_cores(trace) if (title := core_title(plane))}
