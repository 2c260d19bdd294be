"""How many bytes a collective moves, and how many the links could.

Two rates have names in the field (nccl-tests, ``PERFORMANCE.md``). The algorithm's bandwidth (algbw) is the size of
the data over the time. The bus bandwidth (busbw) is that times what each device must send at least, over the size: it
can be compared with what the links carry, whatever the collective and the number of devices.
"""

from __future__ import annotations

from tpuprof.parsers.steps.boundaries.replica_groups import ReplicaGroups

_TWICE = ("all-reduce",)
_ONCE = ("all-gather", "reduce-scatter", "all-to-all", "ragged-all-to-all", "collective-broadcast")

_TO_ONE = ("collective-permute", "send", "recv")

NO_SIZE = "neither the op's text nor the compiled HLO gives the shape of its result"
NO_GROUPS = "neither the op's text nor the compiled HLO says what it does, or how many devices take part"
NO_DCN_PEAK = "the profile does not say what a core can send over the data centre's network"
NO_HBM_PEAK = "the profile gives no peak of HBM, or the copy goes to the host's memory or comes from it"
NO_PEAK = "no published bandwidth of the links is known for this device"

ABOVE_LINKS = (
    "its bytes are those of its shapes; bytes that stay on the chip, go in a narrower type, or left before the traced "
    "transfer began count as sent in that time, and the profile does not show which of these it is"
)
"""Why a collective can be above the peak of the links."""

_PEAKS = {
    "v4": 300e9,
    "v5e": 200e9,
    "v5p": 600e9,
    "v6e": 400e9,
}
"""What a chip can send over all its ICI links at once, in bytes/s.

Half of the bidirectional bandwidth per chip of Cloud TPU's documents (cloud.google.com/tpu/docs/v5e, v5p, v6e): 400,
1,200 and 800 GB/s. For v4 six links of 50 GB/s, as N. Jouppi et al. report in "TPU v4: An Optically Reconfigurable
Supercomputer", 2023.
"""

_NAMES = {
    "TPU v4": "v4",
    "TPU v5 Lite": "v5e",
    "TPU v5 lite": "v5e",
    "TPU v5e": "v5e",
    "TPU v5": "v5p",
    "TPU v5p": "v5p",
    "TPU v6 Lite": "v6e",
    "TPU v6 lite": "v6e",
    "TPU v6e": "v6e",
}


def ici_peak(device_type: str | None) -> float | None:
    """What a chip can send over all its links, in bytes/s; None where no source is known.

    A collective over one axis of a torus has only the links of this axis, so that it can't reach it.
    """
    return _PEAKS.get(_NAMES.get(device_type or "", ""))


def payload_bytes(kind: str, result_bytes: int, size: int) -> int:
    """The size of a collective's data as nccl-tests count it: of reduce-scatters the input, of others the result.

    Args:
        size: devices of a group.
    """
    return result_bytes * size if kind == "reduce-scatter" else result_bytes


def bus_factor(kind: str, groups: ReplicaGroups | None, devices: int) -> float | None:
    """What a device sends at least over the size of the data; None where the kind or the number of devices is unknown.

    ``2(n-1)/n`` for an all-reduce, ``(n-1)/n`` for gathers, scatters and all-to-alls, 1 for what goes to one other.

    Args:
        devices: of the program, 0 where unknown: a collective without groups is over all of them.
    """
    if kind in _TO_ONE:
        return 1.0
    if kind not in _TWICE and kind not in _ONCE:
        return None
    n = groups.size if groups is not None and groups.count else devices if groups is not None else 0
    if n < 1:
        return None
    return (2.0 if kind in _TWICE else 1.0) * (n - 1) / n
