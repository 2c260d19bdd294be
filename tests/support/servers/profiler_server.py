"""A profiler server that does what a test wants, on a port of its own of this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import grpc  # type: ignore[import-untyped,unused-ignore]

from tests.support.build import tpu_plane
from tests.support.servers.listening import LONGEST_SECONDS, accepting
from tpuprof.parsers.formats.proto.services_pb2 import (
    GetSnapshotRequest,
    ProfileRequest,
    ProfileResponse,
    TerminateRequest,
    TerminateResponse,
)
from tpuprof.parsers.formats.proto.xplane_pb2 import XSpace

MS = 1_000_000_000
Respond = Callable[["FakeProfiler", ProfileRequest, Any], ProfileResponse]


def profile(hostname: str = "worker-0", padding: int = 0) -> bytes:
    """Two steps of one TensorCore, and so many bytes more."""
    space = XSpace(hostnames=[hostname.encode()] if hostname else [])
    tpu_plane(
        space,
        0,
        ops=[("fusion.1", "convolution fusion", 0, 4 * MS), ("fusion.1", "convolution fusion", 5 * MS, 4 * MS)],
        steps=[("1", 0, 5 * MS), ("2", 5 * MS, 10 * MS)],
        modules=[("jit_step(7)", 0, 4 * MS), ("jit_step(7)", 5 * MS, 9 * MS)],
    )
    if padding:
        space.planes.add(name=b"/host:CPU").stats.add(metadata_id=1, bytes_value=b"\x5a" * padding)
    return space.SerializeToString()


def sends_it(server: FakeProfiler, request: ProfileRequest, context: Any) -> ProfileResponse:
    """As servers of today: traces for the time asked, and sends the profile."""
    server.trace(request, context)
    return ProfileResponse(xspace=server.profile) if request.emit_xspace else ProfileResponse()


def is_empty(server: FakeProfiler, request: ProfileRequest, context: Any) -> ProfileResponse:
    """Traces nothing: a profile without events, and a word about it."""
    server.trace(request, context)
    return ProfileResponse(xspace=XSpace(hostnames=[b"worker-0"]).SerializeToString(), empty_trace=True)


def writes_it(root: Path | None = None) -> Respond:
    """As TensorFlow 2.5 to 2.19: knows no emit_xspace and writes a file, under `root` where its disk is another."""

    def respond(server: FakeProfiler, request: ProfileRequest, context: Any) -> ProfileResponse:
        server.trace(request, context)
        if request.repository_root:
            asked = Path(request.repository_root)
            folder = (asked if root is None else root / asked.relative_to("/")) / request.session_id
            folder.mkdir(parents=True)
            (folder / f"{request.host_name}.xplane.pb").write_bytes(server.profile)
            (folder / f"{request.host_name}.overview_page.pb").write_bytes(b"x")
        return ProfileResponse()

    return respond


def fails(status: str, details: str = "") -> Respond:
    """Answers with an error at once."""

    def respond(_server: FakeProfiler, _request: ProfileRequest, context: Any) -> NoReturn:
        context.abort(getattr(grpc.StatusCode, status), details)
        raise AssertionError("abort raises")

    return respond


def hangs(server: FakeProfiler, _request: ProfileRequest, _context: Any) -> ProfileResponse:
    """Answers when the test is over, and hears of no Terminate."""
    server.over.wait(LONGEST_SECONDS)
    return ProfileResponse()


class FakeProfiler:
    """The server.

    Args:
        respond: what Profile does.
        data: the profile it has.

    Attributes:
        requests: those for Profile, in the order they came.
        terminated: session ids of those for Terminate.
        address: ``127.0.0.1:PORT``.
    """

    def __init__(self, respond: Respond = sends_it, data: bytes | None = None) -> None:
        self.profile = profile() if data is None else data
        self.requests: list[ProfileRequest] = []
        self.terminated: list[str] = []
        self.over = threading.Event()
        self.kept = False
        """Whether continuous profiling is on."""
        self._respond = respond
        self._session = threading.Lock()
        self._ended = threading.Condition()
        self._server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_send_message_length", -1)])
        handlers = {
            "Profile": grpc.unary_unary_rpc_method_handler(
                self._profile, ProfileRequest.FromString, ProfileResponse.SerializeToString
            ),
            "Terminate": grpc.unary_unary_rpc_method_handler(
                self._terminate, TerminateRequest.FromString, TerminateResponse.SerializeToString
            ),
        }
        handlers |= {
            name: grpc.unary_unary_rpc_method_handler(method, ProfileRequest.FromString, lambda answer: answer)
            for name, method in (("StartContinuousProfiling", self._start), ("StopContinuousProfiling", self._end))
        }
        handlers["GetSnapshot"] = grpc.unary_unary_rpc_method_handler(
            self._snapshot, GetSnapshotRequest.FromString, ProfileResponse.SerializeToString
        )
        service = grpc.method_handlers_generic_handler("tensorflow.ProfilerService", handlers)
        self._server.add_generic_rpc_handlers((service,))
        self.port: int = self._server.add_insecure_port("127.0.0.1:0")
        self.address = f"127.0.0.1:{self.port}"

    def __enter__(self) -> FakeProfiler:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        self._server.stop(None).wait(LONGEST_SECONDS)

    @property
    def is_tracing(self) -> bool:
        """Whether a session is on."""
        return self._session.locked()

    @contextmanager
    def own_trace(self) -> Iterator[None]:
        """The program itself traces."""
        with self._session:
            yield

    def trace(self, request: ProfileRequest, context: Any) -> None:
        """Takes the time asked for, unless the session is ended; one at a time."""
        if self.kept or not self._session.acquire(blocking=False):
            context.abort(grpc.StatusCode.INTERNAL, "Another profiling session active.")
        try:
            with self._ended:
                self._ended.wait_for(lambda: request.session_id in self.terminated, request.opts.duration_ms / 1000)
        finally:
            self._session.release()

    def _profile(self, request: ProfileRequest, context: Any) -> ProfileResponse:
        self.requests.append(request)
        return self._respond(self, request, context)

    def _start(self, request: ProfileRequest, context: Any) -> bytes:
        self.requests.append(request)
        if self.kept:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, "A profiling session is already running.")
        if self.is_tracing:
            why = "Failed to create profiler session: Another profiling session active."
            context.abort(grpc.StatusCode.INTERNAL, why)
        self.kept = True
        return b""

    def _end(self, _request: ProfileRequest, context: Any) -> bytes:
        if not self.kept:
            context.abort(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")
        self.kept = False
        return b""

    def _snapshot(self, _request: GetSnapshotRequest, context: Any) -> ProfileResponse:
        if not self.kept:
            context.abort(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")
        return ProfileResponse(xspace=self.profile)

    def _terminate(self, request: TerminateRequest, _context: Any) -> TerminateResponse:
        with self._ended:
            self.terminated.append(request.session_id)
            self._ended.notify_all()
        return TerminateResponse()


@contextmanager
def listener(greeting: bytes | None) -> Iterator[tuple[str, list[socket.socket]]]:
    """Something that listens and is no gRPC server: says `greeting` and hangs up, or keeps silent for None.

    Yields:
        Its address, and the connections that came.
    """

    def answer(connection: socket.socket) -> None:
        if greeting is not None:
            connection.sendall(greeting)
            connection.close()

    with accepting(answer) as found:
        yield found


def free_port() -> int:
    """A port that nothing listens at, just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
