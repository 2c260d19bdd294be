"""Continuous profiling: servers that keep their last seconds, so that a snapshot shows what was before a slowdown.

While it is on, a server takes no other capture, and the tracing costs what it costs. A snapshot
(`CaptureOptions.is_snapshot`) brings what was kept since the one before it.
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


def switch(addresses: Sequence[str], is_on: bool, options: CaptureOptions) -> list[tuple[Address, ProfileError | None]]:
    """Turns continuous profiling on or off, at one server after the other.

    Args:
        addresses: as `parse_addresses` takes them.
        options: with which tracers, once it is on.

    Returns:
        Each server, and why it did not do so, None where it did; on where it is on already is no failure.

    Raises:
        ProfileError: `bad_address`, or `no_grpc`.
    """
    done: list[tuple[Address, ProfileError | None]] = []
    for address in model.parse_addresses(addresses):
        with contextlib.closing(Server(address)) as server:
            seconds = options.connect_seconds
            call = _start(server, address, options) if is_on else server.stop_continuous(seconds)
            done.append((address, _why_not(call, address, seconds, is_on)))
    return done


@dataclass(frozen=True, slots=True)
class Started:
    """Which servers began to keep their last seconds.

    Attributes:
        new: servers that did not do so before.
        problem: why the first server that refused did; None if none refused.
    """

    new: tuple[Address, ...]
    problem: ProfileError | None


def begin(addresses: Sequence[str], options: CaptureOptions) -> Started:
    """Makes servers keep their last seconds, one after the other, until one refuses.

    Raises:
        ProfileError: `bad_address`, or `no_grpc`.
    """
    new: list[Address] = []
    seconds = options.connect_seconds
    for address in model.parse_addresses(addresses):
        with contextlib.closing(Server(address)) as server:
            call = _start(server, address, options)
            problem = _why_not(call, address, seconds, True)
            if problem is not None:
                return Started(tuple(new), problem)
            if call.status().name == "OK":
                new.append(address)
    return Started(tuple(new), None)


def _start(server: Server, address: Address, options: CaptureOptions) -> RpcCall:
    """Asks a server to keep its last seconds."""
    request = profile_request(options, address.file_name, f"continuous_{secrets.token_hex(6)}")
    return server.start_continuous(request, options.connect_seconds)


def _why_not(call: RpcCall, address: Address, seconds: float, is_on: bool) -> ProfileError | None:
    if not call.wait(seconds + 1):
        call.cancel()
        return errors.unreachable(address, "DEADLINE_EXCEEDED", "", seconds)
    status = call.status()
    if status.name == "OK" or (is_on and status.name == "ALREADY_EXISTS"):
        return None
    if status.name == "NOT_FOUND":
        return None  # off where nothing is on
    if status.name in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
        return errors.unreachable(address, status.name, status.details, seconds)
    if status.name == "UNIMPLEMENTED":
        return errors.no_snapshots(address)
    return errors.refused(address, status.name, status.details)
