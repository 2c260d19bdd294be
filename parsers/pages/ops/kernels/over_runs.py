"""Which block size, over the runs of a log folder: what is compared of each run's kernels, kept from look to look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.hosts.cache import HostCache
from tpuprof.parsers.pages.ops.kernels.page import TPU_KERNELS
from tpuprof.parsers.pages.ops.kernels.variants import KernelOfRun, Variant, kernel_of_run, variants
from tpuprof.parsers.pages.shared.kept_by_run import KeptByRun
from tpuprof.parsers.pages.shared.key import PageSession

NOT_COMPARED = "none of its kernels ran with blocks of another size"


@dataclass(frozen=True, slots=True)
class KernelsOfRun:
    """The kernels of a run, those with most time first; where there are none, `why` says why."""

    kernels: tuple[KernelOfRun, ...]
    why: str


@dataclass(frozen=True, slots=True)
class RunVariant:
    """A kernel of a run among the others; or a run without any.

    Attributes:
        variant: None for a run of which no kernel is compared.
        why_not: why that is so; empty where `variant` is there.
        is_unread: whether it is so because the run can't be read.
    """

    run: str
    variant: Variant[KernelOfRun] | None
    why_not: str = ""
    is_unread: bool = False


def variants_of_runs(
    runs: Sequence[Run],
    place: str,
    cache: HostCache | None,
    session: Callable[[Run], PageSession],
    name: str | None = None,
) -> tuple[RunVariant, ...]:
    """Over all runs the kernels that have blocks of several sizes, the fastest of each kernel first.

    Kernels with most time come first; the runs without a kernel among them come last, in the order given.

    Args:
        place: the path of the folder, which distinguishes what is kept of it.
        cache: where it is kept; None for nowhere.
        session: opens a run that isn't kept.
        name: of a kernel or of its op: that kernel alone; None for all.
    """
    known = KeptByRun(cache, "kernels", place, KernelsOfRun)
    found: list[KernelOfRun] = []
    missing: dict[str, RunVariant] = {}
    for run in runs:
        try:
            of_run = known.value(run, partial(_of_run, run, session))
        except ProfileError as error:
            missing[run.name] = RunVariant(run.name, None, error.sentence, is_unread=True)
            continue
        missing[run.name] = RunVariant(run.name, None, of_run.why or NOT_COMPARED)
        found += [replace(kernel, run=run.name) for kernel in of_run.kernels]
    known.keep()
    compared = variants(_by_time(found, name))
    for each in compared:
        missing.pop(each.kernel.run, None)
    return (*(RunVariant(each.kernel.run, each) for each in compared), *missing.values())


def _of_run(run: Run, session: Callable[[Run], PageSession]) -> KernelsOfRun:
    return compared_kernels(session(run))


def compared_kernels(session: PageSession) -> KernelsOfRun:
    """What is compared of the kernels of a run.

    Raises:
        ProfileError: as for `PageSession.page`.
    """
    page = session.page(TPU_KERNELS)
    return KernelsOfRun(tuple(kernel_of_run(each, "") for each in page.kernels), page.unknown.get("kernels", ""))


def _by_time(kernels: Sequence[KernelOfRun], name: str | None) -> list[KernelOfRun]:
    """Some kernels, those with most time over all runs first."""
    time: dict[tuple[str, str], int] = {}
    for each in kernels:
        time[each.kernel, each.arrays] = time.get((each.kernel, each.arrays), 0) + each.runs.total_ps
    named = {(each.kernel, each.arrays) for each in kernels if name in (None, each.op, each.kernel)}
    chosen = [each for each in kernels if (each.kernel, each.arrays) in named]
    return sorted(chosen, key=lambda each: -time[each.kernel, each.arrays])
