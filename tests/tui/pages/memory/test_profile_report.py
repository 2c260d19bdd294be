"""Memory profile reports: golden texts of a made profile, the contract's keys, reasons for all that is null, limits.

`UPDATE_GOLDEN=1` in the environment writes the golden files anew.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.parsers.memory.allocators.made import GIB, given, host_space, profiles_of, training_page
from tests.support.reports import asked_of, check_report
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.allocators.model import ActiveAllocation, MemoryProfilePage
from tpuprof.parsers.pages.memory.over_time import memory_profile_page
from tpuprof.tui.pages.memory.report.profile import MOST_POINTS, REPORT, TEXT_ROWS, MemoryOverTime
from tpuprof.tui.report.page import Format, TextLook

GOLDEN = Path(__file__).parent / "golden"
LOOK = TextLook(80, ascii_only=False, color=False)
RUN = Run("2026_11_21_03_00_00", "/logs/host0", (), ())


def sparse() -> MemoryProfilePage:
    """Allocators whose events say next to nothing."""
    events = [given(1), given(2, allocator_name="pool", bytes_allocated=5), given(3, allocator_name="pool")]
    return memory_profile_page([profiles_of(host_space(events))], ["host0"], warnings=("the profile is cut off",))


def nothing() -> MemoryProfilePage:
    return memory_profile_page([()], ["host0"], ["This profile lacks what it takes. Capture it again."])


PAGES = {"training": lambda: training_page()[0], "sparse": sparse, "nothing": nothing}


def memory_profile_report(page: MemoryProfilePage, form: Format, limit: int | None = None) -> str:
    made = REPORT.writers[form](MemoryOverTime(page, ()), asked_of(RUN, form, LOOK, limit))
    assert isinstance(made, str)
    return made


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_as_it_was_and_keeps_the_contract(name: str) -> None:
    content = MemoryOverTime(PAGES[name](), training_page()[1] if name == "training" else ())
    document = check_report(
        REPORT, "memory-profile", content, RUN, GOLDEN / f"memory_profile_{name}", {"-80-block": LOOK}
    )
    assert "the profile does not say" not in document["unknown"].values()


def test_the_text_shows_some_rows_unless_all_are_asked_for() -> None:
    rows = tuple(ActiveAllocation(f"op{at}.", 1, 100, 100, None, None, None) for at in range(TEXT_ROWS + 1))
    page = training_page()[0]
    page = replace(page, allocators=(replace(page.allocators[0], at_peak=rows),))
    last = f"op{TEXT_ROWS}."
    assert last not in memory_profile_report(page, "text")
    assert "and 1 more kind;" in memory_profile_report(page, "text")
    assert last in memory_profile_report(page, "text", 0)


def test_a_timeline_of_very_many_events_is_thinned_to_the_largest_of_each_stretch() -> None:
    count = 3 * MOST_POINTS + 5
    allocator = training_page()[0].allocators[0]
    heap = np.arange(count, dtype=np.int64) * 7919 % GIB
    long = replace(
        allocator,
        time_ps=np.arange(count, dtype=np.int64),
        stack_bytes=np.zeros(count, np.int64),
        heap_bytes=heap,
        free_bytes=np.zeros(count, np.int64),
        fragmentation=np.zeros(count),
        is_allocation=np.ones(count, np.bool_),
        peak_index=count - 1 - int(np.argmax(heap[::-1])),
    )
    page = replace(training_page()[0], allocators=(long,))
    document = json.loads(memory_profile_report(page, "json"))
    timeline = document["allocators"][0]["timeline"]
    assert len(timeline) == MOST_POINTS and "--limit 0" in document["warnings"][0]
    borders = [at * count // MOST_POINTS for at in range(MOST_POINTS + 1)]
    assert [point["heap_bytes"] for point in timeline] == [int(heap[a:b].max()) for a, b in pairwise(borders)]
    assert long.peak_index in {point["time_ps"] for point in timeline}
    whole = json.loads(memory_profile_report(page, "json", 0))
    assert len(whole["allocators"][0]["timeline"]) == count and whole["warnings"] == []
