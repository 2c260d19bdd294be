"""What the runtime's metric service reports, from a server that speaks its protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from tests.support.servers.profiler_server import FakeProfiler, free_port, listener
from tests.support.servers.runtime_server import FOUR_CHIPS, GIB, FakeRuntime
from tpuprof.parsers.base.errors import EXIT_CAPTURE_FAILED, ProfileError
from tpuprof.parsers.capture.model import parse_addresses
from tpuprof.parsers.capture.runtime_metrics import (
    BANDWIDTH,
    DUTY,
    HBM_TOTAL,
    HBM_USED,
    QUEUE,
    Collectives,
    Device,
    Reading,
    RuntimeMetrics,
    collectives_between,
    devices_of,
    hbm_share,
    headline,
    late_chips,
    mean_duty,
    runtime_addresses,
)
from tpuprof.parsers.formats.proto.services_pb2 import RuntimeMeasure


@pytest.fixture
def server() -> Iterator[FakeRuntime]:
    with FakeRuntime({name: list(values) for name, values in FOUR_CHIPS.items()}, (10, 1500.0)) as made:
        yield made


def reading(*duties: float | None, used: float = 0.5, collectives: Collectives | None = None) -> Reading:
    devices = [Device("a:1", n, n, duty, int(used * 16 * GIB), 16 * GIB) for n, duty in enumerate(duties)]
    return Reading(0.0, tuple(devices), collectives, {}, {})


def read(*addresses: str, seconds: float = 5.0) -> Reading:
    metrics = RuntimeMetrics(parse_addresses(addresses), seconds)
    try:
        return metrics.read()
    finally:
        metrics.close()


def test_all_that_four_chips_tell(server: FakeRuntime) -> None:
    told = read(server.address)
    assert [device.duty_percent for device in told.devices] == FOUR_CHIPS[DUTY]
    assert [device.bandwidth_percent for device in told.devices] == FOUR_CHIPS[BANDWIDTH]
    assert [device.queued_programs for device in told.devices] == [2, 2, 0, 2]
    assert told.devices[2].idle_seconds == 1.5
    assert hbm_share(told.devices[0]) == pytest.approx(27.1 / 31.2)
    assert told.collectives == Collectives(10, 15_000.0)
    assert not told.unknown and not told.silent
    assert headline(told) == "Chip 2 is less busy than the others: 61% duty, 94% median."


def test_metrics_that_a_runtime_lacks_are_not_asked_for_and_unknown(server: FakeRuntime) -> None:
    del server.values[BANDWIDTH], server.values[QUEUE]
    told = read(server.address)
    assert {device.bandwidth_percent for device in told.devices} == {None}
    assert set(told.unknown) == {"bandwidth_percent", "queued_programs"}
    assert BANDWIDTH in told.unknown["bandwidth_percent"]
    assert BANDWIDTH not in server.asked and DUTY in server.asked


def test_two_cores_of_a_chip_share_its_duty(server: FakeRuntime) -> None:
    server.values = {DUTY: [90.0, 40.0], HBM_USED: [GIB] * 4, HBM_TOTAL: [16 * GIB] * 4}
    told = read(server.address)
    assert [(device.id, device.chip, device.duty_percent) for device in told.devices] == [
        (0, 0, 90.0),
        (1, 0, 90.0),
        (2, 1, 40.0),
        (3, 1, 40.0),
    ]


def test_several_processes_of_a_host(server: FakeRuntime) -> None:
    with FakeRuntime({DUTY: [12.0], HBM_USED: [GIB], HBM_TOTAL: [16 * GIB]}) as other:
        told = read(server.address, other.address)
        assert len(told.devices) == 5
        assert told.devices[-1].address == other.address
        other.is_silent = True
        metrics = RuntimeMetrics(parse_addresses([server.address, other.address]), 0.3)
        told = metrics.read()
        metrics.close()
    assert len(told.devices) == 4
    assert told.silent == {other.address: "no answer within 0.3 s"}


def test_a_server_that_goes_and_comes_back_is_told(server: FakeRuntime) -> None:
    metrics = RuntimeMetrics(parse_addresses([server.address]), 0.3)
    assert len(metrics.read().devices) == 4
    server.is_silent = True
    told = metrics.read()
    assert told.devices == () and told.silent == {server.address: "no answer within 0.3 s"}
    server.is_silent = False
    assert len(metrics.read().devices) == 4
    metrics.close()


@pytest.mark.parametrize("kind", ["nobody", "a profiler", "no gRPC"])
def test_nobody_there(kind: str) -> None:
    def fails(address: str, words: str) -> None:
        with pytest.raises(ProfileError, match=words) as caught:
            read(address, seconds=1.0)
        assert caught.value.exit_code == EXIT_CAPTURE_FAILED
        assert "8431" in caught.value.hint

    if kind == "nobody":
        fails(f"127.0.0.1:{free_port()}", "nothing listens there")
    elif kind == "a profiler":
        with FakeProfiler() as profiler:
            fails(profiler.address, "something else listens there")
    else:
        with listener(b"HTTP/1.1 400 Bad Request\r\n\r\n") as (address, _):
            fails(address, "No TPU runtime reports its metrics")


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("silent", "no answer within 0.3 s"),
        ("refuses", "the chips are being reset"),
        ("garbled", "the answer does not come from a TPU runtime"),
    ],
)
def test_a_runtime_that_does_not_answer_is_no_runtime_without_chips(
    server: FakeRuntime, way: Literal["silent", "refuses", "garbled"], reason: str
) -> None:
    server.is_broken = way
    told = read(server.address, seconds=0.3)
    assert told.devices == () and told.silent == {server.address: reason}
    assert headline(told) == "No figures of any chip: the runtime did not answer."


def test_values_that_cannot_be_are_unknown_with_the_reason(server: FakeRuntime) -> None:
    server.values |= {DUTY: [-5.0, 250.0, 61.0, 100.4], HBM_USED: [99 * GIB] * 4, HBM_TOTAL: [16 * GIB] * 4}
    server.values[BANDWIDTH] = [float("inf"), 37.5, 22.0, 38.4]
    told = read(server.address)
    assert [device.duty_percent for device in told.devices] == [None, None, 61.0, 100.0]
    assert {(device.hbm_used_bytes, device.hbm_total_bytes) for device in told.devices} == {(None, None)}
    assert told.devices[0].bandwidth_percent is None
    assert told.unknown["duty_percent"] == f"the runtime reports -5, which {DUTY} can't be"
    assert told.unknown["hbm_used_bytes"] == "the runtime reports more memory in use than the chip has"


def test_addresses() -> None:
    assert [str(address) for address in runtime_addresses([], {})] == ["localhost:8431"]
    ports = {"TPU_RUNTIME_METRICS_PORTS": "8431, 8432,"}
    assert [str(address) for address in runtime_addresses([], ports)] == ["localhost:8431", "localhost:8432"]
    assert [str(address) for address in runtime_addresses(["host:1"], ports)] == ["host:1"]
    with pytest.raises(ProfileError):
        runtime_addresses([], {"TPU_RUNTIME_METRICS_PORTS": "no port"})


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (reading(), "The runtime reports no device: no program holds the chips."),
        (reading(None, None), "The runtime does not report how busy its chips are."),
        (reading(95, 94, 93), "All 3 chips are equally busy: 94% duty."),
        (reading(0, 0), "The chips are idle: 0% duty."),
        (reading(95, 94, 60, 50, 96), "Chip 3 is less busy than the others: 50% duty, 94% median, and 1 other too."),
        (reading(95, 94, used=0.97), "HBM of device 0 is 97% full; duty is 94%."),
    ],
)
def test_the_answer(told: Reading, sentence: str) -> None:
    assert headline(told) == sentence


def test_figures_of_a_reading() -> None:
    assert mean_duty(reading(90, None, 70)) == 80
    assert mean_duty(reading(None)) is None
    assert [device.id for device in late_chips(reading(95, 60, 94, 50, 96))] == [3, 1]
    before = reading(1, collectives=Collectives(10, 1000.0))
    assert collectives_between(before, reading(1, collectives=Collectives(14, 1400.0))) == (4, 100.0)
    assert collectives_between(before, before) is None
    assert collectives_between(before, reading(1, collectives=Collectives(2, 100.0))) is None  # it began anew
    assert collectives_between(reading(1), before) is None


def test_odd_answers_are_left_out() -> None:
    """No number of a device, no value, a value that is no number."""
    nothing, text, nan = RuntimeMeasure(), RuntimeMeasure(), RuntimeMeasure()
    nothing.gauge.as_double = 5
    text.attribute.value.kvlist_attr.attributes.add(key="device_ordinal").value.string_attr = "\x1b[1m"
    text.gauge.as_double = 5
    nan.attribute.value.int_attr = 1
    nan.gauge.as_double = float("nan")
    empty = RuntimeMeasure()
    empty.attribute.value.int_attr = 2
    assert devices_of("a:1", {DUTY: [nothing, text, nan, empty]}) == []
