"""The compiler's counts of a kernel lie where its bodies ran, by arithmetic."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parsers.ops.counters.test_samples import plane_of
from tests.support.files.kernels import KernelRun, with_kernels
from tpuprof.parsers.ops.counters.kernels import ScopeUse, scope_uses
from tpuprof.parsers.ops.counters.placed import NO_SPANS, CustomCalls, placed, placed_tracks
from tpuprof.parsers.ops.counters.samples import UTILIZATION, Sampled, sampled
from tpuprof.parsers.pages.counters.units import lane_use

RUN = KernelRun()


def rows() -> dict[tuple[str, str], ScopeUse]:
    """What a kernel uses, by scope and unit."""
    core = CustomCalls(plane_of(with_kernels()))
    return {(row.scope, row.unit): row for row in scope_uses(core, placed_tracks(core, list(sampled(core.plane))))}


def test_a_body_has_the_sample_that_stands_before_it() -> None:
    found = {key: row.busy_ps / row.time_ps for key, row in rows().items()}
    assert found["acc", "MXU"] == pytest.approx(0.8)
    assert found["ep_wait_in", "MXU"] == pytest.approx(0.0)
    whole = 0.8 * RUN.steps * RUN.body_ps / RUN.time_ps
    assert found["", "MXU"] == pytest.approx(whole, rel=1e-3)


def test_the_last_sample_ends_with_its_call() -> None:
    plane = plane_of(with_kernels())
    tracks = placed_tracks(CustomCalls(plane), list(sampled(plane)))
    for track in tracks:
        assert track.weights()[1] <= RUN.runs * RUN.time_ps
        use = lane_use("plane", track)
        assert use.sampled_ps == pytest.approx(RUN.runs * RUN.time_ps, rel=1e-6)


def track(*samples: tuple[int, int, float], stat: str = UTILIZATION) -> Sampled:
    """A unit with samples: start, end, percent."""
    start, end, value = (np.array(column) for column in zip(*samples, strict=True))
    return Sampled("MXU", stat, "MXU", start.astype(np.int64), end.astype(np.int64), value.astype(np.float64), "%")


CALL = np.array([0]), np.array([100_000])


def spans(*pairs: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Spans by start and end."""
    return np.array([start for start, _ in pairs], np.int64), np.array([end for _, end in pairs], np.int64)


def values(found: Sampled) -> list[tuple[int, int, float]]:
    """The samples as they are now."""
    return list(zip(found.start_ps.tolist(), found.end_ps.tolist(), found.value.tolist(), strict=True))


SAMPLES = ((0, 10_000, 0.0), (10_000, 10_078, 80.0), (10_078, 50_000, 5.0))


def test_a_body_that_does_not_run_takes_no_sample() -> None:
    two = (
        (0, 10_000, 0.0),
        (10_000, 10_078, 80.0),
        (10_078, 11_250, 0.0),
        (11_250, 11_328, 70.0),
        (11_328, 50_000, 5.0),
    )
    found = values(placed(track(*two), CALL, spans((11_400, 45_000))))
    assert (11_400, 45_000, 70.0) in found
    assert max(end - start for start, end, value in found if value == 80.0) == 78


def test_where_no_scopes_are_recorded_a_sample_is_that_of_the_time_up_to_the_next_point() -> None:
    assert values(placed(track(*SAMPLES), CALL, NO_SPANS))[-1] == (10_078, 50_000, 80.0)


def test_a_scope_that_begins_long_after_a_point_has_nothing_to_do_with_it() -> None:
    assert values(placed(track(*SAMPLES), CALL, spans((20_000, 45_000)))) == [*SAMPLES]


def test_other_counters_stay_as_they_are() -> None:
    power = track(*SAMPLES, stat="power")
    assert placed(power, CALL, NO_SPANS) is power
    assert values(placed(track(*SAMPLES), NO_SPANS, NO_SPANS)) == [*SAMPLES]
