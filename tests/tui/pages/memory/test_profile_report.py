"""Memory profile reports: golden texts of a made profile, the contract's keys, reasons for all that is null, limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.parsers.memory.allocators.made import given, host_space, profiles_of
from tests.support.reports import check_report
from tpuprof.parsers.files.logdir import Run
from tpuprof.parsers.memory.allocators.model import MemoryProfilePage
from tpuprof.parsers.pages.memory.over_time import memory_profile_page
from tpuprof.tui.pages.memory.report.profile import REPORT, MemoryOverTime
from tpuprof.tui.report.page import TextLook

GOLDEN = Path(__file__).parent / "golden"
LOOK = TextLook(80, ascii_only=False, color=False)
RUN = Run("2026_11_21_03_00_00", "/logs/host0", (), ())


def sparse() -> MemoryProfilePage:
    """Allocators whose events say next to nothing."""
    events = [given(1), given(2, allocator_name="pool", bytes_allocated=5), given(3, allocator_name="pool")]
    return memory_profile_page([profiles_of(host_space(events))], ["host0"], warnings=("the profile is cut off",))


def nothing() -> MemoryProfilePage:
    return memory_profile_page([()], ["host0"], ["This profile lacks what it takes. Capture it again."])


@pytest.mark.parametrize("made", [sparse, nothing])
def test_every_page_is_as_it_was_and_keeps_the_contract(made: Callable[[], MemoryProfilePage]) -> None:
    golden = GOLDEN / f"memory_profile_{made.__name__}"
    document = check_report(REPORT, "memory-profile", MemoryOverTime(made(), ()), RUN, golden, {"-80-block": LOOK})
    assert "the profile does not say" not in document["unknown"].values()
