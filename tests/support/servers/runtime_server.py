"""A TPU runtime's metric service that reports what a test wants, on a port of its own on this machine."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Literal

import grpc  # type: ignore[import-untyped,unused-ignore]

from tpuprof.parsers.capture.runtime_metrics import (
    BANDWIDTH,
    COLLECTIVES,
    DUTY,
    HBM_TOTAL,
    HBM_USED,
    IDLE,
    QUEUE,
    SERVICE,
)
from tpuprof.parsers.formats.proto.services_pb2 import (
    RuntimeMetricRequest,
    RuntimeMetricResponse,
    SupportedMetricsRequest,
    SupportedMetricsResponse,
)

GIB = 1 << 30
FOUR_CHIPS: dict[str, list[float]] = {
    DUTY: [95.0, 94.2, 61.0, 94.0],
    HBM_USED: [27.1 * GIB, 27.0 * GIB, 27.0 * GIB, 27.1 * GIB],
    HBM_TOTAL: [31.2 * GIB] * 4,
    BANDWIDTH: [38.0, 37.5, 22.0, 38.4],
    IDLE: [0.0, 0.0, 1.5, 0.0],
    QUEUE: [2, 2, 0, 2],
}
"""One of four works less than the others."""


class FakeRuntime:
    """The server.

    Args:
        values: a metric's value for each device, by name; a test may change them while it serves.
        collectives: how many collectives between slices there were, and their mean latency in microseconds.

    Attributes:
        asked: names of the metrics that were asked for.
        is_silent: nothing is answered any more.
        is_broken: which metrics there are is answered still, but not what they are.
        address: ``127.0.0.1:PORT``.
    """

    def __init__(self, values: dict[str, list[float]], collectives: tuple[int, float] | None = None) -> None:
        self.values, self.collectives = values, collectives
        self.asked: list[str] = []
        self.is_silent = False
        self.is_broken: Literal["", "silent", "refuses", "garbled"] = ""
        self.over = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(8))
        handlers = {
            "GetRuntimeMetric": grpc.unary_unary_rpc_method_handler(
                self._metric, RuntimeMetricRequest.FromString, self._serialized
            ),
            "ListSupportedMetrics": grpc.unary_unary_rpc_method_handler(
                self._supported, SupportedMetricsRequest.FromString, SupportedMetricsResponse.SerializeToString
            ),
        }
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"

    def __enter__(self) -> FakeRuntime:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.stop(None).wait(5)

    def _supported(self, _request: SupportedMetricsRequest, _context: Any) -> SupportedMetricsResponse:
        if self.is_silent:
            self.over.wait(5)
        names = [*self.values, *([COLLECTIVES] if self.collectives else [])]
        return SupportedMetricsResponse(supported_metric=[{"metric_name": name} for name in names])

    def _serialized(self, response: RuntimeMetricResponse) -> bytes:
        return b"\xff\xff no message" if self.is_broken == "garbled" else response.SerializeToString()

    def _metric(self, request: RuntimeMetricRequest, context: Any) -> RuntimeMetricResponse:
        self.asked.append(request.metric_name)
        if self.is_silent or self.is_broken == "silent":
            self.over.wait(5)
        if self.is_broken == "refuses":
            context.abort(grpc.StatusCode.INTERNAL, "the chips are being reset")
        response = RuntimeMetricResponse()
        response.metric.name = request.metric_name
        if request.metric_name == COLLECTIVES and self.collectives:
            count, mean = self.collectives
            response.metric.metrics.add(distribution={"count": count, "mean": mean})
            return response
        if request.metric_name not in self.values:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no metric {request.metric_name}")
        for device, value in enumerate(self.values[request.metric_name]):
            measure = response.metric.metrics.add()
            if request.metric_name == QUEUE:  # as the runtime has it: a list of attributes, the number as text
                attributes = measure.attribute.value.kvlist_attr.attributes
                attributes.add(key="core_type").value.string_attr = "TENSOR_CORE"
                attributes.add(key="device_ordinal").value.string_attr = str(device)
            else:
                measure.attribute.key = "device-id"
                measure.attribute.value.int_attr = device
            if request.metric_name in (HBM_USED, HBM_TOTAL, QUEUE):
                measure.gauge.as_int = int(value)
            else:
                measure.gauge.as_double = value
        return response
