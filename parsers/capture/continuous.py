"""Continuous profiling: servers that keep their last seconds, so that a snapshot shows what was before a slowdown.

While it is on, a server takes no other capture, the program's own traces fail, and the tracing costs what it costs. A
snapshot (`CaptureOptions.is_snapshot`) brings what was kept since the one before it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Sequence

from tpuprof.parsers.base.errors import ProfileError
from tpuprof.parsers.capture import errors, model
from tpuprof.parsers.capture.client import RpcCall, Server, profile_request
from tpuprof.parsers.capture.model import Address, CaptureOptions


def switch(addresses: Sequence[str], is_on: bool, options: CaptureOptions) -> list[tuple[Address, ProfileError | None]]:
    """Turns continuous profiling on or off at all servers at the same time.

    Args:
        addresses: as `parse_addresses` takes them.
        options: with which tracers, once it is on; and how long a server may take to answer.

    Returns:
        Each server, and why it did not do so; None where it did, or where it was so before.

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
        return [(address, _problem(call, address, seconds, is_on)) for address, call in calls]


def _problem(call: RpcCall, address: Address, seconds: float, is_on: bool) -> ProfileError | None:
    if not call.wait(seconds + 1):
        call.cancel()
        return errors.unreachable(address, "DEADLINE_EXCEEDED", "", seconds)
    status = call.status()
    if status.name in ("OK", "ALREADY_EXISTS" if is_on else "NOT_FOUND"):
        return None
    if status.name in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return errors.unreachable(address, status.name, status.details, seconds)
    if status.name == "UNIMPLEMENTED":
        return errors.no_snapshots(address)
    return errors.refused(address, status.name, status.details)
