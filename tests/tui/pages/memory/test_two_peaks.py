"""Where a page shows the allocators' peak it says why it is another one than the buffers'."""

from __future__ import annotations

from tests.tui.cli.calls import Call
from tpuprof.tui.pages.memory.draw.profile import OF_PROGRAMS


def test_the_report_says_why_its_peak_is_another(call: Call) -> None:
    shown = " ".join(call("report", "memory-profile", "demo", "--width", "100").out.split())
    assert OF_PROGRAMS in shown
