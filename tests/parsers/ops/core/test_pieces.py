"""A core's ops in pieces on several threads: the same sums wherever the line is divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import EXAMPLES
from tests.parsers.ops.core.test_sums import (
    Event,
    assert_same,
    borders,
    codes,
    events_in_order,
    needs_compiled_core,
    plain,
    plane_of,
    some_steps,
)
from tests.support.build import StatInput
from tpuprof.parsers.formats.crew import Crew
from tpuprof.parsers.formats.xspace import pieces
from tpuprof.parsers.formats.xspace.core import api, numpy_core
from tpuprof.parsers.formats.xspace.core.api import split_fields
from tpuprof.parsers.formats.xspace.source import ByteSource
from tpuprof.parsers.formats.xspace.trace import Plane
from tpuprof.parsers.ops.core import one_pass
from tpuprof.parsers.ops.core.ops import core_ops
from tpuprof.parsers.ops.core.sums import core_sums, op_sums, sums_of_events

Border = Callable[[ByteSource, int, int], int | None]


def ops_line(plane: Plane) -> tuple[bytes, int]:
    """The bytes of the line of ops, and where they begin."""
    line = next(line for line in plane.lines if line.name == "XLA Ops")
    return plane.source.read(line.begin, line.size), line.begin


def whole_events(plane: Plane) -> list[int]:
    """Where in the file the line's fields begin."""
    data, begin = ops_line(plane)
    return [begin, *(begin + split_fields(data).end).tolist()]


def at_events(plane: Plane) -> Border:
    """Borders that are right: the first one behind an offset."""
    found = whole_events(plane)
    return lambda _source, at, _end: next((border for border in found if border >= at), None)


def anywhere(jitter: Sequence[int]) -> Border:
    """Borders that are wrong, most of them."""
    turn = count()
    return lambda _source, at, end: min(at + jitter[next(turn) % len(jitter)], end)


@contextmanager
def divided(at: Border, piece_bytes: int, threads: int = 3) -> Iterator[Crew]:
    with pytest.MonkeyPatch.context() as patch, Crew(threads, piece_bytes) as crew:
        patch.setattr(pieces, "event_border", at)
        yield crew


@needs_compiled_core
@given(events_in_order(st.none()), some_steps(), st.lists(st.integers(-10, 250), max_size=12), st.data())
@settings(max_examples=4 * EXAMPLES, deadline=None)
def test_any_split_gives_the_sums_of_the_line_in_a_row(
    events: list[Event], steps: list[tuple[int, int]], times: list[int], data: st.DataObject
) -> None:
    plane = plane_of(events)
    asked = np.array(sorted(set(times)), np.int64)
    expected = core_sums(plane, borders(steps), asked, coding=codes)
    wrong = st.lists(st.integers(0, 40), min_size=1, max_size=5).map(anywhere)
    border = data.draw(st.one_of(st.just(at_events(plane)), wrong))
    with divided(border, data.draw(st.integers(1, 150))) as crew:
        assert_same(core_sums(plane, borders(steps), asked, coding=codes, crew=crew), expected, exactly=True)
        short, in_a_row = op_sums(plane, crew=crew), op_sums(plane)
    assert plain(short.table) == plain(in_a_row.table)
    assert (short.op_events, short.span) == (in_a_row.op_events, in_a_row.span)


@given(events_in_order(), some_steps(), st.integers(1, 150))
@settings(max_examples=2 * EXAMPLES, deadline=None)
def test_any_split_gives_the_sums_of_the_columns(
    events: list[Event], steps: list[tuple[int, int]], piece_bytes: int
) -> None:
    plane, asked = plane_of(events), np.arange(0, 200, 30)
    expected = sums_of_events(core_ops(plane), borders(steps), asked, codes)
    with divided(at_events(plane), piece_bytes) as crew, pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "_core", lambda: ("numpy", numpy_core))
        assert_same(core_sums(plane, borders(steps), asked, coding=codes, crew=crew), expected)


def nested(depth: int, each: int) -> list[Event]:
    """Loops in one another around many short ops, an all-reduce among them, and ops behind the loops."""
    out: list[Event] = [(1, number, 10_000 - 2 * number, {}) for number in range(depth)]
    out += [(number % 3 * 5 % 6, depth + 7 * number, 5, {"dma_stall_duration_ps": number}) for number in range(each)]
    end = 10_001 - depth  # of the innermost loop; ops that end just there are in one another
    out += [(number % 6, end - 12 + number, 12 - number, {}) for number in range(12)]
    return out + [(0, 20_000 + 3 * number, 2, {}) for number in range(each)]


@needs_compiled_core
def test_events_that_are_open_over_many_pieces_lose_the_time_of_all_that_is_in_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plane = plane_of(nested(4, 60))
    asked, steps = np.array([3, 100, 20_050], np.int64), borders([(0, 200), (200, 15_000), (15_000, 30_000)])
    expected = core_sums(plane, steps, asked, coding=codes)

    def refused(*_: object) -> None:
        raise AssertionError("the line was not taken in pieces")

    monkeypatch.setattr(one_pass, "_in_a_row", refused)
    for threads in (2, 3, 8):
        with divided(at_events(plane), 100, threads) as crew:
            assert_same(core_sums(plane, steps, asked, coding=codes, crew=crew), expected, exactly=True)


@needs_compiled_core
@pytest.mark.parametrize("value", [0.1, float(1 << 52)], ids=["a fraction", "more than 53 bits hold"])
def test_sums_that_depend_on_the_order_are_made_in_a_row(value: float) -> None:
    figures: dict[str, StatInput] = {"vdd_energy_j": value}
    plane = plane_of([(number % 6, 10 * number, 5, figures) for number in range(40)])
    expected = core_sums(plane, borders([]), np.zeros(0, np.int64))
    with divided(at_events(plane), 64) as crew:
        assert_same(core_sums(plane, borders([]), np.zeros(0, np.int64), crew=crew), expected, exactly=True)


@needs_compiled_core
@pytest.mark.parametrize("at", [0, 20, 39])
def test_a_line_that_the_pass_cannot_take_goes_by_columns_from_pieces_too(at: int) -> None:
    events: list[Event] = [(number % 6, 10 * number, 5, {}) for number in range(40)]
    events[at] = (0, 10 * at + 25, 5, {})
    plane = plane_of(events)
    told: list[tuple[int, int]] = []
    with divided(at_events(plane), 64) as crew:
        found = core_sums(plane, borders([(0, 300)]), np.arange(9), lambda *of: told.append(of), crew=crew)
    assert_same(found, sums_of_events(core_ops(plane), borders([(0, 300)]), np.arange(9)))
    assert sum(size for size, _ in told) == sum(line.size for line in plane.lines)
    assert sum(number for _, number in told) == 40


def test_what_a_thread_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    plane = plane_of([(number % 6, 10 * number, 5, {}) for number in range(40)])
    seen: list[int] = []

    def cancelled(size: int, _events: int) -> None:
        seen.append(size)
        if len(seen) == 3:
            raise InterruptedError

    with divided(at_events(plane), 64) as crew, pytest.raises(InterruptedError):
        core_sums(plane, borders([]), np.zeros(0, np.int64), cancelled, crew=crew)
    assert len(seen) == 3


def test_a_border_is_found_behind_stats_that_look_like_events() -> None:
    stats: dict[str, StatInput] = {"device_offset_ps": 1 << 40, "device_duration_ps": 34, "all_reduce_unique_id": 34}
    plane = plane_of([(number % 6, 34 * number, 34, stats) for number in range(200)])
    events = set(whole_events(plane))
    data, begin = ops_line(plane)
    found = [pieces.event_border(plane.source, begin + at, begin + len(data)) for at in range(0, 2000, 7)]
    assert all(border is not None and border in events for border in found)
    assert pieces.event_border(plane.source, begin + len(data) - 200, begin + len(data)) is None
