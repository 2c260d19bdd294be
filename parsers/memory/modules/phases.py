"""Where in a training step the backward pass begins, told by the framework ops of what is allocated."""

from __future__ import annotations

import numpy as np

from tpuprof.parsers.memory.model import SpaceMemory
from tpuprof.parsers.ops.framework_op import is_gradient

SAMPLED = 512
"""Buffers looked at, spread evenly over the program."""

LEAST = 4
"""Buffers of either pass without which nothing is said."""

AMISS = 0.1
"""Share of the buffers that may lie on the wrong side; where more do, the passes are interleaved."""


def backward_from(page: SpaceMemory) -> int | None:
    """The point that parts forward from backward pass best; None where the module has no two passes, one by one.

    A buffer is of the backward pass where its op is under ``transpose(…)``, else of the forward pass where it is under
    ``jvp(…)``. Others, such as the optimizer's, say nothing.
    """
    born = page.stays.born
    rows = np.flatnonzero(born > 0)
    rows = rows[np.argsort(born[rows], kind="stable")]
    rows = rows[:: max(1, -(-len(rows) // SAMPLED))]
    is_backward: list[bool] = []
    points: list[int] = []
    for row in rows.tolist():
        name = page.buffers[row].framework_op or ""
        gradient = is_gradient(name)
        if gradient or "jvp(" in name:
            is_backward.append(gradient)
            points.append(int(born[row]))
    backward = np.array(is_backward, np.bool_)
    if min(int(backward.sum()), int((~backward).sum())) < LEAST:
        return None
    # amiss[k]: of the first k those of the backward pass, of the others those of the forward pass
    before = np.concatenate([[0], np.cumsum(backward)])
    amiss = before + int((~backward).sum()) - (np.arange(len(backward) + 1) - before)
    at = int(amiss.argmin())
    return points[at] if amiss[at] <= AMISS * len(backward) and at < len(points) else None
