"""Counters: what they are called, their values over time, units, and what is none."""

from __future__ import annotations

from tests.support.build import PlaneBuilder
from tpuprof.parsers.ops.counters.samples import unit_of
from tpuprof.parsers.timeline.model import CounterTrack
from tpuprof.parsers.timeline.read.timeline import counter_tracks


def values(track: CounterTrack) -> list[tuple[int, float]]:
    return list(zip(track.time_ps.tolist(), track.value.tolist(), strict=True))


def test_what_is_no_finite_number_is_left_out() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    line = device.line("_counters_")
    meter = device.event_id("meter")
    for at, value in enumerate((1.0, float("nan"), float("inf"), 2.0)):
        device.event(line, meter, at, 0, power=value)
    device.event(line, device.event_id("text"), 9, 0, power="high")
    (found,) = counter_tracks(device.read())
    assert values(found) == [(0, 1.0), (3, 2.0)]


def test_hardware_counters_that_change_are_drawn() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    busy, still = device.event_id("TC_CYCLES"), device.event_id("TC_IDLE")
    for sample in range(3):
        line = device.line(f"counters_{sample}")
        device.event(line, busy, sample * 100, 0, counter_value=sample * 7)
        device.event(line, still, sample * 100, 0, counter_value=5)
    (found,) = counter_tracks(device.read())
    assert found.name == "tc_cycles"
    assert values(found) == [(0, 0.0), (100, 7.0), (200, 14.0)]


def test_one_sample_of_hardware_counters_is_no_track() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    line = device.line("counters_0")
    device.event(line, device.event_id("x"), 0, 0, counter_value=1)
    device.event(line, device.event_id("y"), 0, 0, other=1)
    assert counter_tracks(device.read()) == ()


def test_other_lines_hold_no_counters() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    device.event(device.line("XLA Ops"), device.event_id("op"), 0, 5, power=1.0)
    device.line("_counters_")
    assert counter_tracks(device.read()) == ()


def test_units_are_read_off_names() -> None:
    names = ("Power(W)", "MXU (util %)", "Bandwidth (MB/sec) ", "plain", "odd (that is much too long)", "(a) b")
    assert [unit_of(name) for name in names] == ["W", "util %", "MB/sec", "", "", ""]
