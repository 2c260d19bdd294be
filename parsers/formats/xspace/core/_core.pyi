"""Loops in C over buffers that the caller provides; see _core.c and c_core.py."""

import numpy as np
from numpy.typing import NDArray

_Bytes = NDArray[np.uint8]
_Ints = NDArray[np.int64]

def split(
    buf: _Bytes, number: NDArray[np.uint32], wire: _Bytes, begin: _Ints, end: _Ints, start: int, /
) -> tuple[int, int, int]: ...
def events(
    buf: _Bytes, begin: _Ints, end: _Ints, metadata_id: _Ints, offset: _Ints, duration: _Ints, flags: _Bytes, /
) -> None: ...
def stats(
    buf: _Bytes, begin: _Ints, end: _Ints, wanted: _Ints, kind: _Bytes, value: _Ints, length: _Ints, stats_field: int, /
) -> None: ...
def scan(
    buf: _Bytes,
    wanted: _Ints,
    chosen: _Bytes,
    metadata_id: NDArray[np.integer],
    offset: _Ints,
    duration: _Ints,
    flags: _Bytes,
    begin: _Ints,
    length: NDArray[np.uint32],
    kind: _Bytes,
    value: _Ints,
    stat_length: NDArray[np.uint32],
    base: int,
    start: int,
    at: int,
    /,
) -> tuple[int, int, int, int]: ...
def nest(start: _Ints, end: _Ints, parent: _Ints, depth: NDArray[np.int32], self_ps: _Ints, /) -> None: ...
def lanes(start: _Ints, end: _Ints, lane: NDArray[np.int32], tree: _Ints, at: int, /) -> int: ...
def sum_by_key(keys: NDArray[np.integer], values: _Ints, out: _Ints, /) -> None: ...
def min_by_key(keys: NDArray[np.integer], values: _Ints, out: _Ints, /) -> None: ...
def by_lane(*arguments: NDArray[np.generic]) -> None: ...  # the lanes, columns, the lanes' places, the same columns
def busy(start: _Ints, end: _Ints, bounds: _Ints, /) -> int: ...
def runs(*arguments: NDArray[np.generic] | int) -> int: ...  # 12 arrays and 2 numbers, see _core.c
def self_sums(
    start: _Ints,
    end: _Ints,
    key: NDArray[np.int32],
    lane: NDArray[np.int32],
    place: _Ints,
    stack: _Ints,
    out: _Ints,
    /,
) -> bool: ...
def block_sums(
    start: _Ints,
    end: _Ints,
    key: NDArray[np.int32],
    class_of: _Bytes,
    work: NDArray[np.float64],
    out: NDArray[np.generic],
    block: int,
    /,
) -> None: ...
def cell_sums(*arguments: NDArray[np.generic]) -> None: ...  # 10 arrays, see _core.c
def op_pass(*arguments: NDArray[np.generic] | int) -> tuple[int, int]: ...  # 31 arrays and 8 numbers, see _core.c
def op_border(*arguments: NDArray[np.generic] | int) -> int: ...  # 8 arrays and 4 numbers, see _core.c
def subtract(
    start: _Ints, end: _Ints, less_start: _Ints, less_end: _Ints, out_start: _Ints, out_end: _Ints, /
) -> int: ...
def until(times: _Ints, intervals: _Ints, out: _Ints, /) -> bool: ...
def trim() -> None: ...
def hash_packets(data: _Bytes, state: NDArray[np.uint64], /) -> None: ...
