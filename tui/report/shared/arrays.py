"""A column of JSON as a numpy array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LARGEST_EXACT = 2**53
_INT64 = np.iinfo(np.int64)


def as_array(values: Sequence[Any]) -> NDArray[Any]:
    """A column as numpy has it; see `tpuprof.Table`."""
    kinds = {type(value) for value in values}
    known = kinds - {type(None)}
    if kinds and kinds <= {bool}:
        return np.array(values, np.bool_)
    if known and known <= {int, float}:
        sizes = [abs(value) for value in values if type(value) is int]
        largest = max(sizes, default=0)
        if kinds == {int} and largest <= _INT64.max:
            return np.array(values, np.int64)
        if largest <= _LARGEST_EXACT:
            return np.array([np.nan if value is None else value for value in values], np.float64)
    made = np.empty(len(values), object)
    made[:] = values if not kinds & {list, tuple} else None
    if kinds & {list, tuple}:  # which numpy would take for rows
        for row, value in enumerate(values):
            made[row] = value
    return made
