"""A client of one profiler server: its calls, and what it answers, which is neither copied nor decoded here.

This is the only module that imports gRPC, and it does so only when a server is called.
"""

from __future__ import annotations

import contextlib
import os
import threading
from typing import Any

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.base.text import examples, printable
from tpuprof.parsers.capture.errors import failure
from tpuprof.parsers.capture.model import Address, CaptureOptions
from tpuprof.parsers.formats.proto import services_pb2
from tpuprof.parsers.formats.xspace.source import MemorySource
from tpuprof.parsers.formats.xspace.trace import Trace
from tpuprof.parsers.formats.xspace.walk import LEN, VARINT, varint, windows

SERVICE = "tensorflow.ProfilerService"
_PING = "TpuprofPing"
_MOST_EVENTS = 1_000_000
_SETTINGS = {"GRPC_VERBOSITY": "NONE", "GRPC_ENABLE_FORK_SUPPORT": "0"}
"""gRPC reads these when it is imported: it must not write over a screen, nor act when a pool starts a process."""

MOST_BYTES = (1 << 31) - 1
"""The largest answer: protobuf reads no longer message. While it comes, gRPC keeps up to three copies."""

_CHANNEL = (
    ("grpc.max_receive_message_length", MOST_BYTES),
    ("grpc.max_metadata_size", 1 << 16),
    ("grpc.enable_http_proxy", 0),  # nothing but the address given is contacted
    ("grpc.service_config_disable_resolution", 1),
    ("grpc.enable_retries", 0),  # a request sent twice would trace twice
    ("grpc.use_local_subchannel_pool", 1),  # two captures of one process share no connection
)

_EMPTY_TRACE, _XSPACE = 7, 8  # fields of ProfileResponse
_DEVICE = "/device:"
_MOST_SHOWN = 3  # of the profiler's own errors and warnings


@dataclass(frozen=True, slots=True)
class Status:
    """How a call ended: the gRPC status, such as ``OK`` or ``UNAVAILABLE``, and the server's text, or gRPC's."""

    name: str
    details: str


class RpcCall:
    """A call that is running."""

    def __init__(self, future: Any) -> None:  # noqa: ANN401 - grpc has no types
        self._future = future
        self._done = threading.Event()
        future.add_done_callback(lambda _: self._done.set())

    def wait(self, seconds: float) -> bool:
        """Waits for at most this time; returns whether the call has ended."""
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Ends the call on this side; the server does not hear of it."""
        self._future.cancel()

    def status(self) -> Status:
        """How the call ended; ask only after it has."""
        return Status(self._future.code().name, str(self._future.details() or ""))

    def response(self) -> bytes:
        """The bytes that the server sent; only a call that ended with ``OK`` has them."""
        answer: bytes = self._future.result()
        return answer


class Server:
    """A profiler server. All calls go over one connection, because several processes may share a port.

    Raises:
        ProfileError: `no_grpc`: gRPC is not installed or does not load.
    """

    def __init__(self, address: Address) -> None:
        for name, value in _SETTINGS.items():
            os.environ.setdefault(name, value)
        try:
            import grpc  # type: ignore[import-untyped,unused-ignore] # noqa: PLC0415 - slow, and only for a capture
        except ImportError as error:
            sentence = f"gRPC can't be loaded: {printable(str(error))[:300]}."
            raise failure("no_grpc", sentence, "pip install grpcio") from error
        self._channel = grpc.insecure_channel(address.target, options=_CHANNEL)

    def call(self, method: str, request: bytes, seconds: float) -> RpcCall:
        """Begins a call of ``package.Service/Method`` that may take so long; bytes go and come as they are."""
        return RpcCall(self._channel.unary_unary(f"/{method}").future(request, timeout=seconds))

    def close(self) -> None:
        with contextlib.suppress(ValueError):  # closed already
            self._channel.close()

    def ping(self, seconds: float) -> RpcCall:
        """Calls a method that no server has; a server that is there answers ``UNIMPLEMENTED``."""
        return self.call(f"{SERVICE}/{_PING}", b"", seconds)

    def profile(self, request: bytes, seconds: float) -> RpcCall:
        """Asks the server to trace; it answers with a serialized ProfileResponse."""
        return self.call(f"{SERVICE}/Profile", request, seconds)

    def start_continuous(self, request: bytes, seconds: float) -> RpcCall:
        """Has the server keep its last seconds from now on; `request` is as for `profile`."""
        return self.call(f"{SERVICE}/StartContinuousProfiling", request, seconds)

    def stop_continuous(self, seconds: float) -> RpcCall:
        return self.call(f"{SERVICE}/StopContinuousProfiling", b"", seconds)

    def snapshot(self, session: str, seconds: float) -> RpcCall:
        """Asks for what the server has kept since the last snapshot; it answers as to `profile`."""
        request = services_pb2.GetSnapshotRequest(snapshot_session_id=session).SerializeToString()
        return self.call(f"{SERVICE}/GetSnapshot", request, seconds)

    def terminate(self, session: str, seconds: float) -> RpcCall:
        """Ends a session early. The server confirms it, whether it has such a session or not."""
        request = services_pb2.TerminateRequest(session_id=session).SerializeToString()
        return self.call(f"{SERVICE}/Terminate", request, seconds)


def profile_request(options: CaptureOptions, host_name: str, session: str, repository: str = "") -> bytes:
    """Makes a serialized ProfileRequest.

    Fields that no option sets are as in the profiler's own clients. A server that knows `emit_xspace` answers
    with the profile; those before TensorFlow 2.20 write it under `repository`.

    Args:
        host_name, repository: the name for the file of a server that writes one, and a folder on its disk, or empty.
        session: the session's id, for `Server.terminate`.
    """
    asked = services_pb2.ProfileOptions(
        version=1,  # without it the server traces nothing
        duration_ms=options.duration_ms,
        host_tracer_level=options.host_tracer_level,
        device_tracer_level=options.device_tracer_level,
        python_tracer_level=options.python_tracer_level,
        include_dataset_ops=True,
        enable_hlo_proto=True,
    )
    for name, value in options.advanced:
        entry = asked.advanced_configuration[name]
        if isinstance(value, bool):
            entry.bool_value = value
        elif isinstance(value, int):
            entry.int64_value = value
        else:
            entry.string_value = value
    request = services_pb2.ProfileRequest(
        duration_ms=options.duration_ms,  # where servers looked before it was an option
        max_events=_MOST_EVENTS,
        opts=asked,
        repository_root=repository,
        session_id=session,
        host_name=host_name,
        emit_xspace=not repository,
    )
    return request.SerializeToString(deterministic=True)


@dataclass(frozen=True, slots=True)
class Answer:
    """A ProfileResponse: the bytes of the XSpace in it, empty where it holds none; and whether nothing was traced."""

    profile: memoryview
    is_empty: bool


@dataclass(frozen=True, slots=True)
class ProfileHeaders:
    """What the headers of a profile say: the host's name, which may be empty, and sentences on what is missing."""

    hostname: str
    notes: tuple[str, ...]


def read_answer(response: bytes) -> Answer | None:
    """Reads a serialized ProfileResponse; returns None for other bytes.

    Where there are several profiles the largest counts: no server sends more than one.
    """
    view = memoryview(response)
    profile, is_empty, at = view[:0], False, 0
    for fields in windows(MemorySource(view), 0, len(view)):
        for number, wire, begin, end in zip(fields.number, fields.wire, fields.begin, fields.end, strict=True):
            at = int(end)
            payload = view[int(begin) : at]
            if number == _EMPTY_TRACE and wire == VARINT:
                is_empty = varint(bytes(payload)) != 0
            elif number == _XSPACE and wire == LEN and len(payload) > len(profile):
                profile = payload
    if at != len(view):
        return None
    return Answer(profile, is_empty)


def read_headers(profile: memoryview | bytes | str) -> ProfileHeaders | None:
    """Reads what a profile says of itself: its bytes, or the file at a path.

    Returns:
        Its host's name and what it lacks; None for bytes that are no whole profile, or hold neither events nor errors.
    """
    try:
        trace = Trace.open(profile) if isinstance(profile, str) else Trace(MemorySource(profile))
    except ProfileError:
        return None
    with contextlib.closing(trace):
        reported = [*trace.errors, *trace.warnings]
        holds_something = reported or any(line.size for plane in trace.planes for line in plane.lines)
        if trace.problems or not trace.planes or not holds_something:
            return None
    notes = []
    if not any(plane.name.startswith(_DEVICE) for plane in trace.planes):
        notes.append("holds no device plane: the machine has no accelerator, or nothing ran on it")
    if reported:
        notes.append(f"the profiler says: {examples([line[:200] for line in reported], _MOST_SHOWN)}")
    return ProfileHeaders(trace.hostnames[0] if trace.hostnames else "", tuple(notes))
