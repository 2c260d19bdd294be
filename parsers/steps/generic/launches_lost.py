"""Launches of kernels by the host whose kernels are not in the profile: the GPU was busy then, and nothing shows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tpuprof.parsers.base.intervals import Int64s, distinct, is_among, no_ints
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.ops.host_events.events import HostEvents
from tpuprof.parsers.ops.streams.devices import StreamDevice

_LAUNCH = "correlation_id"


@dataclass(frozen=True, slots=True)
class LostLaunches:
    """The launches of a host whose kernels are not in the profile.

    Attributes:
        rows: int64[m] of each thread, its events that are such launches.
        start_ps: int64[n], when they began, on any thread.
        launches: how many launches there are, with these.
    """

    rows: tuple[Int64s, ...]
    start_ps: Int64s
    launches: int

    def __len__(self) -> int:
        return len(self.start_ps)


def lost_launches(host: HostEvents | None, gpus: Sequence[StreamDevice]) -> LostLaunches:
    """Finds the launches whose number no event of a GPU has.

    Events of other calls have numbers too, such as those that wait for a GPU. So a launch is an event of a name of
    which some have a kernel. What is launched after the last launch with a kernel may run after the capture.

    Args:
        host: None for a profile without the host's events.
        gpus: decoded with `correlation_id`.
    """
    threads = () if host is None else host.threads
    streams = [stream for gpu in gpus for stream in gpu.streams]
    numbers = distinct(np.concatenate([no_ints(), *(of.stat(_LAUNCH).values.integers() for of in streams)]))
    rows = [thread.stat(_LAUNCH).rows for thread in threads]
    has_kernel = [is_among(thread.stat(_LAUNCH).values.integers(), numbers) for thread in threads]
    names = [thread.metadata_id[of] for thread, of in zip(threads, rows, strict=True)]
    starts = [thread.start_ps[of] for thread, of in zip(threads, rows, strict=True)]
    launching = distinct(np.concatenate([no_ints(), *(of[has] for of, has in zip(names, has_kernel, strict=True))]))
    last = max((int(of[has].max()) for of, has in zip(starts, has_kernel, strict=True) if has.any()), default=0)
    launches = [is_among(name, launching) & (start <= last) for name, start in zip(names, starts, strict=True)]
    lost = [launch & ~has for launch, has in zip(launches, has_kernel, strict=True)]
    return LostLaunches(
        tuple(of[which] for of, which in zip(rows, lost, strict=True)),
        np.concatenate([no_ints(), *(of[which] for of, which in zip(starts, lost, strict=True))]),
        sum(int(of.sum()) for of in launches),
    )
