"""A run: the hosts of one capture, which mostly lie in one folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise

from tpuprof.parsers.base.errors import EXIT_NOT_FOUND, EXIT_USAGE, Problem, ProfileError
from tpuprof.parsers.base.record import dataclass, field, replace
from tpuprof.parsers.base.regex import pattern
from tpuprof.parsers.base.text import examples, natural_key, nearest_hint, printable
from tpuprof.parsers.files.core_names import BETWEEN_HOSTS, core_label, core_named
from tpuprof.parsers.files.places import HostFile

_RUN_TIME = pattern(r"(?a)(\d{4})_(\d\d)_(\d\d)_(\d\d)_(\d\d)_(\d\d)(?!\d)")


@dataclass(frozen=True, slots=True)
class Run:
    """One capture: a folder with a file per host, or a single file that was asked for.

    Attributes:
        name: folder name, with the relative logdir in front (``train/2026_…``) where runs share a name. For a single
            file the folder's name too, or the file's where the folder's says nothing (``/tmp``, the home folder).
        path: the folder, or the single file.
        hosts: in natural order of their names, host2 before host10; empty when every file has a problem.
        problems: files that are left out, by name, then notes.
        folder_modified: seconds since 1970, of the newest problem file or else the folder; for runs without hosts.
        beside: the runs of other hosts from about the same time, which may be of the same capture.
    """

    name: str
    path: str
    hosts: tuple[HostFile, ...]
    problems: tuple[Problem, ...]
    folder_modified: float = 0.0
    beside: tuple[Run, ...] = field(default=(), compare=False, repr=False)

    @property
    def warnings(self) -> list[str]:
        """What answers about it warn of: not that XProf keeps files beside it, which the list of runs says."""
        return [problem.sentence for problem in self.problems if problem.code != "xprof_cache"]

    @property
    def size_bytes(self) -> int:
        """Sum over the host files, as they lie on disk."""
        return sum(host.size_bytes for host in self.hosts)

    @property
    def modified(self) -> float:
        """Seconds since 1970: the newest host file, or `folder_modified` where there is none."""
        return max((host.modified for host in self.hosts), default=self.folder_modified)

    @property
    def time(self) -> float:
        """Seconds since 1970 that order runs: the time in a name ``YYYY_MM_DD_HH_MM_SS…``, else `modified`.

        The profiler writes local time without a zone, so the name is read as local time here.
        """
        match = _RUN_TIME.match(folder_part(self.name))
        if match:
            year, month, day, hour, minute, second = map(int, match.groups())
            with contextlib.suppress(ValueError, OverflowError, OSError):  # 2026_99_…: looks like a time and is none
                return datetime(year, month, day, hour, minute, second).timestamp()
        return self.modified

    @property
    def core(self) -> str:
        """The core, cores or chip that are all that is looked at, ``host:2``; empty for all."""
        return BETWEEN_HOSTS.join(core_label(file.host, file.core) for file in self.hosts if file.core)

    def files(self, host: str | None = None) -> Sequence[HostFile]:
        """The file of one host, by its name or a beginning that only one has, or the files of all.

        Raises:
            ProfileError: `unknown_host`, exit code 3, with the nearest of the hosts that there are.
        """
        chosen = [file for file in self.hosts if host in (None, file.host)]
        begun = [file for file in self.hosts if host and file.host.startswith(host)]
        if not chosen and len(begun) == 1:
            return begun
        if not chosen and host is not None:
            names = [file.host for file in self.hosts]
            hint = nearest_hint(host, names, f"its hosts: {examples(names, 12) or 'none'}")
            sentence = f"Run {printable(self.name)} has no host {printable(host)}."
            raise ProfileError("unknown_host", sentence, hint, EXIT_NOT_FOUND)
        return chosen

    def of_core(self, core: str, host: str | None = None) -> Run:
        """The run with one core, or one chip, as all that is looked at; whether there is one shows when it is read.

        Args:
            core: a name of `parsers.files.core_names` that has a number: ``host:2``, ``host:chip1``, ``/device:TPU:2``;
                without the host where there is one, or `host` says which; or several, as `labels_together` makes them.
                For titles and groups see `narrowed`.

        Raises:
            ProfileError: `usage`, exit code 2, where it is none of these; `unknown_host`, exit code 3.
        """
        if BETWEEN_HOSTS in core:
            several = [self.of_core(part, host).hosts for part in core.split(BETWEEN_HOSTS)]
            return replace(self, hosts=tuple(file for files in several for file in files))
        named = core_named(core)
        if named is None or not named.core or (named.host and host not in (None, named.host)):
            sentence = f"{printable(core)!r} is not a core{f' of host {host}' if named else ''}."
            raise ProfileError("usage", sentence, "--core HOST:2, HOST:chip1, or 2 where there is one host", EXIT_USAGE)
        files = self.files(named.host or host)
        if len(files) != 1:
            few = ", ".join(file.host for file in self.hosts[:4])
            sentence = f"Run {self.name} has {len(files)} hosts: it is unclear which host's core {named.core} is meant."
            raise ProfileError("usage", sentence, f"--core HOST:{named.core}; its hosts: {few or 'none'}", EXIT_USAGE)
        return replace(self, hosts=(replace(files[0], core=named.core),))


def newest_first(runs: Iterable[Run]) -> list[Run]:
    """Runs in the order of `Logdir.runs`."""
    return sorted(runs, key=lambda run: (-run.time, natural_key(run.name)))


AND = "+"
_AT_ONCE_S = 120.0
"""Hosts of one capture that lie in several folders have times no further apart than this."""


def together(runs: Sequence[Run]) -> Run:
    """Runs that are hosts of one capture as one run, which lies where the newest does."""
    ordered = sorted(runs, key=lambda run: run.time)
    hosts = sorted((file for run in ordered for file in run.hosts), key=lambda file: natural_key(file.host))
    problems = tuple(problem for run in ordered for problem in run.problems)
    return replace(ordered[-1], name=AND.join(run.name for run in ordered), hosts=tuple(hosts), problems=problems)


def may_be_one(runs: Sequence[Run]) -> bool:
    """Whether runs are of different hosts, in different folders, and from about the same time."""
    names, times = [file.host for run in runs for file in run.hosts], sorted(run.time for run in runs)
    near = all(later - earlier <= _AT_ONCE_S for earlier, later in pairwise(times))
    are_apart = len({run.hosts[0].path.rpartition("/")[0] for run in runs if run.hosts}) == len(runs)
    return len(runs) > 1 and near and are_apart and len(set(names)) == len(names)


def with_neighbours(runs: Sequence[Run]) -> list[Run]:
    """The runs, newest first, each with those `beside` it."""
    ordered, found = newest_first(runs), []
    for at, run in enumerate(ordered):
        near = [other for other in ordered[max(0, at - _MOST_BESIDE) : at + _MOST_BESIDE + 1] if other is not run]
        beside = [other for other in near if is_named_after_time(run) and may_be_one([run, other])]
        found.append(replace(run, beside=tuple(beside)))
    return found


_MOST_BESIDE = 64


def folder_part(name: str) -> str:
    """The folder in the name of a run, which may have its logdir in front."""
    return name.rpartition("/")[2]


def is_named_after_time(run: Run) -> bool:
    """Whether the run's folder has the name that a profiler gives it, ``YYYY_MM_DD_HH_MM_SS``."""
    return _RUN_TIME.match(folder_part(run.name)) is not None
