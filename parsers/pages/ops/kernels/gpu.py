"""The page of GPU kernels: how they were launched, and how long they took (XProf's `kernel_stats`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tpuprof.parsers.base.intervals import Floats, Int64s
from tpuprof.parsers.base.record import Sized, dataclass
from tpuprof.parsers.ops.streams.kernels import Kernel, one_a_name
from tpuprof.parsers.pages.ops.ops import OpsPage

NO_GPU = "kernels are those of GPUs, and no GPU is in this profile"
NO_KERNEL = "no event of a GPU says how a kernel was launched"


@dataclass(frozen=True, slots=True)
class KernelsPage(Sized):
    """Kernels of all GPUs, most time first; ties go by name.

    Attributes:
        ops: the ops that they are part of, and the device.
        kernels: all launches of one name together, or those of one name, size and framework op.
        total_ps: int64[n]; time over all launches.
        fraction, cumulative: float64[n]; that time as a fraction (0-1) of the time of all kernels.
        unknown: dotted JSON key to the reason why figures are missing.
    """

    sized_by = "kernels"
    ops: OpsPage
    kernels: tuple[Kernel, ...]
    total_ps: Int64s
    fraction: Floats
    cumulative: Floats
    unknown: Mapping[str, str]


def kernels_page(ops: OpsPage, *, by_shape: bool = False) -> KernelsPage:
    """Makes the page of the kernels that some ops were made of.

    Args:
        by_shape: whether launches of different ops or sizes are rows of their own.
    """
    kernels = ops.kernels if by_shape else one_a_name(ops.kernels)
    total = np.array([kernel.total_ps for kernel in kernels], np.int64)
    whole = int(total.sum())
    fraction = total / whole if whole else np.full(len(total), np.nan)
    unknown = {} if kernels else {"kernels": NO_KERNEL if ops.runs_on == "GPU" else NO_GPU}
    return KernelsPage(ops, kernels, total, fraction, np.cumsum(fraction), unknown)
