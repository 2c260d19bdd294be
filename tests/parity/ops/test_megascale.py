"""Collectives between slices against XProf's Megascale Stats: all 16 columns of every row.

Skipped where XProf is not installed: in this interpreter, or in the one that ``TPUPROF_XPROF_PYTHON`` names.
"""

from __future__ import annotations

from pathlib import Path

from tests.parity.oracle.fields import Agrees, Comparison, Difference, Value, compare
from tests.parity.oracle.live import ask_of_slices
from tests.support.build import session_at
from tests.support.composed.slices import HOSTS, host_bytes, write_run
from tpuprof.parsers.pages.collectives.page import COLLECTIVES
from tpuprof.parsers.pages.collectives.slices import SliceCollective

_MS = 1e9

RECV = "XProf divides the time in recv by a million once more, so that it always shows 0"


def our_row(row: SliceCollective) -> dict[str, Value]:
    """One row in XProf's columns and units."""
    each = _MS * row.occurrences
    slack_us = row.slack_ps / row.occurrences / 1e6
    rate = None if row.network_bytes is None else row.network_bytes / slack_us * 8e-9 / 1e-6
    return {
        "rendezvous_name": row.rendezvous,
        "recv_op_name": row.recv_op,
        "send_op_name": row.send_op,
        "transfer_type": row.transfer_type,
        "slack_time": row.slack_ps / each,
        "host_stall": "-",  # the open-source XProf is never given the host events that record it
        "observed_duration": row.observed_ps / each,
        "send_stall": row.send_ps / each,
        "send_done_stall": row.send_done_ps / each,
        "recv_stall": row.recv_ps / each,
        "recv_done_stall": row.recv_done_ps / each,
        "stall_duration": row.stall_ps / each,
        "total_stall": row.stall_ps / _MS,
        "occurrences": row.occurrences,
        "net_tx_bytes": row.network_bytes,
        "required_bandwidth": rate,
    }


def test_slices(tmp_path: Path, agrees: Agrees) -> None:
    theirs = {
        row["rendezvous_name"]: row for row in ask_of_slices({h: host_bytes(h) for h in HOSTS}, tmp_path / "xprof")
    }
    page = session_at(write_run(tmp_path / "ours")).page(COLLECTIVES)
    ours = {row.rendezvous: our_row(row) for row in page.slices}
    assert ours.keys() == theirs.keys() and len(ours) == 2
    result = Comparison()
    for name, row in theirs.items():
        result.add(compare(row, ours[name], {"recv_stall": Difference(ours[name]["recv_stall"], RECV)}))
    assert result.compared == 16 * len(theirs)
    agrees(result, "megascale stats, live two slices")
