"""Which cores depend on each other, against plain sets: by programs, by when their runs begin, by collectives."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.parsers.pages.findings.build import Op, table
from tpuprof.parsers.base.intervals import no_ints
from tpuprof.parsers.ops.host_events.events import Ends
from tpuprof.parsers.steps.boundaries.core_groups import by_program, joined_cores
from tpuprof.parsers.steps.boundaries.runs import MINIMUM_RUNS, ModuleRuns

PROGRAMS = st.lists(st.permutations("abcd").flatmap(lambda of: st.integers(0, 2).map(lambda n: of[:n])), max_size=6)


def runs_of(programs: Sequence[str], first: int = 0) -> ModuleRuns:
    """A core that runs each of these programs often, the first for longest, every 1000 ps; others seldom, and long."""
    often = [(name, first + 100 * at, 90 - at) for at, name in enumerate(programs)]
    runs = [(name, start + 1000 * run, long) for run in range(MINIMUM_RUNS) for name, start, long in often]
    runs += [("seldom", 9000 + run, 9000) for run in range(MINIMUM_RUNS - 1)]
    names = tuple(sorted({name for name, *_ in runs}))
    module, start, long = (np.array(column) for column in zip(*[(names.index(n), *of) for n, *of in runs], strict=True))
    return ModuleRuns(0, names, module, start, start + long, np.full(len(runs), -1), Ends.joined([]), no_ints())


@given(PROGRAMS)
def test_cores_that_run_the_busiest_program_of_another_are_a_part_and_idle_ones_go_to_the_first(
    programs: list[list[str]],
) -> None:
    parts = [{core} for core, mine in enumerate(programs) if mine]
    for one, mine in enumerate(programs):
        for other, its in enumerate(programs):
            if mine and its and mine[0] in its:
                touched = [part for part in parts if part & {one, other}]
                parts = [part for part in parts if part not in touched] + [set.union(*touched)]
    parts = sorted(parts, key=min) or [set()]
    parts[0] |= {core for core, mine in enumerate(programs) if not mine}
    assert by_program([runs_of(mine) for mine in programs]) == sorted(sorted(part) for part in parts if part)


@given(st.lists(st.sampled_from([None, 0, 0, 300, 600]), min_size=1, max_size=6), st.integers(0, 4), st.integers(-9, 9))
def test_a_launch_is_a_group_and_a_collective_joins_launches_unless_each_has_all_its_devices(
    first: list[int | None], devices: int, jitter: int
) -> None:
    late = [*dict.fromkeys(of for of in first if of is not None)] or [-1]
    idle = [core for core, of in enumerate(first) if of is None]
    engines = [[core for core, of in enumerate(first) if of == at] for at in late]
    engines[0] = sorted({*engines[0], *idle})
    runs = [runs_of("a" * (of is not None), (of or 0) + jitter * (core % 2)) for core, of in enumerate(first)]
    text = f"%all-reduce.1 = f32[8] all-reduce(), replica_groups=[1,{devices}]<=[{devices}]"
    for ops in ([Op("fusion.1", "loop fusion", 9)], [Op("all-reduce.1", "all-reduce", 9, text=text)]):
        found = joined_cores(runs, [table(ops)] * len(runs), lambda core: False, [0] * len(runs))
        joins = len(ops[0].text) > 0 and not (0 < devices < len(runs) and {*map(len, engines)} == {devices})
        expected = [list(range(len(runs)))] if joins else engines
        assert sorted(list(group.cores) for group in found) == sorted(expected)
        assert [len(group.cores) for group in found] == sorted(map(len, expected), reverse=True)
    processes = [core % 2 for core in range(len(runs))]
    apart = joined_cores(runs, [table([Op("fusion.1", "loop fusion", 9)])] * len(runs), lambda core: False, processes)
    assert all(len({core % 2 for core in group.cores}) == 1 for group in apart)
