"""A link that is slower than the others of a ring, of whichever cores it is, and however late these come."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tpuprof.parsers.base.intervals import Int64s
from tpuprof.parsers.steps.permutes import SLOWER, Permute, slow_link

US = 1_000_000


@given(
    cores=st.integers(3, 8),
    slow=st.integers(0, 7),
    factor=st.sampled_from([1.0, 1.2, 2.0, 3.5]),
    late=st.lists(st.integers(0, 400), min_size=8, max_size=8),
    beside=st.integers(0, 150),
)
def test_the_slow_link_of_a_ring_is_the_one_that_is_found(
    cores: int, slow: int, factor: float, late: list[int], beside: int
) -> None:
    """Each turn begins when the one before has ended; cores come late by nature, and compute beside transfers."""
    slow %= cores
    wire = np.full(cores, 100 * US)
    wire[slow] = int(100 * US * factor)
    now: Int64s = np.zeros(cores, np.int64)
    turns = []
    for _ in range(12):
        begin = now + np.array(late[:cores]) * US
        arrived = np.roll(begin + wire, 1)
        end = np.maximum(arrived, begin + beside * US)
        turns.append((begin, end, arrived > begin + beside * US))
        now = np.full(cores, end.max())
    begins, ends, waits = (np.stack(column) for column in zip(*turns, strict=True))
    pairs = tuple((core, (core + 1) % cores) for core in range(cores))
    names = [f"h:{core}" for core in range(cores)]
    found = slow_link(
        names, [{"p": Permute(pairs, begins[:, core], ends[:, core], waits[:, core])} for core in range(cores)]
    )
    target = (slow + 1) % cores
    if factor < SLOWER:
        assert found is None
    elif found is not None:
        assert (found.source, found.target) == (names[slow], names[target])
    else:  # the core at its end comes so late, or computes for so long, that it never waits for it; or all others do
        others = [core for core in range(cores) if core != target]
        hidden = [
            max(late[core] + beside - late[core - 1] if core else late[0] + beside - late[cores - 1], 100)
            for core in others
        ]
        assert not waits[:, target].any() or factor * 100 < SLOWER * np.median(hidden)
