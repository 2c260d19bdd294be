"""Counters: what they are called, their values over time, units, and what is none."""

from __future__ import annotations

import numpy as np

from tests.support.build import PlaneBuilder, StatInput
from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.ops.counters.samples import unit_of
from tpuprof.parsers.timeline.model import CounterTrack
from tpuprof.parsers.timeline.read.counters import counter_tracks

POWER = "HBM FW Power Meter PL2(W)"


def values(track: CounterTrack) -> list[tuple[int, float]]:
    return list(zip(track.time_ps.tolist(), track.value.tolist(), strict=True))


def test_power_over_time() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    line = device.line("_counters_", timestamp_ns=2)
    power, heat = device.event_id(POWER), device.event_id("Temperature")
    device.event(line, power, 500, 0, power=12.5)
    device.event(line, heat, 100, 0, degrees=61)
    device.event(line, power, 0, 0, power=11.0)
    found = counter_tracks(device.read())
    assert [(track.name, track.unit) for track in found] == [(POWER, "W"), ("Temperature", "")]
    assert values(found[0]) == [(2000, 11.0), (2500, 12.5)]
    assert values(found[1]) == [(2100, 61.0)]
    assert found[0].time_ps.dtype == np.int64
    assert found[0].value.dtype == np.float64


def test_each_number_of_an_event_is_a_track() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    line = device.line("_counters_")
    meter = device.event_id("meter", "Power meter")
    stats: dict[str, StatInput] = {"core (W)": 3, "hbm (MB/sec)": 2.0, "group_id": 4, "_p": 9, "state": "on"}
    device.event(line, meter, 0, 0, **stats)
    device.event(line, meter, 5, 0, **{"core (W)": 4})
    found = counter_tracks(device.read())
    assert [(track.name, track.unit) for track in found] == [
        ("Power meter core (W)", "W"),
        ("Power meter hbm (MB/sec)", "MB/sec"),
    ]
    assert values(found[0]) == [(0, 3.0), (5, 4.0)]
    assert values(found[1]) == [(0, 2.0)]


def test_what_is_no_finite_number_is_left_out() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    line = device.line("_counters_")
    meter = device.event_id("meter")
    for at, value in enumerate((1.0, float("nan"), float("inf"), 2.0)):
        device.event(line, meter, at, 0, power=value)
    device.event(line, device.event_id("text"), 9, 0, power="high")
    (found,) = counter_tracks(device.read())
    assert values(found) == [(0, 1.0), (3, 2.0)]


def test_a_counter_without_metadata_has_its_number_for_a_name() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    device.event(device.line("_counters_"), 77, 0, 0, power=1.0)
    (found,) = counter_tracks(device.read())
    assert found.name == "event 77"


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


def test_damage_anywhere_gives_fewer_or_odd_values_and_no_error() -> None:
    device = PlaneBuilder.alone("/device:TPU:0")
    meter = device.event_id("meter")
    line = device.line("_counters_")
    for at in range(5):
        device.event(line, meter, at, 0, power=at * 1.0)
    data = bytearray(device.space.SerializeToString())
    opened = 0
    for at in range(len(data)):
        for damage in (0x00, 0xFF, data[at] ^ 1):
            damaged = bytes(data[:at]) + bytes([damage]) + bytes(data[at + 1 :])
            try:
                planes = Trace(MemorySource(damaged, "test")).planes
            except ProfileError:
                continue
            opened += 1
            for track in (track for plane in planes for track in counter_tracks(plane)):
                assert np.isfinite(track.value).all()
                assert (np.diff(track.time_ps) >= 0).all()
                assert len(track.time_ps) == len(track.value) <= 5
    assert opened > len(data)


def test_units_are_read_off_names() -> None:
    names = ("Power(W)", "MXU (util %)", "Bandwidth (MB/sec) ", "plain", "odd (that is much too long)", "(a) b")
    assert [unit_of(name) for name in names] == ["W", "util %", "MB/sec", "", "", ""]
