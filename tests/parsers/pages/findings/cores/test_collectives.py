"""Collectives that nothing hides, uneven work and pipelines: what must be found, and what must not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.parsers.pages.findings.build import US, Op, evidence, found, grid, the
from tpuprof.parsers.pages.findings.finding import Evidence

COLLECTIVES = [
    Op("all-gather-done.3", "async-done", 300),
    Op("all-reduce.1", "all-reduce fusion", 100),
    Op("fusion.1", "loop fusion", 1600),
]

ONLY = Op("all-reduce.1", "all-reduce fusion", 400)


def test_less_of_an_asynchronous_collective_counts_which_was_meant_to_be_hidden() -> None:
    steps = grid({"vector": 96, "collective": 4})
    assert the("collective", evidence(steps, COLLECTIVES)).worth_ps == 4 * US
    assert found("collective", evidence(steps, COLLECTIVES[1:])) is None


@pytest.mark.parametrize(
    ("name", "is_told"),
    [
        ("all-gather.3", True),
        ("all-to-all.3", True),
        ("ragged-all-to-all.3", True),
        ("collective-permute.3", True),
        ("all-reduce.3", False),
        ("reduce-scatter.3", False),
    ],
)
def test_less_of_what_is_there_before_it_is_needed_counts(name: str, is_told: bool) -> None:
    ops = [Op(name, name.partition(".")[0], 80), Op("all-reduce.1", "all-reduce", 20), COLLECTIVES[2]]
    assert (found("collective", evidence(grid({"vector": 96, "collective": 4}), ops)) is not None) == is_told
    assert found("collective", evidence(grid({"vector": 97.2, "collective": 2.8}), ops)) is None


@pytest.mark.parametrize(
    ("other", "title"),
    [(4, "all-gather.3 is not hidden by compute"), (40, "Exposed collectives: all-gather.3 and others")],
)
def test_other_collectives_are_more_where_they_take_any_time_to_speak_of(other: float, title: str) -> None:
    ops = [Op("all-gather.3", "all-gather", 300), Op("all-reduce.1", "all-reduce", other), COLLECTIVES[2]]
    assert the("collective", evidence(grid({"vector": 80, "collective": 20}), ops)).title == title


def all_reduces(first: int, second: int) -> Evidence:
    """Two cores whose all-reduce takes so many microseconds each, in every step."""
    times = np.array([[first], [second]], np.float64)
    of = {"all-reduce.1": times}
    return evidence(grid({"vector": 80, "collective": times.mean()}, collectives=of), [ONLY])


def test_waiting_for_the_last_core_is_told_from_the_transfer() -> None:
    finding = the("collective", all_reduces(36, 4))
    assert finding.title == "Cores wait for each other in all-reduce.1"
    words = "Cores wait 16.0 µs for the last core; the transfer, timed on the core that waits least, "
    assert f"{words}takes 4.00 µs." in finding.evidence


def test_nobody_says_that_cores_arrive_together_whose_partners_are_not_shown() -> None:
    proof = all_reduces(20, 20)
    text = "%all-reduce.1 = f32[8]{0} all-reduce(f32[8]{0} %x), replica_groups={{0,1,2,3},{4,5,6,7}}"
    finding = the("collective", evidence(proof.grid, [replace(ONLY, text=text)]))
    assert finding.evidence[-1].startswith("The collectives run over 4 devices, of which 2 are shown: waiting for")
    whole = text.replace("{0,1,2,3},{4,5,6,7}", "{0,1},{2,3}")
    assert "arrive together" in the("collective", evidence(proof.grid, [replace(ONLY, text=whole)])).evidence[-1]


def test_collectives_that_take_longer_at_a_rhythm_are_told_with_it() -> None:
    times = np.where(np.arange(12) % 4 == 3, 60.0, 2.0)
    finding = the("collective", evidence(grid({"vector": 80, "collective": times}, steps=12), [ONLY]))
    assert finding.title == "all-reduce.1 is not hidden by compute every 4th step"
    assert finding.evidence[1] == (
        "Every 4th step they exceed those of the fastest step by 58.0 µs, in the other steps 0."
    )
