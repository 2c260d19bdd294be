"""Continuous profiling: servers that keep their last seconds, so that a snapshot shows what was before a slowdown.

While it is on, a server takes no other capture, the program's own traces fail, and the tracing costs what it costs. A
snapshot (`CaptureOptions.is_snapshot`) brings what was kept since the one before it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.base.record import dataclass
from tpuprof.parsers.capture import errors, model
from tpuprof.parsers.capture.client import RpcCall, Server, profile_request
from tpuprof.parsers.capture.model import Address, CaptureOptions


@dataclass(frozen=True, slots=True)
class Switched:
    """What came of switching continuous profiling on or off at one server.

    Attributes:
        was_so: it was on, or off, already.
        problem: why the server did not do so; None where it did, or where it was so.
    """

    address: Address
    was_so: bool
    problem: ProfileError | None


def switch(addresses: Sequence[str], is_on: bool, options: CaptureOptions) -> list[Switched]:
    """Turns continuous profiling on or off at all servers at the same time.

    Args:
        addresses: as `parse_addresses` takes them.
        options: with which tracers, once it is on; and how long a server may take to answer.

    Raises:
        ProfileError: `bad_address`, or `no_grpc`.
    """
    seconds = options.connect_seconds
    with contextlib.ExitStack() as opened:
        calls: list[tuple[Address, RpcCall]] = []
        for address in model.parse_addresses(addresses):
            server = opened.enter_context(contextlib.closing(Server(address)))
            request = profile_request(options, address.file_name, f"continuous_{secrets.token_hex(6)}")
            calls.append(
                (address, server.start_continuous(request, seconds) if is_on else server.stop_continuous(seconds))
            )
        return [_switched(call, address, seconds, is_on) for address, call in calls]


def _switched(call: RpcCall, address: Address, seconds: float, is_on: bool) -> Switched:
    if not call.wait(seconds + 1):
        call.cancel()
        return Switched(address, False, errors.unreachable(address, "DEADLINE_EXCEEDED", "", seconds))
    status = call.status()
    was_so = status.name == ("ALREADY_EXISTS" if is_on else "NOT_FOUND")
    if status.name == "OK" or was_so:
        return Switched(address, was_so, None)
    if status.name in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return Switched(address, False, errors.unreachable(address, status.name, status.details, seconds))
    if status.name == "UNIMPLEMENTED":
        return Switched(address, False, errors.no_snapshots(address))
    return Switched(address, False, errors.refused(address, status.name, status.details))
