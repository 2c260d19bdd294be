"""Runs that are hosts of one capture: where the clocks of hosts, or of what wrote them, differ, folders do too.

`Run.beside` has the runs of other hosts from about the same time. They are one capture where they run the same program,
whose collectives need more devices than each of them has, and at least as many as they have together.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from functools import lru_cache

from tpuprof.parsers.base.errors import EXIT_USAGE, ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.files.logdir import HostFile, is_remote
from tpuprof.parsers.files.runs import Run, may_be_one, together
from tpuprof.parsers.ops.device import open_host, tensor_cores
from tpuprof.parsers.steps.boundaries.replica_groups import groups_in
from tpuprof.parsers.steps.boundaries.runs import module_runs

_GROUPS = b"replica_groups="
_MOST_LOOKED_AT, _LONGEST = 256, 4096


@dataclass(frozen=True, slots=True)
class _Shape:
    """Names of the programs of some hosts, how many cores these have, and how many devices collectives need."""

    programs: frozenset[str]
    cores: int
    devices: int


def whole_capture(run: Run) -> Run | None:
    """The run with the hosts that other folders have of its capture; None where they have none."""
    if run.core or not run.beside or not run.hosts:
        return None
    taken, shapes = [run], [_shape(run.hosts)]
    for other in sorted(run.beside, key=lambda other: abs(other.time - run.time)):
        names = {file.host for each in taken for file in each.hosts}
        if names.isdisjoint(file.host for file in other.hosts) and _is_one([*shapes, shape := _shape(other.hosts)]):
            taken.append(other)
            shapes.append(shape)
    return together(taken) if len(taken) > 1 else None


def refuse_one_capture(before: Run, after: Run) -> None:
    """Raises for two runs that are hosts of one capture, and not before and after.

    Raises:
        ProfileError: `same_run`, exit code 2.
    """
    if are_of_one_capture(before, after):
        sentence = (
            f"{printable(before.name)} and {printable(after.name)} are hosts of one capture, not before and after."
        )
        paths = f"'{printable(before.path)}' '{printable(after.path)}'"
        raise ProfileError("same_run", sentence, f"tpuprof-tui report hosts {paths} opens them as one", EXIT_USAGE)


def are_of_one_capture(one: Run, other: Run) -> bool:
    """Whether two runs are hosts of one capture."""
    return may_be_one([one, other]) and _is_one([_shape(one.hosts), _shape(other.hosts)])


def whole_captures(runs: Sequence[Run]) -> list[Run]:
    """Some runs, those that are hosts of one capture together."""
    out: list[Run] = []
    for run in runs:
        if not any(run.hosts and set(run.hosts) <= set(whole.hosts) for whole in out):
            out.append(whole_capture(run) or run)
    return out


def _is_one(shapes: Sequence[_Shape | None]) -> bool:
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes) or not frozenset.intersection(*(shape.programs for shape in known)):
        return False
    devices = {shape.devices for shape in known}
    return len(devices) == 1 and sum(shape.cores for shape in known) <= devices.pop()


def split_words(run: Run) -> list[str]:
    """A sentence where other folders have hosts of the run's capture."""
    whole = whole_capture(run)
    if whole is None:
        return []
    mine = {file.host for file in run.hosts}
    rest = [file.host for file in whole.hosts if file.host not in mine]
    names = {other.name: [file.host for file in other.hosts if file.host in rest] for other in run.beside}
    places = [f"{examples(hosts)} in {folder}" for folder, hosts in names.items() if hosts]
    return [
        f"{examples(places)} ran the same program at the same time, and its collectives need the devices of "
        f"{'both' if len(places) == 1 else 'all of them'}: that is one capture. "
        f"--run {printable(whole.name)}, or `H` and `0`, opens it whole"
    ]


def capture_words(runs: Sequence[Run]) -> list[str]:
    """A sentence for each capture whose hosts lie in several folders."""
    return [
        f"one capture lies in several folders, each with hosts of its own: --run {printable(whole.name)} opens it whole"
        for whole in whole_captures(runs)
        if whole not in runs
    ]


@lru_cache(maxsize=256)
def _shape(files: tuple[HostFile, ...]) -> _Shape | None:
    """None for hosts that are not on this machine, or can't be read."""
    programs, cores, devices = set[str](), 0, 0
    for file in files:
        if is_remote(file.path):
            return None
        try:
            with closing(open_host(file.path, file.host)) as trace:
                planes = tensor_cores(trace)
                cores += len(planes)
                for plane in planes[:1]:
                    programs.update(module_runs(plane).names)
                    devices = max(devices, _devices(plane.event_metadata.body))
        except (ProfileError, OSError):
            return None
    return _Shape(frozenset(programs), cores, devices)


def _devices(texts: bytes) -> int:
    """The most devices that a collective in these texts of ops needs."""
    most = at = 0
    for _ in range(_MOST_LOOKED_AT):
        at = texts.find(_GROUPS, at)
        if at < 0:
            break
        groups = groups_in(texts[at : at + _LONGEST].decode(errors="replace"))
        most = max(most, groups.count * groups.size if groups is not None and not groups.are_pairs else 0)
        at += len(_GROUPS)
    return most
