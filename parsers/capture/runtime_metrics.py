"""What the TPU runtime's metric service reports about its chips right now: the service that `tpu-info` reads.

Duty and bandwidth are the runtime's own averages over its last interval. A metric that the runtime does not have is
None, with the reason in `Reading.unknown`, and so is a value that can't be; nothing is derived from another one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import counted, printable
from tpuprof.parsers.capture.client import Connection, RpcCall
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.model import Address, parse_addresses
from tpuprof.parsers.formats.proto.services_pb2 import (
    RuntimeMeasure,
    RuntimeMetricRequest,
    RuntimeMetricResponse,
    SupportedMetricsRequest,
    SupportedMetricsResponse,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message

SERVICE = "tpu.monitoring.runtime.RuntimeMetricService"
USUAL_PORT = 8431
PORTS_VARIABLE = "TPU_RUNTIME_METRICS_PORTS"
"""Where a program that runs several processes on a host says their ports, with commas."""

DUTY = "tpu.runtime.tensorcore.dutycycle.percent"
HBM_USED = "tpu.runtime.hbm.memory.usage.bytes"
HBM_TOTAL = "tpu.runtime.hbm.memory.total.bytes"
BANDWIDTH = "tpu.runtime.hbm.utilization.percent"
IDLE = "tpu.runtime.tensorcore.idle_duration.seconds"
QUEUE = "hlo.queue.size.gauge"
COLLECTIVES = "megascale.collective_end_to_end_latencies.microsecond.cumulative.distribution"
METRICS = (DUTY, HBM_USED, HBM_TOTAL, BANDWIDTH, IDLE, QUEUE, COLLECTIVES)

_FIELDS = {
    "duty_percent": DUTY,
    "hbm_used_bytes": HBM_USED,
    "hbm_total_bytes": HBM_TOTAL,
    "bandwidth_percent": BANDWIDTH,
    "idle_seconds": IDLE,
    "queued_programs": QUEUE,
}
"""The metric of each field of `Device`."""
_MOST = {DUTY: 100.0, BANDWIDTH: 100.0, HBM_USED: 2.0**50, HBM_TOTAL: 2.0**50, IDLE: 1e9, QUEUE: 1e9}
"""The largest value that a metric can have; the smallest is 0."""
_ROUNDED = 1.01  # a share of all may be above 100 % by what it was rounded

_ORDINAL = "device_ordinal"
_LAGS_PERCENT = 10.0
"""Points of duty below the median from which on a chip counts as one that works less."""
_RESTS_PERCENT = 5.0
_FULL = 0.95
_MOST_DEVICES = 4096
"""The most devices of one server: more than any host has; further ones are not kept."""


@dataclass(frozen=True, slots=True)
class Device:
    """What is known of one TensorCore's device.

    Attributes:
        id: the runtime's number of it; numbers begin anew in each process.
        chip: the number of its chip, which duty is measured of; two cores of a chip show the same.
        duty_percent: share of time in which the TensorCore worked.
        hbm_used_bytes, hbm_total_bytes: what is allocated, and all there is.
        bandwidth_percent: share of HBM's peak bandwidth in use.
        idle_seconds: since when the TensorCore has had nothing to do.
        queued_programs: programs that wait for the device.
    """

    address: str
    id: int
    chip: int
    duty_percent: float | None = None
    hbm_used_bytes: int | None = None
    hbm_total_bytes: int | None = None
    bandwidth_percent: float | None = None
    idle_seconds: float | None = None
    queued_programs: int | None = None


@dataclass(frozen=True, slots=True)
class Collectives:
    """Collectives between slices since the program began.

    Attributes:
        count: how many.
        total_us: their latencies together, from end to end.
    """

    count: int
    total_us: float


@dataclass(frozen=True, slots=True)
class Reading:
    """All devices at one instant.

    Attributes:
        time_seconds: when, in seconds since the epoch.
        devices: by address and number.
        collectives: None where no server counts them.
        unknown: why a device lacks a metric, by the name of the `Device`'s field.
        silent: servers that did not answer this time, with the reason.
    """

    time_seconds: float
    devices: tuple[Device, ...]
    collectives: Collectives | None
    unknown: Mapping[str, str]
    silent: Mapping[str, str]


def runtime_addresses(texts: Sequence[str], environ: Mapping[str, str] = os.environ) -> tuple[Address, ...]:
    """The servers to ask: those that are named, else those of this machine.

    Raises:
        ProfileError: `bad_address`.
    """
    if texts:
        return parse_addresses(texts)
    ports = [part.strip() for part in environ.get(PORTS_VARIABLE, "").split(",") if part.strip()]
    return parse_addresses([f"localhost:{port}" for port in ports or [str(USUAL_PORT)]])


class RuntimeMetrics:
    """The metric services of some runtimes, asked all at once.

    Args:
        seconds: how long an answer may take.

    Raises:
        ProfileError: `no_grpc`.
    """

    def __init__(
        self, addresses: Sequence[Address], seconds: float = 2.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._servers = [(str(address), Connection(address)) for address in addresses]
        self._seconds, self._clock = seconds, clock
        self._supported: dict[str, frozenset[str]] = {}

    def close(self) -> None:
        for _, server in self._servers:
            server.close()

    def read(self) -> Reading:
        """Asks all servers once.

        Raises:
            ProfileError: `no_server`: none of them has ever answered.
        """
        began = self._clock()
        silent = self._learn_supported()
        requests = {name: RuntimeMetricRequest(metric_name=name).SerializeToString() for name in METRICS}
        asked = [
            (address, name, server.call(f"{SERVICE}/GetRuntimeMetric", requests[name], self._seconds))
            for address, server in self._servers
            for name in METRICS
            if name in self._supported.get(address, ())
        ]
        told: dict[str, dict[str, Sequence[RuntimeMeasure]]] = {}
        failed: dict[str, dict[str, str]] = {}
        for address, name, call in asked:
            answer = _answer(call, self._seconds)
            measures = _measures(answer) if isinstance(answer, bytes) else answer
            if isinstance(measures, str):
                failed.setdefault(address, {})[name] = measures
            else:
                told.setdefault(address, {})[name] = measures
        for address, reasons in failed.items():
            if address not in told or HBM_TOTAL in reasons:
                silent[address] = reasons.get(HBM_TOTAL) or next(iter(reasons.values()))
        if not self._supported:
            raise self._nobody(silent)
        devices = tuple(device for address, metrics in told.items() for device in devices_of(address, metrics))
        unknown = _unknown(devices, tuple(told.values()), tuple(failed.values()))
        return Reading(began, devices, _collectives(tuple(told.values())), unknown, silent)

    def _learn_supported(self) -> dict[str, str]:
        """Asks those who have not said yet which metrics they have; returns who is silent, and why."""
        request = SupportedMetricsRequest().SerializeToString()
        asked = [
            (address, server.call(f"{SERVICE}/ListSupportedMetrics", request, self._seconds))
            for address, server in self._servers
            if address not in self._supported
        ]
        silent = {}
        for address, call in asked:
            answer = _answer(call, self._seconds)
            if isinstance(answer, str):
                silent[address] = answer
                continue
            supported = _supported(answer)
            if supported is None:
                silent[address] = _UNREADABLE
            else:
                self._supported[address] = supported
        return silent

    def _nobody(self, silent: Mapping[str, str]) -> Exception:
        who = ", ".join(address for address, _ in self._servers)
        reason = next(iter(silent.values()), "no answer")
        hint = f"a TPU program serves it on its own machine, at {USUAL_PORT} or where {PORTS_VARIABLE} says"
        return failure("no_server", f"No TPU runtime reports its metrics at {who}: {reason}.", hint)


def devices_of(address: str, metrics: Mapping[str, Sequence[RuntimeMeasure]]) -> list[Device]:
    """The devices that one server reports, from its answers by the metric's name."""
    values = {name: _by_device(measures) for name, measures in metrics.items() if name != COLLECTIVES}
    ids = sorted({device for by_device in values.values() for device in by_device})[:_MOST_DEVICES]
    cores, chips = len(values.get(HBM_TOTAL, ())), len(values.get(DUTY, ()))
    per_chip = 2 if chips and cores == 2 * chips else 1  # memory is reported per core, duty per chip
    if per_chip == 2:
        ids = sorted(values[HBM_TOTAL])

    def value(name: str, key: int) -> float | None:
        found = values.get(name, {}).get(key)
        return min(found, _MOST[name]) if found is not None and _can_be(name, found) else None

    devices = []
    for device in ids:
        chip = device // per_chip
        used, total, queued = (value(name, device) for name in (HBM_USED, HBM_TOTAL, QUEUE))
        if used is not None and total is not None and used > total > 0:
            used = total = None  # one of them can't be, and nothing says which
        devices.append(
            Device(
                address,
                device,
                chip,
                duty_percent=value(DUTY, chip),
                hbm_used_bytes=None if used is None else int(used),
                hbm_total_bytes=None if not total else int(total),
                bandwidth_percent=value(BANDWIDTH, device),
                idle_seconds=value(IDLE, device),
                queued_programs=None if queued is None else int(queued),
            )
        )
    return devices


def late_chips(reading: Reading) -> list[Device]:
    """Devices of which the chip works less than the others, by `_LAGS_PERCENT` points of duty; the least first."""
    told = [(device.duty_percent, device) for device in reading.devices if device.duty_percent is not None]
    middle = median(duty for duty, _ in told) if told else 0.0
    late = [(duty, place) for place, (duty, _) in enumerate(told) if duty <= middle - _LAGS_PERCENT]
    return [told[place][1] for _, place in sorted(late)]


def headline(reading: Reading) -> str:
    """The answer in a sentence: who works less than the others, whose memory is nearly full, else how busy all are."""
    duties = [device.duty_percent for device in reading.devices if device.duty_percent is not None]
    if not reading.devices and reading.silent:
        return "No figures of any chip: the runtime did not answer."
    if not reading.devices:
        return "The runtime reports no device: no program holds the chips."
    full = [device for device in reading.devices if (share := hbm_share(device)) is not None and share >= _FULL]
    if not duties:
        return "The runtime does not report how busy its chips are."
    middle, late = median(duties), late_chips(reading)
    if late:
        others = f", and {counted(len(late) - 1, 'other')} too" if len(late) > 1 else ""
        lowest = f"{late[0].duty_percent:.0f}% duty, {middle:.0f}% median"
        return f"Chip {late[0].chip} is less busy than the others: {lowest}{others}."
    if full:
        worst = max(full, key=lambda device: hbm_share(device) or 0.0)
        return f"HBM of device {worst.id} is {(hbm_share(worst) or 0.0) * 100:.0f}% full; duty is {middle:.0f}%."
    if middle <= _RESTS_PERCENT:
        return f"The chips are idle: {middle:.0f}% duty."
    return (
        f"All {counted(len({(d.address, d.chip) for d in reading.devices}), 'chip')} are equally busy: "
        f"{middle:.0f}% duty."
    )


def hbm_share(device: Device) -> float | None:
    """Used HBM over all there is, 0 to 1."""
    if device.hbm_used_bytes is None or not device.hbm_total_bytes:
        return None
    return device.hbm_used_bytes / device.hbm_total_bytes


def mean_duty(reading: Reading) -> float | None:
    """Mean duty of all devices, percent; None where no device reports it."""
    duties = [device.duty_percent for device in reading.devices if device.duty_percent is not None]
    return sum(duties) / len(duties) if duties else None


def collectives_between(before: Reading, after: Reading) -> tuple[int, float] | None:
    """How many collectives between slices ended between two readings, and their mean latency in microseconds."""
    if before.collectives is None or after.collectives is None:
        return None
    count = after.collectives.count - before.collectives.count
    total = after.collectives.total_us - before.collectives.total_us
    return (count, total / count) if count > 0 and total >= 0 else None


def _answer(call: RpcCall, seconds: float) -> bytes | str:
    """The bytes of an answer, or why there is none."""
    if not call.wait(seconds + 1):
        call.cancel()
        return f"no answer within {seconds:g} s"
    status = call.status()
    if status.name == "OK":
        return call.response()
    if status.name == "UNIMPLEMENTED":
        return "something else listens there"
    if status.name == "UNAVAILABLE":
        return "nothing listens there"
    return f"no answer within {seconds:g} s" if status.name == "DEADLINE_EXCEEDED" else printable(status.details)[:200]


_UNREADABLE = "the answer does not come from a TPU runtime"


def _supported(data: bytes) -> frozenset[str] | None:
    """Names of the metrics that a server has; None for bytes that say nothing of the kind."""
    message = SupportedMetricsResponse()
    return frozenset(each.metric_name for each in message.supported_metric) if _parses(message, data) else None


def _measures(data: bytes) -> Sequence[RuntimeMeasure] | str:
    """What an answer says, one entry for each device; or what is wrong with it."""
    message = RuntimeMetricResponse()
    return message.metric.metrics if _parses(message, data) else _UNREADABLE


def _parses(message: Message, data: bytes) -> bool:
    """Fills a message; False for bytes that are none."""
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    return True


def _by_device(measures: Sequence[RuntimeMeasure]) -> dict[int, float]:
    """Values by device's number; what has no number or no value is left out."""
    values = {}
    for measure in measures:
        device, value = _device_of(measure), _value_of(measure)
        if device is not None and value is not None:
            values[device] = value
    return values


def _can_be(name: str, value: float) -> bool:
    return 0 <= value <= _ROUNDED * _MOST[name]


def _device_of(measure: RuntimeMeasure) -> int | None:
    """Most metrics have the number alone, those of queues a list with ``device_ordinal``, at times as text."""
    value = measure.attribute.value
    kind = value.WhichOneof("attr")
    if kind == "int_attr":
        return value.int_attr
    for attribute in value.kvlist_attr.attributes if kind == "kvlist_attr" else ():
        if attribute.key == _ORDINAL:
            number = attribute.value
            if number.WhichOneof("attr") == "int_attr":
                return number.int_attr
            return int(number.string_attr) if number.string_attr.isascii() and number.string_attr.isdigit() else None
    return None


def _value_of(measure: RuntimeMeasure) -> float | None:
    for holder in (measure.gauge, measure.counter):
        kind = holder.WhichOneof("value")
        if kind is not None:
            value = float(getattr(holder, kind))
            return value if value == value and abs(value) < 1e300 else None  # noqa: PLR0124 - NaN
    return None


def _collectives(told: Sequence[Mapping[str, Sequence[RuntimeMeasure]]]) -> Collectives | None:
    distributions = [measure.distribution for metrics in told for measure in metrics.get(COLLECTIVES, ())]
    if not distributions:
        return None
    return Collectives(sum(each.count for each in distributions), sum(each.count * each.mean for each in distributions))


def _unknown(
    devices: Sequence[Device],
    told: Sequence[Mapping[str, Sequence[RuntimeMeasure]]],
    failed: Sequence[Mapping[str, str]],
) -> dict[str, str]:
    """Why devices lack metrics, by field: it was not had, it can't be, or the runtime has none.

    Args:
        told, failed: the servers' answers by the metric's name, and why there is none.
    """
    out = {}
    for field, name in _FIELDS.items():
        lacking = [device for device in devices if getattr(device, field) is None]
        values = [value for metrics in told for each in metrics.get(name, ()) if (value := _value_of(each)) is not None]
        wrong = next((value for value in values if not _can_be(name, value)), None)
        reason = next((reasons[name] for reasons in failed if name in reasons), None)
        if wrong is not None:
            out[field] = f"the runtime reports {wrong:g}, which {name} can't be"
        elif lacking and reason is not None:
            out[field] = f"{name} was asked for: {reason}"
        elif lacking and values and field in ("hbm_used_bytes", "hbm_total_bytes"):
            out[field] = "the runtime reports more memory in use than the chip has"
        elif len(lacking) == len(devices):
            out[field] = f"the runtime does not report {name}"
    return out
